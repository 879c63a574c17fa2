//! What a packet costs on the wire.
//!
//! A [`Framing`] is a stack of layers around an IP packet: first the tunnels, if any, then the link. Three lengths are
//! kept apart throughout: `payload_len` (what the application gave), `ip_len` (the packet that TCP or UDP made, tunnels
//! not counted) and `wire_len` (what occupies the line, with preamble, gap, padding, cells).
//!
//! **The MTU** is everywhere the MTU that TCP sees: the largest IP packet *before* tunnels. On a WireGuard interface it
//! is the interface's MTU; the outer packet is longer by what the tunnel adds ([`Framing::outer_len`]).
//!
//! # What this leaves out
//! Byte stuffing of asynchronous PPP and header compression, which depend on the content; fragments of outer packets
//! that are too long for the link; ADSL's interleaving and Reed–Solomon bytes, which are below the rate that a modem
//! reports. IPv4 options and IPv6 extension headers of tunnels are taken as absent.

mod account;
mod layer;
mod parse;
mod pieces;
mod word;

pub use account::{Account, Headers, IpVersion, IpVersionError, SplitError, Transport};
pub use layer::Coding;
pub use parse::FramingError;
pub use pieces::{Part, Piece};
pub use word::{Group, Word};

use layer::{Layer, Pad};
use std::sync::Arc;
use wt_units::Bytes;

/// What Ethernet carries, bytes.
const ETHERNET: Bytes = Bytes(1500);

/// A stack of layers from the IP packet down to the wire.
///
/// # Grammar
/// Words joined by `+`, from the packet outwards: `wireguard+ip6+pppoe-ptm`. Spaces, commas and slashes join as well,
/// so that what was written for `tc qdisc … cake` can be pasted: `pppoe-llcsnap ether-vlan mpu 64`. [`Framing::words`]
/// lists the words. Two rules spare the obvious ones:
/// - a tunnel brings its carriers: `wireguard` is `wireguard+udp+ip4`, `wireguard+ip6` is `wireguard+udp+ip6`;
/// - `vlan`, `qinq`, `pppoe` and `mpls` bring Ethernet, `ppp` brings HDLC-like framing, unless a link is named.
///
/// The words of the link add up as `tc` adds them: `overhead=N`, `raw` and `conservative` replace what the words before
/// have added. A stack without a link ends with the outer IP packet.
///
/// # Example
/// ```
/// use wt_units::Bytes;
/// use wt_wire::Framing;
/// let adsl: Framing = "pppoe-llc-bridged-fcs-atm".parse()?;
/// assert_eq!(adsl.wire_len(Bytes(1444)), Bytes(31 * 53));
/// assert_eq!(adsl.cells(Bytes(1492)), Some(32));
/// let vpn = Framing::parse("wireguard+ethernet")?;
/// assert_eq!(vpn.wire_len(Bytes(1408)), Bytes(1408 + 32 + 8 + 20 + 38));
/// # Ok::<(), wt_wire::FramingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing {
    stack: Arc<Stack>,
    /// What the tunnels do to a length, in order; mostly empty.
    steps: Arc<[Step]>,
    /// What the link adds; negative only for tc's negative `overhead`.
    link_add: i64,
    mpu: u64,
    coding: Coding,
}

#[derive(Debug, PartialEq, Eq)]
struct Stack {
    text: String,
    tunnels: Vec<Layer>,
    link: Vec<Layer>,
}

/// What a link adds, while it is being read.
struct Link {
    layers: Vec<Layer>,
    mpu: u64,
    coding: Coding,
}

/// One thing that a tunnel does to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Add(u64),
    /// Fills whole blocks with `beyond` more bytes, but not beyond `most`.
    Fill {
        of: u64,
        beyond: u64,
        most: u64,
    },
}

impl Framing {
    /// Reads a stack; see the grammar above.
    ///
    /// # Errors
    /// [`FramingError`], which names the word and the nearest ones.
    pub fn parse(text: &str) -> Result<Self, FramingError> {
        parse::parse(text)
    }

    /// No framing at all: the IP packet alone.
    #[must_use]
    pub fn raw() -> Self {
        Self::new("raw".to_owned(), Vec::new(), Link { layers: Vec::new(), mpu: 0, coding: Coding::Plain })
    }

