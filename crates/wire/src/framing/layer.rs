/// One layer around a packet: what it puts in front, what behind, and how it pads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layer {
    /// What people call it.
    pub(crate) name: &'static str,
    /// Bytes in front of what it carries; negative only for tc's `overhead` with a negative number.
    pub(crate) head: i32,
    /// Bytes behind what it carries.
    pub(crate) tail: i32,
    /// How it pads what it carries.
    pub(crate) pad: Pad,
    /// Where it stands among the layers of a link, from the packet outwards.
    pub(crate) rank: u8,
    /// Whether its bytes count against the MTU of the Ethernet that carries it.
    pub(crate) in_payload: bool,
}

/// How a layer pads what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pad {
    /// Not at all.
    None,
    /// What it carries and `beyond` more bytes (which are in the layer's tail) fill whole blocks.
    Blocks {
        /// Bytes of a block.
        of: u64,
        /// Bytes of the tail that lie inside the last block.
        beyond: u64,
    },
    /// Whole blocks, but never beyond the MTU of the tunnel's interface.
    BlocksWithinMtu {
        /// Bytes of a block.
        of: u64,
    },
}

/// How the bytes of a frame go on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// As they are.
    #[default]
    Plain,
    /// In cells of 53 bytes that carry 48, the last one padded.
    ///
    /// # Source
    /// ITU-T I.361 (cell), I.363.5 (AAL5); Linux sch_cake counts the same.
    Atm,
    /// With one more byte for each 64 or part of 64.
    ///
    /// # Source
    /// IEEE 802.3 clause 61.3 (64/65-octet encapsulation); the rounding per packet is Linux sch_cake's.
    Ptm,
}

impl Layer {
    const fn new(name: &'static str, rank: u8, head: i32, tail: i32) -> Self {
        Self { name, head, tail, pad: Pad::None, rank, in_payload: false }
    }

    const fn in_payload(self) -> Self {
        Self { in_payload: true, ..self }
    }

    const fn padded(self, pad: Pad) -> Self {
        Self { pad, ..self }
    }

    /// Bytes in front and behind.
    pub(crate) const fn len(&self) -> i32 {
        self.head + self.tail
    }

    /// A number of bytes that somebody just gave.
    pub(crate) const fn anonymous(bytes: i32) -> Self {
        Self::new("overhead", 80, bytes, 0)
    }
}

// Tunnels. RFC 791 section 3.1, RFC 8200 section 3, RFC 768.
pub(crate) const IP4: Layer = Layer::new("IPv4", 0, 20, 0);
pub(crate) const IP6: Layer = Layer::new("IPv6", 0, 40, 0);
pub(crate) const UDP: Layer = Layer::new("UDP", 0, 8, 0);
/// Type 1, reserved 3, receiver 4, counter 8; tag 16 (the protocol's paper, section 5.4.6). Linux pads to 16 bytes, but
/// not beyond the interface's MTU (drivers/net/wireguard/send.c).
pub(crate) const WIREGUARD: Layer = Layer::new("WireGuard", 0, 16, 16).padded(Pad::BlocksWithinMtu { of: 16 });
/// SPI 4, sequence 4, IV 8; pad length 1, next header 1, ICV 16 (RFC 4303 section 2, RFC 4106).
pub(crate) const ESP_GCM: Layer = Layer::new("ESP", 0, 16, 18).padded(Pad::Blocks { of: 4, beyond: 2 });
/// SPI 4, sequence 4, IV 16; pad length 1, next header 1, ICV 12 (RFC 3602, RFC 2404).
pub(crate) const ESP_CBC_SHA1: Layer = Layer::new("ESP", 0, 24, 14).padded(Pad::Blocks { of: 16, beyond: 2 });
/// As above with an ICV of 16 (RFC 4868).
pub(crate) const ESP_CBC_SHA256: Layer = Layer::new("ESP", 0, 24, 18).padded(Pad::Blocks { of: 16, beyond: 2 });
/// RFC 2784 section 2.1.
pub(crate) const GRE: Layer = Layer::new("GRE", 0, 4, 0);
/// RFC 2890 section 2.
pub(crate) const GRE_KEY: Layer = Layer::new("GRE+key", 0, 8, 0);
/// RFC 7348 section 5.
pub(crate) const VXLAN: Layer = Layer::new("VXLAN", 0, 8, 0);
/// RFC 8926, without options.
pub(crate) const GENEVE: Layer = Layer::new("Geneve", 0, 8, 0);
/// Flags 2, tunnel 2, session 2: a data message without its optional fields (RFC 2661 section 3.1), as Linux sends it.
pub(crate) const L2TP: Layer = Layer::new("L2TP", 0, 6, 0);
/// Session 4, no cookie, no sublayer (RFC 3931 section 4.1).
pub(crate) const L2TPV3: Layer = Layer::new("L2TPv3", 0, 4, 0);
/// Address, control, protocol (RFC 1661 section 2, RFC 1662 section 3.1).
pub(crate) const PPP_FULL: Layer = Layer::new("PPP", 0, 4, 0);
/// An Ethernet header inside a tunnel, without the FCS.
pub(crate) const INNER_ETHERNET: Layer = Layer::new("Ethernet", 0, 14, 0);

