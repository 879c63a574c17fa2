//! Paths of several links: hops, injected packets, shared mediums.

use std::time::Duration;
use wt_link::{
    DropReason, Event, LinkConfig, LossConfig, MediumConfig, Packet, Path, PathConfig, PathEvent, QueueConfig, Side,
    StageConfig, Time,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};

const MS: u64 = 1_000_000;

fn delay(ms: u64) -> StageConfig {
    StageConfig::Delay { delay: Duration::from_millis(ms) }
}

fn mtu(mtu: u64) -> StageConfig {
    StageConfig::Mtu { mtu: Bytes(mtu) }
}

fn queue(rate: u64) -> StageConfig {
    StageConfig::Queue(QueueConfig::drop_tail(BitsPerSecond(rate), 100))
}

fn both_ways(stages: Vec<StageConfig>) -> LinkConfig {
    LinkConfig { forward: stages.clone(), backward: stages, medium: None }
}

fn path(links: Vec<LinkConfig>) -> Path<u64> {
    Path::new(&PathConfig { links }, 3).expect("the links of a test are valid")
}

fn hub(packets: u32) -> LinkConfig {
    LinkConfig { forward: Vec::new(), backward: Vec::new(), medium: Some(MediumConfig::hub(packets)) }
}

fn all(path: &mut Path<u64>) -> Vec<PathEvent<u64>> {
    std::iter::from_fn(|| path.poll(Time::MAX)).collect()
}

fn seen(event: &PathEvent<u64>) -> (Side, usize, u64, Option<DropReason>) {
    match &event.event {
        Event::Deliver { at, .. } => (event.side, event.link, at.0 / MS, None),
        Event::Drop { at, reason, .. } => (event.side, event.link, at.0 / MS, Some(*reason)),
    }
}

#[test]
fn delays_of_all_links_add_up_in_both_directions() {
    let link =
        |forward, backward| LinkConfig { forward: vec![delay(forward)], backward: vec![delay(backward)], medium: None };
    let mut path = path(vec![link(1, 10), link(2, 20), link(3, 30)]);
    path.push(Side::AToB, Time(0), Packet::new(100, 0));
    path.push(Side::BToA, Time(0), Packet::new(100, 1));
    assert_eq!(
        all(&mut path).iter().map(seen).collect::<Vec<_>>(),
        [(Side::AToB, 2, 6, None), (Side::BToA, 0, 60, None)]
    );
}

#[test]
fn each_router_takes_one_from_the_time_to_live_and_the_last_one_drops() {
    let mut path = path(vec![both_ways(vec![delay(10)]); 4]);
    for ttl in 1..=5 {
        path.push(Side::AToB, Time(0), Packet { ttl, ..Packet::new(60, 0) });
        path.push(Side::BToA, Time(0), Packet { ttl, ..Packet::new(60, 0) });
    }
    let events: Vec<_> = all(&mut path).iter().map(seen).collect();
    let at = |side| {
        events.iter().filter(|event| event.0 == side).map(|event| (event.1, event.2, event.3)).collect::<Vec<_>>()
    };
    let limit = Some(DropReason::HopLimit);
    assert_eq!(at(Side::AToB), [(1, 10, limit), (2, 20, limit), (3, 30, limit), (3, 40, None), (3, 40, None)]);
    assert_eq!(at(Side::BToA), [(2, 10, limit), (1, 20, limit), (0, 30, limit), (0, 40, None), (0, 40, None)]);
}

#[test]
fn what_arrives_has_lost_as_many_lives_as_there_are_routers() {
    let mut path = path(vec![both_ways(vec![delay(1)]); 11]);
    path.push(Side::AToB, Time(0), Packet { ttl: 64, ..Packet::new(60, 0) });
    assert_eq!(all(&mut path)[0].event.packet().ttl, 54);
}

#[test]
fn a_hop_that_finds_a_packet_too_big_can_answer_from_where_it_stands() {
    let mut path = path(vec![
        both_ways(vec![mtu(1_500), delay(5)]),
        both_ways(vec![mtu(1_400), delay(7)]),
        both_ways(vec![delay(9)]),
    ]);
    path.push(Side::AToB, Time(0), Packet::new(1_500, 0));
    let due = path.next_due().unwrap();
    let event = path.poll(due).unwrap();
    assert_eq!(seen(&event), (Side::AToB, 1, 5, Some(DropReason::TooBig { mtu: 1_400 })));
    // The router in front of link 1 answers over link 0.
    assert!(path.inject(Side::BToA, event.link - 1, event.event.at(), Packet::new(576, 1)).is_ok());
    assert_eq!(all(&mut path).iter().map(seen).collect::<Vec<_>>(), [(Side::BToA, 0, 10, None)]);
    // A link that doesn't exist is the host itself.
    assert!(path.inject(Side::BToA, 0_usize.wrapping_sub(1), Time(0), Packet::new(576, 2)).is_err());
}

