//! What the classic optimisers set, and what starts a connection.

use super::{CUTS, NOTHING, OLD_TWINS, ON_OFF, number, size, sysctl};
use crate::knob::kind::KernelDefault::{Always, OneOf};
use crate::knob::kind::{ConnectionKnob, HostKnob, Kind, Knob, LinkKnob, RouteKnob};
use wt_sys::route::Metric;

/// In the order in which they are shown.
pub(super) const CLASSIC: &[Knob] = &[
    // What the classic optimisers set.
    Knob {
        name: "mtu",
        kind: size(68, 65_535),
        route: Some(RouteKnob::Locked(Metric::Mtu)),
        link: Some(LinkKnob::Mtu),
        help: "largest IP packet, bytes",
        risk: CUTS,
        ..NOTHING
    },
    Knob {
        name: "mss",
        aliases: &["advmss"],
        kind: Kind::Segment { min: 88, max: 65_495 },
        route: Some(RouteKnob::Number(Metric::Advmss)),
        socket: Some("TCP_MAXSEG"),
        help: "largest TCP payload of a segment that the other end may send, bytes",
        risk: "only what comes in is limited; what goes out follows the other end's MSS and the path MTU",
        ..NOTHING
    },
    Knob {
        name: "rwin",
        aliases: &["window", "receive-window"],
        kind: Kind::Window { min: 1_152, max: 1 << 30 },
        host: Some(HostKnob::Window),
        connection: Some(ConnectionKnob::Window),
        socket: Some("TCP_WINDOW_CLAMP, SO_RCVBUF"),
        help: "greatest receive window, bytes or multiples of the MSS (4x) or the MTU (33xmtu)",
        risk: "below rate times RTT it limits the rate; far above, memory is spent and queues on the path grow",
        ..NOTHING
    },
    Knob {
        name: "syn-window",
        kind: size(1, 65_535),
        route: Some(RouteKnob::Number(Metric::Window)),
        help: "window that the SYN offers, bytes; the window grows past it (rwin holds it)",
        risk: "it also fixes the window scale: a long connection may stay slow",
        ..NOTHING
    },
    Knob {
        name: "sndbuf",
        aliases: &["send-buffer"],
        kind: size(4_608, 1 << 30),
        host: Some(HostKnob::Greatest("net.ipv4.tcp_wmem")),
        connection: Some(ConnectionKnob::SendBuffer),
        socket: Some("SO_SNDBUF"),
        help: "greatest send buffer, bytes",
        risk: "below rate times RTT it limits the rate",
        ..NOTHING
    },
    Knob {
        aliases: &["hoplimit", "hop-limit"],
        route: Some(RouteKnob::Number(Metric::Hoplimit)),
        socket: Some("IP_TTL, IPV6_UNICAST_HOPS"),
        risk: "below the number of hops, nothing arrives",
        ..sysctl(
            "ttl",
            "net.ipv4.ip_default_ttl",
            Kind::Number { min: 1, max: 255, zero_is_auto: true },
            Always("64"),
            "initial time to live of packets (host-wide: IPv4)",
        )
    },
    Knob {
        risk: OLD_TWINS,
        ..sysctl(
            "window-scaling",
            "net.ipv4.tcp_window_scaling",
            ON_OFF,
            Always("1"),
            "windows above 64 KiB (RFC 7323)",
        )
    },
    Knob {
        aliases: &["path-mtu-discovery"],
        socket: Some("IP_MTU_DISCOVER"),
        risk: "off, every router may fragment, and long packets may be lost with one fragment",
        ..sysctl(
            "pmtud",
            "net.ipv4.ip_no_pmtu_disc",
            Kind::Choice(&[("on", 0), ("off", 1), ("off-both", 2), ("hardened", 3)]),
            Always("0"),
            "path MTU discovery by ICMP (IPv4)",
        )
    },
    Knob {
        aliases: &["black-hole-detection", "blackhole-detection", "plpmtud"],
        risk: "on a path that is merely lossy, the MSS may be lowered without need",
        ..sysctl(
            "mtu-probing",
            "net.ipv4.tcp_mtu_probing",
            Kind::Choice(&[("on", 1), ("off", 0), ("always", 2)]),
            Always("0"),
            "black-hole detection: probing for the path MTU with TCP's own segments (RFC 4821)",
        )
    },
    Knob {
        risk: "off, each window repairs one lost segment per RTT",
        ..sysctl("sack", "net.ipv4.tcp_sack", ON_OFF, Always("1"), "selective acknowledgements (RFC 2018)")
    },
    Knob {
        risk: "off, RTTs are measured once a window, and fast long connections can take old segments for new ones",
        ..sysctl(
            "timestamps",
            "net.ipv4.tcp_timestamps",
            Kind::Choice(&[("on", 1), ("off", 0), ("no-offset", 2)]),
            Always("1"),
            "TCP timestamps (RFC 7323)",
        )
    },
    // What starts a connection.
    Knob {
        name: "initcwnd",
        kind: number(1, 1_000),
        route: Some(RouteKnob::Number(Metric::Initcwnd)),
        help: "initial congestion window, segments (10 if auto: RFC 6928)",
        risk: "too many at once overflow a small queue, and the connection begins with losses",
        ..NOTHING
    },
    Knob {
        name: "initrwnd",
        kind: number(1, 1_000),
        route: Some(RouteKnob::Number(Metric::Initrwnd)),
        help: "initial receive window, segments",
        risk: "above the receive buffer it has no effect",
        ..NOTHING
    },
    Knob {
        aliases: &["congestion-control", "congctl"],
        route: Some(RouteKnob::Congctl),
        socket: Some("TCP_CONGESTION"),
        risk: "affects every new connection of the scope; dctcp starves beside other traffic outside of a data centre",
        ..sysctl(
            "cc",
            "net.ipv4.tcp_congestion_control",
            Kind::Name,
            OneOf(&["cubic", "reno", "bbr"]),
            "congestion control of the sender",
        )
    },
    Knob {
        route: Some(RouteKnob::Ecn),
        risk: OLD_TWINS,
        ..sysctl(
            "ecn",
            "net.ipv4.tcp_ecn",
            Kind::Choice(&[
                ("on", 1),
                ("off", 0),
                ("passive", 2),
                ("accecn", 3),
                ("accecn-passive", 4),
                ("accecn-in-ecn-out", 5),
            ]),
            Always("2"),
            "explicit congestion notification (RFC 3168)",
        )
    },
    Knob {
        name: "quickack",
        route: Some(RouteKnob::Number(Metric::Quickack)),
        socket: Some("TCP_QUICKACK"),
        help: "acknowledge at once instead of delaying",
        risk: "up to twice as many acknowledgements",
        ..NOTHING
    },
    Knob {
        name: "rto-min",
        kind: Kind::Millis { min: 1, max: 120_000 },
        route: Some(RouteKnob::Locked(Metric::RtoMin)),
        help: "least retransmission timeout, milliseconds (200 if auto)",
        risk: "below the other end's delayed acknowledgement (40 ms to 200 ms), segments are sent twice for nothing",
        ..NOTHING
    },
    Knob {
        name: "pacing",
        kind: Kind::Name,
        socket: Some("SO_MAX_PACING_RATE"),
        help: "greatest rate of one connection",
        ..NOTHING
    },
];
