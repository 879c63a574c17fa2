//! What a configuration may say, and how it is told that it may not.

use std::time::Duration;
use wt_link::{
    AirtimeConfig, CoDelConfig, ConfigError, Discipline, Distribution, FqCoDelConfig, JitterConfig, LinkConfig,
    LossConfig, MediumConfig, ModemConfig, OutageConfig, Path, PathConfig, PieConfig, Pipe, PipeConfig, PolicerConfig,
    QueueBound, QueueConfig, QueueLayer, RateConfig, RedConfig, RetrainConfig, StageConfig, StepsConfig,
    ThinningConfig, TokenBucketConfig, WireLen,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};

const RATE: BitsPerSecond = BitsPerSecond(1_000_000);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn error(stage: StageConfig) -> ConfigError {
    let stages = vec![StageConfig::Delay { delay: ms(1) }, stage];
    Pipe::<()>::new(&PipeConfig { stages }, 1).expect_err("the stage is out of range")
}

fn queue(rate: RateConfig, bound: QueueBound, discipline: Discipline) -> StageConfig {
    StageConfig::Queue(QueueConfig { framing: WireLen::IP, rate, bound, discipline })
}

fn bound(packets: Option<u32>, bytes: Option<u64>) -> QueueBound {
    QueueBound { packets, bytes: bytes.map(Bytes), counted: QueueLayer::IpLen }
}

fn line(rate: RateConfig) -> StageConfig {
    queue(rate, bound(Some(10), None), Discipline::DropTail)
}

fn managed(discipline: Discipline) -> StageConfig {
    queue(RateConfig::Constant(RATE), bound(Some(10), None), discipline)
}

fn bernoulli(probability: f64) -> StageConfig {
    StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(probability) })
}

fn steps(steps: Vec<(u64, u64)>, period: Option<u64>) -> StageConfig {
    let steps = steps.into_iter().map(|(from, rate)| (ms(from), BitsPerSecond(rate))).collect();
    line(RateConfig::Steps(StepsConfig { steps, period: period.map(ms) }))
}

fn bucket(rate: u64, burst: u64, peak: Option<u64>) -> StageConfig {
    let bucket = TokenBucketConfig { rate: BitsPerSecond(rate), burst: Bytes(burst), peak: peak.map(BitsPerSecond) };
    line(RateConfig::TokenBucket(bucket))
}

fn modem(change: impl FnOnce(&mut ModemConfig)) -> StageConfig {
    let mut modem = ModemConfig { rate: RATE, bits_per_byte: 8, escapes: Ratio(0.0), compression: 1.0, retrain: None };
    change(&mut modem);
    line(RateConfig::Modem(modem))
}

fn jitter(distribution: Distribution, correlation: f64) -> StageConfig {
    StageConfig::Jitter(JitterConfig { distribution, correlation: Ratio(correlation), reorder: false })
}

fn radio(change: impl FnOnce(&mut AirtimeConfig)) -> StageConfig {
    let mut radio = AirtimeConfig {
        framing: WireLen::IP,
        rate: RATE,
        access: ms(1),
        backoff: ms(0),
        slot: None,
        max_packets: 8,
        max_bytes: Bytes(10_000),
        failure: Ratio(0.0),
        max_retries: 7,
        retry_after: ms(0),
        bound: bound(Some(10), None),
    };
    change(&mut radio);
    StageConfig::Airtime(radio)
}

fn outages(windows: &[(u64, u64)], period: Option<u64>) -> StageConfig {
    let windows = windows.iter().map(|(from, until)| (ms(*from), ms(*until))).collect();
    StageConfig::Outages(OutageConfig { windows, period: period.map(ms) })
}

