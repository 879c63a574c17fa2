//! `windtunnel stacks`: stacks behind adapters, in labs of their own.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, json, ran, run, shared, windtunnel};
use serde_json::Value;
use std::path::Path;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_testing::require;

/// Whether adapters can have their devices.
fn tun_device() -> Result<(), std::io::Error> {
    std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun").map(drop)
}

/// 10 Mbit/s over so many ms there and back.
fn path(folder: &Path, rtt_ms: u32) -> String {
    let delay = f64::from(rtt_ms) / 2.0;
    let one = format!("{{ rate = \"10mbit\", delay = \"{delay}ms\", queue_packets = 100 }}");
    let text = format!("title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\nmtu = 1500\ndown = {one}\nup = {one}\n");
    let file = folder.join("path.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn compare(folder: &Path, more: &[&str]) -> (RunOutput, Value) {
    let lab = path(folder, 10);
    let mut command = windtunnel(folder);
    command.args(["stacks", "compare", "--json", "-q", "--no-conformance", "--lab", &lab, "--rounds", "1"]).args(more);
    let ran = ran(command.output().unwrap());
    let told = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    (ran, told)
}

fn stack<'a>(told: &'a Value, name: &str) -> &'a Value {
    told["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {told}"))
}

fn findings<'a>(told: &'a Value, name: &str) -> Vec<&'a str> {
    let all = stack(told, name)["findings"].as_array().unwrap();
    all.iter().map(|one| one["kind"].as_str().unwrap()).collect()
}

/// What a stack did wrong. A trial in which the lab itself was late says nothing of it.
fn faults(one: &Value) -> Vec<&Value> {
    one["failures"].as_array().unwrap().iter().filter(|failure| failure["status"] != "invalid").collect()
}

