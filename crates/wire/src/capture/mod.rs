//! Files of captured packets, read as a stream: pcap and pcapng as tcpdump, Wireshark and dumpcap write them.
//!
//! # What this leaves out
//! Compressed files, name resolution, statistics, secrets and comments of pcapng; what is not understood is skipped.
//! Memory is bounded by a megabyte and a list of interfaces, whatever the file says.

/// What stands before the IP packet.
mod link_layer;
/// The classic format.
mod pcap;
/// The next generation's format.
mod pcapng;
#[cfg(test)]
mod tests;

pub use link_layer::{LinkLayer, ip_behind_ethertype};

use std::io::{self, Read};
use std::ops::Range;

/// No packet is longer than this: a super-packet of BIG TCP has at most 512 KiB.
const MOST_CAPTURED: u32 = 1 << 20;
/// More interfaces than this aren't believed.
const MOST_INTERFACES: usize = 4096;
/// Bytes that are read at once, so few that they stay in a core's own cache.
const AT_ONCE: usize = 256 * 1024;

/// A captured packet, as it stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedRecord<'a> {
    /// Where it was captured: a place in [`CaptureReader::interfaces`].
    pub interface: usize,
    /// When, nanoseconds since the beginning of 1970, where the file says it.
    pub at_ns: Option<u64>,
    /// What its bytes begin with.
    pub link: LinkLayer,
    /// How long it was, bytes; as many or more than there are.
    pub original_len: usize,
    /// Its bytes, as far as they were kept.
    pub bytes: &'a [u8],
}

/// Where packets of a file were captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Its name, empty where the file doesn't say.
    pub name: String,
    /// What its packets begin with.
    pub link: LinkLayer,
    /// The most bytes that were kept of a packet; 0: all.
    pub snap_len: u32,
}

/// Why a file can't be read on. What was read before counts.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It is something else.
    #[error("this is no capture: {0}")]
    NotACapture(&'static str),
    /// It ends in the middle of a packet.
    #[error("the file ends in the middle of a packet, at byte {at}")]
    CutShort {
        /// Where the last whole packet ends.
        at: u64,
    },
    /// A length or a number contradicts itself.
    #[error("the file is damaged at byte {at}: {what}")]
    Damaged {
        /// Where the packet or block begins.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file can't be read.
    #[error("can't be read")]
    Io(#[from] io::Error),
}

/// Whether a file that begins like this is a capture, or a compressed one; eight bytes are enough.
#[must_use]
pub fn is_capture(head: &[u8]) -> bool {
    pcap::Layout::of(head).is_some() || head.starts_with(&pcapng::SECTION) || is_compressed(head)
}

/// Whether it is packed by gzip, zstd, xz, lz4 or bzip2. Tables of text never begin so.
fn is_compressed(head: &[u8]) -> bool {
    [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, b'7', b'z', b'X', b'Z'], &[0x04, 0x22, 0x4d, 0x18]]
        .iter()
        .any(|magic| head.starts_with(magic))
        || head.starts_with(b"BZh")
            && matches!(head.get(3..), Some([b'1'..=b'9'] | [b'1'..=b'9', b'1', b'A', b'Y', b'&', ..]))
}

/// Reads captured packets one after the other.
///
/// # Source
/// draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
#[derive(Debug)]
pub struct CaptureReader<R> {
    source: Source<R>,
    interfaces: Vec<CaptureInterface>,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::Layout),
    Pcapng(pcapng::Section),
}

