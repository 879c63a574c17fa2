use super::problem;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use utoipa::ToSchema;
use wt_journal::{ImportOutcome, Journal, JournalError, Prune, SqliteJournal, State};
use wt_problem::Problem;
use wt_sys::clock::unix_us;

/// What a file of SQLite begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What was taken in.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportAnswer {
    /// 1.
    pub schema_version: u32,
    /// Experiments that were taken.
    pub imported: Vec<String>,
    /// Their trials.
    pub trials: u64,
    /// Those that were there already.
    pub known: Vec<String>,
    /// Those that weren't taken.
    pub refused: Vec<RefusedExperiment>,
    /// Those taken or known that continue an experiment which isn't here: there is no report of them until it is. Left out where there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteExperiment>,
}

/// An experiment without the one that it continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncompleteExperiment {
    /// Its name.
    pub id: String,
    /// The name of the one that it continues.
    pub continues: String,
}

impl IncompleteExperiment {
    /// The experiment of this name, if the journal has it, and not the one that it continues.
    fn find(journal: &dyn Journal, id: &str) -> Option<Self> {
        let continues = journal.load(id).ok()?.config.tune().continues.clone()?;
        let before = journal.load(&continues);
        matches!(before, Err(JournalError::NoSuchExperiment { .. })).then(|| Self { id: id.to_owned(), continues })
    }
}

/// An experiment that wasn't taken.
#[derive(Debug, Clone, Serialize)]
pub struct RefusedExperiment {
    /// Its name.
    pub id: String,
    /// Why.
    pub why: String,
}

/// Takes in exported JSON, flent's data or whole journals; `-` is standard input. Nothing comes twice.
///
/// # Errors
/// A [`Problem`] that names the file; what was taken before it stays.
pub fn import(journal: Option<&Path>, files: &[PathBuf]) -> Result<ImportAnswer, Problem> {
    let mut journal = super::open_to_keep(journal)?;
    let mut all = ImportAnswer { schema_version: 1, ..ImportAnswer::default() };
    for file in files {
        let (imported, ended) = match import_one(&mut *journal, file) {
            Ok(imported) => (imported, None),
            Err(ended) => (ended.0, Some(ended.1)),
        };
        all.trials += imported.trials;
        all.imported.extend(imported.taken);
        all.known.extend(imported.known);
        all.refused.extend(imported.refused.into_iter().map(|(id, why)| RefusedExperiment { id, why }));
        if let Some(problem) = ended {
            return Err(match all.imported.len() {
                0 => problem,
                taken => {
                    let was = if taken == 1 { "was" } else { "were" };
                    let before = wt_units::counted(taken, "experiment");
                    Problem { what: format!("{}; {before} before it {was} taken in", problem.what), ..problem }
                }
            });
        }
    }
    // Once all files are in: which comes first doesn't matter.
    let here = all.imported.iter().chain(&all.known);
    all.incomplete = here.filter_map(|id| IncompleteExperiment::find(&*journal, id)).collect();
    Ok(all)
}

/// What was taken in; with a [`Problem`] what was taken before it.
fn import_one(journal: &mut dyn Journal, file: &Path) -> Result<ImportOutcome, Box<(ImportOutcome, Problem)>> {
    let (head, input) = beginning(file).map_err(|problem| Box::new((ImportOutcome::default(), problem)))?;
    if head == SQLITE {
        let other =
            SqliteJournal::open_to_read(file).map_err(|error| Box::new((ImportOutcome::default(), problem(&error))))?;
        return wt_journal::import_journal(journal, &other)
            .map_err(|ended| Box::new((*ended.before, problem(&ended.error))));
    }
    let whole = std::io::BufReader::new(std::io::Cursor::new(head).chain(input));
    wt_journal::import_json(journal, whole).map_err(|ended| {
        let mut told = problem(&ended.error);
        if matches!(ended.error, JournalError::NotAnExport { .. }) {
            told.what = format!("{}: {}", file.display(), told.what);
        }
        Box::new((*ended.before, told))
    })
}

/// What a file begins with, as far as it tells its kind, and the rest.
fn beginning(file: &Path) -> Result<(Vec<u8>, Box<dyn std::io::Read>), Problem> {
    let failed = |error: std::io::Error| {
        Problem::usage(format!("cannot read {}", file.display())).because(error.to_string()).hint("name a file, or -")
    };
    let mut input: Box<dyn std::io::Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(failed)?)
    };
    let mut head = Vec::new();
    input.by_ref().take(SQLITE.len() as u64).read_to_end(&mut head).map_err(failed)?;
    if head.starts_with(&[0x1f, 0x8b]) {
        return Err(Problem::usage(format!("{} is compressed", file.display()))
            .hint(format!("zcat {} | windtunnel journal import -", file.display())));
    }
    Ok((head, input))
}

