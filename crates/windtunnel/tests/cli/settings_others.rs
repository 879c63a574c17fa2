//! What isn't a change's own: routes that others make and move while it is in force, other devices, other namespaces, other changes.

use crate::common::host::{directory, json, row, rows, script};

/// Another device, `e0`, with a route of its own.
const ANOTHER: &str = "ip link add e0 type veth peer name e1; ip link set e0 up; ip link set e1 up
    ip addr add 10.5.0.1/24 dev e0; ip addr add 2001:db8:5::1/64 dev e0 nodad; ";
/// Pretends that change `$1` was made before the last boot.
const BOOT: &str = r#"boot() { sed -i 's/"boot_id":"[^"]*"/"boot_id":"11111111-2222-3333-4444-555555555555"/' "$STATE/checkpoints/$1/checkpoint.json"; }
"#;

#[test]
fn routes_that_come_while_a_devices_mtu_is_changed_stay_whether_it_is_switched_undone_or_proved() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply mtu=1400 --to v0 --yes > out || cat out
         ip route add 198.51.100.0/24 via 10.0.0.7; ip -6 route add 2001:db8:9::/48 via 2001:db8::7
         all() { ip route; ip -6 route; }; all > before
         wt prove --by true --rounds 2 > out 2>&1; all > after; diff before after && echo PROVED
         wt undo > out; ip route show 198.51.100.0/24; ip -6 route show 2001:db8:9::/48; cat /sys/class/net/v0/mtu 2> none || ip -o link show v0 | grep -o 'mtu 1500'",
    );
    let words = ["PROVED", "198.51.100.0/24 via 10.0.0.7", "2001:db8:9::/48 via 2001:db8::7", "1500"];
    assert!(words.iter().all(|word| ran.out.contains(word)), "{}{}", ran.out, ran.err);
}

#[test]
fn a_gateway_that_moved_stays_where_it_is_when_a_change_of_the_route_is_undone_or_proved() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "apply() { wt apply initcwnd=20 --to default --yes > out || cat out; ip route replace default via 10.0.0.3 initcwnd 20; }
         apply; wt undo; ip route show default; ip -6 route show default
         apply; wt prove --by true --rounds 2 > out 2>&1; ip route show default; wt undo --force > out; ip route show default",
    );
    let routes: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("default")).map(str::trim).collect();
    let moved = "default via 10.0.0.3 dev v0";
    let with = format!("{moved} initcwnd 20");
    assert_eq!([routes[0], routes[2], routes[3]], [moved, &with, moved], "{}{}", ran.out, ran.err);
    assert!(routes[1].starts_with("default via 2001:db8::2 dev v0"), "{}", ran.out);
    assert!(ran.out.contains("lead elsewhere since the change"), "{}", ran.out);
}

