//! What this system does by itself, where settings have no value that holds for every kernel.

use super::kernel::KernelVersion;
use super::survey::Survey;
use crate::knob::{HostKnob, KernelDefault, Knob, three};
use crate::snapshot::ALLOWED_CC;
use wt_sys::link::Link;

/// The first kernel that was found to begin with the larger buffers; older ones count as having the smaller ones.
const LARGER_BUFFERS: KernelVersion = KernelVersion(6, 18, 0);
/// What Ethernet devices begin with, bytes: `ETH_DATA_LEN` of the kernel.
const ETHERNET_MTU: u32 = 1_500;

impl Survey {
    /// The kernel's text for what it has by itself; `None` if that can't be known.
    #[must_use]
    pub(crate) fn default_of(&self, knob: &Knob) -> Option<String> {
        let name = knob.host?.sysctl();
        if let Some(sizes) = self.usual_sizes(name) {
            return Some(sizes.map(|size| size.to_string()).join("\t"));
        }
        let larger = self.kernel() >= LARGER_BUFFERS;
        match (knob.name, knob.default) {
            ("cc", _) => {
                // The kernel allows reno and the one that it was built with; who chooses another one by hand makes that allowed, too.
                let allowed = self.snapshot.sysctls.get(ALLOWED_CC).map_or("", String::as_str).split_whitespace();
                let others: Vec<&str> = allowed.filter(|name| *name != "reno").collect();
                let usual = others.iter().find(|name| **name == "cubic").or(others.first()).copied();
                Some(usual.unwrap_or("reno").to_owned())
            }
            ("rmem-max" | "wmem-max" | "limit-output-bytes", KernelDefault::OneOf(&[old, new])) => {
                Some(if larger { new } else { old }.to_owned())
            }
            (_, KernelDefault::Always(text) | KernelDefault::OneOf(&[text, ..])) => Some(text.to_owned()),
            _ => None,
        }
    }

    /// The three sizes with which TCP begins: the greatest one is bounded by a 128th of the memory.
    ///
    /// # Source
    /// `tcp_init()` in net/ipv4/tcp.c of Linux; the sizes of 6.18 as read there.
    #[must_use]
    pub(crate) fn usual_sizes(&self, sysctl: &str) -> Option<[u64; 3]> {
        let larger = self.kernel() >= LARGER_BUFFERS;
        let (first, most) = match sysctl {
            "net.ipv4.tcp_rmem" => (131_072, if larger { 32 << 20 } else { 6 << 20 }),
            "net.ipv4.tcp_wmem" => (16_384, 4 << 20),
            _ => return None,
        };
        Some([4_096, first, most.min(self.memory_bytes / 128).max(first)])
    }

    /// Whether a setting of the whole host is as the system has it by itself, also at the next boot as far as we are concerned.
    pub(crate) fn is_own(&self, knob: &Knob) -> bool {
        let Some(name) = knob.host.map(HostKnob::sysctl) else { return true };
        let (Some(now), Some(own)) = (self.snapshot.sysctls.get(name), self.default_of(knob)) else { return true };
        let same = |text: &str| text.split_whitespace().eq(own.split_whitespace());
        let as_now = match knob.default {
            // The kernel computes the greatest one from the memory that is free at boot, a little below ours.
            KernelDefault::OneOf(_) if three(now).is_some() => {
                let (now, own) = (three(now).unwrap_or_default(), three(&own).unwrap_or_default());
                now[..2] == own[..2] && (now[2] == own[2] || now[2].abs_diff(own[2]) * 10 < own[2])
                    || knob.may_be_default(&now.map(|size| size.to_string()).join(" "))
            }
            KernelDefault::OneOf(_) => knob.may_be_default(now),
            _ => same(now),
        };
        as_now && self.chain.ours(name).is_none_or(|line| same(&line.value))
    }

    /// The MTU that a device begins with; `None` where only its driver knows, or where that follows from others, as of tunnels, of bridges
    /// and of what lies on another device.
    #[must_use]
    pub(crate) fn own_mtu(link: &Link) -> Option<u32> {
        let is_of_itself = matches!(link.kind.as_deref(), None | Some("veth" | "dummy"));
        (is_ethernet(link) && is_of_itself).then_some(ETHERNET_MTU)
    }

    /// Whether a device has an MTU that isn't Ethernet's and of which nobody knows whether it began with it.
    pub(crate) fn has_mtu_of_its_kind(link: &Link) -> bool {
        is_ethernet(link) && Self::own_mtu(link).is_none() && link.mtu != ETHERNET_MTU
    }
}

/// Whether a device has an address as those of Ethernet have.
pub(crate) fn is_ethernet(link: &Link) -> bool {
    const ETHERNET_ADDRESS: usize = 6;
    !link.loopback && link.address.len() == ETHERNET_ADDRESS
}
