//! The first-window engine against servers in virtual time: a model of Linux' sender, with seeded loss each way, on
//! machines that are overloaded, and servers that mean no good.

/// Servers that mean no good.
mod hostile;
/// Linux' sender.
mod linux;
/// The network.
mod world;

use linux::{Kind, LONG, Linux, Window};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::time::Duration;
use world::{Client, RTO, RTT, Weather, World};
use wt_probe::first_window::{HostResult, Limit, Verdict};

fn linux(kind: Kind, loss: f64, seed: u64) -> HostResult {
    weathered(kind, Weather { loss, ..Weather::default() }, seed)
}

fn weathered(kind: Kind, weather: Weather, seed: u64) -> HostResult {
    let client = Client { after: kind.greeting };
    World::new(seed, weather, move |isn| Box::new(Linux::new(kind, isn))).with_client(client).run(seed)
}

/// What came of many decisions.
#[derive(Debug, Default)]
struct Tally {
    exact: usize,
    wrong: Vec<String>,
    probes: usize,
}

impl Tally {
    /// Counts one against the window that the server really has.
    fn count(&mut self, found: &HostResult, n: u32, name: impl std::fmt::Display) {
        let decision = found.decision;
        self.probes += found.readings.len();
        self.exact += usize::from(decision.verdict == Verdict::Exact);
        let wrong = decision.segments > n || decision.verdict == Verdict::Exact && decision.segments != n;
        if wrong {
            self.wrong.push(format!("{name}: {n}, but {decision:?}\n    {:?}", found.readings));
        }
    }

    fn assert_none_wrong(&self, name: &str) {
        let shown = self.wrong.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(self.wrong.is_empty(), "{name}: {} wrong\n{shown}", self.wrong.len());
    }
}

#[test]
fn a_clean_path_takes_six_packets_and_little_more_than_a_timeout() {
    for n in [1, 2, 3, 10, 32, 100] {
        let found = linux(Kind { window: Window::Segments(n), ..LONG }, 0.0, 7);
        let decision = found.decision;
        assert_eq!((decision.verdict, decision.segments, decision.limit), (Verdict::Exact, n, Some(Limit::Segments)));
        assert_eq!((found.packets, found.readings.len()), (6, 2), "{n}");
        assert!(found.time <= 3 * RTT + RTO, "{n}: {:?}", found.time);
    }
}

#[test]
fn a_server_without_tail_loss_probes_is_asked_how_much_it_sent() {
    let found = linux(Kind { probes: false, ..LONG }, 0.0, 7);
    assert_eq!((found.decision.verdict, found.decision.segments, found.readings.len()), (Verdict::Exact, 10, 2));
    assert_eq!(found.packets, 10);
}

#[test]
fn short_responses_give_at_least_what_they_show() {
    for (size, n) in [(200, 5), (3000, 10)] {
        let found = linux(Kind { size, ..LONG }, 0.0, 7);
        let decision = found.decision;
        assert!(decision.segments <= 10 && (decision.verdict == Verdict::AtLeast || n == 10), "{size}: {decision:?}");
        assert!(decision.segments >= n.min(4), "{size}: {decision:?}");
    }
}

#[test]
fn windows_by_the_size_of_segments_are_told_from_windows_in_segments() {
    let rfc = Window::By(|mss| if mss > 1095 { 3 } else { 4 });
    let found = linux(Kind { window: rfc, ..LONG }, 0.0, 7);
    assert_eq!((found.decision.verdict, found.decision.limit), (Verdict::Exact, Some(Limit::Rfc5681)));
    let bytes = linux(Kind { window: Window::By(|mss| 4096 / mss), ..LONG }, 0.0, 7);
    assert_eq!((bytes.decision.verdict, bytes.decision.limit), (Verdict::AtLeast, Some(Limit::Bytes)));
}

#[test]
fn a_server_that_sends_longer_segments_than_it_was_offered_is_counted_by_its_segments() {
    for n in [3, 10] {
        let found = linux(Kind { window: Window::Segments(n), least_mss: 536, ..LONG }, 0.0, 7);
        assert!(found.decision.segments <= n, "{:?} {:#?}", found.decision, found.readings);
        assert_eq!(found.decision.segments, n, "{:?} {:#?}", found.decision, found.readings);
    }
}

#[test]
fn what_a_server_holds_back_to_send_it_at_once_is_counted() {
    let mut tally = Tally::default();
    for n in 4..=40 {
        for (large, greeting) in [(2, 1400), (2, 3500), (4, 1400), (8, 2700), (20, 1400)] {
            for probes in [true, false] {
                let kind = Kind { window: Window::Segments(n), large, greeting, probes, ..LONG };
                tally.count(&linux(kind, 0.0, 7), n, format_args!("{n} {large} {greeting} {probes}"));
            }
        }
    }
    println!("held back: {} of 370 exact, {} probes in all", tally.exact, tally.probes);
    tally.assert_none_wrong("held back");
    assert!(tally.exact >= 300, "{}", tally.exact);
}

#[test]
fn no_loss_makes_exactly_false() {
    for loss in [0.01, 0.03, 0.05] {
        for probes in [true, false] {
            let mut tally = Tally::default();
            for seed in 0..1000 {
                let n = [3, 10, 32][seed as usize % 3];
                let kind = Kind { window: Window::Segments(n), probes, ..LONG };
                tally.count(&linux(kind, loss, seed), n, seed);
            }
            tally.assert_none_wrong(&format!("loss {loss}, probes {probes}"));
            let Tally { exact, probes: used, .. } = tally;
            println!("loss {loss}, probes {probes}: {exact} of 1000 exact, {} probes a host", used as f64 / 1e3);
            assert!(exact >= 950 && used <= 2500, "{loss}: {exact} exact, {used} connections");
        }
    }
}

#[test]
fn no_overloaded_machine_makes_exactly_false() {
    let mut all = Tally::default();
    for seed in 0..4000u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
        let n = rng.random_range(1..=40);
        let ms = |rng: &mut ChaCha8Rng, most: u64| Duration::from_millis(rng.random_range(1..=most));
        let pause = rng.random::<bool>().then(|| (rng.random_range(40..20_000), ms(&mut rng, 800)));
        let kind = Kind {
            window: Window::Segments(n),
            probes: rng.random(),
            greeting: if rng.random() { rng.random_range(900..4000) } else { 0 },
            pause: pause.filter(|_| rng.random()),
            large: [1, 2, 2, 8][rng.random_range(0..4)],
            ..LONG
        };
        let every = ms(&mut rng, 400);
        let longest = if rng.random::<f64>() < 0.3 { 2500 } else { 500 };
        let weather = Weather {
            loss: [0.0, 0.0, 0.01, 0.05][rng.random_range(0..4)],
            stalls: Some((every, ms(&mut rng, longest), rng.random_range(2..200))),
        };
        all.count(&weathered(kind, weather, seed), n, format_args!("{seed} {kind:?} {weather:?}"));
    }
    println!("overloaded: {} of 4000 exact, {} probes a host", all.exact, all.probes as f64 / 4e3);
    all.assert_none_wrong("overloaded");
}
