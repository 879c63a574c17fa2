use super::{Checksum, IpView, Protocol, TcpFlags, TcpView, ViewError, u16_at, updated_checksum};
use crate::IpVersion;
use std::net::IpAddr;

/// What stands in the checksum field of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportChecksum {
    /// The checksum.
    Whole,
    /// The pseudo-header's sum alone, which a kernel or a device is still to complete.
    Partial,
}

/// A packet whose headers are changed as a middlebox changes them: the length stays, and the checksums stay as right as
/// they were.
///
/// # Source
/// RFC 1624 for changing a checksum with what it covers.
///
/// # Example
/// ```
/// # let mut syn = vec![0; 44];
/// # syn[0] = 0x45; syn[3] = 44; syn[9] = 6; syn[32] = 6 << 4; syn[33] = 2;
/// # syn[40..].copy_from_slice(&[2, 4, 0x05, 0xb4]);
/// use wt_wire::{PacketEdit, TcpOption, TransportChecksum};
/// let mut edit = PacketEdit::new(&mut syn, TransportChecksum::Whole)?;
/// assert!(edit.clamp_mss(1400));
/// assert_eq!(edit.tcp().and_then(|tcp| tcp.options().next()), Some(Ok(TcpOption::Mss(1400))));
/// # Ok::<(), wt_wire::ViewError>(())
/// ```
#[derive(Debug)]
pub struct PacketEdit<'a> {
    bytes: &'a mut [u8],
    version: IpVersion,
    checksum: TransportChecksum,
    /// Of a whole packet or a first fragment.
    transport: Option<(Protocol, usize)>,
}

impl<'a> PacketEdit<'a> {
    /// A packet of which perhaps only the beginning is there.
    ///
    /// # Errors
    /// [`ViewError`] if it is no IP packet.
    pub fn new(bytes: &'a mut [u8], checksum: TransportChecksum) -> Result<Self, ViewError> {
        let view = IpView::quoted(bytes)?;
        let version = if matches!(view, IpView::V4(_)) { IpVersion::V4 } else { IpVersion::V6 };
        let end = match view {
            IpView::V4(view) => view.as_bytes().len(),
            IpView::V6(view) => view.as_bytes().len(),
        };
        let transport = view.transport().map(|(protocol, payload)| (protocol, end - payload.len()));
        Ok(Self { bytes, version, checksum, transport })
    }

