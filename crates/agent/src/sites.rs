//! What hosts measured to whom, from a journal without a fleet: that of one host, or of several that were imported.

use crate::owner::{FleetRequest, FleetStatusAnswer, status};
use std::collections::BTreeMap;
use std::path::Path;
use wt_fleet::{FleetState, JobLine};
use wt_journal::{ExperimentSummary, Filter, Journal as _, State};
use wt_problem::Problem;
use wt_setup::journal::{is_common, measured_by, open, problem};
use wt_sys::clock::unix_us;

/// So many experiments on real paths are looked at, the newest.
const MOST: usize = 2_000;

/// How a fleet stands whose server a journal's address names; of a journal in a file, the newest experiment of each host and
/// target on a real path.
///
/// # Errors
/// A [`Problem`] that names the journal or the server.
pub fn status_of(journal: Option<&Path>) -> Result<FleetStatusAnswer, Problem> {
    match journal.and_then(Path::to_str).filter(|_| is_common(journal)) {
        Some(server) => status(&FleetRequest { server: server.to_owned() }),
        None => in_file(journal),
    }
}

fn in_file(file: Option<&Path>) -> Result<FleetStatusAnswer, Problem> {
    let journal = open(file)?;
    let live = Filter { tunnel: Some("live".to_owned()), limit: Some(MOST), ..Filter::default() };
    let now = unix_us();
    let mut newest: BTreeMap<(String, String), JobLine> = BTreeMap::new();
    for one in journal.list(&live).map_err(|error| problem(&error))? {
        // A test compares nothing.
        if one.kind == "test" {
            continue;
        }
        let site = measured_by(&journal.load(&one.id).map_err(|error| problem(&error))?);
        let key = (site, one.target.clone());
        match newest.get_mut(&key) {
            // What ran before the newest, of which there is more to say.
            Some(known) => {
                known.run += 1;
                if known.verdict.is_none() && one.verdict.is_some() {
                    *known = JobLine { run: known.run, state: known.state.clone(), ..line(&key, one, now) };
                }
            }
            None => {
                newest.insert(key.clone(), line(&key, one, now));
            }
        }
    }
    let state = FleetState { jobs: newest.into_values().collect(), ..FleetState::default() };
    Ok(FleetStatusAnswer { schema_version: 1, server: None, state })
}

fn line((site, target): &(String, String), one: ExperimentSummary, now_unix_us: i64) -> JobLine {
    let state = match one.state {
        State::Running => "running",
        State::Finished => "done",
        State::Stopped => "stopped",
        State::Aborted => "failed",
    };
    JobLine {
        agent: site.clone(),
        target: target.clone(),
        state: state.to_owned(),
        run: 1,
        experiment: Some(one.id),
        verdict: one.verdict,
        action: one.action,
        answer: one.answer,
        setting: one.setting,
        change_bp: one.change_bp,
        age_s: one.ended_unix_us.map(|ended| now_unix_us.saturating_sub(ended).max(0) as f64 / 1e6),
        ..JobLine::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_journal::{ExperimentConfig, HostConfig, NewExperiment, SqliteJournal, TuneConfig};

    #[test]
    fn each_pair_of_host_and_target_has_its_newest_verdict() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.sqlite3");
        let mut journal = SqliteJournal::open(&file).unwrap();
        let mut add = |id: &str, site: &str, tunnel: &str, verdict: Option<serde_json::Value>| {
            let host = HostConfig { name: Some(site.to_owned()), ..HostConfig::default() };
            let config = TuneConfig { host: Some(host), ..TuneConfig::default() };
            let started_unix_us = id.len() as i64 * 1_000_000;
            let new = NewExperiment {
                started_unix_us,
                config: ExperimentConfig::Tune(Box::new(config)),
                ..NewExperiment::new(id, "speed.example.org", tunnel)
            };
            journal.create_experiment(&new).unwrap();
            journal.finish_experiment(id, State::Finished, started_unix_us + 1, verdict.as_ref()).unwrap();
        };
        let faster = serde_json::json!({"kind": "faster", "answer": {"action": "set", "what": "rwin=1MiB carries more", "setting": "rwin=1MiB", "change_percent": 12.5}});
        let none = serde_json::json!({"kind": "none", "answer": {"action": "keep", "what": "Keep your settings"}});
        add("a", "berlin", "live", Some(none.clone()));
        add("ab", "berlin", "live", Some(faster));
        add("abc", "bonn", "live", Some(none));
        add("abcd", "bonn", "lab", None);
        add("abcde", "bonn", "live", None);
        drop(journal);
        let FleetStatusAnswer { server, state, .. } = status_of(Some(&file)).unwrap();
        assert_eq!((server, state.agents.len(), state.turns.len()), (None, 0, 0));
        let said: Vec<_> =
            state.jobs.iter().map(|job| (job.agent.as_str(), job.run, job.action.as_deref(), job.change_bp)).collect();
        assert_eq!(said, [("berlin", 2, Some("set"), Some(1250)), ("bonn", 2, Some("keep"), None)]);
        assert!(
            state.jobs.iter().all(|job| job.age_s.is_some_and(|age| age > 1e9) && job.target == "speed.example.org")
        );
    }
}
