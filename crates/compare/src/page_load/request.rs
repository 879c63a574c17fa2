use super::compare::WindowPair;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::duration_or_none;

/// How long a real browser takes for a page: which, and how often.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageRequest {
    /// The page.
    pub url: String,
    /// The browser, a Chromium; nothing means the first of the usual programs that is there.
    pub browser: Option<PathBuf>,
    /// How often; of a comparison, each of both.
    pub runs: u32,
    /// How long one load may take; nothing means a minute.
    #[serde(with = "duration_or_none")]
    pub deadline: Option<Duration>,
    /// Believe every certificate.
    pub insecure: bool,
    /// One first window at two levels, in a lab: a load with each in every round, in random order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<WindowPair>,
    /// Film one more load, of a comparison one more of both.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub film: bool,
    /// Note stored with a comparison.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// The journal's file of a comparison; nothing means the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<PathBuf>,
    /// What was typed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            url: String::new(),
            browser: None,
            runs: 3,
            deadline: None,
            insecure: false,
            compare: None,
            film: false,
            comment: String::new(),
            journal: None,
            command: String::new(),
        }
    }
}

impl PageRequest {
    /// Whether what was asked for makes sense.
    ///
    /// # Errors
    /// A usage [`Problem`] with what is allowed.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let known = ["http://", "https://"].iter().any(|scheme| self.url.to_ascii_lowercase().starts_with(scheme));
        if !known || self.url.contains(char::is_whitespace) {
            return Err(Problem::usage(format!("\"{}\" is no URL of a page", self.url))
                .hint("write http://HOST/PATH or https://…"));
        }
        if !(1..=1000).contains(&self.runs) {
            return Err(Problem::usage(format!("{} runs are out of range: allowed is 1 to 1000", self.runs)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_it_was_written_and_checked() {
        let request = PageRequest {
            url: "https://example.org/".to_owned(),
            deadline: Some(Duration::from_secs(5)),
            ..PageRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        let back: PageRequest = serde_json::from_str(&text).unwrap();
        assert_eq!((serde_json::to_string(&back).unwrap(), back.check()), (text, Ok(())));
        assert!(PageRequest { runs: 0, ..back }.check().is_err());
        assert!(PageRequest::default().check().is_err());
    }
}
