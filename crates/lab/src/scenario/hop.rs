//! What stands between two links besides a plain router: middleboxes, and hosts on the way.

use super::ScenarioError;
use super::limits::{self, Limit};
use super::raw::RawHop;
use super::read::Reader;
use super::value::SpannedValue;
use std::time::Duration;
use wt_units::{format_duration, suggestion};

/// The hop in front of a link, as seen from the client. The one in front of the first link is no router: it does the
/// same to packets, but takes nothing from their time to live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The largest MSS option that it lets through in SYNs.
    pub mss_clamp: Option<MssClamp>,
    /// What it writes into the MSS option of SYNs.
    pub mss: Option<u16>,
    /// What it writes into the window scale option of SYNs.
    pub window_scale: Option<u8>,
    /// Options that it overwrites by padding in SYNs.
    pub strip: Vec<StrippedOption>,
    /// What it does about ECN.
    pub ecn: EcnTreatment,
    /// What it doesn't let through.
    pub block: Vec<BlockedTraffic>,
    /// In which direction it does all of this; NAT and ICMP have no direction.
    pub direction: HopDirection,
    /// Whether it translates the addresses and ports of IPv4 packets from the client's side to its own, and how long it
    /// remembers a translation that isn't used.
    pub nat: Option<Duration>,
    /// What it says by ICMP.
    pub icmp: HopIcmp,
    /// A host that stands here.
    pub host: Option<MiddleHost>,
}

/// A host on the way: packets for it end here, and it sends its own from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MiddleHost {
    /// How it is called.
    pub name: String,
    /// The MTU of its device, bytes.
    pub mtu: u32,
}

/// The largest MSS that a clamp leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MssClamp {
    /// What fits the smaller MTU of the links before and behind the hop: 40 bytes less for IPv4, 60 for IPv6.
    Pmtu,
    /// So much.
    At(u16),
}

/// An option of TCP by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrippedOption {
    /// Maximum segment size.
    Mss,
    /// Window scale.
    WindowScale,
    /// SACK permitted.
    Sack,
    /// Timestamps.
    Timestamps,
    /// TCP Fast Open.
    FastOpen,
}

/// What a hop does about ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcnTreatment {
    /// Nothing.
    #[default]
    Keep,
    /// It clears the two bits of the IP header: what was negotiated is in vain.
    Bleach,
    /// It clears ECE and CWR in SYNs: ECN isn't negotiated.
    StripSyn,
    /// It drops SYNs that ask for ECN.
    DropSyn,
}

/// What a hop doesn't let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedTraffic {
    /// ICMP of both versions (but not neighbour discovery, which ends at a link).
    Icmp,
    /// Only ICMP's error messages, packet too big among them.
    IcmpErrors,
    /// UDP.
    Udp,
    /// Fragments.
    Fragments,
}

/// In which direction a hop changes packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HopDirection {
    /// In both.
    #[default]
    Both,
    /// Towards the server.
    Up,
    /// Towards the client.
    Down,
}

/// What a hop says by ICMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopIcmp {
    /// Whether it tells of packets that are too long, for IPv4 and for IPv6; `icmp` of the link must allow it too.
    pub too_big: [bool; 2],
    /// The MTU that it names instead of the true one.
    pub too_big_mtu: Option<u32>,
    /// Whether it tells of packets whose time to live ran out.
    pub time_exceeded: bool,
    /// Whether it answers pings, and UDP packets, that are for itself.
    pub echo: bool,
    /// The most messages per second, and how many at once.
    pub rate: Option<(u32, u32)>,
}

impl Default for HopIcmp {
    fn default() -> Self {
        Self { too_big: [true; 2], too_big_mtu: None, time_exceeded: true, echo: true, rate: None }
    }
}

impl Default for Hop {
    fn default() -> Self {
        Self {
            mss_clamp: None,
            mss: None,
            window_scale: None,
            strip: Vec::new(),
            ecn: EcnTreatment::Keep,
            block: Vec::new(),
            direction: HopDirection::Both,
            nat: None,
            icmp: HopIcmp::default(),
            host: None,
        }
    }
}

impl Hop {
    /// Whether it must see each packet.
    pub(crate) fn looks_at_packets(&self) -> bool {
        self.host.is_some() || self.nat.is_some() || self.changes_packets()
    }

