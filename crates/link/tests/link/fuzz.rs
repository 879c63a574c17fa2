//! Random stages, random operations: what always holds, and a simple model beside the real thing.

use crate::common::{UNBOUNDED, packets, queue_of, seeded};
use proptest::prelude::*;
use std::time::Duration;
use wt_link::{
    AirtimeConfig, CoDelConfig, Discipline, Distribution, DropReason, Event, FqCoDelConfig, JitterConfig, LinkConfig,
    LossConfig, MediumConfig, ModemConfig, OutageConfig, Packet, Path, PathConfig, PathEvent, PieConfig, PipeConfig,
    PolicerConfig, QueueBound, QueueConfig, QueueLayer, RateConfig, RedConfig, RetrainConfig, Side, StageConfig,
    StepsConfig, ThinningConfig, Time, TokenBucketConfig, Trace, TraceConfig, WireLen,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};

fn ratio() -> impl Strategy<Value = Ratio> {
    prop_oneof![Just(Ratio(0.0)), Just(Ratio(1.0)), (0.0..1.0).prop_map(Ratio)]
}

fn rate() -> impl Strategy<Value = BitsPerSecond> {
    prop_oneof![1_000..1_000_000_u64, 1_000_000..100_000_000_000_u64].prop_map(BitsPerSecond)
}

fn micros(most: u64) -> impl Strategy<Value = Duration> {
    (0..=most).prop_map(Duration::from_micros)
}

fn line() -> impl Strategy<Value = RateConfig> {
    let steps = (rate(), rate(), 1..20_000_u64, prop::option::of(20_001..50_000_u64)).prop_map(|(a, b, at, period)| {
        let steps = vec![(Duration::ZERO, a), (Duration::from_micros(at), b)];
        RateConfig::Steps(StepsConfig { steps, period: period.map(Duration::from_micros) })
    });
    let trace = (1..20_u32, 1..20_u32, 100..3_000_u64).prop_map(|(first, more, bytes)| {
        let text = format!("{first}\n{first}\n{}\n", first + more);
        let trace = Trace::parse(text.as_bytes()).expect("the lines are in order");
        RateConfig::Trace(TraceConfig { trace, bytes: Bytes(bytes) })
    });
    let bucket = (rate(), 1..100_000_u64, any::<bool>()).prop_map(|(rate, burst, peaked)| {
        let peak = peaked.then_some(BitsPerSecond(rate.get() * 3));
        RateConfig::TokenBucket(TokenBucketConfig { rate, burst: Bytes(burst), peak })
    });
    let modem =
        (1_000..1_000_000_u64, ratio(), 0.5..8.0, any::<bool>()).prop_map(|(rate, escapes, compression, trains)| {
            let retrain = RetrainConfig { every: Duration::from_secs(1), lasts: Duration::from_millis(900) };
            let (rate, retrain) = (BitsPerSecond(rate), trains.then_some(retrain));
            RateConfig::Modem(ModemConfig { rate, bits_per_byte: 8, escapes, compression, retrain })
        });
    prop_oneof![3 => rate().prop_map(RateConfig::Constant), 1 => steps, 1 => trace, 1 => bucket, 1 => modem]
}

fn discipline() -> impl Strategy<Value = Discipline> {
    prop_oneof![
        Just(Discipline::DropTail),
        any::<bool>().prop_map(|gentle| Discipline::Red(RedConfig {
            gentle,
            ecn: true,
            weight: 0.3,
            ..RedConfig::between(2, 6)
        })),
        any::<bool>().prop_map(|ecn| Discipline::CoDel(CoDelConfig { ecn, ..CoDelConfig::default() })),
        (1..5_u32).prop_map(|flows| Discipline::FqCoDel(FqCoDelConfig { flows, ..FqCoDelConfig::default() })),
        any::<bool>().prop_map(|ecn| Discipline::Pie(PieConfig { ecn, ..PieConfig::default() })),
    ]
}

fn bound() -> impl Strategy<Value = QueueBound> {
    (prop::option::of(1..30_u32), prop::option::of(1..50_000_u64), any::<bool>()).prop_map(|(packets, bytes, wire)| {
        let counted = if wire { QueueLayer::WireLen } else { QueueLayer::IpLen };
        QueueBound { packets, bytes: bytes.map(Bytes), counted }
    })
}

fn framing() -> impl Strategy<Value = WireLen> {
    prop_oneof![
        Just(WireLen::IP),
        Just(WireLen::Plain { add: 38, min: 84 }),
        Just(WireLen::Atm { add: 40 }),
        Just(WireLen::Ptm { add: 30 })
    ]
}

