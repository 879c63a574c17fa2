//! `windtunnel first-window`: how much servers send before anything is acknowledged.

/// What is known of one URL.
mod finding;
/// What earlier runs have found.
mod history;
/// Without privilege.
mod kernel;
/// The sockets.
mod net;
/// Hosts by their providers.
mod providers;
/// Findings as tables and JSON.
mod show;
/// A survey over real sockets.
mod survey;
/// URLs and who doesn't want to be asked.
mod targets;
/// HTTPS.
mod tls;

use super::probing::Ip;
use super::report::write_whole;
use crate::edge::{Exit, Failure, Fault, Outcome, say};
use finding::Finding;
use history::Notes;
use net::Net;
use providers::Providers;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use survey::{News, Plan};
use targets::{OptOut, urls};
use wt_probe::first_window::{SurveyConfig, Verdict};

/// Asks servers how much they send before anything is acknowledged: their initial congestion window
///
/// Two connections with different MSS ask for the URL and acknowledge nothing. "Exactly N segments" is said when both
/// agree and the server had more to send; else it is "at least". HTTPS is completed without a single acknowledgement. With
/// CAP_NET_RAW connections of our own ask, without it the kernel's; nothing on this host is changed. One host a second of
/// each /24 is asked, and whoever refuses is never asked again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel first-window http://example.org/ https://example.org/
  windtunnel first-window --file hosts.txt --rate 50/s --json-stream
  windtunnel first-window --file cdns.txt --csv cdns.csv --svg cdns.svg
  windtunnel first-window --history example.org
  windtunnel lab run transatlantic -- windtunnel first-window http://server/bytes/1MB")]
pub(crate) struct FirstWindowArgs {
    /// What to ask for; the larger the better
    #[arg(required_unless_present_any = ["file", "history"], value_name = "URL")]
    urls: Vec<String>,
    /// Read URLs from a file, too, one a line, each with its provider behind it if one likes
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Hosts begun a second, all together [default: 100; for private addresses 1700, the first two hundred faster]
    #[arg(long, value_name = "N/s", value_parser = rate)]
    rate: Option<u32>,
    /// Hosts begun a second of one /24 (IPv6: /48) [default: 1, without limit for private addresses]
    #[arg(long, value_name = "N/s", value_parser = rate)]
    per_network: Option<u32>,
    /// The MSS of the two probes, bytes
    #[arg(long, value_name = "BYTES", num_args = 1..=2, value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(48..=8960))]
    mss: Vec<u16>,
    /// Hosts, addresses and networks not to ask [default: ~/.config/windtunnel/first-window-opt-out.txt]
    #[arg(long, value_name = "FILE")]
    opt_out: Option<PathBuf>,
    /// How you can be reached: goes into the User-Agent
    #[arg(long, value_name = "TEXT", value_parser = contact)]
    contact: Option<String>,
    /// The version of IP [default: what the name resolves to first]
    #[arg(long, value_enum)]
    ip: Option<Ip>,
    /// Ask as an ordinary user would: by the kernel's own connections, without raw sockets
    #[arg(long)]
    unprivileged: bool,
    /// Ask nobody; tell what earlier runs have found, of these hosts or of all
    #[arg(long, conflicts_with_all = ["csv", "svg", "unprivileged"])]
    history: bool,
    /// Where findings are kept [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Write a table into this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw a bar for each provider into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Seed of everything random [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// One JSON array
    #[arg(long, conflicts_with = "json_stream")]
    json: bool,
    /// One JSON object a line, as they come
    #[arg(long)]
    json_stream: bool,
}

fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| (1..=100_000).contains(rate));
    rate.ok_or_else(|| "write a number of hosts a second from 1 to 100000, as in 50/s".to_owned())
}

fn contact(text: &str) -> Result<String, String> {
    let well = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && !text.contains(['(', ')', '\\']);
    if well && text.len() <= 200 {
        Ok(text.to_owned())
    } else {
        Err("plain text without parentheses, please".to_owned())
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &FirstWindowArgs) -> Outcome {
    let urls = if args.history && args.urls.is_empty() && args.file.is_none() {
        Vec::new()
    } else {
        urls(&args.urls, args.file.as_deref())?
    };
    if args.history {
        return history::tell(&urls, args.journal.as_deref(), args.json, args.json_stream);
    }
    let opt_out = match args.opt_out.clone().or_else(usual_opt_out) {
        Some(file) => OptOut::read(&file)?,
        None => OptOut::default(),
    };
    let net = if args.unprivileged { None } else { open_net(urls.len())? };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| Failure::ours(error.to_string()))?;
    }
    let plan = Plan { urls: &urls, ip: args.ip, opt_out: &opt_out, config: config(args), agent: agent(args), stop };
    let rng = ChaCha8Rng::seed_from_u64(args.seed.unwrap_or_else(wt_sys::clock::monotonic_ns));
    let mut tell = Tell::open(args)?;
    survey::run(&plan, net, rng, |news| tell.hear(news))?;
    let answered = tell.end()?;
    if plan.stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(Failure::new(Fault::Stopped, "stopped before all hosts were asked"));
    }
    if answered {
        Ok(Exit::Done)
    } else {
        Err(Failure::new(Fault::FarEnd, "no host showed a first window").hint("the column \"why\" says what happened"))
    }
}