    /// Whether it changes or drops packets, NAT left out.
    pub(crate) fn changes_packets(&self) -> bool {
        let syn = self.mss_clamp.is_some() || self.mss.is_some() || self.window_scale.is_some();
        syn || !self.strip.is_empty() || self.ecn != EcnTreatment::Keep || !self.block.is_empty()
    }

    /// What is wrong with it, by its field; `first` says that it stands in front of the first link.
    pub(super) fn check(&self, first: bool) -> Result<(), (&'static str, String)> {
        let clamp = if let Some(MssClamp::At(mss)) = self.mss_clamp { Some(u32::from(mss)) } else { None };
        let check = |field, value: Option<u32>, limit: &Limit<u32>| {
            value.map_or(Ok(()), |value| limit.check(&value, &value)).map_err(|why| (field, why))
        };
        check("mss", self.mss.map(u32::from), &limits::MSS)?;
        check("mss_clamp", clamp, &limits::MSS)?;
        check("window_scale", self.window_scale.map(u32::from), &limits::WINDOW_SCALE)?;
        check("too_big_mtu", self.icmp.too_big_mtu, &limits::NAMED_MTU)?;
        check("icmp_per_second", self.icmp.rate.map(|(rate, _)| rate), &limits::ICMP_RATE)?;
        check("icmp_burst", self.icmp.rate.map(|(rate, burst)| burst.max(u32::from(rate == 0))), &limits::ICMP_BURST)?;
        if self.mss.is_some() && self.mss_clamp.is_some() {
            return Err(("mss_clamp", BOTH_MSS.to_owned()));
        }
        if let Some(idle) = self.nat {
            limits::NAT_IDLE.check(&idle, &format_duration(idle)).map_err(|why| ("nat_idle", why))?;
        }
        let Some(host) = &self.host else { return Ok(()) };
        if first {
            return Err(("host", FIRST_HOST.to_owned()));
        }
        limits::host_name(&host.name).map_err(|why| ("host", why))?;
        check("host_mtu", Some(host.mtu), &limits::HOST_MTU)
    }

    /// What it does, a phrase each.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(host) = &self.host {
            said.push(format!("host \"{}\", device of MTU {}", host.name, host.mtu));
        }
        match self.mss_clamp {
            Some(MssClamp::Pmtu) => said.push("clamps the MSS to the links' MTU".to_owned()),
            Some(MssClamp::At(most)) => said.push(format!("clamps the MSS to {most}")),
            None => {}
        }
        said.extend(self.mss.map(|mss| format!("writes MSS {mss}")));
        said.extend(self.window_scale.map(|shift| format!("writes window scale {shift}")));
        let names: Vec<&str> = self.strip.iter().map(|option| name_of(&STRIPPED, option)).collect();
        if !names.is_empty() {
            said.push(format!("strips {} from SYNs", names.join(", ")));
        }
        match self.ecn {
            EcnTreatment::Keep => {}
            EcnTreatment::Bleach => said.push("clears the ECN bits of IP".to_owned()),
            EcnTreatment::StripSyn => said.push("clears ECE and CWR in SYNs".to_owned()),
            EcnTreatment::DropSyn => said.push("drops SYNs that ask for ECN".to_owned()),
        }
        let names: Vec<&str> = self.block.iter().map(|blocked| name_of(&BLOCKED, blocked)).collect();
        if !names.is_empty() {
            said.push(format!("blocks {}", names.join(", ")));
        }
        match self.direction {
            HopDirection::Up if self.changes_packets() => said.push("(all of this only towards the server)".to_owned()),
            HopDirection::Down if self.changes_packets() => {
                said.push("(all of this only towards the client)".to_owned());
            }
            _ => {}
        }
        said.extend(self.nat.map(|idle| format!("translates IPv4 addresses and ports, idle {} s", idle.as_secs_f64())));
        said.extend(self.icmp.describe());
        said
    }
}

