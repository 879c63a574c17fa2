use super::{BigEndian, BufferedPacket, CaptureError, CaptureInterface, LinkLayer, MOST_CAPTURED, Source};
use std::io::Read;

/// How the numbers of a classic capture are written.
///
/// # Source
/// draft-ietf-opsawg-pcap sections 4 and 5; for the third magic number, Kuznetzov's patched libpcap, whose headers of
/// packets have eight more bytes, Wireshark's wiki "Development/LibpcapFileFormat".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    order: BigEndian,
    nanoseconds: bool,
    header: usize,
}

impl Layout {
    /// By the first four bytes of a file.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let four: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let layout = |big, nanoseconds, header| Some(Self { order: BigEndian(big), nanoseconds, header });
        let of = |number, big| match number {
            0xa1b2_c3d4 => layout(big, false, 16),
            0xa1b2_3c4d => layout(big, true, 16),
            0xa1b2_cd34 => layout(big, false, 24),
            _ => None,
        };
        of(u32::from_be_bytes(four), true).or_else(|| of(u32::from_le_bytes(four), false))
    }

    /// Reads the file's header.
    pub(super) fn read<R: Read>(self, source: &mut Source<R>) -> Result<(Self, CaptureInterface), CaptureError> {
        let Ok(header) = source.take(24, 0) else {
            return Err(CaptureError::NotACapture("its header is cut short"));
        };
        let header = source.bytes(header);
        if self.order.u16(header, 4) != 2 {
            return Err(CaptureError::NotACapture("it has a version that nobody has written"));
        }
        // The upper half tells about frame check sequences.
        let link = LinkLayer(self.order.u32(header, 20) as u16);
        Ok((self, CaptureInterface { name: String::new(), link, snap_len: self.order.u32(header, 16) }))
    }

    /// The next packet.
    pub(super) fn next<R: Read>(&self, source: &mut Source<R>) -> Result<Option<BufferedPacket>, CaptureError> {
        let begun = source.at;
        let header = source.peek(self.header)?;
        match header.len() {
            0 => return Ok(None),
            got if got < self.header => return Err(CaptureError::CutShort { at: begun }),
            _ => {}
        }
        let number = |at| self.order.u32(header, at);
        let (seconds, fraction, kept, original) = (number(0), number(4), number(8), number(12));
        if kept > MOST_CAPTURED {
            return Err(CaptureError::Damaged {
                at: begun,
                what: "a packet says that it has more than a million bytes",
            });
        }
        let place = source.take(self.header + kept as usize, begun)?;
        let fraction = if self.nanoseconds { u64::from(fraction) } else { u64::from(fraction) * 1000 };
        let at_ns = Some(u64::from(seconds) * 1_000_000_000 + fraction);
        let start = place.start + self.header;
        Ok(Some(BufferedPacket { interface: 0, at_ns, original_len: original as usize, start, end: place.end }))
    }
}
