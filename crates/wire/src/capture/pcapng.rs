use super::{
    BigEndian, BufferedPacket, CaptureError, CaptureInterface, LinkLayer, MOST_CAPTURED, MOST_INTERFACES, Source,
};
use std::io::Read;

/// The type of a section header block, which reads the same both ways.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Headers and options of a block of which the packet is a part.
const MOST_AROUND: u32 = 1 << 16;
const LONGEST_NAME: usize = 256;

/// The section that is being read.
///
/// # Source
/// draft-ietf-opsawg-pcapng sections 4.1 to 4.4, and appendix A for the obsolete packet block.
#[derive(Debug, Default)]
pub(super) struct Section {
    order: BigEndian,
    /// The interfaces of sections before this one.
    before: usize,
    clocks: Vec<Clock>,
}

/// How an interface counts time.
#[derive(Debug, Clone, Copy)]
struct Clock {
    per_second: u128,
    offset_s: i64,
    snap_len: u32,
}

impl Clock {
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / self.per_second.max(1);
        let nanos =
            i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

impl Section {
    /// Reads a section header.
    pub(super) fn read<R: Read>(source: &mut Source<R>, before: usize) -> Result<Self, CaptureError> {
        let begun = source.at;
        let header = source.take(12, begun)?;
        let header = source.bytes(header);
        let magic = header.get(8..12).unwrap_or_default();
        let order = match magic {
            [0x1a, 0x2b, 0x3c, 0x4d] => BigEndian(true),
            [0x4d, 0x3c, 0x2b, 0x1a] => BigEndian(false),
            _ => {
                return Err(CaptureError::Damaged {
                    at: begun,
                    what: "a section doesn't say in which order bytes are",
                });
            }
        };
        let len = order.u32(header, 4);
        if len < 28 || !len.is_multiple_of(4) {
            return Err(CaptureError::Damaged { at: begun, what: "a section header has an impossible length" });
        }
        source.skip(u64::from(len) - 12, begun)?;
        Ok(Self { order, before, clocks: Vec::new() })
    }

    /// The next packet; notes the interfaces on the way.
    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
        interfaces: &mut Vec<CaptureInterface>,
    ) -> Result<Option<BufferedPacket>, CaptureError> {
        loop {
            let begun = source.at;
            let head = source.peek(8)?;
            match head.len() {
                0 => return Ok(None),
                8 => {}
                _ => return Err(CaptureError::CutShort { at: begun }),
            }
            if head.starts_with(&SECTION) {
                *self = Self::read(source, interfaces.len())?;
                continue;
            }
            let (kind, len) = (self.order.u32(head, 0), self.order.u32(head, 4));
            if len < 12 || !len.is_multiple_of(4) {
                return Err(CaptureError::Damaged { at: begun, what: "a block has an impossible length" });
            }
            if !matches!(kind, 1 | 2 | 3 | 6) {
                source.skip(u64::from(len), begun)?;
                continue;
            }
            if len > MOST_CAPTURED + MOST_AROUND {
                return Err(CaptureError::Damaged {
                    at: begun,
                    what: "a block says that it has more than a million bytes",
                });
            }
            let place = source.take(len as usize, begun)?;
            let (start, end) = (place.start + 8, place.end - 4);
            if self.order.u32(source.bytes(end..place.end), 0) != len {
                return Err(CaptureError::Damaged { at: begun, what: "the two lengths of a block differ" });
            }
            let block = source.bytes(start..end);
            let found = match kind {
                1 => {
                    self.add_interface(block, interfaces, begun)?;
                    continue;
                }
                2 => self.packet(block, u32::from(self.order.u16(block, 0))),
                3 => self.simple(block),
                _ => self.packet(block, self.order.u32(block, 0)),
            };
            return match found {
                Some(found) => Ok(Some(BufferedPacket { start: start + found.start, end: start + found.end, ..found })),
                None => Err(CaptureError::Damaged {
                    at: begun,
                    what: "a packet is longer than its block, or of no interface",
                }),
            };
        }
    }

    fn add_interface(&mut self, block: &[u8], all: &mut Vec<CaptureInterface>, begun: u64) -> Result<(), CaptureError> {
        let damaged = |what| Err(CaptureError::Damaged { at: begun, what });
        if all.len() >= MOST_INTERFACES {
            return damaged("there are more interfaces than a machine has");
        }
        if block.len() < 8 {
            return damaged("the description of an interface is cut short");
        }
        let snap_len = self.order.u32(block, 4);
        let mut interface =
            CaptureInterface { name: String::new(), link: LinkLayer(self.order.u16(block, 0)), snap_len };
        let mut clock = Clock { per_second: 1_000_000, offset_s: 0, snap_len };
        let mut rest = block.get(8..).unwrap_or_default();
        while rest.len() >= 4 {
            let (code, len) = (self.order.u16(rest, 0), usize::from(self.order.u16(rest, 2)));
            let Some(value) = rest.get(4..4 + len).filter(|_| code != 0) else { break };
            match (code, value) {
                (2, name) => {
                    let name = name.get(..name.len().min(LONGEST_NAME)).unwrap_or_default();
                    interface.name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
                }
                (9, [resolution]) => {
                    let exponent = u32::from(resolution & 0x7f);
                    let per_second =
                        if resolution & 0x80 == 0 { 10u128.checked_pow(exponent) } else { 1u128.checked_shl(exponent) };
                    let Some(per_second) = per_second else { return damaged("an interface has an impossible clock") };
                    clock.per_second = per_second;
                }
                (14, value) if value.len() == 8 => {
                    let (first, second) = (u64::from(self.order.u32(value, 0)), u64::from(self.order.u32(value, 4)));
                    let offset = if self.order.0 { first << 32 | second } else { second << 32 | first };
                    clock.offset_s = offset as i64;
                }
                _ => {}
            }
            rest = rest.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        all.push(interface);
        self.clocks.push(clock);
        Ok(())
    }

    /// An enhanced packet, or one of the obsolete kind, whose fields have the same places from the time on.
    fn packet(&self, block: &[u8], interface: u32) -> Option<BufferedPacket> {
        let interface = usize::try_from(interface).ok()?;
        let clock = self.clocks.get(interface)?;
        if block.len() < 20 {
            return None;
        }
        let ticks = u64::from(self.order.u32(block, 4)) << 32 | u64::from(self.order.u32(block, 8));
        let kept = self.order.u32(block, 12) as usize;
        let original_len = self.order.u32(block, 16) as usize;
        let end = 20usize.checked_add(kept).filter(|end| *end <= block.len())?;
        Some(BufferedPacket {
            interface: self.before + interface,
            at_ns: Some(clock.nanoseconds(ticks)),
            original_len,
            start: 20,
            end,
        })
    }

    /// A simple packet: of the first interface, without a time.
    fn simple(&self, block: &[u8]) -> Option<BufferedPacket> {
        let clock = self.clocks.first()?;
        let original_len = self.order.u32(block, 0) as usize;
        let snap = if clock.snap_len == 0 { usize::MAX } else { clock.snap_len as usize };
        let end = 4usize.checked_add(original_len.min(snap)).filter(|end| *end <= block.len())?;
        Some(BufferedPacket { interface: self.before, at_ns: None, original_len, start: 4, end })
    }
}
