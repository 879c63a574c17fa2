//! Exports are read back by those that they are written for: what they understand is what was asked for.
//!
//! Each needs its consumer, which `scripts/setup.sh test` installs; without it the test fails and says which.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::host::{directory, json, rows, script, script_as};
use serde_json::{Value, json};
use std::path::Path;

/// Of each kind some: the host, a device, routes of both families.
const SETTINGS: &str = "mtu=1400 mss=from-mtu initcwnd=20 initrwnd=30 quickack=on rto-min=300ms sack=off ttl=32 \
    rwin=256KiB pmtud=off mtu-probing=on timestamps=off slow-start-after-idle=off txqueuelen=500 qdisc=pfifo cc=reno";

/// Exports, writes the files below `out`, and returns the object.
fn exported(directory: &Path, format: &str, settings: &str) -> Value {
    let export = json(directory, &format!("wt export --to {format} --json {settings}"));
    for file in rows(&export, "files") {
        let path = directory.join("out").join(file["path"].as_str().unwrap().trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file["content"].as_str().unwrap()).unwrap();
    }
    export
}

/// Asserts that after a script, what was asked for is so, but for what the export says that it can't express.
fn assert_in_force(export: &Value, directory: &Path, script: &str) {
    let plan = json(directory, &format!("{{ {script}\n}} >&2 || exit 9; wt plan --json {SETTINGS}"));
    let skipped: Vec<&Value> = rows(export, "skipped").into_iter().map(|row| &row["key"]).collect();
    let told = assert_plan(&plan, &skipped);
    assert!(told >= 4, "{export:#}");
}

/// Asserts that a plan has nothing left to do but for these keys; returns how many changes it would have made.
fn assert_plan(plan: &Value, skipped: &[&Value]) -> usize {
    let told: Vec<&Value> =
        rows(plan, "changes").into_iter().filter(|change| !skipped.contains(&&change["key"])).collect();
    let left: Vec<&&Value> = told.iter().filter(|change| change["unchanged"] != true).collect();
    assert!(left.is_empty(), "not in force: {left:#?}");
    told.len()
}

#[test]
fn procps_and_systemd_read_the_drop_in_for_sysctl_d() {
    let directory = directory();
    let export = exported(directory.path(), "sysctl.d", SETTINGS);
    for reader in ["sysctl -p", "/lib/systemd/systemd-sysctl"] {
        let read = format!("{reader} \"$PWD/out/etc/sysctl.d/90-windtunnel.conf\"");
        assert_in_force(&export, directory.path(), &read);
    }
}

#[test]
fn ip_and_tc_run_the_script_for_iproute2() {
    let directory = directory();
    let export = exported(directory.path(), "iproute2", SETTINGS);
    assert_in_force(&export, directory.path(), "sh out/windtunnel-iproute2.sh");
}

#[test]
fn systemd_networkd_configures_a_device_by_its_drop_in() {
    let directory = directory();
    let export = exported(directory.path(), "networkd", SETTINGS);
    let base = directory.path().join("out/etc/systemd/network/70-v0.network");
    std::fs::write(
        &base,
        "[Match]\nName=v0\n[Network]\nAddress=10.0.0.1/24\nAddress=2001:db8::1/64\nIPv6AcceptRA=no\n",
    )
    .unwrap();
    // It drops its privileges if it is root, which a user namespace has no other users for.
    let ran = script_as(
        &["--map-user=65534", "--map-group=65534", "--keep-caps", "-Unm"],
        directory.path(),
        &format!(
            "ip addr flush dev v0; ip link set v0 down
             mount -t tmpfs none /run && mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
             mount -t sysfs -o ro none /sys || mount --bind -o ro /sys /sys
             mount --bind out/etc/systemd/network /etc/systemd/network || exit 9
             SYSTEMD_LOG_TARGET=console /lib/systemd/systemd-networkd > log 2>&1 & pid=$!
             for i in $(seq 100); do
                 ip route show default | grep -q . && ip -6 route show default | grep -q . && break
                 sleep 0.1
             done
             kill $pid; cat log >&2
             wt plan --json {SETTINGS}"
        ),
    );
    let wrong = ran.err.lines().find(|line| line.contains("90-windtunnel") && line.contains("ignoring"));
    assert_eq!(wrong, None, "{}", ran.err);
    let plan = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    let link = [json!("txqueuelen")];
    let skipped: Vec<&Value> = rows(&export, "skipped").into_iter().map(|row| &row["key"]).chain(&link).collect();
    assert!(assert_plan(&plan, &skipped) >= 9, "{plan:#}");
    let limits = script(directory.path(), "cat out/etc/systemd/network/70-v0.network.d/90-windtunnel.conf").out;
    assert!(limits.contains("PacketLimit=500"), "a queue without a limit lets nothing through: {limits}");
}

