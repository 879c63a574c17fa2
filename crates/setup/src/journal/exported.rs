use super::problem;
use crate::files::WholeFile;
use serde::{Deserialize, Serialize};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use wt_journal::{JournalError, ParquetRows, WithSamples};
use wt_problem::Problem;

/// As what an experiment is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// One object with every sample.
    #[default]
    Json,
    /// A line for each trial.
    Csv,
    /// A data file of flent.
    Flent,
    /// A table: a row for each trial, or for each sample.
    Parquet,
}

/// An experiment to write.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// Its name, the beginning of it, or `last`.
    pub experiment: String,
    /// As what.
    #[serde(default)]
    pub format: ExportFormat,
    /// Of Parquet: a row for each sample instead of each trial.
    #[serde(default)]
    pub samples: bool,
    /// The journal; nothing means the usual one.
    #[serde(default)]
    pub journal: Option<PathBuf>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportAnswer {
    /// 1.
    pub schema_version: u32,
    /// The file.
    pub file: PathBuf,
    /// As what.
    pub format: ExportFormat,
    /// The experiment that it continues, whose trials aren't in the file; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// The name of the experiment that the one to be written continues: its trials aren't written with it.
///
/// # Errors
/// As [`export`].
pub fn continued(request: &ExportRequest) -> Result<Option<String>, Problem> {
    let journal = super::open_to_read(request.journal.as_deref())?;
    let stored = journal.load(&request.experiment).map_err(|error| problem(&error))?;
    Ok(stored.config.tune().continues.clone())
}

fn check(request: &ExportRequest) -> Result<(), Problem> {
    if request.samples && request.format != ExportFormat::Parquet {
        return Err(Problem::usage("--samples is of --format parquet")
            .hint("--format json has the samples of each trial anyway; or say --format parquet --samples"));
    }
    if request.format == ExportFormat::Parquet && super::is_common(request.journal.as_deref()) {
        return Err(Problem::usage("--format parquet is written from a journal that is a file")
            .hint("--format csv or json reads a journal in PostgreSQL; its view v_trials has the same columns"));
    }
    Ok(())
}

/// Writes an experiment with all its trials.
///
/// # Errors
/// A usage [`Problem`] where there is no such experiment or Parquet isn't meant, an environment one where `out` can't be written; a pipe that is
/// closed is none.
pub fn export(request: &ExportRequest, out: impl Write + Send) -> Result<(), Problem> {
    let (named, key) = (request.journal.as_deref(), request.experiment.as_str());
    check(request)?;
    let written = if request.format == ExportFormat::Parquet {
        let rows = if request.samples { ParquetRows::Samples } else { ParquetRows::Trials };
        wt_journal::export_parquet(&super::open(named)?, key, rows, out)
    } else {
        let journal = super::open_to_read(named)?;
        let journal = &*journal;
        let mut out = BufWriter::new(out);
        let written = match request.format {
            ExportFormat::Csv => wt_journal::export_csv(journal, key, &mut out),
            ExportFormat::Flent => wt_journal::export_flent(journal, key, &mut out),
            ExportFormat::Json | ExportFormat::Parquet => {
                wt_journal::export_json(journal, key, WithSamples::Yes, &mut out)
            }
        };
        written.and_then(|()| out.flush().map_err(JournalError::Export))
    };
    match written {
        // Whoever reads has enough: `| head`.
        Err(JournalError::Export(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| problem(&error)),
    }
}

/// Writes an experiment to a file, as a whole or not at all.
///
/// # Errors
/// As [`export`]; nothing is left behind.
pub fn export_to_file(request: &ExportRequest, file: &Path) -> Result<ExportAnswer, Problem> {
    check(request)?;
    let failed = |error: crate::files::WriteError| Problem::environment(error.to_string());
    let mut whole = WholeFile::create(file).map_err(failed)?;
    let continues = continued(request)?;
    export(request, &mut whole)?;
    whole.finish().map_err(failed)?;
    Ok(ExportAnswer { schema_version: 1, file: file.to_owned(), format: request.format, continues })
}