    /// Ethernet with preamble, gap and padding: 38 bytes around the packet.
    #[must_use]
    pub fn ethernet() -> Self {
        // The word is in the table: a test holds it.
        Self::parse("ethernet").unwrap_or_else(|_| Self::raw())
    }

    /// Every word of the grammar, in the order in which they are shown.
    pub fn words() -> impl Iterator<Item = &'static Word> {
        word::WORDS.iter()
    }

    /// Where a word that also is a tunnel of its own was taken for the IP header that a tunnel needs: that tunnel's word, this one, and how to
    /// write the other meaning.
    pub(crate) fn carriers_by_tunnels(&self) -> Vec<(&str, &str, String)> {
        let needs_carrier = |name: &str| {
            let needs = |word: &Word| matches!(word.body, word::Body::Tunnel(_, word::Needs::Ip | word::Needs::Udp));
            word::WORDS.iter().any(|word| word.name == name && needs(word))
        };
        let names: Vec<&str> = self.stack.text.split('+').collect();
        let pairs = names.windows(2).filter(|pair| needs_carrier(pair[0]));
        let inner = |name: &str| match name {
            "6in4" => Some("ip6"),
            "ipip" | "4in6" => Some("ip4"),
            _ => None,
        };
        pairs
            .filter_map(|pair| Some((pair[0], pair[1], format!("{}+{}+{}", pair[0], inner(pair[1])?, pair[1]))))
            .collect()
    }

    fn new(text: String, tunnels: Vec<Layer>, link: Link) -> Self {
        let steps = steps(&tunnels, None);
        let link_add = link.layers.iter().map(|layer| i64::from(layer.len())).sum();
        let stack = Arc::new(Stack { text, tunnels, link: link.layers });
        Self { stack, steps, link_add, mpu: link.mpu, coding: link.coding }
    }

    /// The same stack on a tunnel interface of this MTU: WireGuard does not pad beyond it.
    ///
    /// Without this, WireGuard always pads to 16 bytes, as it does for packets below the MTU.
    #[must_use]
    pub fn at_mtu(&self, mtu: Bytes) -> Self {
        if !self.depends_on_mtu() {
            return self.clone();
        }
        Self { steps: steps(&self.stack.tunnels, Some(mtu.get())), ..self.clone() }
    }

    /// Whether a layer pads no further than the MTU allows, so that packets of one length differ on the wire by the MTU.
    pub(super) fn depends_on_mtu(&self) -> bool {
        self.stack.tunnels.iter().any(|layer| matches!(layer.pad, Pad::BlocksWithinMtu { .. }))
    }

    /// Bytes on the wire of an IP packet of so many bytes: with every header, padding, preamble and gap, in cells.
    ///
    /// Constant time, no allocation; never decreases with `ip_len`; saturates.
    #[must_use]
    pub fn wire_len(&self, ip_len: Bytes) -> Bytes {
        let framed = self.framed_len(ip_len);
        Bytes(match self.coding {
            Coding::Plain => framed,
            Coding::Atm => framed.div_ceil(48).saturating_mul(53),
            Coding::Ptm => framed.saturating_add(framed.div_ceil(64)),
        })
    }

    /// ATM cells of an IP packet of so many bytes; `None` on a link without cells.
    #[must_use]
    pub fn cells(&self, ip_len: Bytes) -> Option<u64> {
        (self.coding == Coding::Atm).then(|| self.framed_len(ip_len).div_ceil(48))
    }

    /// The length of the outermost IP packet: what the link is asked to carry. Without a tunnel, `ip_len`.
    #[must_use]
    pub fn outer_len(&self, ip_len: Bytes) -> Bytes {
        Bytes(self.steps.iter().fold(ip_len.get(), |len, step| step.apply(len)))
    }

    /// Whether the packet travels inside another IP packet.
    #[must_use]
    pub fn has_tunnel(&self) -> bool {
        !self.stack.tunnels.is_empty()
    }

    /// Bytes of the Ethernet payload that MPLS labels and PPPoE take from the outermost IP packet.
    #[must_use]
    pub fn shim_len(&self) -> Bytes {
        let shims = self.stack.link.iter().filter(|layer| layer.in_payload);
        Bytes(shims.map(|layer| u64::from(layer.len().unsigned_abs())).sum())
    }

    /// The largest MTU whose outermost packet, with PPPoE and MPLS, fits into `link_mtu` (Ethernet's is 1500); zero if
    /// none does.
    #[must_use]
    pub fn fitting_mtu(&self, link_mtu: Bytes) -> Bytes {
        let room = link_mtu - self.shim_len();
        let fits = |mtu: u64| self.at_mtu(Bytes(mtu)).outer_len(Bytes(mtu)) <= room;
        let (mut fitting, mut beyond) = (0, room.get().saturating_add(1));
        while beyond - fitting > 1 {
            let middle = fitting + (beyond - fitting) / 2;
            if fits(middle) {
                fitting = middle;
            } else {
                beyond = middle;
            }
        }
        Bytes(fitting)
    }

    /// The MTU of packets in a link of which nobody says another: the largest that fits into `link_mtu`.
    ///
    /// PPPoE in cells keeps Ethernet's 1500 as long as nobody says what the link carries: cells aren't bound to it, and whether
    /// the modem is (RFC 4638) its framing doesn't say.
    #[must_use]
    pub fn usual_mtu(&self, link_mtu: Bytes) -> Bytes {
        let in_cells = self.coding == Coding::Atm && !self.has_tunnel();
        if in_cells && link_mtu == ETHERNET { ETHERNET } else { self.fitting_mtu(link_mtu) }
    }

    /// The whole stack as one addition, one least length and one coding, for engines that keep no `Framing`; `None` if
    /// a tunnel pads.
    #[must_use]
    pub fn linear(&self) -> Option<Linear> {
        let before = match *self.steps {
            [] => 0,
            [Step::Add(bytes)] => i64::try_from(bytes).ok()?,
            _ => return None,
        };
        Some(Linear { add: before.checked_add(self.link_add)?, min: Bytes(self.mpu), coding: self.coding })
    }

    /// The frame before its coding: bytes that go into cells or code words.
    fn framed_len(&self, ip_len: Bytes) -> u64 {
        self.outer_len(ip_len).get().saturating_add_signed(self.link_add).max(self.mpu)
    }
}

