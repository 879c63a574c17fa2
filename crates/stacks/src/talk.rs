use crate::protocol::{DESCRIBE, Description};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_sys::process;

/// How long an adapter may take to end when it shall: on a loaded machine it may wait that long for its device to go.
pub(crate) const PARTING: Duration = Duration::from_secs(5);
/// A line of an adapter is at most so long.
const LONGEST_LINE: usize = 64 * 1024;

/// What an adapter's program says of itself, if it says it in time.
pub(crate) fn describe(program: &Path) -> Option<Description> {
    let mut command = Command::new(program);
    command.arg(DESCRIBE).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    process::die_with_parent(&mut command);
    let mut child = command.spawn().ok()?;
    let line = child.stdout.take().and_then(|stdout| Lines::of(stdout).next(PARTING));
    let _ = child.kill();
    let _ = child.wait();
    serde_json::from_str(&line?).ok()
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

    /// The next line, if it comes in time and isn't absurd.
    pub(crate) fn next(&mut self, patience: Duration) -> Option<String> {
        let limit = monotonic_ns() + patience.as_nanos() as u64;
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return String::from_utf8(line).ok();
            }
            let left = Duration::from_nanos(limit.saturating_sub(monotonic_ns()));
            if left.is_zero() || self.buffer.len() > LONGEST_LINE {
                return None;
            }
            if wait_readable(&[self.stdout.as_fd()], Some(left)).ok()? == 0 {
                continue;
            }
            let mut piece = [0; 4096];
            match self.stdout.read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.buffer.extend_from_slice(&piece[..n]),
            }
        }
    }
}
