use super::compare::WindowPair;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::duration_or_none;
use wt_units::{shell_word, shell_word_of_os};

/// How long one load may take if nobody says it.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

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
    /// The command line that compares these loads once more, but for how many rounds, in a lab that `lab` makes: without the files that it
    /// would write again. `None` where nobody said how the lab is made, and where nothing is compared.
    pub(super) fn again(&self, lab: &str) -> Option<String> {
        let pair = self.compare.filter(|_| !lab.is_empty())?;
        let browser =
            self.browser.as_ref().map(|program| format!(" --browser {}", shell_word_of_os(program.as_os_str())));
        let deadline = self.deadline.filter(|deadline| *deadline != DEADLINE);
        let deadline = deadline.map(|deadline| format!(" --deadline {}ms", deadline.as_millis()));
        let insecure = self.insecure.then(|| " --insecure".to_owned());
        // The name of a common journal holds a password, and who uses one has it in the configuration.
        let journal = self.journal.as_ref().filter(|file| !file.to_string_lossy().contains("://"));
        let journal = journal.map(|file| format!(" --journal {}", shell_word_of_os(file.as_os_str())));
        let options: String = [browser, deadline, insecure, journal].into_iter().flatten().collect();
        Some(format!("{lab} -- windtunnel page {} --compare {pair}{options}", shell_word(&self.url)))
    }

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
    fn loads_are_compared_again_in_their_lab_and_without_the_files_that_were_written() {
        let request = PageRequest {
            url: "http://server/?a=1&b".to_owned(),
            compare: Some("initcwnd=3,10".parse().unwrap()),
            deadline: Some(DEADLINE),
            film: true,
            journal: Some("my journal".into()),
            command: "windtunnel page … --runs 4 --html p.html".to_owned(),
            ..PageRequest::default()
        };
        let lab = "windtunnel lab run adsl --server 'exec nginx'";
        let again = "-- windtunnel page 'http://server/?a=1&b' --compare initcwnd=3,10 --journal 'my journal'";
        assert_eq!(request.again(lab), Some(format!("{lab} {again}")));
        let longer = PageRequest { deadline: Some(DEADLINE * 2), insecure: true, journal: None, ..request.clone() };
        assert!(longer.again(lab).unwrap().ends_with("initcwnd=3,10 --deadline 120000ms --insecure"));
        let common = PageRequest { journal: Some("postgresql://me:secret@host/db".into()), ..request.clone() };
        assert!(common.again(lab).unwrap().ends_with("initcwnd=3,10"));
        assert_eq!((request.again(""), PageRequest { compare: None, ..request }.again(lab)), (None, None));
    }

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
