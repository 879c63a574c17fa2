//! The one table of words from which stacks are made.

use super::layer::{self as l, Coding, Layer};

/// A word of a stack, for help texts and completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word {
    /// The word as it is written; `N` stands for a number.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// What it stands for, in one line.
    pub about: &'static str,
    /// Whether it carries packets inside other packets or frames them on a link.
    pub group: Group,
    pub(crate) body: Body,
}

/// What a word is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[schema(as = EncapsulationGroup)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Whole links by our own names.
    Link,
    /// The keywords of tc-cake(8).
    Cake,
    /// Tunnels: IP packets that carry the packet.
    Tunnel,
    /// What carries a tunnel.
    Carrier,
}

/// What a word does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// Wraps the packet in these layers, from the packet outwards, and needs something beneath them.
    Tunnel(&'static [Layer], Needs),
    /// Belongs to the link.
    Link(LinkWord),
    /// tc's `overhead N`: replaces what the words before have added.
    Overhead,
    /// tc's `mpu N`.
    Mpu,
}

/// What must stand beneath a layer of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it is an IP packet.
    Nothing,
    /// An IP packet (or ESP in transport mode).
    Ip,
    /// A UDP datagram.
    Udp,
}

/// What a word of the link does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkWord {
    /// Layers that it adds.
    pub(crate) adds: &'static [Layer],
    /// Whether it first forgets what was added before.
    pub(crate) resets: bool,
    /// The shortest frame, if it sets one.
    pub(crate) mpu: Option<u64>,
    /// The coding, if it sets one.
    pub(crate) coding: Option<Coding>,
    /// What carries it, unless another word does.
    pub(crate) medium: Medium,
}

/// Who carries the frames that a word makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// It is itself a medium, or a bare number of bytes.
    Itself,
    /// Whatever carries the others.
    Any,
    /// Ethernet, unless another medium is named.
    Ethernet,
    /// HDLC-like framing, unless another medium is named.
    Hdlc,
}

const BARE: LinkWord = LinkWord { adds: &[], resets: false, mpu: None, coding: None, medium: Medium::Itself };
const WIRE: &[Layer] = &[l::ETHERNET, l::FCS, l::PREAMBLE, l::GAP];
/// IEEE 802.3 clause 4 (minFrameSize, 64 bytes with the FCS, a tag included) with preamble and gap.
pub(crate) const ETHERNET: LinkWord = LinkWord { adds: WIRE, mpu: Some(84), coding: Some(Coding::Plain), ..BARE };
pub(crate) const HDLC: LinkWord = LinkWord { adds: &[l::HDLC], ..BARE };

const fn word(group: Group, name: &'static str, about: &'static str, body: Body) -> Word {
    Word { name, aliases: &[], about, group, body }
}

const fn link(name: &'static str, about: &'static str, body: LinkWord) -> Word {
    word(Group::Link, name, about, Body::Link(body))
}

const fn cake(name: &'static str, about: &'static str, body: LinkWord) -> Word {
    word(Group::Cake, name, about, Body::Link(body))
}

const fn tunnel(name: &'static str, about: &'static str, layers: &'static [Layer], needs: Needs) -> Word {
    word(Group::Tunnel, name, about, Body::Tunnel(layers, needs))
}

const fn adds(adds: &'static [Layer], medium: Medium) -> LinkWord {
    LinkWord { adds, medium, ..BARE }
}

const fn atm(adds: &'static [Layer]) -> LinkWord {
    LinkWord { adds, coding: Some(Coding::Atm), ..BARE }
}

const fn ptm(adds: &'static [Layer]) -> LinkWord {
    LinkWord { adds, coding: Some(Coding::Ptm), ..BARE }
}

impl Word {
    const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Whether this is how the word is written.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.name == text || self.aliases.contains(&text)
    }

    /// Bytes that the word adds, if it adds a fixed number.
    #[must_use]
    pub fn bytes(&self) -> Option<i32> {
        match self.body {
            Body::Tunnel(layers, _) => Some(layers.iter().map(Layer::len).sum()),
            Body::Link(link) => Some(link.adds.iter().map(Layer::len).sum()),
            Body::Overhead | Body::Mpu => None,
        }
    }
}