/// Of more hosts so much comes at once that room for it is worth its memory.
const MANY: usize = 100;

/// Raw sockets; `None` where we may not have them, so that the kernel's connections must do.
fn open_net(hosts: usize) -> Result<Option<Net>, Failure> {
    // At the pace of one's own network a thousand segments come in 12 ms; whoever asks many meets longer pauses of this thread.
    match Net::open(if hosts > MANY { 4096 } else { 2048 }) {
        Ok(net) => Ok(Some(net)),
        Err(error) if matches!(error.errno(), Some(1 | 13)) => {
            note("without CAP_NET_RAW the kernel's own connections ask (windtunnel first-window --help)");
            Ok(None)
        }
        Err(error) => Err(Failure::environment(error.to_string()).hint("windtunnel first-window --unprivileged")),
    }
}

/// Says something beside the answer.
fn note(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "windtunnel: {text}");
}

/// Whether findings are kept.
enum Keeping {
    NotYet,
    On(Notes),
    Off,
}

/// Everything that is made of findings as they come.
struct Tell<'a> {
    args: &'a FirstWindowArgs,
    all: Vec<serde_json::Value>,
    providers: Providers,
    table: Option<show::Table>,
    notes: Keeping,
    answered: bool,
}

impl<'a> Tell<'a> {
    fn open(args: &'a FirstWindowArgs) -> Result<Self, Failure> {
        if !args.json && !args.json_stream {
            show::header();
        }
        // One that was named must be there before anybody is asked; the usual one is opened while hosts are asked.
        let notes = match &args.journal {
            Some(file) => Keeping::On(Notes::open(Some(file))?),
            None => Keeping::NotYet,
        };
        let table = args.csv.is_some().then(show::Table::new);
        Ok(Self { args, all: Vec::new(), providers: Providers::default(), table, notes, answered: false })
    }

    /// The journal is opened and closed while packets are under way: both wait for the disk.
    fn hear(&mut self, news: News) -> Result<(), Failure> {
        match news {
            News::Begun => self.keep(|_| Ok(())),
            News::Found(finding) => self.add(finding),
            News::All => {
                let kept = self.keep(Notes::flush);
                self.notes = Keeping::Off;
                kept
            }
        }
    }

    fn add(&mut self, finding: Finding) -> Result<(), Failure> {
        self.answered |= finding.verdict != Verdict::Unknown;
        if self.args.json {
            self.all.push(show::to_json(&finding));
        } else if self.args.json_stream {
            say!("{}", show::to_json(&finding));
        } else {
            show::line(&finding);
        }
        self.providers.count(&finding);
        if let Some(table) = &mut self.table {
            table.add(&finding);
        }
        self.keep(|notes| notes.add(&finding))
    }

    /// Writes into the journal; one that fails stops nobody who hasn't named it.
    fn keep(&mut self, write: impl FnOnce(&mut Notes) -> Result<(), Failure>) -> Result<(), Failure> {
        if let Keeping::NotYet = self.notes {
            self.notes = match Notes::open(None) {
                Ok(notes) => Keeping::On(notes),
                // Whoever has no place for a journal can ask all the same.
                Err(failure) => {
                    note(&format!("nothing is kept of this: {}", failure.what));
                    Keeping::Off
                }
            };
        }
        let Keeping::On(notes) = &mut self.notes else { return Ok(()) };
        match write(notes) {
            Err(failure) if self.args.journal.is_none() => {
                note(&format!("no more is kept of this: {}", failure.what));
                self.notes = Keeping::Off;
                Ok(())
            }
            result => result,
        }
    }

    /// Whether anybody showed anything.
    fn end(self) -> Result<bool, Failure> {
        if self.args.json {
            say!("{:#}", serde_json::Value::Array(self.all));
        } else if !self.args.json_stream {
            self.providers.print(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none());
        }
        if let (Some(file), Some(table)) = (&self.args.csv, self.table) {
            write_whole(file, &table.text())?;
        }
        if let Some(file) = &self.args.svg {
            write_whole(file, &self.providers.chart().to_svg(900, 400))?;
        }
        Ok(self.answered)
    }
}

fn config(args: &FirstWindowArgs) -> SurveyConfig {
    let default = SurveyConfig::default();
    let sizes = match args.mss[..] {
        [one, two] => [one, two],
        [one] if one <= 64 => [one, default.sizes[0]],
        [one] => [one, default.sizes[1]],
        _ => default.sizes,
    };
    let apart = args.per_network.map(|rate| Duration::from_secs(1) / rate);
    SurveyConfig {
        sizes,
        rate: args.rate.unwrap_or(default.rate),
        rate_private: args.rate.unwrap_or(default.rate_private),
        peak_private: args.rate.unwrap_or(default.peak_private),
        apart: apart.unwrap_or(default.apart),
        apart_private: apart.unwrap_or(default.apart_private),
        ..default
    }
}

fn agent(args: &FirstWindowArgs) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let contact = args.contact.as_ref().map_or(String::new(), |contact| format!("; contact: {contact}"));
    format!("windtunnel/{version} (measures the first TCP window, fetches nothing else{contact})")
}

fn usual_opt_out() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(base.join("windtunnel/first-window-opt-out.txt")).filter(|file| file.exists())
}
