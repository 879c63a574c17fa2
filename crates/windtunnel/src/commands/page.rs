//! `windtunnel page`: how long a real browser takes for a page.

use crate::cli::forms::{REPORT, write_measured, write_whole};
use crate::cli::signals::cancel_on_signals;
use crate::cli::typed;
use crate::edge::{Exit, Outcome, Problem, emit, say};
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_compare::page_load::{self, PageAnswer, PageLoad, PageRequest, WindowPair};

/// Times how long a real browser takes to load a page
///
/// A headless Chromium with a new profile loads the page, as often as you like: first byte, DOMContentLoaded, load, and
/// every request. In the lab, windows and paths can be tried on it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel page https://example.org/ --browser --runs 5 --svg waterfall.svg
  windtunnel lab run lte -- windtunnel page http://server/ --json
  windtunnel lab run blog-2012 --server 'nginx -c FILE' -- windtunnel page http://server/ --compare initcwnd=3,10")]
pub(crate) struct PageArgs {
    /// The page
    url: String,
    /// The browser, a Chromium [default: the first of chromium, chromium-browser, google-chrome that is there]
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1)]
    browser: Option<Option<OsString>>,
    /// How often; with --compare, how many rounds [default: 3, with --compare 10]
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// In the lab, loads the page with one first window and with another in every round, and says which is faster
    #[arg(long, value_name = "initcwnd|initrwnd=A,B")]
    compare: Option<WindowPair>,
    /// How long one load may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = wt_units::parse_duration)]
    deadline: Duration,
    /// Believe every certificate
    #[arg(long)]
    insecure: bool,
    /// Draw the requests of the load in the middle as a waterfall
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a page with the loads, the waterfall and a film of one more load; of a comparison, of both side by side
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Note stored with a comparison
    #[arg(long, requires = "compare")]
    comment: Option<String>,
    /// The journal that keeps a comparison [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE", requires = "compare")]
    journal: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl PageArgs {
    /// What is asked for.
    fn request(&self) -> PageRequest {
        PageRequest {
            url: self.url.clone(),
            browser: self.browser.clone().flatten().map(PathBuf::from),
            runs: self.runs.unwrap_or(if self.compare.is_some() { 10 } else { 3 }),
            compare: self.compare,
            deadline: Some(self.deadline),
            insecure: self.insecure,
            film: self.html.is_some(),
            comment: self.comment.clone().unwrap_or_default(),
            journal: self.journal.clone(),
            command: typed::command(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &PageArgs) -> Outcome {
    let answer = page_load::run(&args.request(), &cancel_on_signals()?)?;
    if args.json {
        // By way of a value: its fields come in the order of their names.
        let value = serde_json::to_value(&answer).map_err(|error| Problem::internal(error.to_string()))?;
        emit!("{value:#}");
    } else {
        print(&answer, args.journal.as_deref());
    }
    // Last, so that a file that can't be written costs nothing.
    let write = |file: &Path, text: &str| match &answer.id {
        Some(_) => write_measured(file, text, REPORT),
        None => write_whole(file, text).map_err(|problem| {
            problem.hint("name another file and load it again: without --compare nothing is kept in the journal")
        }),
    };
    if let (Some(file), Some(waterfall)) = (&args.svg, answer.waterfall()) {
        write(file, &waterfall.to_svg(1000, 400))?;
    }
    if let Some(file) = &args.html {
        write(file, &answer.html())?;
    }
    Ok(if answer.is_no() { Exit::No } else { Exit::Done })
}

fn print(answer: &PageAnswer, journal: Option<&Path>) {
    say!("{}, cold caches", answer.browser);
    say!("{:>14} {:>10} {:>16} {:>10} {:>8} {:>9}", "run", "first byte", "DOMContentLoaded", "load", "requests", "kB");
    let line = |name: &str, of: &dyn Fn(Measure) -> Option<f64>| {
        let ms = |measure: Measure| of(measure).map_or("?".to_owned(), |ms| format!("{ms:.0} ms"));
        say!(
            "{name:>14} {:>10} {:>16} {:>10} {:>8.0} {:>9.1}",
            ms(|load| load.first_byte_ms),
            ms(|load| load.dom_content_loaded_ms),
            ms(|load| Some(load.load_ms)),
            of(|load| Some(load.requests as f64)).unwrap_or(0.0),
            of(|load| Some(load.bytes)).unwrap_or(0.0) / 1e3
        );
    };
    for (number, load) in answer.runs.iter().enumerate() {
        line(&answer.label(number), &|of| of(load));
    }
    if answer.compare.is_none() {
        line("median", &|of| answer.median_of(of));
    }
    answer.failures().iter().for_each(|failure| say!("{failure}"));
    if let Some(compare) = &answer.compare {
        say!("{}", compare.text);
        let kept = |id: &String| typed::naming_journal(&format!("Kept: windtunnel report {id}"), id, journal);
        answer.id.iter().for_each(|id| say!("{}", kept(id)));
    }
}

/// One of the figures of a load.
type Measure = fn(&PageLoad) -> Option<f64>;