#[test]
fn a_default_route_that_somebody_removed_is_made_anew_neither_by_undo_nor_by_a_proof_and_that_is_said() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &format!(
            "{ANOTHER} wt apply initcwnd=20 --to default --yes > out || cat out
             ip route del default; ip route add default via 10.5.0.2 dev e0 metric 50; wt prove --by true --rounds 2 > out 2>&1; ip route show default
             wt undo; ip route show default; wt verify; echo code $?"
        ),
    );
    let routes: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("default")).map(str::trim).collect();
    assert_eq!(routes, ["default via 10.5.0.2 dev e0 metric 50"; 2], "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("somebody removed the default route since the change: it stays so"), "{}", ran.out);
    assert!(ran.out.ends_with("code 0\n"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_route_that_a_change_made_and_others_made_anew_is_theirs() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply initcwnd=20 --to 198.51.100.0/24 --yes > out || cat out; ip route replace 198.51.100.0/24 via 10.0.0.9
         wt undo; ip route show 198.51.100.0/24; wt apply initcwnd=20 --to 203.0.113.0/24 --yes > out; wt undo > out; ip route show 203.0.113.0/24",
    );
    assert!(ran.out.contains("198.51.100.0/24 via 10.0.0.9") && ran.out.contains("made the route"), "{}", ran.out);
    assert!(!ran.out.contains("203.0.113.0/24 via"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_network_gets_the_way_of_the_whole_and_not_that_of_the_part_that_its_first_address_is_in() {
    let directory = directory();
    let plan = |to: &str| json(directory.path(), &format!("{ANOTHER} wt plan initcwnd=20 --to {to} --json"));
    for (to, command) in [
        ("10.0.0.0/8", "ip route add 10.0.0.0/8 via 10.0.0.2 dev v0"),
        ("10.5.0.0/16", "ip route add 10.5.0.0/16 via 10.0.0.2 dev v0"),
        ("2001:db8:5::/48", "via 2001:db8::2 dev v0"),
    ] {
        let plan = plan(to);
        let commands = plan["commands"].to_string();
        assert!(commands.contains(command) && commands.contains(to), "{commands}");
        let risks = plan["risks"].to_string();
        let narrower = format!("narrower routes in {to} don't get it");
        assert!(risks.contains(&narrower), "{risks}");
    }
    let ran = script(directory.path(), "ip route del default; wt plan initcwnd=20 --to 10.0.0.0/8");
    assert!(ran.code == 3 && ran.err.contains("no route leads to all of it"), "{}{}", ran.out, ran.err);
    // The kernel's own answer for one address is what it was.
    let exact = plan("10.5.0.0/24");
    assert!(row(&exact, "changes", "initcwnd")["target"].as_str().unwrap().contains("10.5.0.0/24"), "{exact}");
    assert!(!exact["risks"].to_string().contains("narrower"), "{exact}");
}

#[test]
fn two_devices_of_one_manager_get_a_file_each() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &format!(
            "{ANOTHER} ip -6 route del default; ip -6 route add default via 2001:db8:5::2
             mkdir -p $ROOT/etc/network; printf 'iface v0 inet static\\niface e0 inet6 static\\n' > $ROOT/etc/network/interfaces
             wt plan initcwnd=20 --to default | grep -c 'if-up.d/windtunnel'; wt apply initcwnd=20 --to default --yes > out; echo code $?
             cd $ROOT/etc/network/if-up.d; grep -l IFACE *; grep -h IFACE *; wt undo > /dev/null; ls"
        ),
    );
    let wanted = "2\ncode 0\nwindtunnel-change-000001\nwindtunnel-change-000001-2\n";
    assert!(ran.out.starts_with(wanted), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("= v0 ]") && ran.out.contains("= e0 ]") && ran.out.ends_with("then\n"), "{}", ran.out);
}

#[test]
fn a_file_that_configures_other_devices_too_gets_nothing_for_one_of_them() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &format!(
            "{ANOTHER} mkdir -p $ROOT/run/systemd/netif/links; file=/etc/systemd/network/10-wired.network
             for d in v0 e0; do n=$(ip -o link show $d | cut -d: -f1); printf \"ADMIN_STATE=configured\\nNETWORK_FILE=$file\\n\" > $ROOT/run/systemd/netif/links/$n; done
             wt plan mtu=1400 --to v0; wt apply mtu=1400 --to v0 --yes; echo code $?; find $ROOT/etc -name '*windtunnel*'"
        ),
    );
    assert!(ran.out.ends_with("code 0\n"), "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.matches("10-wired.network configures e0 as well").count(), 2, "{}", ran.out);
    assert!(ran.out.contains("nothing is written for it"), "{}", ran.out);
}

#[test]
fn a_later_change_keeps_an_older_one_from_being_undone_also_after_a_boot() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &format!(
            "{BOOT} wt apply retries2=8 --yes > out; boot 1; wt apply retries2=6 --yes > out; wt undo 1; echo code $?; boot 2; wt undo 1; echo code $?
             sysctl -n net.ipv4.tcp_retries2; wt undo > out; sysctl -n net.ipv4.tcp_retries2; wt undo > out; sysctl -n net.ipv4.tcp_retries2"
        ),
    );
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), ["code 2", "code 2", "6", "8", "15"], "{}", ran.err);
    assert!(ran.err.contains("change 2 was made later"), "{}", ran.err);
}