/// A framing without tunnels that pad: `coding(max(ip_len + add, min))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    /// Bytes added; negative only where tc's `overhead` is.
    pub add: i64,
    /// The shortest frame.
    pub min: Bytes,
    /// How the frame goes on the line.
    pub coding: Coding,
}

impl Step {
    fn apply(self, len: u64) -> u64 {
        match self {
            Self::Add(bytes) => len.saturating_add(bytes),
            Self::Fill { of, beyond, most } => {
                let filled = len.saturating_add(beyond).div_ceil(of).saturating_mul(of) - beyond;
                // A packet longer than the interface's MTU stays as it is.
                filled.min(most).max(len)
            }
        }
    }
}

/// What these layers do to a length, additions joined.
fn steps(tunnels: &[Layer], mtu: Option<u64>) -> Arc<[Step]> {
    let mut steps: Vec<Step> = Vec::new();
    // The length at this point of a packet as long as the MTU.
    let mut full = mtu.unwrap_or(u64::MAX);
    for layer in tunnels {
        let fill = match layer.pad {
            Pad::None => None,
            Pad::Blocks { of, beyond } => Some(Step::Fill { of, beyond, most: u64::MAX }),
            Pad::BlocksWithinMtu { of } => Some(Step::Fill { of, beyond: 0, most: full }),
        };
        let add = u64::from(layer.len().unsigned_abs());
        for step in fill.into_iter().chain([Step::Add(add)]) {
            full = step.apply(full);
            match (steps.last_mut(), step) {
                (Some(Step::Add(before)), Step::Add(more)) => *before += more,
                _ => steps.push(step),
            }
        }
    }
    steps.into()
}

impl std::fmt::Display for Framing {
    /// The stack in words joined by `+`; reads back as the same framing.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.stack.text)
    }
}

impl serde::Serialize for Framing {
    /// As text, as it is displayed.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::str::FromStr for Framing {
    type Err = FramingError;
    fn from_str(text: &str) -> Result<Self, FramingError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
