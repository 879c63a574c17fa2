//! What `tune` finds, applied with the command that it prints, as curl feels it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#![expect(clippy::print_stderr, reason = "what curl gained is told beside the verdict, with --nocapture")]

use crate::common::{alone, binary, ran};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use wt_testing::require;

/// A path whose product of rate and RTT is far above the windows here.
const LONG: &str = "title = \"long\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"50mbit\", delay = \"10ms\" }\nup = { rate = \"50mbit\", delay = \"10ms\" }\n";

/// In the client of the path: tunes and measures, and waits for the host outside to apply and undo.
const INSIDE: &str = r#"
readlink /proc/self/ns/net > namespace; head -c 1000000 /dev/zero > long
once() { case $WAY in up) curl -s -o /dev/null -w '%{speed_upload}\n' -T long $URL ;; *) curl -s -o /dev/null -w '%{speed_download}\n' $URL ;; esac; }
speed() { for n in 1 2 3; do once; done | sort -n | sed -n 2p; }
eval "$PREPARE"
"$WT" tune $URL --direction $WAY --levels $LEVEL --workload bulk:size=1MB --budget '40 trials' --no-probes --json > tune.json
speed > before; echo > tuned; read -r _ < applied; speed > after; echo > measured; read -r _ < undone; speed > again
"#;

/// Outside, as root of the machine, in the client's network: BPF programs can't be attached from within a user namespace.
const OUTSIDE: &str = r#"
mount -t bpf bpf /sys/fs/bpf || exit 9
mkfifo tuned applied measured undone
"$WT" lab run path.toml -- timeout 200 sh inside.sh & lab=$!
read -r _ < tuned
for process in /proc/[0-9]*; do
    [ "$(readlink $process/ns/net 2>/dev/null)" = "$(cat namespace)" ] && network=$process/ns/net
done
command=$(sed 's/.*"command":"sudo windtunnel \(settings apply [^"]*\)".*/\1/' tune.json)
nsenter --net=$network "$WT" $command --confirm-within 10m --json > applied.json; echo $? > code
echo > applied; read -r _ < measured
nsenter --net=$network "$WT" settings undo > out
echo > undone; wait $lab; ls /sys/fs/bpf | grep windtunnel
"#;

fn number(directory: &Path, file: &str) -> f64 {
    let text = std::fs::read_to_string(directory.join(file)).unwrap();
    text.trim().parse().unwrap_or_else(|error| panic!("{file}: {error}: {text}"))
}

fn object(directory: &Path, file: &str) -> Value {
    let text = std::fs::read_to_string(directory.join(file)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}: {text}"))
}

/// A setting of sockets that a trial holds and the printed command holds for one target, as curl feels it.
fn a_sockets_gain_is_curls(prepare: &str, setting: (&str, u64), way: &str, side: &str) {
    let _machine = alone();
    let (home, (knob, level)) = (tempfile::tempdir().unwrap(), setting);
    let directory = home.path();
    std::fs::write(directory.join("path.toml"), LONG).unwrap();
    std::fs::write(directory.join("inside.sh"), INSIDE).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", OUTSIDE]).current_dir(directory).stdin(Stdio::null());
    command.env("WT", binary()).env("HOME", directory).env("XDG_DATA_HOME", directory.join("data"));
    command.env("WINDTUNNEL_STATE_DIR", directory.join("state")).env("WINDTUNNEL_ROOT", directory.join("root"));
    let url = if way == "up" { "http://server/up" } else { "http://server/bytes/1MB" };
    command.env("PREPARE", prepare).env("LEVEL", format!("{knob}={level}")).env("WAY", way).env("URL", url);
    let ran = ran(command.output().unwrap());
    let report = object(directory, "tune.json");
    assert_eq!(report["verdict"]["kind"], "faster", "{}{}", ran.out, ran.err);
    assert_eq!((&report["plan"][0]["to"], &report["plan"][0]["side"]), (&"198.19.0.1".into(), &side.into()));
    let applied = object(directory, "applied.json");
    let row = &applied["applied"][0];
    assert_eq!((&row["scope"], &row["granted"]), (&"connection".into(), &level.into()), "{applied}");
    if way == "down" {
        assert_eq!(row["observed"], level, "{applied}");
    }
    let [before, after, again] = ["before", "after", "again"].map(|file| number(directory, file));
    let estimate = report["arms"][1]["ratio"].as_f64().unwrap_or_else(|| panic!("{report:#}"));
    let gain = after / before;
    eprintln!("{knob}={level}: ×{gain:.3} by curl, ×{estimate:.3} by the verdict: {:.3}", gain / estimate);
    assert!((0.85..1.18).contains(&(gain / estimate)), "×{gain} by curl, ×{estimate} by the verdict");
    assert!((0.75..1.33).contains(&(again / before)), "{before} before, {again} after undo");
    assert_eq!(ran.out, "", "nothing is left attached: {}", ran.err);
}

