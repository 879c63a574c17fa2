use crate::adapter::ADAPTER;
use crate::catalogue::{Availability, Choice};
use crate::protocol::{AdapterDone, Arguments, CONNECTED, FAR_END, Ready, VERSION};
use crate::talk::{Lines, MissingLine, PARTING, describe};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_sys::process::{self, Usage};
use wt_trial::Cancel;

/// How long an adapter may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of what it complains of, so much is told.
const MOST_TOLD: usize = 2_000;
/// Of a line that isn't what it should be, so much is told.
const MOST_OF_LINE: usize = 80;
/// What it complained of is there when it has ended; somebody whom it started may hold its output open without end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// An adapter's process, which leads a group of its own; that ends with this value.
#[derive(Debug)]
pub(crate) struct AdapterProcess {
    child: Child,
    /// What it ended with, when it was ended.
    status: Option<ExitStatus>,
    lines: Lines<ChildStdout>,
    /// What it said when it was ready.
    pub(crate) ready: Ready,
    /// What it had used by then.
    pub(crate) at_start: Usage,
}

/// What became of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdapterEnd {
    /// What it had used at the end of its work.
    pub(crate) usage: Option<Usage>,
    /// Its last line.
    pub(crate) done: Option<AdapterDone>,
    /// Why that isn't how it should have ended, if it isn't.
    pub(crate) trouble: Option<String>,
}

impl AdapterProcess {
    /// Starts an adapter in this thread's network namespace. It dies with this thread.
    ///
    /// # Errors
    /// Why it isn't ready.
    pub(crate) fn start(choice: &Choice, arguments: &Arguments, cancel: &Cancel) -> Result<Self, String> {
        let (program, first): (OsString, Vec<OsString>) = match choice.stack.built() {
            Availability::In(_) => ("/proc/self/exe".into(), vec![ADAPTER.into(), choice.stack.name.into()]),
            Availability::Program(path) => (path.into(), Vec::new()),
            Availability::Direct | Availability::No(_) => return Err(format!("{} has no adapter", choice.stack.name)),
        };
        let mut command = Command::new(&program);
        command.args(first).args(arguments.to_args());
        Self::begin(command, PATIENCE, cancel).map_err(|why| match choice.stack.built() {
            Availability::Program(path) if !cancel.is_cancelled() => why + &other_version(&path),
            _ => why,
        })
    }

