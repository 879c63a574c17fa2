//! A backup, changes by us and by others, and back: to the byte, or told.

use crate::common::host::{directory, script_as};
use std::collections::BTreeSet;
use wt_testing::require;

/// A kind of host: what makes it, what others change of it, and what of that no restoration brings back: a part of each line that
/// differs, and what is said of it.
struct Kind {
    name: &'static str,
    make: &'static str,
    others: &'static str,
    told: &'static [(&'static str, &'static str)],
}

/// Functions of the scripts, on a host with a default route of each family over v0.
const STEPS: &str = r#"
sysctl -qw net.ipv6.conf.default.accept_dad=0
pair() {
    ip link add $1 type veth peer name $2
    for device in $1 $2; do echo 1 > /proc/sys/net/ipv6/conf/$device/addr_gen_mode; ip link set $device up; done
}
# Everything; but for counters and timers, and for whether there is a signal.
all() {
    for family in -4 -6; do ip $family -d route show table all | sed 's/ linkdown//; s/ dead//'; ip $family rule | sed "s/^/$family rule /"; done
    ip -d link | sed 's/ state [A-Z]*//; s/,LOWER_UP//; s/NO-CARRIER,//; s/,M-DOWN//; s/[a-z_]*timer *[0-9.]*//g'
    ip -o addr | sed 's/[0-9]*sec//g'; tc qdisc; tc class show dev v0
    ip -o link | sed 's/^[0-9]*: \([^:@]*\).*/\1/' | while read -r device; do ethtool -k $device 2>/dev/null | sed "s/^/$device /"; done
    sysctl -a 2>/dev/null | grep '^net\.' | grep -v -e random -e flush -e hash_seed | sed '/_congestion_control/s/ wt_[a-z0-9_]*//g'
}
# What we change, too: of the routes, of the host, of a device.
ours() {
    wt apply initcwnd=20 mss=1000 --to default --yes && wt apply sack=off ttl=77 rwin=65536 --yes && wt apply mtu=1400 txqueuelen=50 --to v0 --yes
}
# A device that has just come up gets its link-local address and its route for multicast some time later, and the local route of an address
# comes after that.
unheard() {
    ip -o link show up | sed -n '/MULTICAST.*LOWER_UP/s/^[0-9]*: \([^:@]*\).*/\1/p' | while read -r device; do
        [ -z "$(ip -6 -o addr show dev $device scope link)" ] || ip -6 route show table local type multicast dev $device | grep -q . || echo $device
    done
}
settled() {
    for try in $(seq 500); do
        addresses=$(ip -6 -o addr show scope global; ip -6 -o addr show scope link); owned=$(echo "$addresses" | grep -c inet6)
        routes=$(ip -6 route show table local type local | grep -vc 'dev lo')
        case $addresses in *tentative*) ;; *) [ $owned != $routes ] || [ "$(unheard)" ] || return 0 ;; esac
        sleep 0.01
    done
    echo "addresses without routes:"; ip -6 addr; ip -6 route show table local; exit 1
}
must() { "$@" > out 2>&1 || { echo "failed: $*"; cat out; exit 1; }; }
"#;

/// The course: prints what differs after the restoration, then what was said.
const COURSE: &str = r#"
settled; all > before; must wt backup saved.json
must ours; others
all > changed; cmp -s before changed && { echo "nothing changed"; exit 1; }
wt restore saved.json --yes > said 2>&1 || { cat said; exit 1; }
all > after; diff before after | grep '^[<>]'; echo SAID; cat said
must wt undo; all > again; diff changed again | grep '^[<>]' > left; echo UNDONE; cat left
"#;

