//! First windows, measured as it is promised: nginx behind a path of RTT 40 ms.
//!
//! `cargo bench -p windtunnel --bench first_window [-- WORD]` prints a line for each figure, or for those that hold the
//! word. Times are those of the whole process; on a busy machine they grow.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails like a test")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::nginx::{PATH, findings, over, shell, window};
use serde_json::Value;
use wt_testing::Goal;

/// A row of the table: what it is called, and what measures it.
type Row = (&'static str, fn());

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let rows: [Row; 7] = [
        ("one", one),
        ("matrix", matrix),
        ("https", https),
        ("paced", paced),
        ("unprivileged", unprivileged),
        ("hosts-200", || hosts(200)),
        ("hosts-6000", || {
            hosts(6000);
            hosts(10_000);
        }),
    ];
    rows.iter().filter(|(name, _)| wanted(name)).for_each(|(_, measure)| measure());
}

fn exact(all: &[Value]) -> usize {
    for one in all.iter().filter(|one| one["verdict"] != "exact") {
        let [segments, control, why] = ["segments", "url", "why"].map(|name| &one[name]);
        println!("at least {segments} of {}: {control} {why}", window(one));
    }
    all.iter().filter(|one| one["verdict"] == "exact" && one["segments"] == window(one)).count()
}

/// What is claimed and false: another number as exact, or more as the least.
fn wrong(all: &[Value]) -> usize {
    let false_claim = |one: &&Value| match one["verdict"].as_str() {
        Some("exact") => one["segments"] != window(one),
        Some("at-least") => one["segments"].as_u64() > Some(window(one)),
        _ => false,
    };
    let wrong: Vec<&Value> = all.iter().filter(false_claim).collect();
    wrong.iter().for_each(|one| println!("wrong: {one}"));
    wrong.len()
}

