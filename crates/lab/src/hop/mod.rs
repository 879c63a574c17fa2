//! Hops at work: what each does to the packets that pass it, and what it says by ICMP. Pure: time is an argument.

mod nat;

use crate::host::{router_v4, router_v6};
use crate::scenario::{BlockedTraffic, EcnTreatment, Hop, HopDirection, MssClamp, Scenario, StrippedOption};
use crate::segment::{Buffer, Layout, Segment};
use nat::{Nat, Translation};
use std::net::IpAddr;
use std::rc::Rc;
use wt_link::{Packet, Side, Time};
use wt_wire::{IpView, PacketEdit, Protocol, TcpFlags, TransportChecksum};

/// A hop with its state.
#[derive(Debug)]
pub(crate) struct HopState {
    config: Hop,
    /// The largest MSS that fits the links around it, for IPv4 and for IPv6.
    pmtu_mss: [u16; 2],
    nat: Option<Nat>,
    bucket: Option<Bucket>,
    /// What became of the super-packet that came last in each direction: its segments share the result.
    last: [Option<(Rc<Buffer>, Rc<Buffer>)>; 2],
}

/// What becomes of a packet at a hop.
#[derive(Debug)]
pub(crate) enum HopOutcome {
    /// It goes on.
    On(Packet<Segment>),
    /// It ends here.
    Ended,
    /// It is for the hop itself.
    Own(Packet<Segment>),
}

/// Tokens for ICMP messages.
#[derive(Debug)]
struct Bucket {
    per_second: u32,
    burst: u32,
    /// In billionths of a message.
    tokens: u128,
    at: Time,
}

impl Bucket {
    const ONE: u128 = 1_000_000_000;

    fn take(&mut self, now: Time) -> bool {
        let passed = u128::from(now.0.saturating_sub(self.at.0));
        self.at = self.at.max(now);
        let full = u128::from(self.burst) * Self::ONE;
        self.tokens = (self.tokens + passed * u128::from(self.per_second)).min(full);
        let enough = self.tokens >= Self::ONE;
        self.tokens -= if enough { Self::ONE } else { 0 };
        enough
    }
}

/// The hops of a scenario: number n stands in front of link n, and one more behind the last link.
pub(crate) fn hops(scenario: &Scenario) -> Vec<HopState> {
    let count = scenario.links.len();
    let mtu = |link: usize| scenario.links.get(link).map_or(u64::MAX, |link| link.mtu.get());
    let configs = scenario.links.iter().map(|link| link.hop.clone()).chain([Hop::default()]);
    let around = (0..=count).map(|number| mtu(number).min(number.checked_sub(1).map_or(u64::MAX, mtu)));
    let numbered = configs.zip(around).enumerate();
    numbered.map(|(number, (config, mtu))| HopState::new(number, config, mtu)).collect()
}

