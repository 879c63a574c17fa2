use std::path::PathBuf;

/// What can go wrong with a journal, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The directory or the file can't be made or opened: check the permissions, or choose another path.
    #[error("the journal {} can't be opened: {why}", path.display())]
    Open {
        /// The journal.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The file is something else; it was left as it is.
    #[error("{} is not a journal of Windtunnel: {why}; it was left untouched", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        why: String,
    },
    /// A newer version of the program wrote it; it was left as it is.
    #[error(
        "the journal {} was written by a newer Windtunnel (schema {found}; this one knows {known}); it was left untouched",
        path.display()
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The schema of the file.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// No room. What was written before is intact.
    #[error("no space left for the journal {}; everything written before is intact", path.display())]
    Full {
        /// The journal.
        path: PathBuf,
    },
    /// The server that keeps it can't be reached, or doesn't let us in: nothing of what was under way is written.
    #[error("the journal {} can't be reached: {why}", path.display())]
    Unreachable {
        /// The journal, without a password.
        path: PathBuf,
        /// What the server or the system says.
        why: String,
    },
    /// Another program held it for longer than we wait.
    #[error("the journal {} is locked by another program", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// It may be read but not written.
    #[error("the journal {} can't be written: it is read-only", path.display())]
    ReadOnly {
        /// The journal.
        path: PathBuf,
    },
    /// The contents make no sense.
    #[error("the journal {} is damaged: {what}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// No experiment has this name.
    #[error("there is no experiment \"{key}\"{}", suggestions(.nearest))]
    NoSuchExperiment {
        /// What was asked for.
        key: String,
        /// The nearest names.
        nearest: Vec<String>,
    },
    /// The journal holds no experiment at all.
    #[error("the journal {} holds no experiment yet", path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
    /// More than one experiment's name begins so.
    #[error("\"{key}\" may be any of {}", .candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        key: String,
        /// Some of those whose name begins so.
        candidates: Vec<String>,
    },
    /// The name is taken, or can't be one.
    #[error("an experiment can't be called \"{id}\": {why}")]
    BadId {
        /// The name.
        id: String,
        /// Why.
        why: &'static str,
    },
    /// The trial isn't under way: unknown, or finished already.
    #[error("trial {id} is not under way")]
    TrialNotRunning {
        /// The trial.
        id: i64,
    },
    /// The experiment isn't under way: finished already, or taken for dead by another program.
    #[error("experiment {id} is not under way")]
    ExperimentNotRunning {
        /// The experiment.
        id: String,
    },
    /// Another experiment goes on with it already, and only one may.
    #[error("{id} is continued by {by} already")]
    Continued {
        /// The experiment that two would go on with.
        id: String,
        /// The one that does.
        by: String,
    },
    /// A value can't be written as JSON.
    #[error("{what} can't be journaled: {why}")]
    Unwritable {
        /// Which.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// What is to be imported isn't an export.
    #[error("object {number} is no exported experiment: {why}")]
    NotAnExport {
        /// Which, counted from 1.
        number: usize,
        /// Why.
        why: String,
    },
    /// An export can't be written.
    #[error("the export can't be written")]
    Export(#[source] std::io::Error),
    /// Anything else that the database says.
    #[error("the journal {} failed: {why}", path.display())]
    Other {
        /// The journal.
        path: PathBuf,
        /// What the database says.
        why: String,
    },
}

fn suggestions(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = nearest.iter().map(|name| format!("\"{name}\"")).collect();
    format!(" (did you mean {}?)", quoted.join(" or "))
}
