//! Stand-in until wt-wire has its framing.
use wt_link::WireLen;
use wt_units::Bytes;

#[derive(Debug, Clone)]
pub struct Framing(WireLen);
impl Framing {
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(match text {
            "raw" => WireLen::IP,
            "ethernet" => WireLen::Plain { add: 38, min: 84 },
            "ppp" => WireLen::Plain { add: 8, min: 0 },
            "pppoe-llc-bridged-fcs-atm" => WireLen::Atm { add: 44 },
            _ => return Err(format!("unknown framing {text}")),
        }))
    }
    pub fn wire_len(&self, ip_len: Bytes) -> Bytes {
        Bytes(u64::from(self.0.of(ip_len.get() as u32)))
    }
}
impl From<&Framing> for WireLen {
    fn from(f: &Framing) -> Self {
        f.0
    }
}
