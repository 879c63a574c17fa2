use crate::error::check;
use crate::{SysError, SysResult};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};

/// Raises the number of descriptors that this process may have to what it may raise it to; how many that is.
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `RLIMIT_NOFILE`, getrlimit(2).
pub fn raise_descriptor_limit() -> SysResult<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to a live struct.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, || "read RLIMIT_NOFILE".to_owned())?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: reads a live struct.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, || "raise RLIMIT_NOFILE".to_owned())?;
    Ok(limit.rlim_cur)
}

/// Who a process is, so that another one that got the same id later isn't taken for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// When it began, in clock ticks since boot.
    pub start_ticks: u64,
    /// Which boot that was.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        Self { pid, start_ticks: start_ticks(pid).unwrap_or(0), boot_id: crate::clock::boot_id() }
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.boot_id == crate::clock::boot_id() && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// Three words: process, start, boot.
impl std::fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.pid, self.start_ticks, self.boot_id)
    }
}

impl std::str::FromStr for ProcessIdentity {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a process is named by three words: its number, its start and its boot";
        let mut words = text.split_whitespace();
        let mut word = || words.next().ok_or(FORM);
        let (pid, start) = (word()?.parse().map_err(|_| FORM)?, word()?.parse().map_err(|_| FORM)?);
        Ok(Self { pid, start_ticks: start, boot_id: word()?.to_owned() })
    }
}

/// Field 22 of /proc/PID/stat, counted after the name in parentheses, which may hold anything; `None` for a process that
/// has ended, be it that its parent hasn't noticed yet (states Z and X).
///
/// # Source
/// proc_pid_stat(5).
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// This thread's id.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: gettid takes and touches nothing.
    u32::try_from(unsafe { libc::gettid() }).unwrap_or(0)
}

/// CPU time of a thread of this process, and how long it waited for a core while it could have run, nanoseconds; `None`
/// if there is no such thread, or the kernel doesn't count (CONFIG_SCHED_INFO).
///
/// # Source
/// Documentation/scheduler/sched-stats.rst of Linux, /proc/PID/schedstat.
#[must_use]
pub fn thread_times(thread: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time of all its threads that live, nanoseconds.
    pub cpu_ns: u64,
    /// The most memory that it ever had, bytes.
    pub peak_bytes: u64,
}

/// What a process of ours has used; `None` when it has ended, or the kernel doesn't count.
///
/// # Source
/// Documentation/scheduler/sched-stats.rst of Linux, /proc/PID/schedstat; `VmHWM` of proc_pid_status(5). The peak that
/// wait4(2) tells isn't used: it begins with that of the process which started this one.
#[must_use]
pub fn usage(pid: u32) -> Option<Usage> {
    let mut cpu_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread may end meanwhile.
        let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) else { continue };
        cpu_ns += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Usage { cpu_ns, peak_bytes: kib * 1024 })
}

/// As [`usage`], with all that the process started and that lives: their CPU time and their peaks in sum.
///
/// # Source
/// proc_pid_task(5), `children`; a kernel without CONFIG_PROC_CHILDREN tells of the process alone.
#[must_use]
pub fn usage_with_children(pid: u32) -> Option<Usage> {
    let mut sum = usage(pid)?;
    for used in descendants(pid).into_iter().filter_map(usage) {
        sum.cpu_ns += used.cpu_ns;
        sum.peak_bytes += used.peak_bytes;
    }
    Some(sum)
}

/// Ends a process that we started, and all that it started in turn and that lives, at once.
///
/// # Source
/// As of [`usage_with_children`].
pub fn kill_with_children(pid: u32) {
    for one in std::iter::once(pid).chain(descendants(pid)) {
        // It may have ended meanwhile.
        let _ = signal(one, libc::SIGKILL);
    }
}

/// Ends at once a process that leads a group of its own and was waited for by nobody yet, with all of that group and all that they
/// started; takes what the process ended with, which may have been before.
///
/// # Errors
/// [`SysError`] when somebody has waited for it.
pub fn end_group(child: &mut Child) -> SysResult<ExitStatus> {
    // As long as nobody has waited for it, its id and that of its group are nobody else's.
    kill_with_children(child.id());
    let _ = signal_group(child.id(), libc::SIGKILL);
    child.wait().map_err(SysError::io("wait for a process that was ended"))
}

/// Whether a process that we started has ended. It may still be waited for, so that its id stays its own.
///
/// # Source
/// `WNOWAIT`, waitid(2): where nothing has ended, the id in the answer stays 0.
#[must_use]
pub fn has_ended(child: &Child) -> bool {
    // SAFETY: zeros are a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is a valid siginfo_t to write to.
    let failed = unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut info, flags) } != 0;
    // SAFETY: waitid has filled the fields of SIGCHLD, or left zeros.
    failed || unsafe { info.si_pid() } != 0
}

/// So many at most that a process which starts others without end doesn't keep us for ever.
const MOST_CHILDREN: usize = 1_000;

