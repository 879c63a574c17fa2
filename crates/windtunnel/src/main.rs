//! The `windtunnel` command: predict, rehearse, measure, decide, apply, undo.

mod cli;
mod commands;
mod edge;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let first = args.next().unwrap_or_default();
    if first == wt_lab::INIT {
        return ExitCode::from(wt_lab::init(args));
    }
    if first == wt_stacks::ADAPTER {
        return ExitCode::from(wt_stacks::adapter(args));
    }
    if first == wt_lab::GUEST {
        return ExitCode::from(wt_lab::guest(args));
    }
    let failure = match cli::Cli::parse().run() {
        Ok(exit) => return exit.into(),
        Err(failure) => failure,
    };
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "{failure}");
    ExitCode::from(failure.code())
}