/// Whether this user may attach programs to connections.
fn attachable() -> Result<(), String> {
    let missing = wt_bpf::missing_capabilities();
    if missing.is_empty() { Ok(()) } else { Err(format!("{} missing", missing.join(", "))) }
}

#[test]
fn the_printed_command_brings_the_windows_gain_to_curl_and_undo_takes_it_away() {
    require!("bpf", attachable());
    a_sockets_gain_is_curls("sysctl -qw net.ipv4.tcp_rmem='4096 32768 32768'", ("rwin", 65_536), "down", "receiver");
}

#[test]
#[ignore = "`make effect`: what a short buffer costs hangs on how soon its program is woken, on a quiet machine"]
fn the_printed_command_brings_the_send_buffers_gain_to_curl_and_undo_takes_it_away() {
    require!("bpf", attachable());
    a_sockets_gain_is_curls("sysctl -qw net.ipv4.tcp_wmem='4096 16384 16384'", ("sndbuf", 65_536), "up", "sender");
}

/// A path that loses long packets, and none of 552 bytes or less, each way.
const LOSES_LONG: &str = "title = \"loses long packets\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"20mbit\", delay = \"20ms\", loss_model = { kind = \"by-size\", above = \"600B\", long = \"4%\", short = \"0%\" } }\n\
    up = { rate = \"20mbit\", delay = \"20ms\" }\n";

/// Each setting in the client: the time of curl before, with the change, and after undo, the mean of four; `$1` is the setting with
/// its place, the rest what curl does.
const EACH: &str = r#"
time_of() { for n in 1 2 3 4; do curl -s -o /dev/null -w '%{time_total}\n' "$@"; done | awk '{ all += $1 } END { print all / NR }'; }
try() {
    setting=$1; shift; before=$(time_of "$@")
    "$WT" settings apply $setting --confirm-within 10m --json > applied.json || { cat applied.json; exit 1; }
    with=$(time_of "$@"); "$WT" settings undo > undone; echo $before $with $(time_of "$@")
}
"#;

/// Runs lines of [`EACH`] in the client of a path; the three times of each.
fn tried(path: &str, script: &str) -> Vec<[f64; 3]> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), path).unwrap();
    let mut command = crate::common::windtunnel(home.path());
    command.env("WT", binary()).env("WINDTUNNEL_ROOT", home.path().join("root")).current_dir(home.path());
    command.args(["lab", "run", "path.toml", "--", "timeout", "100", "sh", "-c", &format!("{EACH}{script}")]);
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let line = |line: &str| {
        let times: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        times.try_into().unwrap()
    };
    ran.out.lines().map(line).collect()
}

#[test]
fn settings_of_routes_and_of_the_host_are_felt_by_curl_while_they_are_in_force() {
    let _machine = alone();
    // The sender's first window in an upload of 35 segments, and its buffer and the receiver's window where they are what counts.
    let times = tried(
        LONG,
        "head -c 50000 /dev/zero > up; head -c 400000 /dev/zero > long
         try 'initcwnd=40 --to 198.19.0.1' -T up http://server/up
         try 'sndbuf=16384 --to host' -T long http://server/up
         try 'rwin=8192 --to host' http://server/bytes/200kB",
    );
    let [[before, with, after], slowed @ ..] = &times[..] else { panic!("{times:?}") };
    assert!(*with < 0.8 * before && *with < 0.8 * after, "{times:?}");
    assert_eq!(slowed.len(), 2);
    for [before, with, after] in slowed {
        assert!(*with > 1.5 * before && *with > 1.5 * after, "{times:?}");
    }
    // An MTU and an MSS below what a path loses.
    let short = tried(
        LOSES_LONG,
        "ip netns exec server sysctl -qw net.ipv4.tcp_congestion_control=reno
         try 'mss=512 --to 198.19.0.1' http://server/bytes/400kB; try 'mtu=552 --to 198.19.0.1' http://server/bytes/400kB",
    );
    for [before, with, after] in &short {
        assert!(*with < 0.8 * before && *with < 0.8 * after, "{short:?}");
    }
}

