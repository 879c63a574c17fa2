//! The lab on this machine's kernel, as a person uses it.
mod common;

use common::{alone, eventually, json, processes_with, ran, run, shared, windtunnel};
use std::process::Stdio;

/// Runs a shell script in the client of a preset.
fn shell(preset: &str, options: &[&str], script: &str) -> common::Ran {
    let mut args = vec!["lab", "run", preset];
    args.extend(options);
    args.extend(["--", "sh", "-c", script]);
    run(&args)
}

#[test]
fn the_programs_exit_code_is_passed_through() {
    let _machine = shared();
    for (script, code) in [("true", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        assert_eq!(shell("lan", &[], script).code, code, "{script}");
    }
    let missing = run(&["lab", "run", "lan", "--", "no-such-program"]);
    assert_eq!(missing.code, 127);
    assert!(missing.err.contains("no-such-program"), "{}", missing.err);
}

/// The backends that this user can use here.
#[expect(clippy::print_stdout, reason = "what is not tested here is said")]
fn backends() -> Vec<&'static str> {
    if std::fs::File::options().read(true).write(true).open("/dev/net/tun").is_ok() {
        return vec!["veth", "tun"];
    }
    println!("not run: TUN, because /dev/net/tun is closed to this user");
    vec!["veth"]
}