/// The same store in a namespace of its own. Which namespace was the first one's is written in: no test is of that one.
#[test]
fn what_was_changed_in_another_namespace_is_neither_undone_here_nor_by_force_nor_after_a_boot() {
    let directory = directory();
    let ran = script(
        directory.path(),
        &format!(
            "{BOOT} elsewhere() {{ sed -i 's/\"network_of_init\":[a-z]*/\"network_of_init\":true/' \"$STATE/checkpoints/$1/checkpoint.json\"; }}
             unshare -n \"$WT\" settings apply retries2=3 --yes > out; echo made $?; wt undo --force; echo code $?; wt undo --force 1; echo code $?
             boot 1; elsewhere 1; wt undo; echo code $?; wt verify; wt prove --by true; wt undo --force; echo code $?; sysctl -n net.ipv4.tcp_retries2
             unshare -n \"$WT\" settings apply ttl=50 --confirm-within 1h > out; boot 2; elsewhere 2; unshare -n true
             wt apply ttl=60 --yes > out; echo made $?; wt history --json"
        ),
    );
    let said: Vec<&str> =
        ran.out.lines().filter(|line| ["made", "code", "15"].iter().any(|word| line.starts_with(word))).collect();
    assert_eq!(said, ["made 0", "code 2", "code 2", "code 2", "code 2", "15", "made 0"], "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("another network namespace"), "{}", ran.err);
    let history = ran.out.lines().last().unwrap();
    let history: serde_json::Value =
        serde_json::from_str(history).unwrap_or_else(|error| panic!("{error}: {}", ran.out));
    let phases: Vec<&str> = rows(&history, "changes").iter().map(|row| row["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["confirmed", "applied", "confirmed"], "{history:#}");
}

#[test]
fn what_is_over_in_another_namespace_is_said_to_be_over_and_not_to_be_looked_for_there() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "unshare -n sh -c '\"$WT\" settings apply retries2=3 --yes && \"$WT\" settings undo' > out; echo made $?
         wt undo 1 --force; echo code $?; wt undo 1; echo code $?",
    );
    let said: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("made") || line.starts_with("code")).collect();
    assert_eq!(said, ["made 0", "code 2", "code 2"], "{}{}", ran.out, ran.err);
    assert!(ran.err.matches("isn't in force").count() == 2 && !ran.err.contains("forget 1"), "{}", ran.err);
}

#[test]
fn a_device_keeps_ipv6_that_a_backup_or_an_older_state_would_take_from_it() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip -6 route del default; ip -6 addr flush dev v0; ip link set v0 mtu 576; wt backup small.json > out; wt apply mtu=1500 --to v0 --yes > out
         sysctl -qw net.ipv6.conf.v0.disable_ipv6=0; ip -6 addr add 2001:db8::1/64 dev v0 nodad; ip -6 route add default via 2001:db8::2; ip -6 route > before
         wt restore small.json --yes; echo restored $?; wt undo > out; wt undo 1; echo undone $?; ip -6 route > after; cmp before after && echo SAME; ip -o link show v0 | grep -o 'mtu [0-9]*'",
    );
    let words =
        ["restored 0", "undone 0", "SAME", "mtu 1500", "would lose the addresses of IPv6", "which it has got since"];
    assert!(words.iter().all(|word| ran.out.contains(word)), "{}{}", ran.out, ran.err);
}

#[test]
fn a_proof_says_at_once_what_it_lacks_ends_in_time_and_is_one_object() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply ttl=70 --prove; echo code $?; wt apply ttl=70 --by true; echo code $?; cat /proc/sys/net/ipv4/ip_default_ttl
         wt prove --by true; wt apply ttl=70 --confirm-within 4s --prove --by 'sleep 0.3' --rounds 10 --json > proof; echo code $?
         wc -l < proof; unguarded 1; cat /proc/sys/net/ipv4/ip_default_ttl; wt forget 1; echo code $?; cat proof",
    );
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(
        lines[..8],
        ["code 2", "code 2", "64", "code 1", "1", "64", "code 2", lines[7]],
        "{}{}",
        ran.out,
        ran.err
    );
    let proof: serde_json::Value =
        serde_json::from_str(lines[7]).unwrap_or_else(|error| panic!("{error}: {}", ran.out));
    assert_eq!((&proof["applied"][0]["key"], &proof["proof"]["change"]), (&"ttl".into(), &"1".into()), "{proof}");
    let rounds = proof["proof"]["rounds"].as_u64().unwrap();
    assert!((1..10).contains(&rounds), "{proof}");
    assert!(proof["proof"]["text"].as_str().unwrap().contains("longer --confirm-within"), "{proof}");
    let words =
        ["nothing is said that could be timed", "--prove isn't there", "no change is in force", "it is reverted"];
    assert!(words.iter().all(|word| ran.err.contains(word)), "{}", ran.err);
}