/// A queue that is short for what a slow start sends, so that many segments of one window are lost.
const SHORT_QUEUE: &str = "title = \"short queue\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"20mbit\", delay = \"20ms\", queue = \"20KiB\" }\nup = { rate = \"20mbit\", delay = \"20ms\" }\n";
/// A path on which every byte of a header costs time.
const NARROW: &str = "title = \"narrow\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"8mbit\", delay = \"10ms\" }\nup = { rate = \"8mbit\", delay = \"10ms\" }\n";

/// In the client: tunes one setting, and then transfers without what the verdict prints, with it and after undo, the median of five
/// each. The time is that of the transfer itself, as in a trial: curl's handshake isn't in it, nor its wait for "100 Continue".
const TUNED: &str = r#"
head -c $SIZE /dev/zero > file
once() { case $WAY in
    up) curl -s -m 30 -o /dev/null -H Expect: -w '%{time_total} %{time_pretransfer}\n' -T file http://server/up ;;
    *) curl -s -m 30 -o /dev/null -w '%{time_total} %{time_pretransfer}\n' http://server/bytes/$SIZE ;;
esac; }
time_of() { for n in 1 2 3 4 5; do once; done | awk '{ print $1 - $2 }' | sort -n | sed -n 3p; }
eval "$PREPARE"
[ $WAY = up ] && url=http://server/up || url=http://server/bytes/$SIZE
"$WT" tune $url --direction $WAY --levels $LEVEL --workload bulk:size=$SIZE --budget '60 trials' --no-probes --allow-host-wide --json > tune.json
command=$(sed 's/.*"command":"sudo windtunnel \(settings apply [^"]*\)".*/\1/' tune.json)
before=$(time_of); "$WT" $command --confirm-within 10m --json > applied.json || { cat tune.json applied.json; exit 1; }
with=$(time_of); "$WT" settings undo > undone || exit 1; echo $before $with $(time_of)
"#;

/// The verdict's claim is the gain that curl sees with the printed command, and undo takes it away.
fn the_gain_is_curls(path: &str, prepare: &str, level: &str, size: &str, to: &str) {
    the_gain_of_a_way_is_curls(("down", path), prepare, level, size, to);
}

fn the_gain_of_a_way_is_curls((way, path): (&str, &str), prepare: &str, level: &str, size: &str, to: &str) {
    let _machine = alone();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), path).unwrap();
    let mut command = crate::common::windtunnel(home.path());
    command.env("WT", binary()).env("WINDTUNNEL_ROOT", home.path().join("root")).current_dir(home.path());
    command.env("PREPARE", prepare).env("LEVEL", level).env("SIZE", size).env("WAY", way);
    command.args(["lab", "run", "path.toml", "--", "timeout", "200", "sh", "-c", TUNED]);
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{level}: {}{}", ran.out, ran.err);
    let report = object(home.path(), "tune.json");
    assert_eq!(
        (&report["verdict"]["kind"], &report["plan"][0]["to"]),
        (&"faster".into(), &to.into()),
        "{level}: {report}"
    );
    let times: Vec<f64> = ran.out.trim().split(' ').map(|word| word.parse().unwrap()).collect();
    let [before, with, after] = times[..] else { panic!("{level}: {}", ran.out) };
    let arm = |name: &str| report["arms"][1][name].as_f64();
    let (gain, ratio) = (before / with, arm("ratio").unwrap_or_else(|| panic!("{level}: {report}")));
    eprintln!("{level}: ×{gain:.3} by curl, ×{ratio:.3} by the verdict: {:.3}", gain / ratio);
    // A twentieth beside the interval, for what curl's own beginning takes; after few rounds an end of it may be open.
    let (least, most) = (arm("low").unwrap_or(1.0) / 1.05, arm("high").unwrap_or(f64::INFINITY) * 1.05);
    assert!((least..most).contains(&gain), "{level}: ×{gain} by curl, ×{ratio} ({least} to {most}) by the verdict");
    assert!(gain > 1.0 + (ratio - 1.0) / 3.0, "{level}: ×{gain} by curl, ×{ratio} by the verdict");
    assert!(after / with > 1.0 + (gain - 1.0) / 3.0, "{level}: {with} s with it, and {after} s after undo");
}