/// What a process started and that lives, with what that started.
fn descendants(pid: u32) -> Vec<u32> {
    let (mut found, mut waiting) = (Vec::new(), children(pid));
    while let Some(child) = waiting.pop().filter(|_| found.len() < MOST_CHILDREN) {
        found.push(child);
        waiting.extend(children(child));
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

/// How long a hypervisor ran something else on any core of this machine that had work, since boot, nanoseconds; zero where
/// nobody counts it.
///
/// # Source
/// proc_stat(5), the eighth figure of the first line.
#[must_use]
pub fn stolen_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok()).unwrap_or(0);
    // SAFETY: sysconf takes a number.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    ticks.saturating_mul(1_000_000_000 / per_second)
}

/// Whether this thread may use a capability now.
///
/// # Source
/// capabilities(7); the numbers are those of linux/capability.h.
#[must_use]
pub fn has_capability(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits >> number & 1 == 1)
}

/// `CAP_NET_ADMIN`, for [`has_capability`].
pub const CAP_NET_ADMIN: u32 = 12;
/// `CAP_NET_RAW`, for [`has_capability`].
pub const CAP_NET_RAW: u32 = 13;
/// `CAP_SYS_ADMIN`, for [`has_capability`].
pub const CAP_SYS_ADMIN: u32 = 21;

/// `CAP_PERFMON`, for [`has_capability`].
pub const CAP_PERFMON: u32 = 38;
/// `CAP_BPF`, for [`has_capability`].
pub const CAP_BPF: u32 = 39;

/// How many descriptors this process may have.
#[must_use]
pub fn descriptor_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes into a live rlimit. It doesn't fail for a limit that there is.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// Gives memory of large blocks back as soon as they are freed, and lets threads share what small ones need: for a process that stays
/// and now and then has an answer of megabytes. Changes nothing with other C libraries than glibc.
///
/// # Source
/// mallopt(3): glibc raises the threshold of `mmap` up to 32 MiB by itself, unless it is set.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    for (parameter, value) in
        [(libc::M_MMAP_THRESHOLD, 128 << 10), (libc::M_TRIM_THRESHOLD, 1 << 20), (libc::M_ARENA_MAX, 2)]
    {
        // SAFETY: takes numbers, and guards its state by itself.
        unsafe { libc::mallopt(parameter, value) };
    }
}

/// The effective user id.
#[must_use]
pub fn effective_uid() -> u32 {
    // SAFETY: only reads credentials.
    unsafe { libc::geteuid() }
}

/// Whether this process, and those that it starts from now on, may have huge pages where they ask for them.
///
/// # Errors
/// [`SysError`] on kernels without them.
///
/// # Source
/// `PR_SET_THP_DISABLE`, prctl(2).
pub fn allow_huge_pages(allow: bool) -> SysResult<()> {
    // SAFETY: prctl with numbers only.
    let done = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(!allow), 0, 0, 0) };
    check(done, || "switch huge pages".to_owned()).map(drop)
}

/// Makes the command die with the thread that starts it, whatever kills that.
///
/// # Source
/// `PR_SET_PDEATHSIG`, prctl(2).
pub fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: prctl with numbers; async-signal-safe.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // The parent may have died before the call. Across a pid namespace the parent is unknown: 0.
        // SAFETY: getppid takes and touches nothing.
        let now = unsafe { libc::getppid() };
        if now != 0 && u32::try_from(now) != Ok(parent) {
            Err(std::io::Error::from_raw_os_error(libc::ESRCH))
        } else {
            Ok(())
        }
    };
    // SAFETY: the closure only calls prctl and getppid, which are async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(tie) };
}

/// The next child of this thread becomes process 1 of a new pid namespace: when it ends, all its descendants do.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_SYS_ADMIN` in the user namespace.
///
/// # Source
/// pid_namespaces(7).
pub fn children_in_new_pid_namespace() -> SysResult<()> {
    crate::ns::unshare(libc::CLONE_NEWPID, "create a process namespace")
}

/// Gives this thread (and what it starts from now on) a mount namespace of its own.
///
/// # Errors
/// [`SysError`].
pub fn own_mounts() -> SysResult<()> {
    crate::ns::unshare(libc::CLONE_FS | libc::CLONE_NEWNS, "create a mount namespace")
}

/// Starts the command in another network namespace.
pub fn in_network(command: &mut Command, namespace: std::fs::File) {
    use std::os::fd::AsRawFd as _;
    let enter = move || {
        // SAFETY: setns takes an open descriptor, which the closure owns, and a number; async-signal-safe.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: the closure only calls setns and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// Lets a descriptor be inherited by what this process executes.
///
/// # Errors
/// [`SysError`].
pub fn inherit(fd: &impl std::os::fd::AsFd) -> SysResult<()> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: fcntl with an open descriptor and numbers.
    check(unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_SETFD, 0) }, || "share a descriptor".to_owned())
        .map(drop)
}