/// Every word. The numbers are those of the layers; tc-cake(8) gives the same ones for its keywords.
pub(crate) static WORDS: &[Word] = &[
    link(
        "pppoe-llc-bridged-fcs-atm",
        "ADSL: PPPoE, Ethernet with its FCS, LLC/SNAP, AAL5: 44, atm",
        atm(&[l::PPP_IN_PPPOE, l::PPPOE, l::ETHERNET, l::FCS, l::LLC_BRIDGED, l::AAL5]),
    ),
    link(
        "pppoe-llc-bridged-atm",
        "the same without the FCS, cake's pppoe-llcsnap: 40, atm",
        atm(&[l::PPP_IN_PPPOE, l::PPPOE, l::ETHERNET, l::LLC_BRIDGED, l::AAL5]),
    ),
    link(
        "pppoe-vcmux-bridged-fcs-atm",
        "ADSL: PPPoE, Ethernet with its FCS, VC-mux, AAL5: 36, atm",
        atm(&[l::PPP_IN_PPPOE, l::PPPOE, l::ETHERNET, l::FCS, l::VCMUX_BRIDGED, l::AAL5]),
    ),
    link(
        "pppoe-vcmux-bridged-atm",
        "the same without the FCS, cake's pppoe-vcmux: 32, atm",
        atm(&[l::PPP_IN_PPPOE, l::PPPOE, l::ETHERNET, l::VCMUX_BRIDGED, l::AAL5]),
    ),
    link(
        "llc-bridged-fcs-atm",
        "ADSL: Ethernet with its FCS, LLC/SNAP, AAL5: 36, atm",
        atm(&[l::ETHERNET, l::FCS, l::LLC_BRIDGED, l::AAL5]),
    ),
    link(
        "vcmux-bridged-fcs-atm",
        "ADSL: Ethernet with its FCS, VC-mux, AAL5: 28, atm",
        atm(&[l::ETHERNET, l::FCS, l::VCMUX_BRIDGED, l::AAL5]),
    ),
    link("vlan", "a VLAN tag: 4; on Ethernet unless another link is named", adds(&[l::VLAN], Medium::Ethernet)).or(&[
        "ethernet-vlan",
        "802.1q",
        "dot1q",
    ]),
    link(
        "qinq",
        "two VLAN tags: 8; on Ethernet unless another link is named",
        adds(&[l::VLAN, l::VLAN], Medium::Ethernet),
    )
    .or(&["q-in-q", "ethernet-qinq", "802.1ad", "dot1ad"]),
    link(
        "pppoe",
        "PPP over Ethernet: 8; on Ethernet unless another link is named",
        adds(&[l::PPP_IN_PPPOE, l::PPPOE], Medium::Ethernet),
    ),
    link("mpls", "an MPLS label: 4; on Ethernet unless another link is named", adds(&[l::MPLS], Medium::Ethernet)),
    link(
        "ppp",
        "PPP on a serial line (modem): 2, and 5 of HDLC-like framing unless another link is named",
        adds(&[l::PPP], Medium::Hdlc),
    ),
    link("fcs", "an Ethernet frame check sequence: 4", adds(&[l::FCS], Medium::Any)),
    cake("ethernet", "Ethernet with preamble, header, FCS and gap: 38, mpu 84, noatm", ETHERNET),
    cake("ether-vlan", "one VLAN tag: 4; may be repeated", adds(&[l::VLAN], Medium::Any)),
    cake(
        "docsis",
        "cable, as the head end counts: 18, mpu 64, noatm",
        LinkWord { adds: &[l::ETHERNET, l::FCS], mpu: Some(64), coding: Some(Coding::Plain), ..BARE },
    ),
    cake(
        "pppoe-ptm",
        "VDSL2 with PPPoE: 30, ptm",
        ptm(&[l::PPP_IN_PPPOE, l::PPPOE, l::ETHERNET, l::FCS, l::PTM_FRAME]),
    ),
    cake("bridged-ptm", "VDSL2: 22, ptm", ptm(&[l::ETHERNET, l::FCS, l::PTM_FRAME])),
    cake("pppoa-vcmux", "ADSL: 10, atm", atm(&[l::PPP, l::AAL5])),
    cake("pppoa-llc", "ADSL: 14, atm", atm(&[l::PPP, l::LLC_PPP, l::AAL5])),
    cake("pppoe-vcmux", "ADSL: 32, atm", atm(&[l::PPP_IN_PPPOE, l::PPPOE, l::ETHERNET, l::VCMUX_BRIDGED, l::AAL5])),
    cake("pppoe-llcsnap", "ADSL: 40, atm", atm(&[l::PPP_IN_PPPOE, l::PPPOE, l::ETHERNET, l::LLC_BRIDGED, l::AAL5])),
    cake("bridged-vcmux", "ADSL: 24, atm", atm(&[l::ETHERNET, l::VCMUX_BRIDGED, l::AAL5])).or(&["vcmux-bridged-atm"]),
    cake("bridged-llcsnap", "ADSL: 32, atm", atm(&[l::ETHERNET, l::LLC_BRIDGED, l::AAL5])).or(&["llc-bridged-atm"]),
    cake("ipoa-vcmux", "ADSL: 8, atm", atm(&[l::AAL5])),
    cake("ipoa-llcsnap", "ADSL: 16, atm", atm(&[l::LLC_ROUTED, l::AAL5])),
    cake(
        "conservative",
        "more than is likely anywhere: 48, atm",
        LinkWord { adds: &[l::CONSERVATIVE], resets: true, coding: Some(Coding::Atm), ..BARE },
    ),
    cake("raw", "the IP packet alone: 0, noatm", LinkWord { resets: true, coding: Some(Coding::Plain), ..BARE })
        .or(&["none"]),
    cake("atm", "cells of 53 bytes that carry 48", atm(&[])),
    cake("ptm", "65 bytes for each 64", ptm(&[])),
    cake("noatm", "neither cells nor 64/65", LinkWord { coding: Some(Coding::Plain), ..BARE }),
    word(Group::Cake, "overhead=N", "exactly N bytes, -64 to 256, instead of what stands before", Body::Overhead),
    word(Group::Cake, "mpu=N", "the shortest frame, 0 to 256 bytes", Body::Mpu),
    tunnel("wireguard", "WireGuard: 32, pads to 16 within the MTU; on UDP", &[l::WIREGUARD], Needs::Udp).or(&["wg"]),
    tunnel("esp", "IPsec ESP with AES-GCM: 34, pads to 4; on IP (or UDP for NAT)", &[l::ESP_GCM], Needs::Ip).or(&[
        "ipsec",
        "esp-gcm",
        "esp-aes-gcm",
        "ipsec-aes-gcm",
        "esp-chacha20poly1305",
    ]),
    tunnel("esp-cbc-sha1", "IPsec ESP with AES-CBC and HMAC-SHA1-96: 38, pads to 16", &[l::ESP_CBC_SHA1], Needs::Ip)
        .or(&["esp-aes-cbc-sha1", "ipsec-aes-cbc-sha1"]),
    tunnel(
        "esp-cbc-sha256",
        "IPsec ESP with AES-CBC and HMAC-SHA-256-128: 42, pads to 16",
        &[l::ESP_CBC_SHA256],
        Needs::Ip,
    )
    .or(&["esp-aes-cbc-sha256", "ipsec-aes-cbc-sha256"]),
    tunnel("gre", "GRE: 4; on IP", &[l::GRE], Needs::Ip),
    tunnel("gre-key", "GRE with a key: 8; on IP", &[l::GRE_KEY], Needs::Ip),
    tunnel("gretap", "an Ethernet frame in GRE: 18; on IP", &[l::INNER_ETHERNET, l::GRE], Needs::Ip),
    tunnel("vxlan", "an Ethernet frame in VXLAN: 22; on UDP", &[l::INNER_ETHERNET, l::VXLAN], Needs::Udp),
    tunnel(
        "geneve",
        "an Ethernet frame in Geneve without options: 22; on UDP",
        &[l::INNER_ETHERNET, l::GENEVE],
        Needs::Udp,
    ),
    tunnel("l2tp", "PPP in L2TPv2 data messages as Linux sends them: 10; on UDP", &[l::PPP_FULL, l::L2TP], Needs::Udp)
        .or(&["l2tpv2"]),
    tunnel(
        "l2tpv3",
        "an Ethernet frame in L2TPv3 without a cookie: 18; on IP",
        &[l::INNER_ETHERNET, l::L2TPV3],
        Needs::Ip,
    ),
    tunnel("6in4", "IPv6 in IPv4: 20", &[l::IP4], Needs::Nothing).or(&["sit", "6to4", "6rd"]),
    tunnel("ipip", "IPv4 in IPv4: 20", &[l::IP4], Needs::Nothing).or(&["4in4"]),
    tunnel("4in6", "IPv4 in IPv6: 40", &[l::IP6], Needs::Nothing).or(&["dslite", "ds-lite", "ip6tnl", "6in6"]),
    word(Group::Carrier, "udp", "the UDP header of a tunnel: 8", Body::Tunnel(&[l::UDP], Needs::Ip)),
    word(
        Group::Carrier,
        "ip4",
        "the IPv4 header of a tunnel: 20; the default",
        Body::Tunnel(&[l::IP4], Needs::Nothing),
    )
    .or(&["ipv4", "ip"]),
    word(Group::Carrier, "ip6", "the IPv6 header of a tunnel: 40", Body::Tunnel(&[l::IP6], Needs::Nothing))
        .or(&["ipv6"]),
];