#[test]
fn what_is_out_of_range_is_named_with_its_field_its_value_and_what_is_allowed() {
    let year = 366 * 86_400_000;
    let table = [
        (StageConfig::Mtu { mtu: Bytes(67) }, "mtu.mtu is 67: allowed is 68 to 65535 bytes"),
        (StageConfig::Mtu { mtu: Bytes(65_536) }, "mtu.mtu is 65536: allowed is 68 to 65535 bytes"),
        (bernoulli(1.5), "loss.probability is 150%: allowed is 0% to 100%"),
        (bernoulli(-0.1), "loss.probability is -10%: allowed is 0% to 100%"),
        (bernoulli(f64::NAN), "loss.probability is NaN%: allowed is 0% to 100%"),
        (StageConfig::Loss(LossConfig::EveryNth { n: 0 }), "loss.n is 0: allowed is 1 or more"),
        (
            StageConfig::Loss(LossConfig::Numbered { packets: vec![3, 3] }),
            "loss.packets is [3, 3]: allowed is numbers from 1 on, ascending",
        ),
        (
            StageConfig::Loss(LossConfig::Numbered { packets: vec![] }),
            "loss.packets is 0: allowed is 1 to 100000 of them",
        ),
        (
            StageConfig::Loss(LossConfig::BySize { above: Bytes(70_000), long: Ratio(0.1), short: Ratio(0.1) }),
            "loss.above is 70000: allowed is 0 to 65535 bytes",
        ),
        (
            StageConfig::Loss(LossConfig::GilbertElliott {
                to_bad: Ratio(0.1),
                to_good: Ratio(2.0),
                loss_good: Ratio(0.0),
                loss_bad: Ratio(1.0),
            }),
            "loss.to_good is 200%: allowed is 0% to 100%",
        ),
        (outages(&[], None), "outages.windows is 0: allowed is 1 to 100000 of them"),
        (
            outages(&[(5, 5)], None),
            "outages.windows is 5ms to 5ms: allowed is windows in order, apart, and none of them empty",
        ),
        (
            outages(&[(5, 9), (8, 10)], None),
            "outages.windows is 8ms to 10ms: allowed is windows in order, apart, and none of them empty",
        ),
        (outages(&[(5, 9)], Some(8)), "outages.period is 8ms: allowed is at least the end of the last window"),
        (line(RateConfig::Constant(BitsPerSecond(0))), "queue.rate is 0bit: allowed is 1bit to 1000000gbit"),
        (
            queue(RateConfig::Constant(RATE), bound(Some(0), None), Discipline::DropTail),
            "queue.packets is 0: allowed is 1 or more",
        ),
        (
            queue(RateConfig::Constant(RATE), bound(None, Some(0)), Discipline::DropTail),
            "queue.bytes is 0: allowed is 1 bytes or more, for the longest packet to fit",
        ),
        (steps(vec![], None), "queue.steps is 0: allowed is 1 to 100000 of them"),
        (
            steps(vec![(1, 5)], None),
            "queue.steps[0].from is 1ms: allowed is 0ms for the first step, then later ones in order",
        ),
        (
            steps(vec![(0, 5), (9, 5), (9, 6)], None),
            "queue.steps[2].from is 9ms: allowed is 0ms for the first step, then later ones in order",
        ),
        (
            steps(vec![(0, 5), (9, 0)], None),
            "queue.rate is 0bit: allowed is 1bit or more in the last step, which stays",
        ),
        (steps(vec![(0, 0), (9, 0)], Some(10)), "queue.rate is 0bit: allowed is 1bit or more in at least one step"),
        (steps(vec![(0, 5), (9, 0)], Some(9)), "queue.period is 9ms: allowed is after the last step, to 24h"),
        (bucket(0, 1_500, None), "queue.rate is 0bit: allowed is 1bit to 1000000gbit"),
        (bucket(5, 0, None), "queue.burst is 0: allowed is 1 byte to 1 TiB"),
        (bucket(5, 1_500, Some(4)), "queue.peak is 4bit: allowed is the rate or more"),
        (
            modem(|modem| modem.rate = BitsPerSecond(10_000_001)),
            "queue.rate is 10.000001mbit: allowed is 1bit to 10mbit",
        ),
        (modem(|modem| modem.compression = 0.0), "queue.compression is 0: allowed is 0.5 to 16"),
        (modem(|modem| modem.bits_per_byte = 0), "queue.bits_per_byte is 0: allowed is 8 to 12"),
        (
            modem(|modem| modem.retrain = Some(RetrainConfig { every: ms(0), lasts: ms(1) })),
            "queue.retrain.every is 0ms: allowed is 1s to 24h",
        ),
        (managed(Discipline::Red(RedConfig::between(0, 5))), "queue.red.min is 0: allowed is 1 or more packets"),
        (managed(Discipline::Red(RedConfig::between(5, 5))), "queue.red.max is 5: allowed is more than min"),
        (
            managed(Discipline::Red(RedConfig { weight: 0.0, ..RedConfig::between(5, 15) })),
            "queue.red.weight is 0: allowed is above 0, to 1",
        ),
        (
            managed(Discipline::CoDel(CoDelConfig { interval: ms(0), ..CoDelConfig::default() })),
            "queue.codel.interval is 0ms: allowed is 1ns to 24h",
        ),
        (
            managed(Discipline::FqCoDel(FqCoDelConfig { flows: 0, ..FqCoDelConfig::default() })),
            "queue.fq_codel.flows is 0: allowed is 1 to 65536",
        ),
        (
            managed(Discipline::FqCoDel(FqCoDelConfig { quantum: Bytes(0), ..FqCoDelConfig::default() })),
            "queue.fq_codel.quantum is 0: allowed is 256 bytes to 1 MiB",
        ),
        (
            managed(Discipline::Pie(PieConfig { update: ms(0), ..PieConfig::default() })),
            "queue.pie.update is 0ms: allowed is 100us to 24h",
        ),
        (
            managed(Discipline::Pie(PieConfig { alpha: f64::INFINITY, ..PieConfig::default() })),
            "queue.pie.alpha is inf: allowed is 0 to 1000000",
        ),
        (StageConfig::Delay { delay: ms(year) }, "delay.delay is 31622400s: allowed is 0ms to 24h"),
        (jitter(Distribution::Uniform { min: ms(9), max: ms(8) }, 0.0), "jitter.min is 9ms: allowed is 0ms to max"),
        (
            jitter(Distribution::Normal { mean: ms(9), deviation: ms(8) }, 1.1),
            "jitter.correlation is 110%: allowed is 0% to 100%",
        ),
        (
            jitter(Distribution::Pareto { scale: ms(9), shape: 0.0, max: ms(10) }, 0.0),
            "jitter.shape is 0: allowed is 0.1 to 1000",
        ),
        (
            StageConfig::Reorder { probability: Ratio(0.5), by: ms(year) },
            "reorder.by is 31622400s: allowed is 0ms to 24h",
        ),
        (StageConfig::Duplicate { probability: Ratio(1.01) }, "duplicate.probability is 101%: allowed is 0% to 100%"),
        (
            StageConfig::Corrupt { probability: Ratio(-1.0), detected: true },
            "corrupt.probability is -100%: allowed is 0% to 100%",
        ),
        (
            StageConfig::Policer(PolicerConfig { framing: WireLen::IP, rate: RATE, burst: Bytes(0) }),
            "policer.burst is 0: allowed is 1 byte to 1 TiB",
        ),
        (StageConfig::Thinning(ThinningConfig { every: 0, hold: ms(1) }), "thinning.every is 0: allowed is 1 or more"),
        (radio(|radio| radio.max_packets = 0), "airtime.max_packets is 0: allowed is 1 to 4096"),
        (radio(|radio| radio.slot = Some(ms(0))), "airtime.slot is 0ms: allowed is 1ns to 24h"),
        (radio(|radio| radio.failure = Ratio(7.0)), "airtime.failure is 700%: allowed is 0% to 100%"),
    ];
    for (stage, expected) in table {
        assert_eq!(error(stage).to_string(), format!("stages[1].{expected}"));
    }
}