#[test]
fn an_injected_packet_takes_its_place_in_a_queue_as_if_nothing_were_computed_ahead() {
    // From B a long delay, then a slow line towards A. Packets from B reach the line at 100 ms.
    let backward = |stages| LinkConfig { forward: Vec::new(), backward: stages, medium: None };
    let mut path = path(vec![backward(vec![queue(12_000_000)]), backward(vec![delay(100)])]);
    (0..10).for_each(|number| path.push(Side::BToA, Time(0), Packet::new(1_500, number)));
    // The router in between sends a packet of its own, long before them, over the same line.
    path.inject(Side::BToA, 0, Time(20 * MS), Packet::new(1_500, 77)).unwrap();
    let events = all(&mut path);
    assert_eq!(seen(&events[0]), (Side::BToA, 0, 21, None));
    assert_eq!(events[0].event.packet().payload, 77);
    assert_eq!(seen(&events[10]), (Side::BToA, 0, 110, None));
}

#[test]
fn links_with_queues_in_a_row_carry_the_rate_of_the_slowest() {
    let stages =
        |rate| vec![StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(0.0) }), queue(rate), delay(3)];
    let mut path =
        path(vec![both_ways(stages(100_000_000)), both_ways(stages(12_000_000)), both_ways(stages(50_000_000))]);
    (0..90).for_each(|number| path.push(Side::AToB, Time(0), Packet::new(1_500, number)));
    let events = all(&mut path);
    let times: Vec<u64> = events.iter().map(|event| event.event.at().0).collect();
    // 120 µs and 3 ms to the slow line, a millisecond each there, 3 ms, 240 µs and 3 ms.
    let expected: Vec<u64> =
        (1..=90).map(|number| 120_000 + 3 * MS + number * MS + 3 * MS + 240_000 + 3 * MS).collect();
    assert_eq!(times, expected);
}

#[test]
fn a_path_of_one_link_does_what_its_pipe_does() {
    let stages = vec![
        mtu(1_400),
        StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(0.1) }),
        queue(12_000_000),
        delay(5),
    ];
    let mut path = path(vec![both_ways(stages.clone())]);
    let mut pipe = wt_link::Pipe::new(&wt_link::PipeConfig { stages }, 3).unwrap();
    for number in 0..1_000 {
        let packet = Packet::new(200 + (number * 37 % 1_300) as u32, number);
        path.push(Side::AToB, Time(number * MS / 2), packet.clone());
        pipe.push(Time(number * MS / 2), packet);
    }
    let alone: Vec<Event<u64>> = std::iter::from_fn(|| pipe.poll(Time::MAX)).collect();
    assert_eq!(all(&mut path).into_iter().map(|event| event.event).collect::<Vec<_>>(), alone);
}

#[test]
fn directions_lose_different_packets() {
    let loss = vec![StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(0.5) })];
    let mut path = path(vec![both_ways(loss)]);
    for number in 0..100 {
        path.push(Side::AToB, Time(number), Packet::new(100, number));
        path.push(Side::BToA, Time(number), Packet::new(100, number));
    }
    let events = all(&mut path);
    let lost = |side| -> Vec<u64> {
        let dropped = |event: &&PathEvent<u64>| event.side == side && matches!(event.event, Event::Drop { .. });
        events.iter().filter(dropped).map(|event| event.event.packet().payload).collect()
    };
    assert_ne!(lost(Side::AToB), lost(Side::BToA));
}

/// The times of a frame on a 10 Mbit/s hub: preamble 8, header and checksum 18; 100 ns a bit; 2.5 µs to the other end.
fn frame_time(ip_len: u64) -> u64 {
    (8 + (ip_len + 18).max(64)) * 800
}

const GAP: u64 = 9_600;
const EXTENT: u64 = 2_500;

#[test]
fn one_station_alone_fills_the_hub_with_frames_and_gaps() {
    let mut hub = path(vec![hub(200)]);
    (0..100).for_each(|number| hub.push(Side::AToB, Time(0), Packet::new(1_500, number)));
    let times: Vec<u64> = all(&mut hub).iter().map(|event| event.event.at().0).collect();
    let expected: Vec<u64> = (1..=100).map(|number| number * (GAP + frame_time(1_500)) + EXTENT).collect();
    assert_eq!(times, expected);
    assert_eq!(hub.stats().links[0].medium.unwrap()[0].collisions, 0);
}