#[test]
fn the_list_says_what_there_is_and_what_the_others_need() {
    let listed = json(&["stacks", "list", "--json"]);
    let stacks = listed["stacks"].as_array().unwrap();
    for name in ["linux-direct", "linux", "smoltcp"] {
        assert!(stacks.iter().any(|one| one["name"] == name && one["built"] == true), "{name}");
    }
    for one in stacks.iter().filter(|one| one["built"] == false) {
        assert!(one["install"].as_str().unwrap().contains("install"), "{one}");
    }
    let profiles = listed["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 7);
    for one in profiles {
        assert_eq!(one["window"]["known"][0], 8192, "{one}");
    }
    let text = run(&["stacks", "list"]).out;
    assert!(text.contains("Trumpet Winsock 2.0b") && text.contains("unknown:"), "{text}");
}

#[test]
fn nonsense_is_refused_with_what_there_is() {
    for (args, part) in [
        (&["--stacks", "smolctp"][..], "smoltcp"),
        (&["--stacks", "linux,linux"], "twice"),
        (&["--stacks", "smoltcp:colour=red"], "ack-delay"),
        (&["--stacks", "linux:cc=nonsense"], "cubic"),
        (&["--stacks", "smoltcp:cc=vegas"], "cubic"),
        (&["--stacks", "linux:hang-at=soon"], "hang-at"),
        (&["--give-up", "1ms"], "200ms"),
        (&["--rwin", "1B"], "256B"),
        (&["--stacks", "smoltcp:rwin=8KiB", "--rwin", "4KiB"], "names a window"),
        (&["--workloads", "sok"], "soak"),
        (&["--workloads", "competing"], "isn't compared"),
        (&["--workloads", ","], "no workload"),
        (&["--workloads", "bulk,download-12mb"], "twice"),
        (&["--direction", "sideways"], "both"),
        (&["--workloads", "soak", "--direction", "both"], "for bulk transfers"),
        (&["--workloads", "bulk:size=1MB", "--direction", "both"], "of a size"),
        (&["--lab", "ethernet-hob"], "ethernet-hub"),
    ] {
        let ran = run(&[&["stacks", "compare"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
    }
}

#[test]
fn an_adapter_that_is_not_built_says_what_to_install() {
    let home = tempfile::tempdir().unwrap();
    let mut command = windtunnel(home.path());
    command.env("WINDTUNNEL_UML", "/nonexistent/linux");
    let ran = ran(command.args(["stacks", "compare", "--stacks", "uml"]).output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("isn't built") && ran.err.contains("apt-get install"), "{}", ran.err);
}

/// Whether an older Linux can be run here.
fn older_linux() -> Result<(), &'static str> {
    let listed = json(&["stacks", "list", "--json"]);
    let has = listed["stacks"].as_array().unwrap().iter().any(|one| one["name"] == "uml" && one["built"] == true);
    has.then_some(()).ok_or("there is no older Linux: apt-get install user-mode-linux")
}

#[test]
fn what_an_older_linux_has_not_is_refused_before_the_first_trial() {
    require!("uml", older_linux());
    for name in ["nonsense", "../cubic", ""] {
        let ran = run(&["stacks", "compare", "--stacks", &format!("linux,uml:cc={name}")]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.err);
        assert!(ran.err.contains("cubic") && ran.err.contains("vegas"), "{name}: {}", ran.err);
    }
}

/// Processes that this one started and that still run.
fn children(pid: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    pids.filter(|one| parent(one) == Some(pid)).collect()
}

#[test]
fn whoever_is_killed_in_a_trial_leaves_no_file_and_no_process_behind() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let lab = path(home.path(), 10);
    let files = home.path().join("tmp");
    std::fs::create_dir(&files).unwrap();
    // The adapter of the older Linux has a process of its own, which has files.
    let (stack, generations) = if older_linux().is_ok() { ("uml", 2) } else { ("smoltcp", 1) };
    let mut command = windtunnel(home.path());
    command.env("TMPDIR", &files).args(["stacks", "compare", "-q", "--no-conformance", "--lab", &lab]);
    let mut child = command.args(["--stacks", stack, "--workloads", "soak", "--soak", "60s"]).spawn().unwrap();
    let limit = monotonic_ns() + 30_000_000_000;
    let glance = || wait_readable(&[], Some(std::time::Duration::from_millis(20))).unwrap();
    let family = loop {
        let mut family = vec![vec![child.id()]];
        for _ in 0..generations {
            family.push(family.last().unwrap().iter().flat_map(|pid| children(*pid)).collect());
        }
        if !family.last().unwrap().is_empty() {
            break family;
        }
        assert!(monotonic_ns() < limit && child.try_wait().unwrap().is_none(), "no trial begins");
        glance();
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
    };
    while family[1..].iter().flatten().any(runs) {
        assert!(monotonic_ns() < limit, "processes are left: {family:?}");
        glance();
    }
    let left: Vec<_> = std::fs::read_dir(&files).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "files are left: {left:?}");
}

#[test]
fn every_adapter_that_is_built_carries_every_byte_both_ways() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let listed = json(&["stacks", "list", "--json"]);
    let built = listed["stacks"].as_array().unwrap().iter().filter(|one| one["built"] == true);
    let names: Vec<&str> = built.map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"linux") && names.contains(&"smoltcp"), "{names:?}");
    // A stream of requests goes up, and the page takes several connections at once.
    let workloads = "transactions:count=10,bulk:size=200kB,page";
    let (_, told) =
        compare(home.path(), &["--stacks", &names.join(","), "--workloads", workloads, "--direction", "down,up"]);
    assert_eq!(told["same_bytes"], true, "{told}");
    for name in names {
        let one = stack(&told, name);
        assert_eq!((one["integrity"].as_str(), one["failures"].as_array().unwrap().len()), (Some("ok"), 0), "{one}");
        assert_eq!(findings(&told, name), Vec::<&str>::new());
        assert!(one["workloads"]["page"]["bytes"][0].as_u64() > Some(0), "{one}");
        for way in ["bulk", "bulk-up"] {
            assert_eq!(one["workloads"][way]["bytes"], serde_json::json!([200_000]), "{name} {way}: {one}");
            // No more than the path has.
            let goodput = one["workloads"][way]["goodput_bps"].as_f64();
            assert!(goodput.is_some_and(|bps| bps > 1e5 && bps < 1e7), "{name} {way}: {goodput:?}");
        }
        // What isn't TCP has no windows and retransmissions that could be seen.
        let window = &one["workloads"]["bulk"]["window_bytes"];
        assert_eq!(window.is_null(), name == "quic", "{name}: {window}");
    }
}

