//! The `windtunnel` command: predict, rehearse, measure, decide, apply, undo.

mod cli;
mod commands;
mod edge;
mod program;
mod screen;

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
    program::Cli::complete();
    let mut problem = match edge::printed(program::Cli::of_process().and_then(|cli| cli.run())) {
        Ok(exit) => return exit.into(),
        Err(problem) => problem,
    };
    problem.hint = problem.hint.as_deref().map(cli::typed::naming_what_was_typed);
    use std::io::Write as _;
    let object = || serde_json::to_string(&problem).ok();
    let told = if cli::typed::wants_json() { object() } else { None };
    let screen = screen::Screen::stderr();
    let told = told.unwrap_or_else(|| screen.fitted(&format!("windtunnel: {problem}")));
    let _ = writeln!(std::io::stderr().lock(), "{}", screen.harmless(&told));
    ExitCode::from(problem.fault.code())
}