fn one() {
    let script = "row 1 1 10 cubic > host; for n in $(seq 10); do $WT first-window --file host --json-stream; done";
    let ran = shell(script);
    let all = findings(&ran);
    let sorted = |name: &str| {
        let mut values: Vec<f64> = all.iter().filter_map(|one| one[name].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (seconds, packets) = (sorted("seconds"), sorted("packets"));
    println!(
        "one host: {} of {} exact, {:.3} s (most {:.3}), {} packets (most {})",
        exact(&all),
        all.len(),
        seconds[seconds.len() / 2],
        seconds[seconds.len() - 1],
        packets[packets.len() / 2],
        packets[packets.len() - 1]
    );
}

/// Asks for each window in turn, by commands that read the file `host`.
fn windows(controls: &str, windows: &str, commands: &str) -> Vec<Value> {
    let script = format!(
        "set -e; k=0; for cc in {controls}; do for iw in {windows}; do k=$((k+1)); row $k 1 $iw $cc > host; \
         {commands}; done; done"
    );
    findings(&shell(&script))
}

fn matrix() {
    let asked = "for mss in 64 536 1300; do $WT first-window --file host --mss $mss --json-stream; done";
    let all = windows("cubic bbr reno", "1 2 3 4 10 16 32 64 100", asked);
    println!("matrix, HTTP: {} of {} exact, {} wrong", exact(&all), all.len(), wrong(&all));
}

fn https() {
    let asked = "for port in 8443 8444; do \
        sed \"s|http://\\(.*\\):8080|https://\\1:$port|\" host > tls; $WT first-window --file tls --json-stream; done";
    let all = windows("cubic bbr", "$(seq 1 32)", asked);
    println!("HTTPS, TLS 1.3 and 1.2, windows 1 to 32: {} of {} exact, {} wrong", exact(&all), all.len(), wrong(&all));
}

/// Senders that pace, and hold the last segment of an odd window back for a larger one: each window of some by 25 addresses,
/// all of them one after the other and all at once.
fn paced() {
    let script = "set -e; k=0; for iw in 11 15 21 25 27 29 31 32; do k=$((k+1)); row $k 25 $iw bbr; done > hosts; \
        for port in 8443 8444; do sed \"s|http://\\(.*\\):8080|https://\\1:$port|\" hosts; done > tls; \
        while read -r one; do echo \"$one\" > host; $WT first-window --file host --json-stream; done < tls; \
        for n in 1 2; do $WT first-window --file tls --json-stream; done; $WT first-window --file hosts --json-stream";
    let ran = shell(script);
    let all = findings(&ran);
    println!(
        "BBR, windows 11 to 32, HTTPS one by one (400) and at once (800), HTTP at once (200): {} of {} exact, {} wrong",
        exact(&all),
        all.len(),
        wrong(&all)
    );
}

fn unprivileged() {
    for (rtt, delay) in [(1, "500us"), (10, "5ms"), (40, "20ms")] {
        let path = PATH.replace("20ms", delay);
        let rows = |at: usize, cc: &str| {
            let row = |(n, iw): (usize, &u32)| format!("row {} 8 {iw} {cc};", at + n);
            [3, 10, 32, 100].iter().enumerate().map(row).collect::<String>()
        };
        let script = format!(
            "({}{}) > hosts; $WT first-window --unprivileged --file hosts --json-stream",
            rows(1, "cubic"),
            rows(5, "bbr")
        );
        let ran = over(&path, &script);
        let all = findings(&ran);
        let right = all.iter().filter(|one| one["segments"] == window(one)).count();
        println!(
            "unprivileged, RTT {rtt} ms: {right} of {} right, {} exact, {} wrong",
            all.len(),
            exact(&all),
            wrong(&all)
        );
    }
}

/// Time on processors of all children that have ended, in hundredths of a second.
fn children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(") ").next().unwrap().split(' ').map(|field| field.parse().unwrap_or(0.0));
    fields.skip(13).take(2).sum()
}

fn hosts(count: usize) {
    let script = format!(
        "ip netns exec server ip route add local 10.8.0.0/14 dev lo
        n=0; for iw in 3 10 32; do
            ip netns exec server ip route add default dev wt0 table $((200 + n)) initcwnd $iw
            ip netns exec server ip rule add from 10.$((8 + n)).0.0/16 table $((200 + n)); n=$((n + 1))
        done
        i=0; while [ $i -lt {count} ]; do case $((i % 3)) in 0) iw=3;; 1) iw=10;; *) iw=32;; esac
            echo http://10.$((8 + i % 3)).$((i / 250 % 250)).$((i % 250 + 1)):8080/1m.bin $iw; i=$((i + 1))
        done > hosts
        # Time on processors so far, in hundredths of a second: of nginx, and of all that this shell has run.
        used() {{ cut -d' ' -f14,15 /proc/$(cat pid)/stat | while read -r a b; do echo $((a + b)); done; \
            cut -d' ' -f16,17 /proc/$$/stat | while read -r a b; do echo $((a + b)); done; }}
        echo before $(used); begin=$(date +%s%N)
        $WT first-window --file hosts --json-stream > found & pid=$!
        # The most memory so far, by what the shell has built in: other programs would take processors from what is measured.
        (while while read -r a b; do case $a in VmHWM:) peak=$b;; esac; done < /proc/$pid/status; do sleep 0.2; done
            echo VmHWM: $peak > peak) 2> errors &
        wait $pid; end=$(date +%s%N); wait; cat found; cat peak; echo took $((end - begin)); echo after $(used)"
    );
    let before = children();
    let ran = shell(&script);
    let whole = (children() - before) * 10.0 / count as f64;
    let all = findings(&ran);
    let number = |word: &str| {
        let line = ran.out.lines().find(|line| line.starts_with(word));
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|n| n.parse::<f64>().ok()).unwrap_or(f64::NAN)
    };
    if let (Some(path), all) = (std::env::var_os("FOUND"), &ran.out) {
        std::fs::write(path, all).unwrap();
    }
    let seconds = number("took") / 1e9;
    let used = |word: &str| -> Vec<f64> {
        let line = ran.out.lines().find(|line| line.starts_with(word)).unwrap_or_default();
        line.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect()
    };
    let cpu: Vec<String> = used("before ")
        .iter()
        .zip(used("after "))
        .map(|(before, after)| format!("{:.2}", (after - before) * 10.0 / count as f64))
        .collect();
    let wrong = wrong(&all) as f64;
    let pace = if count > 1000 { 1400.0 } else { 400.0 };
    println!(
        "{}",
        Goal::AtLeast(pace).line(&format!("first windows of {count} hosts"), count as f64 / seconds, "hosts/s")
    );
    println!("{}", Goal::AtMost(0.0).line(&format!("first windows of {count} hosts, wrong"), wrong, "hosts"));
    let memory = number("VmHWM:") / 1024.0;
    println!("  {} exact, {} told, {seconds:.2} s, at most {memory:.0} MB of memory", exact(&all), all.len());
    println!("  ms on a processor for each host: nginx {}, the survey {}, all with the lab {whole:.2}", cpu[0], cpu[1]);
}
