# Six hosts with kernels of their own: c --L0-- r1 ==L1== r2 --L2-- r3 --L3-- r4 --L4-- s.
#
# Source it in the client of a lab of one link with L1's delay, which becomes r1; the lab's server becomes r2. Link i has the addresses
# 10.77.i.1 and .2, fd77:i::1 and ::2.

at() { # namespace, command...
    ip netns exec "$@"
}

hosts() { # the MTUs of L0 to L4
    ln -s client /run/netns/r1
    ln -s server /run/netns/r2
    for ns in c r3 r4 s; do
        ip netns add "$ns"
        at "$ns" sysctl -qw net.ipv6.conf.default.accept_dad=0
        at "$ns" ip link set lo up
    done
    for ns in r1 r2; do at "$ns" sysctl -qw net.ipv6.conf.default.accept_dad=0; done
    at r1 ip addr flush dev wt0
    at r2 ip addr flush dev wt0
    join 0 c r1 "$1"
    for ns in r1 r2; do at "$ns" ip link set wt0 mtu "$2"; done
    addresses 1 r1 wt0 1
    addresses 1 r2 wt0 2
    join 2 r2 r3 "$3"
    join 3 r3 r4 "$4"
    join 4 r4 s "$5"
    for ns in r1 r2 r3 r4; do
        at $ns sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        # As the kernel has it, they ration nothing of what is asked here; some rows say otherwise.
        at $ns sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
    done
    there c 0 2; there r1 1 2; there r2 2 2; there r3 3 2
    back s 4 1; back r4 3 1; back r3 2 1; back r2 1 1
    # Rules shall see packets, and not what the kernel has joined or not yet split.
    at s ip link set l4 gso_max_segs 1
    at c ip link set l0 gso_max_segs 1
}

# IPv6 takes no link of less than 1280 bytes: rows with one have IPv4 alone.
six() {
    at "$@" 2> "$TMPDIR/six" || true
}

addresses() { # link, namespace, device, end
    at "$2" ip addr add "10.77.$1.$4/24" dev "$3"
    six "$2" ip -6 addr add "fd77:$1::$4/64" dev "$3" nodad
}

join() { # link, namespace, namespace, MTU
    at "$2" ip link add "l$1" type veth peer name "l$1" netns "$3"
    for ns in "$2" "$3"; do at "$ns" ip link set "l$1" mtu "$4" up; done
    addresses "$1" "$2" "l$1" 1
    addresses "$1" "$3" "l$1" 2
}

there() { # namespace, link, the end of its next hop
    at "$1" ip route replace 10.77.4.0/24 via "10.77.$2.$3" ${4:-}
    six "$1" ip -6 route replace fd77:4::/64 via "fd77:$2::$3" ${4:-}
    # Hops in between are asked, too.
    for link in 1 2 3; do
        [ "$link" -le "$2" ] && continue
        at "$1" ip route replace "10.77.$link.0/24" via "10.77.$2.$3"
        six "$1" ip -6 route replace "fd77:$link::/64" via "fd77:$2::$3"
    done
}

back() { # namespace, link, the end of its next hop, options of the route
    at "$1" ip route replace default via "10.77.$2.$3" ${4:-}
    six "$1" ip -6 route replace default via "fd77:$2::$3" ${4:-}
}

# The way back over L2 carries no more.
narrow_back() {
    back r3 2 1 "mtu lock $1"
}

rules() { # namespace, hook, rule
    at "$1" nft "add table inet t; add chain inet t $2 { type filter hook $2 priority 0 ; }; add rule inet t $2 $3"
}

silent() { # routers that never say "too long"
    for ns in "$@"; do
        rules "$ns" output "icmp type destination-unreachable icmp code frag-needed drop"
        at "$ns" nft add rule inet t output icmpv6 type packet-too-big drop
    done
}

# One error a second, after five at once; those of both kinds share it.
ration_all() {
    for ns in r1 r2 r3 r4; do
        rules $ns output "icmp type { destination-unreachable, time-exceeded } limit rate over 1/second drop"
        at $ns nft add rule inet t output "icmpv6 type { packet-too-big, time-exceeded } limit rate over 1/second drop"
    done
}

# One "too long" a second and none in advance.
ration_words() {
    for ns in r1 r2 r3 r4; do
        rules $ns output "icmp type destination-unreachable icmp code frag-needed limit rate over 1/second burst 1 packets drop"
        at $ns nft add rule inet t output "icmpv6 type packet-too-big limit rate over 1/second burst 1 packets drop"
    done
}

usual_limits() {
    for ns in r1 r2 r3 r4; do at $ns sysctl -qw net.ipv4.icmp_ratelimit=1000 net.ipv6.icmp.ratelimit=1000; done
}

# r2 lets packets of so many bytes pass, and of longer ones says something else.
liar() { # what passes, what it says
    rules r2 forward "iifname wt0 meta length > $1 drop"
    mkfifo "$TMPDIR/lying"
    at r2 python3 "$MATRIX/liar.py" wt0 "$1" "$2" "$TMPDIR/lying" &
    read -r _ < "$TMPDIR/lying" || true
}

no_echo() {
    rules s input "icmp type echo-request drop"
    at s nft add rule inet t input icmpv6 type echo-request drop
}

closed() { # nothing but resets comes back
    no_echo
    at s nft add rule inet t input meta l4proto udp drop
}

dead() { # nothing at all comes back
    no_echo
    at s nft add rule inet t input meta l4proto tcp drop
    at s nft add rule inet t input meta l4proto udp drop
}

# Connections take one of two links by their ports, and the second is narrow; nobody says so.
balanced() { # the MTU of the second
    at r2 ip link add b2 type veth peer name b2 netns r3
    for ns in r2 r3; do at $ns ip link set b2 mtu "$1" up; done
    at r2 ip addr add 10.78.2.1/24 dev b2; at r3 ip addr add 10.78.2.2/24 dev b2
    at r2 ip -6 addr add fd78:2::1/64 dev b2 nodad; at r3 ip -6 addr add fd78:2::2/64 dev b2 nodad
    at r2 sysctl -qw net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1
    at r2 ip route replace 10.77.4.0/24 nexthop via 10.77.2.2 nexthop via 10.78.2.2
    at r2 ip -6 route replace fd77:4::/64 nexthop via fd77:2::2 nexthop via fd78:2::2
    silent r2
}

# A share of packets lost each way, in hundredths; those longer than so many bytes, if that is said.
lose() { # hundredths, length, input device
    rules r2 forward "${3:+iifname $3} meta length > ${2:-0} numgen random mod 100 < $1 drop"
}

serve() { # port...
    mkfifo "$TMPDIR/serving"
    at s python3 "$MATRIX/server.py" "$TMPDIR/serving" "$@" &
    read -r _ < "$TMPDIR/serving" || true
}

flush() {
    at c ip route flush cache
    at c ip -6 route flush cache
}

# Forgets what this host and the server have learnt.
forget() {
    for ns in c s; do at $ns ip route flush cache; at $ns ip -6 route flush cache; done
}

# An ordinary user, but that the lab knows no other one than 0.
unprivileged() {
    at c setpriv --bounding-set=-all --inh-caps=-all "$@"
}