#[test]
fn netplan_generates_what_systemd_networkd_reads() {
    let directory = directory();
    let export = exported(directory.path(), "netplan", SETTINGS);
    let ran = script(
        directory.path(),
        "chmod 600 out/etc/netplan/*; netplan generate --root-dir out >&2 || exit 9; cat out/run/systemd/network/*",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    for wanted in [
        "MTUBytes=1400",
        "Gateway=10.0.0.2",
        "Gateway=2001:db8::2",
        "InitialCongestionWindow=20",
        "InitialAdvertisedReceiveWindow=30",
    ] {
        assert!(ran.out.contains(wanted), "{wanted}: {}{export:#}", ran.out);
    }
    assert_eq!(ran.out.matches("InitialCongestionWindow=20").count(), 2, "IPv4 and IPv6: {}", ran.out);
}

#[test]
fn networkmanagers_own_library_reads_the_keyfile() {
    /// Prints what libnm reads, warnings included.
    const READ: &str = r#"
import gi, json, sys
gi.require_version("NM", "1.0")
from gi.repository import GLib, NM
keyfile = GLib.KeyFile()
keyfile.load_from_file(sys.argv[1], GLib.KeyFileFlags.NONE)
warnings = []
def handle(keyfile, connection, kind, data, user=None):
    warnings.append(data.warn_get()[0])
    return True
connection = NM.keyfile_read(keyfile, "/", NM.KeyfileHandlerFlags.NONE, handle)
connection.normalize()
connection.verify()
routes = {}
for setting in (connection.get_setting_ip4_config(), connection.get_setting_ip6_config()):
    for route in (setting.get_route(at) for at in range(setting.get_num_routes())):
        routes[route.get_dest()] = {name: route.get_attribute(name).unpack() for name in route.get_attribute_names()}
print(json.dumps({"warnings": warnings, "routes": routes, "mtu": connection.get_setting_wired().get_mtu(),
    "qdisc": connection.get_setting_tc_config().get_qdisc(0).get_kind()}))
"#;
    let directory = directory();
    let export = exported(directory.path(), "networkmanager", SETTINGS);
    std::fs::write(directory.path().join("read.py"), READ).unwrap();
    let path = rows(&export, "files")[0]["path"].as_str().unwrap();
    let read = json(directory.path(), &format!("/usr/bin/python3 read.py \"$PWD/out{path}\""));
    assert_eq!(read["warnings"], json!([]), "{read:#}");
    assert_eq!((&read["mtu"], &read["qdisc"]), (&json!(1400), &json!("pfifo")), "{read:#}");
    for (destination, mss) in [("0.0.0.0", 1360), ("::", 1340)] {
        let wanted = json!({"initcwnd": 20, "initrwnd": 30, "advmss": mss, "quickack": true, "rto_min": 300});
        assert_eq!(read["routes"][destination], wanted, "{read:#}");
    }
}

#[test]
fn a_registry_takes_the_reg_file_and_gives_the_same_values_back() {
    let directory = directory();
    let export = exported(directory.path(), "windows-reg", SETTINGS);
    assert!(
        rows(&export, "files")[0]["content"].as_str().unwrap().starts_with("Windows Registry Editor Version 5.00\r\n")
    );
    std::fs::write(directory.path().join("hive"), empty_hive()).unwrap();
    // The keys above ours, which every Windows has.
    let mut parents = "Windows Registry Editor Version 5.00\n".to_owned();
    let mut key = r"HKEY_LOCAL_MACHINE\SYSTEM".to_owned();
    for name in ["CurrentControlSet", "Services", "Tcpip", "Parameters", "Interfaces"] {
        key.push_str(&format!(r"\{name}"));
        parents.push_str(&format!("\n[{key}]\n"));
    }
    std::fs::write(directory.path().join("parents.reg"), parents).unwrap();
    let ran = script(
        directory.path(),
        r"for file in parents.reg out/windtunnel.reg; do
              hivexregedit --merge --prefix 'HKEY_LOCAL_MACHINE\SYSTEM' hive $file || exit 9
          done
          hivexregedit --export --prefix 'HKEY_LOCAL_MACHINE\SYSTEM' hive '\CurrentControlSet\Services\Tcpip\Parameters'",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    for (name, value) in [
        ("DefaultTTL", 32),
        ("EnablePMTUBHDetect", 1),
        ("EnablePMTUDiscovery", 0),
        ("GlobalMaxTcpWindowSize", 262_144),
        ("TcpWindowSize", 262_144),
        ("SackOpts", 0),
        ("Tcp1323Opts", 1),
        ("MTU", 1_400),
    ] {
        assert!(ran.out.contains(&format!("\"{name}\"=dword:{value:08x}")), "{name}: {}", ran.out);
    }
}

#[test]
fn freebsd_gets_its_own_congestion_controls_whatever_this_kernel_has() {
    let directory = directory();
    let text = |settings: &str| {
        let export = json(directory.path(), &format!("wt export --to freebsd --json {settings}"));
        assert!(rows(&export, "skipped").is_empty(), "{export:#}");
        rows(&export, "files").into_iter().map(|file| file["content"].as_str().unwrap().to_owned()).collect::<String>()
    };
    for name in ["chd", "hd", "htcp", "cdg", "vegas", "cubic"] {
        let file = text(&format!("cc={name}"));
        assert!(file.contains(&format!("cc_{name}_load=\"YES\"")), "{file}");
        assert!(file.contains(&format!("net.inet.tcp.cc.algorithm={name}")), "{file}");
    }
    for name in ["wt_chd_hz100", "chd@freebsd-hz100"] {
        let file = text(&format!("cc={name} rwin=8192 sndbuf=1MiB"));
        for line in ["cc_chd_load=\"YES\"", "kern.hz=\"100\"", "recvspace=8192", "recvbuf_max=8192", "sendspace=32768"]
        {
            assert!(file.contains(line), "{name}: {line}: {file}");
        }
    }
    let unknown = script(directory.path(), "wt export --to freebsd cc=chd@nonsense; true").err;
    assert!(unknown.contains("cc list"), "{unknown}");
    let refused = json(directory.path(), "wt export --to freebsd --json cc=illinois");
    assert_eq!(rows(&refused, "skipped").len(), 1, "{refused:#}");
}

#[test]
fn windows_98_gets_strings_and_a_file_that_takes_them_back() {
    let directory = directory();
    let export = json(directory.path(), &format!("wt export --to windows-98-reg --json {SETTINGS}"));
    let files = rows(&export, "files");
    let text = |at: usize| files[at]["content"].as_str().unwrap();
    for (name, value) in [
        ("DefaultRcvWindow", 262_144),
        ("DefaultTTL", 32),
        ("MaxMTU", 1_400),
        ("PMTUDiscovery", 0),
        ("PMTUBlackHoleDetect", 1),
        ("SackOpts", 0),
        ("Tcp1323Opts", 1),
    ] {
        assert!(text(0).contains(&format!("\"{name}\"=\"{value}\"\r\n")), "{name}: {}", text(0));
        assert!(text(1).contains(&format!("\"{name}\"=-\r\n")), "{name}: {}", text(1));
    }
    assert!(files.len() == 2 && text(0).starts_with("REGEDIT4\r\n"), "{export:#}");
}

/// A registry without any key but its root.
fn empty_hive() -> Vec<u8> {
    const PAGE: usize = 4_096;
    const NONE: u32 = u32::MAX;
    let mut hive = vec![0_u8; 2 * PAGE];
    let mut put = |at: usize, bytes: &[u8]| hive[at..at + bytes.len()].copy_from_slice(bytes);
    let number = |value: u32| value.to_le_bytes();
    put(0, b"regf");
    for (at, value) in [(4, 1), (8, 1), (20, 1), (24, 5), (32, 1), (36, 0x20), (40, 0x1000), (44, 1)] {
        put(at, &number(value));
    }
    put(PAGE, b"hbin");
    put(PAGE + 8, &number(0x1000));
    // The root: 88 bytes at 0x20, its security descriptor at 0x78; the rest is free.
    let root = PAGE + 0x20;
    put(root, &(-88_i32).to_le_bytes());
    put(root + 4, b"nk");
    put(root + 6, &0x2c_u16.to_le_bytes());
    for (at, value) in [(20, NONE), (32, NONE), (36, NONE), (44, NONE), (48, 0x78), (52, NONE)] {
        put(root + at, &number(value));
    }
    put(root + 76, &1_u16.to_le_bytes());
    put(root + 80, b"R");
    let security = PAGE + 0x78;
    put(security, &(-48_i32).to_le_bytes());
    put(security + 4, b"sk");
    for (at, value) in [(8, 0x78), (12, 0x78), (16, 1), (20, 20)] {
        put(security + at, &number(value));
    }
    put(PAGE + 0xa8, &number(0x1000 - 0xa8));
    let sum = hive[..508].chunks_exact(4).fold(0, |sum, word| sum ^ u32::from_le_bytes(word.try_into().unwrap()));
    hive[508..512].copy_from_slice(&number(sum));
    hive
}

#[test]
fn what_a_target_cannot_express_is_listed_and_the_rest_is_there() {
    let directory = directory();
    let plan = json(directory.path(), &format!("wt plan --json {SETTINGS}"));
    let keys: std::collections::BTreeSet<&str> =
        rows(&plan, "changes").into_iter().map(|change| change["key"].as_str().unwrap()).collect();
    // The word that stands for each setting there; what isn't here must be listed.
    for (format, words) in [
        ("sysctl.d", &[("sack", "tcp_sack"), ("ttl", "ip_default_ttl"), ("rwin", "tcp_rmem"), ("cc", "reno")][..]),
        (
            "nmstate",
            &[
                ("mtu", "mtu: 1400"),
                ("initcwnd", "initcwnd: 20"),
                ("initrwnd", "initrwnd: 30"),
                ("mss", "advmss: 1360"),
                ("quickack", "quickack: true"),
            ],
        ),
        (
            "windows-powershell",
            &[
                ("initcwnd", "-InitialCongestionWindowMss 20"),
                ("timestamps", "-Timestamps Disabled"),
                ("mtu", "-NlMtuBytes 1400"),
                ("ttl", "-DefaultHopLimit 32"),
                ("rto-min", "-MinRtoMs 300"),
                ("slow-start-after-idle", "-CwndRestart False"),
                ("cc", "-CongestionProvider NewReno"),
            ],
        ),
        (
            "freebsd",
            &[
                ("initcwnd", "initcwnd_segments=20"),
                ("sack", "sack.enable=0"),
                ("ttl", "ip.ttl=32"),
                ("cc", "cc_newreno_load=\"YES\""),
                ("mtu", "mtu 1400"),
                ("rwin", "recvbuf_max=262144"),
                ("quickack", "delayed_ack=0"),
                ("timestamps", "rfc1323=0"),
                ("pmtud", "path_mtu_discovery=0"),
                ("mtu-probing", "pmtud_blackhole_detection=1"),
                ("rto-min", "rexmit_min=300"),
            ],
        ),
        (
            "macos",
            &[
                ("sack", "tcp.sack=0"),
                ("mtu", "-setMTU \"$interface\" 1400"),
                ("ttl", "ip.ttl=32"),
                ("rwin", "autorcvbufmax=262144"),
                ("pmtud", "path_mtu_discovery=0"),
                ("mtu-probing", "pmtud_blackhole_detection=1"),
            ],
        ),
    ] {
        let export = exported(directory.path(), format, SETTINGS);
        let text: String = rows(&export, "files").into_iter().map(|file| file["content"].as_str().unwrap()).collect();
        let listed: Vec<&str> = rows(&export, "skipped").into_iter().map(|row| row["key"].as_str().unwrap()).collect();
        for (key, word) in words {
            assert!(text.contains(word), "{format}: {key}: {text}");
        }
        for key in &keys {
            let expressed = words.iter().any(|(known, _)| known == key) || format == "sysctl.d";
            assert!(expressed || listed.contains(key) || text.contains(key), "{format} drops {key}: {text}{listed:?}");
        }
        // A parameter that is given twice is an error to PowerShell.
        let command = text.lines().find(|line| line.starts_with("Set-NetTCPSetting")).unwrap_or_default();
        let mut names: Vec<&str> = command.split(' ').filter(|word| word.starts_with('-')).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{command}");
        for file in rows(&export, "files").into_iter().filter(|file| file["path"].as_str().unwrap().ends_with(".sh")) {
            let path = file["path"].as_str().unwrap();
            assert_eq!(script(directory.path(), &format!("sh -n out/{path}")).code, 0, "{text}");
        }
    }
}

#[test]
fn a_plan_names_whoever_configures_the_device_and_what_to_write_into_its_file() {
    for (state, manager, path, words) in [
        (
            "mkdir -p $ROOT/run/systemd/netif/links
             printf 'ADMIN_STATE=configured\\nNETWORK_FILE=/etc/systemd/network/10-lan.network\\n' > $ROOT/run/systemd/netif/links/$n",
            "systemd-networkd",
            "/etc/systemd/network/10-lan.network.d/90-windtunnel.conf",
            ["[Route]\nGateway=10.0.0.2\nInitialCongestionWindow=20\n", "InitialAdvertisedReceiveWindow=30"],
        ),
        (
            "mkdir -p $ROOT/run/systemd/netif/links
             printf 'ADMIN_STATE=configured\\nNETWORK_FILE=/run/systemd/network/10-netplan-v0.network\\n' > $ROOT/run/systemd/netif/links/$n",
            "netplan",
            "/etc/netplan/90-windtunnel.yaml",
            ["congestion-window: 20", "advertised-receive-window: 30"],
        ),
        (
            "mkdir -p $ROOT/run/NetworkManager/devices
             printf '[device]\\nmanaged=true\\nconnection-uuid=1\\n' > $ROOT/run/NetworkManager/devices/$n",
            "NetworkManager",
            "/etc/NetworkManager/dispatcher.d/90-windtunnel",
            ["[ \"$1\" = v0 ]", "initcwnd 20 initrwnd 30"],
        ),
        (
            "mkdir -p $ROOT/run; echo 1 > $ROOT/run/dhclient.v0.pid",
            "dhclient",
            "/etc/dhcp/dhclient-exit-hooks.d/windtunnel",
            ["[ \"$interface\" = v0 ]", "initcwnd 20 initrwnd 30"],
        ),
        (
            "mkdir -p $ROOT/etc/network; echo 'iface v0 inet dhcp' > $ROOT/etc/network/interfaces",
            "ifupdown",
            "/etc/network/if-up.d/windtunnel",
            ["[ \"$IFACE\" = v0 ]", "initcwnd 20 initrwnd 30"],
        ),
    ] {
        let directory = directory();
        let plan = format!("n=$(ip -o link show v0 | cut -d: -f1)\n{state}\nwt plan initcwnd=20 initrwnd=30 --to default");
        let read = script(directory.path(), &format!("{plan} --json"));
        let report: Value =
            serde_json::from_str(&read.out).unwrap_or_else(|error| panic!("{error}: {}{}", read.out, read.err));
        let file = &report["lasting"][0];
        assert_eq!((&file["device"], &file["path"]), (&json!("v0"), &json!(path)), "{report:#}");
        let content = file["content"].as_str().unwrap();
        assert!(words.iter().all(|words| content.contains(words)), "{manager}: {content}");
        let warned = rows(&report, "risks").iter().any(|risk| {
            risk["key"] == "initcwnd" && risk["text"].as_str().is_some_and(|text| text.starts_with(manager))
        });
        assert!(warned, "{manager}: {report:#}");
        // What runs as a script is one.
        if content.starts_with("#!/bin/sh") {
            std::fs::write(directory.path().join("hook"), content).unwrap();
            assert_eq!(script(directory.path(), "sh -n hook").code, 0, "{content}");
        }
        let told = script(directory.path(), &plan);
        assert!(told.out.contains(&format!("It keeps this if {path} says")), "{}{}", told.out, told.err);
    }
}