impl HopIcmp {
    fn describe(&self) -> Vec<String> {
        let mut said = Vec::new();
        match self.too_big {
            [true, true] => {}
            [true, false] => said.push("tells of too long packets for IPv4 only".to_owned()),
            [false, true] => said.push("tells of too long packets for IPv6 only".to_owned()),
            [false, false] => said.push("doesn't tell of too long packets".to_owned()),
        }
        said.extend(self.too_big_mtu.map(|mtu| format!("names the MTU {mtu} in ICMP, whatever it is")));
        if !self.time_exceeded {
            said.push("sends no \"time exceeded\"".to_owned());
        }
        if !self.echo {
            said.push("doesn't answer pings".to_owned());
        }
        said.extend(self.rate.map(|(rate, burst)| format!("at most {rate} ICMP messages per second, {burst} at once")));
        said
    }
}

const BOTH_MSS: &str = "write either mss or mss_clamp, not both";
const FIRST_HOST: &str = "no host stands before the first link but the client";

const STRIPPED: [(&str, StrippedOption); 5] = [
    ("mss", StrippedOption::Mss),
    ("window-scale", StrippedOption::WindowScale),
    ("sack", StrippedOption::Sack),
    ("timestamps", StrippedOption::Timestamps),
    ("fast-open", StrippedOption::FastOpen),
];

const BLOCKED: [(&str, BlockedTraffic); 4] = [
    ("icmp", BlockedTraffic::Icmp),
    ("icmp-errors", BlockedTraffic::IcmpErrors),
    ("udp", BlockedTraffic::Udp),
    ("fragments", BlockedTraffic::Fragments),
];

const ECN: [(&str, EcnTreatment); 4] = [
    ("keep", EcnTreatment::Keep),
    ("bleach", EcnTreatment::Bleach),
    ("strip-syn", EcnTreatment::StripSyn),
    ("drop-syn", EcnTreatment::DropSyn),
];

const DIRECTIONS: [(&str, HopDirection); 3] =
    [("both", HopDirection::Both), ("up", HopDirection::Up), ("down", HopDirection::Down)];

const TOO_BIG: [(&str, [bool; 2]); 4] =
    [("both", [true, true]), ("ipv4", [true, false]), ("ipv6", [false, true]), ("none", [false, false])];

fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

/// How long a translation lives without use, unless it is written.
///
/// # Source
/// RFC 4787 section 4.3, REQ-5: five minutes are recommended.
const NAT_IDLE: Duration = Duration::from_secs(300);

