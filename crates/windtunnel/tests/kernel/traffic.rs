//! `windtunnel traffic` in the server's network of a path of the lab, from outside: BPF programs can't be attached from within a user
//! namespace. Needs root; says so without.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{binary, ran};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use wt_testing::require;

/// A round trip of 40 ms.
const PATH: &str = "title = \"long\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"100mbit\", delay = \"20ms\" }\nup = { rate = \"100mbit\", delay = \"20ms\" }\n";

/// In the lab: says which network is the server's, and fetches when it is told to.
const INSIDE: &str = r#"
ip netns exec server readlink /proc/self/ns/net > namespace
ip netns exec server sleep 1000 & keeper=$!
echo > ready; read -r _ < go
seq 300 | xargs -P 8 -I{} curl -s -o /dev/null -w '%{http_code} %{size_download}\n' -H 'Connection: close' http://server/bytes/50kB > fetched
echo > fetching; read -r _ < ended
kill $keeper
"#;

/// Outside, as root of the machine, in the server's network.
const OUTSIDE: &str = r#"
mkfifo ready go fetching ended
"$WT" lab run long.toml -- sh -c "$INSIDE" & lab=$!
read -r _ < ready
for process in /proc/[0-9]*; do
    [ "$(readlink $process/ns/net 2>/dev/null)" = "$(cat namespace)" ] && network=$process/ns/net
done
begin() { # waits until connections are assigned
    nsenter --net=$network "$WT" traffic start --port 80 --levels initcwnd=10,40 --unit connection --epoch 1s --age 1s \
        --no-ramp --private --json-stream > stream & traffic=$!
    while ! grep -q '"event":"epoch"' stream && kill -0 $traffic; do :; done
}
begin
"#;

/// What is left when it has ended.
const END: &str = r#"
echo > ended; wait $lab
"#;

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("long.toml"), PATH).unwrap();
    directory
}

fn script(directory: &Path, text: &str) {
    let output = Command::new("sh")
        .args(["-c", &format!("{OUTSIDE}{text}{END}")])
        .env("WT", binary())
        .env("INSIDE", INSIDE)
        .env("HOME", directory)
        .env("XDG_DATA_HOME", directory)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = ran(output);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
}

fn available() -> Result<(), String> {
    let missing = wt_bpf::missing_traffic_capabilities();
    if !missing.is_empty() {
        return Err(format!("{} missing", missing.join(", ")));
    }
    wt_bpf::TrafficProgram::unavailable().map_or(Ok(()), Err)
}

fn read(directory: &Path, file: &str) -> String {
    std::fs::read_to_string(directory.join(file)).unwrap()
}

/// Every transfer came through whole.
fn all_fetched(directory: &Path) {
    let fetched = read(directory, "fetched");
    assert_eq!(fetched.lines().filter(|line| *line == "200 50000").count(), 300, "{fetched}");
}

/// The last line of the stream.
fn report(directory: &Path) -> Value {
    serde_json::from_str(read(directory, "stream").lines().last().unwrap()).unwrap()
}

#[test]
fn a_larger_first_window_is_claimed_from_three_hundred_connections_and_every_connection_is_accounted_for() {
    require!("bpf", available());
    let directory = directory();
    let at = directory.path();
    let text = r#"
echo > go; read -r _ < fetching
"$WT" traffic status --json > status
"$WT" traffic stop --json > stopped
wait $traffic; echo $? > code
"$WT" traffic report --json > again
"$WT" report last > people
"$WT" traffic status --json > nothing
"#;
    script(at, text);
    all_fetched(at);
    let report = report(at);
    assert_eq!(read(at, "code").trim(), "0", "{report:#}");
    assert_eq!((&report["verdict"]["kind"], &report["verdict"]["arm"]), (&"faster".into(), &"initcwnd=40".into()));
    assert_eq!(report["verdict"]["claim"], "beside", "{report:#}");
    let sum = |field: &str| sum(&report, field);
    assert_eq!(
        (sum("assigned"), sum("recorded"), sum("set_errors"), sum("not_compliant")),
        (300, 300, 0, 0),
        "{report:#}"
    );
    let accounts =
        report["self_checks"].as_array().unwrap().iter().find(|check| check["name"] == "accounting").unwrap();
    assert_eq!(accounts["ok"], true, "{accounts}");
    let again: Value = serde_json::from_str(&read(at, "again")).unwrap();
    // The text of a figure is read as the nearest one, so figures aren't compared to the last digit.
    for field in ["id", "self_checks", "unit"] {
        assert_eq!(again[field], report[field], "{field}");
    }
    assert_eq!(again["verdict"]["text"], report["verdict"]["text"]);
    let id = report["id"].as_str().unwrap();
    assert!(read(at, "status").contains(id) && read(at, "stopped").contains(id));
    assert!(!read(at, "nothing").contains(id));
    assert!(read(at, "people").contains("initcwnd=40"), "{}", read(at, "people"));
}

#[test]
fn a_kill_breaks_no_connection_and_another_experiment_begins_at_once() {
    require!("bpf", available());
    let directory = directory();
    let at = directory.path();
    let text = r#"
echo > go
while ! [ -s fetched ]; do :; done
kill -9 $traffic; wait $traffic
"$WT" traffic status --json > nothing
begin
read -r _ < fetching
"$WT" traffic stop > stopped
wait $traffic
"#;
    script(at, text);
    all_fetched(at);
    let report = report(at);
    let assigned = sum(&report, "assigned");
    assert!(assigned < 300, "those before the kill are none of this one: {report:#}");
    assert_eq!(sum(&report, "recorded"), assigned, "{report:#}");
    assert!(!read(at, "nothing").contains("port-80"), "who was killed isn't under way");
}

fn sum(report: &Value, field: &str) -> u64 {
    let arms = report["arms"].as_array().unwrap();
    arms.iter().map(|arm| arm[field].as_u64().unwrap()).sum()
}
