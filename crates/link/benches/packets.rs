//! How many packets per second one core leads through a chain of stages.
//!
//! `cargo bench -p wt-link` prints one line per chain: million packets per second (the median of several runs), and
//! nanoseconds per packet.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use wt_link::{
    Discipline, FqCoDelConfig, LinkConfig, LossConfig, Packet, Path, PathConfig, Pipe, PipeConfig, QueueConfig, Side,
    StageConfig, Time,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// Packets of one run.
const PACKETS: u64 = 4_000_000;
/// Packets that arrive together, as in one read of a super-packet.
const BURST: u64 = 44;
/// The line: 10 Gbit/s, so that a packet of 1500 bytes takes 1200 ns.
const RATE: BitsPerSecond = BitsPerSecond(10_000_000_000);

/// What the lab's engine has as a handle: buffer, offset, length, flags.
type Handle = [u32; 4];

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    let loss = || StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(0.001) });
    let delay = |micros| StageConfig::Delay { delay: Duration::from_micros(micros) };
    let fast = || QueueConfig::drop_tail(RATE, 1_000);
    let queue = || StageConfig::Queue(fast());
    let mtu = || StageConfig::Mtu { mtu: Bytes(1_500) };
    let chain = || vec![mtu(), loss(), queue(), delay(1_000)];

    report("pipe: delay", || run_pipe(vec![delay(1_000)]));
    report("pipe: mtu, loss, queue, delay", || run_pipe(chain()));
    let fair = || {
        let discipline = Discipline::FqCoDel(FqCoDelConfig::default());
        StageConfig::Queue(QueueConfig { discipline, ..fast() })
    };
    report("pipe: mtu, loss, fq_codel, delay", || run_pipe(vec![mtu(), loss(), fair(), delay(1_000)]));
    report("path: mtu, loss, queue, delay", || run_path(1, chain()));
    report("path: 8 links of these", || run_path(8, chain()));
    report("path: 8 links, a delay each", || run_path(8, vec![delay(125)]));
}

/// Five runs, the median printed.
fn report(name: &str, run: impl Fn() -> Duration) {
    let mut seconds: Vec<f64> = (0..5).map(|_| run().as_secs_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    let nanos = seconds[2] * 1e9 / PACKETS as f64;
    println!("{name:<34} {:6.1} M packets/s {nanos:7.1} ns/packet", 1e3 / nanos);
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// Bursts at the rate of the line; after each burst everything that is due is taken out.
fn drive(mut push: impl FnMut(Time, Packet<Handle>), mut drain: impl FnMut(Time)) {
    for burst in 0..PACKETS / BURST {
        let at = Time(burst * BURST * 1_200);
        for number in 0..BURST {
            push(at, Packet::new(1_500, [burst as u32, number as u32, 1_500, 0]));
        }
        drain(at);
    }
}

fn run_pipe(stages: Vec<StageConfig>) -> Duration {
    let pipe = std::cell::RefCell::new(Pipe::new(&PipeConfig { stages }, 1).expect("the chain is valid"));
    timed(|| {
        drive(
            |at, packet| pipe.borrow_mut().push(at, packet),
            |now| while black_box(pipe.borrow_mut().poll(now)).is_some() {},
        );
    })
}

fn run_path(links: usize, stages: Vec<StageConfig>) -> Duration {
    let link = LinkConfig { forward: stages, backward: Vec::new(), medium: None };
    let config = PathConfig { links: vec![link; links] };
    let path = std::cell::RefCell::new(Path::new(&config, 1).expect("the chain is valid"));
    timed(|| {
        drive(
            |at, packet| path.borrow_mut().push(Side::AToB, at, packet),
            |now| while black_box(path.borrow_mut().poll(now)).is_some() {},
        );
    })
}
