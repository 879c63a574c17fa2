use crate::protocol::{DESCRIBE, Description};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_sys::process;
use wt_trial::Cancel;

/// How long an adapter may take to end when it shall: on a loaded machine it may wait that long for its device to go.
pub(crate) const PARTING: Duration = Duration::from_secs(5);
/// A line of an adapter is at most so long.
const LONGEST_LINE: usize = 64 * 1024;
/// The latest that a wait returns to look whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// What an adapter's program says of itself, if it says it in time.
pub(crate) fn describe(program: &Path) -> Option<Description> {
    let mut command = Command::new(program);
    command.arg(DESCRIBE).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    process::die_with_parent(&mut command);
    command.process_group(0);
    let mut child = command.spawn().ok()?;
    let line = child.stdout.take().and_then(|stdout| Lines::of(stdout).next(PARTING).ok());
    let _ = process::end_group(&mut child);
    serde_json::from_str(&line?).ok()
}

/// Why there is no line of an adapter's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingLine {
    /// None came in time.
    Late,
    /// It has closed its output, as those do who end.
    Closed,
    /// What came is no line, or an absurd one.
    Absurd,
}

/// Lines from an adapter.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    stdout: R,
    buffer: Vec<u8>,
}

impl<R: Read + AsFd> Lines<R> {
    pub(crate) fn of(stdout: R) -> Self {
        Self { stdout, buffer: Vec::new() }
    }

    /// The next line, if it comes in time, and before the user wants to stop.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn next_until(&mut self, patience: Duration, cancel: &Cancel) -> Result<String, MissingLine> {
        let limit = monotonic_ns() + patience.as_nanos() as u64;
        loop {
            let left = Duration::from_nanos(limit.saturating_sub(monotonic_ns()));
            match self.next(left.min(GLANCE)) {
                Err(MissingLine::Late) if !left.is_zero() && !cancel.is_cancelled() => {}
                other => return other,
            }
        }
    }

    /// The next line, if it comes in time and isn't absurd.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn next(&mut self, patience: Duration) -> Result<String, MissingLine> {
        let limit = monotonic_ns() + patience.as_nanos() as u64;
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return String::from_utf8(line).map_err(|_| MissingLine::Absurd);
            }
            let left = Duration::from_nanos(limit.saturating_sub(monotonic_ns()));
            if self.buffer.len() > LONGEST_LINE {
                return Err(MissingLine::Absurd);
            }
            if left.is_zero() {
                return Err(MissingLine::Late);
            }
            let ready = wait_readable(&[self.stdout.as_fd()], Some(left)).map_err(|_| MissingLine::Closed)?;
            if ready == 0 {
                continue;
            }
            let mut piece = [0; 4096];
            match self.stdout.read(&mut piece) {
                Ok(0) | Err(_) => return Err(MissingLine::Closed),
                Ok(n) => self.buffer.extend_from_slice(&piece[..n]),
            }
        }
    }
}