#[test]
fn what_others_wrote_into_a_managers_file_stays_when_the_change_is_undone_and_is_told() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "mkdir -p $ROOT/etc/network; echo 'iface v0 inet static' > $ROOT/etc/network/interfaces
         wt apply initcwnd=20 --to default --yes > out || cat out; file=$(ls $ROOT/etc/network/if-up.d/*); echo '# mine' >> $file
         wt undo; tail -1 $file; ip route | grep -c initcwnd",
    );
    assert!(ran.out.contains("somebody changed /etc/network/if-up.d/windtunnel-change-000001 since"), "{}", ran.out);
    assert!(ran.out.ends_with("apart from that, everything is as it was before it.\n# mine\n0\n"), "{}", ran.out);
}

#[test]
fn a_drop_in_keeps_its_mode_its_bytes_and_its_link() {
    let directory = directory();
    let ran = script(
        directory.path(),
        r"cd $ROOT/etc/sysctl.d; printf 'net.ipv4.tcp_ecn = 1\n# caf\351\n' > ../real; cp ../real ../before; chmod 600 ../real; ln -s ../real 90-windtunnel.conf
         wt apply ttl=97 --yes > ../out || cat ../out; tail -1 ../real; look() { stat -c '%F %a' 90-windtunnel.conf ../real; }; look
         echo 'net.ipv4.tcp_frto = 1' >> ../real; echo 'net.ipv4.tcp_frto = 1' >> ../before; wt undo > ../out || cat ../out; look; cmp ../real ../before && echo SAME; ls -A ..",
    );
    let look = "symbolic link 777\nregular file 600\n";
    let end = "SAME\nbefore\nout\nreal\nsysctl.d\n";
    assert_eq!(ran.out, format!("net.ipv4.ip_default_ttl = 97\n{look}{look}{end}"), "{}", ran.err);
}

#[test]
fn what_somebody_set_in_the_place_of_a_change_stays_in_the_drop_in_and_is_not_listed_as_put_back() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply sack=off ttl=100 --yes > out; file=$ROOT/etc/sysctl.d/90-windtunnel.conf; sed -i 's/= 100/= 200/' $file
         sysctl -qw net.ipv4.ip_default_ttl=200; wt undo; grep -v '^#' $file; sysctl -n net.ipv4.ip_default_ttl net.ipv4.tcp_sack",
    );
    assert!(
        ran.out.starts_with("sack=on on net.ipv4.tcp_sack\n") && !ran.out.contains("ttl=64"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(
        ran.out.contains("somebody changed net.ipv4.ip_default_ttl in /etc/sysctl.d/90-windtunnel.conf"),
        "{}",
        ran.out
    );
    assert!(ran.out.ends_with("net.ipv4.ip_default_ttl = 200\n200\n1\n"), "{}", ran.out);
}

#[test]
fn a_route_to_one_target_that_no_longer_goes_the_way_of_everything_around_it_is_told() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply initcwnd=20 --to 198.51.100.9 --yes > out || cat out; wt verify; echo code $?
         ip route replace default via 10.0.0.3; wt verify; echo code $?",
    );
    let wanted = "was made 20, and still leads where it did then, while everything around it follows \"default via 10.0.0.3 dev v0\"";
    let (as_made, moved) = ran.out.split_once("code 0\n").unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    assert!(
        !as_made.contains("leads") && moved.contains(wanted) && moved.ends_with("code 1\n"),
        "{}{}",
        ran.out,
        ran.err
    );
}
