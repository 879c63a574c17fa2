//! How many packets per second the model moves.
//!
//! `cargo bench -p wt-sim` prints one line per case: packets through the bottleneck (data and acknowledgements) per second of
//! computing, the median of several runs; and, where valgrind is installed, instructions per packet, which no load changes. The figures to compare with are those of ns-3.37 on a machine of the same class:
//! 37,000 packets/s with one CUBIC flow at 100 Mbit/s and 50 ms, 28,500 with a hundred of them, and 96.5 s for 6 s at 1 Gbit/s.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wt_link::{LinkConfig, PathConfig, QueueConfig, StageConfig};
use wt_sim::{FlowSpec, Job, Report, Simulation, StackConfig};
use wt_trial::{Amount, Direction};
use wt_units::{BitsPerSecond, Bytes};

fn path(bps: u64, rtt: Duration, queue: u32) -> PathConfig {
    let stages = || {
        let queue = StageConfig::Queue(QueueConfig::drop_tail(BitsPerSecond(bps), queue));
        vec![queue, StageConfig::Delay { delay: rtt / 2 }]
    };
    PathConfig { links: vec![LinkConfig { forward: stages(), backward: stages(), medium: None }] }
}

fn simulate(path: &PathConfig, flows: usize, amount: Amount, stack: &StackConfig) -> Report {
    let mut simulation = Simulation::new(path, Vec::new(), 1).expect("the path is valid");
    for n in 0..flows {
        let job = Job::Bulk { direction: Direction::Down, amount };
        let start = Duration::from_millis(n as u64);
        let spec = FlowSpec { client: stack.clone(), server: stack.clone(), job, start };
        simulation.add_flow(spec).expect("the flow is valid");
    }
    simulation.run(Duration::from_secs(100_000))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begin = Instant::now();
    let result = work();
    (begin.elapsed().as_secs_f64(), result)
}

/// Three runs, the median printed.
fn report(name: &str, run: impl Fn() -> Report, peer: Option<f64>) {
    let mut runs: Vec<(f64, Report)> = (0..3).map(|_| timed(&run)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (seconds, report) = &runs[1];
    let packets: u64 = report.paths.iter().map(|path| path.pushed).sum();
    let rate = packets as f64 / seconds;
    let times = peer.map_or_else(String::new, |peer| format!("{:6.0} × ns-3's figure", rate / peer));
    println!("{name:<44} {:7.3} s {packets:>9} packets {:7.2} M packets/s {times}", seconds, rate / 1e6);
}

/// What callgrind counts: two seconds of one flow.
fn short(cc: &str) -> u64 {
    let stack = StackConfig { congestion_control: cc.to_owned(), ..StackConfig::default() };
    let line = path(100_000_000, Duration::from_millis(50), 417);
    let report = simulate(&line, 1, Amount::Time(Duration::from_secs(2)), &stack);
    report.paths.iter().map(|path| path.pushed).sum()
}

/// Instructions per packet, which no load of the machine changes, where valgrind is there.
fn count_instructions(cc: &str) {
    let Ok(own) = std::env::current_exe() else { return };
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(own).args([COUNT, cc]);
    let Ok(output) = command.output() else {
        println!("no instructions are counted: there is no valgrind (apt-get install valgrind)");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = told.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse::<f64>().ok());
    let packets = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok();
    match (collected, packets) {
        (Some(instructions), Some(packets)) => println!(
            "{:<44} {:7.1} M instructions, {:.0} per packet",
            format!("2 s of one {cc} flow, by callgrind"),
            instructions / 1e6,
            instructions / packets
        ),
        _ => println!("callgrind counted nothing: {}", told.lines().last().unwrap_or_default()),
    }
}

/// Runs what is counted, and says how many packets that was.
const COUNT: &str = "--count";

fn main() {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some(COUNT) {
        println!("{}", short(&args.next().unwrap_or_default()));
        return;
    }
    let cubic = StackConfig { congestion_control: "cubic".to_owned(), ..StackConfig::default() };
    let small = StackConfig { sndbuf: Some(1 << 20), rmem: (131_072, 1 << 20), ..cubic.clone() };
    let minute = Amount::Time(Duration::from_secs(60));
    let line = path(100_000_000, Duration::from_millis(50), 417);
    report("1 CUBIC flow, 100 Mbit/s, 50 ms, 60 s", || simulate(&line, 1, minute, &cubic), Some(37_000.0));
    report("100 CUBIC flows of 1 MiB buffers, the same", || simulate(&line, 100, minute, &small), Some(28_500.0));
    let bbr = StackConfig { congestion_control: "bbr".to_owned(), ..StackConfig::default() };
    report("1 BBR flow, the same", || simulate(&line, 1, minute, &bbr), None);
    let fast = path(1_000_000_000, Duration::from_millis(50), 4_167);
    let large = StackConfig { wmem_max: 64 << 20, ..cubic.clone() };
    let six = Amount::Time(Duration::from_secs(6));
    report("1 CUBIC flow, 1 Gbit/s, 50 ms, 6 s", || simulate(&fast, 1, six, &large), None);
    dial_up(&cubic);
    ["cubic", "bbr"].into_iter().for_each(count_instructions);
    if let Ok(status) = std::fs::read_to_string("/proc/self/status")
        && let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM"))
    {
        println!("peak memory of it all: {}", peak.trim_start_matches("VmHWM:").trim());
    }
}

/// Ten thousand transfers of 360 kB over a telephone line, on all processors.
fn dial_up(stack: &StackConfig) {
    const SCENARIOS: usize = 10_000;
    let line = path(26_400, Duration::from_millis(150), 20);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (seconds, ()) = timed(|| {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while next.fetch_add(1, Ordering::Relaxed) < SCENARIOS {
                        black_box(simulate(&line, 1, Amount::Size(Bytes(360_000)), stack));
                    }
                });
            }
        });
    });
    println!("{:<44} {seconds:7.3} s on {threads} threads", "10,000 transfers of 360 kB, 26.4 kbit/s");
}
