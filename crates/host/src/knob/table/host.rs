//! Settings of the whole host, its queues and its devices.

use super::{INT, NOTHING, ON_OFF, number, offload, size, sysctl};
use crate::knob::kind::KernelDefault::{Always, OneOf, Unknown};
use crate::knob::kind::{ConnectionKnob, Kind, Knob, LinkKnob};

/// In the order in which they are shown.
pub(super) const HOST: &[Knob] = &[
    // Memory.
    sysctl(
        "tcp-rmem",
        "net.ipv4.tcp_rmem",
        Kind::Three { min: 1, max: INT, pages: false },
        OneOf(&["4096 131072 6291456", "4096 131072 33554432", "4096 87380 6291456"]),
        "receive buffers: least, initial, greatest, bytes",
    ),
    sysctl(
        "tcp-wmem",
        "net.ipv4.tcp_wmem",
        Kind::Three { min: 1, max: INT, pages: false },
        OneOf(&["4096 16384 4194304", "4096 20480 4194304"]),
        "send buffers: least, initial, greatest, bytes",
    ),
    sysctl(
        "tcp-mem",
        "net.ipv4.tcp_mem",
        Kind::Three { min: 1, max: INT, pages: true },
        Unknown,
        "memory of all TCP sockets together: no pressure below, pressure above, most, pages",
    ),
    sysctl(
        "rmem-max",
        "net.core.rmem_max",
        size(2_304, INT),
        OneOf(&["212992", "4194304"]),
        "greatest receive buffer that a program may ask for, bytes",
    ),
    sysctl(
        "wmem-max",
        "net.core.wmem_max",
        size(4_608, INT),
        OneOf(&["212992", "4194304"]),
        "greatest send buffer that a program may ask for, bytes",
    ),
    sysctl(
        "rmem-default",
        "net.core.rmem_default",
        size(2_304, INT),
        Always("212992"),
        "initial receive buffer of sockets other than TCP's, bytes",
    ),
    sysctl(
        "wmem-default",
        "net.core.wmem_default",
        size(4_608, INT),
        Always("212992"),
        "initial send buffer of sockets other than TCP's, bytes",
    ),
    Knob {
        risk: "off, the receive buffer stays at its initial size, and with it the window",
        ..sysctl(
            "moderate-rcvbuf",
            "net.ipv4.tcp_moderate_rcvbuf",
            ON_OFF,
            Always("1"),
            "receive buffers grow as needed",
        )
    },
    sysctl(
        "adv-win-scale",
        "net.ipv4.tcp_adv_win_scale",
        number(0, 31),
        Always("1"),
        "share of the receive buffer kept for overhead; without effect since Linux 6.6",
    ),
    Knob {
        connection: Some(ConnectionKnob::UnsentLowWater),
        socket: Some("TCP_NOTSENT_LOWAT"),
        ..sysctl(
            "notsent-lowat",
            "net.ipv4.tcp_notsent_lowat",
            size(0, 4_294_967_295),
            Always("4294967295"),
            "unsent bytes above which a socket isn't writable",
        )
    },
    sysctl(
        "limit-output-bytes",
        "net.ipv4.tcp_limit_output_bytes",
        size(4_096, INT),
        OneOf(&["1048576", "4194304"]),
        "bytes of one connection below TCP, in qdisc and device",
    ),
    sysctl(
        "autocorking",
        "net.ipv4.tcp_autocorking",
        ON_OFF,
        Always("1"),
        "small writes wait for each other while packets are queued",
    ),
    sysctl(
        "shrink-window",
        "net.ipv4.tcp_shrink_window",
        ON_OFF,
        Always("0"),
        "the window may be taken back under memory pressure (Linux 6.6)",
    ),
    // MTU and MSS.
    sysctl(
        "base-mss",
        "net.ipv4.tcp_base_mss",
        size(48, 65_495),
        OneOf(&["1024", "512"]),
        "MSS that black-hole detection begins with, bytes",
    ),
    sysctl(
        "mtu-probe-floor",
        "net.ipv4.tcp_mtu_probe_floor",
        size(48, 65_495),
        Always("48"),
        "least MSS of black-hole detection, bytes",
    ),
    sysctl(
        "mtu-probe-interval",
        "net.ipv4.tcp_probe_interval",
        number(1, 86_400),
        Always("600"),
        "seconds until black-hole detection probes for a larger MTU again",
    ),
    sysctl(
        "mtu-probe-threshold",
        "net.ipv4.tcp_probe_threshold",
        size(1, 65_495),
        Always("8"),
        "bytes at which its search ends",
    ),
    sysctl(
        "min-snd-mss",
        "net.ipv4.tcp_min_snd_mss",
        size(48, 65_495),
        Always("48"),
        "least MSS that is heeded, bytes",
    ),
    sysctl(
        "min-pmtu",
        "net.ipv4.route.min_pmtu",
        size(68, 65_535),
        Always("552"),
        "least path MTU that ICMP may set, bytes",
    ),
    sysctl(
        "mtu-expires",
        "net.ipv4.route.mtu_expires",
        number(1, INT),
        Always("600"),
        "seconds that a learnt path MTU is kept",
    ),
    sysctl(
        "min-adv-mss",
        "net.ipv4.route.min_adv_mss",
        size(48, 65_495),
        Always("256"),
        "least MSS that is advertised, bytes",
    ),
    // Congestion, loss, idleness.
    Knob {
        risk: "off, a connection that was idle sends a full window at once",
        ..sysctl(
            "slow-start-after-idle",
            "net.ipv4.tcp_slow_start_after_idle",
            ON_OFF,
            Always("1"),
            "the congestion window shrinks while a connection is idle (RFC 2861)",
        )
    },
    Knob {
        aliases: &["metrics-cache-off"],
        ..sysctl(
            "no-metrics-save",
            "net.ipv4.tcp_no_metrics_save",
            ON_OFF,
            Always("0"),
            "nothing is remembered of past connections to a host",
        )
    },
    sysctl(
        "no-ssthresh-metrics-save",
        "net.ipv4.tcp_no_ssthresh_metrics_save",
        ON_OFF,
        Always("1"),
        "the slow start threshold isn't remembered",
    ),
    sysctl("recovery", "net.ipv4.tcp_recovery", number(0, 255), Always("1"), "bits of RACK loss detection (RFC 8985)"),
    sysctl("early-retrans", "net.ipv4.tcp_early_retrans", number(0, 4), Always("3"), "tail loss probe: 0 off, 3 on"),
    sysctl("frto", "net.ipv4.tcp_frto", number(0, 2), Always("2"), "spurious timeouts are undone (RFC 5682)"),
    sysctl("dsack", "net.ipv4.tcp_dsack", ON_OFF, Always("1"), "duplicates are reported (RFC 2883)"),
    sysctl(
        "reordering",
        "net.ipv4.tcp_reordering",
        number(1, INT),
        Always("3"),
        "segments out of order before one counts as lost",
    ),
    sysctl(
        "max-reordering",
        "net.ipv4.tcp_max_reordering",
        number(1, INT),
        Always("300"),
        "most segments out of order that are tolerated",
    ),
    sysctl(
        "ecn-fallback",
        "net.ipv4.tcp_ecn_fallback",
        ON_OFF,
        Always("1"),
        "without ECN if the SYN with it gets lost",
    ),
    sysctl(
        "min-rtt-wlen",
        "net.ipv4.tcp_min_rtt_wlen",
        number(0, 86_400),
        Always("300"),
        "seconds over which the least RTT is taken",
    ),
    sysctl(
        "pacing-ss-ratio",
        "net.ipv4.tcp_pacing_ss_ratio",
        number(1, 1_000),
        Always("200"),
        "pacing rate in slow start, percent of window over RTT",
    ),
    sysctl(
        "pacing-ca-ratio",
        "net.ipv4.tcp_pacing_ca_ratio",
        number(1, 1_000),
        Always("120"),
        "pacing rate afterwards, percent of window over RTT",
    ),
    sysctl(
        "tso-win-divisor",
        "net.ipv4.tcp_tso_win_divisor",
        number(0, 255),
        Always("3"),
        "share of the window that one large segment may take",
    ),
    sysctl("min-tso-segs", "net.ipv4.tcp_min_tso_segs", number(1, 255), Always("2"), "least segments in a large one"),
    sysctl(
        "tso-rtt-log",
        "net.ipv4.tcp_tso_rtt_log",
        number(0, 255),
        Always("9"),
        "large segments grow towards near hosts (Linux 5.18)",
    ),
    sysctl(
        "comp-sack-delay-ns",
        "net.ipv4.tcp_comp_sack_delay_ns",
        number(0, 1_000_000_000),
        Always("1000000"),
        "most delay of compressed SACKs, nanoseconds",
    ),
    sysctl(
        "comp-sack-nr",
        "net.ipv4.tcp_comp_sack_nr",
        number(0, 255),
        Always("44"),
        "most SACKs that are compressed into one",
    ),
    sysctl(
        "thin-linear-timeouts",
        "net.ipv4.tcp_thin_linear_timeouts",
        ON_OFF,
        Always("0"),
        "thin streams time out linearly at first",
    ),
    sysctl(
        "invalid-ratelimit",
        "net.ipv4.tcp_invalid_ratelimit",
        number(0, INT),
        Always("500"),
        "milliseconds between answers to invalid segments",
    ),
    sysctl(
        "app-win",
        "net.ipv4.tcp_app_win",
        number(0, 31),
        Always("31"),
        "share of the window kept for the application",
    ),
    // Connections coming and going.
    Knob {
        aliases: &["tfo"],
        ..sysctl(
            "fastopen",
            "net.ipv4.tcp_fastopen",
            number(0, 4_095),
            Always("1"),
            "bits of Fast Open: 1 client, 2 server (RFC 7413)",
        )
    },
    sysctl("syn-retries", "net.ipv4.tcp_syn_retries", number(1, 127), Always("6"), "SYNs retransmitted"),
    sysctl("synack-retries", "net.ipv4.tcp_synack_retries", number(0, 255), Always("5"), "SYN-ACKs retransmitted"),
    sysctl(
        "retries2",
        "net.ipv4.tcp_retries2",
        number(0, 255),
        Always("15"),
        "timeouts until a connection is given up",
    ),
    sysctl(
        "syncookies",
        "net.ipv4.tcp_syncookies",
        number(0, 2),
        Always("1"),
        "SYN cookies: 0 off, 1 when flooded, 2 always",
    ),
    sysctl("max-syn-backlog", "net.ipv4.tcp_max_syn_backlog", number(1, INT), Unknown, "connections half open"),
    sysctl(
        "somaxconn",
        "net.core.somaxconn",
        number(1, INT),
        OneOf(&["4096", "128"]),
        "connections waiting to be accepted",
    ),
    sysctl("fin-timeout", "net.ipv4.tcp_fin_timeout", number(1, 2_147_483), Always("60"), "seconds in FIN-WAIT-2"),
    sysctl(
        "tw-reuse",
        "net.ipv4.tcp_tw_reuse",
        number(0, 2),
        OneOf(&["2", "0"]),
        "ports in TIME-WAIT are used again: 0 no, 1 yes, 2 on loopback",
    ),
    sysctl(
        "keepalive-time",
        "net.ipv4.tcp_keepalive_time",
        number(1, 2_147_483),
        Always("7200"),
        "idle seconds before the first keepalive",
    ),
    sysctl(
        "keepalive-intvl",
        "net.ipv4.tcp_keepalive_intvl",
        number(1, 2_147_483),
        Always("75"),
        "seconds between keepalives",
    ),
    sysctl(
        "keepalive-probes",
        "net.ipv4.tcp_keepalive_probes",
        number(1, 255),
        Always("9"),
        "keepalives until a connection is given up",
    ),
    sysctl(
        "allowed-cc",
        "net.ipv4.tcp_allowed_congestion_control",
        Kind::Names,
        Unknown,
        "congestion controls that every program may choose",
    ),
    // Caches: the heirs of the "NDI cache".
    Knob {
        aliases: &["gc-thresh1"],
        ..sysctl(
            "neigh-gc-thresh1",
            "net.ipv4.neigh.default.gc_thresh1",
            number(0, INT),
            Always("128"),
            "neighbours kept in any case (IPv4)",
        )
    },
    Knob {
        aliases: &["gc-thresh2"],
        ..sysctl(
            "neigh-gc-thresh2",
            "net.ipv4.neigh.default.gc_thresh2",
            number(0, INT),
            Always("512"),
            "neighbours above which old ones go after 5 s (IPv4)",
        )
    },
    Knob {
        aliases: &["gc-thresh3", "neighbour-cache", "neighbor-cache"],
        ..sysctl(
            "neigh-gc-thresh3",
            "net.ipv4.neigh.default.gc_thresh3",
            number(1, INT),
            Always("1024"),
            "most neighbours (IPv4)",
        )
    },
    sysctl(
        "neigh6-gc-thresh1",
        "net.ipv6.neigh.default.gc_thresh1",
        number(0, INT),
        Always("128"),
        "neighbours kept in any case (IPv6)",
    ),
    sysctl(
        "neigh6-gc-thresh2",
        "net.ipv6.neigh.default.gc_thresh2",
        number(0, INT),
        Always("512"),
        "neighbours above which old ones go after 5 s (IPv6)",
    ),
    sysctl(
        "neigh6-gc-thresh3",
        "net.ipv6.neigh.default.gc_thresh3",
        number(1, INT),
        Always("1024"),
        "most neighbours (IPv6)",
    ),
    Knob {
        aliases: &["route-cache"],
        ..sysctl(
            "route-max-size",
            "net.ipv4.route.max_size",
            number(0, INT),
            OneOf(&["2147483647"]),
            "route cache (IPv4); without effect since Linux 3.6",
        )
    },
    sysctl(
        "route6-max-size",
        "net.ipv6.route.max_size",
        number(0, INT),
        OneOf(&["4096", "2147483647"]),
        "route cache (IPv6)",
    ),
    sysctl(
        "route6-gc-thresh",
        "net.ipv6.route.gc_thresh",
        number(0, INT),
        Always("1024"),
        "cached routes above which old ones go (IPv6)",
    ),
    // Queues and devices.
    sysctl(
        "default-qdisc",
        "net.core.default_qdisc",
        Kind::Name,
        OneOf(&["pfifo_fast", "fq_codel", "fq"]),
        "qdisc that new devices get",
    ),
    Knob {
        name: "qdisc",
        kind: Kind::Name,
        link: Some(LinkKnob::Qdisc),
        help: "root queueing discipline of the device",
        risk: "packets in the old queue are lost; on a device with several queues, one root qdisc serialises them",
        ..NOTHING
    },
    Knob {
        name: "txqueuelen",
        aliases: &["queue-length", "qlen"],
        kind: number(1, 1_000_000),
        link: Some(LinkKnob::QueueLen),
        help: "packets that the default qdisc of the device holds",
        risk: "a qdisc that took its limit from the old value keeps it until it is made anew",
        ..NOTHING
    },
    sysctl(
        "netdev-max-backlog",
        "net.core.netdev_max_backlog",
        number(1, INT),
        Always("1000"),
        "received packets waiting for one CPU",
    ),
    Knob {
        name: "ring-rx",
        kind: number(1, 65_536),
        link: Some(LinkKnob::RxRing),
        help: "descriptors to receive",
        risk: "most drivers take the device down for a moment",
        ..NOTHING
    },
    Knob {
        name: "ring-tx",
        kind: number(1, 65_536),
        link: Some(LinkKnob::TxRing),
        help: "descriptors to send",
        risk: "most drivers take the device down for a moment",
        ..NOTHING
    },
    offload(
        "offload-tso",
        &["tso"],
        &["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation"],
        "the device cuts large TCP segments",
    ),
    offload("offload-gso", &["gso"], &["tx-generic-segmentation"], "large segments are cut as late as possible"),
    offload("offload-gro", &["gro"], &["rx-gro"], "received segments are joined"),
    offload("offload-lro", &["lro"], &["rx-lro"], "the device joins received segments"),
    offload("offload-rx-checksum", &["rx-checksum"], &["rx-checksum"], "the device checks checksums"),
    offload(
        "offload-sg",
        &["scatter-gather"],
        &["tx-scatter-gather"],
        "packets are sent from several pieces of memory",
    ),
];
