//! Active queue management: what each discipline is for, and its constants where they show.

use crate::common::{all, deliveries, drops, packets, pipe, queue_of};
use std::time::Duration;
use wt_link::{
    CoDelConfig, Discipline, DropReason, Event, FqCoDelConfig, Packet, PieConfig, Pipe, RateConfig, RedConfig, Time,
};
use wt_units::{BitsPerSecond, Ratio};

const MS: u64 = 1_000_000;

/// 12 Mbit/s, a packet of 1500 bytes per millisecond, with room for a thousand.
fn managed(discipline: Discipline) -> Pipe<u64> {
    pipe(vec![queue_of(RateConfig::Constant(BitsPerSecond(12_000_000)), packets(1_000), discipline)])
}

/// A load of so many packets per second, evenly, for so long; the payload is the arrival in nanoseconds.
fn load(pipe: &mut Pipe<u64>, per_second: u64, from: Duration, lasts: Duration, flow: u32, ect: bool) {
    let gap = 1_000_000_000 / per_second;
    let begin = from.as_nanos() as u64;
    for number in 0..lasts.as_nanos() as u64 / gap {
        let at = begin + number * gap;
        pipe.push(Time(at), Packet { flow, ect, ..Packet::new(1_500, at) });
    }
}

/// The delays of what arrived between two times, milliseconds; the packet's own millisecond on the line included.
fn delays(events: &[Event<u64>], from: Duration, to: Duration) -> Vec<f64> {
    let inside = |at: &u64| (from.as_nanos() as u64..to.as_nanos() as u64).contains(at);
    deliveries(events).into_iter().filter(|(_, at)| inside(at)).map(|(sent, at)| (at - sent) as f64 / 1e6).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn marks(events: &[Event<u64>]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Deliver { packet, .. } if packet.ce)).count()
}

#[test]
fn codel_begins_to_drop_an_interval_after_the_delay_has_passed_its_target_and_then_faster_and_faster() {
    let mut codel = managed(Discipline::CoDel(CoDelConfig::default()));
    load(&mut codel, 1_100, Duration::ZERO, secs(2), 0, false);
    let dropped_at: Vec<u64> = all(&mut codel)
        .iter()
        .filter(|event| matches!(event, Event::Drop { reason: DropReason::Aqm, .. }))
        .map(|event| event.at().0 / MS)
        .collect();
    // The queue grows by one packet in ten: the wait passes 5 ms after 50 to 60 ms; the first drop is 100 ms later.
    assert!((150..=165).contains(&dropped_at[0]), "{dropped_at:?}");
    // Then after 100 ms, 100/√2, 100/√3 …, each at the next time that a packet is taken.
    let mut next = dropped_at[0] as f64;
    for (count, at) in (1..).zip(&dropped_at[1..6]) {
        next += 100.0 / f64::from(count).sqrt();
        assert!((*at as f64 - next).abs() <= 6.0, "drop {count} at {at} ms, not {next}");
    }
}

#[test]
fn codel_leaves_a_burst_alone_that_is_gone_within_an_interval() {
    let mut codel = managed(Discipline::CoDel(CoDelConfig::default()));
    (0..90).for_each(|number| codel.push(Time(0), Packet::new(1_500, number)));
    assert_eq!(drops(&all(&mut codel)), []);
}

#[test]
fn codel_marks_instead_of_dropping_where_it_may() {
    let config = CoDelConfig { ecn: true, ..CoDelConfig::default() };
    let mut codel = managed(Discipline::CoDel(config));
    load(&mut codel, 1_100, Duration::ZERO, secs(2), 0, true);
    let events = all(&mut codel);
    assert_eq!(drops(&events), []);
    assert!(marks(&events) > 20);
    assert_eq!(codel.stats().stages[0].marked, marks(&events) as u64);
}

