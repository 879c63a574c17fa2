//! One experiment in a process of its own: the agent stays small, and what ends the one doesn't end the other.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use wt_problem::Problem;
use wt_tune::TuneRequest;

/// The most of a failure that is read.
const LONGEST: u64 = 1 << 16;

/// An experiment that runs.
#[derive(Debug)]
pub(crate) struct Measuring {
    child: Child,
    said: Option<JoinHandle<String>>,
    failed: Option<JoinHandle<String>>,
}

impl Measuring {
    /// Starts it; it ends with us, whatever ends us.
    ///
    /// # Errors
    /// A [`Problem`] where no process can be made.
    pub(crate) fn start(request: &TuneRequest) -> Result<Self, Problem> {
        let failed = |error: std::io::Error| Problem::environment(format!("no experiment can be started: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        wt_sys::process::die_with_parent(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let text = json!({"operation": "tune", "request": request}).to_string();
        if let Some(mut input) = child.stdin.take() {
            // One that is gone already says why by itself.
            let _ = input.write_all(text.as_bytes());
        }
        let said = child.stdout.take().map(|out| {
            std::thread::spawn(move || {
                let mut last = String::new();
                BufReader::new(out).lines().map_while(Result::ok).for_each(|line| {
                    if note_of(&line).is_some() || !line.contains("\"event\"") {
                        last = line;
                    }
                });
                last
            })
        });
        let failed = child.stderr.take().map(|err| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = err.take(LONGEST).read_to_string(&mut text);
                text
            })
        });
        Ok(Self { child, said, failed })
    }

    /// Whether it has ended, after waiting so long at most; its exit code, less than 0 for the signal that killed it.
    pub(crate) fn ended(&mut self, within: Duration) -> Option<i32> {
        let _ = wt_sys::poll::wait_readable(&[], Some(within));
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.code().or(status.signal().map(|signal| -signal)).unwrap_or(255)),
            Err(_) => Some(255),
        }
    }

    /// Asks it to end with what it has.
    pub(crate) fn interrupt(&self) {
        const SIGINT: i32 = 2;
        // One that is gone needs no signal.
        let _ = wt_sys::process::signal(self.child.id(), SIGINT);
    }

    /// Why it failed, once it has ended.
    pub(crate) fn why(&mut self) -> String {
        drop(self.said.take().map(JoinHandle::join));
        let text = self.failed.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let problem = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
        let what = problem.as_ref().and_then(|problem| problem["what"].as_str());
        what.or(text.lines().last()).unwrap_or("it ended without a word").to_owned()
    }
}

/// What a line says to people.
fn note_of(line: &str) -> Option<String> {
    let event: Value = serde_json::from_str(line).ok()?;
    event["text"].as_str().map(str::to_owned)
}

impl Drop for Measuring {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
