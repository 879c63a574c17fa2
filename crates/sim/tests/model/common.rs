//! Paths and transfers of a line.

use std::time::Duration;
use wt_link::{LinkConfig, LossConfig, PathConfig, QueueConfig, StageConfig};
use wt_sim::{FlowReport, FlowSpec, Job, Report, Simulation, StackConfig};
use wt_trial::{Amount, Direction};
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// A link of this rate, RTT and queue.
pub(crate) struct Line {
    pub(crate) bps: u64,
    pub(crate) rtt: Duration,
    pub(crate) queue: u32,
    /// On the way to the client.
    pub(crate) loss: f64,
    pub(crate) mtu: u64,
}

impl Line {
    pub(crate) fn new(mbit: f64, rtt_ms: u64, queue: u32) -> Self {
        Self { bps: (mbit * 1e6) as u64, rtt: Duration::from_millis(rtt_ms), queue, loss: 0.0, mtu: 1500 }
    }

    fn stages(&self, loss: f64) -> Vec<StageConfig> {
        let mut stages = vec![StageConfig::Mtu { mtu: Bytes(self.mtu) }];
        if loss > 0.0 {
            stages.push(StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(loss) }));
        }
        stages.push(StageConfig::Queue(QueueConfig::drop_tail(BitsPerSecond(self.bps), self.queue)));
        stages.push(StageConfig::Delay { delay: self.rtt / 2 });
        stages
    }

    pub(crate) fn path(&self) -> PathConfig {
        let link = LinkConfig { forward: self.stages(0.0), backward: self.stages(self.loss), medium: None };
        PathConfig { links: vec![link] }
    }
}

pub(crate) fn stack(cc: &str) -> StackConfig {
    StackConfig { congestion_control: cc.to_owned(), ..StackConfig::default() }
}

pub(crate) fn download(size: u64) -> Job {
    Job::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(size)) }
}

pub(crate) fn seconds_of(seconds: u64) -> Job {
    Job::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(seconds)) }
}

/// A flow between two ends that are set up alike.
pub(crate) fn flow(stack: &StackConfig, job: Job) -> FlowSpec {
    FlowSpec { client: stack.clone(), server: stack.clone(), job, start: Duration::ZERO }
}

/// One flow over a line, at most an hour of it.
pub(crate) fn run(line: &Line, spec: FlowSpec, seed: u64) -> Report {
    let mut simulation = Simulation::new(&line.path(), Vec::new(), seed).unwrap();
    simulation.bound_events(20_000_000);
    simulation.add_flow(spec).unwrap();
    simulation.run(Duration::from_secs(3_600))
}

pub(crate) fn goodput_bps(flow: &FlowReport) -> f64 {
    flow.bytes as f64 * 8.0 / flow.elapsed.unwrap().as_secs_f64()
}
