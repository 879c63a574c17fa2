//! Running programs in the lab, and keeping it up.

use super::LabOptions;
use super::stats::{StatsForm, tell};
use super::virtual_time::VirtualArgs;
use crate::cli::forms::give;
use crate::cli::signals::{cancel_on, cancel_on_saying};
use crate::edge::{Exit, Outcome, Problem, note, say};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wt_api::{Answer, Request, Services};
use wt_lab::EngineStats;
use wt_setup::lab::{LabProgram, LabRecording, LabRunRequest, LabUpAnswer, RunningLab};

/// Runs a program in the client, with its exit code
///
/// In the lab the names `client` and `server` are known (`client6` and `server6` for IPv6; also as $WT_SERVER and so on),
/// the server answers `http://server/bytes/12MB`, and `ip netns exec server CMD` runs a command there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab run adsl -- curl -o /dev/null http://server/bytes/3MB
  windtunnel lab run adsl --record adsl.pcapng --stats -- curl -o /dev/null http://server/bytes/3MB
  windtunnel lab run adsl --server 'iperf3 -s -1' -- sh -c 'sleep 0.2; iperf3 -c server -R'
  windtunnel lab run dialup -- ping -c 3 server
  windtunnel lab run dialup --virtual --kernel target/uml/linux -- ping -c 100 server
  sudo windtunnel lab run freebsd-scp --cc chd@freebsd-hz100 -- scp file server:   # with an sshd in --server")]
pub(super) struct RunArgs {
    #[command(flatten)]
    on: On,
    /// A shell command that runs in the server meanwhile, instead of the HTTP server on port 80; it ends with the program
    #[arg(long, value_name = "CMD")]
    server: Option<OsString>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    argv: Vec<OsString>,
}

/// Keeps a lab up until Ctrl-C, and tells how to enter its hosts
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab up adsl")]
pub(super) struct UpArgs {
    #[command(flatten)]
    on: On,
    /// A shell command that runs in the server meanwhile, instead of the HTTP server on port 80
    #[arg(long, value_name = "CMD")]
    server: Option<OsString>,
    /// One JSON object when the lab is up
    #[arg(long)]
    json: bool,
}

