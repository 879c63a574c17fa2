use wt_sys::route::Metric;

/// What may be written for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes.
    Size {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// Bytes, or multiples of the MSS.
    Window {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// Bytes, or what follows from the MTU.
    Segment {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A bare number.
    Number {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
        /// Whether 0 is a way to write `auto`.
        zero_is_auto: bool,
    },
    /// A duration in whole milliseconds.
    Millis {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// One of a few words, each with the kernel's number for it.
    Choice(&'static [(&'static str, u64)]),
    /// Least, initial and greatest size.
    Three {
        /// Least of each.
        min: u64,
        /// Most of each.
        max: u64,
        /// Whether they count pages rather than bytes.
        pages: bool,
    },
    /// The name of a kernel module or the like.
    Name,
    /// Several of them.
    Names,
}

/// Where it is set for the whole host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKnob {
    /// A kernel setting of its own.
    Sysctl(&'static str),
    /// The greatest of the three sizes in a kernel setting.
    Greatest(&'static str),
    /// The greatest receive window, which is part of the greatest receive buffer.
    Window,
}

impl HostKnob {
    /// The name of the kernel setting.
    #[must_use]
    pub fn sysctl(self) -> &'static str {
        match self {
            Self::Sysctl(name) | Self::Greatest(name) => name,
            Self::Window => "net.ipv4.tcp_rmem",
        }
    }
}

/// How it is set on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKnob {
    /// As a number.
    Number(Metric),
    /// As a number that the kernel heeds, or keeps, only if it is locked.
    Locked(Metric),
    /// As a bit among the features.
    Ecn,
    /// As the name of the congestion control.
    Congctl,
}

/// How it is set on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKnob {
    /// Largest packet.
    Mtu,
    /// Packets that the default qdisc holds.
    QueueLen,
    /// The root qdisc.
    Qdisc,
    /// Offloads that are switched together.
    Features(&'static [&'static str]),
    /// Descriptors to receive.
    RxRing,
    /// Descriptors to send.
    TxRing,
}

/// How it is set on the sockets of connections with one target, by a program that sees them begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionKnob {
    /// Greatest receive window.
    Window,
    /// Send buffer.
    SendBuffer,
    /// Unsent bytes above which the socket isn't writable.
    UnsentLowWater,
}

/// What the kernel does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelDefault {
    /// This, on every kernel that has the setting.
    Always(&'static str),
    /// One of these: it depends on the version, on memory or on how the kernel was built.
    OneOf(&'static [&'static str]),
    /// Nothing that could be known from outside.
    Unknown,
}

/// One thing that can be set: its name, where, to what, and why one would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knob {
    /// Its name in flags, files and JSON.
    pub name: &'static str,
    /// Other names that are understood. The kernel's own are always.
    pub aliases: &'static [&'static str],
    /// What may be written.
    pub kind: Kind,
    /// For the whole host.
    pub host: Option<HostKnob>,
    /// On a route.
    pub route: Option<RouteKnob>,
    /// On connections with one target, for what routes can't hold.
    pub connection: Option<ConnectionKnob>,
    /// On a device.
    pub link: Option<LinkKnob>,
    /// What a program can set on one connection for itself.
    pub socket: Option<&'static str>,
    /// What the kernel does by itself.
    pub default: KernelDefault,
    /// What it is.
    pub help: &'static str,
    /// What could go wrong when it is changed; empty if nothing is known.
    pub risk: &'static str,
}

impl Knob {
    /// The kernel's text for its default, if that is known for every kernel.
    #[must_use]
    pub fn sure_default(&self) -> Option<&'static str> {
        if let KernelDefault::Always(text) = self.default { Some(text) } else { None }
    }

    /// Whether the kernel's text may be its default.
    #[must_use]
    pub fn may_be_default(&self, text: &str) -> bool {
        let same = |known: &&str| known.split_whitespace().eq(text.split_whitespace());
        match self.default {
            KernelDefault::Always(known) => same(&known),
            KernelDefault::OneOf(known) => known.iter().any(same),
            KernelDefault::Unknown => true,
        }
    }
}
