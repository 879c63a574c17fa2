use crate::error::ApiError;
use crate::guest::GuestId;
use crate::turns::{Turn, Turns};
use axum::http::StatusCode;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// The command that runs one request of the library.
const WORKER: &str = "worker";
/// So many short requests run at once; others wait.
const AT_ONCE: usize = 4;
/// A short request that takes longer is ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than this no worker prints for a request.
const MOST_OUTPUT: u64 = 8 << 20;
/// More than this of a message isn't kept.
const MOST_STDERR: u64 = 64 << 10;

/// The program that has the workers: ourselves.
#[derive(Debug)]
pub(crate) struct Program {
    exe: PathBuf,
    turns: Turns,
}

/// What a process does.
#[derive(Debug)]
pub(crate) enum Work {
    /// One request of the library, in a worker; `enter` is the command that takes it somewhere else first.
    Request {
        /// The command and its arguments, to which the worker is added.
        enter: Vec<String>,
        /// The request as JSON.
        request: String,
    },
    /// Another program with its arguments, whose lines are for people.
    Lines(Vec<String>),
}

impl Work {
    /// One request of the library.
    pub(crate) fn request(operation: &str, request: &impl Serialize) -> Self {
        let request = json!({"operation": operation, "request": request}).to_string();
        Self::Request { enter: Vec::new(), request }
    }
}

impl Program {
    pub(crate) fn new(exe: PathBuf) -> Self {
        Self { exe, turns: Turns::new(AT_ONCE) }
    }

    /// Starts a process, tied to this one: whatever ends us ends it.
    ///
    /// # Errors
    /// [`ApiError`] if it can't be started.
    pub(crate) fn start(&self, work: Work) -> Result<Child, ApiError> {
        let (argv, input) = match work {
            Work::Request { mut enter, request } => {
                enter.extend([self.exe.display().to_string(), WORKER.to_owned()]);
                (enter, Some(request))
            }
            Work::Lines(argv) => (argv, None),
        };
        let (program, args) = argv.split_first().ok_or_else(|| ApiError::ours("there is nothing to start"))?;
        let mut command = std::process::Command::new(program);
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        command.args(args).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What a terminal sends is for us, who then tell it once.
        command.process_group(0);
        wt_sys::process::die_with_parent(&mut command);
        let started = Command::from(command).kill_on_drop(true).spawn();
        let mut child = started.map_err(|error| ApiError::ours(format!("can't start {program}: {error}")))?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // Whoever ends before it has read all says why itself.
            tokio::spawn(async move { drop(stdin.write_all(input.as_bytes()).await) });
        }
        Ok(child)
    }

    /// Runs a request in a process of its own and hands on its answer, with its turn. Dropping the future ends the process.
    ///
    /// # Errors
    /// [`ApiError`] with the worker's problem, if its exit code is neither 0 nor 1.
    pub(crate) async fn answer(
        &self,
        who: GuestId,
        operation: &str,
        request: &(impl Serialize + Sync),
    ) -> Result<(Vec<u8>, Turn), ApiError> {
        let work = Work::request(operation, request);
        let turn = self.turns.take(who).await?;
        let mut child = self.start(work)?;
        let told = tokio::time::timeout(PATIENCE, finish(&mut child)).await;
        let (code, mut stdout, stderr) = told.map_err(|_| {
            ApiError::new(StatusCode::REQUEST_TIMEOUT, format!("the answer took longer than {} s", PATIENCE.as_secs()))
        })??;
        if code > 1 {
            return Err(ApiError::of_exit(code, &stderr));
        }
        // The answer is the last line; events come before it.
        let end = stdout.trim_ascii_end().len();
        let begin = stdout[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        stdout.truncate(end);
        let answer = stdout.split_off(begin);
        if serde_json::from_slice::<IgnoredAny>(&answer).is_err() {
            return Err(ApiError::ours("the worker's last line isn't an answer"));
        }
        Ok((answer, turn))
    }
}

/// Reads all that a worker says.
async fn finish(child: &mut Child) -> Result<(u8, Vec<u8>, String), ApiError> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let out = async {
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(MOST_OUTPUT).read_to_end(&mut bytes).await?;
        }
        Ok::<_, std::io::Error>(bytes)
    };
    let (bytes, message) = futures_util::future::join(out, message(stderr)).await;
    let status = child.wait().await;
    let failed = |error: std::io::Error| ApiError::ours(format!("can't read what the worker says: {error}"));
    Ok((wt_sys::process::exit_code(status.map_err(failed)?), bytes.map_err(failed)?, message))
}

/// The beginning of what a process says on its standard error; the rest is read and forgotten.
pub(crate) async fn message(stderr: Option<tokio::process::ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut bytes = Vec::new();
    let _ = (&mut stderr).take(MOST_STDERR).read_to_end(&mut bytes).await;
    let mut rest = [0; 4096];
    while matches!(stderr.read(&mut rest).await, Ok(n) if n > 0) {}
    String::from_utf8_lossy(&bytes).into_owned()
}