const KINDS: [Kind; 12] = [
    Kind {
        name: "veth pairs",
        make: "pair w0 w1; ip addr add 10.1.0.1/24 dev w0",
        others: "ip link set w0 mtu 1300; sysctl -qw net.ipv4.tcp_ecn=1; ip route del default; ip link set w1 txqlen 7",
        told: &[],
    },
    Kind {
        name: "bridge",
        make: "ip link add br0 type bridge; ip link set v1 master br0; ip link set br0 up; ip addr add 10.2.0.1/24 dev br0
               ip route add 10.20.0.0/16 via 10.2.0.9 initcwnd 7",
        others: "ip link set br0 mtu 1280; ip route del 10.20.0.0/16",
        told: &[],
    },
    Kind {
        name: "macvlan on a device",
        make: "ip link add m0 link v0 type macvlan mode bridge; ip link set m0 up; ip addr add 10.3.0.1/24 dev m0
               ip route add 10.30.0.0/16 dev m0 mtu 1300",
        others: "ip link set m0 mtu 1290; ip route change 10.30.0.0/16 dev m0 mtu 900; sysctl -qw net.ipv4.tcp_rmem='4096 8192 8192'",
        told: &[],
    },
    Kind {
        name: "tun, as of a VPN",
        make: "ip tuntap add dev t0 mode tun; ip link set t0 mtu 1420 up; ip addr add 10.4.0.1/24 dev t0
               ip route add 10.40.0.0/16 dev t0 advmss 1300",
        others: "ip link set t0 mtu 1380; ip route del 10.40.0.0/16",
        told: &[],
    },
    Kind {
        name: "vxlan and encapsulating routes",
        make: "ip link add x0 type vxlan id 3 dev v0 dstport 4789 remote 10.0.0.9; ip link set x0 up; ip addr add 10.12.0.1/24 dev x0
               ip route add 10.13.0.0/16 encap ip id 5 dst 10.0.0.2 dev v0",
        others: "ip link set x0 mtu 1300; ip route del 10.13.0.0/16; ip addr add 10.12.0.2/24 dev x0",
        told: &[("10.12.0.2", "the address 10.12.0.2/24 wasn't there, and stays: ip addr del 10.12.0.2/24 dev x0")],
    },
    Kind {
        name: "policy rules",
        make: "ip route add default via 10.0.0.7 table 100 initcwnd 5; ip rule add from 10.9.0.0/16 table 100
               ip -6 route add default via 2001:db8::7 table 100; ip -6 rule add from 2001:db8:9::/48 table 100",
        others: "ip rule del from 10.9.0.0/16 table 100; ip rule add from 10.8.0.0/16 table 100; ip route flush table 100
                 ip -6 route change default via 2001:db8::7 table 100 mtu 1300",
        told: &[
            ("from 10.9.0.0/16 lookup 100", "the rule \"32765: from 10.9.0.0/16 lookup 100\" is gone"),
            ("from 10.8.0.0/16 lookup 100", "the rule \"32765: from 10.8.0.0/16 lookup 100\" wasn't there, and stays"),
        ],
    },
    Kind {
        name: "several tables",
        make: "for table in 101 102 103 5000; do
                   ip route add 10.5.0.0/16 via 10.0.0.3 table $table metric 5 initcwnd $((table % 50 + 1))
                   ip -6 route add 2001:db8:5::/48 via 2001:db8::3 table $table; ip route add unreachable 10.6.0.0/16 table $table
               done",
        others: "ip route flush table 101; ip route change 10.5.0.0/16 via 10.0.0.4 table 102 metric 5
                 ip -6 route del 2001:db8:5::/48 table 103; ip route del unreachable 10.6.0.0/16 table 5000",
        told: &[],
    },
    Kind {
        name: "several link-locals",
        make: "pair w0 w1; pair w2 w3; ip -6 route add default via fe80::1 dev w0 metric 50; ip -6 route append default via fe80::1 dev w2 metric 60",
        others: "ip -6 route append fe80::/64 dev w2 proto kernel metric 256 mtu 1300; ip -6 route del default dev w0 metric 50
                 ip link set w2 mtu 1400; ip -6 route del fe80::/64 dev v0 proto kernel metric 256",
        told: &[],
    },
    Kind {
        name: "1,000 routes",
        make: "for n in $(seq 0 999); do
                   echo \"route add 10.$((64 + n / 250)).$((n % 250)).0/24 via 10.0.0.$((n % 200 + 3)) initcwnd $((n % 20 + 1))\"
               done | ip -batch -",
        others: "ip route flush root 10.64.0.0/16; ip route change 10.65.7.0/24 via 10.0.0.3; ip route add 10.99.0.0/16 via 10.0.0.3",
        told: &[],
    },
    Kind {
        name: "several hops, blackholes and nexthop objects",
        make: "ip route add 10.6.0.0/16 nexthop via 10.0.0.2 dev v0 weight 2 nexthop via 10.0.0.3 dev v0; ip route add blackhole 10.7.0.0/16
               ip route add 10.8.0.0/16 via 10.0.0.4 src 10.0.0.1 mtu lock 1300 realm 3; ip nexthop add id 3 via 10.0.0.2 dev v0
               ip -6 route add 2001:db8:6::/48 nexthop via 2001:db8::5 dev v0 nexthop via 2001:db8::6 dev v0 weight 3
               ip nexthop add id 4 via 10.0.0.3 dev v0; ip nexthop add id 9 group 3/4; ip route add 10.18.0.0/16 nhid 3; ip route add 10.19.0.0/16 nhid 9",
        others: "ip route change 10.6.0.0/16 nexthop via 10.0.0.2 dev v0 nexthop via 10.0.0.9 dev v0; ip route del blackhole 10.7.0.0/16
                 ip -6 route del 2001:db8:6::/48; ip route del 10.8.0.0/16; ip route del 10.18.0.0/16; ip route change 10.19.0.0/16 nhid 3",
        told: &[],
    },
    Kind {
        name: "qdiscs",
        make: "tc qdisc add dev v0 root tbf rate 1mbit burst 32k latency 50ms; ip link add i0 type ifb; ip link set i0 up
               tc qdisc add dev i0 root handle 7: htb default 1; tc class add dev i0 parent 7: classid 7:1 htb rate 1mbit",
        others: "tc qdisc replace dev v0 root pfifo limit 9; tc qdisc del dev i0 root; ip link set i0 txqlen 99",
        told: &[("i0", "the qdisc of i0 was htb and is pfifo_fast")],
    },
    Kind {
        name: "devices that are switched off",
        make: "pair w0 w1; ip addr add 10.1.0.1/24 dev w0; ip route add 10.11.0.0/16 via 10.1.0.9; ip addr add 10.1.1.1/24 dev v0
               ip route add 10.14.0.0/16 via 10.1.1.9",
        others: "ip link set w0 down; ip addr del 10.1.1.1/24 dev v0; ip route del 10.14.0.0/16",
        told: &[
            ("10.11.0.0/16", "10.11.0.0/16 via 10.1.0.9 dev w0: isn't there any more, as w0 is down"),
            (
                "10.14.0.0/16",
                "10.14.0.0/16 via 10.1.1.9 dev v0: isn't there any more, as its gateway 10.1.1.9 isn't reached directly",
            ),
            ("10.1.1.", "the address 10.1.1.1/24 is gone: ip addr add 10.1.1.1/24 dev v0"),
            ("w0", "the device w0 was up: ip link set dev w0 up"),
        ],
    },
];