#[test]
fn fq_codel_gives_a_sparse_flow_its_way_past_a_bulk_flow() {
    let delay_of_sparse = |discipline| {
        let mut queue = managed(discipline);
        let mut arrivals: Vec<(u64, u32)> = (0..4_000).map(|number| (number * MS / 2, 1)).collect();
        arrivals.extend((0..100).map(|number| (number * 20 * MS, 2)));
        arrivals.sort_unstable();
        for (at, flow) in arrivals {
            let len = if flow == 1 { 1_500 } else { 100 };
            queue.push(Time(at), Packet { flow, ..Packet::new(len, at << 8 | u64::from(flow)) });
        }
        let events = all(&mut queue);
        let sparse = deliveries(&events).into_iter().filter(|(payload, _)| payload & 0xFF == 2);
        sparse.map(|(payload, at)| (at - (payload >> 8)) as f64 / 1e6).fold(0.0, f64::max)
    };
    // At worst a bulk packet is on the line, and one more of its quantum.
    assert!(delay_of_sparse(Discipline::FqCoDel(FqCoDelConfig::default())) < 2.2);
    assert!(delay_of_sparse(Discipline::DropTail) > 500.0);
}

#[test]
fn fq_codel_shares_the_line_evenly_between_flows_of_any_packet_size() {
    let mut queue = managed(Discipline::FqCoDel(FqCoDelConfig::default()));
    // Three greedy flows, of packets of 1500, 750 and 300 bytes.
    for number in 0..20_000_u64 {
        for (flow, len) in [(1, 1_500), (2, 750), (3, 300)] {
            queue.push(Time(number * MS / 4), Packet { flow, ..Packet::new(len, 0) });
        }
    }
    let mut bytes = [0_u64; 4];
    for event in all(&mut queue) {
        if let Event::Deliver { at: Time(1_000_000_000..4_000_000_000), packet } = event {
            bytes[packet.flow as usize] += u64::from(packet.ip_len);
        }
    }
    let share = |flow: usize| bytes[flow] as f64 / (3.0 * 1_500_000.0);
    assert!((1..=3).all(|flow| (share(flow) - 1.0 / 3.0).abs() < 0.02), "{bytes:?}");
}

#[test]
fn a_full_fq_codel_queue_drops_from_the_longest_flow() {
    let mut queue = managed(Discipline::FqCoDel(FqCoDelConfig::default()));
    (0..999).for_each(|_| queue.push(Time(0), Packet { flow: 1, ..Packet::new(1_500, 0) }));
    (0..200).for_each(|_| queue.push(Time(0), Packet { flow: 2, ..Packet::new(100, 0) }));
    for event in all(&mut queue) {
        if let Event::Drop { packet, .. } = event {
            assert_eq!(packet.flow, 1);
        }
    }
    assert!(queue.stats().stages[0].max_queue_packets <= 1_000);
}

#[test]
fn pie_holds_the_delay_near_its_target_under_overload() {
    let mut pie = managed(Discipline::Pie(PieConfig::default()));
    load(&mut pie, 1_500, Duration::ZERO, secs(60), 0, false);
    let events = all(&mut pie);
    let delay = mean(&delays(&events, secs(20), secs(60)));
    assert!((10.0..25.0).contains(&delay), "{delay} ms");
    let share = drops(&events).len() as f64 / (1_500.0 * 60.0);
    assert!((share - 1.0 / 3.0).abs() < 0.02, "the excess is dropped, {share}");
    assert!(drops(&events).iter().all(|(_, reason)| *reason == DropReason::Aqm));
}

#[test]
fn pie_lets_a_burst_through_after_quiet_and_forgets_an_hour_at_once() {
    let mut pie = managed(Discipline::Pie(PieConfig::default()));
    load(&mut pie, 1_500, Duration::ZERO, secs(5), 0, false);
    let hour = secs(3_600);
    let begin = hour.as_nanos() as u64;
    (0..100).for_each(|number| pie.push(Time(begin), Packet::new(1_500, begin + number)));
    let events = all(&mut pie);
    assert!(!drops(&events).is_empty());
    assert!(drops(&events).iter().all(|(payload, _)| *payload < begin), "the burst passes");
}

