//! What earlier runs have found, host by host.

use super::finding::Finding;
use super::show;
use super::targets::Url;
use crate::commands::journal;
use crate::edge::{Exit, Failure, Outcome, say};
use serde_json::{Value, json};
use std::path::Path;
use wt_journal::{Journal as _, Sighting, SqliteJournal};

/// What these are called in the journal.
const KIND: &str = "first-window";
/// So many findings are written at once.
const BATCH: usize = 256;
/// So many are shown of each host.
const MOST: usize = 10_000;

/// Where findings are written down.
pub(super) struct Notes {
    journal: SqliteJournal,
    waiting: Vec<Sighting>,
}

impl Notes {
    /// Opens the journal.
    ///
    /// # Errors
    /// A failure that names it.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self { journal: journal::open(path)?, waiting: Vec::new() })
    }

    /// Writes one down, if its host was asked.
    ///
    /// # Errors
    /// A failure that names the journal.
    pub(super) fn add(&mut self, finding: &Finding) -> Result<(), Failure> {
        if finding.packets == 0 && finding.probes == 0 {
            return Ok(());
        }
        let at_unix_us = wt_sys::clock::unix_us();
        self.waiting.push(Sighting { host: finding.host.clone(), at_unix_us, found: show::to_json(finding) });
        if self.waiting.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes down what waits.
    ///
    /// # Errors
    /// A failure that names the journal.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let waiting = std::mem::take(&mut self.waiting);
        self.journal.note(KIND, &waiting).map_err(|error| journal::failure(&error))
    }
}

/// Tells what is known of these hosts, or of all.
///
/// # Errors
/// A failure that names the journal.
pub(super) fn tell(urls: &[Url], path: Option<&Path>, as_json: bool, as_stream: bool) -> Outcome {
    let journal = journal::open(path)?;
    let read = |host: Option<&str>| journal.sightings(KIND, host, MOST).map_err(|error| journal::failure(&error));
    let mut seen: Vec<Sighting> = Vec::new();
    let mut hosts: Vec<String> = urls.iter().map(|url| url.host.to_ascii_lowercase()).collect();
    hosts.sort();
    hosts.dedup();
    if urls.is_empty() {
        seen = read(None)?;
    }
    for host in &hosts {
        seen.extend(read(Some(host))?);
    }
    let at = |one: &Sighting| wt_host::utc(u64::try_from(one.at_unix_us).unwrap_or(0) / 1_000_000);
    let object = |one: &Sighting| {
        let mut object = one.found.clone();
        object["at"] = json!(at(one));
        object["host"] = json!(one.host);
        object
    };
    if as_json {
        say!("{:#}", Value::Array(seen.iter().map(object).collect()));
    } else if as_stream {
        seen.iter().for_each(|one| say!("{}", object(one)));
    } else if seen.is_empty() {
        say!("Nothing is known of {} yet.", if urls.is_empty() { "any host" } else { "these hosts" });
    } else {
        // Hosts one after the other, each from its oldest finding on.
        seen.sort_by(|a, b| (&a.host, a.at_unix_us).cmp(&(&b.host, b.at_unix_us)));
        say!("{:<20}  {:<30} {:>10} {:>9} {:>5}  url", "when", "host", "segments", "bytes", "mss");
        for one in &seen {
            let [segments, bytes, mss] = show::cells(&one.found);
            let url = one.found["url"].as_str().unwrap_or_default();
            say!("{:<20}  {:<30} {segments:>10} {bytes:>9} {mss:>5}  {url}", at(one), one.host);
        }
    }
    Ok(if seen.is_empty() { Exit::No } else { Exit::Done })
}
