//! For benches: whether the machine was quiet enough to tell, and figures beside their goals.
//!
//! A bench hands its work to [`bench()`], which runs it in a process of its own and watches the machine meanwhile: the run queue
//! before it begins, and what other programs and the hypervisor take while it runs. On a busy machine its figures are withheld.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio, Termination};
use std::time::Duration;

/// Set in the process that measures, and in whatever that starts.
const INSIDE: &str = "WINDTUNNEL_BENCH_INSIDE";
/// Set by who wants figures of a busy machine nevertheless.
const ANYWAY: &str = "WINDTUNNEL_BENCH_ANYWAY";
/// Exit code where the machine was too busy.
const TOO_BUSY: u8 = 3;
/// The run queue is looked at so many times, this often.
const LOOKS: u32 = 20;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Others may wait for a processor in so many looks of ten, on average.
const MOST_RUNNING: f64 = 0.4;
/// A hypervisor may take so much of all processors' time.
const MOST_STOLEN: f64 = 0.02;
/// Other programs may take so much of one processor.
const MOST_OTHERS: f64 = 0.15;

/// The most memory that this process has had since this was last called, MiB; NaN where the kernel doesn't say.
#[must_use]
pub fn most_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN);
    // Where this isn't to be had, the next call tells the most so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    kib / 1024.0
}

/// What the processors of the machine did since it started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Processors {
    /// Programs and what the kernel did for them; interrupts aren't told apart by whom they were for.
    programs: u64,
    stolen: u64,
    all: u64,
    count: u64,
    /// Threads that run or wait for a processor now.
    running: u64,
}

impl Processors {
    /// From /proc/stat.
    fn parse(stat: &str) -> Option<Self> {
        let line = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let ticks: Vec<u64> = line("cpu")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, _irq, _softirq, stolen] = *ticks.get(..8)? else { return None };
        let count = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
        Some(Self {
            programs: user + nice + system,
            stolen,
            all: ticks[..8].iter().sum(),
            count: count.max(1) as u64,
            running: line("procs_running")?.trim().parse().ok()?,
        })
    }

    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }
}

/// Ticks of this process, and of those that it has waited for.
fn own_ticks(stat: &str) -> Option<u64> {
    // The name may have any character: what follows its last parenthesis is plain.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    fields.get(11..15)?.iter().map(|word| word.parse::<u64>().ok()).sum()
}

/// What else the machine did while something was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OtherLoad {
    /// Other threads that ran or waited for a processor before it began, on average.
    pub running: f64,
    /// Share of all processors' time that a hypervisor took.
    pub stolen: f64,
    /// Time of other programs, in processors.
    pub others: f64,
}

impl OtherLoad {
    /// Of the machine before and after, and the ticks of who measured.
    fn between(running: f64, before: Processors, after: Processors, own: u64) -> Self {
        let all = after.all.saturating_sub(before.all).max(1) as f64;
        let elapsed = all / after.count as f64;
        let others = (after.programs.saturating_sub(before.programs)).saturating_sub(own) as f64 / elapsed;
        Self { running, stolen: after.stolen.saturating_sub(before.stolen) as f64 / all, others }
    }

    /// Whether figures measured beside it mean nothing.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.running > MOST_RUNNING || self.stolen > MOST_STOLEN || self.others > MOST_OTHERS
    }
}

impl fmt::Display for OtherLoad {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "run queue {:.1} (at most {MOST_RUNNING}), stolen {:.1} % (at most {:.0} %), other programs {:.2} of a \
             processor (at most {MOST_OTHERS})",
            self.running,
            self.stolen * 100.0,
            MOST_STOLEN * 100.0,
            self.others
        )
    }
}

/// Threads other than this one that run or wait for a processor, on average over a second.
#[expect(clippy::disallowed_methods, reason = "the machine is looked at over time")]
fn run_queue() -> Option<f64> {
    let mut sum = 0;
    for _ in 0..LOOKS {
        sum += Processors::now()?.running.saturating_sub(1);
        std::thread::sleep(LOOK_EVERY);
    }
    Some(sum as f64 / f64::from(LOOKS))
}

/// Runs what a bench measures in a process of its own, and prints what it said if the machine was quiet enough.
///
/// Otherwise nothing of it is printed but why, and the exit code is 3; `WINDTUNNEL_BENCH_ANYWAY=1` prints it marked. Without
/// `--bench` somebody runs all targets as tests: then nothing is watched.
pub fn bench<T: Termination>(measure: impl FnOnce() -> T) -> ExitCode {
    let asked = std::env::args().any(|arg| arg == "--bench");
    if !asked || std::env::var_os(INSIDE).is_some() {
        return measure().report();
    }
    watched().unwrap_or_else(|why| {
        let _ = writeln!(std::io::stderr(), "bench: can't watch the machine: {why}");
        ExitCode::FAILURE
    })
}

