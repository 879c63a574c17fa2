use crate::objects::OBJECTS;
use crate::parameter::{Parameter, Unit};

/// A named set of parameters.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// How people write it.
    pub name: &'static str,
    /// How it appears in the kernel's name for it.
    pub short: &'static str,
    /// What differs from the defaults, by parameter's name, in the source's unit.
    pub values: &'static [(&'static str, u32)],
    /// In one line.
    pub help: &'static str,
}

/// One of our congestion controls.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// How people write it.
    pub name: &'static str,
    /// In one line.
    pub title: &'static str,
    /// What it does, in five plain lines.
    pub lines: [&'static str; 5],
    /// What can be set, in the order of the C source.
    pub parameters: &'static [Parameter],
    /// Named sets; the first one holds if none is named.
    pub variants: &'static [Variant],
    /// Where it comes from.
    pub source: &'static str,
}

impl Algorithm {
    /// The object for the kernel; `None` where clang was missing when this was built.
    #[must_use]
    pub fn object(&self) -> Option<&'static [u8]> {
        OBJECTS.iter().find(|(name, _)| *name == self.name).map(|(_, object)| *object)
    }

    /// A parameter by the name that people write.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<(usize, &'static Parameter)> {
        self.parameters.iter().enumerate().find(|(_, parameter)| parameter.name == name)
    }
}

/// One of ours by its name.
#[must_use]
pub fn algorithm(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}

const fn time(name: &'static str, field: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter { name, field, unit: Unit::Time, default, range: (1, 60_000_000), help }
}

const fn share(name: &'static str, field: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter { name, field, unit: Unit::Share, default, range: (1, 1_000_000), help }
}

const fn count(name: &'static str, field: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter { name, field, unit: Unit::Count, default, range: (0, 1_000), help }
}

const fn switch(name: &'static str, field: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter { name, field, unit: Unit::Switch, default, range: (0, 1), help }
}

const QUEUE_THRESHOLD: Parameter = time(
    "queue-threshold",
    "queue_threshold_us",
    20_000,
    "queueing delay at which backing off is likeliest (20 ticks of FreeBSD's clock)",
);
const QUEUE_MIN: Parameter =
    time("queue-min", "queue_min_us", 5_000, "queueing delay up to which nothing happens (5 ticks of FreeBSD's clock)");

const HZ_1000_HELP: &str = "FreeBSD on bare metal, kern.hz=1000: thresholds of 5 and 20 ticks are 5 and 20 ms";
const HZ_100_HELP: &str = "FreeBSD in a virtual machine, kern.hz=100: thresholds of 5 and 20 ticks are 50 and 200 ms";

const HAMILTON_VARIANTS: &[Variant] = &[
    Variant { name: "freebsd-hz1000", short: "hz1000", values: &[], help: HZ_1000_HELP },
    Variant {
        name: "freebsd-hz100",
        short: "hz100",
        values: &[("queue-threshold", 200_000), ("queue-min", 50_000)],
        help: HZ_100_HELP,
    },
];

const ONLY: &[Variant] = &[Variant { name: "default", short: "", values: &[], help: "the only one" }];