fn jitter() -> impl Strategy<Value = StageConfig> {
    let distribution = prop_oneof![
        (micros(5_000), micros(5_000)).prop_map(|(min, more)| Distribution::Uniform { min, max: min + more }),
        (micros(5_000), micros(5_000)).prop_map(|(mean, deviation)| Distribution::Normal { mean, deviation }),
        (1..5_000_u64, 0.5..10.0).prop_map(|(scale, shape)| Distribution::Pareto {
            scale: Duration::from_micros(scale),
            shape,
            max: Duration::from_secs(1)
        }),
    ];
    (distribution, ratio(), any::<bool>()).prop_map(|(distribution, correlation, reorder)| {
        StageConfig::Jitter(JitterConfig { distribution, correlation, reorder })
    })
}

fn loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        ratio().prop_map(|probability| LossConfig::Bernoulli { probability }),
        ratio().prop_map(|probability| LossConfig::ByDataIndex { probability }),
        (1..9_u64).prop_map(|n| LossConfig::EveryNth { n }),
        (1..9_u64).prop_map(|first| LossConfig::Numbered { packets: vec![first, first + 2] }),
        (0..1_500_u64, ratio(), ratio()).prop_map(|(above, long, short)| LossConfig::BySize {
            above: Bytes(above),
            long,
            short
        }),
        (ratio(), ratio(), ratio(), ratio()).prop_map(|(to_bad, to_good, loss_good, loss_bad)| {
            LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad }
        }),
    ]
}

fn radio() -> impl Strategy<Value = StageConfig> {
    let times = (micros(3_000), micros(500), prop::option::of(1..5_000_u64), micros(9_000));
    (framing(), rate(), times, 1..20_u32, 1..60_000_u64, 0.0..0.9, 0..5_u8, bound()).prop_map(
        |(framing, rate, (access, backoff, slot, retry_after), max_packets, max_bytes, failure, max_retries, bound)| {
            StageConfig::Airtime(AirtimeConfig {
                framing,
                rate,
                access,
                backoff,
                slot: slot.map(Duration::from_micros),
                max_packets,
                max_bytes: Bytes(max_bytes),
                failure: Ratio(failure),
                max_retries,
                retry_after,
                bound,
            })
        },
    )
}

/// Any stage that invents no packets.
fn stage() -> impl Strategy<Value = StageConfig> {
    let queue = (framing(), line(), bound(), discipline()).prop_map(|(framing, rate, bound, discipline)| {
        StageConfig::Queue(QueueConfig { framing, rate, bound, discipline })
    });
    let outages =
        (1..5_000_u64, 1..5_000_u64, prop::option::of(10_001..50_000_u64)).prop_map(|(from, lasts, period)| {
            let windows = vec![(Duration::from_micros(from), Duration::from_micros(from + lasts))];
            StageConfig::Outages(OutageConfig { windows, period: period.map(Duration::from_micros) })
        });
    prop_oneof![
        6 => queue,
        1 => (68..2_000_u64).prop_map(|mtu| StageConfig::Mtu { mtu: Bytes(mtu) }),
        2 => loss().prop_map(StageConfig::Loss),
        1 => outages,
        2 => micros(20_000).prop_map(|delay| StageConfig::Delay { delay }),
        2 => jitter(),
        1 => (ratio(), micros(9_000)).prop_map(|(probability, by)| StageConfig::Reorder { probability, by }),
        1 => (ratio(), any::<bool>()).prop_map(|(probability, detected)| StageConfig::Corrupt { probability, detected }),
        1 => (framing(), rate(), 1..50_000_u64).prop_map(|(framing, rate, burst)| {
            StageConfig::Policer(PolicerConfig { framing, rate, burst: Bytes(burst) })
        }),
        1 => (1..6_u32, micros(9_000)).prop_map(|(every, hold)| StageConfig::Thinning(ThinningConfig { every, hold })),
        2 => radio(),
    ]
}

fn stages() -> impl Strategy<Value = Vec<StageConfig>> {
    (prop::collection::vec(stage(), 0..5), prop::option::of(ratio()))
        .prop_map(|(mut stages, doubling)| {
            stages.extend(doubling.map(|probability| StageConfig::Duplicate { probability }));
            let by = usize::from(stages.len() > 2);
            stages.rotate_right(by);
            stages
        })
        .prop_filter("a queue of bytes too short for the MTU", |stages: &Vec<StageConfig>| {
            PipeConfig { stages: stages.clone() }.validate().is_ok()
        })
}

