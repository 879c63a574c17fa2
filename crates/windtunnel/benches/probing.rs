//! Probing, measured as it is promised: five hosts with kernels of their own, RTT 40 ms.
//!
//! `cargo bench -p windtunnel --bench probing [-- WORD]` prints a line for each figure, or for those that hold the word.
//! `RUNS` is the number of runs of each (default 10). Times are the program's own, from the first packet to the verdict; on
//! a busy machine they grow.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails like a test")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::five_hosts::{V4, V6, among_five, objects};
use common::{binary, ran, windtunnel};
use serde_json::Value;
use wt_testing::Goal;

/// A row of the table: what it is called, and what measures it in so many runs.
type Row = (&'static str, fn(usize));

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let rows: [Row; 13] = [
        ("mtu", mtu),
        ("variants", variants),
        ("hosts", hosts),
        ("scan-threshold", scan_threshold),
        ("scan-detect", scan_detect),
        ("scan-split", scan_split),
        ("advice", advice),
        ("trace", trace),
        ("trace-long", trace_long),
        ("tamper", tamper),
        ("bottleneck", bottleneck),
        ("rtt", rtt),
        ("peers", peers),
    ];
    let runs = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(10);
    for (_, measure) in rows.iter().filter(|(name, _)| wanted(name)) {
        measure(runs);
    }
}

/// What several runs of a command among the five hosts gave. Where answers to UDP may be used up, a target gets the time
/// that Linux takes until it has as many again.
fn runs(variant: &str, command: &str, runs: usize) -> Vec<Value> {
    let udp = variant == "udp-only" || command.contains("unprivileged");
    let rest = if udp { "sleep 6" } else { "true" };
    let script = format!("for n in $(seq {runs}); do {command} || true; {rest}; done");
    objects(&among_five(variant, &script))
}