#[test]
fn window_scaling_brings_the_verdicts_gain_to_curl_on_a_long_path() {
    the_gain_is_curls(LONG, "sysctl -qw net.ipv4.tcp_window_scaling=0", "window-scaling=on", "2MB", "host");
}

#[test]
#[ignore = "`make effect`: a gain that hangs on chance, on a quiet machine"]
fn selective_acknowledgements_bring_the_verdicts_gain_to_curl_where_a_queue_is_short() {
    let prepare = "sysctl -qw net.ipv4.tcp_sack=0";
    the_gain_is_curls(SHORT_QUEUE, prepare, "sack=on", "1MB", "host");
}

#[test]
#[ignore = "`make effect`: a gain that hangs on chance, on a quiet machine"]
fn no_timestamps_bring_the_verdicts_gain_to_curl_where_segments_are_short() {
    let prepare = "ip route change default dev wt0 proto static scope link advmss 128";
    the_gain_is_curls(NARROW, prepare, "timestamps=off", "1MB", "host");
}

#[test]
fn a_larger_first_receive_window_brings_the_verdicts_gain_to_curl() {
    let prepare = "ip route change default dev wt0 proto static scope link initrwnd 2";
    the_gain_is_curls(LONG, prepare, "initrwnd=40", "30kB", "198.19.0.1");
}

#[test]
fn a_larger_first_window_brings_the_verdicts_gain_to_curl() {
    // 35 segments: three flights from ten, one from forty.
    the_gain_of_a_way_is_curls(("up", LONG), "true", "initcwnd=40", "50000", "198.19.0.1");
}

/// A path that loses one packet of a hundred on the way to the server, at random.
const LOSES: &str = "title = \"loses\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"20mbit\", delay = \"20ms\" }\nup = { rate = \"20mbit\", delay = \"20ms\", loss = \"1%\" }\n";

#[test]
#[ignore = "`make effect`: a gain that hangs on chance, on a quiet machine"]
fn a_congestion_control_that_ignores_single_losses_is_felt_by_curl_while_it_is_in_force() {
    let allowed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    let has_bbr = allowed.split_whitespace().any(|name| name == "bbr");
    require!("bbr", has_bbr.then_some(()).ok_or("this kernel doesn't offer bbr to everybody"));
    let _machine = alone();
    let times = tried(
        LOSES,
        "sysctl -qw net.ipv4.tcp_congestion_control=reno; head -c 1000000 /dev/zero > long
         try 'cc=bbr --to 198.19.0.1' -T long http://server/up",
    );
    // Reno keeps about 1.22 / sqrt(1 %) segments in flight, a fifth of what the path holds.
    let [before, with, after] = times[0];
    eprintln!("cc=bbr: ×{:.3} by curl", before / with);
    assert!(with < 0.8 * before && with < 0.8 * after, "{times:?}");
}

/// A path that drops every packet longer than 1200 bytes on the way to the server, and says nothing.
const BLACK_HOLE: &str = "title = \"black hole\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"20mbit\", delay = \"10ms\" }\n\
    up = { rate = \"20mbit\", delay = \"10ms\", loss_model = { kind = \"by-size\", above = \"1200B\", long = \"100%\", short = \"0%\" } }\n";

#[test]
fn behind_a_black_hole_curl_gets_through_while_it_is_detected_and_not_before_nor_after_undo() {
    let _machine = crate::common::shared();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), BLACK_HOLE).unwrap();
    // The sender notices after three timeouts, some 3 s; without that nothing ever comes through.
    let script = "sysctl -qw net.ipv4.tcp_mtu_probing=0; head -c 20000 /dev/zero > long
        once() { curl -s -m $1 -o /dev/null -T long http://server/up; echo $?; }
        once 8; \"$WT\" settings apply black-hole-detection=on --confirm-within 10m > applied || exit 1
        once 60; \"$WT\" settings undo > undone; once 8";
    let mut command = crate::common::windtunnel(home.path());
    command.env("WT", binary()).env("WINDTUNNEL_ROOT", home.path().join("root")).current_dir(home.path());
    command.args(["lab", "run", "path.toml", "--", "timeout", "100", "sh", "-c", script]);
    let ran = ran(command.output().unwrap());
    // 28 is curl's code for an operation that timed out.
    assert_eq!((ran.code, ran.out.as_str()), (0, "28\n0\n28\n"), "{}", ran.err);
}

