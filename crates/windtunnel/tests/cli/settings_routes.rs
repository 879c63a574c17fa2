//! Settings on routes of every kind: what the kernel makes of a route isn't always what was sent.

use crate::common::host::{directory, script};

#[test]
fn a_target_of_ipv6_gets_its_settings_and_loses_them_again_whichever_route_covers_it() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "ip link add w0 type veth peer name w1; ip link set w0 up; ip link set w1 up; ip addr add 2001:db8:b::1/64 dev w0 nodad
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