/// Ignores a signal in this process; what it executes later ignores it too, unless reset.
pub fn ignore_signal(number: i32) {
    // SAFETY: SIG_IGN is a valid disposition for every signal that can be caught.
    unsafe { libc::signal(number, libc::SIG_IGN) };
}

/// Gives the command the usual reaction to Ctrl-C, whatever this process has.
pub fn default_signals(command: &mut Command) {
    let reset = || {
        for number in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
            // SAFETY: SIG_DFL is a valid disposition; signal is async-signal-safe.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure only calls signal and allocates nothing.
    unsafe { command.pre_exec(reset) };
}

/// The exit code of a process that has ended, as shells tell it: 128 and the number of the signal that killed it, 255 for what no code can
/// hold.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Waits for any child to end; `None` when there are none left. Returns its id and exit code (128 + signal when killed).
///
/// # Errors
/// [`SysError`].
pub fn wait_any() -> SysResult<Option<(u32, u8)>> {
    let mut status = 0;
    loop {
        // SAFETY: waitpid writes one int.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if pid >= 0 {
            return Ok(Some((u32::try_from(pid).unwrap_or(0), exit_code(ExitStatus::from_raw(status)))));
        }
        let error = SysError::last("wait for a child");
        match error.errno() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(error),
        }
    }
}

/// Switches the machine off. For process 1 of a virtual one, which only its own kernel asks for.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_SYS_BOOT`. Anybody but process 1 is refused without asking the kernel.
///
/// # Source
/// `RB_POWER_OFF`, reboot(2).
pub fn power_off() -> SysResult<()> {
    let refused = || SysError {
        doing: "switch off".to_owned(),
        source: std::io::Error::from(std::io::ErrorKind::PermissionDenied),
    };
    if std::process::id() != 1 {
        return Err(refused());
    }
    // SAFETY: both take numbers or nothing.
    check(
        unsafe {
            libc::sync();
            libc::reboot(libc::RB_POWER_OFF)
        },
        || "switch off".to_owned(),
    )
    .map(drop)
}

/// Loads a module into this kernel. For process 1 of a virtual one; anybody else is refused without asking the kernel.
///
/// # Errors
/// [`SysError`]; `EEXIST` when it is loaded already.
///
/// # Source
/// finit_module(2).
pub fn load_module(file: &std::fs::File) -> SysResult<()> {
    use std::os::fd::AsRawFd as _;
    let doing = || "load a module".to_owned();
    if std::process::id() != 1 {
        return Err(SysError { doing: doing(), source: std::io::Error::from(std::io::ErrorKind::PermissionDenied) });
    }
    // SAFETY: finit_module takes an open descriptor, a C string and a number.
    let result = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) };
    check(libc::c_int::try_from(result).unwrap_or(-1), doing).map(drop)
}

/// Waits until a signal ends this process.
pub fn wait_for_ever() -> ! {
    loop {
        // SAFETY: pause takes and touches nothing.
        unsafe { libc::pause() };
    }
}

/// Sends a signal to a process that we started in a process group of its own, and to all that it started in turn.
///
/// # Errors
/// [`SysError`]; `ESRCH` when all have ended.
pub fn signal_group(pid: u32, signal: i32) -> SysResult<()> {
    let id = libc::pid_t::try_from(pid).unwrap_or(libc::pid_t::MAX);
    // SAFETY: killpg takes numbers.
    check(unsafe { libc::killpg(id, signal) }, || format!("signal process group {pid}")).map(drop)
}

/// Sends a signal to a process that we started.
///
/// # Errors
/// [`SysError`]; `ESRCH` when it has ended.
pub fn signal(pid: u32, signal: i32) -> SysResult<()> {
    let id = libc::pid_t::try_from(pid).unwrap_or(libc::pid_t::MAX);
    // SAFETY: kill takes numbers.
    check(unsafe { libc::kill(id, signal) }, || format!("signal process {pid}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_started_ends_with_it() {
        let mut child = Command::new("sh")
            .args(["-c", "sh -c 'sleep 60; true' & echo; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut out, &mut [0]).unwrap();
        kill_with_children(child.id());
        child.wait().unwrap();
        // All of them held this.
        std::io::Read::read_to_end(&mut out, &mut Vec::new()).unwrap();
    }

    #[test]
    fn what_is_left_of_a_group_ends_with_its_leader_that_has_ended_before() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & exit 7"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        while !has_ended(&child) {
            std::thread::yield_now();
        }
        assert_eq!(exit_code(end_group(&mut child).unwrap()), 7);
        // The one that sleeps held this.
        std::io::Read::read_to_end(&mut out, &mut Vec::new()).unwrap();
    }

    #[test]
    fn an_exit_code_is_that_of_a_shell() {
        let ended = |script: &str| exit_code(Command::new("sh").args(["-c", script]).status().unwrap());
        assert_eq!([ended("exit 0"), ended("exit 7"), ended("kill -9 $$")], [0, 7, 137]);
    }
}
