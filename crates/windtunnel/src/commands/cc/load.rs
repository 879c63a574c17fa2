use super::Parameters;
use crate::cli::forms::give;
use crate::edge::{Exit, Outcome, Problem, say};
use clap::Args;
use std::ffi::OsString;
use wt_setup::controls::{LoadAnswer, LoadRequest, UnloadRequest};

/// Loads one of ours into the kernel
///
/// It stays as long as this program runs: until Ctrl-C, or until the command behind `--` has ended. However this program
/// ends, the control goes, and the command with it. With --pin it stays until `windtunnel cc unload` or the next boot, with --boot also after
/// boots. It never becomes the host's default by itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cc load chd@freebsd-hz100 -- iperf3 -c server -C wt_chd_hz100
  windtunnel cc load chd --queue-min 5ms --queue-threshold 20ms --pmax 50% --pin
  windtunnel cc load chd@freebsd-hz100 --boot                        # now, and at every boot, by a unit of systemd
  ip route change default via 192.0.2.1 congctl lock wt_chd_hz1000   # every program to this route
  sysctl net.ipv4.tcp_congestion_control=wt_chd_hz1000               # a whole network namespace")]
pub(super) struct LoadArgs {
    /// Which, with its variant: chd, chd@freebsd-hz100
    name: String,
    #[command(flatten)]
    parameters: Parameters,
    /// Keep it loaded when this program has ended
    #[arg(long, conflicts_with = "command")]
    pin: bool,
    /// Keep it loaded, and let systemd load it at every boot: what `settings confirm` writes for the boot may name it then
    #[arg(long, conflicts_with = "command")]
    boot: bool,
    /// One JSON object when it is loaded
    #[arg(long)]
    json: bool,
    /// Run this meanwhile; $WT_CC holds the kernel's name for it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Takes one of ours out of the kernel
///
/// Connections that use it go on with it; new ones can't have it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cc unload chd@freebsd-hz100
  windtunnel cc unload chd@freebsd-hz100 --boot
  windtunnel cc unload --all")]
pub(super) struct UnloadArgs {
    /// Which: chd@freebsd-hz100, or the kernel's name for it, wt_chd_hz100
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    /// All that were loaded with --pin
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Don't load it at boot any more, either: removes the unit that `cc load --boot` wrote
    #[arg(long)]
    boot: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `cc load`.
pub(super) fn run(args: &LoadArgs) -> Outcome {
    let name = args.parameters.choose(&args.name)?.to_string();
    let cancel = crate::cli::signals::cancel_on_signals()?;
    let request = LoadRequest { name, pin: args.pin, boot: args.boot };
    if args.command.is_empty() {
        let mut print = |answer: &LoadAnswer| show(args, answer);
        wt_setup::controls::hold(&request, &mut print, &cancel)?;
        return Ok(Exit::Done);
    }
    let held = wt_setup::controls::load(&request)?;
    show(args, &held.answer);
    run_command(&args.command, &held.answer.kernel_name)
}

fn show(args: &LoadArgs, answer: &LoadAnswer) {
    if args.json || args.command.is_empty() {
        let _ = give(answer, args.json, print);
    }
}

fn print(answer: &LoadAnswer) {
    let name = &answer.kernel_name;
    answer.notes.iter().for_each(|note| say!("{note}"));
    say!("{} is loaded as {name}.", answer.called());
    say!("  one socket       setsockopt(TCP_CONGESTION, \"{name}\"), iperf3 -C {name}, curl has no option");
    say!("  one route        ip route change … congctl lock {name}   (every program, scp too)");
    say!("  one namespace    sysctl net.ipv4.tcp_congestion_control={name}   (in there)");
    match (&answer.unit, answer.pinned, answer.goes_with_process) {
        (Some(unit), ..) => {
            say!("Every boot loads it: {}", unit.display());
            say!("It stays until: windtunnel cc unload {name} --boot");
        }
        (None, true, _) => say!("It stays until: windtunnel cc unload {name}"),
        (None, false, true) => say!("It stays until this program ends: Ctrl-C."),
        (None, false, false) => {
            say!(
                "It stays until this program ends: Ctrl-C. This kernel (before 6.4) keeps it when the program is killed."
            );
        }
    }
}

fn run_command(argv: &[OsString], kernel_name: &str) -> Outcome {
    let Some((program, arguments)) = argv.split_first() else { return Ok(Exit::Done) };
    let mut command = std::process::Command::new(program);
    command.args(arguments).env("WT_CC", kernel_name);
    wt_sys::process::default_signals(&mut command);
    // It was asked to run with the control, and would go on without.
    wt_sys::process::die_with_parent(&mut command);
    let status = command.status().map_err(|error| {
        Problem::usage(format!("can't run {}: {error}", program.to_string_lossy())).hint("the command stands behind --")
    })?;
    Ok(Exit::Passed(wt_sys::process::exit_code(status)))
}

/// Runs `cc unload`.
pub(super) fn unload(args: &UnloadArgs) -> Outcome {
    let name = match &args.name {
        Some(name) if !name.starts_with("wt_") => Some(args.parameters.choose(name)?.to_string()),
        other => other.clone(),
    };
    let answer = wt_setup::controls::unload(&UnloadRequest { name, boot: args.boot })?;
    give(&answer, args.json, |answer| {
        answer.unloaded.iter().for_each(|name| say!("{name} is unloaded."));
        answer.units.iter().for_each(|unit| say!("{} is removed: no boot loads it any more.", unit.display()));
        answer.notes.iter().for_each(|note| say!("{note}"));
        if answer.unloaded.is_empty() && answer.units.is_empty() {
            say!("Nothing is pinned.");
        }
    })
}
