use super::{address, open, problem};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use wt_fleet::{PgJournal, PushReport, PushState, StoreAddress};
use wt_journal::{Journal as _, Sighting, SqliteJournal, StoredExperiment};
use wt_problem::Problem;
use wt_sys::clock::unix_us;

/// What this host's journal calls the places that were pushed to.
const KIND: &str = "push";

/// What is pushed, and where to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushRequest {
    /// The journal of many hosts: `postgresql://USER@HOST/DATABASE`.
    pub store: String,
    /// Only these: names, or beginnings of them; none means all.
    pub experiments: Vec<String>,
    /// What the host that measured is called there; nothing means its own name.
    pub site: Option<String>,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
}

/// What is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatusRequest {
    /// The journal of many hosts; nothing means the one that was pushed to last.
    pub store: Option<String>,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
}

/// What was pushed, or isn't there yet.
#[derive(Debug, Clone, Serialize)]
pub struct PushAnswer {
    /// 1.
    pub schema_version: u32,
    /// Where to, without a password.
    pub store: String,
    /// Trials that were written; of a status, those that aren't there yet.
    pub trials: u64,
    /// Experiments that were there already as they are here.
    pub complete: usize,
    /// Experiments of which something was written, or isn't there yet.
    pub incomplete: usize,
    /// Experiments that can't go there.
    pub refused: usize,
    /// Each of them but those that were there already.
    pub experiments: Vec<PushedExperiment>,
}

/// An experiment of which something was written, isn't there yet, or can't go there.
#[derive(Debug, Clone, Serialize)]
pub struct PushedExperiment {
    /// Its name.
    pub id: String,
    /// Its trials here that have ended.
    pub trials: u64,
    /// Of those, what was written, or isn't there yet.
    pub new: u64,
    /// Why it can't go there.
    pub refused: Option<String>,
}

/// Writes what isn't there yet to the journal of many hosts. Nothing comes twice.
///
/// # Errors
/// A [`Problem`] that names the journal, or the experiment that isn't there; what was written before stays.
pub fn push(request: &PushRequest) -> Result<PushAnswer, Problem> {
    let store = store_address(&request.store)?;
    let mut local = open(request.journal.as_deref())?;
    let ids = request.experiments.iter().map(|key| local.load(key).map(|found| found.id));
    let ids: Vec<String> = ids.collect::<Result<_, _>>().map_err(|error| problem(&error))?;
    let own = request.site.clone().or_else(crate::machine::host_name);
    let site = |experiment: &StoredExperiment| site_of(experiment, request.site.as_deref(), own.as_deref());
    let mut common = PgJournal::open(&store, own.as_deref().unwrap_or_default()).map_err(|error| problem(&error))?;
    let ids = (!ids.is_empty()).then_some(ids.as_slice());
    let report = wt_fleet::push(&local, &mut common, ids, &site).map_err(|error| problem(&error))?;
    let answer = answer(&store, report);
    remember(&mut local, &answer)?;
    Ok(answer)
}

/// The journal in PostgreSQL that `--journal` names, if it does: it is there and takes experiments in, so that this isn't found out only
/// after the measurement.
///
/// # Errors
/// A [`Problem`] that names the address.
pub fn reached(named: Option<&Path>) -> Result<Option<String>, Problem> {
    let Some(store) = address(named) else { return Ok(None) };
    PgJournal::open(&store?, &crate::machine::host_name().unwrap_or_default()).map_err(|error| problem(&error))?;
    Ok(named.and_then(Path::to_str).map(str::to_owned))
}

