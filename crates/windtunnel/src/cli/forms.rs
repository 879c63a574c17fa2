use crate::cli::values::RateUnit;
use crate::edge::{Exit, Outcome, Problem, emit};
use clap::Args;
use std::path::{Path, PathBuf};

/// In which forms a report is given.
#[derive(Debug, Args, Clone)]
pub(crate) struct Forms {
    /// Everything that stands behind the answer: every setting, its interval and evidence, a chart, what limits the path
    #[arg(long)]
    pub(crate) full: bool,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// In which unit rates are written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) units: RateUnit,
    /// Also write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also write the table of trials
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

impl Forms {
    /// Refuses one file for two forms, and standard output for any of them.
    ///
    /// # Errors
    /// A usage [`Problem`].
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if [&self.html, &self.csv].into_iter().flatten().any(|file| file.as_os_str() == "-") {
            return Err(Problem::usage("- is no name of a file here").hint(
                "name one; on standard output --json has all of it, and windtunnel journal export EXPERIMENT --format csv the trials",
            ));
        }
        match (&self.html, &self.csv) {
            (Some(html), Some(csv)) if html == csv => {
                Err(Problem::usage(format!("{} can't be the page and the table", html.display()))
                    .hint("name two files: --html FILE.html --csv FILE.csv"))
            }
            _ => Ok(()),
        }
    }
}

/// Writes a file as a whole or not at all.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Problem> {
    wt_setup::files::write_whole(path, text.as_bytes())
        .map_err(|error| Problem::environment(error.to_string()).hint("name another file"))
}

/// The same of what was measured and is in the journal, from where this command shows it.
///
/// # Errors
/// A [`Problem`] that names the file, and says that nothing is lost.
pub(crate) fn write_measured(path: &Path, text: &str, shown_by: &str) -> Result<(), Problem> {
    write_whole(path, text).map_err(|problem| {
        problem.hint(format!("name another file; everything that was measured is in the journal: {shown_by}"))
    })
}

/// What shows experiments of the journal.
pub(crate) const REPORT: &str = "windtunnel report";

/// Prints an answer as its JSON contract, names in alphabetical order.
///
/// # Errors
/// Our own fault, if it can't be written as JSON.
pub(crate) fn say_json(answer: &impl serde::Serialize) -> Result<(), Problem> {
    let value = serde_json::to_value(answer).map_err(|error| Problem::internal(error.to_string()))?;
    emit!("{value:#}");
    Ok(())
}

/// Gives an answer as one JSON object in one line, or to people.
///
/// # Errors
/// Our own fault, if it can't be written as JSON.
pub(crate) fn give<T: serde::Serialize>(answer: &T, json: bool, print: impl FnOnce(&T)) -> Outcome {
    if json {
        // By way of a value: names come in alphabetical order.
        let value = serde_json::to_value(answer).map_err(|error| Problem::internal(error.to_string()))?;
        emit!("{value}");
    } else {
        print(answer);
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::Forms;

    #[test]
    fn standard_output_and_one_file_for_two_forms_are_refused() {
        let forms = |html: Option<&str>, csv: Option<&str>| {
            let [html, csv] = [html, csv].map(|file| file.map(Into::into));
            Forms { full: false, json: false, units: Default::default(), html, csv }
                .check()
                .map_err(|problem| problem.what)
        };
        assert_eq!(forms(Some("a.html"), Some("a.csv")), Ok(()));
        assert_eq!(forms(None, Some("-")), Err("- is no name of a file here".to_owned()));
        assert_eq!(forms(Some("-"), None), Err("- is no name of a file here".to_owned()));
        assert!(forms(Some("a"), Some("a")).is_err());
    }
}