/// A packet and how long after the one before it; gaps are even, so that polls at odd times never tie with arrivals.
#[derive(Debug, Clone)]
struct Arrival {
    gap: u64,
    packet: Packet<u64>,
    side: Side,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0), (0..2_000_u64), (0..5_000_000_u64)].prop_map(|gap| gap * 2);
    let arrival = (gap, 20..1_600_u32, 0..4_u32, any::<[bool; 4]>(), 1..9_u8);
    let arrival = arrival.prop_map(|(gap, ip_len, flow, [ack, ect, data, forward], ttl)| Arrival {
        gap,
        packet: Packet { flow, ttl, ect, pure_ack: ack, data_len: u32::from(data), ..Packet::new(ip_len, 0) },
        side: if forward { Side::AToB } else { Side::BToA },
    });
    prop::collection::vec(arrival, 0..120).prop_map(|mut arrivals| {
        (0..).zip(&mut arrivals).for_each(|(number, arrival)| arrival.packet.payload = number);
        arrivals
    })
}

/// Pushes the arrivals and polls whenever `poll_every` has passed (at odd times), and at the end.
fn run_pipe(stages: &[StageConfig], arrivals: &[Arrival], poll_every: u64) -> Vec<Event<u64>> {
    let mut pipe = seeded(stages.to_vec(), 11);
    let (mut now, mut next_poll, mut events) = (0, 1, Vec::new());
    for arrival in arrivals {
        now += arrival.gap;
        while next_poll < now {
            // Between two things to do, all polls are alike.
            let due = pipe.next_due().map_or(u64::MAX, |due| due.0);
            let skipped = due.min(now).saturating_sub(next_poll) / poll_every * poll_every;
            next_poll += skipped;
            events.extend(std::iter::from_fn(|| pipe.poll(Time(next_poll))));
            next_poll += poll_every;
        }
        pipe.push(Time(now), arrival.packet.clone());
        let stats = pipe.stats();
        assert_eq!(stats.pushed + stats.duplicated, stats.delivered + stats.dropped + stats.held);
    }
    events.extend(std::iter::from_fn(|| pipe.poll(Time::MAX)));
    let stats = pipe.stats();
    assert_eq!((stats.held, pipe.next_due()), (0, None), "everything comes out in the end");
    assert_eq!(stats.delivered + stats.dropped, events.len() as u64);
    assert_eq!(stats.stages.iter().map(|stage| stage.dropped).sum::<u64>(), stats.dropped);
    events
}

fn at_next_due(stages: &[StageConfig], arrivals: &[Arrival]) -> Vec<Event<u64>> {
    let mut pipe = seeded(stages.to_vec(), 11);
    let (mut now, mut events) = (0, Vec::new());
    for arrival in arrivals {
        now += arrival.gap;
        while let Some(due) = pipe.next_due().filter(|due| due.0 < now) {
            let before = due.0.checked_sub(1).and_then(|before| pipe.poll(Time(before)));
            assert_eq!(before, None, "nothing comes before it is due");
            events.extend(pipe.poll(due));
        }
        pipe.push(Time(now), arrival.packet.clone());
    }
    while let Some(due) = pipe.next_due() {
        events.extend(pipe.poll(due));
    }
    events
}

/// A drop-tail queue and a delay behind an MTU, with fractions of u128 and lists that are searched from end to end.
fn model(arrivals: &[Arrival], rate: u64, limit: usize, mtu: u32, delay: u64) -> Vec<(u64, Option<u64>)> {
    let (mut now, mut end, mut departures) = (0_u64, 0_u128, Vec::<u64>::new());
    let mut fates = Vec::new();
    for Arrival { gap, packet, .. } in arrivals {
        now += gap;
        let inside = departures.iter().filter(|departure| **departure > now).count();
        if packet.ip_len > mtu || inside >= limit {
            fates.push((packet.payload, None));
            continue;
        }
        end = end.max(u128::from(now) * u128::from(rate)) + u128::from(packet.ip_len) * 8_000_000_000;
        let departure = end.div_ceil(u128::from(rate)) as u64;
        departures.push(departure);
        fates.push((packet.payload, Some(departure + delay)));
    }
    fates
}

fn link() -> impl Strategy<Value = LinkConfig> {
    (stages(), stages(), prop::option::weighted(0.2, bound())).prop_map(|(forward, backward, hub)| LinkConfig {
        forward,
        backward,
        medium: hub.map(|bound| MediumConfig { bound, ..MediumConfig::hub(1) }),
    })
}

/// Whether somebody must know in time: a host that gets it, or a router that answers.
fn wakes(event: &PathEvent<u64>) -> bool {
    let answered = |reason| matches!(reason, DropReason::TooBig { .. } | DropReason::HopLimit);
    matches!(event.event, Event::Deliver { .. })
        || matches!(event.event, Event::Drop { reason, .. } if answered(reason))
}

