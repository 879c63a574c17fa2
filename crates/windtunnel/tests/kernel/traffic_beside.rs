//! `windtunnel traffic` beside BPF programs of others that see the same connections. Needs root.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, binary, ran};
use serde_json::Value;
use std::process::{Command, Stdio};
use wt_testing::require;

fn available() -> Result<(), String> {
    let missing = wt_bpf::missing_traffic_capabilities();
    if !missing.is_empty() {
        return Err(format!("{} missing", missing.join(", ")));
    }
    wt_bpf::TrafficProgram::unavailable().map_or(Ok(()), Err)
}

/// Runs a shell script with the program, a Python script and a folder of its own.
fn script(shell: &str, python: &str) -> RunOutput {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin\n{shell}")])
        .env("WT", binary())
        .env("SCRIPT", python)
        .env("FOLDER", folder.path())
        .env("HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    ran(output)
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["self_checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()
}

/// Another control-group hierarchy is all that this sees: what it attaches touches nobody else.
const SECLUDED: &str = r#"
groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts); own=$groups$(sed -n 's/^0:://p' /proc/self/cgroup)
group=$groups/wt-beside-$$; mkdir $group && echo $$ > $group/cgroup.procs || exit 9
GROUPS_AT=$groups unshare -Cmn python3 -c "$SCRIPT" "$WT"; code=$?
echo $$ > $own/cgroup.procs; rmdir $group; exit $code
"#;

/// A program as a tuner has it, that gives every new connection reno; attached as tuners do, without a link.
const BESIDE: &str = r#"
import json, os, signal, socket, subprocess, sys, threading
def must(line, **more):
    done = subprocess.run(line, shell=True, capture_output=True, text=True, **more)
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout
groups = os.environ["GROUPS_AT"]
must(f"umount -l {groups}; mount -t cgroup2 none {groups} && mount -t bpf none /sys/fs/bpf && ip link set lo up")
must("ip addr add 192.0.2.1/32 dev lo && ip route add local 11.0.0.0/8 dev lo && sysctl -qw net.ipv4.tcp_congestion_control=cubic || true")
open("tuner.c", "w").write("""
static long (*set)(void *, int, int, void *, int) = (void *)49;
__attribute__((section("sockops"), used)) int conn_tuner(unsigned *s)
{ char reno[16] = "reno"; if (s[0] == 5) set(s, 6, 13, reno, 16); return 1; }
char tuner_license[] __attribute__((section("license"), used)) = "GPL";
""")
must("clang -O2 -target bpf -c tuner.c -o tuner.o && bpftool prog load tuner.o /sys/fs/bpf/tuner type sockops")
attach = f"cgroup attach {groups} sock_ops pinned /sys/fs/bpf/tuner multi"
below = os.path.join(groups, f"wt-below-{os.getpid()}")
os.mkdir(below)
must(f"bpftool cgroup attach {below} sock_ops pinned /sys/fs/bpf/tuner")
argv = [sys.argv[1], "traffic", "start", "--port", "8080", "--levels", "cc=cubic,reno", "--unit", "connection", "--epoch", "1h", "--no-ramp",
        "--age", "1s", "--json-stream"]
refused_below = subprocess.run(argv, capture_output=True, text=True)
must(f"bpftool cgroup detach {below} sock_ops pinned /sys/fs/bpf/tuner")
os.rmdir(below)
must("bpftool " + attach)
refused = subprocess.run(argv, capture_output=True, text=True)
plan = json.loads(subprocess.run([*argv, "--dry-run"], capture_output=True, text=True).stdout)
traffic = subprocess.Popen([*argv, "--beside-programs"], stdout=subprocess.PIPE, text=True)
for line in traffic.stdout:
    if json.loads(line).get("event") == "epoch":
        break
# Of two, the one that came later has the last word.
must(f"bpftool cgroup detach {groups} sock_ops pinned /sys/fs/bpf/tuner && bpftool {attach}")
server = socket.create_server(("192.0.2.1", 8080), backlog=100)
for number in range(60):
    client = socket.socket()
    client.bind((f"11.0.{number}.1", 0))
    client.connect(("192.0.2.1", 8080))
    connection, _ = server.accept()
    connection.sendall(b"x" * 1000)
    connection.close()
    while client.recv(4096):
        pass
    client.close()
traffic.send_signal(signal.SIGINT)
report = json.loads(traffic.communicate()[0].splitlines()[-1])
print(json.dumps({"below": [refused_below.returncode, refused_below.stderr], "code": refused.returncode, "said": refused.stdout + refused.stderr, "plan": plan["other_programs"], "report": report}))
"#;

#[test]
fn beside_another_program_it_begins_only_if_asked_and_what_that_changes_isnt_taken_for_the_arms() {
    require!("bpf", available());
    let tool = Command::new("sh").args(["-c", "PATH=$PATH:/usr/sbin bpftool version"]).output().unwrap();
    require!("bpftool", if tool.status.success() { Ok(()) } else { Err("bpftool isn't installed") });
    let ran = script(SECLUDED, BESIDE);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let found: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!(found["code"], 3, "{found:#}");
    let below = &found["below"];
    assert!(below[0] == 3 && below[1].as_str().unwrap().contains("conn_tuner (program "), "in a group below: {below}");
    let said = found["said"].as_str().unwrap();
    assert!(said.contains("conn_tuner (program ") && said.contains("--beside-programs"), "{said}");
    assert!(found["plan"][0].as_str().unwrap().starts_with("conn_tuner (program "), "{found:#}");
    let arms = found["report"]["arms"].as_array().unwrap();
    let of = |field: &str| arms.iter().map(|arm| arm[field].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("recorded").iter().sum::<u64>(), 60, "{found:#}");
    assert_eq!(of("not_compliant"), [of("recorded")[0], 0], "all of cubic had reno in the end: {found:#}");
    assert!(of("recorded")[0] > 5, "{found:#}");
    assert_eq!(check(&found["report"], "compliance")["ok"], false, "{found:#}");
}
