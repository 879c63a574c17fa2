//! When a request left the browser, and over which connection. A browser opens six connections to a server of HTTP/1.1, and what is asked for
//! beyond that waits in its queue: the server knows nothing of it yet.

use serde_json::Value;
use std::collections::HashMap;

/// When a response's request began to leave, s on the browser's clock; `None` where none did, as for what a cache answers.
///
/// # Source
/// Chrome DevTools Protocol, `Network.ResourceTiming`: `requestTime` is in s, all others in ms after it, −1 where there was nothing of the kind.
pub(super) fn sent_at(response: &Value) -> Option<f64> {
    let timing = &response["timing"];
    let after = timing["sendStart"].as_f64().filter(|ms| *ms >= 0.0)?;
    Some(timing["requestTime"].as_f64()? + after / 1e3)
}

/// The browser's number of the connection over which a response came; `None` where that was none.
///
/// # Source
/// Chrome DevTools Protocol, `Network.Response.connectionId`; Chromium has 0 where no socket was used.
pub(super) fn connection_of(response: &Value) -> Option<u32> {
    response["connectionId"].as_u64().and_then(|id| u32::try_from(id).ok()).filter(|id| *id > 0)
}

/// Numbers from 0 for the browser's numbers of connections, in the order in which they were first used: those count all that it has ever opened.
/// Each connection comes with when its request was sent.
pub(super) fn numbers_of(mut used: Vec<(f64, u32)>) -> HashMap<u32, u32> {
    used.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut numbers = HashMap::new();
    for (_, id) in used {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        numbers.entry(id).or_insert(next);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn connections_are_numbered_in_the_order_of_their_first_requests() {
        let numbers = numbers_of(vec![(0.0, 70), (900.0, 75), (400.0, 73), (500.0, 70)]);
        assert_eq!([70, 73, 75].map(|id| numbers[&id]), [0, 1, 2]);
    }

    #[test]
    fn what_a_cache_answers_was_never_sent_and_came_over_no_connection() {
        let cached = json!({"connectionId": 0, "timing": {"requestTime": 100.0, "sendStart": -1}});
        assert_eq!((sent_at(&cached), connection_of(&cached)), (None, None));
        assert_eq!((sent_at(&json!({})), connection_of(&json!({}))), (None, None));
    }
}
