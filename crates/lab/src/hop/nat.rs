//! Translation of addresses and ports, as home routers do it. Pure: time is an argument.
//!
//! # What this leaves out
//! Following TCP's states (a translation ends when it isn't used), application gateways, hairpinning, IPv6.
//!
//! # Source
//! RFC 3022 (NAPT), RFC 5508 (ICMP); of RFC 4787 the mapping and the filtering are endpoint-independent, and ports are
//! kept where they are free.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use wt_wire::{Icmpv4View, IpView, PacketEdit, Protocol, TransportChecksum, fill_icmp_checksum};

/// Ports below are never given away, unless a packet comes from one.
const FIRST_PORT: u16 = 1024;
/// Translations of one protocol.
const MOST: usize = 60_000;

/// What the table knows of one outside port.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    inside: (Ipv4Addr, u16),
    used_ns: u64,
}

/// A NAT with its table.
#[derive(Debug)]
pub(crate) struct Nat {
    public: Ipv4Addr,
    idle_ns: u64,
    outside: HashMap<(u8, u16), Mapping>,
    inside: HashMap<(u8, Ipv4Addr, u16), u16>,
    next_port: u16,
    /// When the table was last looked through for what can be forgotten.
    forgotten_ns: Option<u64>,
    /// Who sent last: whom fragments without ports are for.
    last_inside: Option<Ipv4Addr>,
}

/// What a packet is to a NAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Translation {
    /// It goes on, changed or not.
    Yes,
    /// There is no translation for it: it ends here.
    No,
    /// It is for the NAT itself.
    Own,
}

impl Nat {
    pub(crate) fn new(public: Ipv4Addr, idle_ns: u64) -> Self {
        let (outside, inside) = (HashMap::new(), HashMap::new());
        Self { public, idle_ns, outside, inside, next_port: FIRST_PORT, forgotten_ns: None, last_inside: None }
    }

    /// A packet from the inside.
    pub(crate) fn outward(&mut self, now_ns: u64, packet: &mut [u8], checksum: TransportChecksum) -> Translation {
        let Ok(IpView::V4(view)) = IpView::quoted(packet) else { return Translation::Yes };
        let (source, protocol) = (view.src(), view.protocol());
        if view.dst() == self.public {
            return Translation::Own;
        }
        if protocol == Protocol::ICMP
            && let Some(quoted) = quote_of(packet)
        {
            // An error about what came from outside: its destination there was ours.
            let known = self.inside.get(&(quoted.protocol, quoted.dst.0, quoted.dst.1)).copied();
            if let Some(port) = known {
                edit_quote(packet, |quote| quote.set_destination(self.public.into(), Some(port)));
                self.rewrite(packet, checksum, |edit, public| edit.set_source(public, None));
            }
            return Translation::Yes;
        }
        let Ok(edit) = PacketEdit::new(packet, checksum) else { return Translation::Yes };
        let port = edit.ports().map(|(from, to)| if protocol == Protocol::ICMP { from.max(to) } else { from });
        let translated = match port {
            Some(port) => match self.map(now_ns, protocol.0, source, port) {
                Some(port) => Some(port),
                None => return Translation::No,
            },
            None => None,
        };
        self.last_inside = Some(source);
        self.rewrite(packet, checksum, |edit, public| edit.set_source(public, translated));
        Translation::Yes
    }

    /// A packet from outside.
    pub(crate) fn inward(&mut self, now_ns: u64, packet: &mut [u8], checksum: TransportChecksum) -> Translation {
        let Ok(IpView::V4(view)) = IpView::quoted(packet) else { return Translation::Yes };
        let protocol = view.protocol();
        if view.dst() != self.public {
            return Translation::No; // The inside has no addresses that are known outside.
        }
        if protocol == Protocol::ICMP
            && let Some(quoted) = quote_of(packet)
        {
            let Some(inside) = self.lookup(now_ns, quoted.protocol, quoted.src.1) else { return Translation::No };
            edit_quote(packet, |quote| quote.set_source(inside.0.into(), Some(inside.1)));
            self.rewrite(packet, checksum, |edit, _| edit.set_destination(inside.0.into(), None));
            return Translation::Yes;
        }
        let Ok(edit) = PacketEdit::new(packet, checksum) else { return Translation::No };
        let Some((request, port)) = edit.ports() else {
            // A later fragment, or a protocol without ports: for whoever sent last.
            let Some(inside) = self.last_inside else { return Translation::No };
            self.rewrite(packet, checksum, |edit, _| edit.set_destination(inside.into(), None));
            return Translation::Yes;
        };
        if protocol == Protocol::ICMP && request != 0 {
            return Translation::Own;
        }
        let Some(inside) = self.lookup(now_ns, protocol.0, port) else { return Translation::Own };
        self.rewrite(packet, checksum, |edit, _| edit.set_destination(inside.0.into(), Some(inside.1)));
        Translation::Yes
    }

