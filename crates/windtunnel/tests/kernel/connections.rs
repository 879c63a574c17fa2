//! Settings of connections with a target after a boot: the unit that a confirmation writes, run as it stands there.

use crate::common::{binary, ran};
use std::process::Command;
use wt_testing::require;

/// Rules are files in a bpf file system of this mount namespace's own.
const SCRIPT: &str = r#"
set -e; ip link set lo up; ip addr add 192.0.2.9/32 dev lo; mkdir -p "$WINDTUNNEL_ROOT/run/systemd/system" "$WINDTUNNEL_ROOT/etc/sysctl.d"
wt() { "$WT" settings "$@"; }
rules() { ls /sys/fs/bpf/windtunnel-connections 2>/dev/null | sed 's/^[0-9a-f]*-//'; }
units=$WINDTUNNEL_ROOT/etc/systemd/system; unit=$units/windtunnel-connections-192.0.2.9.service
mount -t bpf bpf /sys/fs/bpf
wt apply rwin=8192 --to 192.0.2.9 --yes > out
wt apply notsent-lowat=16384 --to 192.0.2.9 --confirm-within 10m > out; wt confirm --json
rules; cat "$units"/sysinit.target.d/*.conf | grep Wants; systemd-analyze verify --man=no "$unit"
# What a boot leaves of it: the files.
umount /sys/fs/bpf; mount -t bpf bpf /sys/fs/bpf; test -z "$(rules)"
eval "$(sed -n 's/%%/%/g; s/^ExecStart=//p' "$unit")"; rules; wt verify > out && echo holds
wt undo > out; rules; grep -c notsent "$unit" || echo one left
wt undo > out; rules; find "$units" -type f
wt apply rwin=8192 --to 192.0.2.9 --yes > out; wt apply rwin=auto --to 192.0.2.9 --yes > out; test ! -e "$unit" && echo gone
wt undo > out; test -e "$unit" && rules
wt plan sndbuf=65536 --to 192.0.2.8 --json | grep -o 'a unit of systemd from each boot on'
WINDTUNNEL_ROOT=$PWD wt plan sndbuf=65536 --to 192.0.2.8 --json | grep -o 'which the next boot ends'
"#;

#[test]
fn a_confirmed_rule_is_attached_again_at_boot_until_it_is_undone() {
    let missing = wt_bpf::missing_capabilities();
    require!("bpf", if missing.is_empty() { Ok(()) } else { Err(format!("{} missing", missing.join(", "))) });
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "-n", "sh", "-c", SCRIPT]).current_dir(home.path()).env("WT", binary());
    command.env("WINDTUNNEL_ROOT", home.path().join("root")).env("WINDTUNNEL_STATE_DIR", home.path().join("state"));
    let ran = ran(command.output().unwrap());
    let both = "c0000209-32-w8192-l16384";
    let wanted = [
        both,
        "Wants=windtunnel-connections-192.0.2.9.service",
        both,
        "holds",
        "c0000209-32-w8192",
        "0",
        "one left",
        "gone",
        "c0000209-32-w8192",
        // What a plan says of it before.
        "a unit of systemd from each boot on",
        "which the next boot ends",
    ];
    let (first, rest) = ran.out.split_once('\n').unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    let confirmed: serde_json::Value = serde_json::from_str(first).unwrap();
    let lines: Vec<&str> = rest.lines().collect();
    let files = confirmed["files"].to_string();
    assert!(files.contains("192.0.2.9.service") && files.contains("sysinit.target.d"), "{confirmed}");
    assert_eq!(lines, wanted, "{} {}{}", ran.code, ran.out, ran.err);
}