    /// What it is now.
    ///
    /// # Panics
    /// Never: it was a packet, and no change here makes it none.
    #[must_use]
    pub fn view(&self) -> Option<IpView<'_>> {
        IpView::quoted(self.bytes).ok()
    }

    /// Its TCP header, if it has a whole one.
    #[must_use]
    pub fn tcp(&self) -> Option<TcpView<'_>> {
        match self.transport {
            Some((Protocol::TCP, at)) => TcpView::new(self.bytes.get(at..)?).ok(),
            _ => None,
        }
    }

    /// Ports of TCP and UDP, from and to; the identifier of an echo in the first place for a request and in the second
    /// for a reply, as NAT has it.
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        let (protocol, at) = self.transport?;
        let word =
            |offset: usize| self.bytes.get(at + offset..at + offset + 2).map(|_| u16_at(self.bytes, at + offset));
        match protocol {
            Protocol::TCP | Protocol::UDP => Some((word(0)?, word(2)?)),
            _ => match self.echo()? {
                Echo::Request => Some((word(4)?, 0)),
                Echo::Reply => Some((0, word(4)?)),
            },
        }
    }

    /// Writes another source, and another port or identifier where there is one.
    pub fn set_source(&mut self, address: IpAddr, port: Option<u16>) {
        self.set_address(address, 12, 8);
        if let Some(port) = port {
            self.set_port(port, 0, Echo::Request);
        }
    }

    /// Writes another destination, and another port or identifier where there is one.
    pub fn set_destination(&mut self, address: IpAddr, port: Option<u16>) {
        self.set_address(address, 16, 24);
        if let Some(port) = port {
            self.set_port(port, 2, Echo::Reply);
        }
    }

    /// Takes the mark of congestion and of being capable of ECN out of the IP header; whether there was one.
    pub fn clear_ecn(&mut self) -> bool {
        let mask = if self.version == IpVersion::V4 { 3 } else { 0x30 };
        let marked = self.bytes[1] & mask != 0;
        if marked {
            let word = [self.bytes[0], self.bytes[1] & !mask];
            self.set_ip_word(0, word);
        }
        marked
    }

    /// Clears control bits of TCP; whether one of them was set.
    pub fn clear_flags(&mut self, flags: TcpFlags) -> bool {
        let Some(at) = self.tcp().filter(|tcp| tcp.flags().has_any(flags)).and(self.transport).map(|(_, at)| at) else {
            return false;
        };
        let word = u16_at(self.bytes, at + 12) & !flags.0;
        self.set_transport_word(at, 12, word.to_be_bytes());
        true
    }

    /// Overwrites the options of these kinds by padding, so that the header keeps its length; whether there was one.
    pub fn strip_options(&mut self, kinds: &[u8]) -> bool {
        let mut found = false;
        for (offset, len, kind) in self.options() {
            if kinds.contains(&kind) {
                self.set_transport(offset, &[1; 40][..len.min(40)]);
                found = true;
            }
        }
        found
    }

    /// Lowers the MSS option to at most so much; whether it was larger.
    pub fn clamp_mss(&mut self, most: u16) -> bool {
        self.change_mss(|mss| mss.min(most))
    }

    /// Writes this into the MSS option; whether that changed it.
    pub fn set_mss(&mut self, mss: u16) -> bool {
        self.change_mss(|_| mss)
    }

    /// Writes this into the window scale option; whether that changed it.
    pub fn set_window_scale(&mut self, shift: u8) -> bool {
        let Some((offset, ..)) = self.options().into_iter().find(|(_, len, kind)| (*kind, *len) == (3, 3)) else {
            return false;
        };
        self.set_transport(offset + 2, &[shift])
    }

    fn change_mss(&mut self, change: impl Fn(u16) -> u16) -> bool {
        let Some((offset, ..)) = self.options().into_iter().find(|(_, len, kind)| (*kind, *len) == (2, 4)) else {
            return false;
        };
        let at = self.transport.map_or(0, |(_, at)| at);
        let mss = change(u16_at(self.bytes, at + offset + 2));
        self.set_transport(offset + 2, &mss.to_be_bytes())
    }

    /// Place from the TCP header on, length and kind of each option, up to the first broken one.
    fn options(&self) -> Vec<(usize, usize, u8)> {
        let Some((tcp, (_, at))) = self.tcp().zip(self.transport) else { return Vec::new() };
        let options = &self.bytes[at + 20..at + tcp.header_len()];
        let (mut place, mut found) = (0, Vec::new());
        while let Some(kind) = options.get(place).copied().filter(|kind| *kind != 0) {
            let len = if kind == 1 { 1 } else { options.get(place + 1).map_or(0, |len| usize::from(*len)) };
            if len == 0 || (kind != 1 && len < 2) || place + len > options.len() {
                break;
            }
            if kind != 1 {
                found.push((20 + place, len, kind));
            }
            place += len;
        }
        found
    }

    fn echo(&self) -> Option<Echo> {
        let (protocol, at) = self.transport?;
        match (protocol, *self.bytes.get(at)?) {
            (Protocol::ICMP, 8) | (Protocol::ICMPV6, 128) => Some(Echo::Request),
            (Protocol::ICMP, 0) | (Protocol::ICMPV6, 129) => Some(Echo::Reply),
            _ => None,
        }
    }

    fn set_port(&mut self, port: u16, offset: usize, echo: Echo) {
        let Some((protocol, at)) = self.transport else { return };
        match protocol {
            Protocol::TCP | Protocol::UDP if self.bytes.len() >= at + 4 => {
                self.set_transport_word(at, offset, port.to_be_bytes());
            }
            Protocol::ICMP | Protocol::ICMPV6 if self.echo() == Some(echo) && self.bytes.len() >= at + 6 => {
                self.set_transport_word(at, 4, port.to_be_bytes());
            }
            _ => {}
        }
    }

    fn set_address(&mut self, address: IpAddr, v4_at: usize, v6_at: usize) {
        let (v4, v6);
        let (at, new): (usize, &[u8]) = match (self.version, address) {
            (IpVersion::V4, IpAddr::V4(address)) => {
                v4 = address.octets();
                (v4_at, &v4)
            }
            (IpVersion::V6, IpAddr::V6(address)) => {
                v6 = address.octets();
                (v6_at, &v6)
            }
            _ => return,
        };
        for (index, word) in new.chunks_exact(2).enumerate() {
            let place = at + 2 * index;
            let (old, new) = (u16_at(self.bytes, place), [word[0], word[1]]);
            self.set_ip_word(place, new);
            self.update_pseudo_header(old, u16::from_be_bytes(new));
        }
    }

    fn set_ip_word(&mut self, at: usize, new: [u8; 2]) {
        if self.version == IpVersion::V4 {
            let sum = updated_checksum(u16_at(self.bytes, 10), u16_at(self.bytes, at), u16::from_be_bytes(new));
            self.bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        self.bytes[at..at + 2].copy_from_slice(&new);
    }

    /// Writes bytes of the transport header and keeps its checksum right; whether anything changed. The words of a
    /// checksum count from the header's beginning, wherever the bytes lie.
    fn set_transport(&mut self, offset: usize, new: &[u8]) -> bool {
        let Some((_, at)) = self.transport else { return false };
        let mut changed = false;
        for (index, byte) in new.iter().enumerate() {
            let place = (offset + index) & !1;
            let mut word = [self.bytes[at + place], self.bytes[at + place + 1]];
            changed |= word[(offset + index) & 1] != *byte;
            word[(offset + index) & 1] = *byte;
            self.set_transport_word(at, place, word);
        }
        changed
    }

    fn set_transport_word(&mut self, at: usize, offset: usize, new: [u8; 2]) {
        let old = u16_at(self.bytes, at + offset);
        self.bytes[at + offset..at + offset + 2].copy_from_slice(&new);
        if self.checksum == TransportChecksum::Whole {
            self.update_checksum(old, u16::from_be_bytes(new));
        }
    }

    /// A word of the pseudo-header has changed.
    fn update_pseudo_header(&mut self, old: u16, new: u16) {
        match (self.transport, self.checksum) {
            (Some((Protocol::ICMP, _)), _) => {}
            (_, TransportChecksum::Whole) => self.update_checksum(old, new),
            (_, TransportChecksum::Partial) => {
                // The field isn't complemented yet.
                if let Some(at) = self.checksum_at() {
                    let sum = !updated_checksum(!u16_at(self.bytes, at), old, new);
                    self.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
                }
            }
        }
    }

    fn update_checksum(&mut self, old: u16, new: u16) {
        let Some(at) = self.checksum_at() else { return };
        let before = u16_at(self.bytes, at);
        let udp = matches!(self.transport, Some((Protocol::UDP, _)));
        if udp && before == 0 {
            return; // There is none (RFC 768).
        }
        let mut sum = updated_checksum(before, old, new);
        if udp && sum == 0 {
            sum = 0xffff; // Zero would mean none.
        }
        self.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Where the transport's checksum is, if so much of the packet is there.
    fn checksum_at(&self) -> Option<usize> {
        let (protocol, at) = self.transport?;
        let offset = match protocol {
            Protocol::TCP => 16,
            Protocol::UDP => 6,
            Protocol::ICMP | Protocol::ICMPV6 => 2,
            _ => return None,
        };
        (self.bytes.len() >= at + offset + 2).then_some(at + offset)
    }
}

/// Which echo an ICMP message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    Request,
    Reply,
}

/// Makes the checksum of an ICMP message anew, after what it quotes has changed; whether it is one.
pub fn fill_icmp_checksum(packet: &mut [u8]) -> bool {
    let Ok(view) = IpView::new(packet) else { return false };
    let Some((protocol @ (Protocol::ICMP | Protocol::ICMPV6), message)) = view.transport() else { return false };
    let (len, end) = (message.len(), view.total_len());
    if len < 8 || end > packet.len() {
        return false;
    }
    let pseudo = match protocol {
        Protocol::ICMP => Checksum::new(),
        _ => Checksum::pseudo_header(view.src(), view.dst(), protocol.0, u32::try_from(len).unwrap_or(u32::MAX)),
    };
    let at = end - len;
    packet[at + 2..at + 4].fill(0);
    let sum = pseudo.with(&packet[at..end]).finish();
    packet[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
    true
}
