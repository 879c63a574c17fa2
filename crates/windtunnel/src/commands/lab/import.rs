//! Traces of mahimahi as a scenario.

use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_lab::Scenario;
use wt_link::{MAX_TRACE_BYTES, Trace};
use wt_units::{format_duration, parse_duration};

/// Makes a scenario of mahimahi's traces of delivery opportunities
///
/// A trace has a line for each opportunity to send 1504 bytes: its time in milliseconds. At its end it begins anew.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  windtunnel lab import --down Verizon-LTE-short.down --up Verizon-LTE-short.up --delay 20ms -o verizon.toml
  windtunnel lab run ./verizon.toml -- curl -o /dev/null http://server/bytes/3MB")]
pub(super) struct ImportArgs {
    /// Trace towards the client
    #[arg(long, value_name = "FILE")]
    down: PathBuf,
    /// Trace towards the server
    #[arg(long, value_name = "FILE")]
    up: PathBuf,
    /// Propagation, one way, as mm-delay has it
    #[arg(long, default_value = "20ms", value_parser = parse_duration)]
    delay: Duration,
    /// Bound of each queue, in packets
    #[arg(long, default_value_t = 1000, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queue: u32,
    /// The file to write; without it the scenario is printed
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn import(args: &ImportArgs) -> Outcome {
    let (down, up) = (read(&args.down)?, read(&args.up)?);
    let folder = args.output.as_deref().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    let text = scenario(args, [(&args.down, &down), (&args.up, &up)], folder)?;
    let name = args.output.as_ref().map_or_else(|| "imported.toml".to_owned(), |file| file.display().to_string());
    // What we write is what we read.
    Scenario::parse(&name, &text).map_err(|error| Failure::usage(error.to_string()))?;
    match &args.output {
        None => say!("{}", text.trim_end()),
        Some(file) => {
            crate::commands::report::write_whole(file, &text).map_err(|failure| failure.hint("name another file"))?;
            say!("{}: {} and {} opportunities", file.display(), down.len(), up.len());
        }
    }
    Ok(Exit::Done)
}

/// Reads a trace; one that is too large isn't read to its end.
fn read(path: &Path) -> Result<Trace, Failure> {
    let wrong = |why: String| {
        Failure::usage(format!("{}: {why}", path.display()))
            .hint("a trace of mahimahi has one time in milliseconds per line, none before the one above it")
    };
    let known = path.metadata().map_err(|error| wrong(error.to_string()))?;
    if !known.is_file() {
        return Err(wrong("is not a file".to_owned()));
    }
    if known.len() > MAX_TRACE_BYTES as u64 {
        return Err(wrong(format!("has {} bytes; allowed are {MAX_TRACE_BYTES}", known.len())));
    }
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_TRACE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    Trace::parse(&bytes).map_err(|error| wrong(error.to_string()))
}

fn scenario(args: &ImportArgs, [down, up]: [(&PathBuf, &Trace); 2], folder: Option<&Path>) -> Result<String, Failure> {
    let mut text = format!(
        "title = \"Imported traces of mahimahi\"\nsource = {}\n\n[[link]]\nname = \"trace\"\nmtu = 1500\n",
        quoted(&format!("{} and {}", file_name(down.0), file_name(up.0))),
    );
    for (name, (file, _)) in [("down", down), ("up", up)] {
        let place = relative(file, folder)?;
        text += &format!(
            "\n[link.{name}]\ndelay = \"{}\"\nqueue_packets = {}\ntrace = {{ file = {} }}\n",
            format_duration(args.delay),
            args.queue,
            quoted(&place)
        );
    }
    Ok(text)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The trace as the scenario names it: relative to the scenario's folder where both lie in one, or else from the root.
fn relative(file: &Path, folder: Option<&Path>) -> Result<String, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", file.display()));
    let whole = file.canonicalize().map_err(|error| wrong(&error))?;
    let folder = folder.unwrap_or(Path::new("."));
    let missing = |error| Failure::usage(format!("can't write into {}: {error}", folder.display()));
    let folder = folder.canonicalize().map_err(|error| missing(error).hint("name another folder, or make this one"))?;
    let place = whole.strip_prefix(&folder).unwrap_or(&whole);
    place.to_str().map(str::to_owned).ok_or_else(|| wrong(&"its name isn't UTF-8"))
}

/// As TOML writes a string; JSON's escapes are among its own.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
