//! Every trial ever run, with all that was in force.
//!
//! [`Journal`] is what the rest of the program knows; [`SqliteJournal`] keeps it in one file. A trial is written as
//! *running* before it runs and completed afterwards, each time durably against the end of the process: `kill -9` loses
//! at most the trial in flight, and [`Journal::mark_orphans`] later says of it that it was aborted. Two programs may use
//! one journal at once.
//!
//! # Example
//! ```
//! use wt_journal::{Journal as _, NewExperiment, SqliteJournal, State};
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("journal.sqlite3");
//! let mut journal = SqliteJournal::open(&path)?;
//! let id = wt_journal::experiment_id(1_795_248_900_000_000, "adsl", 0x3f9a);
//! assert_eq!(id, "20261121-081500-adsl-3f9a");
//! journal.create_experiment(&NewExperiment::new(&id, "adsl", "lab"))?;
//! journal.finish_experiment(&id, State::Stopped, 1_795_248_960_000_000, None)?;
//! assert_eq!(journal.load("last")?.state, State::Stopped);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

/// Who is at work on an experiment.
mod claim;
/// Words, numbers and JSON in columns.
pub mod columns;
/// What an experiment was, and how rows of every version are read.
mod config;
/// What can go wrong with a journal.
mod error;
/// Writing a whole experiment as JSON or CSV.
mod export;
/// Writing it as flent's data.
mod flent;
/// Reading flent's data.
mod from_flent;
/// Names of experiments.
mod id;
/// Taking in what others have written.
mod import;
/// What is kept, and the trait.
mod model;
/// Samples of a trial in few bytes.
mod samples;
/// The journal in a file of SQLite.
mod sqlite;
/// Writing trials and samples as Parquet.
mod table;

pub use claim::Claim;
pub use config::{
    ComparedControl, ComparedControls, ComparedStack, ComparedStacks, ControlsConfig, DisturbanceConfig,
    ExperimentConfig, Factor, FlentConfig, HostConfig, LiveConfig, LoggedTestsConfig, PlateauConfig, ScreenConfig,
    ScreenRules, ServerTrafficConfig, StacksConfig, TuneConfig,
};
pub use error::JournalError;
pub use export::{export_csv, export_json};
pub use flent::export_flent;
pub use id::experiment_id;
pub use import::{ImportError, ImportOutcome, import_journal, import_json};
pub use model::{
    Arm, ExperimentSummary, Filter, Journal, NewExperiment, Orphans, Owner, PROOF_BEGINS, Prune, PruneOutcome,
    Sighting, State, StoredExperiment, TrialId, TrialRow, WithSamples,
};
pub use samples::{SampleError, decode_samples, encode_samples};
pub use sqlite::{SqliteJournal, default_path};
pub use table::{ParquetRows, export_parquet};
