use crate::common::{Line, flow, run, stack};
use std::time::Duration;
use wt_sim::{Exchange, FlowSpec, Job, RelaySpec, SimPath, SimTunnel, Simulation, StackConfig};
use wt_trial::{
    Amount, Cancel, Direction, Page, PathFacts, Phase, Repeat, Status, TrialOutcome, TrialSpec, Tunnel, Workload,
};
use wt_units::{Bytes, Knob, Level, Settings};

fn exchange(ask: u64, answer: u64) -> Exchange {
    Exchange { ask, answer, pause: Duration::ZERO }
}

#[test]
fn small_transactions_take_a_round_trip_each() {
    let job = Job::Exchanges(vec![exchange(100, 500); 20]);
    let report = run(&Line::new(100.0, 40, 100), flow(&stack("cubic"), job), 1);
    let times = &report.flows[0].exchanges;
    assert_eq!(times.len(), 20);
    let each = (times[19].done - times[0].done).as_secs_f64() / 19.0;
    assert!((0.0400..0.0405).contains(&each), "{each} s each");
}

#[test]
fn an_upload_is_timed_by_its_receiver() {
    let job = Job::Bulk { direction: Direction::Up, amount: Amount::Size(Bytes(1_000_000)) };
    let report = run(&Line::new(10.0, 40, 100), flow(&stack("cubic"), job), 1);
    let flow = &report.flows[0];
    assert_eq!(flow.bytes, 1_000_000);
    let elapsed = flow.elapsed.unwrap().as_secs_f64();
    assert!((0.83..1.1).contains(&elapsed), "{elapsed}");
}

#[test]
fn an_upload_of_one_segment_takes_the_time_of_that_segment_on_the_line() {
    for (size, initcwnd) in [(1, 10), (1_448, 10), (1_448, 20)] {
        let job = Job::Bulk { direction: Direction::Up, amount: Amount::Size(Bytes(size)) };
        let report = run(&Line::new(10.0, 40, 100), flow(&StackConfig { initcwnd, ..stack("cubic") }, job), 1);
        let wire = Duration::from_nanos((size + 52) * 800);
        assert_eq!(report.flows[0].elapsed, Some(wire), "{size} bytes: the request has a segment of its own");
    }
}

#[test]
fn an_upload_of_a_size_ends_for_its_sender_with_the_last_bytes_acknowledgement() {
    let workload = |size| Workload::Bulk { direction: Direction::Up, amount: Amount::Size(Bytes(size)) };
    let took = |size, initcwnd| {
        let settings = Settings::new().with(Knob::Initcwnd, Level::Number(initcwnd));
        trial(&Line::new(50.0, 120, 700), workload(size), settings, 1).elapsed_us
    };
    // 120 ms there and back; the request has a segment of its own.
    assert!((120_000..122_000).contains(&took(5_000, 10)), "{}", took(5_000, 10));
    let (two, one) = (took(20_000, 10), took(20_000, 32));
    assert!((240_000..245_000).contains(&two) && (120_000..125_000).contains(&one), "{two} and {one}");
    let path = Line::new(50.0, 120, 700);
    let up = Job::Bulk { direction: Direction::Up, amount: Amount::Size(Bytes(20_001)) };
    let up = run(&path, flow(&stack("cubic"), up), 1);
    let (there, known) = (up.flows[0].elapsed.unwrap(), up.flows[0].acknowledged.unwrap());
    let beyond = known - there;
    assert!(
        (120_000..120_100).contains(&beyond.as_micros()),
        "the receiver's clock leaves out a round trip: {beyond:?}"
    );
    assert_eq!(known, up.ended - up.flows[0].connect.unwrap());
}

#[test]
fn a_page_of_44_requests_over_six_connections_gains_from_a_larger_first_window() {
    let load = |initcwnd| {
        let mut simulation = Simulation::new(&Line::new(50.0, 80, 400).path(), Vec::new(), 1).unwrap();
        let server = StackConfig { initcwnd, ..stack("cubic") };
        let requests: Vec<Exchange> = (0..44).map(|n| exchange(400, 2_000 + (n % 11) * 1_000)).collect();
        let flows = simulation.add_page((&stack("cubic"), &server), 6, requests, false).unwrap();
        assert_eq!(flows.len(), 6);
        let report = simulation.run(Duration::from_secs(60));
        let done: usize = report.flows.iter().map(|flow| flow.exchanges.len()).sum();
        assert_eq!(done, 44);
        report.ended
    };
    assert!(load(10) < load(3), "{:?} against {:?}", load(10), load(3));
    assert!(load(10) >= Duration::from_millis(80 * 2));
}

