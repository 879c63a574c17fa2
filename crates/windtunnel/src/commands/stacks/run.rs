use crate::cli::signals::cancel_on;
use crate::edge::{Exit, Outcome, Problem, note};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use wt_api::{Answer, Request, Services};
use wt_compare::stacks::StackProgram;

/// Runs a program in a lab's client, with its connections to the server through a stack
///
/// For programs as they are: a browser, curl, an application. In it the name `server` (and $WT_SERVER) is a local address; whatever
/// connects there goes on by a connection of the stack over the lab's path, so that a handshake shows as waiting for the answer.
/// IPv4 only.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab run adsl -- \\
      windtunnel stacks run smoltcp -- curl -o /dev/null http://server/bytes/1MB
  windtunnel lab run transatlantic -- \\
      windtunnel stacks run windows-95 -- windtunnel page http://server/")]
pub(super) struct RunArgs {
    /// The stack, with its window and settings as for `stacks compare`: smoltcp, lwip:rwin=8KiB
    stack: String,
    /// The server's port
    #[arg(long, value_name = "PORT", default_value_t = 80)]
    port: u16,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    argv: Vec<OsString>,
}

/// Runs the command, with the program's exit code.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(super) fn run(args: &RunArgs) -> Outcome {
    // Ctrl-C is for the program; when that ends, so do we.
    wt_sys::process::ignore_signal(SIGINT);
    let cancel = cancel_on(&[SIGTERM, SIGHUP])?;
    let request = StackProgram { stack: args.stack.clone(), port: args.port, argv: args.argv.clone() };
    let answer = wt_api::run(Request::StackRun(Box::new(request)), &Services::default(), &mut |_| {}, &cancel)?;
    let Answer::StackRun(answer) = answer else { return Err(Problem::internal("another answer than was asked for")) };
    for refused in &answer.refused {
        note(&format!("{}: {refused}", answer.stack));
    }
    if let Some(trouble) = &answer.trouble {
        note(&format!("{}: {trouble}", answer.stack));
    }
    if let (Some(connections), Some(bytes)) = (answer.connections, answer.bytes_in) {
        let carried = wt_units::Bytes(bytes).human();
        note(&format!(
            "{} through {}, {carried} to the program",
            wt_units::counted(connections as usize, "connection"),
            answer.stack
        ));
    }
    Ok(Exit::Passed(answer.exit_code))
}
