//! `windtunnel first-window`: how much servers send before anything is acknowledged.

/// Flags.
mod args;
/// What earlier runs have found.
mod history;
/// Findings to people.
mod print;
/// Hosts by their providers.
mod providers;
/// Findings as CSV.
mod table;

pub(crate) use args::FirstWindowArgs;

use crate::cli::forms::{say_json, write_measured};
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, Problem, emit, note};
use table::Table;
use wt_prober::first_window::{FirstWindowEvent, HostFinding, Providers, first_window};

/// What shows findings of earlier runs.
const HISTORY: &str = "windtunnel first-window --history";

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &FirstWindowArgs) -> Outcome {
    if args.history {
        return history::run(args);
    }
    let request = args.request()?;
    let mut output = Output::new(args);
    let answer = first_window(&request, &cancel_on_signals()?, &mut |event| output.hear(event))?;
    if args.json {
        say_json(&answer)?;
    }
    output.end()?;
    answer.problem().map_or(Ok(Exit::Done), Err)
}

/// Everything that is made of findings as they come.
struct Output<'a> {
    args: &'a FirstWindowArgs,
    providers: Providers,
    table: Option<Table>,
    /// Whether the table's first line has been printed.
    begun: bool,
}

impl<'a> Output<'a> {
    fn new(args: &'a FirstWindowArgs) -> Self {
        let table = args.csv.is_some().then(Table::new);
        Self { args, providers: Providers::default(), table, begun: false }
    }

    fn hear(&mut self, event: FirstWindowEvent) {
        match event {
            FirstWindowEvent::WithoutRawSockets => {
                note("without CAP_NET_RAW the kernel's own connections ask (windtunnel first-window --help)");
            }
            FirstWindowEvent::NotKept { problem, began } => {
                let how_much = if began { "no more" } else { "nothing" };
                note(&format!("{how_much} is kept of this: {}", problem.what));
            }
            FirstWindowEvent::Skipped { problem, .. } => note(&format!("{problem}; the other lines go on")),
            FirstWindowEvent::Found { finding } => self.add(&finding),
        }
    }

    fn add(&mut self, finding: &HostFinding) {
        if self.args.json_stream {
            if let Ok(finding) = serde_json::to_value(finding) {
                emit!("{finding}");
            }
        } else if !self.args.json {
            if !std::mem::replace(&mut self.begun, true) {
                print::header();
            }
            print::line(finding);
        }
        self.providers.count(finding);
        if let Some(table) = &mut self.table {
            table.add(finding);
        }
    }

    fn end(self) -> Result<(), Problem> {
        if !self.args.json && !self.args.json_stream {
            providers::print(&self.providers, crate::screen::Screen::stdout().color);
        }
        if let (Some(file), Some(table)) = (&self.args.csv, self.table) {
            write_measured(file, &table.text(), HISTORY)?;
        }
        if let Some(file) = &self.args.svg {
            write_measured(file, &providers::chart(&self.providers).to_svg(900, 400), HISTORY)?;
        }
        Ok(())
    }
}