#[test]
fn a_short_packet_is_padded_to_the_least_frame() {
    let mut hub = path(vec![hub(10)]);
    hub.push(Side::AToB, Time(MS), Packet::new(40, 0));
    assert_eq!(all(&mut hub)[0].event.at().0, MS + frame_time(46) + EXTENT);
}

#[test]
fn a_station_that_hears_the_other_waits_for_the_end_and_the_gap() {
    let mut hub = path(vec![hub(10)]);
    hub.push(Side::AToB, Time(MS), Packet::new(1_500, 0));
    hub.push(Side::BToA, Time(MS + 500_000), Packet::new(40, 1));
    let events = all(&mut hub);
    let end = MS + frame_time(1_500) + EXTENT;
    assert_eq!(events[0].event.at().0, end);
    assert_eq!(events[1].event.at().0, end + GAP + frame_time(46) + EXTENT);
}

#[test]
fn stations_that_begin_together_collide_back_off_by_whole_slots_and_get_through() {
    let slot = 51_200;
    for begin in [MS, 2 * MS + 3] {
        let mut hub = path(vec![hub(10)]);
        // The second begins before it can hear the first.
        hub.push(Side::AToB, Time(begin), Packet::new(500, 0));
        hub.push(Side::BToA, Time(begin + 1_000), Packet::new(500, 1));
        let events = all(&mut hub);
        assert_eq!(events.len(), 2);
        assert!(events.iter().all(|event| matches!(event.event, Event::Deliver { .. })));
        let stats = hub.stats().links[0].medium.unwrap();
        assert!(stats[0].collisions >= 1 && stats[0].collisions == stats[1].collisions);
        if stats[0].collisions == 1 {
            // Both noticed within the preamble, sent it and the jam: 96 bits.
            let first = &events[0];
            let from = begin + if first.side == Side::AToB { 0 } else { 1_000 };
            let began = first.event.at().0 - frame_time(500) - EXTENT;
            let waited = began - (from + 9_600);
            // No slot at all is the gap after the last carrier.
            assert!(waited.is_multiple_of(slot) || waited < slot, "{waited}");
        }
    }
}