fn run_path(links: &[LinkConfig], arrivals: &[Arrival], poll_between: bool) -> Vec<PathEvent<u64>> {
    let mut path = Path::new(&PathConfig { links: links.to_vec() }, 5).expect("the links are valid");
    let (mut now, mut events) = (0, Vec::new());
    for arrival in arrivals {
        now += arrival.gap;
        if poll_between {
            while let Some(due) = path.next_due().filter(|due| due.0 < now) {
                let wake = path.next_wake().expect("something is due");
                let event = path.poll(due);
                assert!(wake >= due && event.as_ref().is_none_or(|event| !wakes(event) || event.event.at() >= wake));
                events.extend(event);
            }
        }
        path.push(arrival.side, Time(now), arrival.packet.clone());
    }
    events.extend(std::iter::from_fn(|| path.poll(Time::MAX)));
    let stats = path.stats();
    assert_eq!((stats.held, path.next_due()), (0, None));
    assert_eq!((stats.pushed, stats.delivered + stats.dropped), (arrivals.len() as u64, events.len() as u64));
    assert_eq!(stats.pushed + stats.duplicated, events.len() as u64);
    events
}

/// Stages whose outcome follows from the arrivals alone.
fn plain_stages() -> impl Strategy<Value = Vec<StageConfig>> {
    let queue = (rate(), 1..20_u32)
        .prop_map(|(rate, bound)| queue_of(RateConfig::Constant(rate), packets(bound), Discipline::DropTail));
    let stage = prop_oneof![
        (68..1_600_u64).prop_map(|mtu| StageConfig::Mtu { mtu: Bytes(mtu) }),
        queue,
        micros(20_000).prop_map(|delay| StageConfig::Delay { delay }),
    ];
    prop::collection::vec(stage, 0..4)
}

