//! The host's settings in a namespace, so that nothing of this machine is touched.

use super::{RunOutput, binary, ran};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A namespace with a default route of each family, and what is in force in it.
pub(crate) const WORLD: &str = r#"
set -e
export PATH="$PATH:/usr/sbin:/sbin"
ip link set lo up
ip link add v0 type veth peer name v1
echo 1 > /proc/sys/net/ipv6/conf/v0/addr_gen_mode; echo 1 > /proc/sys/net/ipv6/conf/v1/addr_gen_mode
ip link set v0 up; ip link set v1 up
ip addr add 10.0.0.1/24 dev v0
ip addr add 2001:db8::1/64 dev v0 nodad
ip route add default via 10.0.0.2
ip -6 route add default via 2001:db8::2
wt() { "$WT" settings "$@"; }
# Congestion controls of our own are registered for the whole machine, by whatever else runs on it meanwhile.
snap() {
    sysctl -a 2>/dev/null | grep '^net\.' | grep -v -e random -e flush -e hash_seed | sed '/_congestion_control/s/ wt_[a-z0-9_]*//g'
    ip route show table all; ip -6 route show table all; ip -d link; ip addr; tc qdisc; ethtool -k v0 2>/dev/null || true
}
# Waits until nobody guards a change any more.
unguarded() { flock "$STATE/checkpoints/$1/guard.lock" true; flock "$STATE/checkpoints/$1/guard.lock" true; }
set +e
"#;

/// A directory for state and configuration.
pub(crate) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir_all(directory.path().join("root/etc/sysctl.d")).expect("a directory in it");
    directory
}

/// Runs a script in a new namespace, as root of it.
pub(crate) fn script(directory: &Path, text: &str) -> RunOutput {
    script_as(&["-Urnm"], directory, text)
}

/// The same, with other arguments of unshare(1).
pub(crate) fn script_as(how: &[&str], directory: &Path, text: &str) -> RunOutput {
    let output = Command::new("unshare")
        .args(how)
        .args(["sh", "-c", &format!("{WORLD}{text}")])
        .env("WT", binary())
        .env("STATE", directory.join("state"))
        .env("ROOT", directory.join("root"))
        .env("WINDTUNNEL_STATE_DIR", directory.join("state"))
        .env("WINDTUNNEL_ROOT", directory.join("root"))
        .env("HOME", directory)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("unshare, of util-linux");
    ran(output)
}

/// Runs a script whose only output is one JSON object.
pub(crate) fn json(directory: &Path, text: &str) -> Value {
    let ran = script(directory, text);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

pub(crate) fn rows<'a>(value: &'a Value, list: &str) -> Vec<&'a Value> {
    value[list].as_array().unwrap_or_else(|| panic!("{list}: {value}")).iter().collect()
}

pub(crate) fn row<'a>(value: &'a Value, list: &str, key: &str) -> &'a Value {
    rows(value, list).into_iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}: {value}"))
}
