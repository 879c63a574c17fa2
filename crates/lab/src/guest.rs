//! A command on a kernel of its own, in virtual time: User-Mode Linux with time travel.
//!
//! Such a kernel is a program. This very binary is its process 1, sees the files that its user sees outside, and starts the
//! command. The clock stands still while anything computes, and jumps to the next timer when everything waits: what is
//! measured in there depends on no load of the machine outside, and an idle hour takes no time.
//!
//! What this leaves out: more than one processor; terminals and standard input; Ctrl-C inside. Programs that wait by reading
//! the clock again and again make slow progress, since each reading takes some of the virtual time and much of the real one.
//!
//! # Source
//! `time-travel=inf-cpu` of arch/um/kernel/time.c; Documentation/virt/uml/user_mode_linux_howto_v2.rst of Linux.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_sys::poll::wait_readable;
use wt_sys::{SysError, ns, process};

/// The first argument that makes this binary process 1 of a kernel of its own.
pub const GUEST: &str = "__guest-init";
/// Set in there.
const INSIDE: &str = "WINDTUNNEL_GUEST";
/// Memory of such a kernel.
const MEMORY: &str = "mem=768M";
/// How often what the command says is handed on, in there and out here.
const GLANCE: Duration = Duration::from_millis(50);

/// Files by which the two sides talk.
const COMMAND: &str = "command";
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
const EXIT: &str = "exit";
const CONSOLE: &str = "console";

