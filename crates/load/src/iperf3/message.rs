//! What iperf3's control connection carries. Pure.
//!
//! # Source
//! esnet/iperf, src/iperf_api.h (states), `send_parameters()`, `send_results()` and `get_results()` of src/iperf_api.c.

use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of a cookie: 36 characters and a zero.
pub(super) const COOKIE: usize = 37;
/// The longest JSON that is taken, bytes.
pub(super) const LONGEST: usize = 1 << 20;

/// What the server, or we, do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    TestStart,
    TestRunning,
    TestEnd,
    ParamExchange,
    CreateStreams,
    ServerTerminate,
    ClientTerminate,
    ExchangeResults,
    DisplayResults,
    Done,
    AccessDenied,
    ServerError,
}

/// The one table of states and their bytes.
const STATES: [(State, i8); 12] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::Done, 16),
    (State::AccessDenied, -1),
    (State::ServerError, -2),
];

impl State {
    pub(super) fn of(byte: u8) -> Option<Self> {
        STATES.iter().find(|(_, number)| number.cast_unsigned() == byte).map(|(state, _)| *state)
    }

    pub(super) fn byte(self) -> u8 {
        STATES.iter().find(|(state, _)| *state == self).map_or(0, |(_, number)| number.cast_unsigned())
    }
}

/// What a test is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameters {
    /// Whether the server sends.
    pub(super) reverse: bool,
    /// Seconds, whole ones; 0 for a number of bytes.
    pub(super) seconds: u64,
    /// Bytes; 0 for a time.
    pub(super) bytes: u64,
    /// Bytes of each write.
    pub(super) block: u64,
    /// The congestion control of the server's side.
    pub(super) congestion_control: Option<String>,
}

impl Parameters {
    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({
            "tcp": true, "omit": 0, "time": self.seconds, "num": self.bytes, "blockcount": 0, "parallel": 1,
            "len": self.block, "pacing_timer": 1000, "client_version": "3.12",
        });
        if self.reverse {
            json["reverse"] = json!(true);
            json["repeating_payload"] = json!(1);
        }
        if let Some(name) = &self.congestion_control {
            json["congestion"] = json!(name);
        }
        json
    }
}

/// What a server says of a test.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Results {
    pub(super) bytes: u64,
    pub(super) seconds: Option<f64>,
    pub(super) retransmits: Option<u64>,
    pub(super) congestion_control: Option<String>,
}

/// What is read of it; everything else is ignored.
#[derive(Deserialize)]
struct Raw {
    streams: Vec<RawStream>,
    congestion_used: Option<String>,
}

#[derive(Deserialize)]
struct RawStream {
    bytes: f64,
    retransmits: Option<f64>,
    start_time: Option<f64>,
    end_time: Option<f64>,
}

impl Results {
    /// Reads what a server sends; `None` if that isn't what it should be.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw: Raw = serde_json::from_slice(bytes).ok()?;
        let [stream] = raw.streams.as_slice() else { return None };
        let sensible = |value: f64, most: f64| (0.0..=most).contains(&value).then_some(value);
        let seconds = stream.end_time.zip(stream.start_time).and_then(|(end, start)| sensible(end - start, 1e6));
        let name = raw.congestion_used.filter(|name| {
            name.len() <= 32 && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        });
        Some(Self {
            bytes: sensible(stream.bytes, 1e18)? as u64,
            seconds: seconds.filter(|seconds| *seconds > 0.0),
            // A receiver says -1, as signed or as unsigned number.
            retransmits: stream.retransmits.and_then(|n| sensible(n, 1e15)).map(|n| n as u64),
            congestion_control: name.filter(|name| !name.is_empty()),
        })
    }
}

/// What this side says of the test; the server only shows it.
pub(super) fn own_results(bytes: u64, seconds: f64, congestion_control: &str, retransmits: Option<u32>) -> Value {
    json!({
        "cpu_util_total": 0.0, "cpu_util_user": 0.0, "cpu_util_system": 0.0,
        "sender_has_retransmits": if retransmits.is_some() { 1 } else { -1 },
        "congestion_used": congestion_control,
        "streams": [{
            "id": 1, "bytes": bytes, "retransmits": retransmits.map_or(-1, i64::from), "jitter": 0, "errors": 0,
            "packets": 0, "start_time": 0, "end_time": seconds,
        }],
    })
}

