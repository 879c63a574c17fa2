//! First windows of a real kernel behind nginx, over the lab.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use common::{Ran, binary, ran, run, windtunnel};
use serde_json::Value;
use std::path::Path;

const PATH: &str = "title = \"forty milliseconds\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"1gbit\", delay = \"20ms\" }\nup = { rate = \"1gbit\", delay = \"20ms\" }\n";

/// Serves files with HTTP and with TLS 1.3 and 1.2.
fn nginx(home: &Path) -> String {
    let dir = home.display();
    let temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temp: String = temp.iter().map(|name| format!("{name}_temp_path {dir}/{name};\n")).collect();
    let tls = |port: u16, version: &str| {
        format!(
            "server {{ listen {port} ssl; listen [::]:{port} ssl; ssl_certificate {dir}/c.pem; \
             ssl_certificate_key {dir}/k.pem; ssl_protocols {version}; root {dir}/www; }}\n"
        )
    };
    format!(
        "user root;\nworker_processes 1;\nmaster_process off;\ndaemon on;\npid {dir}/pid;\nerror_log {dir}/errors;\n\
         events {{ worker_connections 4096; }}\nhttp {{ access_log off;\n{temp}\
         server {{ listen 8080 backlog=4096; listen [::]:8080; root {dir}/www; \
         location = /moved {{ return 301 /1m.bin; }} }}\n{}{}}}\n",
        tls(8443, "TLSv1.3"),
        tls(8444, "TLSv1.2"),
    )
}

/// Runs a script in the client, with nginx on the server; `None` where this machine has no nginx or openssl.
fn shell(script: &str) -> Option<Ran> {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    std::fs::create_dir(dir.join("www")).unwrap();
    std::fs::write(dir.join("www/1m.bin"), vec![b'x'; 1_000_000]).unwrap();
    std::fs::write(dir.join("www/short.bin"), vec![b'x'; 100]).unwrap();
    std::fs::write(dir.join("nginx.conf"), nginx(dir)).unwrap();
    std::fs::write(dir.join("path.toml"), PATH).unwrap();
    let key =
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 30 -subj /CN=server 2>/dev/null";
    let all = format!(
        "PATH=$PATH:/usr/sbin; command -v nginx >/dev/null && command -v openssl >/dev/null || exit 77\n{key}\n\
         ip netns exec server nginx -c $PWD/nginx.conf 2>/dev/null || exit 78\n\
         set_window() {{ ip netns exec server ip route change default dev wt0 initcwnd $1 congctl $2; }}\n\
         {script}\ncode=$?; kill $(cat pid); exit $code"
    );
    let mut command = windtunnel(dir);
    command.env("WT", binary()).current_dir(dir).args(["lab", "run", "path.toml", "--", "sh", "-c", &all]);
    let ran = ran(command.output().unwrap());
    assert_ne!(ran.code, 77, "this test needs nginx and openssl (packages nginx-light, openssl)");
    assert_ne!(ran.code, 78, "nginx didn't start: {}", ran.err);
    Some(ran)
}

/// Each line's object; all of them have the fields that are promised.
fn findings(ran: &Ran) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}{}", ran.err));
    let all: Vec<Value> = ran.out.lines().filter(|line| line.starts_with('{')).map(read).collect();
    for one in &all {
        for name in ["url", "address", "segments", "bytes", "mss", "verdict", "why", "syn_ack", "packets", "seconds"] {
            assert!(one.get(name).is_some(), "{name}: {one:#}");
        }
    }
    all
}

#[test]
fn windows_are_exact_or_at_least_and_never_wrong() {
    let script = "for cc in cubic reno; do for iw in 1 2 3 4 10 16 32 64 100; do set_window $iw $cc || exit 9; \
        for mss in 64 536 1300; do $WT first-window http://server:8080/1m.bin --mss $mss --json-stream; done; done; done";
    let Some(ran) = shell(script) else { return };
    let all = findings(&ran);
    assert_eq!(all.len(), 2 * 9 * 3, "{}{}", ran.out, ran.err);
    let windows = [1, 2, 3, 4, 10, 16, 32, 64, 100].into_iter().flat_map(|iw| [iw; 3]);
    let mut exact = 0;
    for (one, window) in all.iter().zip(windows.clone().chain(windows)) {
        let segments = one["segments"].as_u64().unwrap_or(0);
        match one["verdict"].as_str().unwrap() {
            "exact" => {
                assert_eq!(segments, window, "{one:#}");
                exact += 1;
            }
            _ => assert!(segments <= window, "{one:#}"),
        }
    }
    println!("{exact} of {} exact", all.len());
    assert!(exact >= 48, "{exact}");
}