impl<R: Read> CaptureReader<R> {
    /// Reads the beginning of a file. It reads large pieces at once, and hands packets out where they stand in them.
    ///
    /// # Errors
    /// [`CaptureError::NotACapture`], and those of reading.
    pub fn new(input: R) -> Result<Self, CaptureError> {
        let mut source = Source { input, buffer: vec![0; AT_ONCE], start: 0, end: 0, at: 0 };
        let Ok(head) = <[u8; 4]>::try_from(source.peek(4)?) else {
            return Err(CaptureError::NotACapture("it has less than four bytes"));
        };
        let mut reader = Self { source, interfaces: Vec::new(), format: Format::Pcapng(pcapng::Section::default()) };
        if head == pcapng::SECTION {
            reader.format = Format::Pcapng(pcapng::Section::read(&mut reader.source, 0)?);
        } else if let Some(layout) = pcap::Layout::of(&head) {
            let (layout, interface) = layout.read(&mut reader.source)?;
            reader.interfaces.push(interface);
            reader.format = Format::Pcap(layout);
        } else if is_compressed(&head) {
            return Err(CaptureError::NotACapture(
                "it is compressed: unpack it first (gunzip, unzstd, unxz, lz4 -d, bunzip2)",
            ));
        } else {
            return Err(CaptureError::NotACapture("it begins neither like pcap nor like pcapng"));
        }
        Ok(reader)
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`]; nothing more can be read after one.
    pub fn next_record(&mut self) -> Result<Option<CapturedRecord<'_>>, CaptureError> {
        let found = match &mut self.format {
            Format::Pcap(layout) => layout.next(&mut self.source)?,
            Format::Pcapng(section) => section.next(&mut self.source, &mut self.interfaces)?,
        };
        let Some(found) = found else { return Ok(None) };
        let link = self.interfaces.get(found.interface).map_or(LinkLayer(0), |interface| interface.link);
        let bytes = self.source.bytes(found.start..found.end);
        let original_len = found.original_len.max(bytes.len());
        Ok(Some(CapturedRecord { interface: found.interface, at_ns: found.at_ns, link, original_len, bytes }))
    }

    /// Where packets were captured, as far as the file has said so by now.
    #[must_use]
    pub fn interfaces(&self) -> &[CaptureInterface] {
        &self.interfaces
    }

    /// What the format is called.
    #[must_use]
    pub const fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::Pcapng(_) => "pcapng",
        }
    }

    /// Bytes of the file that were taken in.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.source.at
    }
}

/// A packet within the buffer, until more is read.
#[derive(Debug)]
struct BufferedPacket {
    interface: usize,
    at_ns: Option<u64>,
    original_len: usize,
    start: usize,
    end: usize,
}

/// The file, and how far it was read: what was read and not taken yet stands between `start` and `end` of the buffer.
#[derive(Debug)]
struct Source<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the file that were taken.
    at: u64,
}

impl<R: Read> Source<R> {
    /// The next bytes, which stay: so many, or as many as the file still has.
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.end - self.start < wanted {
            self.read_more(wanted)?;
        }
        let end = self.end.min(self.start + wanted);
        Ok(self.buffer.get(self.start..end).unwrap_or_default())
    }

    /// Reads until so many bytes are there, or the file ends.
    #[cold]
    fn read_more(&mut self, wanted: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted {
            match self.input.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(got) => self.end += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes so many bytes; where they stand until more is read. `begun` is where what they belong to begins.
    fn take(&mut self, len: usize, begun: u64) -> Result<Range<usize>, CaptureError> {
        if self.peek(len)?.len() < len {
            return Err(CaptureError::CutShort { at: begun });
        }
        let start = self.start;
        self.start += len;
        self.at += len as u64;
        Ok(start..self.start)
    }

    /// What stands at a place of the buffer.
    fn bytes(&self, place: Range<usize>) -> &[u8] {
        self.buffer.get(place).unwrap_or_default()
    }

    /// Takes so many bytes without looking at them.
    fn skip(&mut self, len: u64, begun: u64) -> Result<(), CaptureError> {
        let there = (self.end - self.start).min(usize::try_from(len).unwrap_or(usize::MAX));
        self.start += there;
        let rest = len - there as u64;
        let got = if rest > 0 { io::copy(&mut self.input.by_ref().take(rest), &mut io::sink())? } else { 0 };
        self.at += there as u64 + got;
        if got < rest { Err(CaptureError::CutShort { at: begun }) } else { Ok(()) }
    }
}

/// Whether numbers are written with their high byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct BigEndian(bool);

impl BigEndian {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let two = bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).unwrap_or([0; 2]);
        if self.0 { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).unwrap_or([0; 4]);
        if self.0 { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }
}
