//! Super-packets as the kernel hands them over, and the MTU-sized segments that the stages see.
//!
//! A super-packet stays whole in its buffer; a segment is an index into it. What leaves together is handed back together.
//!
//! # Differs from Linux
//! Segments of a GSO packet get the IP ids id, id + 1, … as the kernel's own segmentation gives them.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use wt_link::Packet;
use wt_sys::vnet::{self, VNET_LEN, VnetHeader};
use wt_wire::Checksum;

/// The longest headers that are looked at: IPv6 with TCP and all its options fits twice.
pub(crate) const MAX_HEADERS: usize = 256;

/// A buffer with one packet of the kernel's.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Longer than the packet where it was read without copying.
    storage: Vec<u8>,
    /// Where the IP packet lies in it.
    place: std::ops::Range<usize>,
    pub(crate) layout: Layout,
}

/// Where what is in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// IPv6, or else IPv4.
    pub(crate) v6: bool,
    /// TCP or UDP.
    pub(crate) transport: Transport,
    /// Where the transport header begins.
    pub(crate) transport_at: usize,
    /// Where the payload begins.
    pub(crate) payload_at: usize,
    /// Payload of each segment; 0 if there is but one.
    pub(crate) gso_size: usize,
    /// The checksum is still to be made, from here and to there (as offset from it).
    pub(crate) checksum: Option<(u16, u16)>,
    /// The length of the IP packet with all its payload.
    pub(crate) len: usize,
}

/// What the stages and the splitter must know of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    Other,
}

/// A handle of one segment.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) buffer: Rc<Buffer>,
    pub(crate) index: u32,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn double(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]))
}

impl Layout {
    /// Looks at a packet of the kernel's; `None` for what isn't a whole IP packet.
    pub(crate) fn of(bytes: &[u8], header: &VnetHeader) -> Option<Self> {
        let v6 = match bytes.first()? >> 4 {
            4 => false,
            6 => true,
            _ => return None,
        };
        let (transport_at, protocol) =
            if v6 { (40, *bytes.get(6)?) } else { (usize::from(bytes[0] & 15) * 4, *bytes.get(9)?) };
        let len = if v6 { 40 + usize::from(word(bytes.get(..40)?, 4)) } else { usize::from(word(bytes.get(..20)?, 2)) };
        // A super-packet may be too long for its length field.
        let len =
            if header.gso_type == vnet::GSO_NONE && len >= transport_at { len.min(bytes.len()) } else { bytes.len() };
        // Only the first fragment has a transport header, and none is segmented.
        let fragment = !v6 && word(bytes, 6) & 0x3FFF != 0;
        let (transport, payload_at) = match protocol {
            6 if !fragment && bytes.len() >= transport_at + 20 => {
                (Transport::Tcp, transport_at + usize::from(bytes[transport_at + 12] >> 4) * 4)
            }
            17 if !fragment && bytes.len() >= transport_at + 8 => (Transport::Udp, transport_at + 8),
            _ => (Transport::Other, transport_at),
        };
        let short = transport == Transport::Tcp && payload_at < transport_at + 20;
        if short || payload_at > len || payload_at > MAX_HEADERS {
            return None;
        }
        let segmentable = header.gso_type != vnet::GSO_NONE && transport != Transport::Other;
        let gso_size = if segmentable { usize::from(header.gso_size) } else { 0 };
        let place = (header.csum_start, header.csum_offset);
        let within = usize::from(place.0) + usize::from(place.1) + 2 <= len;
        let checksum = (header.flags & vnet::NEEDS_CSUM != 0 && within).then_some(place);
        Some(Self { v6, transport, transport_at, payload_at, gso_size, checksum, len })
    }

    /// How many segments there are.
    pub(crate) fn segments(&self) -> u32 {
        let payload = self.len - self.payload_at;
        if self.gso_size == 0 { 1 } else { u32::try_from(payload.div_ceil(self.gso_size).max(1)).unwrap_or(u32::MAX) }
    }

    /// From where to where the payload of segments `first` up to but not including `end` goes.
    pub(crate) fn payload(&self, first: u32, end: u32) -> std::ops::Range<usize> {
        if self.gso_size == 0 {
            return self.payload_at..self.len;
        }
        let at = |index: u32| (self.payload_at + index as usize * self.gso_size).min(self.len);
        at(first)..at(end)
    }
}

