use super::lists::UrlRequest;
use super::targets::{SkippedLine, Url, urls};
use crate::IpVersion;
use crate::options::within;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use wt_probe::first_window::SurveyConfig;
use wt_problem::Problem;

/// Servers that are asked how much they send before anything is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FirstWindowRequest {
    /// What to ask for.
    pub targets: Vec<UrlRequest>,
    /// Hosts begun a second, all together; 100 if it isn't said, and for private addresses as many as this host and the path carry.
    pub rate: Option<u32>,
    /// Hosts begun a second of one /24 (IPv6: /48); one if it isn't said, and without limit for private addresses.
    pub per_network: Option<u32>,
    /// The MSS of the two probes, bytes; at most two.
    pub mss: Vec<u16>,
    /// Names (with all below them), addresses and networks not to ask.
    pub opt_out: Vec<String>,
    /// How the one who asks can be reached: goes into the User-Agent.
    pub contact: Option<String>,
    /// The version of IP; what the name resolves to first if it isn't said.
    pub ip: Option<IpVersion>,
    /// Ask by the kernel's own connections, without raw sockets.
    pub unprivileged: bool,
    /// Where findings are kept; the usual journal if it isn't said.
    pub journal: Option<PathBuf>,
    /// The seed of everything random; from the clock if it isn't said.
    pub seed: Option<u64>,
    /// Whether the answer holds the findings; a survey of a million hosts reads them from the events alone.
    pub collect: bool,
}

impl Default for FirstWindowRequest {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            rate: None,
            per_network: None,
            mss: Vec::new(),
            opt_out: Vec::new(),
            contact: None,
            ip: None,
            unprivileged: false,
            journal: None,
            seed: None,
            collect: true,
        }
    }
}

/// Longest contact, bytes.
const LONGEST_CONTACT: usize = 200;

impl FirstWindowRequest {
    /// The URLs, if all of the request is valid.
    ///
    /// # Errors
    /// A usage problem.
    pub(super) fn check(&self) -> Result<(Vec<Url>, Vec<SkippedLine>), Problem> {
        for rate in [self.rate, self.per_network].into_iter().flatten() {
            within("hosts a second", rate, 1, 100_000)?;
        }
        for mss in &self.mss {
            within("bytes of MSS", *mss, 48, 8960)?;
        }
        if self.mss.len() > 2 {
            return Err(Problem::usage("there are two probes: name one MSS or two"));
        }
        if self.contact.as_deref().is_some_and(|contact| !is_contact(contact)) {
            return Err(Problem::usage("a contact is plain text without parentheses, 200 bytes at most"));
        }
        urls(&self.targets)
    }

    /// How the survey goes about it.
    pub(super) fn config(&self) -> SurveyConfig {
        let default = SurveyConfig::default();
        let sizes = match self.mss[..] {
            [one, two, ..] => [one, two],
            [one] if one <= 64 => [one, default.sizes[0]],
            [one] => [one, default.sizes[1]],
            [] => default.sizes,
        };
        let apart = self.per_network.map(|rate| Duration::from_secs(1) / rate.max(1));
        SurveyConfig {
            sizes,
            rate: self.rate.unwrap_or(default.rate),
            rate_private: self.rate.or(default.rate_private),
            apart: apart.unwrap_or(default.apart),
            apart_private: apart.unwrap_or(default.apart_private),
            ..default
        }
    }

    /// The User-Agent.
    pub(super) fn agent(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let contact = self.contact.as_ref().map_or(String::new(), |contact| format!("; contact: {contact}"));
        format!("windtunnel/{version} (measures the first TCP window, fetches nothing else{contact})")
    }
}

/// Whether a text may stand in a User-Agent: plain, short, and without parentheses.
#[must_use]
pub fn is_contact(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && !text.contains(['(', ')', '\\']);
    plain && text.len() <= LONGEST_CONTACT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: &str) -> Result<FirstWindowRequest, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn requests_are_read_and_invalid_ones_refused() {
        let asked = r#"{"targets": [{"url": "example.org"}]"#;
        for (more, sizes, rate) in [
            ("}", [1240, 64], 100),
            (r#", "mss": [536], "rate": 50}"#, [536, 64], 50),
            (r#", "mss": [64]}"#, [64, 1240], 100),
            (r#", "mss": [1300, 200], "ip": "6", "contact": "noc@example.org"}"#, [1300, 200], 100),
        ] {
            let request = request(&format!("{asked}{more}")).unwrap();
            assert_eq!(request.check().unwrap().0.len(), 1, "{more}");
            let config = request.config();
            assert_eq!((config.sizes, config.rate), (sizes, rate), "{more}");
            assert!(request.collect, "{more}");
        }
        for more in [
            r#", "rate": 0}"#,
            r#", "per_network": 100001}"#,
            r#", "mss": [9]}"#,
            r#", "mss": [64, 536, 1240]}"#,
            r#", "contact": "a)\r\nHost: b"}"#,
        ] {
            let problem = request(&format!("{asked}{more}")).unwrap().check().unwrap_err();
            assert_eq!(problem.fault, wt_problem::Fault::Usage, "{more}");
        }
        assert!(request("{}").unwrap().check().is_err(), "somebody must be asked");
        assert!(request(r#"{"unknown": 1}"#).is_err());
        assert!(request(r#"{"ip": "5"}"#).is_err());
    }
}
