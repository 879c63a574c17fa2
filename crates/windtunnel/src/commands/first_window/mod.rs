//! `windtunnel first-window`: how much servers send before anything is acknowledged.

/// The sockets.
mod net;
/// Findings as tables and JSON.
mod show;
/// A survey over real sockets.
mod survey;
/// URLs and who doesn't want to be asked.
mod targets;
/// HTTPS.
mod tls;

use super::probing::Ip;
use crate::edge::{Exit, Failure, Fault, Outcome, say};
use net::Net;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use survey::{Finding, Plan};
use targets::{OptOut, urls};
use wt_probe::first_window::{SurveyConfig, Verdict};

/// Asks servers how much they send before anything is acknowledged: their initial congestion window
///
/// Two connections with different MSS ask for the URL and acknowledge nothing. "Exactly N segments" is said when both
/// agree and the server had more to send; else it is "at least". HTTPS is completed without a single acknowledgement. It
/// takes CAP_NET_RAW, and changes nothing on this host. One host a second of each /24 is asked, and whoever refuses is
/// never asked again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel first-window http://example.org/ https://example.org/
  windtunnel first-window --file hosts.txt --rate 50/s --json-stream
  windtunnel lab run transatlantic -- windtunnel first-window http://server/bytes/1MB")]
pub(crate) struct FirstWindowArgs {
    /// What to ask for; the larger the better
    #[arg(required_unless_present = "file", value_name = "URL")]
    urls: Vec<String>,
    /// Read URLs from a file, too, one a line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Hosts begun a second, all together [default: 100, without limit for private addresses]
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
    let urls = urls(&args.urls, args.file.as_deref())?;
    let opt_out = match args.opt_out.clone().or_else(usual_opt_out) {
        Some(file) => OptOut::read(&file)?,
        None => OptOut::default(),
    };
    let net = Net::open().map_err(|error| {
        Failure::environment(error.to_string())
            .because("this takes CAP_NET_RAW")
            .hint("sudo, or: sudo setcap cap_net_raw+ep on the program")
    })?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| Failure::ours(error.to_string()))?;
    }
    let plan = Plan { urls: &urls, ip: args.ip, opt_out: &opt_out, config: config(args), agent: agent(args), stop };
    let rng = ChaCha8Rng::seed_from_u64(args.seed.unwrap_or_else(wt_sys::clock::monotonic_ns));
    let mut findings: Vec<Finding> = Vec::new();
    let mut answered = false;
    if !args.json && !args.json_stream {
        show::header();
    }
    survey::run(&plan, net, rng, |finding| {
        answered |= finding.verdict != Verdict::Unknown;
        if args.json {
            findings.push(finding);
        } else if args.json_stream {
            say!("{}", show::to_json(&finding));
        } else {
            show::line(&finding);
        }
    })?;
    if args.json {
        let all: Vec<_> = findings.iter().map(show::to_json).collect();
        say!("{:#}", serde_json::Value::Array(all));
    }
    if plan.stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(Failure::new(Fault::Stopped, "stopped before all hosts were asked"));
    }
    if answered {
        Ok(Exit::Done)
    } else {
        Err(Failure::new(Fault::FarEnd, "no host showed a first window").hint("the column \"why\" says what happened"))
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