/// Pings the server from the client
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab ping adsl -- -c 5 -s 1400")]
pub(super) struct PingArgs {
    #[command(flatten)]
    on: On,
    /// Options of ping(8); without any: -c 4
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Measures with iperf3 from the client to the server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab iperf3 adsl -- -R -t 10")]
pub(super) struct Iperf3Args {
    #[command(flatten)]
    on: On,
    /// Options of the iperf3 client: -R for a download
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Starts a browser in the client, with a profile of its own that is forgotten afterwards
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab browser adsl")]
pub(super) struct BrowserArgs {
    #[command(flatten)]
    on: On,
    /// What it shows
    #[arg(long, default_value = "http://server/")]
    url: String,
    /// The browser; without it $BROWSER, or the first of the known ones that is there
    #[arg(long, value_name = "PROGRAM")]
    program: Option<OsString>,
    /// Further options of the browser
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// The path, and what is watched.
#[derive(Debug, Args)]
struct On {
    /// A preset's name or a TOML file
    path: String,
    #[command(flatten)]
    options: LabOptions,
    /// Records packets into a pcapng file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Where to record: LINK:client, LINK:server (the ends of a link), or all; may be repeated. Without it: the devices of
    /// client and server
    #[arg(long, value_name = "END", requires = "record")]
    record_at: Vec<String>,
    /// The congestion control of every connection in the lab, on both ends and whatever programs ask for: one of the
    /// kernel's, or with the rights to load it one of ours, as chd@freebsd-hz100
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Says on stderr how the lab itself did: how late packets left, what it lost, CPU that it didn't get
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<StatsForm>,
    #[command(flatten)]
    time: VirtualArgs,
}

/// `lab run`.
pub(super) fn program(args: &RunArgs) -> Outcome {
    run(&args.on, LabProgram::Command { argv: args.argv.clone(), server: args.server.clone() })
}

/// `lab ping`.
pub(super) fn ping(args: &PingArgs) -> Outcome {
    run(&args.on, LabProgram::Ping { options: args.options.clone() })
}

/// `lab iperf3`.
pub(super) fn iperf3(args: &Iperf3Args) -> Outcome {
    run(&args.on, LabProgram::Iperf3 { options: args.options.clone() })
}

/// `lab browser`.
pub(super) fn browser(args: &BrowserArgs) -> Outcome {
    let (url, program, options) = (args.url.clone(), args.program.clone(), args.options.clone());
    run(&args.on, LabProgram::Browser { url, program, options })
}

impl On {
    fn recording(&self) -> Option<LabRecording> {
        self.record.as_ref().map(|file| LabRecording { file: file.clone(), at: self.record_at.clone() })
    }
}

/// Says that somebody else measures here, if somebody does.
fn note_others() {
    if let [other, ..] = wt_setup::journal::running().as_slice() {
        note(&format!("{other} is being measured on this machine: each disturbs the other; wait for it, or stop one"));
    }
}

/// Says how the lab did, as far as that was asked for or something is wrong.
fn note_lab(on: &On, stats: &EngineStats, rtt: Duration, programs_skipped: u64, ended: Option<&str>) {
    if programs_skipped > 0 {
        let name = on.cc.as_deref().unwrap_or_default();
        note(&format!(
            "this kernel skipped a program of {name} {programs_skipped} times and took garbage for its window: a trap of some \
             virtual machines' kernels; measure again"
        ));
    }
    if on.stats.is_none()
        && let Some(why) = ended
    {
        note(why);
    }
    if let Some(form) = on.stats {
        tell(stats, rtt, form);
    }
}

fn note_packets(on: &On, packets: u64, missed: u64) {
    let missed =
        if missed == 0 { String::new() } else { format!("; {missed} more came faster than they could be written") };
    if let Some(file) = &on.record {
        note(&format!("{packets} packets in {}{missed}", file.display()));
    }
}

fn run(on: &On, program: LabProgram) -> Outcome {
    if let Some(exit) = on.time.instead()? {
        return Ok(exit);
    }
    // Ctrl-C is for the program in the lab; when that ends, so do we. What was recorded until then is completed first.
    wt_sys::process::ignore_signal(SIGINT);
    let (cancel, signal) = cancel_on_saying(&[SIGTERM, SIGHUP, SIGQUIT])?;
    note_others();
    let request =
        LabRunRequest { lab: on.options.on(&on.path), program, control: on.cc.clone(), record: on.recording() };
    let answer = wt_api::run(Request::LabRun(Box::new(request)), &Services::default(), &mut |_| {}, &cancel)?;
    let Answer::LabRun(answer) = answer else { return Err(Problem::internal("another answer than was asked for")) };
    let ended = answer.why_invalid.as_deref().filter(|_| answer.stats.ended);
    note_lab(on, &answer.stats, answer.rtt, answer.programs_skipped, ended);
    if let Some(packets) = answer.recorded {
        note_packets(on, packets, answer.not_recorded);
    }
    Ok(Exit::Passed(signal().map_or(answer.exit_code, |signal| 128 + signal)))
}

/// `lab up`.
pub(super) fn up(args: &UpArgs) -> Outcome {
    let on = &args.on;
    if on.time.is_asked() {
        return Err(Problem::usage("lab up --virtual: time would stand still for whoever enters")
            .hint("windtunnel lab run PATH --virtual --kernel FILE -- PROGRAM"));
    }
    let cancel = cancel_on(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    note_others();
    let record = on.recording();
    let running = RunningLab::start(&on.options.on(&on.path), on.cc.as_deref(), |scenario| {
        record.as_ref().map(|record| record.of(scenario)).transpose()
    })?;
    running.stay(args.server.clone(), &cancel, |up| tell_how_to_enter(&up, args.json))?;
    note_lab(on, &running.stats(), running.rtt, running.guard_hits(), None);
    if let Some(recorded) = running.stop()? {
        note_packets(on, recorded.packets, recorded.missed);
    }
    Ok(Exit::Done)
}

/// How another shell gets in.
fn tell_how_to_enter(up: &LabUpAnswer, json: bool) {
    // The lab is up, whether or not anybody reads this.
    let _ = give(up, json, |up| {
        say!("{} is up, over {}. Enter its hosts from another shell:", up.path, up.backend);
        up.hosts.iter().for_each(|host| say!("  {:<8} {:<12} {}", host.name, host.ipv4, host.enter));
        say!("Ctrl-C takes it down.");
    });
}