#[test]
fn a_queue_must_hold_a_packet_of_the_mtu_in_front_of_it() {
    let mtu = StageConfig::Mtu { mtu: Bytes(1_492) };
    let queue = |bytes| queue(RateConfig::Constant(RATE), bound(None, Some(bytes)), Discipline::DropTail);
    let error = PipeConfig { stages: vec![mtu.clone(), queue(1_491)] }.validate().expect_err("it is too short");
    let expected = "stages[1].queue.bytes is 1491: allowed is 1492 bytes or more, for the longest packet to fit";
    assert_eq!(error.to_string(), expected);
    assert_eq!(PipeConfig { stages: vec![mtu, queue(1_492)] }.validate(), Ok(()));
}

#[test]
fn a_path_names_the_link_and_the_direction() {
    let bad = LinkConfig { backward: vec![bernoulli(2.0)], ..LinkConfig::default() };
    let error = PathConfig { links: vec![LinkConfig::default(), bad] }.validate().expect_err("loss of 200 %");
    assert_eq!(error.field, "links[1].backward[0].loss.probability");
    let far = MediumConfig { extent: Duration::from_nanos(25_601), ..MediumConfig::hub(10) };
    let error = PathConfig { links: vec![LinkConfig { medium: Some(far), ..LinkConfig::default() }] }.validate();
    let text = error.expect_err("collisions would go unnoticed").to_string();
    assert!(text.starts_with("links[0].medium.extent is 25.601us: allowed is 0ms to 25.6us"), "{text}");
}

#[test]
fn there_are_bounds_on_links_stages_and_doubling() {
    let error = Path::<()>::new(&PathConfig { links: Vec::new() }, 1).expect_err("a path has links");
    assert_eq!(error.to_string(), "links is 0: allowed is 1 to 64 of them");
    let many = PathConfig { links: vec![LinkConfig::default(); 65] };
    assert_eq!(many.validate().expect_err("too many").to_string(), "links is 65: allowed is 1 to 64 of them");
    let stages = vec![StageConfig::Delay { delay: ms(0) }; 33];
    assert_eq!(PipeConfig { stages }.validate().expect_err("too many").field, "stages");
    let stages = vec![StageConfig::Duplicate { probability: Ratio(1.0) }; 4];
    assert_eq!(PipeConfig { stages }.validate().expect_err("too many").field, "stages.duplicate");
}

#[test]
fn defaults_and_presets_are_valid() {
    let stages = vec![
        managed(Discipline::CoDel(CoDelConfig::default())),
        managed(Discipline::FqCoDel(FqCoDelConfig::default())),
        managed(Discipline::Pie(PieConfig::default())),
        managed(Discipline::Red(RedConfig::between(5, 15))),
        radio(|_| ()),
        modem(|_| ()),
        StageConfig::Queue(QueueConfig::drop_tail(RATE, 1)),
    ];
    let link = LinkConfig { forward: stages.clone(), backward: stages, medium: Some(MediumConfig::hub(1)) };
    assert_eq!(PathConfig { links: vec![link; 64] }.validate(), Ok(()));
}