fn numbers(answers: &[Value], key: &str) -> Vec<f64> {
    let mut numbers: Vec<f64> = answers.iter().filter_map(|answer| answer[key].as_f64()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// The median and the largest.
fn spread(answers: &[Value], key: &str) -> (f64, f64) {
    let numbers = numbers(answers, key);
    let at = |index: usize| numbers.get(index).copied().unwrap_or(f64::NAN);
    (at(numbers.len() / 2), at(numbers.len().saturating_sub(1)))
}

fn cost(answers: &[Value]) -> String {
    let (seconds, packets) = (spread(answers, "seconds"), spread(answers, "packets"));
    format!("{:.3} s (most {:.3}), {} packets (most {})", seconds.0, seconds.1, packets.0, packets.1)
}

fn right(answers: &[Value], is_right: impl Fn(&Value) -> bool) -> String {
    format!("{} of {} right", answers.iter().filter(|answer| is_right(answer)).count(), answers.len())
}

fn mtu(count: usize) {
    for (variant, kind, hop) in [("blackhole", "black-hole", 2), ("normal", "clean", 0)] {
        for to in [V4, V6] {
            let answers = runs(variant, &format!("at c $WT mtu --json {to}"), count);
            let is_right = |answer: &Value| {
                answer["pmtu"] == 1400
                    && answer["kind"] == kind
                    && answer["black_hole_hop"]["ttl"].as_u64().unwrap_or(0) == hop
            };
            println!("mtu {variant} {to}: {}, {}", right(&answers, is_right), cost(&answers));
            let what = format!("path MTU, {kind}, to {to}");
            println!("{}", Goal::AtMost(0.5).line(&what, spread(&answers, "seconds").0, "s"));
            let reverse = right(&answers, |answer| answer["reverse_pmtu"] == 1400);
            let on_top = (spread(&answers, "reverse_seconds").0, spread(&answers, "reverse_packets").0);
            println!("mtu {variant} {to}, way back: {reverse}, {:.3} s and {} packets on top", on_top.0, on_top.1);
        }
    }
}

const VARIANTS: [(&str, u16, &str); 9] = [
    ("normal", 1400, "clean"),
    ("blackhole", 1400, "black-hole"),
    ("blackhole-all", 1400, "black-hole"),
    ("drop", 1300, "lying-router"),
    ("loss", 1400, "size-dependent-loss"),
    ("lossfwd", 1400, "size-dependent-loss"),
    ("noecho", 1400, "icmp-blocked"),
    ("clamp", 1400, "clamped"),
    ("ratelimit", 1400, "rate-limited"),
];

/// Who may not send raw packets rests between runs: all of those at once then, each among five hosts of its own.
fn variants(count: usize) {
    let row = |who: &str, prefix: &str, to: &str, (name, pmtu, kind): (&str, u16, &str)| {
        let answers = runs(name, &format!("{prefix} $WT mtu --json {to}"), count);
        let right = right(&answers, |answer| answer["pmtu"] == pmtu && answer["kind"] == kind);
        println!("variant {name} {to}, {who}: {right}, {}", cost(&answers));
    };
    for to in [V4, V6] {
        VARIANTS.into_iter().for_each(|variant| row("root", "at c", to, variant));
    }
    let may_ping = "at c sysctl -qw net.ipv4.ping_group_range='0 0'; unprivileged";
    std::thread::scope(|scope| {
        for (who, prefix) in [("user", "unprivileged"), ("pinging user", may_ping)] {
            for (to, variant) in [V4, V6].into_iter().flat_map(|to| VARIANTS.map(|variant| (to, variant))) {
                scope.spawn(move || row(who, prefix, to, variant));
            }
        }
    });
}

fn hosts(count: usize) {
    let script = format!(
        "for i in $(seq 200); do at s ip addr add 10.3.1.$i/16 dev s0; echo 10.3.1.$i; done > \"$TMPDIR/hosts\"
        at r3 ip route add 10.3.1.0/24 dev r3s
        for n in $(seq {}); do at c $WT mtu --json --file \"$TMPDIR/hosts\" || true; done",
        count.min(5)
    );
    let ran = among_five("blackhole", &script);
    let mut firsts = Vec::new();
    for answer in objects(&ran) {
        let targets = answer["targets"].as_array().unwrap();
        let is_right = |answer: &Value| answer["pmtu"] == 1400 && answer["kind"] == "black-hole";
        println!("200 hosts: {}, {} packets", right(targets, is_right), targets[0]["packets"]);
        firsts.push(targets[0].clone());
    }
    println!("{}", Goal::AtMost(1.0).line("200 hosts behind a black hole", spread(&firsts, "seconds").0, "s"));
}

fn lossy(permille: u32, back: u32) -> String {
    let rule = |device: &str, permille: u32| {
        format!("rules r2 forward 'iifname {device} meta length > 1300 numgen random mod 1000 < {permille} drop'\n")
    };
    rule("wt0", permille) + &if back > 0 { rule("r2r3", back) } else { String::new() }
}

fn scans(rules: &str, sizes: &str, count: usize) -> Vec<Value> {
    let script = format!("{rules}\nfor n in $(seq {count}); do at c $WT mtu --scan {sizes} --json {V4} || true; done");
    objects(&among_five("normal", &script))
}

const FINE: &str = "--from 1204 --to 1396 --step 8";

fn scan_threshold(count: usize) {
    let answers = scans(&lossy(50, 0), FINE, count);
    let near = |answer: &Value| {
        let found = &answer["threshold"];
        found["below"].as_u64().is_some_and(|size| size <= 1308)
            && found["above"].as_u64().is_some_and(|size| size > 1292)
    };
    println!("scan, 25 sizes, 5 % above 1300, to 8 bytes: {}, {}", right(&answers, near), cost(&answers));
}

fn scan_detect(count: usize) {
    for (permille, kind) in [(10, "size-dependent-loss"), (0, "clean")] {
        let answers = scans(&lossy(permille, 0), FINE, count);
        let right = right(&answers, |answer| answer["kind"] == kind);
        println!("scan, {permille} per mille above 1300: {right}, {}", cost(&answers));
    }
}

fn scan_split(count: usize) {
    for (there, back) in [(300u32, 300u32), (300, 0), (0, 300)] {
        let answers = scans(&lossy(there, back), FINE, count.min(5));
        let off = |key: &str, truth: u32| {
            let off = |loss: f64| (loss * 100.0 - f64::from(truth) / 10.0).abs();
            numbers(&answers, key).into_iter().map(off).fold(0.0, f64::max)
        };
        println!(
            "scan, {there} per mille there and {back} back: off by at most {:.1} and {:.1} points, {}",
            off("loss_forward", there),
            off("loss_reverse", back),
            cost(&answers)
        );
    }
}

/// Seconds that 10 MB take over CUBIC, before and after what the scan advises.
fn advice(_: usize) {
    let rule = "rules r2 forward 'meta length > 1300 numgen random mod 100 < 1 drop'";
    let script = format!(
        "{rule}

        at s iperf3 -s -p 5201 > \"$TMPDIR/iperf\" &
        $WT --version > \"$TMPDIR/version\"
        at c $WT mtu --scan {FINE} --json {V4}
        at c iperf3 -c {V4} -R -C cubic -n 10M --json
        size=$(at c $WT mtu --scan {FINE} --json {V4} | sed -n 's/^ *\"best_size\": \\([0-9]*\\),/\\1/p')
        at c ip route change default via 10.1.0.1 advmss $((size - 40))
        at c iperf3 -c {V4} -R -C cubic -n 10M --json"
    );
    let ran = among_five("normal", &script);
    let answers = objects(&ran);
    let [scan, before, after] = &answers[..] else { return println!("advice: {}{}", ran.out, ran.err) };
    let rate = |answer: &Value| answer["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(f64::NAN) / 8e6;
    println!(
        "advice, 1 % above 1300, CUBIC: {:.2} MB/s before, {:.2} MB/s after advmss {}: {:.0} times (predicted {:.0})",
        rate(before),
        rate(after),
        scan["best_size"],
        rate(after) / rate(before),
        scan["gain"]["loss_based"].as_f64().unwrap_or(f64::NAN)
    );
}

fn trace(count: usize) {
    for variant in ["normal", "noecho", "udp-only", "blackhole"] {
        for (who, prefix) in [("root", "at c"), ("user", "unprivileged")] {
            let answers = runs(variant, &format!("{prefix} $WT trace -n --json {V4}"), count);
            let right =
                right(&answers, |answer| answer["hop_count"] == 4 && answer["hops"].as_array().unwrap().len() == 4);
            println!("trace {variant}, {who}: {right}, {}", cost(&answers));
        }
    }
}

/// A lab of so many links.
fn in_lab(links: &str, script: &str) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("path.toml");
    std::fs::write(&file, format!("title = \"a path\"\nsource = \"a benchmark\"\n{links}")).unwrap();
    let mut command = windtunnel(home.path());
    command.env("WT", binary()).args(["lab", "run"]).arg(&file).args(["--", "sh", "-c", script]);
    objects(&ran(command.output().unwrap()))
}

fn link(rate: &str, delay: &str, queue: &str) -> String {
    let way = format!("{{ rate = \"{rate}\", delay = \"{delay}\", queue = \"{queue}\" }}");
    format!("[[link]]\nname = \"l\"\nmtu = 1500\ndown = {way}\nup = {way}\n")
}

fn trace_long(count: usize) {
    let links: String =
        (0..30).map(|n| link("1gbit", "667us", "1MiB").replace("\"l\"", &format!("\"l{n}\""))).collect();
    let answers = in_lab(&links, &format!("for n in $(seq {count}); do $WT trace -n --json server; done"));
    let right = right(&answers, |answer| answer["hop_count"] == 30);
    println!("trace of 30 hops: {right}, {}", cost(&answers));
}

fn tamper(count: usize) {
    for to in [V4, V6] {
        let answers = runs("tamper", &format!("at c $WT trace -n --json {to}"), count);
        let words = ["mss", "sack", "timestamps", "window-scale", "fast-open", "ecn"];
        let all = |answer: &Value| {
            let changed = answer["hops"][2]["changed"].to_string();
            words.iter().all(|word| changed.contains(word))
        };
        println!("tampering {to}, six changes: {}, {}", right(&answers, all), cost(&answers));
    }
}

fn bottleneck(count: usize) {
    for mbit in [5.0, 20.0, 50.0, 100.0] {
        let script = format!("for n in $(seq {count}); do $WT path --json server; done");
        let answers = in_lab(&link(&format!("{mbit}mbit"), "20ms", "256KiB"), &script);
        let off = |answer: &Value| answer["bottleneck_bps"].as_f64().map_or(f64::NAN, |bps| bps / mbit / 1e6 - 1.0);
        let right = right(&answers, |answer| off(answer).abs() <= 0.05);
        let worst = answers.iter().map(|answer| off(answer).abs()).fold(0.0, f64::max);
        let (seconds, packets) = (spread(&answers, "bottleneck_seconds").0, spread(&answers, "bottleneck_packets").1);
        println!("bottleneck {mbit} Mbit/s: {right} to 5 %, {seconds:.2} s, {packets} packets");
        let what = format!("narrowest link of {mbit} Mbit/s, worst off by");
        println!("{}", Goal::AtMost(5.0).line(&what, worst * 100.0, "%"));
    }
}

/// Medians side by side, in turns, over the delaying link and to the next hop.
fn rtt(count: usize) {
    let turn = |to: &str| {
        format!(
            "at c $WT path --pings 200 --json {to} || true
            at c ping -c 200 -i 0.002 {to} | sed -n 's/.*time=\\([0-9.]*\\) ms/\\1/p' | sort -n \\
                | awk '{{ a[NR] = $1 }} END {{ printf \"{{\\\"median\\\":%s}}\\n\", 1000 * (a[100] + a[101]) / 2 }}'\n"
        )
    };
    for to in ["10.1.0.1", V4] {
        let ran = among_five("normal", &turn(to).repeat(count.min(5)));
        let answers = objects(&ran);
        for pair in answers.chunks(2) {
            let [ours, ping] = pair else { continue };
            println!("rtt to {to}: median {} µs, ping's {} µs", ours["rtt_us"]["median"], ping["median"]);
        }
    }
}

/// Tools that others have, in the same place: what they say and how long they take.
fn peers(_: usize) {
    let bisect = "low=576; high=1500; while [ $((high - low)) -gt 1 ]; do mid=$(((low + high) / 2)); \
        if ping -M do -c1 -W1 -q -s $((mid - 28)) TO > /dev/null 2>&1; then low=$mid; else high=$mid; fi; done; echo $low";
    let tools = [
        ("ping", bisect),
        ("tracepath", "timeout 120 tracepath -n TO | sed -n 's/.*Resume: //p'"),
        ("traceroute", "timeout 60 traceroute --mtu -n -q1 -w1 TO | grep -o 'F=[0-9]*' | tail -n 1"),
        ("nmap", "nmap -Pn -n -p80 --script path-mtu TO | sed -n 's/.*path-mtu: //p'"),
        ("scamper", "scamper -p 1000 -c 'trace -M -w 1' -i TO | grep -o 'pmtu.*\\|[0-9]* *\\[.*mtu.*' | tail -n 1"),
    ];
    for variant in ["normal", "blackhole"] {
        for (tool, command) in tools {
            let command = command.replace("TO", V4);
            let script = format!(
                "command -v {tool} > /dev/null || {{ echo not installed; exit 0; }}
                cat > \"$TMPDIR/peer\" <<'SCRIPT'\n{command}\nSCRIPT
                from=$(date +%s%N); said=$(at c sh \"$TMPDIR/peer\" 2>&1 || true); to=$(date +%s%N)
                echo \"$(((to - from) / 1000000)) ms: $said\""
            );
            let ran = among_five(variant, &script);
            println!("peer {tool}, {variant} (truth: 1400): {}", ran.out.trim());
        }
    }
}
