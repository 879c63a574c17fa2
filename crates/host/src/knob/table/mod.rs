//! The one table that everything else reads. Ranges and defaults: the kernel's Documentation/networking/ip-sysctl.rst,
//! Documentation/admin-guide/sysctl/net.rst and ip-route(8), checked on Linux 6.18.

/// What the classic optimisers set, and what starts a connection.
mod classic;
/// Settings of the whole host, its queues and its devices.
mod host;

use super::kind::KernelDefault::{self, Unknown};
use super::kind::{HostKnob, Kind, Knob, LinkKnob};

const ON_OFF: Kind = Kind::Choice(&[("on", 1), ("off", 0)]);
const INT: u64 = 2_147_483_647;

/// A setting without anything; the others are this one with something.
const NOTHING: Knob = Knob {
    name: "",
    aliases: &[],
    kind: ON_OFF,
    host: None,
    route: None,
    connection: None,
    link: None,
    socket: None,
    default: Unknown,
    help: "",
    risk: "",
};

/// A setting of the whole host that is one kernel setting.
const fn sysctl(
    name: &'static str,
    kernel: &'static str,
    kind: Kind,
    default: KernelDefault,
    help: &'static str,
) -> Knob {
    Knob { name, kind, host: Some(HostKnob::Sysctl(kernel)), default, help, ..NOTHING }
}

const fn number(min: u64, max: u64) -> Kind {
    Kind::Number { min, max, zero_is_auto: false }
}

const fn size(min: u64, max: u64) -> Kind {
    Kind::Size { min, max }
}

/// An offload of the device.
const fn offload(
    name: &'static str,
    alias: &'static [&'static str],
    features: &'static [&'static str],
    help: &'static str,
) -> Knob {
    Knob { name, aliases: alias, link: Some(LinkKnob::Features(features)), help, ..NOTHING }
}

const OLD_TWINS: &str =
    "old firewalls and middleboxes that mishandle the option are rare, but their users lose the connection";
const CUTS: &str = "the largest packet is too large for the path: connections hang; too small: every packet costs more";

/// Every setting, in the order in which they are shown.
pub const ALL: &[Knob] = &{
    let mut all = [NOTHING; classic::CLASSIC.len() + host::HOST.len()];
    let mut at = 0;
    while at < all.len() {
        let first = classic::CLASSIC.len();
        all[at] = if at < first { classic::CLASSIC[at] } else { host::HOST[at - first] };
        at += 1;
    }
    all
};