#[test]
fn a_download_and_an_upload_at_once_are_told_together_and_each() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    // What has no form for both ways at once goes each way.
    let workloads = "bulk,soak,transactions:count=5";
    let both = ["--stacks", "linux-direct,smoltcp", "--workloads", workloads, "--soak", "1s", "--direction", "both,up"];
    let (_, told) = compare(home.path(), &both);
    for name in ["linux-direct", "smoltcp"] {
        let one = stack(&told, name);
        assert_eq!((one["integrity"].as_str(), faults(one)), (Some("ok"), vec![]), "{one}");
        let workloads = one["workloads"].as_object().unwrap();
        assert_eq!(workloads.keys().collect::<Vec<_>>(), ["bulk-up", "duplex", "soak-up", "transactions"]);
        let figures = &workloads["duplex"];
        let [down, up, all] = ["down_bps", "up_bps", "goodput_bps"].map(|field| figures[field].as_f64().unwrap());
        assert!(down > 1e5 && up > 1e5 && down < 1e7 && up < 1e7, "{figures}");
        assert!((0.9..1.1).contains(&(all / (down + up))), "payload of both: {figures}");
    }
    let again = ran(windtunnel(home.path()).args(["report", "last", "--json"]).output().unwrap());
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again["stacks"], told["stacks"], "the journal tells the same");
}

#[test]
fn every_stack_moves_the_same_bytes_and_is_counted_by_the_operating_system() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let workloads = "transactions:count=20,bursts:count=1,pause=0ms,bulk:size=300kB,page";
    let stacks = "linux-direct,linux:cc=reno,smoltcp,windows-95";
    let (_, told) = compare(home.path(), &["--stacks", stacks, "--workloads", workloads]);
    assert_eq!(told["same_bytes"], true);
    for name in stacks.split(',') {
        let one = stack(&told, name);
        assert_eq!((one["integrity"].as_str(), one["failures"].as_array().unwrap().len()), (Some("ok"), 0), "{one}");
        for workload in ["transactions", "bursts", "bulk", "page"] {
            let figures = &one["workloads"][workload];
            assert!(figures["bytes"][0].as_u64().unwrap() > 0, "{name} {workload}: {figures}");
            let cpu = figures["cpu_s_per_gb"].as_f64();
            assert_eq!(cpu.is_some_and(|cpu| cpu > 0.0), name != "linux-direct", "{name} {workload}: {figures}");
        }
        let transactions = &one["workloads"]["transactions"];
        // Each takes a round trip of 10 ms and more.
        // Each of two wake-ups of the lab may have been credited with 50 µs more than it took.
        assert!(transactions["p50_us"].as_f64().unwrap() >= 9_900.0, "{transactions}");
        assert!(transactions["per_second"].as_f64().unwrap() <= 100.0, "{transactions}");
        assert!(transactions["p99_us"].as_f64() >= transactions["p50_us"].as_f64());
        assert!(one["memory_bytes"].as_f64().is_none_or(|bytes| bytes > 1e6), "{one}");
        assert!(one["ack_delay_trend"].as_object().unwrap().contains_key("p"));
    }
    assert_eq!(stack(&told, "smoltcp")["conformance"]["timestamps"], "no");
    assert_eq!(stack(&told, "linux:cc=reno")["conformance"]["timestamps"], "yes");
    let old = stack(&told, "windows-95");
    assert_eq!(old["settings"]["stands_in_for"], "Microsoft TCP/IP for Windows 95");
    // No packet of it ever offered more.
    assert_eq!(old["workloads"]["bulk"]["window_bytes"], 8192.0);
    // One round shows nothing, and says so.
    assert!(told["verdicts"].as_array().unwrap().iter().all(|verdict| verdict["kind"] == "not-shown"), "{told}");
    let again = ran(windtunnel(home.path()).args(["report", "last", "--json"]).output().unwrap());
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again["stacks"], told["stacks"], "the journal tells the same");
}