/// A relay whose ends are all alike, with connections on both sides at once.
fn relay(stack: &StackConfig, answer: u64) -> RelaySpec {
    let end = || stack.clone();
    RelaySpec { client: end(), near: end(), far: end(), origin: end(), answer, on_demand: false }
}

#[test]
fn a_relay_that_connects_on_demand_costs_a_round_trip_more_to_the_origin() {
    let elapsed = |on_demand| {
        let mut relayed = Simulation::new(&Line::new(100.0, 20, 400).path(), Vec::new(), 1).unwrap();
        let spec = RelaySpec { on_demand, ..relay(&stack("cubic"), 5_000) };
        let (client, _) = relayed.add_relay(&Line::new(1000.0, 80, 5_000).path(), spec).unwrap();
        relayed.run(Duration::from_secs(60)).flows[client].elapsed.unwrap().as_secs_f64()
    };
    // Request to the edge 10 ms, there and back 80 ms, answer 10 ms; before the first request both handshakes, or one.
    let (cold, warm) = (elapsed(true), elapsed(false));
    assert!((0.180..0.183).contains(&cold), "{cold} s");
    assert!((0.150..0.163).contains(&warm), "{warm} s: the far handshake ended 60 ms after the near one");
}

#[test]
fn a_relay_shortens_the_loop_of_the_lossy_half() {
    let near = Line { loss: 0.01, ..Line::new(20.0, 20, 100) };
    let far = Line::new(100.0, 120, 1_000);
    let mut relayed = Simulation::new(&near.path(), Vec::new(), 3).unwrap();
    let (client, origin) = relayed.add_relay(&far.path(), relay(&stack("reno"), 3_000_000)).unwrap();
    let report = relayed.run(Duration::from_secs(300));
    assert_eq!((report.flows[client].bytes, report.flows[origin].bytes), (3_000_000, 3_000_000));
    let through = report.flows[client].elapsed.unwrap();
    let whole = Line { loss: 0.01, ..Line::new(20.0, 140, 100) };
    let direct = run(&whole, flow(&stack("reno"), Job::Exchanges(vec![exchange(48, 3_000_000)])), 3);
    let direct = direct.flows[0].elapsed.unwrap();
    assert!(through * 2 < direct, "{through:?} through the relay, {direct:?} without");
}

#[test]
fn a_relay_in_front_of_a_slow_line_holds_the_origin_back() {
    let near = Line::new(1.0, 40, 50);
    let far = Line::new(100.0, 20, 1_000);
    let mut relayed = Simulation::new(&near.path(), Vec::new(), 1).unwrap();
    let small = StackConfig { rmem: (131_072, 200_000), ..stack("cubic") };
    let spec = RelaySpec { far: small, ..relay(&stack("cubic"), 1_500_000) };
    let (client, origin) = relayed.add_relay(&far.path(), spec).unwrap();
    let report = relayed.run(Duration::from_secs(300));
    assert_eq!(report.flows[client].bytes, 1_500_000);
    assert!(report.flows[origin].busy[1] > Duration::from_secs(5), "{:?}", report.flows[origin].busy);
    assert_eq!(report.flows[origin].timeouts, 0);
}

#[test]
fn flows_that_begin_later_get_their_share() {
    let mut simulation = Simulation::new(&Line::new(20.0, 40, 70).path(), Vec::new(), 1).unwrap();
    let job = |seconds| Job::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(seconds)) };
    let first = simulation.add_flow(flow(&stack("cubic"), job(60))).unwrap();
    let spec = FlowSpec { start: Duration::from_secs(20), ..flow(&stack("cubic"), job(40)) };
    let second = simulation.add_flow(spec).unwrap();
    let report = simulation.run(Duration::from_secs(120));
    let rate = |n: usize| report.flows[n].bytes as f64 / report.flows[n].elapsed.unwrap().as_secs_f64();
    assert!(rate(second) > 0.25 * 2.4e6, "{} bytes/s", rate(second));
    assert!(rate(first) > rate(second));
}

