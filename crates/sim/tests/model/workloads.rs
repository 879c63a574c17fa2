use crate::common::{Line, flow, run, stack};
use std::time::Duration;
use wt_sim::{Exchange, FlowSpec, Job, Simulation, StackConfig};
use wt_trial::{Amount, Direction};
use wt_units::Bytes;

fn exchange(ask: u64, answer: u64) -> Exchange {
    Exchange { ask, answer, pause: Duration::ZERO }
}

#[test]
fn small_transactions_take_a_round_trip_each() {
    let job = Job::Exchanges(vec![exchange(100, 500); 20]);
    let report = run(&Line::new(100.0, 40, 100), flow(&stack("cubic"), job), 1);
    let times = &report.flows[0].completions;
    assert_eq!(times.len(), 20);
    let each = (times[19] - times[0]).as_secs_f64() / 19.0;
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
fn a_page_of_44_requests_over_six_connections_gains_from_a_larger_first_window() {
    let load = |initcwnd| {
        let mut simulation = Simulation::new(&Line::new(50.0, 80, 400).path(), Vec::new(), 1).unwrap();
        let server = StackConfig { initcwnd, ..stack("cubic") };
        let requests: Vec<Exchange> = (0..44).map(|n| exchange(400, 2_000 + (n % 11) * 1_000)).collect();
        let flows = simulation.add_page((&stack("cubic"), &server), 6, requests).unwrap();
        assert_eq!(flows.len(), 6);
        let report = simulation.run(Duration::from_secs(60));
        let done: usize = report.flows.iter().map(|flow| flow.completions.len()).sum();
        assert_eq!(done, 44);
        report.ended
    };
    assert!(load(10) < load(3), "{:?} against {:?}", load(10), load(3));
    assert!(load(10) >= Duration::from_millis(80 * 2));
}

#[test]
fn a_relay_shortens_the_loop_of_the_lossy_half() {
    let near = Line { loss: 0.01, ..Line::new(20.0, 20, 100) };
    let far = Line::new(100.0, 120, 1_000);
    let spec = flow(&stack("reno"), Job::Exchanges(Vec::new()));
    let mut relayed = Simulation::new(&near.path(), Vec::new(), 3).unwrap();
    let ends = (stack("reno"), stack("reno"));
    let (client, origin) = relayed.add_relay(&far.path(), spec, ends, 3_000_000).unwrap();
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
    let spec = flow(&stack("cubic"), Job::Exchanges(Vec::new()));
    let mut relayed = Simulation::new(&near.path(), Vec::new(), 1).unwrap();
    let small = StackConfig { rmem: (131_072, 200_000), ..stack("cubic") };
    let (client, origin) = relayed.add_relay(&far.path(), spec, (small, stack("cubic")), 1_500_000).unwrap();
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