/// What becomes of packets that enter a chain of links at different links, by running one link after the other.
fn link_by_link(links: &[Vec<StageConfig>], arrivals: &[(u64, usize, Packet<u64>)]) -> Option<Vec<(u64, u64)>> {
    let (mut passed, mut out) = (Vec::<(u64, Packet<u64>)>::new(), Vec::new());
    for (link, stages) in links.iter().enumerate() {
        let entering = arrivals.iter().filter(|arrival| arrival.1 == link);
        if entering.clone().any(|entering| passed.iter().any(|passed| passed.0 == entering.0)) {
            // Which of two comes first, one from before and one from here at the same time, is not said.
            return None;
        }
        passed.extend(entering.map(|(at, _, packet)| (*at, packet.clone())));
        passed.sort_by_key(|(at, _)| *at);
        let mut pipe = seeded(stages.clone(), 1);
        passed.drain(..).for_each(|(at, packet)| pipe.push(Time(at), packet));
        while let Some(event) = pipe.poll(Time::MAX) {
            match event {
                Event::Deliver { at, packet } => passed.push((at.0, packet)),
                Event::Drop { at, packet, .. } => out.push((packet.payload, at.0)),
            }
        }
    }
    out.extend(passed.into_iter().map(|(at, packet)| (packet.payload, at)));
    out.sort_unstable();
    Some(out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_come_in_the_order_of_time_and_no_packet_is_lost_or_invented(stages in stages(), arrivals in arrivals()) {
        let events = run_pipe(&stages, &arrivals, u64::MAX / 4);
        prop_assert!(events.is_sorted_by_key(Event::at));
        let mut seen: Vec<u64> = events.iter().map(|event| event.packet().payload).collect();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen, (0..arrivals.len() as u64).collect::<Vec<_>>());
        let mut arrived = 0;
        let times: Vec<u64> = arrivals.iter().map(|arrival| { arrived += arrival.gap; arrived }).collect();
        prop_assert!(events.iter().all(|event| event.at().0 >= times[event.packet().payload as usize]));
    }

    #[test]
    fn how_often_somebody_polls_changes_nothing(stages in stages(), arrivals in arrivals()) {
        let once = run_pipe(&stages, &arrivals, u64::MAX / 4);
        prop_assert_eq!(&at_next_due(&stages, &arrivals), &once);
        for poll_every in [2, 1_000, 1_000_000, 1_000_000_000] {
            prop_assert_eq!(&run_pipe(&stages, &arrivals, poll_every), &once);
        }
    }

    #[test]
    fn a_queue_and_a_delay_are_what_the_simple_model_says(
        arrivals in arrivals(), rate in 1_000..10_000_000_000_u64, limit in 1..20_u32, mtu in 68..1_700_u32, delay in 0..10_000_000_u64,
    ) {
        let stages = vec![
            StageConfig::Mtu { mtu: Bytes(mtu.into()) },
            queue_of(RateConfig::Constant(BitsPerSecond(rate)), packets(limit), Discipline::DropTail),
            StageConfig::Delay { delay: Duration::from_nanos(delay) },
        ];
        let mut fates: Vec<(u64, Option<u64>)> = run_pipe(&stages, &arrivals, 1_000).iter().map(|event| match event {
            Event::Deliver { at, packet } => (packet.payload, Some(at.0)),
            Event::Drop { packet, .. } => (packet.payload, None),
        }).collect();
        fates.sort_unstable();
        prop_assert_eq!(fates, model(&arrivals, rate, limit as usize, mtu, delay));
    }

    #[test]
    fn a_queue_never_holds_more_than_its_bound(bound in bound(), line in line(), discipline in discipline(), arrivals in arrivals()) {
        let mut pipe = seeded(vec![queue_of(line, bound, discipline)], 2);
        let mut now = 0;
        for arrival in &arrivals {
            now += arrival.gap;
            pipe.push(Time(now), arrival.packet.clone());
            while pipe.poll(Time(now)).is_some() {}
            let queue = &pipe.stats().stages[0];
            prop_assert!(bound.packets.is_none_or(|most| queue.max_queue_packets <= most.into()));
            prop_assert!(bound.counted == QueueLayer::WireLen || bound.bytes.is_none_or(|most| queue.max_queue_bytes <= most.get()));
            prop_assert!(queue.queue_packets <= queue.max_queue_packets && queue.queue_bytes <= queue.max_queue_bytes);
        }
    }

    #[test]
    fn a_line_that_keeps_order_delivers_in_order(line in line(), framing in framing(), arrivals in arrivals()) {
        let queue = QueueConfig { framing, rate: line, bound: UNBOUNDED, discipline: Discipline::DropTail };
        let events = run_pipe(&[StageConfig::Queue(queue)], &arrivals, 1_000_000);
        prop_assert!(events.is_sorted_by_key(|event| event.packet().payload));
        let delivered = |event: &Event<u64>| matches!(event, Event::Deliver { .. });
        prop_assert!(events.len() == arrivals.len() && events.iter().all(delivered));
    }

    #[test]
    fn a_path_of_any_links_loses_and_invents_nothing(links in prop::collection::vec(link(), 1..4), arrivals in arrivals()) {
        let once = run_path(&links, &arrivals, false);
        prop_assert!(once.is_sorted_by_key(|event| event.event.at()));
        for event in &once {
            let end = if event.side == Side::AToB { links.len() - 1 } else { 0 };
            let delivered = matches!(event.event, Event::Deliver { .. });
            prop_assert!(event.link < links.len() && (!delivered || event.link == end));
            let limit = matches!(event.event, Event::Drop { reason: DropReason::HopLimit, .. });
            prop_assert_eq!(limit, event.event.packet().ttl == 0);
        }
        prop_assert_eq!(&run_path(&links, &arrivals, true), &once);
    }

    #[test]
    fn a_chain_of_links_does_what_its_links_do_one_after_the_other(
        links in prop::collection::vec(plain_stages(), 1..5), arrivals in arrivals(), enter in prop::collection::vec(0..9_usize, 120),
    ) {
        let mut now = 0;
        let arrivals: Vec<(u64, usize, Packet<u64>)> = arrivals.into_iter().zip(enter).map(|(arrival, link)| {
            now += arrival.gap;
            // Most come from the host, the others from a router.
            let link = if link < links.len() { link } else { 0 };
            (now, link, Packet { ttl: 64, ..arrival.packet })
        }).collect();
        let expected = link_by_link(&links, &arrivals);
        prop_assume!(expected.is_some());
        let config = links.into_iter().map(|forward| LinkConfig { forward, ..LinkConfig::default() }).collect();
        let mut path = Path::new(&PathConfig { links: config }, 1).expect("the links are valid");
        let mut out = Vec::new();
        for (at, link, packet) in arrivals {
            while let Some(due) = path.next_due().filter(|due| due.0 < at) {
                out.extend(path.poll(due));
            }
            prop_assert!(path.inject(Side::AToB, link, Time(at), packet).is_ok());
        }
        out.extend(std::iter::from_fn(|| path.poll(Time::MAX)));
        let mut out: Vec<(u64, u64)> = out.iter().map(|event| (event.event.packet().payload, event.event.at().0)).collect();
        out.sort_unstable();
        prop_assert_eq!(Some(out), expected);
    }
}
