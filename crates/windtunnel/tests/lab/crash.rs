//! What the end of an experiment on the real path leaves behind, whatever ends it: the host as it was found, everything that was
//! measured, and an experiment that can be gone on with.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, binary, ran, shared, windtunnel};
use serde_json::Value;

/// A fast and near path.
const NEAR: &str = "title = \"near\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"50mbit\", delay = \"5ms\" }\nup = { rate = \"50mbit\", delay = \"5ms\" }\n";

/// nginx in the far host, and what the tests share. A trial moves half a megabyte in some 0.1 s.
const WORLD: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
mkdir -p www tmp
head -c 500000 /dev/urandom > www/file
cat > nginx.conf <<END
user root; daemon off; master_process off; pid $PWD/pid; error_log $PWD/error.log warn;
events { worker_connections 64; }
http {
  client_body_temp_path $PWD/tmp; proxy_temp_path $PWD/tmp; fastcgi_temp_path $PWD/tmp; uwsgi_temp_path $PWD/tmp;
  scgi_temp_path $PWD/tmp; access_log off; default_type application/octet-stream; server { listen 8080; root $PWD/www; }
}
END
ip netns exec server nginx -c $PWD/nginx.conf &
until curl -s -o /dev/null http://server:8080/file; do :; done
snap() { ip route show table all; ip -6 route show table all; ip -d link | sed 's/ numtx.*//'; sysctl net.ipv4.tcp_rmem net.ipv4.tcp_sack net.core.rmem_max; }
tune() { "$WT" tune http://server:8080/file --quiet --json --pause 200ms --no-probes "$@"; }
# To be started in the background: signals shall reach the program itself.
tuning() { exec "$WT" tune http://server:8080/file --quiet --json --pause 200ms --no-probes "$@"; }
done_so_far() { "$WT" journal show last --json 2>/dev/null | grep -o '"status":"completed"' | wc -l; }
after() { until [ "$(done_so_far)" -ge "$1" ]; do kill -0 "$pid" || break; sleep 0.1; done; }
snap > before
"#;
// Three settings: after seven trials, a pilot and one that warms up among them, one round is complete, the next is under way, and nothing is
// decided.

/// Runs a script in the client of the path, within minutes on the slowest machine.
fn script(text: &str) -> (RunOutput, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), NEAR).unwrap();
    let mut command = windtunnel(home.path());
    command.env("WT", binary()).env("XDG_STATE_HOME", home.path().join("state")).current_dir(home.path());
    command.args(["lab", "run", "path.toml", "--", "timeout", "240", "sh", "-c", &format!("{WORLD}{text}")]);
    (ran(command.output().unwrap()), home)
}