/// Pushes an experiment that was measured for a journal of many hosts, with those that it continues.
///
/// # Errors
/// An environment [`Problem`]: it is in this host's journal all the same.
pub fn push_measured(store: &str, id: &str) -> Result<(), Problem> {
    let mut wanted = vec![id.to_owned()];
    let local = open(None)?;
    while let Some(before) = wanted.last().and_then(|id| local.load(id).ok()?.config.tune().continues.clone()) {
        wanted.push(before);
    }
    drop(local);
    let request = PushRequest { store: store.to_owned(), experiments: wanted, ..PushRequest::default() };
    let why = match push(&request) {
        Ok(answer) => match answer.experiments.into_iter().find_map(|one| one.refused) {
            None => return Ok(()),
            Some(refused) => refused,
        },
        Err(problem) => problem.what,
    };
    let address = store_address(store)?.to_string();
    let again = format!("windtunnel journal push {} {id}", wt_units::shell_word(&address));
    Err(Problem::environment(format!("{id} is measured, but can't be pushed to {address}: {why}"))
        .because("it is in this host's journal, with all its trials")
        .hint(format!("windtunnel report {id} shows its verdict; {again}")))
}

/// What the journal of many hosts doesn't have yet. Nothing is written.
///
/// # Errors
/// A usage [`Problem`] where none is named and nothing was pushed before; one that names the journal that can't be read.
pub fn status(request: &StatusRequest) -> Result<PushAnswer, Problem> {
    let local = open(request.journal.as_deref())?;
    let store = match &request.store {
        Some(text) => store_address(text)?,
        None => {
            let last = local.sightings(KIND, None, 1).map_err(|error| problem(&error))?;
            let last = last.into_iter().next_back().map(|push| push.host).ok_or_else(|| {
                Problem::usage("nothing was ever pushed from this journal, so it isn't known where to")
                    .hint("windtunnel journal status postgresql://USER@HOST/DATABASE")
            })?;
            store_address(&last)?
        }
    };
    let common = PgJournal::open_to_read(&store).map_err(|error| problem(&error))?;
    Ok(answer(&store, wt_fleet::status(&local, &common).map_err(|error| problem(&error))?))
}

/// The address that a text is, with the password of the environment where it has none.
///
/// # Errors
/// A usage [`Problem`].
pub fn store_address(text: &str) -> Result<StoreAddress, Problem> {
    address(Some(Path::new(text))).unwrap_or_else(|| {
        Err(Problem::usage("that is no address of a journal of many hosts").hint("postgresql://USER@HOST/DATABASE"))
    })
}

/// Which host measured: what is said now, what the experiment says, or this one.
fn site_of(experiment: &StoredExperiment, said: Option<&str>, own: Option<&str>) -> String {
    let recorded = || experiment.config.host()?.name.as_deref();
    said.or_else(recorded).or(own).unwrap_or("unknown").to_owned()
}

/// The host that measured an experiment of the local journal, as it would be pushed.
#[must_use]
pub fn measured_by(experiment: &StoredExperiment) -> String {
    site_of(experiment, None, crate::machine::host_name().as_deref())
}

fn answer(store: &StoreAddress, report: PushReport) -> PushAnswer {
    let count = |wanted: fn(&PushState) -> bool| report.experiments.iter().filter(|one| wanted(&one.state)).count();
    PushAnswer {
        schema_version: 1,
        store: store.to_string(),
        trials: report.experiments.iter().map(|one| one.new).sum(),
        complete: count(|state| *state == PushState::Known),
        incomplete: count(|state| *state == PushState::Pushed),
        refused: count(|state| matches!(state, PushState::Refused(_))),
        experiments: report
            .experiments
            .into_iter()
            .filter(|one| one.state != PushState::Known)
            .map(|one| {
                let refused = if let PushState::Refused(why) = one.state { Some(why) } else { None };
                PushedExperiment { id: one.id, trials: one.trials, new: one.new, refused }
            })
            .collect(),
    }
}

/// Keeps where it was pushed to, for `journal status`.
fn remember(local: &mut SqliteJournal, answer: &PushAnswer) -> Result<(), Problem> {
    let found = serde_json::json!({"trials": answer.trials, "experiments": answer.incomplete});
    let seen = Sighting { host: answer.store.clone(), at_unix_us: unix_us(), found };
    local.note(KIND, &[seen]).map_err(|error| problem(&error))
}