/// A trial of this workload over a line, as the model tells it.
fn trial(line: &Line, workload: Workload, settings: Settings, seed: u64) -> TrialOutcome {
    trial_within(line, workload, settings, seed, u64::MAX)
}

/// The same within so many events.
fn trial_within(line: &Line, workload: Workload, settings: Settings, seed: u64, events: u64) -> TrialOutcome {
    let facts = PathFacts { rtt_us: line.rtt.as_micros() as u64, pmtu: 1500, ..PathFacts::default() };
    let path = SimPath {
        name: "line".to_owned(),
        config: line.path(),
        icmp: vec![true],
        client_mtu: 1500,
        server_mtu: 1500,
        facts: [facts.clone(), facts],
    };
    let spec = TrialSpec {
        experiment: "test".to_owned(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings,
        workload,
        deadline: Duration::from_secs(600),
        seed,
    };
    SimTunnel::new(path, stack("cubic")).unwrap().bounded(events).try_run(&spec, Duration::from_millis(50)).unwrap()
}

#[test]
fn transactions_are_counted_and_each_takes_a_round_trip() {
    let line = Line::new(100.0, 40, 100);
    let (request, response, think) = (Bytes(200), Bytes(2_000), Duration::from_millis(10));
    let by_count = Workload::Transactions { request, response, think, amount: Repeat::Count(50) };
    let outcome = trial(&line, by_count, Settings::new(), 1);
    let exchanges = outcome.measures.exchanges.unwrap();
    assert_eq!((outcome.status, exchanges.latency.count, outcome.bytes), (Status::Completed, 50, 50 * 2_200));
    assert!((40_000..41_500).contains(&exchanges.latency.p50_us), "{exchanges:?}");
    assert!((exchanges.per_second * 0.0505 - 1.0).abs() < 0.03, "with pauses: {}", exchanges.per_second);
    assert!(outcome.elapsed_us < 50 * 41_500, "pauses aren't waited for: {}", outcome.elapsed_us);
    let by_time = Workload::Transactions { request, response, think, amount: Repeat::Time(Duration::from_secs(2)) };
    let exchanges = trial(&line, by_time, Settings::new(), 1).measures.exchanges.unwrap();
    assert!((38..=41).contains(&exchanges.latency.count), "{}", exchanges.latency.count);
}

#[test]
fn bbr_takes_no_rate_of_short_answers_for_the_rate_of_the_path() {
    // 7 segments of each 40 kB that the path carries in an RTT. On Linux 6.18 BBR stays in its startup, whose pace the answers never reach:
    // 21.6 and 21.3 transactions a second with BBR and CUBIC over such a line.
    let line = Line::new(8.0, 30, 44);
    let per_second = |cc: &str, response| {
        let (request, think, amount) = (Bytes(200), Duration::ZERO, Repeat::Time(Duration::from_secs(3)));
        let workload = Workload::Transactions { request, response: Bytes(response), think, amount };
        let settings = Settings::new().with(Knob::Cc, Level::Name(cc.to_owned()));
        trial(&line, workload, settings, 1).measures.exchanges.unwrap().per_second
    };
    for response in [2_000, 5_000, 10_000, 20_000] {
        let (bbr, cubic) = (per_second("bbr", response), per_second("cubic", response));
        assert!((bbr / cubic - 1.0).abs() < 0.02, "{response} bytes: {bbr} with BBR, {cubic} with CUBIC");
    }
}

#[test]
fn bursts_cost_more_with_a_small_first_window() {
    let workload = || Workload::Bursts {
        request: Bytes(200),
        blocks: vec![Bytes(65_536), Bytes(1_024), Bytes(131_072)],
        pause: Duration::from_secs(1),
        amount: Repeat::Count(4),
    };
    let line = Line::new(50.0, 80, 400);
    let elapsed = |n| trial(&line, workload(), Settings::new().with(Knob::Initcwnd, Level::Number(n)), 1);
    let (small, large) = (elapsed(2), elapsed(32));
    assert_eq!(small.measures.exchanges.unwrap().latency.count, 12);
    assert_eq!(small.bytes, 4 * (65_536 + 1_024 + 131_072 + 600));
    // From 2 to 32 segments the window takes four doublings; after each pause it is where it was, less a half for each RTO.
    assert!(small.elapsed_us > large.elapsed_us + 3 * 80_000, "{} and {}", small.elapsed_us, large.elapsed_us);
}

#[test]
fn a_page_asks_for_its_first_object_alone_and_then_over_all_connections() {
    let page = Page::built_in();
    let line = Line::new(50.0, 80, 400);
    let outcome = trial(&line, Workload::Page { page: page.clone() }, Settings::new(), 1);
    let objects = &outcome.measures.objects;
    assert_eq!((outcome.status, outcome.bytes, objects.len()), (Status::Completed, 265_100, 44));
    assert!(objects.iter().zip(&page.objects).all(|(came, wanted)| came.bytes == wanted.size.get()));
    assert!(objects.iter().zip(0..).all(|(came, number)| came.object == number));
    let first = objects[0];
    assert!(objects[1..].iter().all(|object| object.asked_us >= first.done_us), "{first:?}");
    let used: std::collections::BTreeSet<u32> = objects.iter().map(|object| object.connection).collect();
    assert_eq!(used.len(), 6);
    let fresh = objects.iter().filter(|object| object.connection > 0).map(|object| object.asked_us).min().unwrap();
    assert!(fresh >= first.done_us + 80_000, "the others begin cold: {fresh} after {}", first.done_us);
    assert!(objects.iter().all(|object| object.first_byte_us >= object.asked_us + 80_000));
    assert_eq!(outcome.elapsed_us, objects.iter().map(|object| object.done_us).max().unwrap());
    let again = trial(&line, Workload::Page { page }, Settings::new(), 1);
    assert_eq!(again, outcome, "the same seed gives the same page");
}

/// How long a page takes with this first window, s.
fn load_time(line: &Line, page: &Page, initcwnd: u64) -> f64 {
    let settings = Settings::new().with(Knob::Initcwnd, Level::Number(initcwnd));
    let outcome = trial(line, Workload::Page { page: page.clone() }, settings, 1);
    assert_eq!((outcome.status, outcome.bytes), (Status::Completed, page.size().get()));
    outcome.elapsed_us as f64 / 1e6
}

#[test]
fn without_keep_alive_each_object_has_a_connection_of_its_own_and_never_more_are_open_at_once() {
    let page = Page { close_each: true, ..Page::built_in() };
    let line = Line::new(50.0, 80, 400);
    let outcome = trial(&line, Workload::Page { page: page.clone() }, Settings::new(), 1);
    let objects = &outcome.measures.objects;
    assert_eq!((outcome.status, outcome.bytes, objects.len()), (Status::Completed, 265_100, 44));
    let used: std::collections::BTreeSet<u32> = objects.iter().map(|object| object.connection).collect();
    assert_eq!(used.len(), 44);
    for object in objects {
        let open = objects.iter().filter(|o| (o.asked_us..o.done_us).contains(&object.asked_us)).count();
        assert!(open <= 6, "{open} at {}", object.asked_us);
    }
    // Law: connect and ask for the first; then 43 by six at once, each with a handshake and a request.
    assert!(outcome.elapsed_us >= (2 + 2 * 8) * 80_000, "{}", outcome.elapsed_us);
    assert!(load_time(&line, &page, 10) > load_time(&line, &Page::built_in(), 10) + 0.3);
    assert!(load_time(&line, &page, 3) > load_time(&line, &page, 10) + 0.15);
}

#[test]
fn over_cold_connections_ten_segments_instead_of_three_halve_the_time_at_most() {
    // A handshake, and a flight for each doubling: of 10 segments two round trips instead of four, and of no other number
    // is the ratio larger.
    let line = Line::new(1_000.0, 80, 4_000);
    let ratio = |segments: u64| {
        let page = Page::single(Bytes(segments * 1_448 - 200));
        load_time(&line, &page, 3) / load_time(&line, &page, 10)
    };
    let ratios: Vec<(u64, f64)> = (1..=200).map(|segments| (segments, ratio(segments))).collect();
    assert!(ratios.iter().all(|(_, ratio)| (0.99..2.01).contains(ratio)), "{ratios:?}");
    assert!((ratio(10) - 2.0).abs() < 0.03, "{}", ratio(10));
    assert!((ratio(3) - 1.0).abs() < 0.01, "{}", ratio(3));
}

#[test]
fn rivals_with_the_same_settings_share_and_a_small_window_gives_way() {
    let workload = || Workload::Competing { direction: Direction::Down, rivals: 3, time: Duration::from_secs(30) };
    let line = Line::new(40.0, 40, 140);
    let flows = |settings| trial(&line, workload(), settings, 1).measures.flows_bps;
    let even = flows(Settings::new());
    assert_eq!(even.len(), 4);
    let sum: f64 = even.iter().sum();
    assert!((0.85 * 40e6..40e6).contains(&sum), "{even:?}");
    assert!(even[0] > 0.1 * sum, "a late flow gets its share: {even:?}");
    let given_way = flows(Settings::new().with(Knob::Rwin, Level::Number(14_480)));
    assert!((given_way[0] / (14_480.0 * 8.0 / 0.05)) < 1.3, "window over RTT at most: {given_way:?}");
    assert!(given_way[1..].iter().sum::<f64>() > 0.8 * 40e6, "{given_way:?}");
}

#[test]
fn a_transfer_each_way_at_once_fills_both() {
    let outcome =
        trial(&Line::new(20.0, 40, 70), Workload::Duplex { time: Duration::from_secs(20) }, Settings::new(), 1);
    let flows = &outcome.measures.flows_bps;
    assert!(flows.len() == 2 && flows.iter().all(|bps| (0.7 * 20e6..20e6).contains(bps)), "{flows:?}");
    let score = outcome.measures.score.unwrap() * 8.0;
    assert!((score / (flows[0] * flows[1]).sqrt() - 1.0).abs() < 1e-9);
}

/// A message of 200 bytes every 10 ms for four seconds.
fn stream(direction: Direction) -> Workload {
    let (interval, time) = (Duration::from_millis(10), Duration::from_secs(4));
    Workload::Stream { direction, message: Bytes(200), interval, time }
}

#[test]
fn messages_keep_their_pace_on_a_clean_line() {
    for direction in [Direction::Down, Direction::Up] {
        let outcome = trial(&Line::new(10.0, 60, 50), stream(direction), Settings::new(), 1);
        let lateness = outcome.measures.lateness.unwrap();
        assert_eq!((outcome.status, lateness.expected, outcome.bytes), (Status::Completed, 400, 400 * 200));
        assert!(lateness.spread.max_us < 500 && lateness.stalls == 0, "{direction:?}: {lateness:?}");
        let elapsed = Duration::from_micros(outcome.elapsed_us);
        assert!((Duration::from_millis(4_000)..Duration::from_millis(4_200)).contains(&elapsed), "{elapsed:?}");
    }
}

#[test]
fn a_lost_message_holds_up_those_behind_it() {
    let line = Line { loss: 0.03, ..Line::new(10.0, 60, 50) };
    let lateness = trial(&line, stream(Direction::Down), Settings::new(), 1).measures.lateness.unwrap();
    // A loss is seen after a round trip and repaired after another half.
    assert!(lateness.spread.p99_us > 60_000 && lateness.spread.p50_us < 1_000, "{lateness:?}");
    assert!(lateness.stalls > 0 && lateness.burst >= 5, "{lateness:?}");
}

#[test]
fn a_stream_that_the_line_cannot_carry_comes_later_and_later() {
    let outcome = trial(&Line::new(0.1, 60, 50), stream(Direction::Down), Settings::new(), 1);
    // 252 bytes every 10 ms are 201.6 kbit/s; the line has half of that, and full segments waste less.
    let lateness = outcome.measures.lateness.unwrap();
    assert!(lateness.spread.max_us > 2_000_000, "{lateness:?}");
    assert_eq!(outcome.bytes, 80_000);
}

#[test]
fn a_full_queue_is_what_round_trips_under_load_wait_in() {
    let workload = || Workload::Load { direction: Direction::Down, time: Duration::from_secs(12) };
    let load = |queue| trial(&Line::new(10.0, 40, queue), workload(), Settings::new(), 1).measures;
    let (deep, shallow) = (load(200), load(10));
    let seen = deep.under_load.unwrap();
    assert!((40_000..40_600).contains(&seen.idle.p50_us), "{seen:?}");
    // CUBIC keeps at least seven tenths of the path and the queue full: 200 packets are 240 ms.
    assert!((150_000..290_000).contains(&seen.loaded.p50_us), "{seen:?}");
    assert!((deep.score.unwrap() * seen.loaded.mean_us as f64 / 60e6 - 1.0).abs() < 1e-9);
    assert!(shallow.score.unwrap() > 3.0 * deep.score.unwrap(), "{shallow:?} against {deep:?}");
    let upload = Workload::Load { direction: Direction::Up, time: Duration::from_secs(12) };
    let upload = trial(&Line::new(10.0, 40, 200), upload, Settings::new(), 1);
    assert!(upload.measures.under_load.unwrap().loaded.p50_us > 150_000 && upload.bytes > 10_000_000, "{upload:?}");
}

#[test]
fn what_is_cut_short_is_told_as_far_as_it_got() {
    let amount = Amount::Time(Duration::from_secs(60));
    let bulk = || Workload::Bulk { direction: Direction::Down, amount };
    let line = Line::new(100.0, 20, 200);
    let whole = trial(&line, bulk(), Settings::new(), 1);
    let cut = trial_within(&line, bulk(), Settings::new(), 1, 200_000);
    assert_eq!((whole.status, cut.status), (Status::Completed, Status::Incomplete));
    assert_eq!((whole.observed.cut_short, cut.observed.cut_short), (Some(false), Some(true)));
    assert!(cut.notes[0].contains("200000 events"), "{:?}", cut.notes);
    assert!((1_000_000..30_000_000).contains(&cut.elapsed_us), "{}", cut.elapsed_us);
    assert!((0.8..1.05).contains(&(cut.goodput_bps() / whole.goodput_bps())), "{} bit/s", cut.goodput_bps());
}

#[test]
fn what_is_under_way_at_the_deadline_was_cut_short() {
    // Ten minutes carry some 720 kB.
    let bulk = |bytes| Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(bytes)) };
    for (bytes, status) in [(600_000, Status::Completed), (900_000, Status::Incomplete)] {
        let outcome = trial(&Line::new(0.01, 40, 20), bulk(bytes), Settings::new(), 1);
        let cut = Some(status == Status::Incomplete);
        assert_eq!((outcome.status, outcome.observed.cut_short), (status, cut), "{bytes} bytes");
    }
}

