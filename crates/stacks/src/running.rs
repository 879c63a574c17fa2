use crate::adapter::ADAPTER;
use crate::catalogue::{Availability, Choice};
use crate::protocol::{AdapterDone, Arguments, CONNECTED, FAR_END, Ready};
use crate::talk::{Lines, PARTING};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_sys::process::{self, Usage};

/// How long an adapter may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of what it complains of, so much is told.
const MOST_TOLD: usize = 2_000;

/// An adapter's process; ends with this value.
#[derive(Debug)]
pub(crate) struct AdapterProcess {
    child: Child,
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
    pub(crate) fn start(choice: &Choice, arguments: &Arguments) -> Result<Self, String> {
        let (program, first): (OsString, Vec<OsString>) = match choice.stack.built() {
            Availability::In(_) => ("/proc/self/exe".into(), vec![ADAPTER.into(), choice.stack.name.into()]),
            Availability::Program(path) => (path.into(), Vec::new()),
            Availability::Direct | Availability::No(_) => return Err(format!("{} has no adapter", choice.stack.name)),
        };
        let mut command = Command::new(&program);
        command.args(first).args(arguments.to_args());
        Self::begin(command)
    }

    /// Starts the peer of an adapter's connections in another namespace. It dies with this thread.
    ///
    /// # Errors
    /// Why it isn't ready.
    pub(crate) fn far_end(program: &Path, at: SocketAddrV4, namespace: File) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg(FAR_END).arg(at.to_string());
        process::in_network(&mut command, namespace);
        Self::begin(command).map_err(|why| format!("its peer: {why}"))
    }

    fn begin(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        process::die_with_parent(&mut command);
        let program = command.get_program().to_owned();
        let failed = |error: io::Error| format!("can't start {}: {error}", program.to_string_lossy());
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or("the adapter has no output")?;
        let mut lines = Lines::of(stdout);
        let ready = lines.next(PATIENCE).and_then(|line| serde_json::from_str::<Ready>(&line).ok());
        match ready.filter(|ready| ready.ready) {
            Some(ready) => {
                let at_start = process::usage_with_children(child.id()).unwrap_or_default();
                Ok(Self { child, lines, ready, at_start })
            }
            None => {
                let _ = child.kill();
                let _ = child.wait();
                let why = complaint(&mut child);
                Err(if why.is_empty() { "the adapter didn't get ready within 10 s".to_owned() } else { why })
            }
        }
    }

    /// What it has used.
    pub(crate) fn usage(&self) -> Option<Usage> {
        process::usage_with_children(self.child.id())
    }

    /// Ends it, and says how that went.
    pub(crate) fn end(mut self) -> AdapterEnd {
        let usage = self.usage();
        // Before it is told to end: whoever has ended by now wasn't asked to.
        let early = self.child.try_wait().ok().flatten();
        drop(self.child.stdin.take());
        let done = self.lines.next(PARTING).and_then(|line| serde_json::from_str::<AdapterDone>(&line).ok());
        // A process that is on its way out writes no last line, and has a status a moment later.
        let late = if done.is_none() { self.exit_within(PARTING) } else { None };
        let trouble = match (early.or(late), &done) {
            (_, Some(_)) => None,
            (Some(status), None) => Some(match (status.signal(), status.code().unwrap_or(0)) {
                (Some(signal), _) => format!("the adapter crashed: signal {signal}"),
                // As a shell tells of a program that it ran.
                (None, code @ 129..) => format!("the adapter crashed: signal {}", code - 128),
                (None, code) => format!("the adapter ended by itself with code {code}"),
            }),
            (None, None) => Some("the adapter didn't end when it was told to: it hangs".to_owned()),
        };
        let _ = self.child.kill();
        let _ = self.child.wait();
        let told = complaint(&mut self.child);
        let trouble = trouble.map(|what| if told.is_empty() { what } else { format!("{what}: {told}") });
        AdapterEnd { usage, done, trouble }
    }
}

impl AdapterProcess {
    /// How it ended, if it does in time.
    fn exit_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let limit = monotonic_ns() + patience.as_nanos() as u64;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if monotonic_ns() < limit => {
                    // Waits for nothing but time.
                    let _ = wait_readable(&[], Some(Duration::from_millis(10)));
                }
                _ => return None,
            }
        }
    }
}

impl Drop for AdapterProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it complained of, when it has ended.
fn complaint(child: &mut Child) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(MOST_TOLD as u64).read_to_end(&mut text);
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