impl Reader<'_> {
    /// Reads the table of a hop; `first` says that it stands in front of the first link.
    pub(super) fn hop(&self, raw: &RawHop, of: &str, first: bool) -> Result<Hop, ScenarioError> {
        let field = |name: &str| format!("{of}.{name}");
        let number = |name: &str, value: &Option<SpannedValue<i64>>, allowed| {
            value.as_ref().map(|value| self.integer(&field(name), value, allowed)).transpose()
        };
        let mss = number("mss", &raw.mss, &limits::MSS)?;
        let window_scale = number("window_scale", &raw.window_scale, &limits::WINDOW_SCALE)?;
        if let (Some(_), Some(clamp)) = (mss, &raw.mss_clamp) {
            return Err(self.wrong(&field("mss_clamp"), clamp, BOTH_MSS));
        }
        let nat_idle = match &raw.nat_idle {
            Some(value) if raw.nat != Some(true) => {
                return Err(self.wrong(&field("nat_idle"), value, "there is no nat = true"));
            }
            value => self.duration(&field("nat_idle"), value.as_ref(), &limits::NAT_IDLE)?,
        };
        Ok(Hop {
            mss_clamp: raw.mss_clamp.as_ref().map(|clamp| self.mss_clamp(&field("mss_clamp"), clamp)).transpose()?,
            mss: mss.and_then(|mss| u16::try_from(mss).ok()),
            window_scale: window_scale.and_then(|shift| u8::try_from(shift).ok()),
            strip: self.words(&field("strip"), raw.strip.as_deref(), &STRIPPED)?,
            ecn: self.word(&field("ecn"), raw.ecn.as_ref(), &ECN)?.unwrap_or_default(),
            block: self.words(&field("block"), raw.block.as_deref(), &BLOCKED)?,
            direction: self.word(&field("direction"), raw.direction.as_ref(), &DIRECTIONS)?.unwrap_or_default(),
            nat: (raw.nat == Some(true)).then_some(if raw.nat_idle.is_some() { nat_idle } else { NAT_IDLE }),
            icmp: self.hop_icmp(raw, of)?,
            host: self.middle_host(raw, of, first)?,
        })
    }

    fn hop_icmp(&self, raw: &RawHop, of: &str) -> Result<HopIcmp, ScenarioError> {
        let field = |name: &str| format!("{of}.{name}");
        let number = |name: &str, value: &Option<SpannedValue<i64>>, allowed| {
            value.as_ref().map(|value| self.integer(&field(name), value, allowed)).transpose()
        };
        let rate = number("icmp_per_second", &raw.icmp_per_second, &limits::ICMP_RATE)?;
        let burst = number("icmp_burst", &raw.icmp_burst, &limits::ICMP_BURST)?;
        if let (None, Some(value)) = (rate, &raw.icmp_burst) {
            return Err(self.wrong(&field("icmp_burst"), value, "there is no icmp_per_second"));
        }
        Ok(HopIcmp {
            too_big: self.word(&field("too_big"), raw.too_big.as_ref(), &TOO_BIG)?.unwrap_or([true; 2]),
            too_big_mtu: number("too_big_mtu", &raw.too_big_mtu, &limits::NAMED_MTU)?,
            time_exceeded: raw.time_exceeded.unwrap_or(true),
            echo: raw.echo.unwrap_or(true),
            rate: rate.map(|rate| (rate, burst.unwrap_or(if rate == 0 { 0 } else { 1 }))),
        })
    }

    fn middle_host(&self, raw: &RawHop, of: &str, first: bool) -> Result<Option<MiddleHost>, ScenarioError> {
        let Some(host) = &raw.host else {
            return match &raw.host_mtu {
                Some(value) => Err(self.wrong(&format!("{of}.host_mtu"), value, "there is no host")),
                None => Ok(None),
            };
        };
        let (name, field) = (host.get_ref(), format!("{of}.host"));
        if first {
            return Err(self.wrong(&field, host, FIRST_HOST));
        }
        limits::host_name(name).map_err(|why| self.wrong(&field, host, why))?;
        Ok(Some(MiddleHost {
            name: name.clone(),
            mtu: self.host_mtu(&format!("{of}.host_mtu"), raw.host_mtu.as_ref())?,
        }))
    }

    fn mss_clamp(&self, field: &str, value: &SpannedValue<toml::Value>) -> Result<MssClamp, ScenarioError> {
        match value.get_ref() {
            toml::Value::String(text) if text == "pmtu" => Ok(MssClamp::Pmtu),
            toml::Value::Integer(number) => u16::try_from(*number)
                .ok()
                .filter(|number| limits::MSS.allows(&u32::from(*number)))
                .map(MssClamp::At)
                .ok_or_else(|| {
                    let why = format!("{}, or \"pmtu\"", limits::MSS.out_of_range(number));
                    self.wrong(field, value, why)
                }),
            other => {
                let allowed = limits::MSS.allowed;
                let why = format!("a {}: allowed is a number from {allowed}, or \"pmtu\"", other.type_str());
                Err(self.wrong(field, value, why))
            }
        }
    }

    /// One of several words.
    fn word<T: Copy>(
        &self,
        field: &str,
        value: Option<&SpannedValue<String>>,
        table: &[(&'static str, T)],
    ) -> Result<Option<T>, ScenarioError> {
        let Some(value) = value else { return Ok(None) };
        let found = table.iter().find(|(name, _)| name == value.get_ref()).map(|(_, meaning)| *meaning);
        found.map(Some).ok_or_else(|| {
            let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            let near = suggestion(value.get_ref(), names.iter().copied());
            self.wrong(field, value, format!("\"{}\": allowed is {}{near}", value.get_ref(), names.join(", ")))
        })
    }

    fn words<T: Copy>(
        &self,
        field: &str,
        values: Option<&[SpannedValue<String>]>,
        table: &[(&'static str, T)],
    ) -> Result<Vec<T>, ScenarioError> {
        let values = values.unwrap_or_default().iter();
        let read: Result<Vec<Option<T>>, _> = values.map(|value| self.word(field, Some(value), table)).collect();
        Ok(read?.into_iter().flatten().collect())
    }
}
