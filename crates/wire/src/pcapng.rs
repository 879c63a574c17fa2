use std::io::{self, Write};
use std::time::Duration;

/// Bytes of options' names and texts that are kept; more is cut.
const LONGEST_TEXT: usize = 1024;

/// What the bytes of captured packets begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkType {
    /// An IP header, of either version.
    Raw,
    /// An Ethernet header.
    Ethernet,
}

impl LinkType {
    /// The number in the tcpdump group's list of link-layer header types.
    const fn number(self) -> u16 {
        match self {
            Self::Raw => 101,
            Self::Ethernet => 1,
        }
    }
}

/// Where packets were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name, as other tools show it.
    pub name: &'a str,
    /// What its packets begin with.
    pub link_type: LinkType,
    /// The most bytes that are kept of a packet; 0: all.
    pub snap_len: u32,
}

/// Which way a packet went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into the interface.
    Inbound,
    /// Out of the interface.
    Outbound,
    /// Not known.
    Unknown,
}

/// A captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// The number of its interface, in the order in which they were added.
    pub interface: u32,
    /// When, since the beginning of 1970; kept to the nanosecond.
    pub at: Duration,
    /// Which way it went.
    pub direction: Direction,
    /// How long it was, if not all of it is in `bytes`.
    pub original_len: usize,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Writes packets in the pcapng format, which Wireshark, tshark and tcpdump read.