fn watched() -> std::io::Result<ExitCode> {
    let unknown = || std::io::Error::other("/proc/stat isn't as expected");
    let own = || std::fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(own_ticks).ok_or_else(unknown);
    let anyway = std::env::var_os(ANYWAY).is_some();
    let mut err = std::io::stderr();
    let running = run_queue().ok_or_else(unknown)?;
    let before = (Processors::now().ok_or_else(unknown)?, own()?);
    if running > MOST_RUNNING && !anyway {
        writeln!(
            err,
            "TOO BUSY TO TELL, before anything was measured: run queue {running:.1} (at most {MOST_RUNNING})"
        )?;
        writeln!(err, "Stop what else runs here, or set {ANYWAY}=1 for figures that mean little.")?;
        return Ok(ExitCode::from(TOO_BUSY));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(INSIDE, "1").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.stdout(Stdio::piped()).spawn()?.wait_with_output()?;
    let after = (Processors::now().ok_or_else(unknown)?, own()?);
    let load = OtherLoad::between(running, before.0, after.0, after.1.saturating_sub(before.1));
    if load.is_too_much() && !anyway {
        writeln!(err, "TOO BUSY TO TELL: {load}")?;
        writeln!(
            err,
            "Its figures are withheld. Stop what else runs here, or set {ANYWAY}=1 for figures that mean little."
        )?;
        return Ok(ExitCode::from(TOO_BUSY));
    }
    let mut out = std::io::stdout();
    out.write_all(&output.stdout)?;
    writeln!(out, "machine: {load}{}", if load.is_too_much() { " - TOO BUSY: these figures mean little" } else { "" })?;
    Ok(ExitCode::from(u8::try_from(output.status.code().unwrap_or(1)).unwrap_or(1)))
}

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

impl Goal {
    /// The figure over the goal, or the goal over the figure: at least 1 where it is reached.
    #[must_use]
    pub fn ratio(self, figure: f64) -> f64 {
        match self {
            // None of something that nothing is wanted of.
            Self::AtMost(most) if figure <= 0.0 && most >= 0.0 => f64::INFINITY,
            Self::AtMost(most) => most / figure,
            Self::AtLeast(least) => figure / least,
        }
    }

    /// The figure with its goal and the ratio of both, on one line.
    #[must_use]
    pub fn line(self, what: &str, figure: f64, unit: &str) -> String {
        let ratio = self.ratio(figure);
        let (word, bound) = match self {
            Self::AtMost(most) => ("at most", most),
            Self::AtLeast(least) => ("at least", least),
        };
        let missed = if ratio < 1.0 { "  MISSED" } else { "" };
        format!("{what:<44} {figure:>10.3} {unit:<10} goal {word} {bound}: x{ratio:.2}{missed}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 10 50 800 5 1 4 30 0 0\ncpu0 50 5 25 400 2 0 2 15 0 0\n\
                        cpu1 50 5 25 400 3 1 2 15 0 0\nintr 1\nprocs_running 3\nprocs_blocked 0\n";

    #[test]
    fn the_files_of_proc_are_read() {
        let one = Processors::parse(STAT).unwrap();
        assert_eq!(one, Processors { programs: 160, stolen: 30, all: 1_000, count: 2, running: 3 });
        assert_eq!(Processors::parse("cpu 1 2"), None);
        let own = "12 (a) b) R 1 1 1 0 -1 4 1 2 3 4 11 22 33 44 20 0 1";
        assert_eq!(own_ticks(own), Some(110));
        assert!(Processors::now().is_some() && std::fs::read_to_string("/proc/self/stat").is_ok());
    }

    #[test]
    fn own_time_isnt_others_and_each_kind_of_load_is_too_much() {
        let quiet = OtherLoad::between(0.1, Processors::parse(STAT).unwrap(), after(2_000, 900, 10), 900);
        assert!(!quiet.is_too_much(), "{quiet}");
        for busy in [
            OtherLoad { running: 1.0, ..quiet },
            OtherLoad::between(0.1, Processors::parse(STAT).unwrap(), after(2_000, 900, 10), 600),
            OtherLoad::between(0.1, Processors::parse(STAT).unwrap(), after(2_000, 900, 50), 900),
        ] {
            assert!(busy.is_too_much(), "{busy}");
        }
    }

    fn after(all: u64, programs: u64, stolen: u64) -> Processors {
        let before = Processors::parse(STAT).unwrap();
        Processors {
            programs: before.programs + programs,
            stolen: before.stolen + stolen,
            all: before.all + all,
            ..before
        }
    }

    #[test]
    fn a_ratio_below_one_is_a_missed_goal_whichever_way() {
        assert!(Goal::AtMost(60.0).line("show", 75.0, "ms").ends_with("goal at most 60: x0.80  MISSED"));
        assert!(Goal::AtMost(0.0).line("wrong", 0.0, "hosts").ends_with("goal at most 0: xinf"));
        assert!(Goal::AtMost(0.0).line("wrong", 1.0, "hosts").ends_with("x0.00  MISSED"));
        assert!(Goal::AtLeast(50.0).line("speed", 100.0, "times").ends_with("goal at least 50: x2.00"));
    }
}
