//! `windtunnel page`: how long a real browser takes for a page.

/// Chromium over a pipe.
mod devtools;
/// One load.
mod load;

use super::report::write_whole;
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use devtools::Browser;
use load::{Load, Resource, load};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wt_report::{Axis, Chart, Series};

/// Programs that speak the protocol, the first that is there is taken.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// How long a real browser takes to load a page, with cold caches
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

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &PageArgs) -> Outcome {
    let known = ["http://", "https://"].iter().any(|scheme| args.url.to_ascii_lowercase().starts_with(scheme));
    if !known || args.url.contains(char::is_whitespace) {
        return Err(
            Failure::usage(format!("\"{}\" is no URL of a page", args.url)).hint("write http://HOST/PATH or https://…")
        );
    }
    let program = program(args)?;
    let options: Vec<OsString> = if args.insecure { vec!["--ignore-certificate-errors".into()] } else { Vec::new() };
    let mut loads = Vec::new();
    let mut version = String::new();
    for _ in 0..args.runs {
        // A new browser each time: caches, connections and names are cold.
        let mut browser = Browser::start(&program, &options)?;
        let about = browser.ask(None, "Browser.getVersion", &json!({}))?;
        about["product"].as_str().unwrap_or_default().clone_into(&mut version);
        loads.push(load(&mut browser, &args.url, args.deadline)?);
    }
    let middle = middle(&loads);
    if let (Some(file), Some(middle)) = (&args.svg, middle) {
        write_whole(file, &waterfall(&args.url, middle).to_svg(1000, 400))?;
    }
    if args.json {
        say!("{:#}", object(args, &version, &loads));
    } else {
        print(&version, &loads);
    }
    Ok(Exit::Done)
}

fn program(args: &PageArgs) -> Result<OsString, Failure> {
    if let Some(Some(program)) = &args.browser {
        return Ok(program.clone());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    PROGRAMS.iter().find(|name| there(name)).map(OsString::from).ok_or_else(|| {
        Failure::environment("there is no Chromium")
            .hint("sudo apt-get install chromium, or name one: --browser PROGRAM")
    })
}

/// The load with the median time.
fn middle(loads: &[Load]) -> Option<&Load> {
    let mut sorted: Vec<&Load> = loads.iter().collect();
    sorted.sort_by(|a, b| a.load_ms.total_cmp(&b.load_ms));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// One of the figures of a load.
type Measure = fn(&Load) -> Option<f64>;

fn median(loads: &[Load], of: impl Fn(&Load) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = loads.iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied();
    Some((at(values.len().saturating_sub(1) / 2)? + at(values.len() / 2)?) / 2.0)
}

fn bytes(load: &Load) -> f64 {
    load.resources.iter().filter_map(|resource| resource.bytes).sum()
}

fn object(args: &PageArgs, version: &str, loads: &[Load]) -> Value {
    let resource = |one: &Resource| {
        json!({
            "url": one.url,
            "start_ms": one.start_ms,
            "first_byte_ms": one.first_byte_ms,
            "end_ms": one.end_ms,
            "bytes": one.bytes,
            "status": one.status,
            "protocol": one.protocol,
        })
    };
    let run = |load: &Load| {
        json!({
            "first_byte_ms": load.first_byte_ms,
            "dom_content_loaded_ms": load.dom_content_loaded_ms,
            "load_ms": load.load_ms,
            "requests": load.resources.len(),
            "bytes": bytes(load),
            "resources": load.resources.iter().map(resource).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema_version": 1,
        "url": args.url,
        "browser": version,
        "median": {
            "first_byte_ms": median(loads, |load| load.first_byte_ms),
            "dom_content_loaded_ms": median(loads, |load| load.dom_content_loaded_ms),
            "load_ms": median(loads, |load| Some(load.load_ms)),
        },
        "runs": loads.iter().map(run).collect::<Vec<_>>(),
    })
}

fn print(version: &str, loads: &[Load]) {
    let ms = |value: Option<f64>| value.map_or("?".to_owned(), |ms| format!("{ms:.0} ms"));
    say!("{version}, cold caches");
    say!("{:>6} {:>12} {:>18} {:>10} {:>9} {:>10}", "run", "first byte", "DOMContentLoaded", "load", "requests", "kB");
    let line = |name: &str, of: &dyn Fn(Measure) -> Option<f64>| {
        say!(
            "{name:>6} {:>12} {:>18} {:>10} {:>9.0} {:>10.1}",
            ms(of(|load| load.first_byte_ms)),
            ms(of(|load| load.dom_content_loaded_ms)),
            ms(of(|load| Some(load.load_ms))),
            of(|load| Some(load.resources.len() as f64)).unwrap_or(0.0),
            of(|load| Some(bytes(load))).unwrap_or(0.0) / 1e3
        );
    };
    for (number, load) in loads.iter().enumerate() {
        line(&(number + 1).to_string(), &|of| of(load));
    }
    line("median", &|of| median(loads, of));
}

/// A row for each request: from when it was asked for to its last byte, with a mark at the first one.
fn waterfall(url: &str, load: &Load) -> Chart {
    let row = |(index, one): (usize, &Resource)| {
        let end = one.end_ms.or(one.first_byte_ms).unwrap_or(one.start_ms);
        (index as f64, one.start_ms, one.first_byte_ms.unwrap_or(end), end)
    };
    let rows: Vec<_> = load.resources.iter().enumerate().map(row).collect();
    Chart {
        title: format!("Requests of {url}"),
        subtitle: format!(
            "marks: first byte; {} requests, {:.1} kB; load after {:.0} ms",
            load.resources.len(),
            bytes(load) / 1e3,
            load.load_ms
        ),
        y: Axis::linear("after the first request", "ms"),
        categories: load.resources.iter().map(|one| name(&one.url).to_owned()).collect(),
        series: vec![Series::intervals("", &rows)],
        ..Chart::default()
    }
}

/// What stands behind the last stroke of a URL.
fn name(url: &str) -> &str {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    plain.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(url)
}
