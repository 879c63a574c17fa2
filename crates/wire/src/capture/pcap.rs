use super::{BigEndian, CaptureError, CaptureInterface, Found, LinkLayer, MOST_CAPTURED, Source};
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

    /// Reads the rest of the file's header, behind the first four bytes.
    pub(super) fn read<R: Read>(self, source: &mut Source<R>) -> Result<(Self, CaptureInterface), CaptureError> {
        let mut rest = [0; 20];
        if source.fill(&mut rest)? < rest.len() {
            return Err(CaptureError::NotACapture("its header is cut short"));
        }
        if self.order.u16(&rest, 0) != 2 {
            return Err(CaptureError::NotACapture("it has a version that nobody has written"));
        }
        // The upper half tells about frame check sequences.
        let link = LinkLayer(self.order.u32(&rest, 16) as u16);
        Ok((self, CaptureInterface { name: String::new(), link, snap_len: self.order.u32(&rest, 12) }))
    }

    /// The next packet.
    pub(super) fn next<R: Read>(
        &self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Found>, CaptureError> {
        let begun = source.at;
        let mut header = [0; 24];
        let header = header.get_mut(..self.header).unwrap_or_default();
        match source.fill(header)? {
            0 => return Ok(None),
            got if got < header.len() => return Err(CaptureError::CutShort { at: begun }),
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
        source.take(kept as usize, buffer, begun)?;
        let fraction = if self.nanoseconds { u64::from(fraction) } else { u64::from(fraction) * 1000 };
        let at_ns = u64::from(seconds) * 1_000_000_000 + fraction;
        Ok(Some(Found { interface: 0, at_ns, original_len: original as usize, start: 0, end: buffer.len() }))
    }
}
