# Five hosts with kernels of their own: c --1500-- r1 ==1492== r2 --1400-- r3 --1500-- s.
#
# Source it in the client of a lab of one link: the lab's client becomes r1 and its server r2, so that the link between
# them has the lab's delay; c, r3 and s are network namespaces made here.

at() { # namespace, command...
    ip netns exec "$@"
}

join() { # namespace, device, IPv4, IPv6, the same of the other end, MTU
    at "$1" ip link add "$2" type veth peer name "$6" netns "$5"
    for end in "$1 $2 $3 $4" "$5 $6 $7 $8"; do
        end_of $end "$9"
    done
}

end_of() { # namespace, device, IPv4, IPv6, MTU
    at "$1" ip addr add "$3/24" dev "$2"
    at "$1" ip -6 addr add "$4/64" dev "$2" nodad
    at "$1" ip link set "$2" mtu "$5" up
}

topology() {
    ln -s client /run/netns/r1
    ln -s server /run/netns/r2
    for ns in c r3 s; do
        ip netns add "$ns"
        # Else a router's link-local address counts only after a second.
        at "$ns" sysctl -qw net.ipv6.conf.default.accept_dad=0
        at "$ns" ip link set lo up
    done
    for ns in r1 r2; do at "$ns" sysctl -qw net.ipv6.conf.default.accept_dad=0; done
    join c c0 10.1.0.2 fd00:1::2 r1 r1c 10.1.0.1 fd00:1::1 1500
    join r2 r2r3 10.23.0.2 fd00:23::2 r3 r3r2 10.23.0.3 fd00:23::3 1400
    join r3 r3s 10.3.0.1 fd00:3::1 s s0 10.3.0.2 fd00:3::2 1500
    # Rules shall see packets, and not what the kernel has joined or not yet split.
    at s ip link set s0 gso_max_segs 1
    at c ip link set c0 gso_max_segs 1
    at r1 ip link set wt0 mtu 1492
    at r2 ip link set wt0 mtu 1492
    at r1 ip addr add 10.12.0.1/24 dev wt0
    at r2 ip addr add 10.12.0.2/24 dev wt0
    at r1 ip -6 addr add fd00:12::1/64 dev wt0
    at r2 ip -6 addr add fd00:12::2/64 dev wt0
    at r1 ip route replace default via 10.12.0.2 src 10.12.0.1
    at r2 ip route replace default via 10.12.0.1 src 10.12.0.2
    at r1 ip -6 route replace default via fd00:12::2
    at r2 ip -6 route replace default via fd00:12::1
    for ns in r1 r2 r3; do
        at $ns sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        at $ns sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
    done
    at c ip route add default via 10.1.0.1
    at c ip -6 route add default via fd00:1::1
    at s ip route add default via 10.3.0.1
    at s ip -6 route add default via fd00:3::1
    at r3 ip route add default via 10.23.0.2
    at r3 ip -6 route add default via fd00:23::2
    at r2 ip route add 10.3.0.0/16 via 10.23.0.3
    at r2 ip -6 route add fd00:3::/32 via fd00:23::3
    serve
}

# An HTTP server that answers everything with 64 kB, on both versions of IP.
serve() {
    mkfifo "$TMPDIR/serving"
    at s perl -e '
        use IO::Socket::IP; $SIG{CHLD} = "IGNORE"; $SIG{PIPE} = "IGNORE";
        my $s = IO::Socket::IP->new(LocalHost => "::", LocalPort => 80, Listen => 512, V6Only => 0, ReuseAddr => 1) or die $@;
        open(my $ready, ">", $ARGV[0]); close $ready;
        while (1) {
            my $c = $s->accept or next;
            if (!fork) {
                alarm 60; my $q = "";
                while ($q !~ /\r\n\r\n/) { sysread($c, $q, 4096, length $q) or exit }
                print $c "HTTP/1.1 200 OK\r\nContent-Length: 65536\r\nConnection: close\r\n\r\n", "x" x 65536;
                close $c; exit;
            }
            close $c;
        }' "$TMPDIR/serving" &
    read -r _ < "$TMPDIR/serving" || true
}

