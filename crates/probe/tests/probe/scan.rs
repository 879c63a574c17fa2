//! Scans of loss by size over simulated paths.

use crate::common::{Link, Net, RunCost, rng, run, run_with, run_with_outage};
use std::time::Duration;
use wt_probe::{Answer, Kind, ProbeAnswer, Scan, ScanConfig, goodput};

/// Packets that the search for the path MTU takes before a scan.
const SEARCHED: u32 = 35;

/// As the command does it, with its defaults.
fn config(sizes: Vec<u16>) -> ScanConfig {
    let first = 125.max(4 * u32::try_from(sizes.len()).unwrap_or(u32::MAX));
    let (quick, most) = (1000 - SEARCHED, 6000 - SEARCHED);
    ScanConfig {
        sizes,
        pmtu: 1400,
        kind: Kind::Echo,
        split: true,
        loose: true,
        first,
        quick,
        most,
        most_in_all: 20_000,
    }
}

fn scan(net: &Net, sizes: Vec<u16>) -> (Scan, RunCost) {
    let mut scan = Scan::new(config(sizes), rng(net.seed));
    let ran = run(net, &mut scan);
    (scan, ran)
}

fn lossy(seed: u64, above: u16, loss: [f64; 2]) -> Net {
    let mut net = Net { pps: 2000, ..Net::new(seed) };
    (net.links[1].loss_above, net.links[1].loss) = (above, loss);
    net
}

fn fine() -> Vec<u16> {
    (0..25).map(|i| 1204 + 8 * i).collect()
}

#[test]
fn a_threshold_of_five_percent_is_found_to_eight_bytes_with_a_thousand_packets() {
    for loss in [[0.05, 0.0], [0.05, 0.05]] {
        let (mut right, mut safe, mut few, mut most, mut longest) = (0, 0, 0, 0, Duration::ZERO);
        for seed in 0..100 {
            let (scan, ran) = scan(&lossy(seed, 1300, loss), fine());
            few += u32::from(ran.packets <= 1000 - SEARCHED && ran.time <= Duration::from_millis(1300));
            (most, longest) = (ran.packets.max(most), ran.time.max(longest));
            let Some(found) = scan.threshold() else { continue };
            right += u32::from(found.below <= 1308 && found.above >= 1293);
            safe += u32::from(found.safe <= 1300);
        }
        assert!(
            right >= 95 && safe >= 95 && few >= 95,
            "{right} right, {safe} safe, {few} with few of 100 at {loss:?}; most {most}, {longest:?}"
        );
    }
}

#[test]
fn one_percent_is_detected_in_58_of_60_within_6000_packets_and_4_seconds() {
    let coarse: Vec<u16> = (576..=1500).step_by(12).collect();
    for sizes in [coarse, fine()] {
        let (mut detected, mut safe, mut near) = (0, 0, 0);
        for seed in 0..60 {
            let (scan, ran) = scan(&lossy(seed, 1300, [0.01, 0.0]), sizes.clone());
            let found = scan.threshold();
            detected += u32::from(found.is_some());
            // What is advised lies where nothing gets lost.
            safe += u32::from(found.is_some_and(|found| found.safe <= 1300));
            near += u32::from(found.is_some_and(|found| found.safe >= 1200));
            assert!(ran.packets <= 6000 - SEARCHED + 12, "{}", ran.packets);
            assert!(ran.time <= Duration::from_secs(4), "{:?}", ran.time);
        }
        assert!(detected >= 58 && safe >= 57 && near >= 52, "{detected} detected, {safe} safe, {near} near of 60");
    }
}

#[test]
fn equal_loss_of_all_sizes_is_not_called_size_dependent_in_a_thousand_scans() {
    // Without a difference, a threshold may come up in one scan of a thousand.
    let mut wrong = 0;
    for seed in 0..1000 {
        let mut scan = Scan::new(ScanConfig { most: 1000, ..config(fine()) }, rng(seed));
        run(&lossy(seed, 0, [0.02, 0.0]), &mut scan);
        wrong += u32::from(scan.threshold().is_some());
    }
    assert!(wrong <= 2, "{wrong} of 1000");
}

