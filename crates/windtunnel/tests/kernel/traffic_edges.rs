//! `windtunnel traffic` with nginx that reloads and moves to another control group, SYN cookies, IPv6 and IPv4 over a socket of IPv6, connections that
//! are kept open, and a client that opens and resets connections: the short form of `make traffic-edges`. Needs root and nginx.

use crate::common::{binary, ran};
use std::process::{Command, Stdio};
use wt_testing::require;

fn available() -> Result<(), String> {
    let missing = wt_bpf::missing_traffic_capabilities();
    if !missing.is_empty() {
        return Err(format!("{} missing", missing.join(", ")));
    }
    wt_bpf::TrafficProgram::unavailable().map_or(Ok(()), Err)
}

#[test]
fn reloads_cookies_both_families_moved_servers_and_a_flood_of_resets_are_all_accounted_for() {
    require!("bpf", available());
    let home = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/traffic-edges.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(binary()).arg("1000").env("TMPDIR", home.path()).stdin(Stdio::null());
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("'opened': 462") && ran.out.contains("No difference"), "{}", ran.out);
}
