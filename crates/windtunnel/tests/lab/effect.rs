//! What `tune` finds, applied with the command that it prints, as curl feels it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#![expect(clippy::print_stderr, reason = "what curl gained is told beside the verdict, with --nocapture")]

use crate::common::{alone, binary, ran};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use wt_testing::require;

/// A path on which a window or a buffer is what counts, and not how soon its program is woken.
const FAR: &str = "title = \"far\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"50mbit\", delay = \"30ms\" }\nup = { rate = \"50mbit\", delay = \"30ms\" }\n";
/// A path whose product of rate and RTT is far above the windows here.
const LONG: &str = "title = \"long\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"50mbit\", delay = \"10ms\" }\nup = { rate = \"50mbit\", delay = \"10ms\" }\n";

/// In the client: what measures and tunes one setting. A time is that of the transfer itself, as in a trial: curl's handshake isn't
/// in it, nor its wait for "100 Continue". No connection begins with what another one has learnt, and all use Reno.
const TUNE: &str = r#"
same() { "$@" sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_congestion_control=reno; }
same; same ip netns exec server; head -c $SIZE /dev/zero > file
once() { case $WAY in
    up) curl -s -m 30 -o /dev/null -H Expect: -w '%{time_total} %{time_pretransfer}\n' -T file http://server/up ;;
    *) curl -s -m 30 -o /dev/null -w '%{time_total} %{time_pretransfer}\n' http://server/bytes/$SIZE ;;
esac; }
seven() { for n in 1 2 3 4 5 6 7; do once; done | awk '{ printf "%f ", $1 - $2 } END { print "" }'; }
eval "$PREPARE"
[ $WAY = up ] && url=http://server/up || url=http://server/bytes/$SIZE
"$WT" tune $url --direction $WAY --levels $LEVEL --workload bulk:size=$SIZE --budget '60 trials' --no-probes --allow-host-wide --journal journal --json > tune.json
"$WT" journal show last --journal journal --json > trials.json
"#;

/// Then: without what the verdict prints, with it and after undo.
const TRY: &str = r#"
command=$(sed 's/.*"command":"sudo windtunnel \(settings apply [^"]*\)".*/\1/' tune.json)
seven; "$WT" $command --confirm-within 10m --json > applied.json || { cat tune.json applied.json; exit 1; }
seven; "$WT" settings undo > undone || exit 1; seven
"#;

/// Or, where the host outside has to apply and undo: waits for it.
const WAIT: &str = r#"
readlink /proc/self/ns/net > namespace
seven > before; echo > tuned; read -r _ < applied; seven > after; echo > measured; read -r _ < undone; seven > again
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

fn object(directory: &Path, file: &str) -> Value {
    let text = std::fs::read_to_string(directory.join(file)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}: {text}"))
}

/// A setting of sockets that a trial holds and the printed command holds for one target, as curl feels it.
fn a_sockets_gain_is_curls(prepare: &str, setting: (&str, u64), (way, size): (&str, &str), side: &str) {
    let _machine = alone();
    let (home, (knob, level)) = (tempfile::tempdir().unwrap(), setting);
    let directory = home.path();
    std::fs::write(directory.join("path.toml"), FAR).unwrap();
    std::fs::write(directory.join("inside.sh"), format!("{TUNE}{WAIT}")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", OUTSIDE]).current_dir(directory).stdin(Stdio::null());
    command.env("WT", binary()).env("HOME", directory).env("XDG_DATA_HOME", directory.join("data"));
    command.env("WINDTUNNEL_STATE_DIR", directory.join("state")).env("WINDTUNNEL_ROOT", directory.join("root"));
    command.env("PREPARE", prepare).env("LEVEL", format!("{knob}={level}")).env("WAY", way).env("SIZE", size);
    let ran = ran(command.output().unwrap());
    let report = object(directory, "tune.json");
    assert_eq!(report["verdict"]["kind"], "faster", "{}{}", ran.out, ran.err);
    assert_eq!((&report["plan"][0]["to"], &report["plan"][0]["side"]), (&TARGET.into(), &side.into()));
    let applied = object(directory, "applied.json");
    let row = &applied["applied"][0];
    assert_eq!((&row["scope"], &row["granted"]), (&"connection".into(), &level.into()), "{applied}");
    if way == "down" {
        assert_eq!(row["observed"], level, "{applied}");
    }
    let times =
        ["before", "after", "again"].map(|file| numbers(&std::fs::read_to_string(directory.join(file)).unwrap()));
    gain_is_curls(&report, &object(directory, "trials.json"), times.each_ref().map(Vec::as_slice), knob);
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
    a_sockets_gain_is_curls(
        "sysctl -qw net.ipv4.tcp_rmem='4096 32768 32768'",
        ("rwin", 65_536),
        ("down", "200000"),
        "receiver",
    );
}

#[test]
#[ignore = "`make effect`: what a short buffer costs depends on how soon its program is woken, on a quiet machine"]
fn the_printed_command_brings_the_send_buffers_gain_to_curl_and_undo_takes_it_away() {
    require!("bpf", attachable());
    a_sockets_gain_is_curls(
        "sysctl -qw net.ipv4.tcp_wmem='4096 16384 16384'",
        ("sndbuf", 65_536),
        ("up", "1000000"),
        "sender",
    );
}

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
}

