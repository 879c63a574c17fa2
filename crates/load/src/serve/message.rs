//! What client and server say to each other under the handshake's keys. Pure.

use crate::proto::{REQUEST_LEN, Request, is_talk};
use crate::transfer::{EndReport, Finish};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_sys::tcp::TcpInfo;
use wt_trial::{Measures, Sample};

/// Connections that a test may have beside its first one.
pub(super) const MOST_SIDES: u64 = 63;
/// Bytes of what a client asks, without the tag.
pub(super) const ASK: usize = 1 + REQUEST_LEN;
/// Bytes of what a server answers, without the tag.
pub(super) const ANSWER: usize = 64;
/// The longest report, bytes.
pub(super) const LONGEST_REPORT: usize = 1 << 20;
/// Bytes of a report that go into one encrypted message.
pub(super) const PIECE: usize = 32 * 1024;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    /// A test: one transfer, or (true) a connection on which both take turns.
    Test(Request, bool),
    /// One more connection of a test that is under way: its token is that test's and 1 to [`MOST_SIDES`] more.
    Side(Request, bool),
    /// The server's side of the test with this token.
    Report(u64),
}

impl Ask {
    pub(super) fn to_bytes(&self) -> Option<[u8; ASK]> {
        let mut bytes = [0; ASK];
        match self {
            Self::Test(request, talk) | Self::Side(request, talk) => {
                bytes[0] = if let Self::Test(..) = self { 1 } else { 3 };
                let request = if *talk { request.to_bytes_of_talk() } else { request.to_bytes() };
                bytes[1..].copy_from_slice(&request.ok()?);
            }
            Self::Report(token) => {
                bytes[0] = 2;
                bytes[1..9].copy_from_slice(&token.to_be_bytes());
            }
        }
        Some(bytes)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let rest: &[u8; REQUEST_LEN] = rest.try_into().ok()?;
        match kind {
            1 => Request::from_bytes(rest).ok().map(|request| Self::Test(request, is_talk(rest))),
            3 => Request::from_bytes(rest).ok().map(|request| Self::Side(request, is_talk(rest))),
            2 => Some(Self::Report(u64::from_be_bytes(std::array::from_fn(|i| rest[i])))),
            _ => None,
        }
    }
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The test begins with the next byte.
    Go,
    /// So many are before you; another answer follows.
    Queued(u32),
    /// No; and when to ask again, if that helps.
    Refused {
        /// Why, for people.
        why: String,
        /// When to ask again.
        pause: Option<Duration>,
    },
    /// A report of so many bytes follows.
    Report(u32),
}

impl Answer {
    pub(super) fn to_bytes(&self) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        let mut set = |kind: u8, number: u32| {
            bytes[0] = kind;
            bytes[1..5].copy_from_slice(&number.to_be_bytes());
        };
        match self {
            Self::Go => set(1, 0),
            Self::Queued(before) => set(2, *before),
            Self::Report(length) => set(4, *length),
            Self::Refused { why, pause } => {
                set(3, pause.map_or(0, |pause| u32::try_from(pause.as_secs().max(1)).unwrap_or(u32::MAX)));
                let text = why.as_bytes();
                let length = text.len().min(ANSWER - 5);
                bytes[5..5 + length].copy_from_slice(&text[..length]);
            }
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ANSWER] = bytes.try_into().ok()?;
        let number = u32::from_be_bytes(std::array::from_fn(|i| bytes[1 + i]));
        Some(match bytes[0] {
            1 => Self::Go,
            2 => Self::Queued(number),
            3 => {
                let text = String::from_utf8_lossy(&bytes[5..]);
                let why = text.trim_end_matches('\0').chars().filter(|c| !c.is_control()).collect();
                Self::Refused { why, pause: (number > 0).then(|| Duration::from_secs(number.into())) }
            }
            4 => Self::Report(number),
            _ => return None,
        })
    }
}

