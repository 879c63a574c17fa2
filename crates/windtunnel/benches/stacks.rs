//! Stacks: what adapters cost, what windows give, and whether sound stacks raise alarms. Wants a quiet machine.
//!
//! `cargo bench -p windtunnel --bench stacks`, with `overhead`, `window` or `alarms` for one of them alone.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use serde_json::Value;
use std::process::Command;

/// A comparison as JSON.
fn compare(args: &[&str]) -> Value {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command
        .env("XDG_DATA_HOME", home.path())
        .args(["stacks", "compare", "--json", "-q", "--no-conformance"])
        .args(args);
    let output = command.output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

/// The kernel behind an adapter against the kernel itself, on the preset and over 10 ms.
fn overhead(slow: &str) {
    for lab in ["ethernet-hub", slow] {
        let workloads = "transactions,bursts,download-12mb,page";
        let told =
            compare(&["--lab", lab, "--stacks", "linux-direct,linux", "--rounds", "5", "--workloads", workloads]);
        println!("{lab}: behind the adapter's path, of itself: {}", told["adapter_overhead"]);
    }
}

/// 20440 against 8760 bytes over 100 ms: 14 segments against 6.
fn window(slow: &str) {
    let args = ["--lab", slow, "--rwin", "8760,20440", "--rounds", "3", "--workloads", "bulk:size=4MB"];
    let told = compare(&[&args[..], &["--stacks", "linux-direct,linux,smoltcp"]].concat());
    let rate = |one: &Value| one["workloads"]["bulk"]["goodput_bps"].as_f64().unwrap_or(f64::NAN);
    let expected = 20_440.0 / 8_760.0;
    for pair in told["stacks"].as_array().unwrap().chunks(2) {
        let ratio = rate(&pair[1]) / rate(&pair[0]);
        println!(
            "{}: ×{ratio:.3}, RWIN/RTT says ×{expected:.3}: {:+.1} %",
            pair[0]["name"],
            (ratio / expected - 1.0) * 100.0
        );
    }
}

/// Twenty soaks of a minute without a fault.
fn alarms() {
    let (mut soaks, mut alarms) = (0, 0);
    for seed in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"] {
        let told = compare(&["--stacks", "linux,smoltcp", "--workloads", "soak", "--soak", "60s", "--seed", seed]);
        for one in told["stacks"].as_array().unwrap() {
            soaks += 1;
            alarms += one["findings"].as_array().unwrap().len();
        }
    }
    println!("{alarms} alarms in {soaks} soaks without a fault");
}

fn path(folder: &std::path::Path, one_way_ms: u32) -> String {
    let one = format!("{{ rate = \"10mbit\", delay = \"{one_way_ms}ms\", queue_packets = 100 }}");
    let file = folder.join(format!("{one_way_ms}.toml"));
    let text = format!("title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\nmtu = 1500\ndown = {one}\nup = {one}\n");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wants = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    if wants("overhead") {
        overhead(&path(folder.path(), 5));
    }
    if wants("window") {
        window(&path(folder.path(), 50));
    }
    if wants("alarms") {
        alarms();
    }
}
