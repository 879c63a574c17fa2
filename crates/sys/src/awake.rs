//! Processors that don't fall asleep while something short is timed.

use crate::{SysError, SysResult};
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Keeps each processor that this process may use from sleeping, until it is dropped.
///
/// A processor without work sleeps, and takes some tens of microseconds to wake up again, in a virtual machine most of all,
/// since the hypervisor wakes it. Whoever compares ways with more and with fewer wake-ups over a short path compares that. Here a
/// thread on each processor spins, as `SCHED_IDLE`: everything else that wants to run there runs at once.
///
/// Nothing spins where that can't be had, and where a control group allows less than all of these processors' time: there it
/// would take the time of those who work.
///
/// # Source
/// sched(7), sched_setaffinity(2); Documentation/admin-guide/pm/cpuidle.rst of Linux.
#[derive(Debug)]
pub struct Awake {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Begins.
    #[must_use]
    pub fn keep() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let allowed = processors();
        // It heeds quotas of control groups.
        let quota = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if quota < allowed.len() { Vec::new() } else { allowed };
        let spin = |processor| {
            let over = Arc::clone(&over);
            let thread = std::thread::Builder::new().name(format!("awake-{processor}"));
            thread
                .spawn(move || {
                    if settle(processor) {
                        // No pause instruction: a hypervisor takes many of them for a lock and lets somebody else run. A chain of
                        // divisions leaves as much to a core's other thread.
                        let mut n = u64::MAX;
                        while !over.load(Ordering::Relaxed) {
                            n = std::hint::black_box(n) / 3 + u64::MAX / 2;
                        }
                    }
                })
                .ok()
        };
        let threads = threads.into_iter().filter_map(spin).collect();
        Self { over, threads }
    }

    /// How many processors are kept awake, or are about to be.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.threads.len()
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Keeps all processors of this machine from sleeping deeper than a loop, until it is dropped or its process ends.
///
/// What waits for a processor then finds it running, without an interrupt that wakes it: over a lab's path in a virtual machine a round
/// trip takes a third of its excess less. It costs all idle time of all processors, so only root may.
///
/// # Source
/// Documentation/power/pm_qos_interface.rst of Linux.
#[derive(Debug)]
pub struct NoSleep(#[expect(dead_code, reason = "the kernel heeds it as long as it is open")] File);

impl NoSleep {
    const FILE: &str = "/dev/cpu_dma_latency";

    /// Begins.
    ///
    /// # Errors
    /// [`SysError`]; `EACCES` for others than root, `ENOENT` where the machine has no such device.
    pub fn hold() -> SysResult<Self> {
        let doing = || format!("keep processors awake by {}", Self::FILE);
        let mut file = File::options().write(true).open(Self::FILE).map_err(SysError::io(doing()))?;
        // The latency that is borne, µs.
        file.write_all(&0_i32.to_ne_bytes()).map_err(SysError::io(doing()))?;
        Ok(Self(file))
    }
}

/// The processors that this thread may use.
fn processors() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes at most the size that we say into a live set.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: CPU_ISSET reads a live set at a place within it.
    (0..libc::CPU_SETSIZE as usize).filter(|at| unsafe { libc::CPU_ISSET(*at, &set) }).collect()
}

/// Puts this thread behind everything else, on one processor; whether that could be done.
fn settle(processor: usize) -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads a live value; 0 is this thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } != 0 {
        return false;
    }
    // SAFETY: an all-zero cpu_set_t is an empty set, to which a place within it is added.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        set
    };
    // SAFETY: reads the size that we say of a live set; 0 is this thread.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;

    /// Policy and processor of each of this process' threads of that name.
    fn spinning() -> Vec<(String, u64)> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
        stats
            .filter(|stat| stat.contains("(awake-"))
            .map(|stat| {
                let (head, rest) = stat.rsplit_once(") ").unwrap();
                // Policy is the 41st figure of all (proc_pid_stat(5)), the 39th behind the name.
                let policy = rest.split(' ').nth(38).unwrap().parse().unwrap();
                (head.split_once('(').unwrap().1.to_owned(), policy)
            })
            .collect()
    }

    #[test]
    fn processors_are_kept_awake_behind_everything_else_until_it_ends() {
        let awake = Awake::keep();
        let (allowed, quota) = (processors().len(), std::thread::available_parallelism().unwrap().get());
        assert_eq!(awake.processors(), if quota < allowed { 0 } else { allowed });
        let begun = monotonic_ns();
        while spinning().iter().filter(|(_, policy)| *policy == libc::SCHED_IDLE as u64).count() < awake.processors() {
            assert!(monotonic_ns() - begun < 20_000_000_000, "{:?}", spinning());
            std::thread::yield_now();
        }
        drop(awake);
        assert_eq!(spinning(), []);
    }
}
