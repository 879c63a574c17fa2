use crate::change::{Basis, ScopeName};
use crate::knob::{ALL, HostKnob, Knob, KnobError, LinkKnob, Value};
use crate::read::{Survey, connection_value, is_ethernet, route_value};
use crate::snapshot::is_unicast;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wt_sys::link::Link;
use wt_sys::route::{PROTO_RA, Route, TABLE_MAIN};

/// Packets that the queue of an Ethernet device holds at first: `DEFAULT_TX_QUEUE_LEN` of the kernel.
pub(super) const ETHERNET_QUEUE: u32 = 1_000;

/// What somebody wants changed, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The settings, each once.
    pub pairs: Vec<(&'static Knob, Value)>,
    /// Where.
    pub target: Target,
    /// Where those are to hold that don't belong there.
    pub places: BTreeMap<&'static str, Target>,
    /// Whether it leads back to what the system does by itself: then narrower places than the host lose theirs, too.
    pub resets: bool,
    /// Why, for those that have a reason of their own.
    pub reasons: BTreeMap<&'static str, String>,
    /// The experiment that recommends them.
    pub basis: Option<Basis>,
}

/// Where settings are to hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// The whole host; what only routes can have, on the default routes; what only devices can have, on the main one.
    #[default]
    Host,
    /// The default routes of IPv4 and IPv6.
    DefaultRoutes,
    /// One route: to this address, or to this network.
    Route(IpAddr, Option<u8>),
    /// One device and the routes through it.
    Device(String),
}

impl std::str::FromStr for Target {
    type Err = std::convert::Infallible;

    /// `host`, `default`, an address, a network, or else the name of a device. What is mapped into IPv6, as `ss` and programs
    /// with one socket for both versions show it, is IPv4: so its packets are.
    ///
    /// # Source
    /// RFC 4291, 2.5.5.2: `::ffff:0:0/96` has IPv4 addresses in its last 32 bits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const BITS_BEFORE: u8 = 96;
        let word = text.trim();
        let network = |text: &str| {
            let (address, bits) = text.split_once('/')?;
            let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
            let all = if address.is_ipv4() { 32 } else { 128 };
            let (plain, is_mapped) = (address.to_canonical(), address.is_ipv6() && address.to_canonical().is_ipv4());
            (bits <= all).then(|| match bits.checked_sub(BITS_BEFORE).filter(|_| is_mapped) {
                Some(bits) => Self::Route(masked(plain, bits), Some(bits)),
                None => Self::Route(masked(address, bits), Some(bits)),
            })
        };
        Ok(match word {
            "host" => Self::Host,
            "default" => Self::DefaultRoutes,
            _ => match word.parse::<IpAddr>() {
                Ok(address) => Self::Route(address.to_canonical(), None),
                Err(_) => network(word).unwrap_or_else(|| Self::Device(word.to_owned())),
            },
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::DefaultRoutes => f.write_str("default"),
            Self::Route(address, None) => write!(f, "{address}"),
            Self::Route(address, Some(bits)) => write!(f, "{address}/{bits}"),
            Self::Device(name) => f.write_str(name),
        }
    }
}