/// All of ours.
pub const ALGORITHMS: [Algorithm; 8] = [
    Algorithm {
        name: "newreno",
        title: "NewReno by FreeBSD's rules",
        lines: [
            "Grows by the packets acknowledged in slow start, then by one packet per round trip.",
            "Halves the window once for all losses of one window of data.",
            "After a timeout starts again from one packet, up to half the old window.",
            "Takes W/2 round trips to regain a window of W packets; random loss p holds it to 1.22/sqrt(p) packets.",
            "The yardstick: what the others are compared with.",
        ],
        parameters: &[share("beta", "beta_ppm", 500_000, "what is left of the window after a loss")],
        variants: ONLY,
        source: "RFC 5681, RFC 6582; FreeBSD cc_newreno(4)",
    },
    Algorithm {
        name: "hd",
        title: "Hamilton delay",
        lines: [
            "At every ACK compares the RTT with the shortest one: the rest is the queue.",
            "With a queue above queue-min it halves the window with a probability that rises up to queue-threshold.",
            "Beyond that the probability falls again, so that it doesn't starve beside flows that fill the queue.",
            "Grows like NewReno otherwise, and halves at every loss like it.",
            "Keeps queues short where nobody else fills them; gains nothing under random loss.",
        ],
        parameters: &[QUEUE_THRESHOLD, QUEUE_MIN, share("pmax", "pmax_ppm", 50_000, "largest probability, per ACK")],
        variants: HAMILTON_VARIANTS,
        source: "Budzisz, Stanojevic, Shorten, Baker, IEEE Communications Letters 13(7), 2009; FreeBSD cc_hd(4)",
    },
    Algorithm {
        name: "chd",
        title: "CAIA-Hamilton delay: tolerates losses that aren't congestion",
        lines: [
            "Draws once per round trip whether to back off, with HD's probability of the longest queue in it.",
            "A loss while the queue is below queue-threshold leaves the window as it was: it can't be congestion.",
            "A loss with a longer queue halves the window, as NewReno does.",
            "A shadow window remembers what delay back-offs gave up, and returns it where others fill the queue.",
            "Under light random loss it returns to its old rate within a round trip or two.",
        ],
        parameters: &[
            QUEUE_THRESHOLD,
            QUEUE_MIN,
            share("pmax", "pmax_ppm", 500_000, "largest probability, per round trip"),
            switch("loss-fair", "loss_fair", 1, "use the shadow window where others fill the queue"),
            switch("use-max", "use_max", 1, "judge a round trip by its longest RTT instead of its last one"),
        ],
        variants: HAMILTON_VARIANTS,
        source: "Hayes, Armitage, LCN 2010 (10.1109/LCN.2010.5735714); FreeBSD cc_chd(4)",
    },
    Algorithm {
        name: "cdg",
        title: "CAIA delay gradient",
        lines: [
            "Once per round trip compares the shortest and the longest RTT with those of the last one.",
            "Where the RTT grows, it takes 30 % off the window with a probability of 1 - exp(-growth/scale).",
            "From how the two move it guesses whether the queue is empty, rising, full or falling.",
            "A loss halves the window only where the queue seems full; a shadow window remembers what was given up.",
            "After five back-offs in a row without effect it holds its ground for five round trips.",
        ],
        parameters: &[
            time(
                "backoff-scale",
                "backoff_scale_us",
                3_000,
                "growth per round trip that makes backing off 63 % likely",
            ),
            share("beta-delay", "beta_delay_ppm", 700_000, "what is left of the window after a delay back-off"),
            share("beta-loss", "beta_loss_ppm", 500_000, "what is left of the window after a loss"),
            count("compete-after", "compete_after", 5, "back-offs without effect before it holds its ground"),
            count("hold-backoff", "hold_backoff", 5, "signals ignored then"),
            count("alpha-inc", "alpha_inc", 0, "grow by one packet more after so many round trips; 0: never"),
        ],
        variants: &[
            Variant {
                name: "freebsd-hz1000",
                short: "hz1000",
                values: &[],
                help: "3 ticks of FreeBSD at kern.hz=1000",
            },
            Variant {
                name: "freebsd-hz100",
                short: "hz100",
                values: &[("backoff-scale", 30_000)],
                help: "3 ticks of FreeBSD at kern.hz=100, as in a virtual machine",
            },
        ],
        source: "Hayes, Armitage, Networking 2011; FreeBSD cc_cdg(4), whose code sets a scale of 3 where the page says 2",
    },
    Algorithm {
        name: "vegas",
        title: "Vegas by FreeBSD's rules",
        lines: [
            "Once per round trip estimates how many of its packets wait in the queue.",
            "Fewer than alpha: one packet more. More than beta: one packet less.",
            "In slow start grows only every other round trip, and leaves it when beta is exceeded.",
            "Losses and timeouts as NewReno.",
            "Keeps queues short alone; yields to whoever fills them.",
        ],
        parameters: &[
            count("alpha", "alpha", 1, "packets in the queue below which it grows"),
            count("beta", "beta", 3, "packets in the queue above which it shrinks"),
        ],
        variants: ONLY,
        source: "Brakmo, Peterson, IEEE JSAC 13(8), 1995; FreeBSD cc_vegas(4)",
    },
    Algorithm {
        name: "htcp",
        title: "H-TCP by FreeBSD's rules",
        lines: [
            "For one second after congestion grows like NewReno.",
            "Then faster the longer it lasts: 1 + 10 d + (d/2)^2 packets per round trip, d seconds later.",
            "Halves at a loss; with adaptive-backoff takes off less where the queue was short.",
            "The first timeout of a row doesn't count as congestion: it may be a false alarm.",
            "Fills long fat paths that NewReno leaves half empty; under frequent loss it is NewReno.",
        ],
        parameters: &[
            switch(
                "adaptive-backoff",
                "adaptive_backoff",
                0,
                "keep between 50 % and 80 %, by the shortest over the longest RTT",
            ),
            switch("rtt-scaling", "rtt_scaling", 0, "grow by RTT/100 ms, between 0.1 and 2, to be fair between RTTs"),
        ],
        variants: ONLY,
        source: "Leith, Shorten, draft-leith-tcp-htcp-06; FreeBSD cc_htcp(4)",
    },
    Algorithm {
        name: "illinois",
        title: "TCP-Illinois",
        lines: [
            "Losses say when to back off; the queueing delay says how fast to grow and how far to back off.",
            "While the queue is short it grows by ten packets per round trip, near the longest queue by 0.3.",
            "Takes off an eighth at a loss with a short queue, a half with a long one, and between in between.",
            "Windows below least-window behave like NewReno.",
            "Made for fast long paths with loss-based neighbours.",
        ],
        parameters: &[
            count("least-window", "least_window", 15, "packets below which it behaves like NewReno"),
            count("theta", "theta", 5, "round trips with a short queue before it grows fastest again"),
        ],
        variants: ONLY,
        source: "Liu, Basar, Srikant, Performance Evaluation 65, 2008; constants of Linux, net/ipv4/tcp_illinois.c",
    },
    Algorithm {
        name: "westwood",
        title: "Westwood+",
        lines: [
            "Grows like NewReno.",
            "Measures the rate at which data arrives, smoothed twice.",
            "After a loss sets the window to what that rate fills in the shortest RTT, instead of half.",
            "So a random loss on a path without a queue costs little, one with a full queue empties the queue.",
            "Made for radio links.",
        ],
        parameters: &[time("interval", "interval_us", 50_000, "over which the rate is measured, at least one RTT")],
        variants: ONLY,
        source: "Grieco, Mascolo, ACM CCR 34(2), 2004; constants of Linux, net/ipv4/tcp_westwood.c",
    },
];
