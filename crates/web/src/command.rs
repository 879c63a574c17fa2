use crate::error::ApiError;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::IgnoredAny;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// So many short commands run at once; others wait.
const AT_ONCE: usize = 4;
/// A short command that takes longer is ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than this no command prints.
const MOST_OUTPUT: u64 = 64 << 20;
/// More than this of a message isn't kept.
const MOST_STDERR: u64 = 64 << 10;

/// The program whose commands are run: ourselves.
#[derive(Debug)]
pub(crate) struct Program {
    exe: PathBuf,
    turns: Semaphore,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Answer(Vec<u8>);

impl Program {
    pub(crate) fn new(exe: PathBuf) -> Self {
        Self { exe, turns: Semaphore::new(AT_ONCE) }
    }

    /// The file of this very program, as an argument.
    pub(crate) fn exe(&self) -> String {
        self.exe.display().to_string()
    }

    /// Starts a command of ours, or another program, tied to this process: whatever ends us ends it.
    ///
    /// # Errors
    /// [`ApiError`] if it can't be started.
    pub(crate) fn start(&self, program: Option<&str>, args: &[String]) -> Result<Child, ApiError> {
        let program = program.map_or_else(|| self.exe.clone(), PathBuf::from);
        let mut command = std::process::Command::new(&program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What a terminal sends is for us, who then tell it once.
        command.process_group(0);
        wt_sys::process::die_with_parent(&mut command);
        let started = Command::from(command).kill_on_drop(true).spawn();
        started.map_err(|error| ApiError::ours(format!("can't start {}: {error}", program.display())))
    }

    /// Runs a command to its end and hands on the object it printed. Dropping the future ends the command.
    ///
    /// # Errors
    /// [`ApiError`] with what the command said, if its exit code is neither 0 nor 1.
    pub(crate) async fn ask(&self, args: &[String]) -> Result<Answer, ApiError> {
        let _turn = self.turns.acquire().await.map_err(|_| ApiError::ours("the server is ending"))?;
        let mut child = self.start(None, args)?;
        let told = tokio::time::timeout(PATIENCE, finish(&mut child)).await;
        let (code, stdout, stderr) = told.map_err(|_| {
            ApiError::new(StatusCode::REQUEST_TIMEOUT, format!("the command took longer than {} s", PATIENCE.as_secs()))
        })??;
        if code > 1 {
            return Err(ApiError::of_exit(code, &stderr));
        }
        if serde_json::from_slice::<IgnoredAny>(&stdout).is_err() {
            return Err(ApiError::ours("the command printed something else than one JSON object"));
        }
        Ok(Answer(stdout))
    }
}

/// Reads all that a command says.
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
    let failed = |error: std::io::Error| ApiError::ours(format!("can't read what the command says: {error}"));
    Ok((exit_code(status.map_err(failed)?), bytes.map_err(failed)?, message))
}

/// The beginning of what a command says on its standard error; the rest is read and forgotten.
pub(crate) async fn message(stderr: Option<tokio::process::ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut bytes = Vec::new();
    let _ = (&mut stderr).take(MOST_STDERR).read_to_end(&mut bytes).await;
    let mut rest = [0; 4096];
    while matches!(stderr.read(&mut rest).await, Ok(n) if n > 0) {}
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The exit code as shells have it: a signal is 128 and its number.
pub(crate) fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}