/// Whether the kernel has what a kind of host needs.
fn makes(kind: &Kind) -> Result<(), String> {
    let ran = run(&format!("{STEPS}set -e\n{}", kind.make), directory().path());
    if ran.code == 0 { Ok(()) } else { Err(format!("{}: {}", kind.name, ran.err.trim())) }
}

fn run(text: &str, directory: &std::path::Path) -> crate::common::RunOutput {
    // The machine's root needs no namespace of users.
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    script_as(&[if root { "-nm" } else { "-Urnm" }], directory, text)
}

fn comes_back_or_is_told(kind: &Kind) {
    require!(if kind.make.contains("tuntap") { "tun" } else { "net-devices" }, makes(kind));
    let directory = directory();
    let text = format!("{STEPS}{}\nothers() {{ {}; }}\n{COURSE}", kind.make, kind.others);
    let ran = run(&text, directory.path());
    let name = kind.name;
    assert_eq!(ran.code, 0, "{name}: {}{}", ran.out, ran.err);
    let (differs, rest) = ran.out.split_once("SAID\n").unwrap_or_else(|| panic!("{name}: {}{}", ran.out, ran.err));
    let (said, undone) = rest.split_once("UNDONE\n").unwrap_or_else(|| panic!("{name}: {rest}{}", ran.err));
    let mut met = BTreeSet::new();
    for line in differs.lines() {
        let told = kind.told.iter().find(|(part, _)| line.contains(part));
        let (part, text) = told.unwrap_or_else(|| panic!("{name}: differs and isn't told: {line}\n{differs}{said}"));
        assert!(said.contains(text), "{name}: {line}\n isn't told as \"{text}\":\n{said}");
        met.insert(*part);
    }
    assert_eq!(met.len(), kind.told.len(), "{name}: only {met:?} differ: {differs}");
    assert_eq!(undone, "", "{name}: undoing the restoration leads to where it began");
}

#[test]
fn hosts_of_many_kinds_come_back_to_the_byte_or_are_told() {
    // Most of the time is spent waiting for small programs.
    std::thread::scope(|scope| {
        for lane in KINDS.chunks(4) {
            scope.spawn(|| lane.iter().for_each(comes_back_or_is_told));
        }
    });
}

#[test]
fn a_device_that_lies_on_another_gets_its_mtu_back_with_it() {
    let directory = directory();
    let text = format!(
        "{STEPS}ip link add m0 link v0 type macvlan mode bridge && ip link set m0 up || exit 9
         settled; all > before; must wt apply mtu=1400 --to v0 --yes; ip -o link show m0; must wt undo; all > after; diff before after && echo SAME"
    );
    let ran = run(&text, directory.path());
    require!("net-devices", if ran.code == 9 { Err(ran.err.clone()) } else { Ok(()) });
    assert!(ran.out.contains("mtu 1400") && ran.out.ends_with("SAME\n"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_device_above_a_bridge_and_an_mtu_of_ipv6s_own_come_back_with_that_of_a_port() {
    let directory = directory();
    let text = format!(
        "{STEPS}ip link add br0 type bridge && ip link set br0 up && ip link set v1 master br0 || exit 9
         ip link add m0 link br0 type macvlan mode bridge && ip link set m0 up || exit 9
         sysctl -qw net.ipv6.conf.v1.mtu=1300
         settled; all > before; must wt apply mtu=1400 --to v1 --yes; cat out; ip -o link show m0; sysctl net.ipv6.conf.v1.mtu
         must wt undo; all > after; diff before after && echo SAME; ip link set v1 mtu 1400; ip -o link show br0; wt plan mtu=1400 --to br0"
    );
    let ran = run(&text, directory.path());
    require!("net-devices", if ran.code == 9 { Err(ran.err.clone()) } else { Ok(()) });
    let (before, after) = ran.out.split_once("SAME\n").unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    assert!(before.contains("mtu 1400") && before.contains("mtu = 1300"), "{before}");
    assert!(
        after.contains("br0: ") && after.contains("mtu 1400") && after.contains("doesn't follow"),
        "{after}{}",
        ran.err
    );
}