    fn rewrite(
        &self,
        packet: &mut [u8],
        checksum: TransportChecksum,
        change: impl FnOnce(&mut PacketEdit<'_>, IpAddr),
    ) {
        if let Ok(mut edit) = PacketEdit::new(packet, checksum) {
            change(&mut edit, self.public.into());
        }
    }

    fn lookup(&mut self, now_ns: u64, protocol: u8, port: u16) -> Option<(Ipv4Addr, u16)> {
        let mapping = self.outside.get_mut(&(protocol, port))?;
        if now_ns.saturating_sub(mapping.used_ns) > self.idle_ns {
            return None;
        }
        mapping.used_ns = now_ns;
        Some(mapping.inside)
    }

    /// The outside port of an inside one: the known one, the same one if it is free, or the next free one.
    fn map(&mut self, now_ns: u64, protocol: u8, address: Ipv4Addr, port: u16) -> Option<u16> {
        if let Some(known) = self.inside.get(&(protocol, address, port)).copied()
            && self.lookup(now_ns, protocol, known).is_some()
        {
            return Some(known);
        }
        // Looking through it all costs, so a flood makes us do it seldom.
        let lately = self.forgotten_ns.is_some_and(|at| now_ns.saturating_sub(at) < self.idle_ns / 8);
        if self.outside.len() >= MOST && !lately {
            self.forget(now_ns);
        }
        if self.outside.len() >= MOST {
            return None;
        }
        let chosen = if self.is_free(now_ns, protocol, port) { port } else { self.free_port(now_ns, protocol)? };
        if let Some(old) = self.outside.insert((protocol, chosen), Mapping { inside: (address, port), used_ns: now_ns })
        {
            self.inside.remove(&(protocol, old.inside.0, old.inside.1));
        }
        self.inside.insert((protocol, address, port), chosen);
        Some(chosen)
    }

    fn is_free(&self, now_ns: u64, protocol: u8, port: u16) -> bool {
        let used = self.outside.get(&(protocol, port));
        used.is_none_or(|mapping| now_ns.saturating_sub(mapping.used_ns) > self.idle_ns)
    }

    fn free_port(&mut self, now_ns: u64, protocol: u8) -> Option<u16> {
        for _ in FIRST_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { FIRST_PORT } else { port + 1 };
            if self.is_free(now_ns, protocol, port) {
                return Some(port);
            }
        }
        None
    }

    /// Forgets what wasn't used for long.
    fn forget(&mut self, now_ns: u64) {
        self.forgotten_ns = Some(now_ns);
        let idle = self.idle_ns;
        self.outside.retain(|_, mapping| now_ns.saturating_sub(mapping.used_ns) <= idle);
        let outside = &self.outside;
        self.inside.retain(|(protocol, address, port), mapped| {
            outside.get(&(*protocol, *mapped)).is_some_and(|mapping| mapping.inside == (*address, *port))
        });
    }
}

/// What an ICMP error says of the packet that it is about.
struct QuotedPacket {
    protocol: u8,
    src: (Ipv4Addr, u16),
    dst: (Ipv4Addr, u16),
}

fn quote_of(packet: &[u8]) -> Option<QuotedPacket> {
    let Ok(IpView::V4(view)) = IpView::new(packet) else { return None };
    if view.protocol() != Protocol::ICMP || view.fragment_offset() != 0 {
        return None;
    }
    let quote = Icmpv4View::new(view.payload()).ok()?.quote()?;
    let mut bytes = quote.as_bytes().to_vec();
    let ports = PacketEdit::new(&mut bytes, TransportChecksum::Whole).ok()?.ports()?;
    let icmp = quote.protocol() == Protocol::ICMP;
    let (from, to) = if icmp { (ports.0.max(ports.1), ports.0.max(ports.1)) } else { ports };
    Some(QuotedPacket { protocol: quote.protocol().0, src: (quote.src(), from), dst: (quote.dst(), to) })
}