/// Why a command can't be run in virtual time.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// It isn't there, or can't be run.
    #[error("can't run {kernel} as a kernel: {source}")]
    NoKernel {
        /// The file.
        kernel: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else, or was built otherwise.
    #[error("{kernel} is no User-Mode Linux with time travel: {why}")]
    Unfit {
        /// The file.
        kernel: PathBuf,
        /// What is missing.
        why: String,
    },
    /// The folder for what is exchanged.
    #[error("can't use {folder}: {source}")]
    Exchange {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ended before the command did.
    #[error("the kernel ended before the command did; its last words: {last}")]
    Died {
        /// Of its console.
        last: String,
    },
}

/// Whether this process runs on such a kernel.
#[must_use]
pub fn is_guest() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// A User-Mode Linux with time travel.
#[derive(Debug, Clone)]
pub struct VirtualKernel {
    file: PathBuf,
    release: String,
}

impl VirtualKernel {
    /// Looks at a kernel.
    ///
    /// # Errors
    /// [`GuestError::NoKernel`], [`GuestError::Unfit`].
    pub fn open(kernel: &Path) -> Result<Self, GuestError> {
        let file =
            kernel.canonicalize().map_err(|source| GuestError::NoKernel { kernel: kernel.to_owned(), source })?;
        let ask = |option: &str| {
            let mut command = Command::new(&file);
            command.arg(option).stdin(Stdio::null());
            let output = command.output().map_err(|source| GuestError::NoKernel { kernel: file.clone(), source })?;
            Ok::<_, GuestError>(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let unfit = |why: &str| GuestError::Unfit { kernel: file.clone(), why: why.to_owned() };
        // Whatever else this program may be, it is asked nothing but its version before it has said the right thing.
        let release = ask("--version")?.trim().to_owned();
        let looks_right = release.len() < 64
            && release.starts_with(|first: char| first.is_ascii_digit())
            && release.chars().all(|c| c.is_ascii_graphic());
        if !looks_right {
            return Err(unfit("asked for --version it doesn't name a release of Linux"));
        }
        let config = ask("--showconfig")?;
        for (option, what) in [
            ("CONFIG_UML=y", "it isn't User-Mode Linux"),
            ("CONFIG_UML_TIME_TRAVEL_SUPPORT=y", "CONFIG_UML_TIME_TRAVEL_SUPPORT is off"),
            ("CONFIG_HOSTFS=y", "CONFIG_HOSTFS is off"),
            ("CONFIG_NET_NS=y", "CONFIG_NET_NS is off"),
        ] {
            if !config.lines().any(|line| line.trim() == option) {
                return Err(unfit(what));
            }
        }
        Ok(Self { file, release })
    }

    /// Which Linux it is, as uname(2) says it.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Runs this binary on it with these arguments, and hands on what it says; its exit code. `folder` is empty and ours;
    /// `stopped` says whether the user wants no more.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn run(&self, folder: &Path, args: &[OsString], stopped: &dyn Fn() -> bool) -> Result<Option<u8>, GuestError> {
        let unusable = |source| GuestError::Exchange { folder: folder.to_owned(), source };
        let binary = std::env::current_exe().map_err(unusable)?;
        if [folder, &binary, &self.file].iter().any(|path| path.as_os_str().as_bytes().contains(&b' ')) {
            return Err(unusable(io::Error::other("a path with a space can't be named on a kernel's command line")));
        }
        std::fs::write(folder.join(COMMAND), order(&binary, args).map_err(unusable)?).map_err(unusable)?;
        let file =
            |name: &str| OpenOptions::new().read(true).write(true).create(true).truncate(true).open(folder.join(name));
        let console = file(CONSOLE).map_err(unusable)?;
        let mut said = [(file(STDOUT).map_err(unusable)?, false), (file(STDERR).map_err(unusable)?, true)];
        let mut command = Command::new(&self.file);
        command
            .args([MEMORY, "root=none", "rootfstype=hostfs", "rootflags=/", "rw", "time-travel=inf-cpu", "panic=-1"])
            .args(["con=null", "con0=null", "ssl=null", "seccomp=off"])
            .arg(with("uml_dir=", folder.as_os_str()))
            .arg(with("init=", binary.as_os_str()))
            .args(["--", GUEST])
            .arg(folder)
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(console.try_clone().map_err(unusable)?)
            .stderr(console)
            // Ctrl-C is for us: the kernel and everything in it goes at once.
            .process_group(0);
        process::die_with_parent(&mut command);
        let no_kernel = |source| GuestError::NoKernel { kernel: self.file.clone(), source };
        let mut child = RunningKernel(command.spawn().map_err(no_kernel)?);
        loop {
            let ended = child.0.try_wait().map_err(no_kernel)?.is_some();
            for (file, to_stderr) in &mut said {
                hand_on(file, *to_stderr).map_err(unusable)?;
            }
            if ended {
                break;
            }
            if stopped() {
                return Ok(None);
            }
            let _ = wait_readable(&[], Some(GLANCE));
        }
        let code = std::fs::read_to_string(folder.join(EXIT)).ok().and_then(|text| text.trim().parse().ok());
        code.map(Some).ok_or_else(|| GuestError::Died { last: last_words(&folder.join(CONSOLE)) })
    }
}

/// The kernel while it runs: whatever ends us, it ends, too.
struct RunningKernel(Child);

impl Drop for RunningKernel {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = process::signal_group(self.0.id(), 9);
            let _ = self.0.wait();
        }
    }
}

fn with(option: &str, value: &OsStr) -> OsString {
    let mut text = OsString::from(option);
    text.push(value);
    text
}

/// What is to be run: folder, environment, program and arguments, a zero behind each.
fn order(binary: &Path, args: &[OsString]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut add = |part: &OsStr| {
        bytes.extend_from_slice(part.as_bytes());
        bytes.push(0);
    };
    add(std::env::current_dir()?.as_os_str());
    let environment: Vec<OsString> =
        std::env::vars_os().map(|(name, value)| with(&format!("{}=", name.to_string_lossy()), &value)).collect();
    add(OsStr::new(&environment.len().to_string()));
    environment.iter().for_each(|one| add(one));
    add(binary.as_os_str());
    args.iter().for_each(|one| add(one));
    Ok(bytes)
}

/// Passes on what was written since the last time.
fn hand_on(file: &mut File, to_stderr: bool) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let written = if to_stderr {
        io::stderr().lock().write_all(&bytes)
    } else {
        let mut out = io::stdout().lock();
        out.write_all(&bytes).and_then(|()| out.flush())
    };
    // Nobody may listen any more, as after `| head`.
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// The end of the kernel's console, on one line.
fn last_words(console: &Path) -> String {
    let text = std::fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join(" / ")
}