#[test]
fn pie_marks_while_a_tenth_is_enough() {
    let config = PieConfig { ecn: true, ..PieConfig::default() };
    // A second of three percent too much: the probability stays below a tenth.
    let mut pie = managed(Discipline::Pie(config));
    load(&mut pie, 900, Duration::ZERO, secs(2), 0, true);
    load(&mut pie, 1_030, secs(2), secs(1), 0, true);
    let events = all(&mut pie);
    assert!(marks(&events) > 0);
    assert_eq!(drops(&events), []);
}

/// What RED does to a queue that is kept at a length: the shares of drops and marks.
fn red_at(config: RedConfig, length: u64, ect: bool) -> (f64, f64) {
    let mut red = managed(Discipline::Red(RedConfig { weight: 1.0, ..config }));
    let mut inside = 0_u64;
    let (mut dropped, mut marked, mut offered) = (0, 0, 0);
    let mut now = 0;
    while offered < 20_000 {
        // Fills up to the length, then lets one packet out.
        while inside < length {
            red.push(Time(now), Packet { ect, ..Packet::new(1_500, 0) });
            offered += u64::from(inside == length - 1);
            let gone = red.poll(Time(now)).is_some();
            dropped += u64::from(gone && inside == length - 1);
            inside += u64::from(!gone);
        }
        now += MS;
        while let Some(event) = red.poll(Time(now)) {
            if let Event::Deliver { packet, .. } = event {
                marked += u64::from(packet.ce);
                inside -= 1;
            }
        }
    }
    (dropped as f64 / offered as f64, marked as f64 / offered as f64)
}

#[test]
fn red_drops_nobody_below_its_minimum_and_everybody_above_its_maximum() {
    let config = RedConfig { max_probability: Ratio(0.1), ..RedConfig::between(10, 30) };
    assert_eq!(red_at(config, 9, false).0, 0.0);
    let mut red = managed(Discipline::Red(RedConfig { weight: 1.0, ..config }));
    (0..1_000).for_each(|number| red.push(Time(0), Packet::new(1_500, number)));
    // With the average as long as the queue, it never gets beyond the maximum.
    assert!(deliveries(&all(&mut red)).len() <= 30);
}

#[test]
fn red_spaces_its_drops_so_that_their_share_is_about_twice_the_basic_probability() {
    // Uniform in 1 … 1/p: the mean distance is half of 1/p (Floyd and Jacobson, section VII).
    let config = RedConfig { max_probability: Ratio(0.1), ..RedConfig::between(10, 30) };
    let basic = 0.1 * (20.0 - 10.0) / 20.0;
    let (dropped, marked) = red_at(config, 21, false);
    assert!((dropped / (2.0 * basic) - 1.0).abs() < 0.1, "{dropped}");
    assert_eq!(marked, 0.0);
}

#[test]
fn red_averages_over_bursts() {
    // With the paper's weight a burst of a hundred packets moves the average by less than ten.
    let mut red = managed(Discipline::Red(RedConfig::between(10, 30)));
    (0..100).for_each(|number| red.push(Time(0), Packet::new(1_500, number)));
    assert_eq!(drops(&all(&mut red)), []);
}

#[test]
fn red_marks_where_it_may() {
    let config = RedConfig { ecn: true, max_probability: Ratio(0.1), ..RedConfig::between(10, 30) };
    let mut red = managed(Discipline::Red(RedConfig { weight: 0.5, ..config }));
    load(&mut red, 1_050, Duration::ZERO, secs(1), 0, true);
    let events = all(&mut red);
    let early: Vec<&Event<u64>> = events.iter().filter(|event| event.at().0 < 400 * MS).collect();
    assert!(early.iter().any(|event| matches!(event, Event::Deliver { packet, .. } if packet.ce)));
    assert!(early.iter().all(|event| matches!(event, Event::Deliver { .. })));
}