#[test]
fn what_the_adapters_path_costs_is_told_by_pairs_of_transactions() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let (_, told) = compare(home.path(), &["--stacks", "linux-direct,linux", "--workloads", "transactions:count=10"]);
    let paired = &told["adapter_overhead_paired"];
    let number = |name: &str| paired[name].as_f64().unwrap_or_else(|| panic!("{name}: {paired}"));
    assert_eq!(paired["pairs"], 100, "{paired}");
    // Each takes a round trip of 10 ms, but for what the lab credits two wake-ups with.
    assert!(number("direct_p50_us") >= 9_900.0 && number("adapter_p50_us") >= 9_900.0, "{paired}");
    assert!(number("low_us") <= number("median_us") && number("median_us") <= number("high_us"), "{paired}");
    assert!((number("share") - number("median_us") / number("direct_p50_us")).abs() < 1e-9, "{paired}");
    assert_eq!(number("allowed"), 0.03);
    let again = ran(windtunnel(home.path()).args(["report", "last", "--json"]).output().unwrap());
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(&again["adapter_overhead_paired"], paired, "the journal tells the same");
}

#[test]
fn a_larger_window_is_told_beside_what_was_offered_and_what_it_should_bring() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let lab = path(home.path(), 100);
    let mut command = windtunnel(home.path());
    command.args(["stacks", "compare", "--json", "-q", "--no-conformance", "--lab", &lab, "--rounds", "1"]);
    let older = older_linux().is_ok();
    let stacks = if older { "linux,smoltcp,uml" } else { "linux,smoltcp" };
    command.args(["--stacks", stacks, "--rwin", "8760,20440", "--workloads", "bulk:size=100kB"]);
    let told: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let raised = told["windows"].as_array().unwrap();
    let names: Vec<&str> = raised.iter().map(|one| one["stack"].as_str().unwrap()).collect();
    // Of a trial that the machine was too busy for nothing is told but that.
    let busy = |one: &Value| one["failures"].as_array().unwrap().iter().any(|failure| failure["status"] == "invalid");
    let all = told["stacks"].as_array().unwrap();
    let told_of = |name: &&str| !all.iter().any(|one| one["stack"] == *name && busy(one));
    assert_eq!(names, stacks.split(',').filter(told_of).collect::<Vec<_>>(), "{told}");
    assert!(!names.is_empty(), "{told}");
    for one in all.iter().filter(|one| !busy(one)) {
        // The path loses nothing, and no stack loses what the lab hands over as one packet of several segments.
        let again = one["workloads"]["bulk"]["server_retransmissions"].as_f64().unwrap();
        assert!(again < 3.0, "{one}");
    }
    for one in raised {
        let number = |value: &Value| value.as_f64().unwrap();
        assert_eq!(one["rwin"], serde_json::json!([8760, 20_440]));
        // No stack offers more than it was told in the mean, but for what it offered before it was.
        let (small, large) = (number(&one["offered_bytes"][0]), number(&one["offered_bytes"][1]));
        assert!((5000.0..10_500.0).contains(&small) && (16_000.0..25_000.0).contains(&large), "{one}");
        let (measured, predicted) = (number(&one["measured"]), number(&one["predicted"]));
        assert!(predicted > 1.5 && measured > 1.0, "{one}");
        assert!((number(&one["error"]) - (measured / predicted - 1.0)).abs() < 1e-9, "{one}");
    }
}

#[test]
fn data_that_is_lost_when_the_answer_is_fast_is_found_and_only_then() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    // The answer takes at least the RTT of 10 ms.
    let stacks = "smoltcp:fast-loss=5s,linux:fast-loss=5s,smoltcp:fast-loss=1ms,linux";
    let workloads = "transactions:count=5,bulk:size=50kB";
    let (ran, told) = compare(home.path(), &["--stacks", stacks, "--workloads", workloads]);
    assert!(ran.code <= 1, "a stack that loses data is a result: {}", ran.err);
    for name in ["smoltcp:fast-loss=5s", "linux:fast-loss=5s"] {
        let one = stack(&told, name);
        assert_eq!((one["integrity"].as_str(), findings(&told, name)), (Some("lost"), vec!["data-lost"]), "{one}");
        assert!(one["findings"][0]["at_s"].as_f64().unwrap() < 10.0, "{one}");
        assert_eq!(one["failures"].as_array().unwrap().len(), 2, "{one}");
    }
    for name in ["smoltcp:fast-loss=1ms", "linux"] {
        assert_eq!((stack(&told, name)["integrity"].as_str(), findings(&told, name)), (Some("ok"), vec![]), "{name}");
    }
}

