//! What a confirmation writes for managers, run as they run it after something of the network has changed.

use crate::common::host::{directory, script};

/// Who configures the device, where the script is, and how it is run.
const MANAGERS: [(&str, &str, &str); 3] = [
    (
        "mkdir -p $ROOT/run/NetworkManager/devices; printf 'connection-uuid=1\\n' > $ROOT/run/NetworkManager/devices/$n",
        "$ROOT/etc/NetworkManager/dispatcher.d",
        "sh $file v0 dhcp4-change",
    ),
    (
        "mkdir -p $ROOT/run; echo 1 > $ROOT/run/dhclient.v0.pid",
        "$ROOT/etc/dhcp/dhclient-exit-hooks.d",
        "(interface=v0; reason=RENEW; . $file)",
    ),
    (
        "mkdir -p $ROOT/etc/network; echo 'iface v0 inet static' > $ROOT/etc/network/interfaces",
        "$ROOT/etc/network/if-up.d",
        "IFACE=v0 sh $file",
    ),
];

/// The script that runs every file that was written, as managers do, with this before.
fn with_hooks((state, files, run): (&str, &str, &str), text: &str) -> String {
    format!(
        "n=$(ip -o link show v0 | cut -d: -f1); {state}; ip -6 route del default
         mkdir bin; printf '#!/bin/sh\\nexit 1\\n' > bin/logger; chmod +x bin/logger; PATH=$PWD/bin:$PATH
         clear() {{ while ip route del default 2> /dev/null; do :; done; }}
         hooks() {{ for file in {files}/*; do {run} 2>> said; done; }}
         {text}"
    )
}

#[test]
fn a_lease_with_another_gateway_or_address_keeps_them_and_gets_the_setting() {
    for manager in MANAGERS {
        let directory = directory();
        let ran = script(
            directory.path(),
            &with_hooks(
                manager,
                "route() { clear; ip route add default $1 dev v0 proto dhcp $2 metric 100; }
                 route 'via 10.0.0.2' 'src 10.0.0.1 initrwnd 9 initcwnd 8'
                 wt apply initcwnd=20 mss=1300 --to default --yes > out || cat out; wt apply initcwnd=30 --to default --yes > out || cat out
                 route 'via 10.0.0.254' 'src 10.0.0.1 mtu lock 1400 rto_min 300ms'; hooks; ip route show default
                 ip addr del 10.0.0.1/24 dev v0; ip addr add 10.0.0.77/24 dev v0; route 'via 10.0.0.2' 'src 10.0.0.77'; hooks; ip route show default
                 wt verify | tail -1; cat said",
            ),
        );
        let wanted = "default via 10.0.0.254 dev v0 proto dhcp src 10.0.0.1 metric 100 mtu lock 1400 advmss 1300 initcwnd 30 rto_min lock 300ms \n\
                      default via 10.0.0.2 dev v0 proto dhcp src 10.0.0.77 metric 100 advmss 1300 initcwnd 30 \n\
                      2 change(s) in force, and everything is as they made it.\n";
        assert_eq!(ran.out, wanted, "{manager:?}: {}", ran.err);
    }
}

#[test]
fn a_route_of_our_own_follows_the_way_that_its_target_has_then() {
    for manager in MANAGERS {
        let directory = directory();
        let ran = script(
            directory.path(),
            &with_hooks(
                manager,
                "ip -6 route add default via 2001:db8::2
                 for to in 192.0.2.80 198.51.100.0/24 2001:db8:9::/48; do wt apply initcwnd=20 --to $to --yes > out || cat out; done
                 wt apply mss=1300 --to 192.0.2.80 --yes > out || cat out
                 clear; ip route add default via 10.0.0.254 dev v0 proto dhcp src 10.0.0.1 metric 100 initrwnd 7
                 ip -6 route del default; ip -6 route add default via 2001:db8::fe; ip route add 198.51.0.0/16 via 10.0.0.253
                 hooks; (ip route; ip -6 route) | grep initcwnd; cat said; clear; ip route flush 198.51.0.0/16; hooks; grep -c 'nothing leads' said",
            ),
        );
        let wanted = "192.0.2.80 via 10.0.0.254 dev v0 proto static src 10.0.0.1 advmss 1300 initcwnd 20 initrwnd 7 \n\
                      198.51.100.0/24 via 10.0.0.253 dev v0 proto static initcwnd 20 \n\
                      2001:db8:9::/48 via 2001:db8::fe dev v0 proto static metric 1024 initcwnd 20 pref medium\n";
        assert!(ran.out.starts_with(wanted), "{manager:?}: {}{}", ran.out, ran.err);
        assert!(ran.out.ends_with("\n2\n"), "{}", ran.out);
    }
}

#[test]
fn a_route_that_is_not_there_alone_is_left_as_it_is_and_that_is_said() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &with_hooks(
            MANAGERS[2],
            "ip link add e0 type veth peer name e1; ip link set e0 up; ip link set e1 up; ip addr add 10.1.0.1/24 dev e0
             wt apply initcwnd=20 --to default --yes > out || cat out
             for routes in '' 'default via 10.0.0.2 dev v0 metric 5' 'default via 10.1.0.2 dev e0' 'default via 10.1.0.2 dev e0,default via 10.0.0.2 dev v0' \
                 'default encap ip id 5 dst 10.0.0.9 via 10.0.0.2 dev v0'; do
                 clear; echo \"$routes\" | tr , '\\n' | while read -r route; do test -z \"$route\" || ip route append $route; done
                 ip route show default > before; hooks; ip route show default | diff before - && echo SAME
             done; grep -c 'is left as it is' said; ip nexthop add id 7 via 10.0.0.3 dev v0; clear; ip route add default nhid 7; hooks; ip route show default
             clear; ip route add default mtu 1400 nexthop via 10.0.0.2 dev v0 weight 2 nexthop via 10.0.0.3 dev v0; hooks; ip route show default",
        ),
    );
    let wanted = format!(
        "{}5\ndefault nhid 7 via 10.0.0.3 dev v0 initcwnd 20 \ndefault mtu 1400 initcwnd 20 \n\
         \tnexthop via 10.0.0.2 dev v0 weight 2 \n\tnexthop via 10.0.0.3 dev v0 weight 1 \n",
        "SAME\n".repeat(5)
    );
    assert_eq!(ran.out, wanted, "{}", ran.err);
}

#[test]
fn what_is_so_already_is_so_after_a_boot_too() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &with_hooks(
            MANAGERS[2],
            "ip link set v0 mtu 1400 txqueuelen 77; ip route change default via 10.0.0.2 initcwnd 20
             wt apply mtu=1400 txqueuelen=77 --to v0 --yes > out || cat out; wt apply initcwnd=20 --to default --yes > out || cat out
             ip link set v0 mtu 1500 txqueuelen 1000; ip route change default via 10.0.0.2; hooks; ip link show v0 | grep -c 'mtu 1400 .*qlen 77'; ip route show default; cat said",
        ),
    );
    assert_eq!(ran.out, "1\ndefault via 10.0.0.2 dev v0 initcwnd 20 \n", "{}", ran.err);
}

#[test]
fn a_route_with_an_encapsulation_gets_no_command_and_no_file_and_that_is_said() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &with_hooks(
            MANAGERS[2],
            "ip route add 100.70.0.0/16 encap ip id 5 dst 10.0.0.9 dev v0
             wt plan initcwnd=20 --to 100.70.0.0/16; wt apply initcwnd=20 --to 100.70.0.0/16 --yes; ls $ROOT/etc/network/if-up.d; ip route show 100.70.0.0/16
             wt export --to iproute2 initcwnd=40 --at 100.70.0.0/16; rm -r $ROOT/etc/network; wt apply initcwnd=30 --to 100.70.0.0/16 --yes",
        ),
    );
    assert!(ran.out.contains("encap ip id 5") && ran.out.contains("initcwnd 20"), "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("ip route change") && !ran.out.contains("wrote"), "{}", ran.out);
    assert_eq!((ran.out + &ran.err).matches("it has an encapsulation").count(), 5);
}

/// systemd-networkd and netplan: who configures the device, and where a route of ours is kept.
const BY_FILE: [(&str, &str); 2] = [
    (
        "NETWORK_FILE=/etc/systemd/network/10-lan.network",
        "/etc/systemd/network/10-lan.network.d/90-windtunnel-route-192.0.2.0-24.conf",
    ),
    ("NETWORK_FILE=/run/systemd/network/10-netplan-v0.network", "/etc/netplan/90-windtunnel-route-192.0.2.0-24.yaml"),
];

fn by_file(file: &str, text: &str) -> String {
    format!(
        "n=$(ip -o link show v0 | cut -d: -f1); mkdir -p $ROOT/run/systemd/netif/links; ip -6 route del default
         printf 'ADMIN_STATE=configured\\n{file}\\n' > $ROOT/run/systemd/netif/links/$n
         {text}"
    )
}

#[test]
fn a_route_that_a_manager_makes_by_its_own_files_gets_no_second_one_and_what_to_do_by_hand_is_said() {
    for (file, _) in BY_FILE {
        for (proto, written) in [("static", true), ("dhcp", false)] {
            let directory = directory();
            let ran = script(
                directory.path(),
                &by_file(
                    file,
                    &format!(
                        "route() {{ ip route replace default via 10.0.0.2 dev v0 proto {proto}; }}; route
                         wt plan initcwnd=20 initrwnd=30 --to default > plan; wt apply initcwnd=20 initrwnd=30 --to default --yes > out; find $ROOT/etc -name '*windtunnel*'
                         grep -h -o -E 'write Init[^ ]*=20|add cong[^ ]*: 20' plan out; grep -c 'this ends with the next reboot' plan; route
                         eval \"$(sed -n 's/^initcwnd: this ends .* run: //p' out)\"; ip route show default; tail -1 out"
                    ),
                ),
            );
            let lines = if written { 4 } else { 0 };
            assert_eq!(ran.out.matches("20\n").count(), lines, "{file} {proto}: {}{}", ran.out, ran.err);
            let stays = format!(
                "default via 10.0.0.2 dev v0 proto {proto} initcwnd 20 initrwnd 30 \nChange 1 is in force and stays. "
            );
            assert!(ran.out.contains(&stays) && !ran.out.contains("/etc/"), "{file} {proto}: {}{}", ran.out, ran.err);
        }
    }
}

#[test]
fn a_default_route_that_somebody_set_is_kept_by_one_file_unless_the_manager_knows_a_gateway_itself() {
    for (gateway, wanted) in [("", 1), ("Gateway=10.0.0.2\\n", 0), ("DHCP=yes\\n", 0)] {
        let directory = directory();
        let (file, _) = BY_FILE[0];
        let ran = script(
            directory.path(),
            &by_file(
                file,
                &format!(
                    "mkdir -p $ROOT/etc/systemd/network; printf '[Network]\\n{gateway}' > $ROOT/etc/systemd/network/10-lan.network
                     for level in 20 30; do wt apply initcwnd=$level --to default --yes > out || cat out; done
                     cd $ROOT/etc/systemd/network; ls 10-lan.network.d 2> /dev/null; grep -c Window=30 10-lan.network.d/* 2> /dev/null"
                ),
            ),
        );
        let said = if wanted == 1 { "90-windtunnel.conf\n1\n" } else { "" };
        assert_eq!(ran.out, said, "{gateway}: {}", ran.err);
    }
}

#[test]
fn all_changes_of_a_route_of_our_own_are_in_one_file_which_goes_with_the_first() {
    for (file, path) in BY_FILE {
        let directory = directory();
        let ran = script(
            directory.path(),
            &by_file(
                file,
                &format!(
                    "for what in initcwnd=20 mtu=1400 initcwnd=30; do wt apply $what --to 192.0.2.0/24 --yes > out || cat out; done; cd $ROOT
                     find etc -name '*windtunnel*'; cat .{path}; wt undo > out || cat out; grep -c 20 .{path}; wt undo > out; wt undo > out; find etc -name '*windtunnel*'"
                ),
            ),
        );
        assert!(ran.out.starts_with(&format!("{}\n", path.trim_start_matches('/'))), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("1400\n") && ran.out.contains("30\n") && ran.out.ends_with("\n1\n"), "{}", ran.out);
        assert!(!ran.out.contains(": 20\n") && !ran.out.contains("=20\n"), "{}", ran.out);
    }
}

#[test]
fn a_gateway_that_comes_with_a_lease_is_named_so_or_not_written() {
    for ((file, path), wanted) in BY_FILE.into_iter().zip(["Gateway=_dhcp4\n", "its gateway comes with a lease"]) {
        let directory = directory();
        let ran = script(
            directory.path(),
            &by_file(
                file,
                &format!(
                    "ip route replace default via 10.0.0.2 dev v0 proto dhcp
                     wt apply initcwnd=20 --to 192.0.2.0/24 --yes; cat $ROOT{path}"
                ),
            ),
        );
        assert!(ran.out.contains(wanted), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn netplan_generates_each_route_once_with_all_that_it_has() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &by_file(
            BY_FILE[1].0,
            "mkdir -p $ROOT/etc/netplan; cat > $ROOT/etc/netplan/50-base.yaml <<'END'
network:
  version: 2
  ethernets:
    v0:
      addresses: [10.0.0.1/24]
      routes:
        - to: default
          via: 10.0.0.2
END
             chmod 600 $ROOT/etc/netplan/*; apply() { wt apply $1 --to $2 --yes > out || cat out; }; apply initcwnd=20 default; apply initcwnd=40 192.0.2.0/24; apply initrwnd=50 192.0.2.0/24
             netplan generate --root-dir $ROOT >&2 || exit 9; cat $ROOT/run/systemd/network/*v0*",
        ),
    );
    let wanted = "[Route]\nDestination=192.0.2.0/24\nGateway=10.0.0.2\nInitialCongestionWindow=40\nInitialAdvertisedReceiveWindow=50\n";
    assert!(ran.code == 0 && ran.out.contains(wanted), "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.matches("[Route]").count(), 2, "{}", ran.out);
}

#[test]
fn a_second_route_beside_the_changed_one_is_no_route_as_the_change_made_it() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply initcwnd=20 --to default --yes > out || cat out; wt verify > out; echo $?
         ip route prepend default via 10.0.0.2 dev v0 proto 99; wt verify; echo $?; wt check --offline > out; echo $?",
    );
    assert!(ran.out.starts_with("0\n") && ran.out.ends_with("made.\n1\n1\n"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("was made 20, and several routes have its target and priority now"), "{}", ran.out);
}