rules() { # namespace, hook, rule
    at "$1" nft "add table inet t; add chain inet t $2 { type filter hook $2 priority 0 ; }; add rule inet t $2 $3"
}

variant() {
    case $1 in
        normal) ;;
        blackhole) silent r2 ;;
        blackhole-first) silent r1 ;;
        narrow) for ns in r2 r3; do at $ns ip link set ${ns}r$((5 - ${ns#r})) mtu 552; done ;;
        blackhole-all) for ns in r1 r2 r3; do silent $ns; done ;;
        drop) rules r2 forward "meta length > 1300 drop" ;;
        loss) rules r2 forward "meta length > 1300 numgen random mod 100 < 30 drop" ;;
        lossfwd) rules r2 forward "iifname wt0 meta length > 1300 numgen random mod 100 < 30 drop" ;;
        noecho) mute ;;
        clamp) rules r2 forward "tcp flags syn tcp option maxseg size set 1200" ;;
        # Linux itself never rations "too big" (icmpv4_mask_allow of net/ipv4/icmp.c), only other errors.
        ratelimit) for ns in r1 r2 r3; do ration $ns; done ;;
        tamper)
            for change in "tcp option maxseg size set 1200" "reset tcp option sack-perm" "reset tcp option timestamp" \
                "reset tcp option window" "reset tcp option fastopen"; do
                rules r2 forward "iifname wt0 tcp flags syn $change"
            done
            at r2 nft add rule inet t forward iifname wt0 ip ecn set not-ect
            at r2 nft add rule inet t forward iifname wt0 ip6 ecn set not-ect ;;
        # One "too long" a second and none in advance; "time exceeded" isn't rationed.
        one-word)
            for ns in r1 r2 r3; do
                rules $ns output "icmp type destination-unreachable icmp code frag-needed $ONCE drop"
                at $ns nft add rule inet t output "icmpv6 type packet-too-big $ONCE drop"
            done ;;
        # Connections take one of two links by their ports, and the second is narrow; nobody says so.
        balanced)
            join r2 r2b 10.24.0.2 fd00:24::2 r3 r3b 10.24.0.3 fd00:24::3 1400
            at r2 ip link set r2r3 mtu 1500
            at r3 ip link set r3r2 mtu 1500
            at r2 sysctl -qw net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1
            at r2 ip route replace 10.3.0.0/16 nexthop via 10.23.0.3 nexthop via 10.24.0.3
            at r2 ip -6 route replace fd00:3::/32 nexthop via fd00:23::3 nexthop via fd00:24::3
            silent r2 ;;
        clear-df) rules r1 forward "ip frag-off set 0" ;;
        # Nothing but resets comes back.
        closed) mute; at s nft add rule inet t input meta l4proto udp drop ;;
        udp-only) mute; rules s input "tcp flags syn drop" ;;
        *) echo "no variant $1" >&2; return 2 ;;
    esac
}

ONCE="limit rate over 1/second burst 1 packets"

silent() {
    rules "$1" output "icmp type destination-unreachable icmp code frag-needed drop"
    at "$1" nft add rule inet t output icmpv6 type packet-too-big drop
}

ration() {
    rules "$1" output "icmp type { destination-unreachable, time-exceeded } limit rate over 1/second drop"
    at "$1" nft add rule inet t output "icmpv6 type { packet-too-big, time-exceeded } limit rate over 1/second drop"
}

mute() {
    rules s input "icmp type echo-request drop"
    at s nft add rule inet t input icmpv6 type echo-request drop
}

# Runs a command at c without any capability: an ordinary user, but that the lab knows no other one than 0.
unprivileged() {
    at c setpriv --bounding-set=-all --inh-caps=-all "$@"
}
