use crate::common::{Line, download, flow, run, seconds_of, stack};
use std::time::Duration;
use wt_sim::{SimError, Simulation, StackConfig};

#[test]
fn a_line_without_a_rate_is_an_error() {
    let error = Simulation::new(&Line::new(0.0, 40, 100).path(), Vec::new(), 1).err().unwrap();
    assert!(matches!(error, SimError::Path(_)), "{error}");
    assert!(error.to_string().contains("rate"), "{error}");
}

#[test]
fn where_everything_is_lost_nothing_arrives_and_it_ends() {
    let report = run(&Line { loss: 1.0, ..Line::new(10.0, 40, 100) }, flow(&stack("cubic"), download(10_000)), 1);
    let flow = &report.flows[0];
    assert_eq!((flow.connect, flow.elapsed, flow.bytes), (None, None, 0));
    assert!(flow.failed && report.events < 1_000, "{} events", report.events);
}

#[test]
fn a_round_trip_of_an_hour_takes_hours() {
    let line = Line::new(10.0, 3_600_000, 100);
    let mut simulation = Simulation::new(&line.path(), Vec::new(), 1).unwrap();
    simulation.add_flow(flow(&stack("cubic"), download(10_000))).unwrap();
    let report = simulation.run(Duration::from_secs(24 * 3_600));
    let flow = &report.flows[0];
    // A SYN is tried for two minutes only: no connection ever stands at the client before it gives up.
    assert!(flow.bytes == 0 && flow.failed, "{flow:?}");
    assert!(report.events < 10_000);
}

#[test]
fn the_smallest_mtu_works_and_a_smaller_one_is_an_error() {
    let tiny = StackConfig { mtu: 68, ..stack("cubic") };
    let report = run(&Line::new(10.0, 10, 100), flow(&tiny, download(2_000)), 1);
    assert_eq!(report.flows[0].bytes, 2_000);
    let mut simulation = Simulation::new(&Line::new(10.0, 10, 100).path(), Vec::new(), 1).unwrap();
    let none = StackConfig { mtu: 67, ..stack("cubic") };
    let error = simulation.add_flow(flow(&none, download(2_000))).unwrap_err();
    assert!(error.to_string().contains("67"), "{error}");
}

#[test]
fn a_million_flows_are_refused_at_once() {
    let mut simulation = Simulation::new(&Line::new(10.0, 10, 100).path(), Vec::new(), 1).unwrap();
    let (client, server) = (stack("cubic"), stack("cubic"));
    let error = simulation.add_page((&client, &server), 1_000_000, Vec::new(), false).unwrap_err();
    assert!(matches!(error, SimError::TooManyFlows { asked: 1_000_000 }));
}

#[test]
fn an_unknown_congestion_control_is_an_error_that_names_the_known_ones() {
    let mut simulation = Simulation::new(&Line::new(10.0, 10, 100).path(), Vec::new(), 1).unwrap();
    let error = simulation.add_flow(flow(&stack("quic"), download(1))).unwrap_err().to_string();
    assert!(error.contains("quic") && error.contains("cubic"), "{error}");
}

#[test]
fn the_bound_of_events_ends_a_simulation_that_would_take_too_long() {
    let mut simulation = Simulation::new(&Line::new(1_000.0, 10, 1_000).path(), Vec::new(), 1).unwrap();
    simulation.bound_events(10_000);
    simulation.add_flow(flow(&stack("cubic"), seconds_of(1_000))).unwrap();
    let report = simulation.run(Duration::from_secs(2_000));
    assert!(report.cut_short && report.events <= 10_001);
    assert!(report.flows[0].bytes > 0);
}
