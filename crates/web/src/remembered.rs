use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use wt_api::Request;

/// All answers that are kept, with their questions, bytes.
const MOST: usize = 2 << 20;
/// A larger answer isn't kept, bytes.
const LARGEST: usize = 64 << 10;

/// Answers that depend on nothing but the question: whoever moves a slider to and fro, or reads what others read, needn't wait for the
/// model again.
#[derive(Debug, Default)]
pub(crate) struct RememberedAnswers(Mutex<AnswerCache>);

#[derive(Debug, Default)]
struct AnswerCache {
    answers: HashMap<String, Vec<u8>>,
    /// The oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

/// The question as a key, if its answer depends on nothing else: no file, no journal, no state of this host.
pub(crate) fn key(request: &Request) -> Option<String> {
    match request {
        Request::Overhead(request) => Some(format!("{request:?}")),
        // The page names shipped paths only.
        Request::Predict(request) => Some(format!("{request:?}")),
        _ => None,
    }
}

impl RememberedAnswers {
    /// The answer to this question.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).answers.get(key).cloned()
    }

    /// Keeps an answer; the oldest make room.
    pub(crate) fn keep(&self, key: String, answer: &[u8]) {
        if answer.len() > LARGEST {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.answers.contains_key(&key) {
            return;
        }
        kept.bytes += size(&key, answer);
        while kept.bytes > MOST {
            let Some(oldest) = kept.order.pop_front() else { break };
            let answer = kept.answers.remove(&oldest).unwrap_or_default();
            kept.bytes -= size(&oldest, &answer);
        }
        kept.order.push_back(key.clone());
        kept.answers.insert(key, answer.to_vec());
    }
}

/// Bytes that an answer takes with its question, which is kept twice.
fn size(key: &str, answer: &[u8]) -> usize {
    2 * key.len() + answer.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_within_a_bound_and_the_oldest_make_room() {
        let remembered = RememberedAnswers::default();
        for n in 0..1_000 {
            remembered.keep(n.to_string(), &vec![b'x'; 10_000]);
        }
        let kept = |n: u32| remembered.get(&n.to_string()).is_some();
        assert!(kept(999) && !kept(0));
        let bytes = |kept: &AnswerCache| kept.answers.iter().map(|(key, answer)| size(key, answer)).sum::<usize>();
        let inner = remembered.0.lock().unwrap();
        assert!(inner.bytes <= MOST && inner.bytes == bytes(&inner) && inner.order.len() == inner.answers.len());
        drop(inner);
        remembered.keep("large".to_owned(), &vec![b'x'; LARGEST + 1]);
        assert_eq!(remembered.get("large"), None);
    }

    #[test]
    fn only_what_is_computed_from_the_question_alone_is_kept() {
        let request = |json: &str| serde_json::from_str::<Request>(json).unwrap();
        let asked = |encap: &str| {
            key(&request(&format!("{{\"operation\": \"overhead\", \"request\": {{\"encap\": \"{encap}\"}}}}")))
        };
        assert_ne!(asked("ethernet").unwrap(), asked("vlan+ethernet").unwrap());
        for json in [r#"{"operation": "settings_pending"}"#, r#"{"operation": "journal_list", "request": {}}"#] {
            assert_eq!(key(&request(json)), None);
        }
    }
}
