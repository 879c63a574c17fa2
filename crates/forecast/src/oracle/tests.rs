use super::*;
use wt_lab::presets;
use wt_setup::design::{DesignFacts, Levels, design};
use wt_units::Knob;

/// What is compared on a far, lossy path by a host with this congestion control, and what is expected of it.
fn chosen(cc: &str, given: &[&str]) -> (Design, Expectation) {
    let scenario = presets::load("freebsd-scp").unwrap();
    let stack = StackConfig { congestion_control: cc.to_owned(), ..StackConfig::default() };
    let oracle = Oracle::new(&scenario, stack).unwrap();
    let (path, current) = (scenario.facts(Direction::Down), oracle.tunnels[0].current());
    let controls = ["reno", "cubic", "bbr", "highspeed"].map(str::to_owned);
    let known =
        DesignFacts { current: &current, path: &path, congestion_controls: &controls, mss: 1448, best_mtu: &|_| None };
    let given: Vec<Levels> = given.iter().map(|text| text.parse().unwrap()).collect();
    let mut design = design(&[Knob::Rwin, Knob::Cc], &given, &known).unwrap();
    let time = Duration::from_secs(40);
    let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Time(time) };
    let named = |arm: &Arm| arm.settings.iter().any(|(knob, _)| given.iter().any(|levels| levels.knob == knob));
    let expected = oracle.choose(&mut design, &workload, &path, &named).unwrap();
    (design, expected)
}

fn of_settings<'a>(expected: &'a Expectation, settings: &str) -> &'a ExpectedArm {
    expected.arms.iter().find(|arm| arm.settings.to_string() == settings).unwrap()
}

#[test]
fn what_bears_loss_weighs_more_and_what_the_model_lacks_is_tried_all_the_same() {
    let (design, expected) = chosen("cubic", &[]);
    let bbr = of_settings(&expected, "cc=bbr");
    assert!(bbr.gain.unwrap() > 0.3 && bbr.weight > 1.0 && !bbr.left_out, "{bbr:?}");
    let other = of_settings(&expected, "cc=highspeed");
    assert_eq!((other.gain, other.weight, other.left_out), (None, 1.0, false));
    assert_eq!(expected.weights().len(), design.arms.len() - 1);
    assert!(expected.lines().iter().any(|line| line.contains("cc=bbr: the model expects +")), "{:?}", expected.lines());
    let arm = design.arms.iter().find(|arm| arm.label == "cc=bbr").unwrap();
    assert!(arm.why.contains("known error"), "{}", arm.why);
}

#[test]
fn what_is_hopeless_is_left_out_unless_somebody_named_it() {
    let (design, expected) = chosen("bbr", &[]);
    let left_out: Vec<&str> = expected.arms.iter().filter(|arm| arm.left_out).map(|arm| arm.label.as_str()).collect();
    assert_eq!(left_out, ["cc=reno", "cc=cubic"], "{expected:?}");
    assert!(design.arms[0].settings.iter().next().is_none(), "the current settings stay first");
    let windows = design.arms.iter().filter(|arm| arm.settings.get(Knob::Rwin).is_some()).count();
    let (knob, levels) = design.plateau.clone().unwrap();
    assert_eq!((knob, levels.len()), (Knob::Rwin, windows + 1), "every level of the search stays");
    assert!(levels.iter().all(|level| *level < design.arms.len()));
    assert_eq!(expected.to_json()["arms"].as_array().unwrap().len(), expected.arms.len());
    let (named, expected) = chosen("bbr", &["cc=reno,cubic"]);
    assert!(expected.arms.iter().all(|arm| !arm.left_out), "{expected:?}");
    assert!(named.arms.iter().any(|arm| arm.label == "cc=reno"));
}

#[test]
fn what_is_kept_says_all_but_the_labels_and_is_read_back() {
    let (_, expected) = chosen("bbr", &[]);
    let read: Expectation = serde_json::from_value(expected.to_json()).unwrap();
    let text = expected.to_json().to_string();
    assert_eq!(read.to_json(), expected.to_json());
    assert_eq!(read.weights(), expected.weights());
    for name in ["known_error", "region", "path", "settings", "expected_gain", "weight", "left_out"] {
        assert!(text.contains(&format!("\"{name}\":")), "{name}: {text}");
    }
}

#[test]
fn a_model_that_would_take_too_long_is_not_asked() {
    let path = |bps| PathFacts { rtt_us: 100_000, physical_goodput_bps: Some(bps), ..PathFacts::default() };
    let bulk = |secs| Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(secs)) };
    assert_eq!(shorter(&bulk(10), &path(8_000_000)), Some(bulk(10)));
    assert_eq!(shorter(&bulk(10), &path(10_000_000_000)), None, "so few packets aren't two round trips");
    assert!(shorter(&bulk(3_600), &path(100_000_000)).unwrap().time().unwrap() < Duration::from_secs(10));
}