/// An address without the bits behind the network.
pub(crate) fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(u32::from(32 - bits.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(u32::from(128 - bits.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

/// What is wrong with a file that says what to change.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It isn't TOML.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// It isn't JSON of ours.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A setting is wrong.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// A field has a form that it can't have.
    #[error("{field} {what}")]
    Form {
        /// The field.
        field: String,
        /// What is wrong.
        what: &'static str,
    },
}

impl Request {
    /// The settings in `KEY=VALUE` arguments.
    ///
    /// # Errors
    /// [`KnobError`].
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Self, KnobError> {
        let mut request = Self::default();
        for pair in pairs {
            let (knob, value) = Knob::parse_pair(pair)?;
            request.add(knob, value)?;
        }
        Ok(request)
    }

    /// Everything that this program can set and that isn't as the system has it by itself: for the host, on devices, routes and
    /// connections.
    #[must_use]
    pub fn defaults(survey: &Survey) -> Self {
        let snapshot = &survey.snapshot;
        let differs = |knob: &Knob| {
            let on_device = knob.link == Some(LinkKnob::Mtu)
                && survey.devices.links.iter().any(|link| has_other_mtu(link) || keeps_its_mtu(link))
                || knob.link == Some(LinkKnob::QueueLen) && survey.devices.links.iter().any(has_other_queue);
            let laid_down = |value: Option<Value>| value.is_some_and(|value| value != Value::Auto);
            on_device
                || (matches!(knob.host, Some(HostKnob::Sysctl(_))) && !survey.is_own(knob))
                || snapshot
                    .routes
                    .iter()
                    .any(|route| is_settable(route) && laid_down(route_value(knob, &route.metrics())))
                || snapshot.connections.iter().any(|rule| laid_down(connection_value(knob, Some(rule))))
        };
        let pairs = ALL.iter().filter(|knob| differs(knob)).map(|knob| (knob, Value::Auto)).collect();
        Self { pairs, resets: true, ..Self::default() }
    }

    /// Every setting of the whole host, the default routes and the main device that isn't as the kernel has it by itself.
    #[must_use]
    pub fn current(survey: &Survey) -> Self {
        let mut pairs = Vec::new();
        for knob in ALL {
            let host = || {
                let text = survey.snapshot.sysctls.get(knob.host?.sysctl())?;
                let whole = matches!(knob.host, Some(HostKnob::Sysctl(_))) && !knob.may_be_default(text);
                whole.then(|| knob.decode(text))
            };
            let route = || {
                let value = route_value(knob, &survey.default_routes().first()?.metrics())?;
                (value != Value::Auto).then_some(value)
            };
            let value = if knob.host.is_some() { host() } else { route() };
            pairs.extend(value.map(|value| (knob, value)));
        }
        Self { pairs, ..Self::default() }
    }

    /// Adds a setting; the same once more is no harm.
    ///
    /// # Errors
    /// [`KnobError::Twice`] if it has another value already.
    pub fn add(&mut self, knob: &'static Knob, value: Value) -> Result<(), KnobError> {
        match self.pairs.iter().find(|(known, _)| known.name == knob.name) {
            Some((_, first)) if *first != value => {
                Err(KnobError::Twice { key: knob.name, first: first.to_string(), second: value.to_string() })
            }
            Some(_) => Ok(()),
            None => {
                self.pairs.push((knob, value));
                Ok(())
            }
        }
    }

    /// Reads a file: TOML with `to = "…"` and `[settings]`, or what `plan --json` writes.
    ///
    /// # Errors
    /// [`RequestError`] with line or field.
    pub fn of_file(text: &str) -> Result<Self, RequestError> {
        if text.trim_start().starts_with('{') { Self::of_json(text) } else { Self::of_toml(text) }
    }

    fn of_toml(text: &str) -> Result<Self, RequestError> {
        let table: toml::Table = text.parse()?;
        let mut request = Self::default();
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("settings", toml::Value::Table(settings)) => {
                    for (key, value) in settings {
                        request.add_toml(key, value)?;
                    }
                }
                ("settings", _) => return Err(form(key, "must be a table")),
                ("to", toml::Value::String(text)) => request.target = text.parse().unwrap_or_default(),
                ("to", _) => return Err(form(key, "must be a text, such as \"host\" or \"192.0.2.1\"")),
                ("why" | "name", toml::Value::String(_)) => {}
                _ => request.add_toml(key, value)?,
            }
        }
        Ok(request)
    }

    fn add_toml(&mut self, key: &str, value: &toml::Value) -> Result<(), RequestError> {
        let knob = Knob::find(key)?;
        let wrong = || form(key, "must be a text, a number, true or false");
        let text = match value {
            toml::Value::Array(list) => {
                let words: Option<Vec<String>> = list.iter().map(scalar).collect();
                words.ok_or_else(wrong)?.join(" ")
            }
            value => scalar(value).ok_or_else(wrong)?,
        };
        let (knob, value) =
            if knob.name == key { (knob, knob.parse(&text)?) } else { Knob::parse_pair(&format!("{key}={text}"))? };
        Ok(self.add(knob, value)?)
    }

    fn of_json(text: &str) -> Result<Self, RequestError> {
        #[derive(serde::Deserialize)]
        struct File {
            #[serde(default)]
            to: Option<String>,
            #[serde(default)]
            places: BTreeMap<String, String>,
            #[serde(default)]
            resets: bool,
            changes: Vec<Row>,
            #[serde(default)]
            basis: Option<Basis>,
        }
        #[derive(serde::Deserialize)]
        struct Row {
            key: String,
            #[serde(default)]
            asked: Option<Value>,
            new: Value,
            #[serde(default)]
            scope: Option<ScopeName>,
        }
        let file: File = serde_json::from_str(text)?;
        let mut request = Self {
            target: file.to.unwrap_or_default().parse().unwrap_or_default(),
            basis: file.basis,
            resets: file.resets,
            ..Self::default()
        };
        if request.target == Target::Device(String::new()) {
            request.target = Target::Host;
        }
        for row in file.changes {
            let knob = Knob::find(&row.key)?;
            let value = knob.parse(&row.asked.unwrap_or(row.new).to_string())?;
            // A limit that follows a setting of another place is the host's all the same.
            if row.scope == Some(ScopeName::Host) && request.target != Target::Host {
                request.places.insert(knob.name, Target::Host);
            }
            request.add(knob, value)?;
        }
        for (key, place) in file.places {
            request.places.insert(Knob::find(&key)?.name, place.parse().unwrap_or_default());
        }
        Ok(request)
    }
}

/// Whether the metrics of a route are ours to set: those of router advertisements are the kernel's.
pub(super) fn is_settable(route: &Route) -> bool {
    is_unicast(route) && route.table() == TABLE_MAIN && route.protocol() != PROTO_RA
}

/// Whether a device isn't as it began.
pub(super) fn has_other_mtu(link: &Link) -> bool {
    link.up && Survey::own_mtu(link).is_some_and(|own| own != link.mtu)
}

/// Whether a device has another MTU than most, which isn't ours to reset.
pub(super) fn keeps_its_mtu(link: &Link) -> bool {
    link.up && Survey::has_mtu_of_its_kind(link)
}

/// The same of its queue. Virtual devices have none of their own, or one that somebody chose with them.
pub(super) fn has_other_queue(link: &Link) -> bool {
    link.up && is_ethernet(link) && link.tx_queue_len != ETHERNET_QUEUE && link.tx_queue_len > 1
}

/// A single value as one would write it in an argument.
fn scalar(value: &toml::Value) -> Option<String> {
    Some(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(on) => if *on { "on" } else { "off" }.to_owned(),
        _ => return None,
    })
}

