//! Captures as other programs and the lab write them, and devices watched, as a person does it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, binary, ran, shared, windtunnel};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn wt(home: &Path, args: &[&str]) -> RunOutput {
    ran(windtunnel(home).args(args).current_dir(home).output().unwrap())
}

fn object(ran: &RunOutput) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

/// Records what a command does on a path, at both ends, and analyses it.
fn recorded(path: &str, command: &[&str]) -> (Value, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), path).unwrap();
    let lab = wt(home.path(), &[&["lab", "run", "path.toml", "--record", "seen.pcapng", "--"], command].concat());
    assert_eq!(lab.code, 0, "{}", lab.err);
    let told = wt(home.path(), &["analyse", "seen.pcapng", "--json"]);
    assert_eq!(told.code, 0, "{}", told.err);
    (object(&told), home)
}

fn path(down: &str, up: &str) -> String {
    format!(
        "title = \"a test\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\ndown = {{ {down} }}\nup = {{ {up} }}\n"
    )
}

#[test]
fn a_transfer_over_a_path_that_is_known_gives_its_rtt_at_both_ends_and_its_losses_on_the_right_side() {
    let _machine = shared();
    let path = path("rate = \"20mbit\", delay = \"15ms\", loss = \"1%\"", "rate = \"5mbit\", delay = \"15ms\"");
    // Until the last FIN is acknowledged, which may get lost as well.
    let whole = "curl -s -o /dev/null http://server/bytes/3MB; while [ -n \"$(ss -Htn)\" ]; do sleep 0.01; done";
    let (seen, home) = recorded(&path, &["sh", "-c", whole]);
    assert_eq!(
        (&seen["schema_version"], &seen["kind"], &seen["source"]["format"]),
        (&1.into(), &"capture".into(), &"pcapng".into())
    );
    let [client, server] = seen["connections"].as_array().unwrap().as_slice() else { panic!("{seen:#}") };
    assert_eq!((&client["captured"], &server["captured"]), (&"near-client".into(), &"near-server".into()));
    for end in [client, server] {
        let rtt = end["min_rtt_us"].as_f64().unwrap();
        // The lab may credit each of two wake-ups with 50 µs more than it took.
        assert!((29_900.0..33_000.0).contains(&rtt), "{rtt}");
        assert_eq!(end["handshake"]["complete"], true);
        assert_eq!(end["client"]["offer"]["mss"], 1460);
    }
    assert_eq!(client["state"], "closed");
    // What doesn't arrive at the client was lost behind the server's end and before the client's.
    let (at_client, at_server) = (&client["server"]["sent"], &server["server"]["sent"]);
    let lost = at_server["data_packets"].as_u64().unwrap() - at_client["data_packets"].as_u64().unwrap();
    assert!(lost >= 5, "{lost}");
    let count = |sent: &Value, name: &str| sent[name].as_u64().unwrap();
    let again = count(at_server, "retransmissions");
    let told = count(at_server, "lost_after") + count(at_server, "spurious_retransmissions");
    assert!(again >= lost && told == again, "{lost} {at_server}");
    assert_eq!((count(at_server, "lost_before"), count(at_server, "gaps")), (0, 0), "{at_server}");
    // Two in a row leave one gap.
    let gaps = count(at_client, "gaps");
    assert!((1..=lost).contains(&gaps), "{lost} {at_client}");
    assert!(count(at_client, "lost_before") + count(at_client, "out_of_order") >= gaps, "{at_client}");
    assert_eq!(client["server"]["bytes"], server["server"]["bytes"]);
    assert_eq!(client["blame"]["end"], "path");

    let text = wt(home.path(), &["analyse", "seen.pcapng", "--filter", "tcp and port 80 and net 198.18.0.0/15"]);
    for wanted in ["captured near the client", "got lost, between the server and where", "MSS 1460", "window scale"] {
        assert!(text.out.contains(wanted), "{wanted}: {}", text.out);
    }
    let none = wt(home.path(), &["analyse", "seen.pcapng", "--filter", "udp", "--json"]);
    assert_eq!((none.code, &object(&none)["connections"]), (1, &Value::Array(Vec::new())));
    // The same through a pipe, and cut off in the middle of a packet.
    let bytes = std::fs::read(home.path().join("seen.pcapng")).unwrap();
    let mut piped = windtunnel(home.path());
    let mut child =
        piped.args(["analyse", "-", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let half = bytes[..bytes.len() / 2 + 1].to_vec();
    let writer = std::thread::spawn(move || input.write_all(&half));
    let told = object(&ran(child.wait_with_output().unwrap()));
    writer.join().unwrap().unwrap();
    assert!(told["warnings"][0].as_str().unwrap().contains("ends in the middle of a packet"), "{}", told["warnings"]);
    assert_eq!(told["connections"].as_array().unwrap().len(), 2);
}

#[test]
fn a_window_and_a_black_hole_are_blamed_on_whom_they_belong_to() {
    let _machine = shared();
    let far = path("rate = \"50mbit\", delay = \"40ms\"", "rate = \"50mbit\", delay = \"40ms\"");
    let small = "sysctl -qw net.ipv4.tcp_rmem='4096 16384 16384'; curl -s -o /dev/null http://server/bytes/1MB";
    let (seen, _home) = recorded(&far, &["sh", "-c", small]);
    for end in seen["connections"].as_array().unwrap() {
        let blame = &end["blame"];
        assert_eq!((&blame["end"], &blame["reason"]), (&"client".into(), &"receive-window".into()), "{blame:#}");
        // A window each 80 ms at the most, however much longer a machine that is busy takes for all of it.
        let number = |value: &Value| value.as_f64().unwrap();
        let windows = number(&end["server"]["bytes"]) / number(&end["client"]["window"]["max"]);
        let waited = number(&end["time"]["client_window_us"]) / (windows * 80_000.0);
        assert!(waited > 0.7, "{waited} {windows} {}", end["time"]);
    }
    let home = tempfile::tempdir().unwrap();
    let script = "timeout 4 bash -c 'head -c 100000 /dev/zero > /dev/tcp/server/80'; sleep 3; true";
    let lab = wt(home.path(), &["lab", "run", "black-hole", "--record", "seen.pcapng", "--", "sh", "-c", script]);
    assert_eq!(lab.code, 0, "{}", lab.err);
    let seen = object(&wt(home.path(), &["analyse", "seen.pcapng", "--json", "--filter", "port 80"]));
    let at_client = &seen["connections"][0];
    let found = &at_client["client"]["black_hole"];
    assert_eq!(found["smallest_lost"], 1500, "{at_client:#}");
    assert!(found["largest_passed"].as_u64().unwrap() <= 1400 && found["times"].as_u64().unwrap() >= 3, "{found}");
    assert_eq!((&at_client["blame"]["end"], &at_client["blame"]["reason"]), (&"path".into(), &"black-hole".into()));
}

#[test]
fn what_is_no_capture_or_no_filter_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x");
    let pcap = [0xd4u8, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0];
    let damaged = [&pcap[..], &[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0]].concat();
    for (bytes, args, code, wanted) in [
        (&pcap[..], &["--json"][..], 1, "\"connections\":[]"),
        (&pcap[..10], &[], 2, "header is cut short"),
        (&damaged, &[], 2, "more than a million bytes"),
        (b"\x1f\x8b\x08\0\0\0\0\0", &[], 2, "gunzip"),
        (&pcap, &["--filter", "host example.org"], 2, "aren't looked up"),
        (b"a,b\n1,2\n", &["--filter", "tcp"], 2, "is for captures"),
        (&pcap, &["--value", "a"], 2, "a capture has no columns"),
        (&pcap, &["--svg", "plots"], 1, "nothing was drawn"),
        (b"", &[], 2, "empty"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let told = wt(home.path(), &[&["analyse", "x"], args].concat());
        assert_eq!(told.code, code, "{wanted}: {}{}", told.out, told.err);
        assert!(told.err.contains(wanted) || told.out.contains(wanted), "{wanted}: {}{}", told.out, told.err);
    }
}

/// Runs a script as root of a namespace of its own.
fn in_namespace(script: &str) -> RunOutput {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-Urn", "timeout", "60", "sh", "-c", script]).env("WT", binary()).env("HOME", home.path());
    ran(command.current_dir(home.path()).stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_device_is_watched_while_packets_pass_and_ctrl_c_tells_what_was_seen() {
    let _machine = shared();
    // Asks for a port on which nobody listens, once the watcher's socket is bound to the device and running.
    let seen = in_namespace(
        "ip link set lo up; $WT watch lo --filter 'port 9 and host 127.0.0.1' --json > seen & watcher=$!; \
         until awk '$5 > 0 && $6 == 1 { bound = 1 } END { exit !bound }' /proc/net/packet; do :; done; \
         curl -s http://127.0.0.1:9/; curl -s http://127.0.0.1:10/; kill -INT $watcher; wait $watcher; echo code $? >&2; cat seen",
    );
    assert!(seen.err.contains("code 0"), "{}", seen.err);
    let told = object(&seen);
    let [refused] = told["connections"].as_array().unwrap().as_slice() else { panic!("{told:#}") };
    assert_eq!(
        (&refused["state"], &refused["blame"]["reason"], &refused["interface"]),
        (&"refused".into(), &"refused".into(), &"lo".into())
    );
    assert_eq!(refused["server"]["address"], "127.0.0.1:9");
    assert_eq!(told["packets"]["filtered_out"], 2);

    // Exactly as many as were asked for, of those that the filter takes; some are left over.
    let some = in_namespace(
        "ip link set lo up; $WT watch lo --filter 'port 9' --packets 3 --json > seen & watcher=$!; \
         until awk '$5 > 0 && $6 == 1 { bound = 1 } END { exit !bound }' /proc/net/packet; do :; done; \
         curl -s http://127.0.0.1:10/; curl -s http://127.0.0.1:9/; curl -s http://127.0.0.1:9/; curl -s http://127.0.0.1:9/; wait $watcher; cat seen",
    );
    let packets = &object(&some)["packets"];
    let taken = packets["all"].as_u64().unwrap() - packets["filtered_out"].as_u64().unwrap();
    assert_eq!((taken, &packets["tcp"]), (3, &3.into()), "{packets}");

    let ends = in_namespace("ip link set lo up; $WT watch lo --for 200ms --json; $WT watch nosuch; echo $? >&2");
    assert!(ends.err.contains("nosuch") && ends.err.contains("ip link") && ends.err.ends_with("2\n"), "{}", ends.err);
    assert!(ends.out.contains("\"connections\":[]"), "{}", ends.out);
}

#[test]
fn watching_without_privilege_says_which_one_is_missing() {
    let told = in_namespace("setpriv --bounding-set -all --inh-caps -all --no-new-privs $WT watch lo; echo $? >&2");
    assert!(told.err.contains("CAP_NET_RAW") && told.err.ends_with("3\n"), "{}", told.err);
}
