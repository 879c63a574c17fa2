//! What earlier runs have found, host by host.

use super::lists::UrlRequest;
use super::recorder::KIND;
use super::targets::{SkippedLine, urls};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use wt_journal::{Journal as _, Sighting};
use wt_problem::Problem;

/// Findings of one host that are read.
const MOST: usize = 10_000;

/// Which findings to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryRequest {
    /// Those of these hosts; all if there is none.
    pub targets: Vec<UrlRequest>,
    /// The journal; the usual one if it isn't said.
    pub journal: Option<PathBuf>,
}

/// Findings of earlier runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryAnswer {
    /// The version of this contract.
    pub schema_version: u32,
    /// Each as it was written down, and with `at` and `host`; of each host the oldest first.
    pub targets: Vec<Value>,
    /// Lines of a list that are no URL, from 1, and why.
    #[serde(skip)]
    pub skipped: Vec<SkippedLine>,
}

/// Reads what earlier runs have found; nobody is asked.
///
/// # Errors
/// A problem that names the journal, or the URL that is none.
pub fn history(request: &HistoryRequest) -> Result<HistoryAnswer, Problem> {
    let (urls, skipped) = if request.targets.is_empty() { Default::default() } else { urls(&request.targets)? };
    let journal = wt_setup::journal::open(request.journal.as_deref())?;
    let read =
        |host: Option<&str>| journal.sightings(KIND, host, MOST).map_err(|error| wt_setup::journal::problem(&error));
    let mut seen: Vec<Sighting> = Vec::new();
    let mut hosts: Vec<String> = urls.iter().map(|url| url.host().to_ascii_lowercase()).collect();
    hosts.sort();
    hosts.dedup();
    if hosts.is_empty() {
        seen = read(None)?;
    }
    for host in &hosts {
        seen.extend(read(Some(host))?);
    }
    let object = |one: Sighting| {
        let mut object = one.found;
        object["at"] = json!(wt_host::utc(u64::try_from(one.at_unix_us).unwrap_or(0) / 1_000_000));
        object["host"] = json!(one.host);
        object
    };
    Ok(HistoryAnswer { schema_version: 1, targets: seen.into_iter().map(object).collect(), skipped })
}