/// What is pruned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruneRequest {
    /// Only these: names, or beginnings of them; none means all.
    pub experiments: Vec<String>,
    /// Names must be whole: neither the beginning of one nor "last" will do; and if none of these can go, that is a problem.
    pub whole_names: bool,
    /// Only those that began so long ago.
    #[serde(with = "crate::duration_or_none")]
    pub older_than: Option<Duration>,
    /// All but so many of the newest.
    pub keep: Option<usize>,
    /// Only the samples: the figures of each trial stay.
    pub samples_only: bool,
    /// Say what would go, and delete nothing.
    pub dry_run: bool,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
}

/// What was pruned, or would be.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Pruned)]
pub struct PruneAnswer {
    /// 1.
    pub schema_version: u32,
    /// Whether nothing was deleted.
    pub dry_run: bool,
    /// Whether only samples go.
    pub samples_only: bool,
    /// The experiments.
    pub pruned: Vec<String>,
    /// How many.
    pub experiments: u64,
    /// Their trials.
    pub trials: u64,
    /// Those that stay, since they are under way or another one that stays continues them.
    pub kept: Vec<String>,
}

/// Deletes experiments, or only their samples.
///
/// # Errors
/// A usage [`Problem`] where there is no such experiment, or nothing says which ones; one of the environment where whole names were
/// asked for and all of them stay.
pub fn prune(request: &PruneRequest) -> Result<PruneAnswer, Problem> {
    let PruneRequest { experiments, whole_names, older_than, keep, samples_only, dry_run, journal } = request.clone();
    if experiments.is_empty() && older_than.is_none() && keep.is_none() {
        return Err(Problem::usage("it isn't said what shall go").hint("windtunnel journal prune --older-than 90d"));
    }
    let mut journal = super::open_to_keep(journal.as_deref())?;
    let ids = experiments.iter().map(|key| journal.load(key).map(|found| found.id));
    let ids: Vec<String> = ids.collect::<Result<_, _>>().map_err(|error| problem(&error))?;
    if let Some((key, id)) = experiments.iter().zip(&ids).find(|(key, id)| whole_names && key != id) {
        return Err(Problem::usage(format!("{key} isn't the whole name of an experiment"))
            .hint(format!("write it whole: {id}")));
    }
    let before = older_than.map(|age| unix_us().saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)));
    let ids = (!ids.is_empty()).then_some(ids);
    let what = Prune { ids, before_unix_us: before, keep_newest: keep, samples_only, dry_run };
    let pruned = journal.prune(what).map_err(|error| problem(&error))?;
    if let Some(id) = pruned.kept.first().filter(|_| whole_names && pruned.ids.is_empty()) {
        let is_running = journal.load(id).map_err(|error| problem(&error))?.state == State::Running;
        let (cause, hint) = if is_running {
            ("it is under way", "stop it, or wait for its end")
        } else {
            ("another experiment that stays continues it", "delete that one first")
        };
        return Err(Problem::environment(format!("{id} can't be deleted")).because(cause).hint(hint));
    }
    Ok(PruneAnswer {
        schema_version: 1,
        dry_run,
        samples_only,
        pruned: pruned.ids,
        experiments: pruned.experiments,
        trials: pruned.trials,
        kept: pruned.kept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_journal::NewExperiment;

    #[test]
    fn who_asks_for_a_whole_name_that_cant_go_is_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal");
        let mut journal = super::super::open(Some(&file)).unwrap();
        let _at_work = wt_journal::Claim::take(&file, "under-way").unwrap();
        journal.create_experiment(&NewExperiment::new("under-way", "adsl", "lab")).unwrap();
        drop(journal);
        let pruned = |name: &str, whole_names| {
            let (experiments, journal) = (vec![name.to_owned()], Some(file.clone()));
            prune(&PruneRequest { experiments, whole_names, journal, ..PruneRequest::default() })
        };
        assert_eq!(pruned("under-way", false).unwrap().kept, ["under-way"]);
        let problem = pruned("under-way", true).unwrap_err();
        assert_eq!(
            (problem.what.as_str(), problem.fault),
            ("under-way can't be deleted", wt_problem::Fault::Environment)
        );
        assert_eq!(problem.cause.as_deref(), Some("it is under way"));
    }

    #[test]
    fn who_asks_for_whole_names_deletes_nothing_by_the_beginning_of_one_or_by_last() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal");
        let mut journal = super::super::open(Some(&file)).unwrap();
        journal.create_experiment(&NewExperiment::new("whole", "adsl", "lab")).unwrap();
        journal.finish_experiment("whole", State::Finished, 1, None).unwrap();
        drop(journal);
        let pruned = |name: &str, whole_names| {
            let experiments = vec![name.to_owned()];
            let journal = Some(file.clone());
            prune(&PruneRequest { experiments, whole_names, dry_run: true, journal, ..PruneRequest::default() })
        };
        for (name, allowed) in [("last", false), ("who", false), ("whole", true)] {
            assert!(pruned(name, false).is_ok(), "{name}");
            match pruned(name, true) {
                Ok(answer) => assert!(allowed && answer.pruned == ["whole"]),
                Err(problem) => assert!(!allowed && problem.to_string().contains("whole"), "{problem}"),
            }
        }
    }
}
