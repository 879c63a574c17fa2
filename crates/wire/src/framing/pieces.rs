//! A frame taken apart, for drawing.

use super::layer::{self as l, Layer};
use super::{Coding, Framing, Headers, IpVersion, Transport};
use wt_units::Bytes;

/// Some bytes of a frame that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// What they are.
    pub name: &'static str,
    /// How many; negative only where tc's `overhead` is.
    pub len: i64,
    /// What they are for.
    pub part: Part,
}

/// What bytes of a frame are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[schema(as = FramePart)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// In front of what they carry.
    Header,
    /// What it is all for.
    Payload,
    /// Behind what they carry.
    Trailer,
    /// Nothing.
    Padding,
    /// Spread over the frame: cell headers, code words.
    Coding,
}

impl Framing {
    /// The pieces of the frame of one packet in the order of the wire, none of them empty; together they are its
    /// `wire_len`.
    ///
    /// # Example
    /// ```
    /// use wt_units::Bytes;
    /// use wt_wire::{Framing, Headers};
    /// let pieces = Framing::parse("ethernet")?.pieces(Headers::UDP4, Bytes(64));
    /// let lens: Vec<i64> = pieces.iter().map(|piece| piece.len).collect();
    /// assert_eq!(lens, [8, 14, 20, 8, 64, 4, 12]);
    /// # Ok::<(), wt_wire::FramingError>(())
    /// ```
    #[must_use]
    pub fn pieces(&self, headers: Headers, payload_len: Bytes) -> Vec<Piece> {
        let ip_len = headers.header_len() + payload_len;
        let layers = || self.stack.tunnels.iter().chain(&self.stack.link);
        let mut pieces: Vec<Piece> =
            layers().rev().map(|layer| Piece::of(layer.name, Part::Header, i64::from(layer.head))).collect();
        pieces.extend(own_pieces(headers, payload_len));
        pieces.extend(self.tunnel_tails(ip_len));
        pieces.extend(self.link_tails(ip_len));
        pieces.retain(|piece| piece.len != 0);
        pieces
    }

    /// Padding and trailers of the tunnels.
    fn tunnel_tails(&self, ip_len: Bytes) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut len = ip_len.get();
        let mut steps = self.steps.iter();
        for layer in &self.stack.tunnels {
            if layer.pad != l::Pad::None {
                // Additions of the layers before are joined into one step in front of each filling one.
                for step in steps.by_ref() {
                    let before = len;
                    len = step.apply(len);
                    if let super::Step::Fill { .. } = step {
                        pieces.push(Piece::of("padding", Part::Padding, signed(len - before)));
                        break;
                    }
                }
            }
            pieces.push(Piece::of(layer.name, Part::Trailer, i64::from(layer.tail)));
        }
        pieces
    }

    /// Padding, trailers and coding of the link.
    fn link_tails(&self, ip_len: Bytes) -> Vec<Piece> {
        let bare = self.outer_len(ip_len).get().saturating_add_signed(self.link_add);
        let framed = self.framed_len(ip_len);
        let trailer = |layer: &Layer| Piece::of(layer.name, Part::Trailer, i64::from(layer.tail));
        let mut pieces = vec![Piece::of("padding", Part::Padding, signed(framed - bare))];
        pieces.extend(self.stack.link.iter().map(trailer));
        match self.coding {
            Coding::Plain => {}
            Coding::Atm => {
                let cells = framed.div_ceil(48);
                let fill = Piece::of("cell padding", Part::Padding, signed(cells * 48 - framed));
                // AAL5 pads in front of its trailer, so that the trailer ends the last cell.
                let at = pieces.iter().position(|piece| piece.name == l::AAL5.name).unwrap_or(pieces.len());
                pieces.insert(at, fill);
                pieces.push(Piece::of("cell headers", Part::Coding, signed(cells * 5)));
            }
            Coding::Ptm => pieces.push(Piece::of("64/65", Part::Coding, signed(framed.div_ceil(64)))),
        }
        pieces
    }
}

/// The packet's own headers and the payload.
fn own_pieces(headers: Headers, payload_len: Bytes) -> [Piece; 4] {
    let ip = match headers.ip {
        IpVersion::V4 => l::IP4.name,
        IpVersion::V6 => l::IP6.name,
    };
    let transport = match headers.transport {
        Transport::Tcp { .. } => "TCP",
        Transport::Udp => l::UDP.name,
    };
    [
        Piece::of(ip, Part::Header, signed(headers.ip.header_len().get())),
        Piece::of(transport, Part::Header, signed(headers.transport_len().get())),
        Piece::of("options", Part::Header, signed(headers.options_len().get())),
        Piece::of("payload", Part::Payload, signed(payload_len.get())),
    ]
}

impl Piece {
    const fn of(name: &'static str, part: Part, len: i64) -> Self {
        Self { name, len, part }
    }
}

fn signed(len: u64) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}