#[test]
fn on_a_real_path_only_what_holds_for_every_queue_is_expected() {
    let path = PathFacts { rtt_us: 40_000, pmtu: 1500, bdp_bytes: 100_000, physical_goodput_bps: None };
    let seen = MeasuredPath { goodput: BitsPerSecond(20_000_000), loss: 0.0, direction: Direction::Down };
    let oracle = Oracle::of_real_path(&seen, &path, &StackConfig::default()).unwrap();
    let current = oracle.tunnels[0].current();
    let controls = ["cubic".to_owned()];
    let known =
        DesignFacts { current: &current, path: &path, congestion_controls: &controls, mss: 1448, best_mtu: &|_| None };
    let given: Vec<Levels> = vec!["rwin=8x,400x".parse().unwrap()];
    let mut design = design(&[], &given, &known).unwrap();
    let time = Duration::from_secs(5);
    let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Time(time) };
    let expected = oracle.choose(&mut design, &workload, &path, &|_| false).unwrap();
    // Eight segments in 40 ms are 2.3 Mbit/s, whatever the queue.
    let small = expected.arms.iter().find(|arm| arm.settings.number(Knob::Rwin) == Some(8 * 1448)).unwrap();
    assert!((small.gain.unwrap() + 0.88).abs() < 0.03, "{small:?}");
    let large = expected.arms.iter().find(|arm| arm.settings.number(Knob::Rwin) == Some(400 * 1448)).unwrap();
    assert!(large.gain.unwrap().abs() < 0.05 && !large.left_out, "{large:?}");
    assert!(expected.known_error >= REAL_ERROR && expected.lines()[0].contains("no evidence"));
    assert_eq!((nearer_to_nothing(0.3, -0.1), nearer_to_nothing(-0.3, -0.1)), (0.0, -0.1));
}

#[test]
fn where_a_hop_does_what_the_model_leaves_out_nothing_is_left_out_or_weighed_by_it() {
    let way = "{ rate = \"20mbit\", delay = \"20ms\", queue = \"100kB\" }";
    let behind = |hop: &str| {
        let text = format!("title = \"x\"\n[[link]]\nname = \"a\"\nmtu = 1500\n{hop}\ndown = {way}\nup = {way}\n");
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let oracle = Oracle::new(&scenario, StackConfig::default()).unwrap();
        let (path, current) = (scenario.facts(Direction::Down), oracle.tunnels[0].current());
        let controls = ["cubic".to_owned()];
        let known = DesignFacts {
            current: &current,
            path: &path,
            congestion_controls: &controls,
            mss: 1448,
            best_mtu: &|_| None,
        };
        let mut design = design(&[], &["initrwnd=1".parse().unwrap()], &known).unwrap();
        let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(20_000)) };
        let expected = oracle.choose(&mut design, &workload, &path, &|_| false).unwrap();
        (expected.arms[0].weight, expected.lines(), design.arms[1].why.clone())
    };
    let (weight, lines, why) = behind("hop = { ecn = \"bleach\" }");
    assert!((weight - 1.0).abs() < 1e-9 && !why.contains("expects"), "{weight} {why}");
    let told = "The hop before \"a\" clears the ECN bits of IP: the model leaves that out. What it expects has no say";
    assert!(lines.len() == 1 && lines[0].starts_with(told), "{lines:?}");
    let (weight, _, why) = behind("hop = { mss = 1200, nat = true, block = [\"udp\"] }");
    assert!(weight < 1.0 && why.contains("the model expects"), "{weight} {why}");
}

#[test]
fn what_no_row_of_the_table_sets_is_expected_with_a_guess_and_so_is_all_beside_it_where_it_holds() {
    let scenario = presets::load("adsl").unwrap();
    let expected = |held: &[(Knob, u64)]| {
        let held: Settings = held.iter().map(|(knob, number)| (*knob, wt_units::Level::Number(*number))).collect();
        let oracle = Oracle::new(&scenario, StackConfig::default()).unwrap().holding(&held);
        let (path, current) = (scenario.facts(Direction::Down), oracle.tunnels[0].current());
        let known =
            DesignFacts { current: &current, path: &path, congestion_controls: &[], mss: 1448, best_mtu: &|_| None };
        let levels = ["rwin=16KiB", "sndbuf=16KiB"].map(|text| text.parse::<Levels>().unwrap());
        let mut design = design(&[], &levels, &known).unwrap();
        let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(500_000)) };
        let expected = oracle.choose(&mut design, &workload, &path, &|_| true).unwrap();
        let why = |knob: Knob| design.arms.iter().find(|arm| arm.settings.get(knob).is_some()).unwrap().why.clone();
        let whys = [why(Knob::Rwin), why(Knob::Sndbuf)];
        (expected, whys)
    };
    let (open, [window, buffer]) = expected(&[]);
    assert!(open.region == "dsl" && open.known_error < 0.02, "{open:?}");
    assert_eq!(open.arms.iter().map(|arm| arm.known_error).collect::<Vec<_>>(), [None, Some(0.1)]);
    assert!(window.ends_with(", known error 1.0 %") && buffer.ends_with("taken as 10.0 %"), "{window} {buffer}");
    let (held, [window, _]) = expected(&[(Knob::Mss, 1_000)]);
    assert_eq!((held.region.as_str(), held.known_error), ("", 0.1));
    assert!(window.ends_with("taken as 10.0 %"), "{window}");
    let text = held.to_json().to_string();
    assert_eq!(text.matches("known_error").count(), 1, "only where it is another: {text}");
}
