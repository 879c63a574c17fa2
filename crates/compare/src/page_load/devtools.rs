//! Chromium over a pipe: messages of the DevTools protocol, each ended by a zero byte.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_problem::{Fault, Problem};
use wt_sys::clock::monotonic_ns;
use wt_sys::{poll, process};
use wt_trial::Cancel;

/// No message of a browser is longer; one that is says nothing that we want.
const LONGEST: usize = 64 << 20;
/// How long a browser may take to start, and to answer a command.
const ANSWERING: Duration = Duration::from_secs(30);

/// How often it is looked whether somebody wants to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A browser of our own with a profile that is forgotten.
///
/// # Source
/// `--remote-debugging-pipe` in content/public/common/content_switches.cc of Chromium: commands on descriptor 3, answers
/// on 4.
pub(super) struct Browser {
    child: Child,
    /// The program, as a shell takes it.
    program: String,
    commands: PipeWriter,
    answers: PipeReader,
    buffer: Vec<u8>,
    number: u64,
    cancel: Cancel,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = process::signal_group(self.child.id(), 9);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts one; nobody waits for it any more once `cancel` says so.
    pub(super) fn start(program: &OsString, options: &[OsString], cancel: &Cancel) -> Result<Self, Problem> {
        let failed = |error: &dyn std::fmt::Display| {
            Problem::environment(format!("can't start {}: {error}", program.to_string_lossy()))
        };
        let profile = tempfile::tempdir().map_err(|error| failed(&error))?;
        let (theirs_in, commands) = std::io::pipe().map_err(|error| failed(&error))?;
        let (answers, theirs_out) = std::io::pipe().map_err(|error| failed(&error))?;
        for end in [theirs_in.as_fd(), theirs_out.as_fd()] {
            process::inherit(&end).map_err(|error| failed(&error))?;
        }
        // A shell gives the descriptors their numbers; by name, since dash knows those below ten alone.
        let (input, output) = (theirs_in.as_raw_fd(), theirs_out.as_raw_fd());
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(format!("exec \"$@\" 3</proc/self/fd/{input} 4>/proc/self/fd/{output}"))
            .arg("sh")
            .arg(program);
        let mut folder = OsString::from("--user-data-dir=");
        folder.push(profile.path());
        command.arg(folder).args([
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-breakpad",
            "--disable-crash-reporter",
            "--disable-component-update",
            "--disable-default-apps",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--disable-gpu",
            "--disable-sync",
            "--mute-audio",
        ]);
        if process::effective_uid() == 0 {
            // Chromium refuses to run as root with a sandbox of its own.
            command.arg("--no-sandbox");
        }
        // Whatever it keeps beside its profile goes with it.
        for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMPDIR"] {
            command.env(variable, profile.path());
        }
        command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        process::die_with_parent(&mut command);
        let child = command.spawn().map_err(|error| failed(&error))?;
        let (buffer, cancel) = (Vec::new(), cancel.clone());
        let program = wt_units::shell_word_of_os(program).into_owned();
        Ok(Self { child, program, commands, answers, buffer, number: 0, cancel, _profile: profile })
    }

    /// What to try when it doesn't work.
    fn hint(&self) -> String {
        format!("see whether it runs by itself: {} --headless --no-sandbox --dump-dom about:blank", self.program)
    }

    /// Sends a command; its number.
    pub(super) fn send(&mut self, session: Option<&str>, method: &str, params: &Value) -> Result<u64, Problem> {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let sent = self.commands.write_all(format!("{message}\0").as_bytes());
        sent.map_err(|error| Problem::environment(format!("the browser doesn't listen: {error}")).hint(self.hint()))?;
        Ok(self.number)
    }

    /// Sends a command and waits for its result; what comes meanwhile is of no interest yet.
    pub(super) fn ask(&mut self, session: Option<&str>, method: &str, params: &Value) -> Result<Value, Problem> {
        let number = self.send(session, method, params)?;
        let end = monotonic_ns() + ANSWERING.as_nanos() as u64;
        while let Some(message) = self.receive(end)? {
            if message["id"] == number {
                return match message["error"]["message"].as_str() {
                    None => Ok(message["result"].clone()),
                    Some(why) => Err(Problem::internal(format!("the browser refuses {method}: {why}"))),
                };
            }
        }
        Err(Problem::environment(format!("the browser doesn't answer {method}")).hint(self.hint()))
    }

    /// The next message; `None` when the time is up.
    pub(super) fn receive(&mut self, end_ns: u64) -> Result<Option<Value>, Problem> {
        let hint = self.hint();
        let gone = || Problem::new(Fault::Environment, "the browser has ended").hint(hint.clone());
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == 0) {
                let message = serde_json::from_slice(&self.buffer[..end]).unwrap_or(Value::Null);
                self.buffer.drain(..=end);
                return Ok(Some(message));
            }
            if self.cancel.is_cancelled() {
                return Err(Problem::stopped("stopped while the browser was waited for"));
            }
            let left = Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()));
            if left.is_zero() {
                return Ok(None);
            }
            let ready = poll::wait_readable(&[self.answers.as_fd()], Some(left.min(LOOK)));
            if ready.map_err(|error| Problem::internal(error.to_string()))? == 0 {
                continue;
            }
            let mut piece = vec![0; 64 << 10];
            let len = self.answers.read(&mut piece).map_err(|_| gone())?;
            if len == 0 || self.buffer.len() + len > LONGEST {
                return Err(gone());
            }
            self.buffer.extend_from_slice(&piece[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_leaves_goes_with_its_profile_and_who_stops_doesnt_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("browser");
        // It says where it would leave files, and nothing else ever.
        let script = "#!/bin/sh\nfor last; do :; done\necho $TMPDIR > $last.new\nmv $last.new $last\nexec sleep 60\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let (said, cancel) = (folder.path().join("said"), Cancel::new());
        let mut browser = Browser::start(&program.into(), &[said.clone().into()], &cancel).unwrap();
        let end = monotonic_ns() + 20_000_000_000;
        while !said.exists() && monotonic_ns() < end {
            assert_eq!(browser.receive(monotonic_ns() + 1_000_000).unwrap(), None);
        }
        let place = std::fs::read_to_string(&said).unwrap();
        assert_eq!(std::path::Path::new(place.trim()), browser._profile.path());
        let own = folder.path().join("browser").display().to_string();
        assert!(browser.hint().contains(&own), "the one that was named: {}", browser.hint());
        cancel.cancel();
        let problem = browser.ask(None, "Browser.getVersion", &json!({})).unwrap_err();
        assert_eq!(problem.fault, Fault::Stopped);
        drop(browser);
        assert!(!std::path::Path::new(place.trim()).exists());
    }
}
