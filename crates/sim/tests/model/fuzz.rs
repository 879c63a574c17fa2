use crate::common::{download, flow, stack};
use std::time::Duration;
use wt_link::{
    CoDelConfig, Discipline, Distribution, JitterConfig, LinkConfig, LossConfig, OutageConfig, PathConfig, QueueConfig,
    StageConfig,
};
use wt_sim::{Simulation, StackConfig};
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// Draws by a linear congruential generator (Knuth's MMIX).
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn share(&mut self, most: f64) -> Ratio {
        Ratio(self.below(1_000) as f64 / 1_000.0 * most)
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most))
    }
}

fn direction(draws: &mut Draws) -> Vec<StageConfig> {
    let mut stages = vec![StageConfig::Mtu { mtu: Bytes([600, 1_400, 1_500, 9_000][draws.below(4) as usize]) }];
    if draws.once_in(2) {
        stages.push(StageConfig::Loss(LossConfig::Bernoulli { probability: draws.share(0.1) }));
    }
    if draws.once_in(4) {
        let from = draws.millis(2_000);
        let windows = vec![(from, from + Duration::from_millis(1) + draws.millis(3_000))];
        stages.push(StageConfig::Outages(OutageConfig { windows, period: None }));
    }
    let rate = 100_000 * 10_u64.pow(draws.below(5) as u32);
    let mut queue = QueueConfig::drop_tail(BitsPerSecond(rate), 2 + draws.below(200) as u32);
    if draws.once_in(3) {
        queue.discipline = Discipline::CoDel(CoDelConfig { ecn: draws.once_in(2), ..CoDelConfig::default() });
    }
    stages.push(StageConfig::Queue(queue));
    stages.push(StageConfig::Delay { delay: draws.millis(100) });
    if draws.once_in(3) {
        let distribution = Distribution::Uniform { min: Duration::ZERO, max: draws.millis(50) };
        let reorder = draws.once_in(2);
        stages.push(StageConfig::Jitter(JitterConfig { distribution, correlation: Ratio(0.2), reorder }));
    }
    if draws.once_in(3) {
        stages.push(StageConfig::Reorder { probability: draws.share(0.2), by: draws.millis(40) });
    }
    if draws.once_in(3) {
        stages.push(StageConfig::Duplicate { probability: draws.share(0.2) });
    }
    if draws.once_in(4) {
        stages.push(StageConfig::Corrupt { probability: draws.share(0.05), detected: draws.once_in(2) });
    }
    stages
}

fn ends(draws: &mut Draws) -> StackConfig {
    StackConfig {
        mtu: [300, 576, 1_500, 9_000][draws.below(4) as usize],
        initcwnd: 1 + draws.below(60) as u32,
        initrwnd: draws.once_in(4).then(|| 1 + draws.below(50) as u32),
        rwin: draws.once_in(3).then(|| 1_200 + draws.below(200_000) as u32),
        sndbuf: draws.once_in(3).then(|| 4_608 + draws.below(500_000)),
        pacing: draws.once_in(2),
        sack: !draws.once_in(4),
        timestamps: !draws.once_in(4),
        window_scaling: !draws.once_in(4),
        ecn: draws.once_in(3),
        pmtud: !draws.once_in(4),
        mtu_probing: draws.once_in(2),
        nagle: draws.once_in(2),
        ..stack(["reno", "cubic", "bbr"][draws.below(3) as usize])
    }
}

#[test]
fn whatever_the_path_and_the_settings_what_arrives_is_what_was_sent_and_it_ends() {
    const SIZE: u64 = 150_000;
    let mut complete = 0;
    for seed in 0..400 {
        let mut draws = Draws(seed);
        let link = LinkConfig { forward: direction(&mut draws), backward: direction(&mut draws), medium: None };
        let icmp = vec![draws.once_in(2)];
        let mut simulation = Simulation::new(&PathConfig { links: vec![link] }, icmp, seed).unwrap();
        simulation.bound_events(1_000_000);
        let mut flow = flow(&ends(&mut draws), download(SIZE));
        flow.server = StackConfig { congestion_control: flow.client.congestion_control.clone(), ..ends(&mut draws) };
        simulation.add_flow(flow).unwrap();
        let report = simulation.run(Duration::from_secs(1_200));
        let path = &report.paths[0];
        assert_eq!(path.pushed + path.duplicated, path.delivered + path.dropped + path.held, "seed {seed}");
        let flow = &report.flows[0];
        assert!(flow.bytes <= SIZE && !report.cut_short, "seed {seed}: {} bytes", flow.bytes);
        assert_eq!(flow.elapsed.is_some(), flow.bytes == SIZE, "seed {seed}");
        complete += u32::from(flow.bytes == SIZE);
    }
    // The others fell into a black hole, or lost too much for twenty minutes.
    assert!(complete > 250, "only {complete} of 400 transfers were complete");
}
