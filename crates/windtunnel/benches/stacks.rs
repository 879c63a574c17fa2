//! Stacks: what adapters cost, what windows give, and whether sound stacks raise alarms. Wants a quiet machine.
//!
//! `cargo bench -p windtunnel --bench stacks`, with `overhead`, `window`, `own`, `alarms` or `anomalies` for one of them alone; `short`
//! takes fewer and shorter trials. `WINDTUNNEL_BIN` names another build of the program than the one beside.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use serde_json::Value;
use std::process::Command;

/// The program that is measured.
fn binary() -> String {
    std::env::var("WINDTUNNEL_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_windtunnel").to_owned())
}

/// A comparison as JSON.
fn compare(args: &[&str]) -> Value {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
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
        println!("{lab}: by pairs of transactions: {}", told["adapter_overhead_paired"]);
    }
}

/// 8 against 20 KiB, and whole segments of 1460 bytes, over 100 ms: what was measured against what the windows that were offered
/// say.
fn window(slow: &str, short: bool) {
    let listed = Command::new(binary()).args(["stacks", "list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let settable = |name: &str| !["slirp", "quic"].contains(&name);
    let built = listed["stacks"].as_array().unwrap().iter().filter(|one| one["built"] == true);
    let names: Vec<&str> = built.filter_map(|one| one["name"].as_str()).filter(|name| settable(name)).collect();
    let (size, rounds) = if short { ("bulk:size=600kB", "1") } else { ("bulk:size=2MB", "3") };
    for windows in ["8KiB,20KiB", "8760,20440"] {
        let args = ["--lab", slow, "--rwin", windows, "--rounds", rounds, "--workloads", size];
        let told = compare(&[&args[..], &["--stacks", &names.join(",")]].concat());
        for one in told["windows"].as_array().unwrap() {
            let figure = |name: &str| one[name].as_f64().unwrap_or(f64::NAN);
            println!(
                "{} {windows}: ×{:.3}, the windows that it offered say ×{:.3}: {:+.1} %",
                one["stack"].as_str().unwrap(),
                figure("measured"),
                figure("predicted"),
                figure("error") * 100.0
            );
        }
    }
}

/// Downloads as the stacks' own benches reckon them, and through our adapters, in turn over the same path with the same sender: of QUIC over
/// the slow one, since at more its examples lose packets in their UDP sockets.
fn own(path: &str, slow: &str, rounds: usize) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/stacks-own.sh");
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (name, path) in [("lwip", path), ("smoltcp", path), ("gvisor", path), ("quic", slow)] {
        if !Command::new(script).args(["build", name]).status().unwrap().success() {
            println!("{name}: its own bench isn't there");
            continue;
        }
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let run = ["run", name, &binary(), path];
            let output = Command::new(script).args(run).output().unwrap();
            let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
                panic!("{name}: {error}: {}", String::from_utf8_lossy(&output.stderr));
            });
            theirs.push(told["goodput_bps"].as_f64().unwrap());
            let told = compare(&["--lab", path, "--stacks", name, "--rounds", "1", "--workloads", "bulk:size=200MB"]);
            ours.push(told["stacks"][0]["workloads"]["bulk"]["goodput_bps"].as_f64().unwrap());
        }
        let (theirs, ours) = (middle(theirs), middle(ours));
        println!(
            "{name}: its own bench {:.1} Mbit/s, its adapter {:.1} Mbit/s: {:+.1} % (medians of {rounds})",
            theirs / 1e6,
            ours / 1e6,
            (ours / theirs - 1.0) * 100.0
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

/// The two anomalies as they were once measured: in soaks of five minutes, and with fast answers.
fn anomalies() {
    let late = compare(&["--stacks", "linux:late-acks=60s,smoltcp:late-acks=60s", "--workloads", "soak"]);
    let fast = compare(&[
        "--stacks",
        "linux:fast-loss=5ms,smoltcp:fast-loss=5ms",
        "--workloads",
        "transactions",
        "--rounds",
        "1",
    ]);
    for one in [late, fast].iter().flat_map(|told| told["stacks"].as_array().unwrap()) {
        for found in one["findings"].as_array().unwrap() {
            println!("{}: {}, {}", one["name"], found["kind"], found["text"]);
        }
        if one["findings"].as_array().unwrap().is_empty() {
            println!("{}: MISSED", one["name"]);
        }
    }
}

fn path(folder: &std::path::Path, one_way_ms: u32) -> String {
    let one = format!("{{ rate = \"10mbit\", delay = \"{one_way_ms}ms\", queue_packets = 100 }}");
    path_of(folder, &one_way_ms.to_string(), &one)
}

/// One link that is the same both ways.
fn path_of(folder: &std::path::Path, name: &str, one: &str) -> String {
    let file = folder.join(format!("{name}.toml"));
    let text = format!("title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\nmtu = 1500\ndown = {one}\nup = {one}\n");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let short = names.iter().any(|wanted| wanted == "short");
    let wants = |name: &str| names.iter().all(|wanted| wanted == "short") || names.iter().any(|wanted| wanted == name);
    if wants("overhead") {
        overhead(&path(folder.path(), 5));
    }
    if wants("window") {
        window(&path(folder.path(), 50), short);
    }
    if wants("own") {
        let [fast, slow] = ["1gbit", "100mbit"].map(|rate| {
            let one = format!("{{ rate = \"{rate}\", delay = \"2ms\", queue_packets = 1000 }}");
            path_of(folder.path(), rate, &one)
        });
        own(&fast, &slow, if short { 1 } else { 3 });
    }
    if wants("alarms") {
        alarms();
    }
    if wants("anomalies") {
        anomalies();
    }
}
