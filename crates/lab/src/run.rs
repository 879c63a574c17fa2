//! Running any program in the lab.
//!
//! The program is a descendant of process 1 of a process namespace, which dies with us: whatever ends this process ends
//! every program in the lab. Process 1 is this very binary, started anew with [`INIT`] as its first argument.

use crate::host::DEVICE;
use crate::inside::{self, LabFacts};
use crate::lab::Lab;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use wt_sys::{SysError, ns, process};
use wt_trial::Direction;

/// The first argument that makes this binary the lab's process 1.
pub const INIT: &str = "__lab-init";

/// What follows [`INIT`] to do nothing until a signal comes.
const HOLD: &str = "hold";

/// What to run, and beside what.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments, run in the client.
    pub argv: Vec<OsString>,
    /// A shell command that runs in the server meanwhile.
    pub server: Option<OsString>,
}

impl Program {
    /// Does nothing until a signal ends it, so that others can enter the lab meanwhile.
    #[must_use]
    pub fn nothing(server: Option<OsString>) -> Self {
        Self { argv: ["/proc/self/exe", INIT, HOLD].map(OsString::from).to_vec(), server }
    }
}

impl Lab {
    /// Runs a program in the client until it ends; its exit code, or 128 + the signal that killed it.
    ///
    /// # Errors
    /// [`SysError`] when it can't be started at all.
    pub fn run_program(&self, program: &Program) -> Result<u8, SysError> {
        self.run_program_with(program, |_| {})
    }

    /// As [`Lab::run_program`]; tells the process id of the lab's process 1, as seen from outside, when
    /// that has begun, on a thread that can't start threads.
    ///
    /// # Errors
    /// [`SysError`] when it can't be started at all.
    pub fn run_program_with(&self, program: &Program, started: impl FnOnce(u32) + Send) -> Result<u8, SysError> {
        self.run_program_of(program, "", started)
    }

    /// As [`Lab::run_program_with`], in a lab that `again` makes again, a command line up to the program: programs in it find that in
    /// [`LabFacts`].
    ///
    /// # Errors
    /// [`SysError`] when it can't be started at all.
    pub fn run_program_of(
        &self,
        program: &Program,
        again: &str,
        started: impl FnOnce(u32) + Send,
    ) -> Result<u8, SysError> {
        let facts = LabFacts { command: again.to_owned(), path: self.scenario().facts(Direction::Down) };
        let mut command = Command::new("/proc/self/exe");
        command.arg(INIT).arg(self.hosts().count().to_string());
        for host in self.hosts() {
            let namespace = format!("/proc/{}/fd/{}", std::process::id(), host.ns.as_fd().as_raw_fd());
            command.args([host.name.clone(), host.v4.to_string(), host.v6.to_string(), namespace]);
        }
        command.arg(program.server.clone().unwrap_or_default()).arg("--").args(&program.argv);
        command.env(inside::VARIABLE, facts.to_text());
        process::die_with_parent(&mut command);
        // The terminal's Ctrl-C is for the program; we end when it does.
        let status = self.client.run(|| -> Result<ExitStatus, SysError> {
            process::children_in_new_pid_namespace()?;
            let run = SysError::io("run a program in the lab");
            match command.spawn() {
                Ok(mut child) => {
                    started(child.id());
                    child.wait().map_err(run)
                }
                Err(error) => Err(run(error)),
            }
        })??;
        Ok(process::exit_code(status))
    }

    /// Runs something on a thread in the client, for which the hosts have names.
    ///
    /// # Errors
    /// [`SysError`] when the client is gone or has no room for a mount.
    pub fn run_in_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SysError> {
        let names: String = self.hosts().map(|host| names(&host.name, host.v4, host.v6)).collect();
        self.client.run(|| {
            process::own_mounts()?;
            if ns::mount("tmpfs", "/run", Some("tmpfs"), 0).is_ok() {
                bind_names(&names);
            }
            Ok(work())
        })?
    }
}

/// The lines of a host in hosts(5).
fn names(name: &str, v4: impl std::fmt::Display, v6: impl std::fmt::Display) -> String {
    format!("{v4} {name}\n{v6} {name}6\n")
}

/// Gives the hosts their names, as far as this system lets us mount.
fn bind_names(names: &str) {
    let own = "127.0.0.1 localhost\n::1 localhost\n";
    // Servers ask for the name of the host that they run on, and wait for a DNS server that isn't there.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.split_whitespace().next().map_or_else(String::new, |host| format!("127.0.1.1 {host}\n"));
    if std::fs::write("/run/hosts", format!("{own}{host}{names}")).is_ok() {
        // Containers may come without the file; without a file there is nothing to mount over.
        if !Path::new("/etc/hosts").exists() {
            let _ = an_etc_with_hosts();
        }
        let _ = ns::mount("/run/hosts", "/etc/hosts", None, MS_BIND);
    }
}

/// Lays a directory over /etc that has all that was in it, by way of links, and an empty hosts(5).
fn an_etc_with_hosts() -> io::Result<()> {
    let failed = |error: SysError| io::Error::other(error.to_string());
    let there = Path::new("/run/etc");
    std::fs::create_dir(there)?;
    ns::mount("/etc", "/run/etc", None, MS_BIND | MS_REC).map_err(failed)?;
    let names: Vec<OsString> =
        std::fs::read_dir(there)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    ns::mount("tmpfs", "/etc", Some("tmpfs"), 0).map_err(failed)?;
    for name in names.iter().filter(|name| name.as_os_str() != "hosts") {
        std::os::unix::fs::symlink(there.join(name), Path::new("/etc").join(name))?;
    }
    std::fs::write("/etc/hosts", "")
}