#[test]
fn https_is_asked_without_a_single_acknowledgement() {
    let script = "for iw in 1 3 10 32; do set_window $iw cubic || exit 9; for port in 8443 8444; do \
        $WT first-window https://server:$port/1m.bin --json-stream; done; done";
    let Some(ran) = shell(script) else { return };
    let all = findings(&ran);
    assert_eq!(all.len(), 8, "{}{}", ran.out, ran.err);
    let mut exact = 0;
    for (one, window) in all.iter().zip([1, 1, 3, 3, 10, 10, 32, 32]) {
        assert!(one["segments"].as_u64().unwrap() <= window, "{one:#}");
        exact += u32::from(one["verdict"] == "exact" && one["segments"] == window);
    }
    assert!(exact >= 7, "{exact} of 8: {all:#?}");
}

#[test]
fn one_host_takes_six_packets_and_tells_what_the_handshake_said() {
    let script = "set_window 10 cubic; $WT first-window http://server:8080/1m.bin --json-stream --ip 4; \
        $WT first-window http://server6:8080/1m.bin --json-stream; $WT first-window http://server:8080/moved --json-stream; \
        $WT first-window http://server:8080/short.bin --json-stream";
    let Some(ran) = shell(script) else { return };
    let all = findings(&ran);
    assert_eq!(all.len(), 4, "{}{}", ran.out, ran.err);
    for one in &all[..3] {
        assert_eq!((&one["segments"], &one["verdict"]), (&10.into(), &"exact".into()), "{one:#}");
    }
    assert!(all[0]["packets"].as_u64().unwrap() <= 10, "{:#}", all[0]);
    let said = &all[0]["syn_ack"];
    assert_eq!(
        (&said["sack"], &said["timestamps"], &said["mss"]),
        (&true.into(), &true.into(), &1460.into()),
        "{said}"
    );
    assert!(said["window"].as_u64().unwrap() > 10_000 && said["window_scale"].as_u64().is_some(), "{said}");
    assert_eq!(all[3]["verdict"], "at-least", "{:#}", all[3]);
}

#[test]
fn cap_net_raw_is_enough_and_the_kernel_sends_no_reset() {
    let script = "set_window 10 cubic; before=$(grep -h ^Tcp: /proc/net/snmp | tail -1 | cut -d' ' -f15); \
        setpriv --bounding-set -all,+net_raw --inh-caps -all --no-new-privs \
        $WT first-window http://server:8080/1m.bin --json-stream; \
        after=$(grep -h ^Tcp: /proc/net/snmp | tail -1 | cut -d' ' -f15); echo resets $((after - before))";
    let Some(ran) = shell(script) else { return };
    let all = findings(&ran);
    assert_eq!(all.len(), 1, "{}{}", ran.out, ran.err);
    assert_eq!((&all[0]["segments"], &all[0]["verdict"]), (&10.into(), &"exact".into()), "{:#}", all[0]);
    assert!(ran.out.contains("resets 0"), "{}", ran.out);
}

#[test]
fn two_hundred_hosts_are_all_right() {
    let script = "set_window 10 cubic; for i in $(seq 1 200); do ip netns exec server ip addr add 10.3.1.$i/32 dev lo; \
        echo http://10.3.1.$i:8080/1m.bin; done > hosts; $WT first-window --file hosts --rate 2000/s --json-stream";
    let Some(ran) = shell(script) else { return };
    let all = findings(&ran);
    assert_eq!(all.len(), 200, "{}", ran.err);
    assert!(all.iter().all(|one| one["segments"] == 10 || one["verdict"] != "exact"), "none is wrong");
    let right = all.iter().filter(|one| one["verdict"] == "exact").count();
    println!("{right} of 200 exact");
    assert!(right >= 190, "{right} of 200");
}

#[test]
fn who_refuses_or_opted_out_is_told_apart_and_mistakes_are_usage() {
    let script = "echo server > out; $WT first-window http://server:81/ --json-stream; echo code $?; \
        $WT first-window http://server:8080/ --opt-out out --json-stream; echo code $?";
    let Some(ran) = shell(script) else { return };
    let all = findings(&ran);
    assert_eq!((&all[0]["verdict"], &all[0]["why"]), (&"unknown".into(), &"connection refused".into()), "{:#}", all[0]);
    assert!(all[0]["packets"].as_u64().unwrap() <= 2, "{:#}", all[0]);
    assert_eq!((&all[1]["why"], &all[1]["packets"]), (&"on the opt-out list".into(), &0.into()), "{:#}", all[1]);
    assert_eq!(ran.out.matches("code 4").count(), 2, "{}", ran.out);
    for args in
        [&["ftp://x"][..], &["http://x", "--rate", "0"], &["http://x", "--mss", "9"], &["--file", "/nonexistent"]]
    {
        let ran = run(&[&["first-window"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
    }
}