#[test]
fn a_bad_second_is_no_difference_between_sizes() {
    // Everything gets lost for a while at the beginning, and nothing later, when only two sizes are sent.
    for seed in 0..20 {
        let net = Net::new(seed);
        let mut scan = Scan::new(ScanConfig { split: false, ..config(fine()) }, rng(seed));
        run_with_outage(&net, &mut scan, Duration::from_millis(2));
        let lost: u32 = scan.sizes().iter().map(|row| row.count.lost()).sum();
        assert!(lost > 50, "{lost}");
        assert_eq!(scan.threshold(), None, "seed {seed}");
    }
}

#[test]
fn a_loss_of_thirty_percent_is_split_into_both_directions_within_three_points() {
    for (there, back) in [(0.3, 0.3), (0.3, 0.0), (0.0, 0.3)] {
        let mut off: Vec<f64> = Vec::new();
        for seed in 0..20 {
            let (scan, _) = scan(&lossy(seed, 1300, [there, back]), fine());
            let found = scan.directions().expect("both kinds were sent");
            off.extend([(found.forward - there).abs(), (found.reverse - back).abs()]);
        }
        let beyond = off.iter().filter(|off| **off > 0.03).count();
        assert!(beyond <= 1, "{beyond} of 40 are off by more than three points: {off:?}");
    }
}

#[test]
fn an_unlucky_beginning_doesnt_end_the_split_of_a_large_loss() {
    for seed in 0..200 {
        let (scan, _) = scan(&lossy(seed, 1300, [0.3, 0.0]), fine());
        let found = scan.directions().expect("both kinds were sent");
        assert!((found.forward - 0.3).abs() < 0.06 && found.reverse < 0.06, "seed {seed}: {found:?}");
    }
}

#[test]
fn too_long_sizes_are_sent_three_times_and_count_for_no_threshold() {
    let (scan, _) = scan(&Net::new(1), vec![576, 1000, 1400, 1412, 1500]);
    let rows = scan.sizes();
    assert_eq!(rows.iter().map(|row| row.count.sent).collect::<Vec<_>>()[3..], [3, 3]);
    assert_eq!(rows[3].count.answered, 0);
    assert!(scan.threshold().is_none() && scan.directions().is_none());
}

#[test]
fn loss_by_the_scans_own_rate_is_told_from_loss_by_size() {
    for seed in 0..20 {
        let mut net = lossy(seed, 1300, [0.0; 2]);
        net.links[1].police = Some((30.0, 1300.0));
        let (scan, _) = scan(&net, fine());
        let check = scan.rate_check().expect("short packets got lost");
        assert_eq!((check.halvings, check.persists), (1, false), "{check:?}");
        assert!(check.full.loss() > 0.1 && check.half.lost() == 0, "{check:?}");
        assert!(scan.threshold().is_none() && scan.sizes().iter().all(|row| row.count.lost() == 0 || row.size > 1400));
        // The same with loss that isn't the rate's: nothing begins anew.
        let (scan, _) = self::scan(&lossy(seed, 0, [0.02; 2]), fine());
        let check = scan.rate_check().expect("short packets got lost");
        assert_eq!((check.halvings, check.persists, check.is_ruled_out()), (0, false, true), "{check:?}");
    }
}

#[test]
fn a_policer_of_bytes_is_no_loss_by_size() {
    let sizes: Vec<u16> = [68, 128, 256, 384, 512].into_iter().chain((576..=1500).step_by(12)).collect();
    for (burst, mbit) in [(15e3, 10.0), (100e3, 10.0), (15e3, 6.0), (30e3, 14.0), (15e3, 0.5)] {
        for seed in 0..20 {
            let mut net = Net { links: vec![Link::mtu(1500); 3], ..lossy(seed, 1300, [0.0; 2]) };
            net.links[1].police_bytes = Some((burst, mbit * 1e6 / 8.0));
            let mut scan = Scan::new(ScanConfig { pmtu: 1500, ..config(sizes.clone()) }, rng(seed));
            run(&net, &mut scan);
            let check = scan.rate_check();
            assert_eq!(scan.threshold(), None, "{burst} at {mbit}: {check:?}");
            let told = check.is_some_and(|check| check.halvings > 0 || check.persists);
            // Where next to nothing exceeds the rate, nothing gets clear.
            assert!(told || mbit > 12.0, "{burst} at {mbit}: {check:?}");
        }
    }
}

