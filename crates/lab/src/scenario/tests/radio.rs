use super::*;
use wt_link::{AirtimeConfig, Event, Packet, Path, PathConfig, Side, StageConfig, Time};

/// The radio of a direction, which may be changed.
fn radio_of(direction: &mut Direction) -> &mut AirtimeConfig {
    match &mut direction.line {
        Some(StageConfig::Airtime(radio)) => radio,
        other => panic!("no radio: {other:?}"),
    }
}

#[test]
fn a_radio_carries_at_most_what_its_exchanges_hold_without_what_fails() {
    let most = |scenario: &Scenario| scenario.full_size(1500).goodput_up.get();
    let mut lte = presets::load("lte").unwrap();
    assert_eq!(
        most(&lte),
        13_500_000 * 1448 / 1500,
        "a slot is full: 1875 bytes are 15 Mbit/s, a tenth of which fails"
    );
    let mut wifi = presets::load("wifi").unwrap();
    radio_of(&mut wifi.links[0].up).failure = Ratio(0.0);
    // Of 1540 bytes 42 fit, which takes 1724.8 µs at 300 Mbit/s, and each exchange costs 150 µs and back-off of 67.5 µs.
    assert_eq!(most(&wifi), 42 * 1540 * 8 * 10_000_000 / 19_423 * 1448 / 1540);
    let radio = radio_of(&mut wifi.links[0].up);
    // What lasts longer than a slot takes two.
    (radio.slot, radio.max_bytes, radio.backoff) = (Some(Duration::from_millis(1)), Bytes(37_500), Duration::ZERO);
    assert_eq!(most(&wifi), 150_000_000 * 1448 / 1540);
    radio_of(&mut lte.links[0].up).failure = Ratio(1.0);
    assert_eq!((most(&lte), lte.dead_end().is_some()), (0, true));
}

/// Packets of 1500 bytes so far apart through what sends upwards, and nothing else: the bits per second of those that got over, and
/// how long each took beyond its bits, in the mean.
fn sent(scenario: &Scenario, apart: Duration, packets: u64) -> (f64, Duration) {
    let link = &scenario.links[0];
    let wire = link.framing.wire_len(Bytes(1500));
    let line: Vec<StageConfig> = link.up.line.clone().into_iter().collect();
    let config = PathConfig { links: vec![wt_link::LinkConfig { forward: line, backward: Vec::new(), medium: None }] };
    let mut path = Path::new(&config, 7).unwrap();
    let (mut bits, mut took, mut end) = (0.0, Duration::ZERO, 0);
    let mut came = 0u32;
    for number in 0..packets {
        // Odd enough to meet every part of a slot.
        let at = Time(number * apart.as_nanos() as u64 + number * number * 7_919 % 1_000_003);
        path.push(Side::AToB, at, Packet::new(1500, at));
        let due = if number + 1 == packets { Time::MAX } else { at };
        while let Some(event) = path.poll(due) {
            if let Event::Deliver { at, packet } = event.event {
                (bits, came, end) = (bits + wire.get() as f64 * 8.0, came + 1, at.0);
                took += at - packet.payload;
            }
        }
    }
    (bits * 1e9 / end as f64, took / came.max(1) - wire / link.up.rate)
}

#[test]
fn what_a_radio_carries_and_how_long_it_takes_is_what_its_stage_does() {
    let (ms, us) = (Duration::from_millis, Duration::from_micros);
    let preset = |name: &str, change: &dyn Fn(&mut AirtimeConfig)| {
        let mut scenario = presets::load(name).unwrap();
        change(radio_of(&mut scenario.links[0].up));
        scenario
    };
    for (what, scenario) in [
        ("lte", preset("lte", &|_| ())),
        ("5g", preset("5g", &|_| ())),
        ("wifi", preset("wifi", &|_| ())),
        ("half fails", preset("lte", &|radio| (radio.failure, radio.max_retries) = (Ratio(0.5), 7))),
        (
            "half fails, and once again",
            preset("wifi", &|radio| {
                (radio.failure, radio.max_retries, radio.max_packets) = (Ratio(0.5), 1, 1);
            }),
        ),
        ("one by one", preset("wifi", &|radio| (radio.max_packets, radio.backoff) = (1, ms(10)))),
        (
            "in slots",
            preset("wifi", &|radio| {
                (radio.slot, radio.access, radio.backoff, radio.max_bytes) =
                    (Some(ms(1)), us(150), us(1_900), Bytes(30_000));
            }),
        ),
        ("in pieces", preset("lte", &|radio| radio.max_bytes = Bytes(600))),
    ] {
        let link = &scenario.links[0];
        let wire = link.framing.wire_len(Bytes(1500)).get();
        let full = scenario.full_size(1500);
        let carried = full.goodput_up.get() as f64 * wire as f64 / full.payload as f64;
        let (rate, _) = sent(&scenario, Bytes(wire) / BitsPerSecond((carried * 1.6) as u64), 12_000);
        // The room of what has arrived behind a failed packet isn't counted.
        let least = if what == "wifi" { 0.94 } else { 0.98 };
        assert!((least..1.02).contains(&(rate / carried)), "{what}: {rate} of {carried}");
        let idle = crate::scenario::radio::mean_wait(radio_of(&mut scenario.links[0].clone().up), wire).as_secs_f64();
        let (_, took) = sent(&scenario, ms(300), 6_000);
        let ratio = took.as_secs_f64() / idle;
        assert!((0.95..1.05).contains(&ratio), "{what}: {took:?} of {idle}");
    }
}

#[test]
fn the_rtt_over_a_radio_has_what_it_waits_for() {
    // 36 ms, half a slot each way, and for one in nine that fails nine slots.
    let lte = presets::load("lte").unwrap().full_size(1500);
    assert!((0.0390..0.0405).contains(&lte.rtt.as_secs_f64()), "{:?}", lte.rtt);
    let mut slow = presets::load("wifi").unwrap();
    let before = slow.full_size(1500);
    for way in [true, false] {
        let link = &mut slow.links[0];
        radio_of(if way { &mut link.up } else { &mut link.down }).backoff += Duration::from_millis(10);
    }
    let more = slow.full_size(1500).rtt - before.rtt;
    // Half of it each way, and as long again after a failure of one in twenty.
    assert!((0.0104..0.0107).contains(&more.as_secs_f64()), "{more:?}");
}
