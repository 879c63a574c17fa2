//! `windtunnel page`: how long a real browser takes for a page.

use crate::cli::forms::write_whole;
use crate::edge::{Exit, Outcome, Problem, say};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wt_compare::page_load::{self, PageAnswer, PageLoad, PageRequest};

/// Times how long a real browser takes to load a page
///
/// A headless Chromium with a new profile loads the page, as often as one likes: first byte, DOMContentLoaded, load, and
/// every request. In the lab, windows and paths can be tried on it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel page https://example.org/ --browser --runs 5 --svg waterfall.svg
  windtunnel lab run lte -- windtunnel page http://server/ --json")]
pub(crate) struct PageArgs {
    /// The page
    url: String,
    /// The browser, a Chromium [default: the first of chromium, chromium-browser, google-chrome that is there]
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1)]
    browser: Option<Option<OsString>>,
    /// How often
    #[arg(long, short = 'n', default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// How long one load may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = wt_units::parse_duration)]
    deadline: Duration,
    /// Believe every certificate
    #[arg(long)]
    insecure: bool,
    /// Draw the requests of the load in the middle as a waterfall
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
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
            runs: self.runs,
            deadline: Some(self.deadline),
            insecure: self.insecure,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &PageArgs) -> Outcome {
    let answer = page_load::run(&args.request())?;
    if let (Some(file), Some(waterfall)) = (&args.svg, answer.waterfall()) {
        write_whole(file, &waterfall.to_svg(1000, 400))?;
    }
    if args.json {
        // By way of a value: its fields come in the order of their names.
        let value = serde_json::to_value(&answer).map_err(|error| Problem::internal(error.to_string()))?;
        say!("{value:#}");
    } else {
        print(&answer);
    }
    Ok(Exit::Done)
}

fn print(answer: &PageAnswer) {
    say!("{}, cold caches", answer.browser);
    say!("{:>6} {:>12} {:>18} {:>10} {:>9} {:>10}", "run", "first byte", "DOMContentLoaded", "load", "requests", "kB");
    let line = |name: &str, of: &dyn Fn(Measure) -> Option<f64>| {
        let ms = |measure: Measure| of(measure).map_or("?".to_owned(), |ms| format!("{ms:.0} ms"));
        say!(
            "{name:>6} {:>12} {:>18} {:>10} {:>9.0} {:>10.1}",
            ms(|load| load.first_byte_ms),
            ms(|load| load.dom_content_loaded_ms),
            ms(|load| Some(load.load_ms)),
            of(|load| Some(load.requests as f64)).unwrap_or(0.0),
            of(|load| Some(load.bytes)).unwrap_or(0.0) / 1e3
        );
    };
    for (number, load) in answer.runs.iter().enumerate() {
        line(&(number + 1).to_string(), &|of| of(load));
    }
    line("median", &|of| answer.median_of(of));
}

/// One of the figures of a load.
type Measure = fn(&PageLoad) -> Option<f64>;