#[test]
fn more_exchanges_than_the_model_takes_up_are_no_whole_trial() {
    let (request, response, think) = (Bytes(1), Bytes(1), Duration::ZERO);
    let talk = Workload::Transactions { request, response, think, amount: Repeat::Count(500_001) };
    let outcome = trial(&Line::new(1000.0, 0, 100), talk, Settings::new(), 1);
    assert_eq!((outcome.status, outcome.observed.cut_short), (Status::Incomplete, Some(true)));
    assert_eq!(outcome.measures.exchanges.unwrap().latency.count, 500_000);
}

#[test]
fn more_messages_than_the_model_takes_up_are_no_whole_trial() {
    for (ms, status) in [(10_000, Status::Completed), (10_001, Status::Incomplete)] {
        let (interval, time) = (Duration::from_micros(100), Duration::from_millis(ms));
        let stream = Workload::Stream { direction: Direction::Down, message: Bytes(20), interval, time };
        let outcome = trial(&Line::new(1000.0, 0, 100), stream, Settings::new(), 1);
        let cut = Some(status == Status::Incomplete);
        assert_eq!((outcome.status, outcome.observed.cut_short, outcome.bytes), (status, cut, 2_000_000), "{ms} ms");
        assert!(outcome.measures.lateness.unwrap().spread.max_us < 100, "those that weren't sent aren't late");
        assert!((9_000_000..10_000_000).contains(&outcome.elapsed_us), "{} us", outcome.elapsed_us);
    }
}

#[test]
fn what_the_model_lacks_is_named() {
    let line = Line::new(20.0, 40, 70);
    let workload = Workload::Page { page: Page { http2: true, ..Page::built_in() } };
    let facts = PathFacts::default();
    let path = SimPath {
        name: "line".to_owned(),
        config: line.path(),
        icmp: vec![true],
        client_mtu: 1500,
        server_mtu: 1500,
        facts: [facts.clone(), facts],
    };
    let mut tunnel = SimTunnel::new(path, stack("cubic")).unwrap();
    let spec = TrialSpec {
        experiment: "test".to_owned(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings: Settings::new(),
        workload,
        deadline: Duration::from_secs(60),
        seed: 1,
    };
    let error = tunnel.run(&spec, &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("page over HTTP/2"), "{error}");
}
