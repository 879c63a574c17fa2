use crate::request::{LabRequest, check_rounds};
use serde::{Deserialize, Serialize};
use wt_problem::Problem;
use wt_units::Bytes;

/// The largest object, bytes.
const LARGEST: u64 = 50_000_000;

/// Which of the four initial windows of a CDN matters on which request: on what path, and between which levels.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CdnRequest {
    /// The emulated path, with one host on the way. Nothing is kept in a journal.
    pub lab: LabRequest,
    /// How large the object is.
    pub object: Bytes,
    /// The small level of each window, segments.
    pub low: u32,
    /// The large level of each window, segments.
    pub high: u32,
    /// How many rounds, of eight combinations each.
    pub rounds: u32,
    /// Let the model answer, without any host: all sixteen combinations once.
    pub model: bool,
    /// What caches at the edge.
    pub proxy: Proxy,
}

/// The proxy at the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proxy {
    /// nginx with `proxy_cache`.
    #[default]
    Nginx,
    /// Varnish.
    Varnish,
}

impl Proxy {
    /// Its name in JSON and on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Varnish => "varnish",
        }
    }
}

impl Default for CdnRequest {
    fn default() -> Self {
        Self {
            lab: LabRequest::on("cdn-chain"),
            object: Bytes(100_000),
            low: 10,
            high: 40,
            rounds: 12,
            model: false,
            proxy: Proxy::default(),
        }
    }
}

impl CdnRequest {
    /// Whether what was asked for makes sense.
    ///
    /// # Errors
    /// A usage [`Problem`] with what is allowed.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.low >= self.high {
            return Err(Problem::usage("--low must be smaller than --high"));
        }
        if self.low == 0 || self.high > 1000 {
            return Err(Problem::usage("a window is out of range: allowed is 1 to 1000 segments"));
        }
        if !(1..=LARGEST).contains(&self.object.get()) {
            return Err(Problem::usage(format!("an object of {} is out of range: allowed is 1B to 50MB", self.object)));
        }
        check_rounds(self.rounds, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_it_was_written() {
        let request = CdnRequest { proxy: Proxy::Varnish, object: Bytes(300_000), ..CdnRequest::default() };
        assert_eq!(request.check(), Ok(()));
        let text = serde_json::to_string(&request).unwrap();
        assert!(text.contains("\"varnish\""), "{text}");
        let back: CdnRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let usual = CdnRequest::default;
        for request in [
            CdnRequest { low: 40, ..usual() },
            CdnRequest { low: 0, ..usual() },
            CdnRequest { high: 1001, ..usual() },
            CdnRequest { object: Bytes(0), ..usual() },
            CdnRequest { rounds: 1, ..usual() },
        ] {
            assert!(request.check().is_err(), "{request:?}");
        }
    }
}
