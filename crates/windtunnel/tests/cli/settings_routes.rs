//! Settings on routes of every kind: what the kernel makes of a route isn't always what was sent.

use crate::common::host::{directory, json, rows, script};
use serde_json::Value;

#[test]
fn a_target_of_ipv6_gets_its_settings_and_loses_them_again_whichever_route_covers_it() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip link add w0 type veth peer name w1; for d in w0 w1; do echo 1 > /proc/sys/net/ipv6/conf/$d/addr_gen_mode; done
         ip link set w0 up; ip link set w1 up; ip addr add 2001:db8:b::1/64 dev w0 nodad
         ip -6 route add 2001:db8:70::/44 nexthop via 2001:db8::2 dev v0 nexthop via 2001:db8:b::2 dev w0
         ip -6 route > before
         for to in 2001:db8:9::9 2001:db8::9 2001:db8:5::/48 2001:db8:77::9; do
             wt apply initcwnd=20 mss=1300 --to $to --yes > out || cat out; echo code $?
             ip -6 route | grep -c 'initcwnd 20'
             wt verify > out || cat out; wt undo > out || cat out; ip -6 route > after; diff before after && echo BACK
         done",
    );
    assert_eq!(ran.out, "code 0\n1\nBACK\n".repeat(4), "{}", ran.err);
}

#[test]
fn what_the_way_to_a_network_has_already_is_granted_without_a_route_of_its_own() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip route change default via 10.0.0.2 dev v0 initcwnd 20; (ip route; ip -6 route) > before
         wt apply initcwnd=20 --to 192.0.2.0/24 --yes > out || cat out; echo code $?; grep -o 'nothing is written for it' out
         wt verify > out || cat out; wt undo > out || cat out; (ip route; ip -6 route) > after; diff before after && echo BACK",
    );
    assert!(
        ran.out.starts_with("code 0\nnothing is written for it\n") && ran.out.ends_with("BACK\n"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn a_route_over_a_nexthop_object_is_put_back_in_time_and_by_undo() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip nexthop add id 7 via 10.0.0.2 dev v0; ip nexthop add id 8 via 10.0.0.3 dev v0; ip nexthop add id 9 group 7/8
         ip nexthop add id 17 via 2001:db8::3 dev v0; ip route add 198.51.100.0/24 nhid 9; ip -6 route add 2001:db8:9::/48 nhid 17
         ip route replace default nhid 7; ended() { for each in 1 2; do flock -w 30 $STATE/checkpoints/$1/guard.lock true; done; }
         all() { ip route; ip -6 route; }; all > before; back() { all > after; diff before after && echo BACK; }
         n=0; for to in default 198.51.100.0/24 2001:db8:9::/48 203.0.113.9; do
             n=$((n + 1)); wt apply initcwnd=20 --to $to --confirm-within 1s > out || cat out; all | grep -q 'initcwnd 20' && ended $n; back
             n=$((n + 1)); wt apply mss=900 --to $to --yes > out || cat out; all | grep -q 'advmss 900' && wt undo > out || cat out; back
         done; wt history",
    );
    assert!(ran.out.starts_with(&"BACK\n".repeat(8)), "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("revert-failed"), "{}", ran.out);
}

#[test]
fn a_target_that_rules_send_by_another_table_is_refused_and_says_where_it_can_be_set() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip route add default via 10.0.0.7 dev v0 table 100; ip rule add to 192.0.2.0/24 lookup 100 prio 100
         ip -6 route add default via 2001:db8::7 dev v0 table 101; ip -6 rule add to 2001:db8:77::/48 lookup 101 prio 100
         ip route add 192.0.2.8 via 10.0.0.2
         for to in 192.0.2.8 192.0.2.9 192.0.2.0/25 2001:db8:77::9; do wt apply initcwnd=20 --to $to; echo code $?; done
         (ip route; ip -6 route) | grep -c 'initcwnd'; for to in 198.51.100.9 192.0.0.0/16 2001:db8:78::9; do wt apply initcwnd=20 --to $to --yes > out; echo code $?; done",
    );
    assert_eq!(ran.out, format!("{}0\n{}", "code 2\n".repeat(4), "code 0\n".repeat(3)), "{}", ran.err);
    for words in ["via 10.0.0.7 dev v0\" of table 100", "via 2001:db8::7 dev v0\" of table 101", "ip route change"] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
}