impl HopState {
    fn new(number: usize, config: Hop, mtu: u64) -> Self {
        let mss = |headers: u64| u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX).max(1);
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = config.icmp.rate.map(|(per_second, burst)| Bucket {
            per_second,
            burst,
            tokens: u128::from(burst) * Bucket::ONE,
            at: Time::ZERO,
        });
        Self {
            pmtu_mss: [mss(40), mss(60)],
            nat: config.nat.map(|idle| Nat::new(router_v4(number), nanos(idle))),
            bucket,
            last: [None, None],
            config,
        }
    }

    /// Whether it must see packets at all.
    pub(crate) fn looks_at_packets(&self) -> bool {
        self.config.looks_at_packets()
    }

    /// Whether it translates addresses, so that what is for its own address may be for somebody behind it.
    pub(crate) fn translates(&self) -> bool {
        self.nat.is_some()
    }

    /// Whether it sends an ICMP message now: "too big", of which `v6` tells the version.
    pub(crate) fn tells_too_big(&mut self, now: Time, v6: bool) -> bool {
        self.config.icmp.too_big[usize::from(v6)] && self.has_token(now)
    }

    /// The MTU that it names.
    pub(crate) fn named_mtu(&self, mtu: u32) -> u32 {
        self.config.icmp.too_big_mtu.unwrap_or(mtu)
    }

    /// Whether it says "time exceeded" now.
    pub(crate) fn tells_time_exceeded(&mut self, now: Time) -> bool {
        self.config.icmp.time_exceeded && self.has_token(now)
    }

    /// Whether it answers what is for itself now.
    pub(crate) fn answers(&mut self, now: Time) -> bool {
        self.config.icmp.echo && self.has_token(now)
    }

    fn has_token(&mut self, now: Time) -> bool {
        self.bucket.as_mut().is_none_or(|bucket| bucket.take(now))
    }

    /// A packet passes.
    pub(crate) fn pass(&mut self, side: Side, now: Time, mut packet: Packet<Segment>) -> HopOutcome {
        let applies = match self.config.direction {
            HopDirection::Both => true,
            HopDirection::Up => side == Side::AToB,
            HopDirection::Down => side == Side::BToA,
        };
        let applies = applies && self.config.changes_packets();
        if applies && self.blocks(&packet) {
            return HopOutcome::Ended;
        }
        if applies && self.config.ecn == EcnTreatment::Bleach {
            (packet.ect, packet.ce) = (false, false);
        }
        if !applies && self.nat.is_none() {
            return HopOutcome::On(packet);
        }
        if let Some((from, to)) = &self.last[side as usize]
            && Rc::ptr_eq(from, &packet.payload.buffer)
        {
            packet.payload.buffer = Rc::clone(to);
            return HopOutcome::On(packet);
        }
        let from = Rc::clone(&packet.payload.buffer);
        match self.changed(side, now, &from, applies) {
            (Translation::Yes, None) => {}
            (Translation::Yes, Some(to)) => {
                let to = Rc::new(to);
                packet.payload.buffer = Rc::clone(&to);
                if from.layout.segments() > 1 {
                    self.last[side as usize] = Some((from, to));
                }
            }
            (Translation::No, _) => return HopOutcome::Ended,
            (Translation::Own, _) => return HopOutcome::Own(packet),
        }
        HopOutcome::On(packet)
    }

    /// The packet as it is behind the hop, if it is another one there.
    fn changed(&mut self, side: Side, now: Time, from: &Buffer, applies: bool) -> (Translation, Option<Buffer>) {
        let layout = from.layout;
        let checksum = if layout.checksum.is_some() { TransportChecksum::Partial } else { TransportChecksum::Whole };
        // Small ones whole, because ICMP quotes packets; of super-packets only the headers matter.
        let whole = layout.transport == crate::segment::Transport::Other;
        let end = if whole { layout.len } else { layout.payload_at };
        let mut headers = from.bytes()[..end].to_vec();
        let mut translated = Translation::Yes;
        if let Some(nat) = self.nat.as_mut().filter(|_| side == Side::BToA) {
            translated = nat.inward(now.0, &mut headers, checksum);
        }
        if applies && self.rewrite(&mut headers, checksum, layout.v6) == Change::Drop {
            return (Translation::No, None);
        }
        if let Some(nat) = self.nat.as_mut().filter(|_| side == Side::AToB) {
            translated = nat.outward(now.0, &mut headers, checksum);
        }
        if translated != Translation::Yes || headers == from.bytes()[..end] {
            return (translated, None);
        }
        headers.extend_from_slice(&from.bytes()[end..]);
        (Translation::Yes, Some(Buffer::of(headers, layout)))
    }

    fn blocks(&self, packet: &Packet<Segment>) -> bool {
        if self.config.block.is_empty() {
            return false;
        }
        let bytes = packet.payload.buffer.bytes();
        let Ok(view) = IpView::quoted(bytes) else { return false };
        let fragment = match view {
            IpView::V4(view) => view.is_fragment(),
            IpView::V6(view) => view.upper_layer().is_ok_and(|upper| upper.is_fragment),
        };
        let (protocol, first) = view
            .transport()
            .map_or((Protocol(0), 0), |(protocol, transport)| (protocol, transport.first().copied().unwrap_or(0)));
        let icmp = matches!(protocol, Protocol::ICMP | Protocol::ICMPV6);
        let error = match protocol {
            Protocol::ICMP => matches!(first, 3 | 4 | 5 | 11 | 12),
            _ => first < 128,
        };
        self.config.block.iter().any(|blocked| match blocked {
            BlockedTraffic::Icmp => icmp,
            BlockedTraffic::IcmpErrors => icmp && error,
            BlockedTraffic::Udp => protocol == Protocol::UDP,
            BlockedTraffic::Fragments => fragment,
        })
    }

    /// Changes headers as configured.
    fn rewrite(&self, headers: &mut [u8], checksum: TransportChecksum, v6: bool) -> Change {
        let config = &self.config;
        let Ok(mut edit) = PacketEdit::new(headers, checksum) else { return Change::Pass };
        if config.ecn == EcnTreatment::Bleach {
            edit.clear_ecn();
        }
        let Some(flags) = edit.tcp().map(|tcp| tcp.flags()).filter(|flags| flags.has(TcpFlags::SYN)) else {
            return Change::Pass;
        };
        // A SYN asks with both bits, its answer agrees with one (RFC 3168 section 6.1.1).
        let asks = flags.has(TcpFlags::ECE | TcpFlags::CWR) && !flags.has(TcpFlags::ACK);
        if config.ecn == EcnTreatment::DropSyn && asks {
            return Change::Drop;
        }
        if config.ecn == EcnTreatment::StripSyn {
            edit.clear_flags(TcpFlags::ECE | TcpFlags::CWR | TcpFlags::AE);
        }
        match config.mss_clamp {
            Some(MssClamp::Pmtu) => edit.clamp_mss(self.pmtu_mss[usize::from(v6)]),
            Some(MssClamp::At(most)) => edit.clamp_mss(most),
            None => false,
        };
        if let Some(mss) = config.mss {
            edit.set_mss(mss);
        }
        if let Some(shift) = config.window_scale {
            edit.set_window_scale(shift);
        }
        let kinds: Vec<u8> = config.strip.iter().map(|option| kind(*option)).collect();
        edit.strip_options(&kinds);
        Change::Pass
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    Pass,
    Drop,
}