///
/// Each block is handed to the writer at once, so that a file that a crash has cut short ends with a whole block as far
/// as the writer below keeps them whole. Give it a `BufWriter`; [`PcapngWriter::finish`] flushes.
///
/// # Source
/// draft-ietf-opsawg-pcapng, sections 4.1 (section header), 4.2 (interface description) and 4.3 (enhanced packet).
///
/// # Example
/// ```
/// use std::time::Duration;
/// use wt_wire::{CapturedPacket, Direction, Interface, LinkType, PcapngWriter};
/// let mut writer = PcapngWriter::new(Vec::new(), "an example")?;
/// let lan = writer.add_interface(&Interface { name: "lan", link_type: LinkType::Raw, snap_len: 0 })?;
/// let bytes = &[0x45; 20];
/// let at = Duration::from_nanos(1);
/// writer.write(&CapturedPacket { interface: lan, at, direction: Direction::Outbound, original_len: 20, bytes })?;
/// assert_eq!(writer.finish()?.len() % 4, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    snap_lens: Vec<u32>,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file; `application` says who wrote it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = Self { out, snap_lens: Vec::new(), block: Vec::new() };
        writer.begin(0x0a0d_0d0a);
        writer.put(&0x1a2b_3c4d_u32.to_le_bytes());
        writer.put(&1u16.to_le_bytes());
        writer.put(&0u16.to_le_bytes());
        // The section's length is not known beforehand.
        writer.put(&(-1i64).to_le_bytes());
        writer.option(4, text(application));
        writer.end_options();
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface and returns its number.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        self.begin(1);
        self.put(&interface.link_type.number().to_le_bytes());
        self.put(&[0, 0]);
        self.put(&interface.snap_len.to_le_bytes());
        self.option(2, text(interface.name));
        // Timestamps in units of 10⁻⁹ seconds.
        self.option(9, &[9]);
        self.end_options();
        self.end()?;
        self.snap_lens.push(interface.snap_len);
        u32::try_from(self.snap_lens.len() - 1).map_err(io::Error::other)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// Those of the writer; `InvalidInput` for an interface that was not added, a packet of 4 GiB or a time after the
    /// year 2554.
    pub fn write(&mut self, packet: &CapturedPacket<'_>) -> io::Result<()> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
        let number = usize::try_from(packet.interface).ok().and_then(|number| self.snap_lens.get(number));
        let snap_len = *number.ok_or_else(|| invalid("a packet of an interface that was not added"))?;
        let most = if snap_len == 0 { usize::MAX } else { snap_len as usize };
        let bytes = &packet.bytes[..packet.bytes.len().min(most)];
        let kept = u32::try_from(bytes.len()).map_err(|_| invalid("a packet of 4 GiB"))?;
        let original = packet.original_len.max(packet.bytes.len());
        let nanos = u64::try_from(packet.at.as_nanos()).map_err(|_| invalid("a time after the year 2554"))?;
        self.begin(6);
        self.put(&packet.interface.to_le_bytes());
        self.put(&((nanos >> 32) as u32).to_le_bytes());
        self.put(&(nanos as u32).to_le_bytes());
        self.put(&kept.to_le_bytes());
        self.put(&u32::try_from(original).unwrap_or(u32::MAX).to_le_bytes());
        self.put(bytes);
        self.pad();
        let direction: u32 = match packet.direction {
            Direction::Unknown => return self.end(),
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        self.option(2, &direction.to_le_bytes());
        self.end_options();
        self.end()
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        // The length comes when it is known.
        self.put(&[0; 4]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // Values are numbers, or texts that have been cut.
        let len = value.len() as u16;
        self.put(&code.to_le_bytes());
        self.put(&len.to_le_bytes());
        self.put(value);
        self.pad();
    }

    fn end_options(&mut self) {
        self.put(&[0; 4]);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = u32::try_from(self.block.len() + 4).map_err(io::Error::other)?.to_le_bytes();
        self.block[4..8].copy_from_slice(&len);
        self.put(&len);
        self.out.write_all(&self.block)
    }
}

/// The text's bytes, cut at a character.
fn text(text: &str) -> &[u8] {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn u32_le(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// The blocks of a file: type and body; every length is checked.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let len = u32_le(file, 4) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(u32_le(file, len - 4) as usize, len, "both lengths agree");
            blocks.push((u32_le(file, 0), &file[8..len - 4]));
            file = &file[len..];
        }
        blocks
    }

    fn raw(snap_len: u32) -> Interface<'static> {
        Interface { name: "b→a", link_type: LinkType::Raw, snap_len }
    }

    #[test]
    fn a_file_has_the_blocks_of_the_format_byte_by_byte() {
        let mut writer = PcapngWriter::new(Vec::new(), "windtunnel").unwrap();
        assert_eq!(writer.add_interface(&raw(0)).unwrap(), 0);
        let at = Duration::new(1_700_000_000, 123_456_789);
        let packet =
            CapturedPacket { interface: 0, at, direction: Direction::Inbound, original_len: 0, bytes: &[0x45, 1, 2] };
        writer.write(&packet).unwrap();
        let file = writer.finish().unwrap();
        let blocks = blocks(&file);
        assert_eq!(blocks.iter().map(|block| block.0).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 6]);
        assert_eq!(blocks[0].1[..16], [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(blocks[0].1[16..], *b"\x04\x00\x0a\x00windtunnel\0\0\0\0\0\0");
        assert_eq!(blocks[1].1[..8], [101, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(blocks[1].1[8..], *b"\x02\x00\x05\x00b\xe2\x86\x92a\0\0\0\x09\x00\x01\x00\x09\0\0\0\0\0\0\0");
        let epb = blocks[2].1;
        let nanos = u64::from(u32_le(epb, 4)) << 32 | u64::from(u32_le(epb, 8));
        assert_eq!(nanos, 1_700_000_000_123_456_789);
        assert_eq!((u32_le(epb, 0), u32_le(epb, 12), u32_le(epb, 16)), (0, 3, 3));
        assert_eq!(epb[20..], [0x45, 1, 2, 0, 2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_long_packet_is_cut_and_its_length_kept() {
        let mut writer = PcapngWriter::new(Vec::new(), "").unwrap();
        writer.add_interface(&raw(64)).unwrap();
        let bytes = [7; 1500];
        let packet = CapturedPacket {
            interface: 0,
            at: Duration::ZERO,
            direction: Direction::Unknown,
            original_len: 1500,
            bytes: &bytes,
        };
        writer.write(&packet).unwrap();
        let file = writer.finish().unwrap();
        let epb = blocks(&file)[2].1;
        assert_eq!((u32_le(epb, 12), u32_le(epb, 16), epb.len()), (64, 1500, 20 + 64));
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_leaves_no_half_block() {
        let mut writer = PcapngWriter::new(Vec::new(), "x").unwrap();
        let packet = CapturedPacket {
            interface: 0,
            at: Duration::ZERO,
            direction: Direction::Unknown,
            original_len: 0,
            bytes: &[],
        };
        assert_eq!(writer.write(&packet).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        writer.add_interface(&raw(0)).unwrap();
        let late = CapturedPacket { at: Duration::MAX, ..packet };
        assert_eq!(writer.write(&late).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(blocks(&writer.finish().unwrap()).len(), 2);
    }

    proptest! {
        #[test]
        fn every_packet_comes_back(
            packets in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..80), any::<u64>()), 0..20),
            name in ".{0,40}",
        ) {
            let mut writer = PcapngWriter::new(Vec::new(), &name).unwrap();
            writer.add_interface(&Interface { name: &name, link_type: LinkType::Ethernet, snap_len: 0 }).unwrap();
            for (bytes, nanos) in &packets {
                let at = Duration::from_nanos(*nanos);
                writer.write(&CapturedPacket { interface: 0, at, direction: Direction::Outbound, original_len: 0, bytes }).unwrap();
            }
            let file = writer.finish().unwrap();
            let blocks = blocks(&file);
            prop_assert_eq!(blocks.len(), packets.len() + 2);
            for ((bytes, nanos), (kind, body)) in packets.iter().zip(&blocks[2..]) {
                prop_assert_eq!(*kind, 6);
                let at = u64::from(u32_le(body, 4)) << 32 | u64::from(u32_le(body, 8));
                prop_assert_eq!(at, *nanos);
                prop_assert_eq!(&body[20..20 + bytes.len()], &bytes[..]);
            }
        }
    }
}