/// What process 1 does: makes the usual mounts, runs the command, says its exit code, switches off. Comes back only where there
/// is no such kernel.
#[must_use]
pub fn guest(mut args: impl Iterator<Item = OsString>) -> u8 {
    let Some(folder) = args.next().map(PathBuf::from).filter(|_| std::process::id() == 1) else { return 5 };
    let code = in_guest(&folder).unwrap_or_else(|error| {
        // The console is all that there is.
        let _ = std::fs::write(folder.join(STDERR), format!("windtunnel: in virtual time: {error}\n"));
        5
    });
    let told = File::create(folder.join(EXIT)).and_then(|mut file| {
        write!(file, "{code}")?;
        file.sync_all()
    });
    let _ = told;
    let _ = process::power_off();
    5
}

fn in_guest(folder: &Path) -> Result<u8, SysError> {
    let failed = |doing: &str| SysError::io(doing.to_owned());
    ns::mount("proc", "/proc", Some("proc"), 0)?;
    for (kind, target) in [("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run")] {
        ns::mount(kind, target, Some(kind), 0)?;
    }
    // None of these is needed by ourselves.
    for (kind, target) in [("devpts", "/dev/pts"), ("tmpfs", "/dev/shm")] {
        let _ = std::fs::create_dir_all(target).map(|()| ns::mount(kind, target, Some(kind), 0));
    }
    let order = std::fs::read(folder.join(COMMAND)).map_err(failed("read what to run"))?;
    let mut parts = order.split(|byte| *byte == 0).map(|part| OsString::from_vec(part.to_vec()));
    let mut next = || parts.next().ok_or_else(|| failed("read what to run")(io::ErrorKind::UnexpectedEof.into()));
    let place = next()?;
    let count = next()?.to_string_lossy().parse::<usize>().unwrap_or(0);
    let environment = (0..count).map(|_| next()).collect::<Result<Vec<_>, _>>()?;
    let program = next()?;
    let mut args: Vec<OsString> = parts.collect();
    // Behind the last zero is nothing.
    args.pop();
    let append = |name: &str| {
        let path = folder.join(name);
        OpenOptions::new().append(true).open(&path).map_err(failed("open what was prepared for output"))
    };
    let (stdout, stderr) = (append(STDOUT)?, append(STDERR)?);
    let mut command = Command::new(&program);
    command.args(&args).current_dir(&place).env_clear().env(INSIDE, "1").stdin(Stdio::null());
    for one in &environment {
        let bytes = one.as_bytes();
        if let Some(at) = bytes.iter().position(|byte| *byte == b'=') {
            command.env(OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]));
        }
    }
    let copies = stdout.try_clone().and_then(|out| Ok((out, stderr.try_clone()?)));
    let (out, err) = copies.map_err(failed("share what was prepared for output"))?;
    let main = command.stdout(out).stderr(err).spawn().map_err(failed("start the command"))?.id();
    // What is written lies in this kernel's memory until somebody asks for it.
    std::thread::spawn(move || {
        loop {
            let _ = wait_readable(&[], Some(Duration::from_secs(1)));
            let _ = (stdout.sync_data(), stderr.sync_data());
        }
    });
    loop {
        match process::wait_any()? {
            Some((pid, code)) if pid == main => return Ok(code),
            Some(_) => {}
            None => return Ok(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_kernel_is_named_and_not_run_any_further() {
        let open = |path: &str| VirtualKernel::open(Path::new(path)).unwrap_err().to_string();
        assert!(open("/nonexistent/linux").contains("/nonexistent/linux"));
        assert!(open("/etc/hostname").contains("can't run"));
        assert!(open("/bin/true").contains("release"), "{}", open("/bin/true"));
        assert!(open("/bin/echo").contains("release"), "it repeats what it is asked: {}", open("/bin/echo"));
    }

    #[test]
    fn only_process_1_becomes_a_guest() {
        assert_eq!(guest(["/tmp".into()].into_iter()), 5);
        assert!(process::power_off().is_err());
    }
}
