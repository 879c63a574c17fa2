//! From the length of one packet to what a transfer costs.

use super::Framing;
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// The largest IP packet there can be: the total length has 16 bits (RFC 791 section 3.1).
const LARGEST_PACKET: u64 = 65_535;

/// The version of the packet's own IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IpVersion {
    /// IPv4 without options, 20 bytes.
    #[default]
    V4,
    /// IPv6 without extension headers, 40 bytes.
    V6,
}

impl IpVersion {
    /// The length of the header.
    #[must_use]
    pub const fn header_len(self) -> Bytes {
        Bytes(match self {
            Self::V4 => 20,
            Self::V6 => 40,
        })
    }
}

impl std::str::FromStr for IpVersion {
    type Err = IpVersionError;
    /// `4` or `6`, with `v` or `ipv` before it or not.
    fn from_str(text: &str) -> Result<Self, IpVersionError> {
        match text.trim() {
            "4" | "v4" | "ipv4" => Ok(Self::V4),
            "6" | "v6" | "ipv6" => Ok(Self::V6),
            _ => Err(IpVersionError { text: text.to_owned() }),
        }
    }
}

/// What is no version of IP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no version of IP: allowed are 4 and 6")]
pub struct IpVersionError {
    /// What was written.
    pub text: String,
}

/// The transport inside the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP with so many bytes of options; padded to a multiple of four, at most 40 (RFC 9293 section 3.1).
    Tcp {
        /// Bytes of options on every data segment; timestamps take 12.
        options_len: u8,
    },
    /// UDP.
    Udp,
}

/// The packet's own headers: what lies between `ip_len` and `payload_len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Headers {
    /// The version of IP.
    pub ip: IpVersion,
    /// The transport.
    pub transport: Transport,
}

impl Headers {
    /// IPv4 and TCP without options: 40 bytes.
    pub const TCP4: Self = Self { ip: IpVersion::V4, transport: Transport::Tcp { options_len: 0 } };
    /// IPv4 and UDP: 28 bytes.
    pub const UDP4: Self = Self { ip: IpVersion::V4, transport: Transport::Udp };

    /// Both headers together.
    #[must_use]
    pub const fn header_len(&self) -> Bytes {
        Bytes(self.ip.header_len().0 + self.transport_len().0 + self.options_len().0)
    }

    /// The transport's header without options.
    #[must_use]
    pub const fn transport_len(&self) -> Bytes {
        Bytes(match self.transport {
            Transport::Tcp { .. } => 20,
            Transport::Udp => 8,
        })
    }

    /// TCP's options, padded to a multiple of four.
    #[must_use]
    pub const fn options_len(&self) -> Bytes {
        Bytes(match self.transport {
            Transport::Tcp { options_len } if options_len > 40 => 40,
            Transport::Tcp { options_len } => options_len.next_multiple_of(4) as u64,
            Transport::Udp => 0,
        })
    }

    /// The payload of a packet as long as the MTU: TCP's segment size, or UDP's largest datagram.
    ///
    /// # Errors
    /// [`SplitError`] if the MTU has no room for any.
    pub fn payload_of(&self, mtu: Bytes) -> Result<Bytes, SplitError> {
        let room = mtu - self.header_len();
        if room.get() == 0 || mtu.get() > LARGEST_PACKET {
            return Err(SplitError { mtu, least: self.header_len() + Bytes(1), most: Bytes(LARGEST_PACKET) });
        }
        Ok(room)
    }
}

/// An MTU into which no payload fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an MTU of {} carries no payload: it must be {} to {} bytes with these headers", .mtu.get(), .least.get(), .most.get())]
pub struct SplitError {
    /// The MTU.
    pub mtu: Bytes,
    /// The smallest that would do.
    pub least: Bytes,
    /// The largest there is.
    pub most: Bytes,
}

/// What a payload costs when it is sent in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The packets; an empty payload takes one.
    pub packets: u64,
    /// The payload in all.
    pub payload_len: Bytes,
    /// The IP packets in all, tunnels not counted.
    pub ip_len: Bytes,
    /// The wire in all.
    pub wire_len: Bytes,
    /// The cells in all, on a link that has them.
    pub cells: Option<u64>,
}

impl Account {
    /// The payload's share of the wire.
    #[must_use]
    pub fn efficiency(&self) -> Ratio {
        if self.wire_len.get() == 0 {
            return Ratio(0.0);
        }
        Ratio(self.payload_len.get() as f64 / self.wire_len.get() as f64)
    }

    /// What is added, as a share of the payload; `None` for an empty payload.
    #[must_use]
    pub fn overhead(&self) -> Option<Ratio> {
        let payload = self.payload_len.get() as f64;
        (payload > 0.0).then(|| Ratio((self.wire_len.get() as f64 - payload) / payload))
    }

    /// The rate at which the payload arrives when the wire is full, rounded down.
    #[must_use]
    pub fn goodput(&self, link_rate: BitsPerSecond) -> BitsPerSecond {
        scale(link_rate, self.payload_len, self.wire_len, false)
    }