    /// Starts the peer of an adapter's connections in another namespace. It dies with this thread.
    ///
    /// # Errors
    /// Why it isn't ready.
    pub(crate) fn far_end(program: &Path, at: SocketAddrV4, namespace: File, cancel: &Cancel) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg(FAR_END).arg(at.to_string());
        process::in_network(&mut command, namespace);
        Self::begin(command, PATIENCE, cancel).map_err(|why| format!("its peer: {why}"))
    }

    /// Starts it, and waits until it is ready, but not for longer than this.
    fn begin(mut command: Command, patience: Duration, cancel: &Cancel) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        process::die_with_parent(&mut command);
        // So that what it starts ends with it, too.
        command.process_group(0);
        let program = command.get_program().to_owned();
        let failed = |error: io::Error| format!("can't start {}: {error}", program.to_string_lossy());
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or("the adapter has no output")?;
        let mut lines = Lines::of(stdout);
        let first = lines.next_until(patience, cancel);
        let ready = first.as_ref().ok().and_then(|line| serde_json::from_str::<Ready>(line).ok());
        if let Some(ready) = ready.filter(|ready| ready.ready) {
            let at_start = process::usage_with_children(child.id()).unwrap_or_default();
            return Ok(Self { child, status: None, lines, ready, at_start });
        }
        let ended = match first {
            // Who closes its output is on its way out.
            Err(MissingLine::Closed) => ends_within(&child, PARTING),
            // Somebody whom it started may hold its output open.
            Err(MissingLine::Late) => process::has_ended(&child),
            _ => false,
        };
        let status = process::end_group(&mut child).ok().filter(|_| ended);
        let complaint = complaint(&mut child);
        if !complaint.is_empty() {
            return Err(complaint);
        }
        Err(match (first, status) {
            (_, Some(status)) => early_end(status),
            (Err(MissingLine::Late), None) if !cancel.is_cancelled() => {
                format!("the adapter didn't get ready within {} s", patience.as_secs_f64())
            }
            (Err(MissingLine::Late), None) => "stopped before the adapter was ready".to_owned(),
            (Err(MissingLine::Closed), None) => "the adapter closed its output before it was ready".to_owned(),
            (Err(MissingLine::Absurd), None) => "the adapter's first line is no text, or has no end".to_owned(),
            (Ok(line), None) => {
                let start: String = line.trim_end().chars().take(MOST_OF_LINE).collect();
                format!("the adapter's first line doesn't say that it is ready: {start:?}")
            }
        })
    }

    /// What it has used.
    pub(crate) fn usage(&self) -> Option<Usage> {
        process::usage_with_children(self.child.id())
    }

    /// Ends it, and says how that went.
    pub(crate) fn end(mut self) -> AdapterEnd {
        let usage = self.usage();
        // Before it is told to end: whoever has ended by now wasn't asked to.
        let early = process::has_ended(&self.child);
        drop(self.child.stdin.take());
        let done = self.lines.next(PARTING).ok().and_then(|line| serde_json::from_str::<AdapterDone>(&line).ok());
        // A process that is on its way out writes no last line, and has a status a moment later.
        let ended = early || (done.is_none() && ends_within(&self.child, PARTING));
        let trouble = match (self.stop().filter(|_| ended), &done) {
            (_, Some(_)) => None,
            (Some(status), None) => Some(early_end(status)),
            (None, None) => Some("the adapter didn't end when it was told to: it hangs".to_owned()),
        };
        let told = complaint(&mut self.child);
        let trouble = trouble.map(|what| if told.is_empty() { what } else { format!("{what}: {told}") });
        AdapterEnd { usage, done, trouble }
    }
}

impl AdapterProcess {
    /// Ends it and all that it started, and says what it ended with, which may have been before.
    fn stop(&mut self) -> Option<ExitStatus> {
        // Once: after that its id may be somebody else's.
        if self.status.is_none() {
            self.status = process::end_group(&mut self.child).ok();
        }
        self.status
    }
}

impl Drop for AdapterProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether it ends in time; it may still be waited for.
fn ends_within(child: &Child, patience: Duration) -> bool {
    let limit = monotonic_ns() + patience.as_nanos() as u64;
    while !process::has_ended(child) {
        if monotonic_ns() >= limit {
            return false;
        }
        // Waits for nothing but time.
        let _ = wait_readable(&[], Some(Duration::from_millis(10)));
    }
    true
}

/// How an adapter ended that nobody told to.
fn early_end(status: ExitStatus) -> String {
    match (status.signal(), status.code().unwrap_or(0)) {
        (Some(signal), _) => format!("the adapter crashed: signal {signal}"),
        // As a shell tells of a program that it ran.
        (None, code @ 129..) => format!("the adapter crashed: signal {}", code - 128),
        (None, code) => format!("the adapter ended by itself with code {code}"),
    }
}

/// What is to be added where an adapter says that it speaks another version of the protocol.
fn other_version(program: &Path) -> String {
    match describe(program).map(|described| described.protocol) {
        Some(other) if other != VERSION => {
            format!(" (it speaks version {other} of the protocol, this program {VERSION})")
        }
        _ => String::new(),
    }
}