/// JSON with its length before it.
pub(super) fn framed(json: &Value) -> Vec<u8> {
    let text = json.to_string();
    let mut bytes = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// The payload that `repeating_payload` asks for: digits in a row, from 0 again with each write, however long that is. A
/// server that doesn't know the word sends anything; then nothing can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Digits {
    last: Option<u8>,
    seen: u64,
    /// Whether the beginning wasn't like that.
    pub(super) foreign: bool,
}

/// As many bytes tell whether a server knows the pattern: ten at random would be a chance of one in 10^20.
const TELLING: u64 = 10;

impl crate::intact::Check for Digits {
    fn take(&mut self, bytes: &[u8]) -> Option<u64> {
        if self.foreign {
            return None;
        }
        for byte in bytes {
            let follows = match self.last {
                Some(last) => *byte == b'0' || *byte == last + 1,
                None => *byte == b'0',
            };
            if !(follows && byte.is_ascii_digit()) {
                self.foreign = self.seen < TELLING;
                return (!self.foreign).then_some(self.seen);
            }
            self.last = Some(*byte);
            self.seen += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intact::Check as _;
    use proptest::prelude::*;

    #[test]
    fn states_read_back_and_unknown_bytes_are_none() {
        for (state, number) in STATES {
            assert_eq!(State::of(number.cast_unsigned()), Some(state));
            assert_eq!(State::of(state.byte()), Some(state));
        }
        assert_eq!((State::of(0xFF), State::of(0), State::of(77)), (Some(State::AccessDenied), None, None));
    }

    #[test]
    fn results_of_a_server_are_read_and_nonsense_is_not() {
        let text = br#"{"cpu_util_total":1.5,"sender_has_retransmits":1,"congestion_used":"cubic","streams":
            [{"id":1,"bytes":1310720,"retransmits":3,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.25}]}"#;
        let results = Results {
            bytes: 1_310_720,
            seconds: Some(1.25),
            retransmits: Some(3),
            congestion_control: Some("cubic".to_owned()),
        };
        assert_eq!(Results::parse(text), Some(results));
        for text in [
            "",
            "[]",
            "{}",
            r#"{"streams":[]}"#,
            r#"{"streams":[{"bytes":-1}]}"#,
            r#"{"streams":[{"bytes":1e300}]}"#,
            r#"{"streams":[{"bytes":1},{"bytes":1}]}"#,
        ] {
            assert_eq!(Results::parse(text.as_bytes()), None, "{text}");
        }
        let least = Results::parse(
            br#"{"streams":[{"bytes":5,"retransmits":18446744073709551615}],"congestion_used":"\u001b[2J"}"#,
        )
        .unwrap();
        assert_eq!(least, Results { bytes: 5, ..Results::default() });
        assert!(Results::parse("[".repeat(100_000).as_bytes()).is_none(), "deep nesting is refused");
    }

    #[test]
    fn digits_may_begin_anew_and_nothing_else() {
        let mut digits = Digits::default();
        assert_eq!((digits.take(b"01234567890123"), digits.take(b"450120")), (None, None));
        assert_eq!(digits.take(b"0124"), Some(23));
        let mut random = Digits::default();
        assert_eq!(random.take(b"0zq8"), None);
        assert!(random.foreign);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (Results::parse(&bytes), bytes.first().map(|byte| State::of(*byte)));
            let _ = Digits::default().take(&bytes);
        }

        #[test]
        fn a_segment_that_is_missing_is_found_unless_it_is_whole_tens(cut in 11..2000_usize, at in 20..3000_usize) {
            let whole: Vec<u8> = (0..10_000).map(|i| b'0' + (i % 10) as u8).collect();
            let broken = [&whole[..at], &whole[at + cut..]].concat();
            let found = Digits::default().take(&broken);
            // A jump to 0 looks like a new block.
            let hidden = cut % 10 == 0 || (at + cut) % 10 == 0;
            prop_assert_eq!(found.is_some(), !hidden);
        }
    }
}
