//! A client and nginx, joined by the lab, for tests and benchmarks.
#![allow(dead_code, reason = "tests and benchmarks use other parts")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use super::{RunOutput, binary, ran, windtunnel};
use serde_json::Value;
use std::path::Path;

/// One link, RTT 40 ms.
pub(crate) const PATH: &str = "title = \"forty milliseconds\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"1gbit\", delay = \"20ms\" }\nup = { rate = \"1gbit\", delay = \"20ms\" }\n";

/// Serves files with HTTP and with TLS 1.3 and 1.2; with sendfile, as distributions have it.
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
         events {{ worker_connections 16384; }}\nhttp {{ access_log off; sendfile on;\n{temp}\
         server {{ listen 8080 backlog=4096; listen [::]:8080; root {dir}/www; \
         location = /moved {{ return 301 /1m.bin; }} }}\n{}{}}}\n",
        tls(8443, "TLSv1.3"),
        tls(8444, "TLSv1.2"),
    )
}

/// Runs a script in the client, with nginx on the server; `$WT` is the program.
pub(crate) fn shell(script: &str) -> RunOutput {
    over(PATH, script)
}

/// The same over another path.
pub(crate) fn over(path: &str, script: &str) -> RunOutput {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    std::fs::create_dir(dir.join("www")).unwrap();
    std::fs::write(dir.join("www/1m.bin"), vec![b'x'; 1_000_000]).unwrap();
    std::fs::write(dir.join("www/short.bin"), vec![b'x'; 100]).unwrap();
    std::fs::write(dir.join("nginx.conf"), nginx(dir)).unwrap();
    std::fs::write(dir.join("path.toml"), path).unwrap();
    let key =
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 30 -subj /CN=server 2>/dev/null";
    let all = format!(
        "PATH=$PATH:/usr/sbin; command -v nginx >/dev/null && command -v openssl >/dev/null || exit 77\n{key}\n\
         ip netns exec server nginx -c $PWD/nginx.conf 2>/dev/null || exit 78\n\
         # Window and congestion control by the server's address: 10.3.ROW.N for N from 1 to the second number.
         row() {{ ip netns exec server ip route add default dev wt0 table $((100 + $1)) initcwnd $3 congctl $4 || return 9; \
         for n in $(seq $2); do ip netns exec server ip addr add 10.3.$1.$n/32 dev lo; \
         ip netns exec server ip rule add from 10.3.$1.$n table $((100 + $1)); echo http://10.3.$1.$n:8080/1m.bin $3; done; }}
         set_window() {{ ip netns exec server ip route change default dev wt0 initcwnd $1 congctl $2; }}\n\
         {script}\ncode=$?; kill $(cat pid); exit $code"
    );
    let mut command = windtunnel(dir);
    command.env("WT", binary()).current_dir(dir).args(["lab", "run", "path.toml", "--", "sh", "-c", &all]);
    let ran = ran(command.output().unwrap());
    assert_ne!(ran.code, 77, "this test needs nginx and openssl (packages nginx-light, openssl)");
    assert_ne!(ran.code, 78, "nginx didn't start: {}", ran.err);
    ran
}

/// Each line's object; all of them have the fields that are promised.
pub(crate) fn findings(ran: &RunOutput) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}{}", ran.err));
    let all: Vec<Value> = ran.out.lines().filter(|line| line.starts_with('{')).map(read).collect();
    for one in &all {
        for name in ["url", "address", "segments", "bytes", "mss", "verdict", "why", "syn_ack", "packets", "seconds"] {
            assert!(one.get(name).is_some(), "{name}: {one:#}");
        }
    }
    all
}

/// The window that the server really has: `row` writes it where providers are named.
pub(crate) fn window(finding: &Value) -> u64 {
    finding["provider"].as_str().and_then(|window| window.parse().ok()).unwrap_or(0)
}