/// A report as it goes over the wire.
#[derive(Serialize, Deserialize)]
struct Report {
    finish: EndReason,
    bytes: u64,
    elapsed_us: u64,
    #[serde(default)]
    last_us: Option<u64>,
    samples: Vec<Sample>,
    info: Info,
    congestion_control: String,
    refused: Vec<String>,
    #[serde(default)]
    measures: Measures,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EndReason {
    Done,
    Deadline,
    Cancelled,
    PeerLeft(String),
    Garbage(String),
    Corrupt(u64),
    Lost(String),
}

/// Makes [`Info`] and its way from and to [`TcpInfo`] of one list of fields.
macro_rules! info_of_tcp {
    ($($field:ident: $type:ty),* $(,)?) => {
        /// Of `tcp_info`, what is told of a test.
        #[derive(Serialize, Deserialize)]
        struct Info {
            $($field: $type,)*
        }

        impl From<&TcpInfo> for Info {
            fn from(info: &TcpInfo) -> Self {
                Self { $($field: info.$field,)* }
            }
        }

        impl From<Info> for TcpInfo {
            fn from(info: Info) -> Self {
                Self { $($field: info.$field,)* ..Self::default() }
            }
        }
    };
}

info_of_tcp! {
    options: u8,
    wscale: u8,
    snd_mss: u32,
    rcv_mss: u32,
    rtt: u32,
    min_rtt: u32,
    rcv_rtt: u32,
    snd_cwnd: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    total_retrans: u32,
    data_segs_out: u32,
    data_segs_in: u32,
    rcv_ooopack: u32,
    bytes_acked: u64,
    bytes_received: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
}

/// The JSON of a report, within its bound.
pub(super) fn report_to_json(report: &EndReport) -> Vec<u8> {
    let mut wire = Report {
        finish: match &report.finish {
            Finish::Done => EndReason::Done,
            Finish::Deadline => EndReason::Deadline,
            Finish::Cancelled => EndReason::Cancelled,
            Finish::PeerLeft(why) => EndReason::PeerLeft(why.clone()),
            Finish::Garbage(why) => EndReason::Garbage(why.clone()),
            Finish::Corrupt(at) => EndReason::Corrupt(*at),
            Finish::Lost(why) => EndReason::Lost(why.clone()),
        },
        bytes: report.bytes,
        elapsed_us: u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX),
        last_us: report.last.map(|last| u64::try_from(last.as_micros()).unwrap_or(u64::MAX)),
        samples: report.samples.clone(),
        info: Info::from(&report.info),
        congestion_control: report.congestion_control.clone(),
        refused: report.refused.clone(),
        measures: report.measures.clone(),
    };
    let json = serde_json::to_vec(&wire).unwrap_or_default();
    if json.len() <= LONGEST_REPORT {
        return json;
    }
    wire.samples.clear();
    serde_json::to_vec(&wire).unwrap_or_default()
}

/// Reads a report.
pub(super) fn report_from_json(json: &[u8]) -> Option<EndReport> {
    let Report { finish, bytes, elapsed_us, last_us, samples, info, congestion_control, refused, measures } =
        serde_json::from_slice(json).ok()?;
    let clean = |text: String| -> String { text.chars().filter(|c| !c.is_control()).take(200).collect() };
    Some(EndReport {
        finish: match finish {
            EndReason::Done => Finish::Done,
            EndReason::Deadline => Finish::Deadline,
            EndReason::Cancelled => Finish::Cancelled,
            EndReason::PeerLeft(why) => Finish::PeerLeft(clean(why)),
            EndReason::Garbage(why) => Finish::Garbage(clean(why)),
            EndReason::Corrupt(at) => Finish::Corrupt(at),
            EndReason::Lost(why) => Finish::Lost(clean(why)),
        },
        bytes,
        elapsed: Duration::from_micros(elapsed_us),
        last: last_us.map(Duration::from_micros),
        samples,
        info: info.into(),
        congestion_control: clean(congestion_control),
        refused: refused.into_iter().take(8).map(clean).collect(),
        start: None,
        measures,
        waited: None,
    })
}

/// Reads bytes as every message.
#[cfg(any(fuzzing, test))]
pub(super) fn read_all(bytes: &[u8]) {
    if let Some(ask) = Ask::from_bytes(bytes) {
        let _ = ask.to_bytes();
    }
    if let Some(answer) = Answer::from_bytes(bytes) {
        let _ = answer.to_bytes();
    }
    if let Some(report) = report_from_json(bytes) {
        let _ = report_to_json(&report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_read_back() {
        let refused = |why: &str, pause| Answer::Refused { why: why.to_owned(), pause };
        for answer in [
            Answer::Go,
            Answer::Queued(7),
            Answer::Report(99),
            refused("quota", Some(Duration::from_secs(60))),
            refused("", None),
        ] {
            assert_eq!(Answer::from_bytes(&answer.to_bytes()), Some(answer));
        }
    }

    #[test]
    fn a_report_reads_back_and_a_huge_one_loses_its_samples_only() {
        let info = TcpInfo { rtt: 5, busy_time: 9, ..TcpInfo::default() };
        let report = EndReport {
            finish: Finish::PeerLeft("gone".to_owned()),
            bytes: 10,
            elapsed: Duration::from_micros(1234),
            last: Some(Duration::from_micros(1200)),
            samples: vec![Sample { t_us: 3, ..Sample::default() }; 3],
            info,
            congestion_control: "cubic".to_owned(),
            refused: vec!["no".to_owned()],
            start: None,
            measures: Measures { flows_bps: vec![5.0], ..Measures::default() },
            waited: None,
        };
        assert_eq!(report_from_json(&report_to_json(&report)), Some(report.clone()));
        let huge = EndReport { samples: vec![Sample::default(); 100_000], ..report };
        let json = report_to_json(&huge);
        assert!(json.len() <= LONGEST_REPORT);
        assert_eq!(report_from_json(&json).unwrap().bytes, 10);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Ask::from_bytes(&bytes), Answer::from_bytes(&bytes), report_from_json(&bytes));
            if let Ok(exact) = <[u8; ASK]>::try_from(bytes.iter().copied().cycle().take(ASK).collect::<Vec<u8>>()) {
                let _ = Ask::from_bytes(&exact);
            }
        }

        #[test]
        fn a_question_reads_back(token in any::<u64>()) {
            let ask = Ask::Report(token);
            prop_assert_eq!(Ask::from_bytes(&ask.to_bytes().unwrap()), Some(ask));
        }
    }
}
