//! `windtunnel worker`: one request of the library as JSON, for programs that need an operation in a process of its own.

use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, Problem, emit};
use std::io::Read as _;
use wt_api::{Request, Services};
use wt_tune::TuneEvent;

/// No request is longer.
const LONGEST: u64 = 1 << 20;

/// Runs one operation: a request as JSON on standard input, events and the answer as lines of JSON on standard output
///
/// The last line is the answer, the object that the command prints with --json. A failure is one object on standard error:
/// {"schema_version", "fault", "code", "what", "cause", "try"}; exit codes are those of the commands. SIGINT stops it and
/// keeps what was measured.
#[derive(Debug, clap::Args)]
#[command(after_help = r#"Examples:
  echo '{"operation":"predict","request":{"path":{"scenario":"adsl"}}}' | windtunnel worker
  echo '{"operation":"tune","request":{"lab":"lan","budget":"20 trials"}}' | windtunnel worker"#)]
pub(crate) struct WorkerArgs {}

/// Runs the command.
///
/// # Errors
/// A [`Problem`]; the program prints it as JSON.
pub(crate) fn run() -> Outcome {
    let unread = |why: String| Problem::usage(format!("the request can't be read: {why}"));
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes);
    if read.map_err(|error| unread(error.to_string()))? as u64 > LONGEST {
        return Err(Problem::usage("the request is longer than 1 MiB")
            .hint("what belongs in a file goes by its name: a path of the lab, a server's profile, a table"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unread("stream did not contain valid UTF-8".to_owned()))?;
    let request: Request = serde_json::from_str(&text).map_err(|error| {
        Problem::usage(format!("the request is invalid: {error}"))
            .hint(r#"{"operation": "overhead", "request": {"encap": "ethernet"}}"#)
    })?;
    if matches!(request, Request::Tune(_) | Request::LabTransfer(_)) {
        super::samples::stream();
    }
    let cancel = cancel_on_signals()?;
    let line = |event: &wt_api::Event| {
        if let Ok(text) = serde_json::to_string(event) {
            emit!("{text}");
        }
    };
    let mut events = |event| match event {
        // How a process ends says it.
        wt_api::Event::Tune(TuneEvent::Finished) => {}
        event => line(&event),
    };
    let answer = wt_api::run(request, &Services::default(), &mut events, &cancel)?;
    let text = serde_json::to_string(&answer).map_err(|error| Problem::internal(error.to_string()))?;
    emit!("{text}");
    match answer.problem() {
        Some(problem) => Err(problem),
        None => Ok(if answer.is_no() { Exit::No } else { Exit::Done }),
    }
}