#[test]
fn a_stack_that_corrupts_a_byte_or_crashes_at_its_work_is_a_result() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let stacks = "smoltcp:corrupt-at=30kB,linux:corrupt-at=30kB,smoltcp:crash-at=30kB,linux:crash-at=30kB,smoltcp";
    let (ran, told) = compare(home.path(), &["--stacks", stacks, "--workloads", "bulk:size=100kB"]);
    assert!(ran.code <= 1, "{}", ran.err);
    for name in ["smoltcp:corrupt-at=30kB", "linux:corrupt-at=30kB"] {
        let one = stack(&told, name);
        assert_eq!(
            (one["integrity"].as_str(), findings(&told, name)),
            (Some("corrupt"), vec!["data-corrupt"]),
            "{one}"
        );
        let why = one["failures"][0]["why"].as_str().unwrap();
        assert!(why.contains("byte 30"), "it names the byte: {why}");
    }
    for name in ["smoltcp:crash-at=30kB", "linux:crash-at=30kB"] {
        let one = stack(&told, name);
        let failure = &one["failures"][0];
        assert!(failure["why"].as_str().unwrap().contains("crashed: signal 6"), "{one}");
        assert_eq!(
            (failure["status"].as_str(), findings(&told, name).contains(&"data-corrupt")),
            (Some("failed"), false)
        );
    }
    let sound = stack(&told, "smoltcp");
    assert_eq!((sound["integrity"].as_str(), faults(sound).len()), (Some("ok"), 0), "{sound}");
}

#[test]
fn a_stack_that_hangs_at_its_work_is_a_result() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let stacks = "smoltcp:hang-at=30kB,linux:hang-at=30kB,smoltcp";
    let workloads = "transactions:count=20,bulk:size=100kB";
    let (ran, told) = compare(home.path(), &["--stacks", stacks, "--workloads", workloads, "--give-up", "4s"]);
    assert!(ran.code <= 1, "{}", ran.err);
    for name in ["smoltcp:hang-at=30kB", "linux:hang-at=30kB"] {
        let one = stack(&told, name);
        // What it had taken when it stopped isn't lost data: it hangs.
        assert_eq!((one["integrity"].as_str(), findings(&told, name)), (Some("ok"), vec![]), "{one}");
        let failures = one["failures"].as_array().unwrap();
        assert_eq!(failures.len(), 2, "{one}");
        for failure in failures {
            assert!(failure["why"].as_str().unwrap().contains("it hangs"), "{failure}");
        }
    }
    let sound = stack(&told, "smoltcp");
    assert_eq!((sound["integrity"].as_str(), faults(sound).len()), (Some("ok"), 0), "{sound}");
}

#[test]
fn acks_that_come_later_and_later_are_found_and_dated_and_others_are_left_alone() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    // A fifth of the time without it, as once a minute of five.
    let stacks = "linux:late-acks=1s,smoltcp:late-acks=1s,smoltcp";
    let (_, told) = compare(home.path(), &["--stacks", stacks, "--workloads", "soak", "--soak", "5s"]);
    for name in ["linux:late-acks=1s", "smoltcp:late-acks=1s"] {
        let one = stack(&told, name);
        assert_eq!(findings(&told, name), ["ack-delay-grows"], "{one}");
        let at = one["findings"][0]["at_s"].as_f64().unwrap();
        assert!((0.5..=2.0).contains(&at), "{at}");
        let trend = &one["ack_delay_trend"];
        assert!(trend["end_ms"].as_f64().unwrap() > 100.0 && trend["p"].as_f64().unwrap() < 0.001, "{trend}");
        assert_eq!(one["integrity"], "ok");
    }
    assert_eq!(findings(&told, "smoltcp"), Vec::<&str>::new(), "{told}");
}

