//! `windtunnel metrics`: the newest verdicts and this host's changes, for monitoring.

use crate::edge::{Exit, Outcome, Problem, print_file};
use clap::Args;
use std::path::PathBuf;
use wt_setup::journal::{is_common, store_address};
use wt_setup::metrics::metrics;
use wt_setup::settings::HostAccess;

/// Prints verdicts and this host's changes for Prometheus
///
/// Everything is read as it stands: nothing is measured, nothing is changed. `--textfile` is for the textfile collector of
/// node_exporter: run it from a timer, or after each experiment. What can't be read is said by `windtunnel_journal_up` and
/// `windtunnel_settings_up`. It answers within a second.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel metrics
  sudo windtunnel metrics --textfile /var/lib/prometheus/node-exporter/windtunnel.prom
  windtunnel metrics --journal edge.sqlite3")]
pub(crate) struct MetricsArgs {
    /// Writes this file as a whole, instead of standard output
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// The journal, a file or postgresql://... [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Where changes of settings are kept [default: as `windtunnel settings` has it]
    #[arg(long, value_name = "FOLDER")]
    state_dir: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &MetricsArgs) -> Outcome {
    // One that can't be an address is no journal that is away.
    if let Some(address) = args.journal.as_deref().filter(|path| is_common(Some(path))).and_then(|path| path.to_str()) {
        store_address(address)?;
    }
    let mut host = HostAccess::open(args.state_dir.as_deref(), None).ok();
    let text = metrics(args.journal.as_deref(), host.as_mut());
    match &args.textfile {
        Some(path) => wt_setup::files::write_whole(path, text.as_bytes()).map_err(|error| {
            Problem::environment(error.to_string())
                .hint("name a file in the folder that node_exporter's --collector.textfile.directory names")
        })?,
        None => print_file(&text),
    }
    Ok(Exit::Done)
}
