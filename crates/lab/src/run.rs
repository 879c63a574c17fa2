//! Running any program in the lab.
//!
//! The program is a descendant of process 1 of a process namespace, which dies with us: whatever ends this process ends
//! every program in the lab. Process 1 is this very binary, started anew with [`INIT`] as its first argument.

use crate::host::{CLIENT_V4, CLIENT_V6, DEVICE, SERVER_V4, SERVER_V6};
use crate::lab::Lab;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use wt_sys::{SysError, ns, process};

/// The first argument that makes this binary the lab's process 1.
pub const INIT: &str = "__lab-init";

/// What to run, and beside what.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments, run in the client.
    pub argv: Vec<OsString>,
    /// A shell command that runs in the server meanwhile.
    pub server: Option<OsString>,
}

impl Lab {
    /// Runs a program in the client until it ends; its exit code, or 128 + the signal that killed it.
    ///
    /// # Errors
    /// [`SysError`] when it can't be started at all.
    pub fn run_program(&self, program: &Program) -> Result<u8, SysError> {
        let fd = |file: &dyn AsFdDyn| PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.raw()));
        let mut command = Command::new("/proc/self/exe");
        command.arg(INIT).arg(fd(&self.client.ns)).arg(fd(&self.server.ns));
        command.arg(program.server.clone().unwrap_or_default()).arg("--").args(&program.argv);
        process::die_with_parent(&mut command);
        // The terminal's Ctrl-C is for the program; we end when it does.
        let status = self.client.run(|| -> Result<ExitStatus, SysError> {
            process::children_in_new_pid_namespace()?;
            let started = command.status();
            started.map_err(SysError::io("run a program in the lab"))
        })??;
        Ok(code(status))
    }
}

/// A descriptor's number, for a path under /proc.
trait AsFdDyn {
    fn raw(&self) -> i32;
}

impl AsFdDyn for ns::NetNs {
    fn raw(&self) -> i32 {
        self.as_fd().as_raw_fd()
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(255)
}

/// What process 1 of the lab does: prepares mounts, starts the programs, waits for the one in the client.
///
/// Returns the exit code; 126 or 127 as a shell does when the program can't be run.
#[must_use]
pub fn init(mut args: impl Iterator<Item = OsString>) -> u8 {
    let (Some(client), Some(server), Some(beside)) = (args.next(), args.next(), args.next()) else { return 5 };
    let mut argv = args.skip(1);
    let Some(program) = argv.next() else { return 5 };
    match prepare(&PathBuf::from(client), &PathBuf::from(server)) {
        Ok(server_ns) => supervise(&program, argv, &beside, server_ns),
        Err(error) => {
            complain(&format!("can't prepare the lab's file system: {error}"));
            5
        }
    }
}

fn complain(text: &str) {
    use io::Write as _;
    let _ = writeln!(io::stderr().lock(), "windtunnel: {text}");
}

/// The lab's own view of the system: `ip netns exec server …` works, `client` and `server` are known names.
fn prepare(client: &PathBuf, server: &PathBuf) -> Result<File, SysError> {
    let io = |what: &str| SysError::io(what.to_owned());
    let server_ns = File::open(server).map_err(io("open the server's namespace"))?;
    let client_ns = File::open(client).map_err(io("open the client's namespace"))?;
    process::own_mounts()?;
    // These make life easier and none of them is needed: a system that forbids one still runs programs.
    let _ = ns::mount("sysfs", "/sys", Some("sysfs"), 0);
    if ns::mount("tmpfs", "/run", Some("tmpfs"), 0).is_ok() && std::fs::create_dir_all("/run/netns").is_ok() {
        for (name, file) in [("client", &client_ns), ("server", &server_ns)] {
            let target = format!("/run/netns/{name}");
            if File::create(&target).is_ok() {
                let _ = ns::mount(&format!("/proc/thread-self/fd/{}", file.as_raw_fd()), &target, None, MS_BIND);
            }
        }
        let hosts = format!(
            "127.0.0.1 localhost\n::1 localhost\n{CLIENT_V4} client\n{SERVER_V4} server\n{CLIENT_V6} client6\n{SERVER_V6} server6\n"
        );
        if std::fs::write("/run/hosts", hosts).is_ok() {
            let _ = ns::mount("/run/hosts", "/etc/hosts", None, MS_BIND);
        }
    }
    let _ = ns::mount("proc", "/proc", Some("proc"), 0);
    Ok(server_ns)
}

/// `MS_BIND` of mount(2).
const MS_BIND: u64 = 4096;
/// `SIGINT` of signal(7).
const SIGINT: i32 = 2;

fn environment(command: &mut Command) {
    command.env("WT_CLIENT", CLIENT_V4.to_string()).env("WT_SERVER", SERVER_V4.to_string());
    command.env("WT_CLIENT6", CLIENT_V6.to_string()).env("WT_SERVER6", SERVER_V6.to_string());
    command.env("WT_DEVICE", DEVICE);
    // One is root in here, so what only root can use shall be found.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let missing = tools.into_iter().filter(|tool| !std::env::split_paths(&path).any(|known| known == *tool));
    if let Ok(joined) = std::env::join_paths(std::env::split_paths(&path).chain(missing)) {
        command.env("PATH", joined);
    }
    process::default_signals(command);
}

/// Whether there is such a program at all, be it one that we may not run: shells tell the two apart.
fn exists(program: &OsString) -> bool {
    let name = std::path::Path::new(program);
    if name.components().count() > 1 {
        return name.exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).exists())
}

fn supervise(program: &OsString, argv: impl Iterator<Item = OsString>, beside: &OsString, server: File) -> u8 {
    process::ignore_signal(SIGINT);
    if !beside.is_empty() {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(beside);
        environment(&mut command);
        process::in_network(&mut command, server);
        if let Err(error) = command.spawn() {
            complain(&format!("can't run the server's program: {error}"));
            return 127;
        }
    }
    let mut command = Command::new(program);
    command.args(argv);
    environment(&mut command);
    let main = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => {
            complain(&format!("can't run {}: {error}", program.to_string_lossy()));
            return if exists(program) { 126 } else { 127 };
        }
    };
    // As process 1 we also reap whatever the programs leave behind.
    loop {
        match process::wait_any() {
            Ok(Some((pid, code))) if pid == main => return code,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return 5,
        }
    }
}