#[test]
fn a_crowded_hub_loses_nothing_but_what_collided_sixteen_times() {
    let mut hub = path(vec![hub(10_000)]);
    for number in 0..5_000 {
        hub.push(Side::AToB, Time(number), Packet::new(1_500, number));
        hub.push(Side::BToA, Time(number), Packet::new(1_500, number));
    }
    let events = all(&mut hub);
    assert_eq!(events.len(), 10_000);
    let stats = hub.stats();
    let stations = stats.links[0].medium.unwrap();
    assert_eq!(
        (stats.delivered, stats.dropped),
        (stations[0].sent + stations[1].sent, stations[0].dropped + stations[1].dropped)
    );
    assert!(events.iter().all(|event| matches!(
        event.event,
        Event::Deliver { .. } | Event::Drop { reason: DropReason::Collisions, .. }
    )));
    // Two stations with long frames: nearly all of the time is frames and gaps.
    let last = events.last().unwrap().event.at().0;
    let useful = stats.delivered * (frame_time(1_500) + GAP);
    assert!(useful as f64 / last as f64 > 0.9, "{}", useful as f64 / last as f64);
    assert!(stations[0].collisions > 500);
    // In the long run both get their share.
    let share = stations[0].sent as f64 / (stations[0].sent + stations[1].sent) as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn acknowledgements_against_the_stream_cost_the_stream() {
    let goodput = |acks: bool| {
        let mut hub = path(vec![hub(10_000)]);
        for number in 0..2_000 {
            hub.push(Side::AToB, Time(0), Packet::new(1_500, number));
        }
        // One for every other packet, about as they arrive.
        if acks {
            (0..1_000).for_each(|number| hub.push(Side::BToA, Time(number * 2_460_000), Packet::new(52, number)));
        }
        let events = all(&mut hub);
        let last = events.iter().filter(|event| event.side == Side::AToB).map(|event| event.event.at().0).max();
        2_000.0 * 12_000.0 / last.unwrap() as f64 * 1e3
    };
    assert!((goodput(false) - 12_000e3 / (frame_time(1_500) + GAP) as f64).abs() < 0.001, "{}", goodput(false));
    assert!((8.5..9.6).contains(&goodput(true)), "{}", goodput(true));
}

#[test]
fn a_hub_between_routers_passes_packets_on_in_both_directions() {
    let mut path = path(vec![both_ways(vec![delay(5)]), hub(100), both_ways(vec![queue(12_000_000), delay(5)])]);
    path.push(Side::AToB, Time(0), Packet { ttl: 3, ..Packet::new(1_500, 0) });
    path.push(Side::BToA, Time(0), Packet { ttl: 2, ..Packet::new(1_500, 1) });
    let events = all(&mut path);
    let across = frame_time(1_500) + EXTENT;
    let packets: Vec<_> = events.iter().map(|event| (event.side, event.link, event.event.at().0)).collect();
    // From B: 1 ms on the line and 5 ms; then the hub, on which the other is until 6.2 ms; the router behind it finds no
    // life left.
    assert_eq!(packets[0], (Side::BToA, 0, 5 * MS + across + GAP + across));
    assert_eq!(packets[1], (Side::AToB, 2, 5 * MS + across + MS + 5 * MS));
    assert!(matches!(events[0].event, Event::Drop { reason: DropReason::HopLimit, .. }));
    let stats = path.stats();
    assert_eq!((stats.pushed, stats.delivered, stats.dropped, stats.held), (2, 1, 1, 0));
    assert_eq!((stats.links[2].backward.len(), stats.links[0].forward[0].entered), (2, 1));
}

/// Events at the ends of a path that stops at these routers, each of which sends everything on at once.
fn with_stops(links: Vec<LinkConfig>, stops: &[usize], sends: &[(Side, u64, Packet<u64>)]) -> Vec<PathEvent<u64>> {
    let last = links.len() - 1;
    let mut path = Path::with_stops(&PathConfig { links }, 3, stops).expect("the links of a test are valid");
    for (side, at, packet) in sends {
        path.push(*side, Time(*at), packet.clone());
    }
    let mut events = Vec::new();
    while let Some(PathEvent { side, link, event }) = path.poll(Time::MAX) {
        let end = if side == Side::AToB { last } else { 0 };
        match event {
            Event::Deliver { at, packet } if link != end => {
                let next = if side == Side::AToB { link + 1 } else { link - 1 };
                path.forward(side, next, at, packet).expect("a router stands before that link");
            }
            event => events.push(PathEvent { side, link, event }),
        }
    }
    assert_eq!(path.stats().held, 0);
    events
}

#[test]
fn routers_that_hand_packets_out_change_nothing() {
    let lossy = StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(0.2) });
    let links = vec![
        both_ways(vec![delay(1), queue(10_000_000)]),
        both_ways(vec![mtu(1400), lossy, queue(5_000_000), delay(3)]),
        hub(50),
        both_ways(vec![queue(8_000_000), delay(2)]),
    ];
    let sends: Vec<_> = (0..400)
        .map(|number| {
            let side = if number % 3 == 0 { Side::BToA } else { Side::AToB };
            let ttl = if number % 7 == 0 { 2 } else { 64 };
            (side, number * MS / 2, Packet { ttl, ..Packet::new(300 + (number as u32 * 37) % 1200, number) })
        })
        .collect();
    let without = with_stops(links.clone(), &[], &sends);
    assert!(without.iter().any(|event| matches!(event.event, Event::Drop { reason: DropReason::HopLimit, .. })));
    for stops in [&[1][..], &[2], &[3], &[1, 2, 3], &[2, 3]] {
        let with = with_stops(links.clone(), stops, &sends);
        let key = |event: &PathEvent<u64>| (event.event.at(), event.event.packet().payload);
        let sorted = |mut events: Vec<PathEvent<u64>>| {
            events.sort_by_key(key);
            events
        };
        assert_eq!(sorted(with), sorted(without.clone()), "{stops:?}");
    }
}

#[test]
fn only_a_router_that_hands_packets_out_sends_them_on() {
    let mut path: Path<u64> =
        Path::with_stops(&PathConfig { links: vec![LinkConfig::default(); 3] }, 1, &[2]).expect("valid");
    let packet = Packet::new(60, 0);
    assert!(path.forward(Side::AToB, 1, Time::ZERO, packet.clone()).is_err(), "router 1 hands nothing out");
    assert!(path.forward(Side::AToB, 3, Time::ZERO, packet.clone()).is_err(), "there is no link 3");
    assert!(path.forward(Side::BToA, 2, Time::ZERO, packet.clone()).is_err(), "that is the host");
    assert!(path.forward(Side::BToA, 1, Time::ZERO, packet.clone()).is_ok());
    assert!(path.forward(Side::AToB, 2, Time::ZERO, packet).is_ok());
}