/// The number of an option of TCP: IANA's registry of TCP parameters.
const fn kind(option: StrippedOption) -> u8 {
    match option {
        StrippedOption::Mss => 2,
        StrippedOption::WindowScale => 3,
        StrippedOption::Sack => 4,
        StrippedOption::Timestamps => 8,
        StrippedOption::FastOpen => 34,
    }
}

/// The destination of a packet.
pub(crate) fn destination_of(packet: &Packet<Segment>) -> Option<IpAddr> {
    let buffer = &packet.payload.buffer;
    let Layout { v6, .. } = buffer.layout;
    let bytes = buffer.bytes();
    if v6 {
        Some(IpAddr::from(<[u8; 16]>::try_from(bytes.get(24..40)?).ok()?))
    } else {
        Some(IpAddr::from(<[u8; 4]>::try_from(bytes.get(16..20)?).ok()?))
    }
}

/// The number of the router that has this address, counted from the client.
pub(crate) fn router_number(address: IpAddr) -> Option<usize> {
    let number = match address {
        IpAddr::V4(address) => usize::from(address.octets()[3]),
        IpAddr::V6(address) => usize::from(address.segments()[7]),
    };
    let number = number.checked_sub(1)?;
    let is = match address {
        IpAddr::V4(address) => router_v4(number) == address,
        IpAddr::V6(address) => router_v6(number) == address,
    };
    is.then_some(number)
}