#[test]
fn nobody_stands_in_for_a_target_that_a_changed_route_does_not_lead_to() {
    let directory = directory();
    let object = json(
        directory.path(),
        "ip route add default via 10.0.0.7 dev v0 table 100; ip rule add to 192.0.2.8 lookup 100 prio 100
         ip route add 192.0.2.8 via 10.0.0.2; ip route add 192.0.2.9 via 10.0.0.2; wt apply initcwnd=20 --to v0 --json",
    );
    let observed = |target: &str| {
        let rows = rows(&object, "applied");
        let of_target = rows.iter().find(|row| row["target"].as_str().is_some_and(|text| text.contains(target)));
        of_target.map_or(Value::Null, |row| row["observed"].clone())
    };
    assert_eq!((observed("192.0.2.8 "), observed("192.0.2.9 ")), (Value::Null, 20.into()), "{object}");
}

#[test]
fn of_two_routes_to_a_target_the_one_that_is_followed_is_changed() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip route add 192.0.2.9 via 10.0.0.3 metric 5; ip route add 192.0.2.9 via 10.0.0.2 metric 256
         wt apply initcwnd=20 --to 192.0.2.9 > out || cat out; ip route show 192.0.2.9 | grep initcwnd",
    );
    assert!(ran.out.contains("metric 5 ") && !ran.out.contains("metric 256"), "{}{}", ran.out, ran.err);
}

#[test]
fn of_two_changes_of_a_route_the_later_one_wins_at_boot() {
    let directory = directory();
    // The ninth and the tenth change, and a file of a version that didn't pad the number.
    let ran = script(
        directory.path(),
        "mkdir -p $ROOT/etc/network/if-up.d $STATE/checkpoints/8; echo 'iface v0 inet static' > $ROOT/etc/network/interfaces
         echo 'ip route change default via 10.0.0.2 initcwnd 9' > $ROOT/etc/network/if-up.d/windtunnel-9
         for n in 20 40; do wt apply initcwnd=$n --to default --yes > out || cat out; done; wt history | grep -c confirmed
         ip route replace default via 10.0.0.2; for file in $(LC_ALL=C ls $ROOT/etc/network/if-up.d); do IFACE=v0 sh $ROOT/etc/network/if-up.d/$file; done
         ip route show default; wt undo 2> error || cat error; ls $ROOT/etc/network/if-up.d; wt undo > out; ls $ROOT/etc/network/if-up.d",
    );
    assert!(ran.out.starts_with("2\n") && ran.out.contains("initcwnd 40"), "{}{}", ran.out, ran.err);
    assert!(ran.out.ends_with("windtunnel-9\nwindtunnel-change-000009\nwindtunnel-9\n"), "{}{}", ran.out, ran.err);
}

#[test]
fn default_routes_of_ipv4_and_of_ipv6_without_a_gateway_are_told_apart() {
    let directory = directory();
    let text = "ip route replace default dev v0; ip -6 route del default; ip -6 route add default dev v0\n";
    let plan = json(directory.path(), &format!("{text} wt plan initcwnd=20 --to default --json"));
    let told: Vec<(&Value, &Value)> =
        rows(&plan, "changes").iter().map(|change| (&change["family"], &change["target"])).collect();
    let (four, six) = ("default dev v0", "default (IPv6) dev v0");
    assert_eq!(told, [(&"ipv4".into(), &four.into()), (&"ipv6".into(), &six.into())], "{plan:#}");
    let ran =
        script(directory.path(), &format!("{text} wt apply initcwnd=20 --to default --yes > out; wt history; wt undo"));
    for line in [format!("initcwnd=20 on {four}, initcwnd=20 on {six}"), format!("initcwnd=auto on {six}\n")] {
        assert!(ran.out.contains(&line), "{line}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_route_of_ipv6_that_ends_keeps_its_end_when_it_gets_a_setting_and_when_that_is_undone() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip -6 route add 2001:db8:9::/64 via 2001:db8::2 expires 600; wt apply initcwnd=20 --to 2001:db8:9::/64 --yes > out || cat out
         ip -6 route show 2001:db8:9::/64; wt undo > out || cat out; ip -6 route show 2001:db8:9::/64",
    );
    let routes: Vec<&str> = ran.out.lines().collect();
    assert!(
        routes.len() == 2 && routes.iter().all(|route| route.contains("expires 5") || route.contains("expires 600")),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(routes[0].contains("initcwnd 20") && !routes[1].contains("initcwnd"), "{}", ran.out);
}