thread_local! {
    /// Bytes of all buffers of this thread's engine.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that packets on the way take, as this thread's engine holds them.
pub(crate) fn held_bytes() -> usize {
    HELD.get()
}

impl Drop for Buffer {
    fn drop(&mut self) {
        HELD.set(HELD.get().saturating_sub(self.storage.capacity()));
    }
}

impl Buffer {
    /// A packet that lies at `place` of a larger buffer.
    pub(crate) fn new(storage: Vec<u8>, place: std::ops::Range<usize>, layout: Layout) -> Self {
        HELD.set(HELD.get() + storage.capacity());
        Self { storage, place, layout }
    }

    /// A packet by itself.
    pub(crate) fn of(bytes: Vec<u8>, layout: Layout) -> Self {
        let place = 0..bytes.len();
        Self::new(bytes, place, layout)
    }

    /// The packet, from the IP header on.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.storage[self.place.clone()]
    }

    /// The buffer, to be used again.
    pub(crate) fn into_storage(mut self) -> Vec<u8> {
        let storage = std::mem::take(&mut self.storage);
        HELD.set(HELD.get().saturating_sub(storage.capacity()));
        storage
    }

    /// What the stages see of one segment.
    pub(crate) fn packet(self: &Rc<Self>, index: u32) -> Packet<Segment> {
        let layout = &self.layout;
        let data = layout.payload(index, index + 1).len();
        let ip_len = u32::try_from(layout.payload_at + data).unwrap_or(u32::MAX);
        let mut packet = Packet::new(ip_len, Segment { buffer: Rc::clone(self), index });
        let bytes = self.bytes();
        let tos = self.traffic_class();
        packet.data_len = u32::try_from(data).unwrap_or(u32::MAX);
        packet.ttl = if layout.v6 { bytes[7] } else { bytes[8] };
        packet.ect = tos & 3 != 0;
        packet.ce = tos & 3 == 3;
        packet.dont_fragment = layout.v6 || bytes[6] & 0x40 != 0;
        packet.flow = self.flow();
        packet.syn = layout.transport == Transport::Tcp && bytes[layout.transport_at + 13] & 0b10 != 0;
        packet.pure_ack = layout.transport == Transport::Tcp
            && data == 0
            && bytes[layout.transport_at + 13] & 0b0001_0111 == 0b0001_0000
            && layout.payload_at - layout.transport_at <= 32;
        packet
    }

    /// The octet with DSCP and ECN (RFC 3168 section 5).
    fn traffic_class(&self) -> u8 {
        let bytes = self.bytes();
        if self.layout.v6 { bytes[0] << 4 | bytes[1] >> 4 } else { bytes[1] }
    }

    /// Whether it came from its sender with "congestion experienced" on it.
    pub(crate) fn came_marked(&self) -> bool {
        self.traffic_class() & 3 == 3
    }

    /// What the stages see of all segments, in order. They differ in nothing but their number and the last one's length.
    pub(crate) fn packets(self: &Rc<Self>) -> impl Iterator<Item = Packet<Segment>> {
        let (first, count) = (self.packet(0), self.layout.segments());
        let last = if count > 1 { self.layout.payload(count - 1, count).len() } else { first.data_len as usize };
        let last = u32::try_from(last).unwrap_or(u32::MAX);
        (0..count).map(move |index| {
            let mut packet = first.clone();
            packet.payload.index = index;
            if index + 1 == count {
                packet.ip_len -= packet.data_len - last;
                packet.data_len = last;
            }
            packet
        })
    }

    /// A hash of addresses and ports (FNV-1a).
    fn flow(&self) -> u32 {
        let addresses = if self.layout.v6 { 8..40 } else { 12..20 };
        let ports = if self.layout.transport == Transport::Other {
            0..0
        } else {
            self.layout.transport_at..self.layout.transport_at + 4
        };
        let fold = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619);
        self.bytes()[addresses].iter().chain(&self.bytes()[ports]).fold(2_166_136_261, fold)
    }
}

/// Segments of one buffer that leave together, with what the path made of their headers.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) buffer: Rc<Buffer>,
    pub(crate) first: u32,
    pub(crate) end: u32,
    pub(crate) ttl: u8,
    pub(crate) ce: bool,
    pub(crate) corrupted: bool,
}

/// What goes out for a run: the kernel's header, the packet's headers, and where the payload lies in the buffer.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) vnet: [u8; VNET_LEN],
    pub(crate) headers: [u8; MAX_HEADERS],
    pub(crate) headers_len: usize,
    pub(crate) payload: std::ops::Range<usize>,
}

impl Run {
    /// A run of one.
    pub(crate) fn of(packet: &Packet<Segment>) -> Self {
        let Segment { buffer, index } = &packet.payload;
        Self {
            buffer: Rc::clone(buffer),
            first: *index,
            end: index + 1,
            ttl: packet.ttl,
            ce: packet.ce,
            corrupted: packet.corrupted,
        }
    }

