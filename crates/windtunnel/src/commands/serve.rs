//! `windtunnel serve`: a server of our own, for those who have its key.

use crate::cli::forms::give;
use crate::cli::signals::cancel_on;
use crate::edge::{Exit, Outcome, say};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use wt_setup::serve::{ServeAnswer, ServeRequest, serve};
use wt_units::{Bytes, parse_duration};

/// Serves tests to clients that have the key (`tune wt://…`)
///
/// The key is made at the first start and shown once, in the address of this server. Those who don't have it get nothing
/// but a closed connection. One TCP port carries everything. It needs no privilege. Ctrl-C or SIGTERM finishes running
/// tests and accepts no new ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel serve
  windtunnel serve --listen 192.0.2.1:7411 --quota-bytes 20GB --quota-tests 500
  windtunnel serve --listen '[::]:7411' --metrics 127.0.0.1:9411
  windtunnel tune wt://192.0.2.1 --key-file FILE")]
pub(crate) struct ServeArgs {
    /// Listen here; may be repeated. [::]:7411 is every address of IPv6 and IPv4 [default: 127.0.0.1:7411 and [::1]:7411]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// Tests at once; others wait for their turn, so that tests don't disturb each other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_tests: u32,
    /// Clients that may wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_waiting: u32,
    /// The longest test
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = longest)]
    max_time: Duration,
    /// Payload that one client may have a day
    #[arg(long, value_name = "SIZE")]
    quota_bytes: Option<Bytes>,
    /// Time of tests that one client may have a day
    #[arg(long, value_name = "TIME", value_parser = duration)]
    quota_time: Option<Duration>,
    /// Tests that one client may have a day
    #[arg(long, value_name = "N")]
    quota_tests: Option<u64>,
    /// Congestion controls that clients may ask for, the kernel's or ours: cubic,chd@freebsd-hz100; ours are loaded for as
    /// long as this runs [default: those that every user of this host may use]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cc: Option<Vec<String>>,
    /// Where the key is kept [default: $XDG_STATE_HOME/windtunnel/serve.key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Replace the key; clients with the old one are rejected
    #[arg(long)]
    new_key: bool,
    /// The host's name in the address that is shown [default: where it listens]
    #[arg(long, value_name = "HOST")]
    name: Option<String>,
    /// Answer Prometheus here: /metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// How long running tests may take to finish when it is told to stop
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    drain: Duration,
    /// One JSON object when it listens, instead of text
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn longest(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    if allowed.contains(&time) { Ok(time) } else { Err(format!("{text} is out of range: allowed is 1s to 24h")) }
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &ServeArgs) -> Outcome {
    let stop = cancel_on(&[signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])?;
    let mut listening = |answer: &ServeAnswer| drop(give(answer, args.json, print));
    let mut draining = || {
        if !args.json {
            say!("stopping: running tests may finish, {:.0} s at most", args.drain.as_secs_f64());
        }
    };
    serve(&args.request(), &mut listening, &mut draining, &stop)?;
    Ok(Exit::Done)
}

impl ServeArgs {
    fn request(&self) -> ServeRequest {
        ServeRequest {
            listen: self.listen.clone(),
            max_tests: self.max_tests,
            max_waiting: self.max_waiting,
            max_time_s: self.max_time.as_secs_f64(),
            quota_bytes: self.quota_bytes.map(Bytes::get),
            quota_time_s: self.quota_time.map(|time| time.as_secs_f64()),
            quota_tests: self.quota_tests,
            cc: self.cc.clone(),
            key_file: self.key_file.clone(),
            new_key: self.new_key,
            name: self.name.clone(),
            metrics: self.metrics,
            drain_s: self.drain.as_secs_f64(),
        }
    }
}

/// Prints where it listens, and if the key is new, what clients type.
fn print(answer: &ServeAnswer) {
    for address in &answer.listening {
        say!("listening on {address}");
    }
    if answer.clients.is_empty() {
        return say!("with the key that was shown when it was made (--new-key makes another)");
    }
    say!("the address for clients, shown this once; whoever has it may test:");
    answer.clients.iter().for_each(|client| say!("  {client}"));
    say!("clients put the key, which stands before the @, into a file: windtunnel tune wt://HOST --key-file FILE");
}