fn form(field: &str, what: &'static str) -> RequestError {
    RequestError::Form { field: field.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::{Request, Target, has_other_mtu, keeps_its_mtu};
    use proptest::prelude::*;
    use wt_sys::link::Link;

    fn pairs(request: &Request) -> Vec<(&str, String)> {
        request.pairs.iter().map(|(knob, value)| (knob.name, value.to_string())).collect()
    }

    #[test]
    fn places_are_told_apart_and_what_is_mapped_into_ipv6_is_ipv4() {
        let target = |text: &str| text.parse::<Target>().unwrap();
        assert_eq!(target("host"), Target::Host);
        assert_eq!(target("default"), Target::DefaultRoutes);
        assert_eq!(target("192.0.2.77/24"), Target::Route("192.0.2.0".parse().unwrap(), Some(24)));
        assert_eq!(target("2001:db8::1"), Target::Route("2001:db8::1".parse().unwrap(), None));
        assert_eq!(target("eth0"), Target::Device("eth0".to_owned()));
        assert_eq!(target("1.2.3.4/99"), Target::Device("1.2.3.4/99".to_owned()));
        assert_eq!(target("0.0.0.0/0").to_string(), "0.0.0.0/0");
        assert_eq!(target("::ffff:192.0.2.80"), target("192.0.2.80"));
        assert_eq!(target("::ffff:192.0.2.80/120"), target("192.0.2.0/24"));
        assert_eq!(target("::ffff:0:0/96").to_string(), "0.0.0.0/0");
        assert_eq!(target("::/0").to_string(), "::/0");
    }

    #[test]
    fn files_say_the_same_as_arguments() {
        let toml = "to = \"eth0\"\nttl = 128\n[settings]\nsack = false\ncc = \"bbr\"\nrwin = \"4x\"\ntcp_rmem = [4096, 131072, 6291456]\n";
        let request = Request::of_file(toml).unwrap();
        assert_eq!(request.target, Target::Device("eth0".to_owned()));
        let wanted =
            Request::of_pairs(["ttl=128", "sack=off", "cc=bbr", "rwin=4x", "tcp_rmem=4096 131072 6291456"]).unwrap();
        let (mut found, mut wanted) = (pairs(&request), pairs(&wanted));
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted);
        let json = r#"{"to":"default","changes":[{"key":"initcwnd","old":"auto","new":20},{"key":"mss","asked":"from-mtu","old":"auto","new":1460}]}"#;
        let request = Request::of_file(json).unwrap();
        assert_eq!(request.target, Target::DefaultRoutes);
        assert_eq!(pairs(&request), [("initcwnd", "20".to_owned()), ("mss", "from-mtu".to_owned())]);
    }

    #[test]
    fn a_plan_in_several_places_has_them_in_its_json() {
        let json = r#"{"to":"192.0.2.80","resets":true,"places":{"ttl":"default"},"changes":[
            {"key":"initcwnd","new":20,"scope":"route"},{"key":"ttl","new":64,"scope":"route"},
            {"key":"rmem-max","new":4000000,"scope":"host"}]}"#;
        let request = Request::of_file(json).unwrap();
        assert!(request.resets && request.target == "192.0.2.80".parse().unwrap());
        let places: Vec<_> = request.places.iter().map(|(key, place)| (*key, place.to_string())).collect();
        assert_eq!(places, [("rmem-max", "host".to_owned()), ("ttl", "default".to_owned())]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (file, wanted) in [
            ("sak = true", "did you mean sack"),
            ("[settings]\ninitcwnd = 0", "1 to 1000"),
            ("settings = 5", "must be a table"),
            ("to = 5", "must be a text"),
            ("= 5", "TOML"),
            ("{\"changes\":5}", "invalid type"),
            ("mtu = { a = 1 }", "must be a text"),
        ] {
            let message = Request::of_file(file).unwrap_err().to_string();
            assert!(message.contains(wanted), "{file}: {message}");
        }
        assert!(Request::of_pairs(["sack=on", "tcp_sack=0"]).unwrap_err().to_string().contains("given twice"));
        assert_eq!(Request::of_pairs(["sack=on", "tcp_sack=1"]).unwrap().pairs.len(), 1);
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "\\PC{0,60}") {
            let _ = Request::of_file(&text);
            let _ = text.parse::<Target>();
        }
    }

    #[test]
    fn only_devices_that_begin_with_the_mtu_of_ethernet_go_back_to_it() {
        let link = |kind: Option<&str>, mtu| Link {
            index: 3,
            name: "d0".to_owned(),
            kind: kind.map(str::to_owned),
            lower: None,
            master: None,
            mtu,
            min_mtu: None,
            max_mtu: None,
            qdisc: "noqueue".to_owned(),
            tx_queue_len: 1_000,
            address: vec![2, 0, 0, 0, 0, 1],
            up: true,
            carrier: true,
            loopback: false,
        };
        for (kind, is_its_own) in [
            (None, true),
            (Some("veth"), true),
            (Some("dummy"), true),
            (Some("vxlan"), false),
            (Some("bridge"), false),
            (Some("vlan"), false),
        ] {
            let found = |mtu| (has_other_mtu(&link(kind, mtu)), keeps_its_mtu(&link(kind, mtu)));
            assert_eq!((found(1_450), found(1_500)), ((is_its_own, !is_its_own), (false, false)), "{kind:?}");
        }
    }
}
