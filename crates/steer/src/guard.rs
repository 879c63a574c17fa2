//! A process of its own that waits for the end of the experiment's process, however that ends, and removes what it put into the kernel.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::connections::clear_routes;
use wt_sys::guard::{StandardStream, detach, silence};
use wt_sys::poll;

const READY: &[u8] = b"ready\n";
/// How long it may take until it is ready.
const START: Duration = Duration::from_secs(20);

/// The guard of an experiment; dropped, it does its work and ends.
#[derive(Debug)]
pub(crate) struct RouteGuard(Child);

impl RouteGuard {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// A [`Problem`] that says why it can't be started.
    pub(crate) fn start() -> Result<Self, Problem> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["traffic", "guard"]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        detach(&mut command);
        let failed = |why: String| Problem::environment(format!("nobody guards the routes: {why}"));
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let mut said = [0; READY.len()];
        let ready = child.stdout.take().is_some_and(|mut output| {
            matches!(poll::wait_readable(&[output.as_fd()], Some(START)), Ok(1)) && output.read_exact(&mut said).is_ok()
        });
        let guard = Self(child);
        if ready && said == READY { Ok(guard) } else { Err(failed("it didn't say that it is ready".to_owned())) }
    }

    /// Whether it is still there.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for RouteGuard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Waits until standard input ends, and removes the rules and routes of an experiment; for `windtunnel traffic guard`.
///
/// # Errors
/// A [`Problem`] where the kernel refuses.
pub fn guard() -> Result<(), Problem> {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(READY).and_then(|()| output.flush());
    drop(output);
    let _ = silence(StandardStream::Output);
    // Nothing is ever written: the end of the pipe is the end of the process that holds it.
    let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
    clear_routes().map_err(|error| Problem::environment(error.to_string()))
}