/// Changes the packet that an ICMP error quotes.
fn edit_quote(packet: &mut [u8], change: impl FnOnce(&mut PacketEdit<'_>)) {
    let header = usize::from(packet[0] & 15) * 4;
    if let Some(quote) = packet.get_mut(header + 8..)
        && let Ok(mut edit) = PacketEdit::new(quote, TransportChecksum::Whole)
    {
        change(&mut edit);
        fill_icmp_checksum(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_wire::{Checksum, UdpView, port_unreachable};

    const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
    const SECOND: u64 = 1_000_000_000;

    fn inside(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    /// A whole UDP packet.
    fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0];
        bytes.extend(from.0.octets().into_iter().chain(to.0.octets()));
        let sum = Checksum::new().with(&bytes).finish();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(from.1.to_be_bytes().into_iter().chain(to.1.to_be_bytes()));
        bytes.extend([0, 12, 0, 0, 1, 2, 3, 4]);
        let sum = Checksum::pseudo_header(from.0.into(), to.0.into(), 17, 12).with(&bytes[20..]).finish();
        bytes[26..28].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Addresses and ports, and whether both checksums are right.
    fn seen(bytes: &[u8]) -> ((Ipv4Addr, u16), (Ipv4Addr, u16)) {
        let Ok(IpView::V4(view)) = IpView::new(bytes) else { panic!("no IPv4 packet") };
        let udp = UdpView::new(view.payload()).unwrap();
        assert!(view.checksum_ok() && udp.checksum_ok(view.src().into(), view.dst().into()));
        ((view.src(), udp.src_port()), (view.dst(), udp.dst_port()))
    }

    fn out(nat: &mut Nat, at: u64, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> u16 {
        let mut packet = udp(from, to);
        assert_eq!(nat.outward(at, &mut packet, TransportChecksum::Whole), Translation::Yes);
        let ((address, port), far) = seen(&packet);
        assert_eq!((address, far), (PUBLIC, to));
        port
    }

    #[test]
    fn a_port_is_kept_while_it_is_free_and_answers_find_back() {
        let mut nat = Nat::new(PUBLIC, 60 * SECOND);
        assert_eq!(out(&mut nat, 0, (inside(1), 5000), (FAR, 53)), 5000);
        assert_eq!(out(&mut nat, 1, (inside(1), 5000), (FAR, 54)), 5000, "one mapping for all destinations");
        let other = out(&mut nat, 2, (inside(2), 5000), (FAR, 53));
        assert_ne!(other, 5000);
        for (port, wanted) in [(5000, inside(1)), (other, inside(2))] {
            let mut answer = udp((FAR, 53), (PUBLIC, port));
            assert_eq!(nat.inward(3, &mut answer, TransportChecksum::Whole), Translation::Yes);
            assert_eq!(seen(&answer).1, (wanted, 5000));
        }
        let mut stray = udp((FAR, 53), (PUBLIC, 7));
        assert_eq!(nat.inward(4, &mut stray, TransportChecksum::Whole), Translation::Own);
        let mut direct = udp((FAR, 53), (inside(1), 5000));
        assert_eq!(nat.inward(4, &mut direct, TransportChecksum::Whole), Translation::No);
    }

    #[test]
    fn a_translation_that_is_not_used_is_forgotten() {
        let mut nat = Nat::new(PUBLIC, 60 * SECOND);
        out(&mut nat, 0, (inside(1), 5000), (FAR, 53));
        let mut answer = udp((FAR, 53), (PUBLIC, 5000));
        assert_eq!(nat.inward(59 * SECOND, &mut answer, TransportChecksum::Whole), Translation::Yes, "used again");
        let mut answer = udp((FAR, 53), (PUBLIC, 5000));
        assert_eq!(nat.inward(120 * SECOND, &mut answer, TransportChecksum::Whole), Translation::Own);
        assert_eq!(out(&mut nat, 121 * SECOND, (inside(2), 5000), (FAR, 53)), 5000, "the port is free again");
    }

    #[test]
    fn errors_about_translated_packets_are_translated_back_with_what_they_quote() {
        let mut nat = Nat::new(PUBLIC, 60 * SECOND);
        out(&mut nat, 0, (inside(1), 5000), (FAR, 53));
        let port = out(&mut nat, 0, (inside(2), 5000), (FAR, 53));
        let mut error = port_unreachable(&udp((PUBLIC, port), (FAR, 53)), FAR.into()).unwrap();
        assert_eq!(nat.inward(1, &mut error, TransportChecksum::Whole), Translation::Yes);
        let Ok(IpView::V4(view)) = IpView::new(&error) else { panic!() };
        let icmp = Icmpv4View::new(view.payload()).unwrap();
        assert!(view.checksum_ok() && icmp.checksum_ok());
        assert_eq!((view.src(), view.dst()), (FAR, inside(2)));
        assert_eq!(seen(icmp.quote().unwrap().as_bytes()), ((inside(2), 5000), (FAR, 53)));
        // And the other way round: the inside refuses what came from outside.
        let mut refusal = port_unreachable(&udp((FAR, 53), (inside(2), 5000)), inside(2).into()).unwrap();
        assert_eq!(nat.outward(2, &mut refusal, TransportChecksum::Whole), Translation::Yes);
        let Ok(IpView::V4(view)) = IpView::new(&refusal) else { panic!() };
        let icmp = Icmpv4View::new(view.payload()).unwrap();
        assert!(icmp.checksum_ok());
        assert_eq!(view.src(), PUBLIC);
        assert_eq!(seen(icmp.quote().unwrap().as_bytes()), ((FAR, 53), (PUBLIC, port)));
    }

    #[test]
    fn a_flood_of_new_ports_is_bounded_and_old_ones_make_room() {
        let mut nat = Nat::new(PUBLIC, SECOND);
        for number in 0..70_000u32 {
            let from = (inside((number >> 16) as u8 + 1), number as u16);
            let mut packet = udp(from, (FAR, 53));
            let result = nat.outward(0, &mut packet, TransportChecksum::Whole);
            assert_eq!(result == Translation::Yes, (number as usize) < MOST, "{number}");
        }
        assert!(nat.outside.len() <= MOST && nat.inside.len() <= MOST);
        let mut packet = udp((inside(9), 9), (FAR, 53));
        assert_eq!(nat.outward(3 * SECOND, &mut packet, TransportChecksum::Whole), Translation::Yes);
        assert_eq!(nat.outside.len(), 1);
    }
}