#[test]
fn every_preset_starts_and_its_server_answers_over_both_backends() {
    let _machine = shared();
    let presets = json(&["lab", "list", "--json"]);
    let names: Vec<&str> = presets["presets"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    for wanted in ["dialup", "adsl", "ethernet-hub", "lan", "transatlantic", "black-hole"] {
        assert!(names.contains(&wanted), "{names:?}");
    }
    for name in names {
        let ran = shell(name, &["--backend", "veth"], "curl -sS -m 20 http://server/bytes/800 | wc -c");
        assert_eq!((ran.code, ran.out.trim()), (0, "800"), "{name}: {}", ran.err);
    }
    if backends().contains(&"tun") {
        let ran = shell("adsl", &["--backend", "tun"], "curl -sS -m 20 http://server/bytes/800 | wc -c");
        assert_eq!((ran.code, ran.out.trim()), (0, "800"), "{}", ran.err);
    }
}

#[test]
fn ping_sees_the_paths_delay_and_no_less() {
    let _machine = alone();
    let ran = shell("adsl", &[], "ping -c 3 -i 0.2 -s 56 server");
    let times: Vec<f64> =
        ran.out.split("time=").skip(1).filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect();
    assert_eq!(times.len(), 3, "{}{}", ran.out, ran.err);
    // 15 ms each way and three cells: 1.27 ms up, 0.16 ms down.
    assert!(times.iter().all(|ms| *ms >= 31.4), "{times:?}");
    assert!(times.iter().any(|ms| *ms < 40.0), "{times:?}");
}

#[test]
fn curl_and_iperf3_read_the_same_path_alike() {
    let _machine = alone();
    let limit = json(&["lab", "show", "adsl", "--json"])["physical_goodput_bps"]["down"].as_f64().unwrap();
    let curl = shell(
        "adsl",
        &[],
        "curl -sS -o /dev/null -w '%{size_download} %{time_total} %{time_starttransfer}' http://server/bytes/5000000",
    );
    let figures: Vec<f64> = curl.out.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let by_curl = figures[0] * 8.0 / (figures[1] - figures[2]);
    let iperf = shell(
        "adsl",
        &["--server", "iperf3 -s -1"],
        "for i in 1 2 3 4 5 6 7 8 9; do iperf3 -c server -R -t 3 -J > out.json 2>/dev/null && break; sleep 0.1; done; cat out.json; rm -f out.json",
    );
    let report: serde_json::Value =
        serde_json::from_str(&iperf.out).unwrap_or_else(|e| panic!("{e}: {}{}", iperf.out, iperf.err));
    let intervals = report["intervals"].as_array().unwrap();
    let settled: Vec<f64> = intervals.iter().skip(1).map(|i| i["sum"]["bits_per_second"].as_f64().unwrap()).collect();
    let by_iperf = settled.iter().sum::<f64>() / settled.len() as f64;
    for (who, rate) in [("curl", by_curl), ("iperf3", by_iperf)] {
        assert!((0.95..=1.02).contains(&(rate / limit)), "{who}: {rate:.0} of {limit:.0} bit/s");
    }
    assert!((by_curl / by_iperf - 1.0).abs() < 0.02, "curl {by_curl:.0}, iperf3 {by_iperf:.0}");
}

#[test]
fn tc_counts_what_curl_received() {
    let _machine = shared();
    // A veth has no queue by default, and then tc counts nothing.
    let script = "server() { ip netns exec server \"$@\"; }
        server tc qdisc replace dev wt0 root pfifo limit 1000
        sent() { server tc -s qdisc show dev wt0 | sed -n 's/.*Sent \\([0-9]*\\) bytes.*/\\1/p' | head -n 1; }
        a=$(sent); curl -sS -o /dev/null -w '%{size_download} ' http://server/bytes/1500000; b=$(sent); echo $a $b";
    for backend in backends() {
        let ran = shell("adsl", &["--backend", backend], script);
        let figures: Vec<f64> = ran.out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [received, before, after] = figures[..] else { panic!("{}{}", ran.out, ran.err) };
        // Of every 1492 bytes of IP, 1440 are payload; a veth's frames have an Ethernet header as well.
        let frame = if backend == "veth" { 1506.0 } else { 1492.0 };
        let ratio = (after - before) * 1440.0 / frame / received;
        assert!((0.98..=1.02).contains(&ratio), "{backend}: {ratio}: {figures:?}");
    }
}

#[test]
fn both_hosts_know_each_other_by_name_and_can_be_entered() {
    let _machine = shared();
    let ran = shell(
        "lan",
        &[],
        "getent ahostsv4 server; ip -o -4 addr show dev wt0; cat /proc/sys/net/ipv4/tcp_no_metrics_save",
    );
    assert!(ran.out.contains("198.19.0.1") && ran.out.contains("198.18.0.1/32"), "{}{}", ran.out, ran.err);
    assert!(ran.out.trim_end().ends_with('1'), "{}", ran.out);
    let ran = shell("lan", &[], "ip netns exec server ip -o -4 addr show dev wt0");
    assert!(ran.out.contains("198.19.0.1"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_black_hole_swallows_full_packets_and_lets_small_ones_through() {
    let _machine = shared();
    let stalled = shell("black-hole", &[], "curl -sS -m 3 -o /dev/null http://server/bytes/100000");
    assert_eq!(stalled.code, 28, "{}", stalled.err);
    let cured = shell(
        "black-hole",
        &[],
        "ip route change default dev wt0 advmss 1360; curl -sS -m 10 http://server/bytes/100000 | wc -c",
    );
    assert_eq!((cured.code, cured.out.trim()), (0, "100000"), "{}", cured.err);
}

#[test]
fn a_smaller_mtu_on_the_way_is_told_by_icmp() {
    let _machine = shared();
    let ran = shell("adsl", &[], "ip netns exec server ping -4 -c 2 -i 0.2 -M do -s 1472 client");
    assert!(
        (ran.out.clone() + &ran.err).contains("mtu = 1492") || (ran.out.clone() + &ran.err).contains("mtu=1492"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn kill_minus_nine_leaves_nothing() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let mark = format!("1000{}", std::process::id());
    let mut child = windtunnel(home.path())
        .args(["lab", "run", "lan", "--server", &format!("sleep {mark}"), "--", "sleep", &mark])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("both programs run", || processes_with(&mark).len() >= 4);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("every process is gone", || processes_with(&mark).is_empty());
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("wt0") && !devices.contains("to-client"), "{devices}");
}

#[test]
fn unknown_presets_and_mistakes_in_files_are_usage_errors_with_a_hint() {
    let _machine = shared();
    let unknown = run(&["lab", "run", "adls", "--", "true"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("\"adsl\""), "{}", unknown.err);
    let home = tempfile::tempdir().unwrap();
    let good = json(&["lab", "show", "adsl", "--json"]);
    assert_eq!(good["links"][0]["framing"], "pppoe-llc-bridged-fcs-atm");
    let file = home.path().join("mine.toml");
    for (line, wrong, wanted) in [
        (5, "down = { rate = \"8mbit\", delay = \"-5ms\" }", "down.delay"),
        (5, "down = { rate = \"8mbits\", delay = \"5ms\" }", "down.rate"),
        (5, "down = { rate = \"8mbit\", loss = \"150%\" }", "0% to 100%"),
        (5, "down = { rate = \"8mbit\", queue = \"0\" }", "1500B to 1GiB"),
        (5, "down = { rate = \"8mbit\", dealy = \"5ms\" }", "delay"),
    ] {
        let text =
            format!("title = \"x\"\nsource = \"x\"\n[[link]]\nname = \"l\"\n{wrong}\nup = {{ rate = \"1mbit\" }}\n");
        std::fs::write(&file, text).unwrap();
        let ran = ran(windtunnel(home.path()).args(["lab", "show"]).arg(&file).output().unwrap());
        assert_eq!(ran.code, 2, "{wrong}");
        assert!(
            ran.err.contains(&format!("mine.toml, line {line}")) && ran.err.contains(wanted),
            "{wrong}: {}",
            ran.err
        );
    }
}

#[test]
fn a_packet_that_may_be_fragmented_is_and_arrives() {
    let _machine = shared();
    let ran = shell("adsl", &[], "ip netns exec server ping -4 -c 2 -i 0.2 -M dont -s 1472 client");
    assert!(ran.out.contains("2 received"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_path_of_two_links_has_a_router_between_them() {
    let _machine = shared();
    let ran = shell("black-hole", &[], "ping -4 -c 1 -t 1 server; ping -4 -c 1 -t 2 server");
    assert!(ran.out.contains("Time to live exceeded") && ran.out.contains("198.18.255.2"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 received"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_device_taken_away_ends_the_emulator_and_not_the_program() {
    let _machine = shared();
    let ran = shell("lan", &["--backend", "veth"], "ip link del wt0; curl -sS -m 2 http://server/ || exit 9");
    assert_eq!(ran.code, 9, "{}", ran.err);
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("wt0") && !devices.contains("to-server"), "{devices}");
}

/// A scenario of three links in a folder of its own; `hop` is the table of the hop in front of the second.
fn with_hop(hop: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let way = "{ rate = \"100mbit\", delay = \"2ms\" }";
    let link = |name: &str, more: &str| format!("[[link]]\nname = \"{name}\"\n{more}\ndown = {way}\nup = {way}\n");
    let hop = format!("hop = {{ {hop} }}");
    let text =
        format!("title = \"t\"\nsource = \"s\"\n{}{}{}", link("a", ""), link("b", &hop), link("c", "mtu = 1400"));
    let file = folder.path().join("hops.toml");
    std::fs::write(&file, text).expect("the folder is ours");
    let file = file.to_str().expect("a name of letters").to_owned();
    (folder, file)
}

#[test]
fn transfers_survive_every_middlebox_that_lets_them_live() {
    let _machine = shared();
    let all = "nat = true, mss_clamp = \"pmtu\", strip = [\"timestamps\", \"window-scale\"], ecn = \"bleach\"";
    let (_folder, file) = with_hop(all);
    let script = "curl -sS -m 20 http://server/bytes/3000000 | wc -c; ping -c 1 -W 2 server >/dev/null && echo ping";
    for backend in ["veth", "auto"] {
        let ran = shell(&file, &["--backend", backend], script);
        assert_eq!(ran.out.split_whitespace().collect::<Vec<_>>(), ["3000000", "ping"], "{backend}: {}", ran.err);
    }
}

#[test]
fn behind_a_nat_the_server_sees_the_routers_address() {
    let _machine = shared();
    let (_folder, file) = with_hop("nat = true");
    let script = "exec 3<>/dev/tcp/server/80; for i in $(seq 100); do \
                  seen=$(ip netns exec server ss -tnH state established); [ -n \"$seen\" ] && break; sleep 0.05; done; \
                  echo \"$seen\"";
    let ran = run(&["lab", "run", &file, "--", "bash", "-c", script]);
    assert!(ran.out.contains("198.18.255.2:"), "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("198.18.0.1:"), "{}", ran.out);
}

#[test]
fn a_middlebox_that_drops_syns_with_ecn_makes_linux_do_without() {
    let _machine = shared();
    let (_folder, file) = with_hop("ecn = \"drop-syn\"");
    let script = "echo 1 > /proc/sys/net/ipv4/tcp_ecn; curl -sS -m 20 http://server/bytes/1000 | wc -c";
    let ran = shell(&file, &[], script);
    // RFC 3168 section 6.1.1.1: a SYN without ECN follows when the first one isn't answered.
    assert_eq!(ran.out.trim(), "1000", "{}", ran.err);
}

#[test]
fn the_edge_of_a_cdn_is_a_host_of_its_own() {
    let _machine = shared();
    let script = "for to in edge edge6 server; do curl -sS -m 20 -g http://$to/bytes/70000 2>/dev/null | wc -c; done; \
                  ip netns exec edge curl -sS -m 20 http://server/bytes/80000 | wc -c; \
                  ip netns exec server ping -c 1 -W 2 edge >/dev/null && echo ping; echo $WT_EDGE";
    let ran = shell("cdn-chain", &[], script);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    assert_eq!((words[0], &words[2..]), ("70000", &["70000", "80000", "ping", "198.19.1.1"][..]), "{}", ran.err);
}

/// The routers of the 11 hops, as other programs must show them.
fn routers(line: impl Fn(usize, &str) -> bool) -> bool {
    (1..=10).all(|hop| line(hop, &format!("198.18.255.{}", hop + 1))) && line(11, "198.19.0.1")
}

#[test]
fn eleven_hops_look_like_eleven_hops_to_traceroute_tracepath_and_mtr() {
    let _machine = shared();
    // Enough probes that the loss of 3 % hides no hop.
    let traced = shell("freebsd-scp", &[], "traceroute -n -q 6 server");
    let row = |text: &str, hop: usize| {
        let begins = move |line: &&str| line.trim_start().starts_with(&hop.to_string()) && !line.contains("hops max");
        let number = |line: &str| line.trim_start().split([' ', ':', '.', '?']).next().and_then(|n| n.parse().ok());
        text.lines()
            .filter(begins)
            .filter(|line| number(line) == Some(hop))
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(
        routers(|hop, address| row(&traced.out, hop).contains(&format!(" {address} "))),
        "{}{}",
        traced.out,
        traced.err
    );
    let mtr = shell("freebsd-scp", &[], "mtr -n -r -c 4 -i 0.2 server");
    assert!(routers(|hop, address| row(&mtr.out, hop).contains(&format!("-- {address} "))), "{}{}", mtr.out, mtr.err);
    let path = shell("freebsd-scp", &[], "tracepath -n server");
    assert!(routers(|hop, address| row(&path.out, hop).contains(&format!(" {address} "))), "{}{}", path.out, path.err);
    assert!(path.out.contains("pmtu 1500 hops 11 back 11"), "{}", path.out);
    let six = shell("freebsd-scp", &[], "traceroute -6 -n -q 6 server6");
    assert!((1..=10).all(|hop| row(&six.out, hop).contains(&format!(" 2001:2:0:ff::{:x} ", hop + 1))), "{}", six.out);
}