#[test]
fn an_adapter_that_crashes_or_hangs_is_a_result() {
    use std::os::unix::fs::PermissionsExt as _;
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("windtunnel-stack-lwip");
    let ready = r#"echo '{"ready":true,"name":"lwip","version":"0"}'"#;
    let (crash, hang) = (format!("{ready}; kill -SEGV $$"), format!("{ready}; exec sleep 60"));
    for (body, part) in [
        ("echo no device >&2; exit 7", "no device"),
        (ready, "wts0"),
        (crash.as_str(), "crashed: signal 11"),
        (hang.as_str(), "it hangs"),
    ] {
        std::fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let lab = path(home.path(), 10);
        let mut command = windtunnel(home.path());
        command.env("WINDTUNNEL_STACKS", home.path());
        command.args(["stacks", "compare", "--json", "-q", "--no-conformance", "--lab", &lab, "--rounds", "1"]);
        command.args(["--stacks", "lwip,smoltcp", "--workloads", "transactions:count=3"]);
        let ran = ran(command.output().unwrap());
        let told: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
        let why = stack(&told, "lwip")["failures"][0]["why"].as_str().unwrap().to_owned();
        assert!(why.contains(part), "{why}");
        assert!(faults(stack(&told, "smoltcp")).is_empty(), "{told}");
    }
}

#[test]
fn packet_scripts_tell_what_a_stack_can_do() {
    require!("tun", tun_device());
    let _others = shared();
    let home = tempfile::tempdir().unwrap();
    let lab = path(home.path(), 10);
    let mut command = windtunnel(home.path());
    command.args(["stacks", "compare", "--json", "-q", "--lab", &lab, "--rounds", "1", "--stacks", "linux,smoltcp"]);
    let output = command.args(["--workloads", "transactions:count=1"]).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let linux = &stack(&told, "linux")["conformance"];
    for what in [
        "window_scaling",
        "sack",
        "timestamps",
        "pmtu_discovery",
        "zero_window_probe",
        "rst_handling",
        "out_of_order_reassembly",
        "simultaneous_close",
    ] {
        assert_eq!(linux[what], "yes", "{what}: {linux}");
    }
    let smoltcp = &stack(&told, "smoltcp")["conformance"];
    // Its README says that it probes no closed windows; timestamps are there, but nobody switches them on.
    for (what, answer) in [
        ("timestamps", "no"),
        ("pmtu_discovery", "no"),
        ("zero_window_probe", "no"),
        ("out_of_order_reassembly", "yes"),
    ] {
        assert_eq!(smoltcp[what], answer, "{what}: {smoltcp}");
    }
    let again = ran(windtunnel(home.path()).args(["report", "last", "--json"]).output().unwrap());
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again["stacks"][0]["conformance"], told["stacks"][0]["conformance"]);
}

#[test]
fn a_program_as_it_is_goes_through_a_stack_and_feels_its_window() {
    require!("tun", tun_device());
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let lab = path(home.path(), 60);
    let program = crate::common::binary().display().to_string();
    let fetch = |stack: &str| {
        let mut command = windtunnel(home.path());
        command.args(["lab", "run", &lab, "--", &program, "stacks", "run", stack, "--"]);
        // Two at once, an answer that is checked, and the code of the program.
        let script = "grep -c '^127.0.0.2 server$' /etc/hosts; curl -sfo one http://server/bytes/20000 & \
             curl -sfo /dev/null -w '%{time_total}\n' http://server/bytes/200000; wait; wc -c < one; rm one; exit 7";
        let ran = ran(command.args(["sh", "-c", script]).current_dir(home.path()).output().unwrap());
        assert_eq!(ran.code, 7, "{}{}", ran.out, ran.err);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!((lines[0], lines[2]), ("1", "20000"), "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("2 connections through"), "{}", ran.err);
        lines[1].parse::<f64>().unwrap()
    };
    // 200 kB by windows of 8 KiB over 60 ms take 25 round trips, and by large ones six or so.
    let (small, large) = (fetch("smoltcp:rwin=8KiB"), fetch("smoltcp:rwin=256KiB"));
    assert!(small > 1.4 && small > 1.5 * large, "{small} s and {large} s");
    let outside = ran(windtunnel(home.path()).args(["stacks", "run", "smoltcp", "--", "true"]).output().unwrap());
    assert!(outside.code == 2 && outside.err.contains("windtunnel lab run"), "{}", outside.err);
    for (stack, wanted) in [("linux-direct", "this kernel itself"), ("none-such", "there is no stack")] {
        let mut command = windtunnel(home.path());
        command.args(["lab", "run", &lab, "--", &program, "stacks", "run", stack, "--", "true"]);
        let refused = ran(command.output().unwrap());
        assert!(refused.code == 2 && refused.err.contains(wanted), "{stack}: {}", refused.err);
    }
}