#[test]
fn loss_at_a_target_that_rations_its_answers_is_never_said_to_be_not_by_the_rate() {
    let mut open = 0;
    for seed in 0..20 {
        let net = Net { echoes: Some((50.0, 100.0)), ..lossy(seed, 1300, [0.0; 2]) };
        let mut scan = Scan::new(ScanConfig { split: false, ..config(fine()) }, rng(seed));
        run(&net, &mut scan);
        let check = scan.rate_check().expect("short packets got lost");
        assert!(!check.is_ruled_out(), "{check:?}");
        open += u32::from(check.halvings == 0 && !check.persists);
    }
    assert!(open > 0, "each was shown to be by the rate");
}

/// All sizes that the command tries by itself, of a path of 1500 bytes.
fn usual() -> Vec<u16> {
    [68, 128, 256, 384, 512].into_iter().chain((576..=1500).step_by(12)).collect()
}

/// A path of 1500 bytes, and the scan of its echoes alone.
fn whole(net: Net, seed: u64) -> (Net, Scan) {
    let echoes = ScanConfig { pmtu: 1500, split: false, ..config(usual()) };
    (Net { links: vec![Link::mtu(1500); 3], ..net }, Scan::new(echoes, rng(seed)))
}

#[test]
fn a_large_loss_of_the_few_longest_sizes_is_told_from_the_scans_own_rate() {
    for (above, loss) in [(1400, [0.6, 0.6]), (1480, [0.6, 0.6]), (1480, [0.5, 0.0]), (1480, [0.9, 0.0])] {
        for seed in 0..10 {
            let (mut net, mut scan) = whole(lossy(seed, 1300, [0.0; 2]), seed);
            (net.links[1].loss_above, net.links[1].loss) = (above, loss);
            run(&net, &mut scan);
            let found = scan.threshold();
            let right = found.is_some_and(|found| found.below <= above + 12 && found.above > above - 12);
            assert!(right, "{above}, {loss:?}, {seed}: {found:?}, {:?}", scan.rate_check());
        }
    }
}

#[test]
fn the_burst_that_a_policer_has_saved_up_makes_no_loss_by_size() {
    for (burst, mbit) in [(50e3, 0.5), (100e3, 1.5), (50e3, 3.1), (50e3, 4.7)] {
        for seed in 0..5 {
            let (mut net, mut scan) = whole(lossy(seed, 1300, [0.0; 2]), seed);
            net.links[1].police_bytes = Some((burst, mbit * 1e6 / 8.0));
            run(&net, &mut scan);
            assert_eq!(scan.threshold(), None, "{burst} at {mbit}, {seed}: {:?}", scan.rate_check());
        }
    }
}

#[test]
fn a_scan_with_nothing_left_for_quickness_goes_on_while_it_may_send() {
    for (quick, most) in [(0, 5000), (100, 5000), (200, 350), (245, 245)] {
        for seed in 0..5 {
            let few = ScanConfig { quick, most, first: 105, split: false, loose: false, ..config(fine()) };
            let mut scan = Scan::new(few, rng(seed));
            run(&lossy(seed, 1300, [0.4, 0.3]), &mut scan);
            let clear = scan.evidence();
            assert!(clear.is_some(), "{quick} of {most}, {seed}: {} packets, {:?}", scan.packets(), scan.sizes());
        }
    }
}

#[test]
fn exactly_so_many_packets_leave_as_were_asked_for_where_no_size_is_too_long() {
    for many in [10, 20, 200] {
        let only = ScanConfig { split: false, loose: false, first: many, quick: many, most: many, ..config(vec![84]) };
        let mut scan = Scan::new(ScanConfig { most_in_all: many, ..only }, rng(1));
        assert_eq!(run(&Net::new(1), &mut scan).packets, many);
    }
}

#[test]
fn packets_that_may_be_cut_get_through_where_others_dont() {
    let sizes = vec![576, 1000, 1400, 1500];
    let (scan, _) = scan(&Net::new(1), sizes.clone());
    let loose = scan.loose().expect("1500 bytes don't get through whole");
    assert_eq!((loose.size, loose.count.sent, loose.count.answered), (1500, 12, 12));
    let (scan, _) = self::scan(&Net { links: vec![Link::mtu(1500); 3], ..Net::new(1) }, vec![576, 1000, 1400]);
    assert_eq!(scan.loose(), None, "nothing was lost");
}