// Links, from the packet outwards.
/// RFC 3032 section 2.1.
pub(crate) const MPLS: Layer = Layer::new("MPLS", 10, 4, 0).in_payload();
/// The protocol field (RFC 1661 section 2).
pub(crate) const PPP: Layer = Layer::new("PPP", 20, 2, 0);
/// The protocol field inside PPPoE, where it counts against Ethernet's 1500 (RFC 2516 section 7).
pub(crate) const PPP_IN_PPPOE: Layer = PPP.in_payload();
/// RFC 2516 section 4.
pub(crate) const PPPOE: Layer = Layer::new("PPPoE", 21, 6, 0).in_payload();
/// Flag 1 (shared by neighbouring frames), address 1, control 1; FCS 2 (RFC 1662 section 3.1).
pub(crate) const HDLC: Layer = Layer::new("HDLC", 22, 3, 2);
/// IEEE 802.1Q clause 9.
pub(crate) const VLAN: Layer = Layer::new("VLAN", 30, 4, 0);
/// Addresses 12, type 2 (IEEE 802.3 clause 3).
pub(crate) const ETHERNET: Layer = Layer::new("Ethernet", 40, 14, 0);
/// IEEE 802.3 clause 3.
pub(crate) const FCS: Layer = Layer::new("FCS", 41, 0, 4);
/// Two bytes before a bridged frame on a circuit of its own (RFC 2684 section 6).
pub(crate) const VCMUX_BRIDGED: Layer = Layer::new("VC-mux", 50, 2, 0);
/// LLC 3, OUI 3, PID 2, pad 2 before a bridged Ethernet frame (RFC 2684 section 5.2).
pub(crate) const LLC_BRIDGED: Layer = Layer::new("LLC/SNAP", 50, 10, 0);
/// LLC 3, OUI 3, EtherType 2 before a routed packet (RFC 2684 section 5.1).
pub(crate) const LLC_ROUTED: Layer = Layer::new("LLC/SNAP", 50, 8, 0);
/// LLC 3, NLPID 1 before PPP (RFC 2364).
pub(crate) const LLC_PPP: Layer = Layer::new("LLC", 50, 4, 0);
/// User-to-user 1, part 1, length 2, CRC 4 (ITU-T I.363.5).
pub(crate) const AAL5: Layer = Layer::new("AAL5", 60, 0, 8);
/// Start of frame 1; end of frame 1, CRC 2 (tc-cake(8), pppoe-ptm).
pub(crate) const PTM_FRAME: Layer = Layer::new("PTM", 61, 1, 3);
/// Preamble and start of frame (IEEE 802.3 clause 3).
pub(crate) const PREAMBLE: Layer = Layer::new("preamble", 70, 8, 0);
/// 96 bit times (IEEE 802.3 clause 4).
pub(crate) const GAP: Layer = Layer::new("gap", 71, 0, 12);
/// "One whole ATM cell" (tc-cake(8), conservative).
pub(crate) const CONSERVATIVE: Layer = Layer::new("conservative", 80, 48, 0);