/// What it complained of, when it has ended.
fn complaint(child: &mut Child) -> String {
    let mut text = Vec::new();
    let limit = monotonic_ns() + LAST_WORDS.as_nanos() as u64;
    if let Some(mut stderr) = child.stderr.take() {
        while text.len() < MOST_TOLD {
            let left = Duration::from_nanos(limit.saturating_sub(monotonic_ns()));
            let mut piece = [0; MOST_TOLD];
            match wait_readable(&[stderr.as_fd()], Some(left)).map(|ready| ready != 0) {
                Ok(true) => match stderr.read(&mut piece[..MOST_TOLD - text.len()]) {
                    Ok(read) if read > 0 => text.extend_from_slice(&piece[..read]),
                    _ => break,
                },
                _ => break,
            }
        }
    }
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// Opens a connection of the adapter's stack: the local socket through which its bytes go, and how long the handshake took.
///
/// # Errors
/// Why there is none.
pub(crate) fn connect(path: &Path, patience: Duration) -> io::Result<(OwnedFd, Duration)> {
    let begun = monotonic_ns();
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(1) if byte[0] == CONNECTED => {}
        Ok(_) => return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the stack can't connect")),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the stack doesn't connect"));
        }
        Err(error) => return Err(error),
    }
    stream.set_read_timeout(None)?;
    Ok((stream.into(), Duration::from_nanos(monotonic_ns() - begun)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(300);

    /// What is said of an adapter that does this, and how long it takes until that is said.
    fn begun(script: &str, patience: Duration, cancel: &Cancel) -> (Result<AdapterProcess, String>, Duration) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let begun = monotonic_ns();
        let adapter = AdapterProcess::begin(command, patience, cancel);
        (adapter, Duration::from_nanos(monotonic_ns() - begun))
    }

    /// What is said of an adapter that isn't ready in time.
    fn refused(script: &str, patience: Duration) -> String {
        begun(script, patience, &Cancel::new()).0.unwrap_err()
    }

    #[test]
    fn what_a_wrapper_started_neither_keeps_us_nor_stays() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        // All of them hold the pipe, and the adapter's output of errors.
        command.args(["-c", "sh -c 'sleep 300; true'; true"]);
        process::inherit(&writer).unwrap();
        let begun = monotonic_ns();
        let why = AdapterProcess::begin(command, SOON, &Cancel::new()).unwrap_err();
        assert_eq!(why, "the adapter didn't get ready within 0.3 s");
        drop(writer);
        reader.read_to_end(&mut Vec::new()).unwrap();
        assert!(monotonic_ns() - begun < 60_000_000_000);
    }

    #[test]
    fn an_adapter_that_isnt_ready_is_told_by_what_it_did() {
        let minute = Duration::from_secs(60);
        assert_eq!(refused("exit 7", minute), "the adapter ended by itself with code 7");
        assert_eq!(refused("kill -SEGV $$", minute), "the adapter crashed: signal 11");
        assert_eq!(refused("echo no device >&2; exit 7", minute), "no device");
        let other = refused("echo '{\"protocol\":2}'; exec sleep 300", minute);
        assert_eq!(other, r#"the adapter's first line doesn't say that it is ready: "{\"protocol\":2}""#);
    }

    #[test]
    fn who_stops_waits_for_no_adapter() {
        let cancel = Cancel::new();
        cancel.cancel();
        let (stopped, took) = begun("exec sleep 300", Duration::from_secs(60), &cancel);
        assert_eq!(stopped.unwrap_err(), "stopped before the adapter was ready");
        assert!(took < Duration::from_secs(30), "{took:?}");
    }

    #[test]
    fn an_adapter_that_ends_by_itself_is_told_by_its_last_words_whoever_else_holds_their_pipe() {
        let ready = r#"echo '{"ready":true,"name":"x","version":"0"}'"#;
        let script = format!("{ready}; sleep 300 >&2 & echo alas >&2; exit 7");
        let (adapter, _) = begun(&script, Duration::from_secs(60), &Cancel::new());
        let trouble = adapter.unwrap().end().trouble;
        assert_eq!(trouble.as_deref(), Some("the adapter ended by itself with code 7: alas"));
    }
}
