//! `windtunnel traffic` in the server's network of a path of the lab, from outside: BPF programs can't be attached from within a user
//! namespace. Needs root; says so without.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{binary, ran};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
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
    rm -f stream; : > stream # or else the last one's may be read, until the shell has opened it anew
    nsenter --net=$network "$WT" traffic start --port 80 $LEVELS --unit connection --epoch 1s --age 1s \
        --no-ramp --private --beside-programs --json-stream > stream & traffic=$! # tests of others may run here
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
    script_with(directory, INSIDE, text);
}

fn script_with(directory: &Path, inside: &str, text: &str) {
    script_of(directory, inside, "--levels initcwnd=10,40", text);
}

fn script_of(directory: &Path, inside: &str, levels: &str, text: &str) {
    let output = Command::new("sh")
        .args(["-c", &format!("{OUTSIDE}{text}{END}")])
        .env("WT", binary())
        .env("INSIDE", inside)
        .env("LEVELS", levels)
        .env("WINDTUNNEL_STATE_DIR", directory.join("state"))
        .env("WINDTUNNEL_ROOT", directory.join("root"))
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

/// Two hundred transfers of 1 to 300 kB, sizes as often small as large by their logarithm.
fn of_many_sizes() -> String {
    let alike = "seq 300 | xargs -P 8 -I{} curl -s -o /dev/null -w '%{http_code} %{size_download}\\n' -H 'Connection: close' http://server/bytes/50kB";
    let many = "awk 'BEGIN { srand(1); for (n = 0; n < 200; n++) print int(1000 * exp(rand() * log(300))) }' | xargs -P 8 -I{} \
        curl -s -o /dev/null -w '%{http_code} {} %{size_download}\\n' -H 'Connection: close' http://server/bytes/{}";
    assert!(INSIDE.contains(alike));
    INSIDE.replace(alike, many)
}

#[test]
fn a_larger_first_window_is_claimed_within_two_hundred_connections_and_every_connection_is_accounted_for() {
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
    script_with(at, &of_many_sizes(), text);
    let fetched = read(at, "fetched");
    let whole = |line: &&str| {
        let [code, asked, came] = line.split(' ').collect::<Vec<_>>()[..] else { return false };
        code == "200" && asked == came
    };
    assert_eq!(fetched.lines().filter(whole).count(), 200, "{fetched}");
    let report = report(at);
    assert_eq!(read(at, "code").trim(), "0", "{report:#}");
    assert_eq!((&report["verdict"]["kind"], &report["verdict"]["arm"]), (&"faster".into(), &"initcwnd=40".into()));
    assert_eq!(report["verdict"]["claim"], "beside", "{report:#}");
    let sum = |field: &str| sum(&report, field);
    assert_eq!(
        (sum("assigned"), sum("recorded"), sum("set_errors"), sum("not_compliant")),
        (200, 200, 0, 0),
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

/// The client holds sixteen transfers open while the server's sockets are looked at.
const OPEN: &str = r#"
ip netns exec server readlink /proc/self/ns/net > namespace
ip netns exec server sh -c 'echo 0 > /proc/sys/net/ipv4/tcp_ecn' # or else every connection may have it
ip netns exec server sleep 1000 & keeper=$!
echo > ready; read -r _ < go
seq 16 | xargs -P 16 -I{} curl -s -o /dev/null --limit-rate 2M -w '%{http_code} %{size_download}\n' http://server/bytes/4MB > fetched & all=$!
while [ "$(ip netns exec server ss -Htn state established sport = :80 | wc -l)" -lt 16 ]; do :; done
ip netns exec server ss -Htin state established sport = :80 > sockets
wait $all; echo > fetching; read -r _ < ended
kill $keeper
"#;

#[test]
fn every_setting_of_an_arm_is_in_force_on_its_connections_and_on_no_others() {
    require!("bpf", available());
    let directory = directory();
    let at = directory.path();
    let levels = "--levels cc=reno --levels initcwnd=20 --levels initrwnd=40 --levels ecn=on --levels cwnd-clamp=100 \
                  --levels rto-min=50ms --levels delack-max=20ms --levels notsent-lowat=16KiB --levels window-clamp=1MiB \
                  --levels pacing=20mbit";
    script_of(at, OPEN, levels, "echo > go; read -r _ < fetching; \"$WT\" traffic stop > stopped; wait $traffic");
    let fetched = read(at, "fetched");
    assert_eq!(fetched.lines().filter(|line| *line == "200 4000000").count(), 16, "{fetched}");
    let report = report(at);
    let of = |field: &str| {
        report["arms"].as_array().unwrap().iter().map(|arm| arm[field].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        (sum(&report, "recorded"), of("set_errors"), of("not_compliant")),
        (16, vec![0, 0], vec![0, 0]),
        "{report:#}"
    );
    let sockets = read(at, "sockets");
    let given = |socket: &&str| socket.contains(" reno ");
    let (treated, others): (Vec<&str>, Vec<&str>) =
        sockets.lines().filter(|line| line.contains("rtt:")).partition(given);
    assert_eq!((treated.len() as u64, others.len() as u64), (of("assigned")[1], of("assigned")[0]), "{sockets}");
    let paced = |socket: &&str| socket.contains("/20000000bps") && socket.contains("rcv_ssthresh:57920");
    assert!(treated.iter().all(paced) && !others.iter().any(paced), "{sockets}");
    let figure = |socket: &&str, name: &str| {
        let word = socket.split_whitespace().find_map(|word| word.strip_prefix(name));
        word.and_then(|word| word.split('/').next()?.parse::<f64>().ok())
    };
    let clamped = |socket: &&str| figure(socket, "cwnd:").is_some_and(|cwnd| cwnd <= 100.0);
    assert!(treated.iter().all(clamped), "{sockets}");
}

/// The client fetches twice, and waits between for what is done with the first verdict.
const TWICE: &str = r#"
ip netns exec server readlink /proc/self/ns/net > namespace
ip netns exec server sleep 1000 & keeper=$!
fetch() { seq 300 | xargs -P 8 -I{} curl -s -o /dev/null -w '%{http_code} %{size_download}\n' -H 'Connection: close' http://server/bytes/50kB > fetched; }
echo > ready; read -r _ < go; fetch
echo > fetching; read -r _ < go; fetch
echo > fetching; read -r _ < ended
kill $keeper
"#;

#[test]
fn what_is_shown_is_applied_and_a_holdback_goes_on_measuring_the_gain() {
    require!("bpf", available());
    let directory = directory();
    let at = directory.path();
    let text = r#"
echo > go; read -r _ < fetching
"$WT" traffic stop > stopped; wait $traffic
nsenter --net=$network "$WT" settings apply --verdict last --confirm-within 10m --json > applied || cat applied
first=$("$WT" traffic report --json | sed 's/.*"id":"\([^"]*\)".*/\1/')
rm -f stream; : > stream
nsenter --net=$network "$WT" traffic start --holdback "$first" --keep-back 50% --beside-programs --json-stream > stream & traffic=$!
while ! grep -q '"event":"epoch"' stream && kill -0 $traffic; do :; done
echo > go; read -r _ < fetching
"$WT" traffic status --json > status; echo $? > code
"$WT" traffic stop > stopped; wait $traffic; echo $? >> code
"$WT" traffic report > people
"$WT" metrics > metrics
"$WT" traffic combine "$first" --json > sum; echo $? >> code
"$WT" traffic combine "$first" last > mixed 2>&1; echo $? >> code
nsenter --net=$network "$WT" settings undo > undone
"#;
    script_with(at, TWICE, text);
    let applied: Value = serde_json::from_str(&read(at, "applied")).unwrap();
    let row = &applied["applied"][0];
    assert_eq!(
        (&row["key"], &row["granted"], &row["scope"]),
        (&"initcwnd".into(), &40.into(), &"route".into()),
        "{applied}"
    );
    let report = report(at);
    let names: Vec<&str> = report["arms"].as_array().unwrap().iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["initcwnd=40", "old: initcwnd=10"], "{report:#}");
    assert_eq!(sum(&report, "recorded"), 300, "{report:#}");
    let holdback = &report["holdback"];
    assert!(holdback["state"] != "gone" && holdback["ratio"].as_f64() > Some(1.2), "{holdback:#}");
    assert!(report["guardrails"].as_array().unwrap().iter().all(|guard| guard["stopped"] == false), "{report:#}");
    assert!(read(at, "people").starts_with("The gain of "), "{}", read(at, "people"));
    let state = holdback["state"].as_str().unwrap();
    let metric = format!("windtunnel_holdback{{target=\"port-80\",state=\"{state}\"}} 1\n");
    assert!(read(at, "metrics").contains(&metric), "{}", read(at, "metrics"));
    assert!(read(at, "status").contains("\"holdback\""), "{}", read(at, "status"));
    let summed: Value = serde_json::from_str(&read(at, "sum")).unwrap();
    assert_eq!(
        (&summed["arms"][0]["name"], &summed["arms"][0]["servers"]),
        (&"initcwnd=40".into(), &1.into()),
        "{summed}"
    );
    assert_eq!(read(at, "code").split_whitespace().collect::<Vec<_>>(), ["0", "0", "0", "2"], "{}", read(at, "mixed"));
    assert!(read(at, "mixed").contains("didn't try the same settings"), "{}", read(at, "mixed"));
    assert!(read(at, "undone").contains("taken back"), "{}", read(at, "undone"));
}

#[test]
fn a_kill_breaks_no_connection_and_another_experiment_begins_at_once() {
    require!("bpf", available());
    let directory = directory();
    let at = directory.path();
    let text = r#"
echo > go
while ! [ -s fetched ]; do :; done
PATH=$PATH:/usr/sbin; link=$(sed -n 's/^link_id:[[:space:]]*//p' /proc/$traffic/fdinfo/* | head -n 1)
[ -n "$link" ] || { echo "it holds no link" >&2; exit 4; }
attached() { bpftool link show id $link > /dev/null 2>&1; }
! command -v bpftool > /dev/null || attached || { echo "link $link isn't shown while it runs" >&2; exit 5; }
kill -9 $traffic; wait $traffic
until=$(($(date +%s) + 10)) # which a loaded machine may take; make traffic-soak holds it against 0.1 s
while attached; do [ $(date +%s) -lt $until ] || { echo "link $link is still attached" >&2; exit 6; }; done
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

/// An experiment of three seconds in a network of its own, as it runs, and the lines that it says.
fn alone(journal: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = Command::new("unshare");
    command
        .args(["-n", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
        .arg(binary())
        .args(["traffic", "start"]);
    command.args(["--port", "80", "--levels", "initcwnd=10,40", "--epoch", "1s", "--age", "1s", "--for", "3s"]);
    command.args(["--beside-programs", "--json-stream", "--journal"]).arg(journal);
    let streams = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, said)
}

#[test]
fn a_journal_that_is_locked_for_a_moment_ends_no_experiment_and_a_report_that_it_doesnt_take_is_told_all_the_same() {
    require!("bpf", available());
    let directory = directory();
    let journal = directory.path().join("journal.sqlite3");
    let (mut child, lines) = alone(&journal);
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert_eq!(lines.next().unwrap()["event"], "begin");
    // Before its first note, two seconds after it has begun.
    let other = rusqlite::Connection::open(&journal).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let warning = lines.find(|line| line["event"] == "warning").unwrap();
    assert!(warning["text"].as_str().unwrap().contains("is locked by another program. It goes on"), "{warning}");
    assert_eq!(lines.next().unwrap()["event"], "progress", "it goes on");
    // Its last word isn't taken either, whatever the reason.
    other.execute_batch("UPDATE experiments SET state = 'aborted'; COMMIT").unwrap();
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["report"]["schema_version"]), (&"unwritten".into(), &1.into()), "{last}");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5), "{said}");
    assert!(said.contains("is not under way"), "{said}");
}

fn sum(report: &Value, field: &str) -> u64 {
    let arms = report["arms"].as_array().unwrap();
    arms.iter().map(|arm| arm[field].as_u64().unwrap()).sum()
}
