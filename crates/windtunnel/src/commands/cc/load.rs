use super::Parameters;
use crate::edge::{Exit, Outcome, Problem, say};
use clap::Args;
use serde_json::json;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use wt_bpf::{Loaded, Pins, mount_bpffs};
use wt_cc::Choice;
use wt_setup::controls::available;
use wt_setup::controls::problem;
use wt_trial::Cancel;

/// Loads one of ours into the kernel
///
/// It stays as long as this program runs: until Ctrl-C, or until the command behind `--` has ended. However this program
/// ends, the control goes, and the command with it. With --pin it stays until `windtunnel cc unload` or the next boot. It never becomes the
/// host's default.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cc load chd@freebsd-hz100 -- iperf3 -c server -C wt_chd_hz100
  windtunnel cc load chd --queue-min 5ms --queue-threshold 20ms --pmax 50% --pin
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
pub(super) struct UnloadArgs {
    /// Which: chd@freebsd-hz100, or the kernel's name for it, wt_chd_hz100
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    /// All that were loaded with --pin
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Runs `cc load`.
pub(super) fn run(args: &LoadArgs) -> Outcome {
    let choice = args.parameters.choose(&args.name)?;
    let cancel = crate::cli::signals::cancel_on_signals()?;
    let mut loaded = Loaded::load(&choice).map_err(|error| problem(&error, &choice))?;
    if args.pin {
        pin(&mut loaded)?;
    }
    tell(args, &choice, &loaded);
    if args.pin {
        return Ok(Exit::Done);
    }
    if args.command.is_empty() {
        wait(&cancel);
        return Ok(Exit::Done);
    }
    run_command(&args.command, loaded.name())
}

fn pin(loaded: &mut Loaded) -> Result<(), Problem> {
    let pinned = mount_bpffs().and_then(|mounted| {
        if mounted {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr().lock(), "windtunnel: mounted the bpf file system at /sys/fs/bpf");
        }
        loaded.pin(&Pins::default())
    });
    pinned.map_err(|error| {
        Problem::environment(format!("{} is loaded but can't be kept: {error}", loaded.name()))
            .hint("as root: mount -t bpf bpf /sys/fs/bpf; or leave --pin away and let this program run")
    })
}

fn tell(args: &LoadArgs, choice: &Choice, loaded: &Loaded) {
    let name = loaded.name();
    if args.json {
        say!(
            "{}",
            json!({"schema_version": 1, "name": choice.algorithm.name, "variant": choice.variant_text(),
                "kernel_name": name, "pinned": args.pin, "goes_with_process": loaded.goes_with_process()})
        );
        return;
    }
    if !args.command.is_empty() {
        return;
    }
    say!("{choice} is loaded as {name}.");
    say!("  one socket       setsockopt(TCP_CONGESTION, \"{name}\"), iperf3 -C {name}, curl has no option");
    say!("  one route        ip route change … congctl lock {name}   (every program, scp too)");
    say!("  one namespace    sysctl net.ipv4.tcp_congestion_control={name}   (in there)");
    match (args.pin, loaded.goes_with_process()) {
        (true, _) => say!("It stays until: windtunnel cc unload {name}"),
        (false, true) => say!("It stays until this program ends: Ctrl-C."),
        (false, false) => {
            say!(
                "It stays until this program ends: Ctrl-C. This kernel (before 6.4) keeps it when the program is killed."
            );
        }
    }
}

fn wait(cancel: &Cancel) {
    while !cancel.is_cancelled() {
        // Waits for a signal, which ends it early, and looks at the flag now and then.
        let _ = wt_sys::poll::wait_readable(&[], Some(std::time::Duration::from_millis(200)));
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
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(Exit::Passed(u8::try_from(code).unwrap_or(255)))
}

/// Runs `cc unload`.
pub(super) fn unload(args: &UnloadArgs) -> Outcome {
    let pins = Pins::default();
    let names = match &args.name {
        None => pins.names(),
        Some(name) if name.starts_with("wt_") => vec![name.clone()],
        Some(name) => vec![args.parameters.choose(name)?.kernel_name()],
    };
    for name in &names {
        let removed = pins.remove(name).map_err(|error| {
            Problem::environment(format!("{name} can't be unloaded: {error}")).hint("only root can")
        })?;
        let default = wt_sys::ns::read_net_sysctl("ipv4/tcp_congestion_control").unwrap_or_default();
        if removed && default == *name {
            say!(
                "{name} is unloaded, but it is this network namespace's default, which keeps it until another one is:"
            );
            say!("  sysctl net.ipv4.tcp_congestion_control=cubic");
        } else if removed {
            say!("{name} is unloaded.");
        } else if available().contains(name) {
            return Err(Problem::environment(format!("{name} isn't pinned, so it can't be unloaded from here"))
                .because("a program that runs holds it loaded")
                .hint("let that program end (Ctrl-C); bpftool struct_ops list shows it"));
        } else {
            return Err(Problem::usage(format!("{name} isn't loaded")).hint("windtunnel cc list shows what is"));
        }
    }
    if names.is_empty() {
        say!("Nothing is pinned.");
    }
    Ok(Exit::Done)
}