#[test]
fn a_clean_path_is_told_before_all_packets_are_spent() {
    for seed in 0..20 {
        let (scan, ran) = scan(&lossy(seed, 1300, [0.0; 2]), fine());
        assert!(scan.threshold().is_none() && ran.packets <= 5000, "{}", ran.packets);
    }
}

#[test]
fn no_more_packets_leave_than_were_allowed_however_few() {
    let sizes: Vec<u16> = (0..78).map(|i| 576 + 12 * i).collect();
    for most in [1, 20, 60, 78, 100, 300, 1000] {
        let net = lossy(u64::from(most), 1300, [0.05, 0.0]);
        let few = ScanConfig { quick: most, most, most_in_all: most, ..config(sizes.clone()) };
        let mut scan = Scan::new(few, rng(3));
        let ran = run(&net, &mut scan);
        // A handshake's two packets come before those of any size.
        assert!(ran.packets <= most.max(3) + 2, "{} of {most}", ran.packets);
        let seen = scan.sizes();
        assert_eq!(seen.last().unwrap().size, 1500, "the longest is among them");
        assert!(seen.len() >= (most as usize / 2).min(78), "{} sizes by {most} packets", seen.len());
        assert_eq!(scan.left_out(), 78 - seen.len());
    }
}

#[test]
fn loss_costs_a_loss_based_control_far_more_than_a_rate_based_one() {
    let rtt = Duration::from_millis(40);
    let (long, short) = (goodput(1360, 40, 0.01, rtt, 12.5e6), goodput(1260, 40, 0.0, rtt, 12.5e6));
    assert!(short.loss_based / long.loss_based > 20.0);
    assert!((0.9..1.1).contains(&(short.rate_based / long.rate_based)));
    // What the model of Linux with CUBIC comes to over 100 Mbit/s: 916, 431 and 254 kbit/s, and 159 kbit/s over 150 ms.
    for (loss, ms, modelled) in [(0.1, 40, 916e3), (0.2, 40, 431e3), (0.3, 40, 254e3), (0.2, 150, 159e3)] {
        let told = goodput(1448, 52, loss, Duration::from_millis(ms), 12.5e6).loss_based * 8.0;
        assert!((0.7..1.4).contains(&(told / modelled)), "{loss}, {ms} ms: {told}");
    }
    // What the model of BBR comes to over 100 Mbit/s: 65, 42 and 0.32 Mbit/s.
    for (loss, modelled) in [(0.1, 65e6), (0.18, 42e6), (0.3, 0.32e6)] {
        let told = goodput(1448, 52, loss, rtt, 12.5e6).rate_based * 8.0;
        assert!((0.6..1.7).contains(&(told / modelled)), "{loss}: {told}");
    }
    // At a third it is timeouts that cost: Mathis and others would say 70 kB/s.
    assert!(goodput(1360, 40, 1.0 / 3.0, rtt, 12.5e6).loss_based < 30_000.0);
}

#[test]
fn round_trips_are_those_of_the_path_whatever_is_sent() {
    for kind in [Kind::Echo, Kind::Stream] {
        let net = Net::new(3);
        let config = ScanConfig { kind, split: false, loose: false, ..config(vec![576]) };
        let mut scan = Scan::new(config, rng(3));
        run(&net, &mut scan);
        let rtts: Vec<_> = scan.rtts().collect();
        assert!(rtts.len() >= 100 && rtts.iter().all(|rtt| *rtt == net.rtt), "{kind:?}: {rtts:?}");
        assert_eq!(scan.sizes()[0].rtt, Some(net.rtt), "{kind:?}");
    }
}

#[test]
fn round_trips_are_as_long_as_the_kernel_measured_them_however_late_they_were_looked_at() {
    let net = Net::new(3);
    let trip = Duration::from_micros(39);
    let config = ScanConfig { kind: Kind::Stream, split: false, loose: false, ..config(vec![576]) };
    let mut scan = Scan::new(config, rng(3));
    let timed = |id, at| Answer { id, at, from: Some(net.target()), said: ProbeAnswer::Timed { trip } };
    run_with(&net, &mut scan, |probe, at| vec![timed(probe.id, at)]);
    assert!(scan.rtts().count() >= 100 && scan.rtts().all(|rtt| rtt == trip));
}