/// The objects that a script has printed, one a line.
fn objects(ran: &RunOutput) -> Vec<Value> {
    let lines = ran.out.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// How many trials of an experiment ended how.
fn count(shown: &Value, status: &str) -> usize {
    let trials = shown["trials"].as_array().unwrap_or_else(|| panic!("{shown:#}"));
    trials.iter().filter(|trial| trial["outcome"]["status"] == status).count()
}

#[test]
fn ctrl_c_leaves_the_host_as_found_and_everything_measured_and_it_goes_on() {
    ended_by("INT");
}

#[test]
fn a_sigterm_leaves_the_host_as_found_and_everything_measured_and_it_goes_on() {
    ended_by("TERM");
}

fn ended_by(signal: &str) {
    let _machine = shared();
    let (ran, _home) = script(&format!(
        "tuning --levels initrwnd=4,16 --budget '200 trials' > /dev/null & pid=$!\n\
         after 7; kill -{signal} $pid; wait $pid; echo \"ended $?\" >&2\n\
         snap | diff before - >&2 && echo unchanged >&2\n\
         \"$WT\" journal show last --json\n\
         tune --resume last --budget '6 trials'; echo \"resumed $?\" >&2\n\
         snap | diff before - >&2 && echo unchanged >&2"
    ));
    assert_eq!(ran.err.matches("unchanged").count(), 2, "{}", ran.err);
    assert!(ran.err.contains("ended 1") && ran.err.contains("resumed 1"), "{}", ran.err);
    let objects = objects(&ran);
    let [shown, resumed] = objects.as_slice() else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!(shown["experiment"]["state"], "stopped", "{shown:#}");
    assert!(count(shown, "completed") >= 6 && count(shown, "running") == 0, "{shown:#}");
    let trials = shown["trials"].as_array().unwrap();
    let link =
        &trials.iter().find(|trial| trial["outcome"]["status"] == "completed").unwrap()["outcome"]["observed"]["link"];
    assert!(link["device"].is_string() && link["mtu"] == 1500, "{link}");
    assert!(resumed["rounds"].as_u64().unwrap() >= 2, "{resumed:#}");
}

#[test]
fn a_kill_leaves_one_trial_aborted_and_the_guard_puts_the_host_back() {
    let _machine = shared();
    let (ran, _home) = script(
        "tuning --levels initrwnd=4,16 --budget '200 trials' > /dev/null & pid=$!\n\
         after 7; kill -9 $pid; wait $pid 2>/dev/null\n\
         i=0; until snap | diff -q before - > /dev/null || [ $i -ge 100 ]; do i=$((i+1)); sleep 0.1; done\n\
         snap | diff before - >&2 && echo unchanged >&2\n\
         \"$WT\" journal show last --json\n\
         # The guard may still wait for the change that was under way.\n\
         i=0; code=3; while [ $code = 3 ] && [ $i -lt 200 ]; do tune --resume last --budget '6 trials' 2> told; code=$?; i=$((i+1)); sleep 0.5; done\n\
         snap | diff before - >&2 && echo unchanged >&2; echo \"resumed $code\" >&2",
    );
    assert!(ran.err.matches("unchanged").count() == 2 && ran.err.contains("resumed 1"), "{}", ran.err);
    let objects = objects(&ran);
    let [shown, resumed] = objects.as_slice() else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!(shown["experiment"]["state"], "aborted", "{shown:#}");
    assert!(
        count(shown, "aborted") <= 1 && count(shown, "running") == 0 && count(shown, "completed") >= 6,
        "{shown:#}"
    );
    assert!(resumed["rounds"].as_u64().unwrap() >= 2, "{resumed:#}");
}

#[test]
fn a_change_that_still_waits_is_told_with_what_to_do_before_anything_is_measured() {
    let _machine = shared();
    let (ran, _home) = script(
        "\"$WT\" settings apply initrwnd=20 --to 198.19.0.1 --confirm-within 10m > /dev/null; echo \"applied $?\" >&2\n\
         tune --levels initrwnd=4 --budget '10 trials'; echo \"waits $?\" >&2; \"$WT\" journal list --json\n\
         tune --levels mss=1000 --budget '4 trials' > /dev/null; echo \"another $?\" >&2\n\
         \"$WT\" settings undo > /dev/null; tune --levels initrwnd=4 --budget '4 trials' > /dev/null; echo \"after $?\" >&2\n\
         snap | diff before - >&2 && echo unchanged >&2",
    );
    for wanted in [
        "applied 0",
        "waits 3",
        "another 1",
        "after 1",
        "unchanged",
        "its guard puts it back in",
        "windtunnel settings undo 1",
    ] {
        assert!(ran.err.contains(wanted), "{wanted}: {}", ran.err);
    }
    assert_eq!(objects(&ran)[0]["experiments"].as_array().map(Vec::len), Some(0), "{}", ran.out);
}

/// Both wait for half a minute, so they do it at once.
#[test]
fn a_lost_route_and_an_interface_that_goes_down_end_it_with_the_reason_and_once_they_are_back_it_goes_on() {
    let _machine = shared();
    std::thread::scope(|scope| {
        scope.spawn(a_route_is_lost);
        an_interface_goes_down();
    });
}

fn a_route_is_lost() {
    let (ran, _home) = script(
        "tuning --levels mss=1000,1200 --budget '200 trials' > out 2> told & pid=$!\n\
         after 7; ip route add unreachable 198.19.0.1/32; ip route flush cache\n\
         wait $pid; echo \"lost $?\" >&2; cat told >&2; ip route del unreachable 198.19.0.1/32\n\
         snap | diff before - >&2 && echo unchanged >&2\n\
         cat out; \"$WT\" journal show last --json; tune --resume last --budget '6 trials'; echo \"resumed $?\" >&2",
    );
    assert!(ran.err.contains("unchanged") && ran.err.contains("resumed 1"), "{}", ran.err);
    assert!(ran.err.contains("lost 1") && ran.err.contains("the network is lost: this host"), "{}", ran.err);
    lost_and_resumed(&ran);
}

/// What a lost network leaves: the report, the journal and the report of what went on.
fn lost_and_resumed(ran: &RunOutput) {
    assert!(ran.err.contains("windtunnel tune --resume 2"), "{}", ran.err);
    let objects = objects(ran);
    let [report, shown, resumed] = objects.as_slice() else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!((&report["verdict"]["kind"], &shown["experiment"]["state"]), (&"stopped".into(), &"stopped".into()));
    let warning = report["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("the network is lost"), "{report:#}");
    assert!(count(shown, "completed") >= 6 && count(shown, "running") == 0, "{shown:#}");
    // The one in which it was lost says nothing, and none was taken for a server that refuses.
    assert_eq!((count(shown, "aborted"), count(shown, "failed"), count(shown, "incomplete")), (1, 0, 0), "{shown:#}");
    assert!(resumed["rounds"].as_u64().unwrap() >= 2, "{resumed:#}");
}

/// A route of ours goes with it.
fn an_interface_goes_down() {
    // What goes with the interface whoever is running is put back by the script, as an administrator would.
    let (ran, _home) = script(
        "dev=$(ip -o route get 198.19.0.1 | sed 's/.* dev \\([^ ]*\\).*/\\1/'); ip -4 route save table main > routes\n\
         up() { ip link set $dev up; ip -4 route restore < routes 2>/dev/null; }\n\
         four() { ip -4 route show table all; sysctl net.ipv4.tcp_rmem; }\n\
         ip link set $dev down; up; four > before4\n\
         tuning --levels initrwnd=4,16 --budget '200 trials' > out 2> told & pid=$!\n\
         after 7; ip link set $dev down\n\
         wait $pid; echo \"lost $?\" >&2; cat told >&2; up\n\
         four | diff before4 - >&2 && echo unchanged >&2\n\
         cat out; \"$WT\" journal show last --json; tune --resume last --budget '6 trials'; echo \"resumed $?\" >&2\n\
         four | diff before4 - >&2 && echo unchanged >&2",
    );
    assert!(ran.err.matches("unchanged").count() == 2 && ran.err.contains("resumed 1"), "{}", ran.err);
    assert!(ran.err.contains("lost 1") && ran.err.contains("the network is lost: the interface "), "{}", ran.err);
    lost_and_resumed(&ran);
}

#[test]
fn a_network_that_comes_back_soon_costs_one_trial() {
    let _machine = shared();
    let (ran, _home) = script(
        "tuning --levels mss=1000 --budget '16 trials' > out & pid=$!\n\
         after 6; ip route add unreachable 198.19.0.1/32; ip route flush cache; sleep 2; ip route del unreachable 198.19.0.1/32\n\
         wait $pid; echo \"over $?\" >&2; \"$WT\" journal show last --json",
    );
    assert!(ran.err.contains("over 1"), "{}{}", ran.out, ran.err);
    let objects = objects(&ran);
    let [shown] = objects.as_slice() else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!(shown["experiment"]["state"], "finished", "{shown:#}");
    assert_eq!((count(shown, "invalid"), count(shown, "aborted"), count(shown, "failed")), (1, 0, 0), "{shown:#}");
}

#[test]
fn a_disk_that_fills_up_ends_it_with_a_clear_error_and_what_was_measured_is_there() {
    let _machine = shared();
    let (ran, _home) = script(
        "mkdir small; cat > inside <<'END'\n\
         mount -t tmpfs -o size=400k none small || exit 9\n\
         tune --levels initrwnd=4,8,16,32 --budget '400 trials' --journal small/j > /dev/null 2> told; echo \"full $?\" >&2; cat told >&2\n\
         df small | tail -n 1 >&2\n\
         cp small/j* . && \"$WT\" journal show last --json --journal j\n\
         tune --resume last --budget '10 trials' --journal j; echo \"resumed $?\" >&2\n\
         END\n\
         cat > all <<END\n\
         tune() { \"\\$WT\" tune http://server:8080/file --quiet --json --pause 20ms --no-probes \"\\$@\"; }\n\
         END\n\
         cat inside >> all; unshare --mount sh all\n\
         snap | diff before - >&2 && echo unchanged >&2",
    );
    assert!(ran.err.contains("full 3") && ran.err.contains("no space left for the journal"), "{}", ran.err);
    assert!(ran.err.contains("unchanged") && ran.err.contains("resumed 1"), "{}", ran.err);
    let objects = objects(&ran);
    let [shown, resumed] = objects.as_slice() else { panic!("{}{}", ran.out, ran.err) };
    assert!(count(shown, "completed") >= 6 && count(shown, "running") == 0, "{shown:#}");
    assert!(resumed["rounds"].as_u64().unwrap() >= 2, "{resumed:#}");
}