    /// Takes the packet in, if it is the next segment of the same buffer and fared alike.
    pub(crate) fn extend(&mut self, packet: &Packet<Segment>) -> bool {
        let next = Rc::ptr_eq(&self.buffer, &packet.payload.buffer)
            && packet.payload.index == self.end
            && packet.ttl == self.ttl
            && packet.ce == self.ce
            && !packet.corrupted
            && !self.corrupted;
        self.end += u32::from(next);
        next
    }

    /// Writes the headers; `link_header` bytes of an Ethernet header will stand before them.
    pub(crate) fn outgoing(&self, link_header: u16) -> Outgoing {
        let layout = self.buffer.layout;
        let payload = layout.payload(self.first, self.end);
        let mut headers = [0; MAX_HEADERS];
        let headers_len = layout.payload_at;
        headers[..headers_len].copy_from_slice(&self.buffer.bytes()[..headers_len]);
        let one = self.end - self.first == 1;
        let whole = self.first == 0 && self.end == layout.segments();
        let mut vnet = VnetHeader::default();
        if !whole {
            self.cut(&mut headers[..headers_len], payload.len());
        }
        self.mark(&mut headers[..headers_len]);
        if self.corrupted {
            // Neither made nor vouched for: the receiving kernel checks it and finds it wrong, as on a real wire.
            headers[headers_len - 1] ^= u8::from(layout.checksum.is_none());
        } else if let Some((start, offset)) = layout.checksum {
            vnet.flags = vnet::NEEDS_CSUM;
            vnet.csum_start = start.saturating_add(link_header);
            vnet.csum_offset = offset;
        } else {
            vnet.flags = vnet::DATA_VALID;
        }
        if !one && layout.gso_size > 0 {
            vnet.gso_type = match layout.transport {
                Transport::Udp => vnet::GSO_UDP_L4,
                _ if layout.v6 => vnet::GSO_TCPV6,
                _ => vnet::GSO_TCPV4,
            };
            vnet.gso_size = u16::try_from(layout.gso_size).unwrap_or(u16::MAX);
            vnet.hdr_len = u16::try_from(headers_len).unwrap_or(u16::MAX).saturating_add(link_header);
        }
        Outgoing { vnet: vnet.to_bytes(), headers, headers_len, payload }
    }

    /// Makes the super-packet's headers those of a part of it.
    fn cut(&self, headers: &mut [u8], payload: usize) {
        let layout = self.buffer.layout;
        let len = headers.len() + payload;
        if layout.v6 {
            headers[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        } else {
            headers[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            let id = word(headers, 4).wrapping_add(self.first as u16);
            headers[4..6].copy_from_slice(&id.to_be_bytes());
        }
        let at = layout.transport_at;
        match layout.transport {
            Transport::Tcp => {
                let sequence = double(headers, at + 4).wrapping_add(self.first.wrapping_mul(layout.gso_size as u32));
                headers[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
                if self.end < layout.segments() {
                    headers[at + 13] &= !0b0000_1001; // FIN and PSH are the last segment's
                }
                if self.first > 0 {
                    headers[at + 13] &= !0b1000_0000; // CWR is the first one's
                }
            }
            Transport::Udp => headers[at + 4..at + 6].copy_from_slice(&((8 + payload) as u16).to_be_bytes()),
            Transport::Other => {}
        }
        if let Some((start, offset)) = layout.checksum {
            let to = usize::from(start) + usize::from(offset);
            if let Some(field) = headers.get_mut(to..to + 2) {
                field.copy_from_slice(&[0, 0]);
            }
            let sum = pseudo_header_sum(headers, layout.v6, len - at);
            if let Some(field) = headers.get_mut(to..to + 2) {
                field.copy_from_slice(&sum.to_be_bytes());
            }
        }
    }

    /// Puts the marks that the path made into the IP header.
    fn mark(&self, headers: &mut [u8]) {
        if self.buffer.layout.v6 {
            headers[7] = self.ttl;
            if self.ce {
                headers[1] |= 0x30;
            }
        } else {
            headers[8] = self.ttl;
            if self.ce {
                headers[1] |= 3;
            }
            let header = &mut headers[..self.buffer.layout.transport_at];
            header[10..12].copy_from_slice(&[0, 0]);
            let sum = Checksum::new().with(header).finish();
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// The sum that the kernel wants in the checksum field of a packet whose checksum it is to make.
fn pseudo_header_sum(headers: &[u8], v6: bool, transport_len: usize) -> u16 {
    let v4 = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&headers[at..at + 4]).unwrap_or_default());
    let six = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&headers[at..at + 16]).unwrap_or_default());
    let (from, to, protocol) = if v6 { (six(8), six(24), headers[6]) } else { (v4(12), v4(16), headers[9]) };
    Checksum::pseudo_header(from, to, protocol, u32::try_from(transport_len).unwrap_or(u32::MAX)).folded()
}

#[cfg(test)]
mod tests;