#[test]
#[ignore = "`make effect`: a gain that hangs on chance, on a quiet machine"]
fn a_smaller_mss_brings_the_verdicts_gain_to_curl_where_long_packets_are_lost() {
    let prepare = "ip netns exec server sysctl -qw net.ipv4.tcp_congestion_control=reno";
    the_gain_is_curls(LOSES_LONG, prepare, "mss=512", "400kB", "198.19.0.1");
}

#[test]
#[ignore = "`make effect`: a gain that hangs on chance, on a quiet machine"]
fn a_smaller_mtu_brings_the_verdicts_gain_to_curl_where_long_packets_are_lost() {
    let prepare = "ip netns exec server sysctl -qw net.ipv4.tcp_congestion_control=reno";
    the_gain_is_curls(LOSES_LONG, prepare, "mtu=552", "400kB", "198.19.0.1");
}

#[test]
fn a_change_is_proved_by_curl_and_left_in_force_and_the_proof_is_in_the_journal() {
    let _machine = alone();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), LONG).unwrap();
    let mut command = crate::common::windtunnel(home.path());
    command.env("WT", binary()).env("WINDTUNNEL_ROOT", home.path().join("root")).current_dir(home.path());
    let script = "sysctl -qw net.ipv4.tcp_rmem='4096 8192 8192'
        $WT settings apply tcp_rmem='4096 131072 1000000' --confirm-within 10m > out
        $WT settings prove --url http://server/bytes/100kB --journal journal --json; echo $? >&2
        cat /proc/sys/net/ipv4/tcp_rmem >&2; $WT journal show last --journal journal --json > shown || exit 9
        $WT settings prove --by 'sleep 0.1' --rounds 3 --journal journal >&2; echo $? >&2; $WT settings undo > out";
    command.args(["lab", "run", "path.toml", "--", "timeout", "100", "sh", "-c", script]);
    let ran = ran(command.output().unwrap());
    let answer: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    assert_eq!((&answer["verdict"], &answer["change"]), (&"faster".into(), &"1".into()), "{answer}");
    assert!(
        answer["ratio_low"].as_f64() > Some(1.2) && answer["before_s"].as_f64() > answer["after_s"].as_f64(),
        "{answer}"
    );
    let shown = object(home.path(), "shown");
    assert!(shown.to_string().contains("It is faster with the change"), "{shown}");
    assert!(ran.err.contains("\n0\n4096\t131072\t1000000\n"), "faster, and in force as before: {}", ran.err);
    assert!(ran.err.contains("No difference is shown") && ran.err.ends_with("\n1\n"), "{}", ran.err);
}

/// What `make demo` begins with, as the Makefile has it.
fn the_demos_first_command() -> Vec<String> {
    let make = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Makefile")).unwrap();
    let line = make.lines().find(|line| line.contains("$(BIN) tune")).unwrap();
    let (_, words) = line.split_once("$(BIN) ").unwrap();
    let words = words.split(" --html").next().unwrap();
    words.split_whitespace().map(str::to_owned).collect()
}

#[test]
#[ignore = "`make effect`: a minute of the demo is one of a quiet machine"]
fn the_demo_claims_a_gain_of_the_servers_first_window_within_a_minute() {
    let _machine = alone();
    let home = tempfile::tempdir().unwrap();
    let mut command = crate::common::windtunnel(home.path());
    command.args(the_demos_first_command()).arg("--json");
    let ran = ran(command.output().unwrap());
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.err));
    let answer = &report["verdict"]["answer"];
    assert_eq!(
        (ran.code, &report["verdict"]["kind"], &answer["host"]),
        (0, &"faster".into(), &"server".into()),
        "{answer:#}"
    );
    assert!(answer["lines"][0].as_str().unwrap().starts_with("initcwnd="), "{answer:#}");
    assert!(report["run"]["spent_s"].as_f64().unwrap() <= 60.0, "{:#}", report["run"]);
}