/// A setting that decides how long a transfer takes: by rounds, by the rate, or by which packets are lost, not by chance.
struct Tuned<'a> {
    path: &'a str,
    way: &'a str,
    size: &'a str,
    prepare: &'a str,
    level: &'a str,
    to: &'a str,
}

/// The mean of the logarithms, and how far it may be off: its standard error.
fn mean_log(times: &[f64]) -> (f64, f64) {
    let logs: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// The times of the trials of a setting that count.
fn of_arm(trials: &Value, arm: u64) -> Vec<f64> {
    let all = trials["trials"].as_array().unwrap().iter();
    let counts = |trial: &&Value| trial["spec"]["arm"] == arm && trial["outcome"]["status"] == "completed";
    all.filter(counts).map(|trial| trial["outcome"]["elapsed_us"].as_f64().unwrap()).collect()
}

/// The verdict's estimate is the gain that curl sees with the printed command, within a twentieth and three times as much as chance
/// moves either, which is next to nothing on a quiet machine; and undo takes it away.
fn gain_is_curls(report: &Value, trials: &Value, [before, with, after]: [&[f64]; 3], level: &str) {
    let (slow, fast, again) = (mean_log(before), mean_log(with), mean_log(after));
    let gain = (slow.0 - fast.0).exp();
    let ratio = report["arms"][1]["ratio"].as_f64().unwrap_or_else(|| panic!("{level}: {report}"));
    let [current, faster] = [0, 1].map(|arm| mean_log(&of_arm(trials, arm)).1);
    let (off, error) = ((gain / ratio).ln(), slow.1.hypot(fast.1).hypot(current).hypot(faster));
    eprintln!("{level}: ×{gain:.3} by curl, ×{ratio:.3} by the verdict: {:.3} ± {error:.3}", gain / ratio);
    assert!(off.abs() < 0.05 + 3.0 * error, "{level}: ×{gain} ± {error} by curl, ×{ratio} by the verdict");
    let back = (again.0 - slow.0).abs();
    assert!(back < 0.05 + 3.0 * again.1.hypot(slow.1), "{level}: {before:?} before, {after:?} after undo");
}

impl Tuned<'_> {
    fn is_curls(&self) {
        let _machine = crate::common::shared();
        let (home, level) = (tempfile::tempdir().unwrap(), self.level);
        std::fs::write(home.path().join("path.toml"), self.path).unwrap();
        let mut command = crate::common::windtunnel(home.path());
        command.env("WT", binary()).env("WINDTUNNEL_ROOT", home.path().join("root")).current_dir(home.path());
        command.env("PREPARE", self.prepare).env("LEVEL", level).env("SIZE", self.size).env("WAY", self.way);
        command.args(["lab", "run", "path.toml", "--", "timeout", "250", "sh", "-c", &format!("{TUNE}{TRY}")]);
        let ran = ran(command.output().unwrap());
        assert_eq!(ran.code, 0, "{level}: {}{}", ran.out, ran.err);
        let report = object(home.path(), "tune.json");
        let found = (&report["verdict"]["kind"], &report["plan"][0]["to"]);
        assert_eq!(found, (&"faster".into(), &self.to.into()), "{level}: {report}");
        let times: Vec<Vec<f64>> = ran.out.lines().map(numbers).collect();
        let [before, with, after] = &times[..] else { panic!("{level}: {}", ran.out) };
        gain_is_curls(&report, &object(home.path(), "trials.json"), [before, with, after], level);
    }
}

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map(|word| word.parse().unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// A path of 20 Mbit/s and 40 ms with something more in each direction.
fn path(down: &str, up: &str) -> String {
    let side = |more| format!("{{ rate = \"20mbit\", delay = \"20ms\"{more} }}");
    let (down, up) = (side(down), side(up));
    format!("title = \"t\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\ndown = {down}\nup = {up}\n")
}

/// A slow path whose frames are cells: of 340 bytes there are as many as of 293, and of 341 one more.
const CELLS: &str = "title = \"cells\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    framing = \"pppoe-llc-bridged-fcs-atm\"\ndown = { rate = \"8mbit\", delay = \"10ms\" }\nup = { rate = \"8mbit\", delay = \"10ms\" }\n";
/// The server, for the route of the client of every path here.
const TARGET: &str = "198.19.0.1";
/// Changes what the client's default route has.
macro_rules! route {
    ($what:literal) => {
        concat!("ip route change default dev wt0 proto static scope link ", $what)
    };
}

#[test]
fn window_scaling_brings_the_verdicts_gain_to_curl_on_a_long_path() {
    let (prepare, level) = ("sysctl -qw net.ipv4.tcp_window_scaling=0", "window-scaling=on");
    Tuned { path: LONG, way: "down", size: "2MB", prepare, level, to: "host" }.is_curls();
}

#[test]
fn selective_acknowledgements_bring_the_verdicts_gain_to_curl_where_many_packets_of_a_window_are_lost() {
    // Without them a round trip for each of the ten; with them one or two for all.
    let lost = "loss_model = { kind = \"numbered\", packets = [15, 17, 19, 21, 23, 25, 27, 29, 31, 33] }";
    let path = path(&format!(", {lost}"), "");
    let (prepare, level) = ("sysctl -qw net.ipv4.tcp_sack=0", "sack=on");
    Tuned { path: &path, way: "down", size: "100000", prepare, level, to: "host" }.is_curls();
}

#[test]
#[ignore = "`make effect`: as that of MSS, and takes a quarter of a minute"]
fn no_timestamps_bring_the_verdicts_gain_to_curl_where_segments_are_short() {
    // 76 bytes of payload in a packet become 88.
    let (prepare, level) = (route!("advmss 88"), "timestamps=off");
    Tuned { path: CELLS, way: "down", size: "100000", prepare, level, to: "host" }.is_curls();
}

#[test]
fn a_larger_first_receive_window_brings_the_verdicts_gain_to_curl() {
    let (prepare, level) = (route!("initrwnd 2"), "initrwnd=40");
    Tuned { path: LONG, way: "down", size: "30000", prepare, level, to: TARGET }.is_curls();
}

#[test]
fn a_larger_first_window_brings_the_verdicts_gain_to_curl() {
    // 35 segments: three flights from ten, one from forty.
    Tuned { path: LONG, way: "up", size: "50000", prepare: "true", level: "initcwnd=40", to: TARGET }.is_curls();
}

#[test]
fn a_smaller_mss_brings_the_verdicts_gain_to_curl_where_it_saves_a_cell_of_each_packet() {
    Tuned { path: CELLS, way: "down", size: "100000", prepare: route!("advmss 109"), level: "mss=108", to: TARGET }
        .is_curls();
}

#[test]
#[ignore = "`make effect`: as that of MSS, and takes a quarter of a minute"]
fn a_smaller_mtu_brings_the_verdicts_gain_to_curl_where_it_saves_a_cell_of_each_packet() {
    Tuned { path: CELLS, way: "down", size: "100000", prepare: route!("mtu 341"), level: "mtu=340", to: TARGET }
        .is_curls();
}

#[test]
fn a_congestion_control_that_ignores_single_losses_brings_the_verdicts_gain_to_curl() {
    let controls = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let has_bbr = controls.split_whitespace().any(|name| name == "bbr");
    require!("bbr", has_bbr.then_some(()).ok_or("this kernel has no bbr"));
    // The loss ends Reno's slow start far below what the path holds.
    let path = path("", ", loss_model = { kind = \"numbered\", packets = [20] }");
    Tuned { path: &path, way: "up", size: "300000", prepare: "true", level: "cc=bbr", to: TARGET }.is_curls();
}

#[test]
fn explicit_congestion_notification_brings_the_verdicts_gain_to_curl_where_the_end_of_a_burst_is_marked() {
    // What waits longer than 5 ms is marked, or else dropped, and nothing behind it tells the sender that it is.
    let marks = ", aqm = { kind = \"codel\", target = \"5ms\", interval = \"10us\", ecn = true }";
    let prepare = concat!(route!("initcwnd 20"), "; sysctl -qw net.ipv4.tcp_ecn=0");
    Tuned { path: &path("", marks), way: "up", size: "26000", prepare, level: "ecn=on", to: "host" }.is_curls();
}

/// A router that drops what is too long and says nothing; what may be fragmented, it fragments.
const SILENT: &str = "title = \"silent\"\nsource = \"a test\"\n\
    [[link]]\nname = \"a\"\nmtu = 1500\ndown = { rate = \"50mbit\", delay = \"2ms\" }\nup = { rate = \"50mbit\", delay = \"2ms\" }\n\
    [[link]]\nname = \"b\"\nmtu = 1400\nicmp = false\ndown = { rate = \"50mbit\", delay = \"8ms\" }\nup = { rate = \"50mbit\", delay = \"8ms\" }\n";

#[test]
#[ignore = "`make effect`: takes most of a minute"]
fn no_path_mtu_discovery_brings_the_verdicts_gain_to_curl_where_a_router_is_silent() {
    // With it the sender finds the path's MTU after a few timeouts.
    let prepare = concat!("sysctl -qw net.ipv4.tcp_mtu_probing=1 net.ipv4.tcp_retries1=1; ", route!("rto_min 20ms"));
    Tuned { path: SILENT, way: "up", size: "1000000", prepare, level: "pmtud=off", to: "host" }.is_curls();
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
    // On a loaded machine one round of six may go astray; then the bound says little, and the estimate as much as ever.
    assert!(
        answer["ratio_low"].as_f64() >= Some(1.0)
            && answer["ratio"].as_f64() > Some(1.2)
            && answer["before_s"].as_f64() > answer["after_s"].as_f64(),
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