    /// The rate that the wire must have for this goodput, rounded up.
    #[must_use]
    pub fn link_rate_for(&self, goodput: BitsPerSecond) -> BitsPerSecond {
        scale(goodput, self.wire_len, self.payload_len, true)
    }
}

/// `rate × of / per`, saturating; zero if `per` is.
fn scale(rate: BitsPerSecond, of: Bytes, per: Bytes, up: bool) -> BitsPerSecond {
    let product = u128::from(rate.get()) * u128::from(of.get());
    let per = u128::from(per.get());
    if per == 0 {
        return BitsPerSecond(0);
    }
    let quotient = if up { product.div_ceil(per) } else { product / per };
    BitsPerSecond(u64::try_from(quotient).unwrap_or(u64::MAX))
}

impl Framing {
    /// What it costs to send a payload in packets of at most the MTU, each with its own headers.
    ///
    /// A UDP payload that is too long for one packet goes as several datagrams, not as fragments of one.
    ///
    /// # Errors
    /// [`SplitError`] if the MTU has no room for a payload.
    ///
    /// # Example
    /// ```
    /// use wt_units::Bytes;
    /// use wt_wire::{Framing, Headers};
    /// let account = Framing::parse("ethernet")?.account(Headers::UDP4, Bytes(1500), Bytes(64))?;
    /// assert_eq!((account.packets, account.wire_len), (1, Bytes(130)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn account(&self, headers: Headers, mtu: Bytes, payload_len: Bytes) -> Result<Account, SplitError> {
        let most = headers.payload_of(mtu)?;
        let framing = self.at_mtu(mtu);
        let (full, rest) = (payload_len.get() / most.get(), payload_len.get() % most.get());
        // An empty payload still needs its packet: a pure acknowledgement.
        let last = u64::from(rest > 0 || full == 0);
        let last_len = headers.header_len() + Bytes(rest);
        let cells = framing.cells(mtu).zip(framing.cells(last_len));
        Ok(Account {
            packets: full.saturating_add(last),
            payload_len,
            ip_len: mtu * full + last_len * last,
            wire_len: framing.wire_len(mtu) * full + framing.wire_len(last_len) * last,
            cells: cells.map(|(of_full, of_last)| of_full.saturating_mul(full).saturating_add(of_last * last)),
        })
    }

    /// What packets as long as the MTU cost: a bulk transfer.
    ///
    /// # Errors
    /// [`SplitError`] if the MTU has no room for a payload.
    pub fn bulk(&self, headers: Headers, mtu: Bytes) -> Result<Account, SplitError> {
        self.account(headers, mtu, headers.payload_of(mtu)?)
    }

    /// The most payload per second of a bulk transfer over a link of this rate, rounded down: the physical limit.
    ///
    /// # Errors
    /// [`SplitError`] if the MTU has no room for a payload.
    ///
    /// # Example
    /// ```
    /// use wt_units::{BitsPerSecond, Bytes};
    /// use wt_wire::{Framing, Headers};
    /// let adsl = Framing::parse("pppoe-llc-bridged-fcs-atm")?;
    /// let limit = adsl.goodput(BitsPerSecond(8_000_000), Bytes(1492), Headers::TCP4)?;
    /// assert_eq!(limit, BitsPerSecond(8_000_000 * 1452 / (32 * 53)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn goodput(&self, rate: BitsPerSecond, mtu: Bytes, headers: Headers) -> Result<BitsPerSecond, SplitError> {
        Ok(self.bulk(headers, mtu)?.goodput(rate))
    }

    /// The MTU at or under `max` with the best efficiency of bulk transfers; of equals the largest.
    ///
    /// # Errors
    /// [`SplitError`] if even `max` has no room for a payload.
    pub fn best_mtu(&self, max: Bytes, headers: Headers) -> Result<Bytes, SplitError> {
        let header = headers.header_len().get();
        let mut best = (max, headers.payload_of(max)?.get(), self.at_mtu(max).wire_len(max).get());
        // payload / wire > best.1 / best.2, without rounding.
        let beats = |payload: u64, wire: u64, best: (Bytes, u64, u64)| {
            u128::from(payload) * u128::from(best.2) > u128::from(best.1) * u128::from(wire)
        };
        // From the largest down; where the framing depends on the MTU, each by itself.
        let depends = self.depends_on_mtu();
        let mut ranges = vec![(header + 1, max.get().saturating_sub(1))];
        while let Some((low, high)) = ranges.pop() {
            if low > high {
                continue;
            }
            if low == high {
                let mtu = Bytes(high);
                let wire = if depends { self.at_mtu(mtu).wire_len(mtu) } else { self.wire_len(mtu) }.get();
                if beats(high - header, wire, best) {
                    best = (mtu, high - header, wire);
                }
                continue;
            }
            // Bytes on the wire never decrease: none of these is better than the largest payload in the fewest bytes.
            if depends || beats(high - header, self.wire_len(Bytes(low)).get(), best) {
                let middle = low + (high - low) / 2;
                ranges.extend([(low, middle), (middle + 1, high)]);
            }
        }
        Ok(best.0)
    }
}