/// What process 1 knows of a host.
struct KnownHost {
    name: String,
    v4: String,
    v6: String,
    namespace: PathBuf,
}

impl KnownHost {
    fn read(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let mut text = || args.next()?.into_string().ok();
        Some(Self { name: text()?, v4: text()?, v6: text()?, namespace: text()?.into() })
    }
}

/// What process 1 of the lab does: prepares mounts, starts the programs, waits for the one in the client.
///
/// Returns the exit code; 126 or 127 as a shell does when the program can't be run.
#[must_use]
pub fn init(mut args: impl Iterator<Item = OsString>) -> u8 {
    let first = args.next();
    if first.as_ref().is_some_and(|first| first == HOLD) {
        process::wait_for_ever();
    }
    let Some(count) = first.and_then(|count| count.to_str()?.parse::<usize>().ok()) else { return 5 };
    let hosts: Vec<KnownHost> = (0..count).map_while(|_| KnownHost::read(&mut args)).collect();
    let Some(beside) = args.next() else { return 5 };
    let mut argv = args.skip(1);
    let Some(program) = argv.next() else { return 5 };
    match prepare(&hosts) {
        Ok(server_ns) => supervise(&program, argv, Beside { command: beside, namespace: server_ns, hosts: &hosts }),
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

/// The lab's own view of the system: `ip netns exec server …` works, the hosts have names. Gives the server's namespace.
fn prepare(hosts: &[KnownHost]) -> Result<File, SysError> {
    let open = |host: &KnownHost| {
        File::open(&host.namespace).map_err(SysError::io(format!("open the namespace of {}", host.name)))
    };
    let namespaces = hosts.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    process::own_mounts()?;
    // These make life easier and none of them is needed: a system that forbids one still runs programs.
    let _ = ns::mount("sysfs", "/sys", Some("sysfs"), 0);
    if ns::mount("tmpfs", "/run", Some("tmpfs"), 0).is_ok() && std::fs::create_dir_all("/run/netns").is_ok() {
        let mut named = String::new();
        for (host, namespace) in hosts.iter().zip(&namespaces) {
            let target = format!("/run/netns/{}", host.name);
            if File::create(&target).is_ok() {
                let _ = ns::mount(&format!("/proc/thread-self/fd/{}", namespace.as_raw_fd()), &target, None, MS_BIND);
            }
            named += &names(&host.name, &host.v4, &host.v6);
        }
        bind_names(&named);
        inside::publish();
    }
    let _ = ns::mount("proc", "/proc", Some("proc"), 0);
    if host_settings_are_ours() {
        close_host_settings()?;
    }
    namespaces.into_iter().next_back().ok_or_else(|| SysError {
        doing: "find the server".to_owned(),
        source: io::Error::from(io::ErrorKind::NotFound),
    })
}

/// Whether root of the lab is root to the files of the host's kernel too: a lab that root made.
fn host_settings_are_ours() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/sys/kernel").is_ok_and(|data| data.uid() == 0)
}

/// Makes settings that would outlive the lab unchangeable: those of the kernel but for the network's, and of devices. This is
/// against mistakes; a program that is after the host can ask for the mounts to be changed back.
fn close_host_settings() -> Result<(), SysError> {
    for kept in ["/proc/sys", "/proc/sys/net"] {
        ns::mount(kept, kept, None, MS_BIND)?;
    }
    for closed in ["/proc/sys", "/sys"] {
        ns::mount("none", closed, None, MS_REMOUNT | MS_BIND | MS_RDONLY)?;
    }
    Ok(())
}

/// What runs in the server meanwhile.
struct Beside<'a> {
    command: OsString,
    namespace: File,
    hosts: &'a [KnownHost],
}

/// `MS_BIND` of mount(2).
const MS_BIND: u64 = 4096;
/// `MS_REC`: with all that is mounted below.
const MS_REC: u64 = 16384;
/// `MS_REMOUNT` and `MS_RDONLY` of mount(2).
const MS_REMOUNT: u64 = 32;
const MS_RDONLY: u64 = 1;
/// `SIGINT` of signal(7).
const SIGINT: i32 = 2;

fn environment(command: &mut Command, hosts: &[KnownHost]) {
    for host in hosts {
        let name = format!("WT_{}", host.name.to_ascii_uppercase().replace('-', "_"));
        command.env(format!("{name}6"), &host.v6).env(name, &host.v4);
    }
    command.env("WT_DEVICE", DEVICE).env_remove(inside::VARIABLE);
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
    let name = Path::new(program);
    if name.components().count() > 1 {
        return name.exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).exists())
}

fn supervise(program: &OsString, argv: impl Iterator<Item = OsString>, beside: Beside<'_>) -> u8 {
    process::ignore_signal(SIGINT);
    if !beside.command.is_empty() {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&beside.command);
        environment(&mut command, beside.hosts);
        process::in_network(&mut command, beside.namespace);
        if let Err(error) = command.spawn() {
            complain(&format!("can't run the server's program: {error}"));
            return 127;
        }
    }
    let mut command = Command::new(program);
    command.args(argv);
    environment(&mut command, beside.hosts);
    let main = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => {
            let (name, is_there) = (program.to_string_lossy(), exists(program));
            let is_searched = Path::new(program).components().count() == 1;
            complain(&match (is_there, is_searched) {
                (false, true) => format!("{name} isn't in PATH: install it, or name it with its folder"),
                _ => format!("can't run {name}: {error}"),
            });
            return if is_there { 126 } else { 127 };
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
