//! What a host lets be measured from it: a file of TOML that only its administrator writes. Whoever owns the fleet can ask for less,
//! never for more.

use crate::hours::Hours;
use crate::job::JobSpec;
use crate::waves::RolloutSpec;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::{Budget, duration_or_none};
use wt_units::{Bytes, HostPort, Knob, Url};

/// Where bytes are counted over.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);
/// When one that is over its bytes of a day looks again.
const LATER: Duration = Duration::from_secs(3600);

/// What a host lets be measured from it. Without targets it lets nothing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The fleet's server, with this host's role and certificate.
    pub server: String,
    /// The journal; nothing means the usual one.
    pub journal: Option<PathBuf>,
    /// Names (`speed.example.org`, `*.example.org`) and prefixes (`192.0.2.0/24`) that may be measured to. A name in a job has to fit
    /// a name here, and an address a prefix: where names lead is decided elsewhere.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Hours of the day in which it may measure, in UTC; nothing means always.
    #[serde(default)]
    pub hours: Vec<String>,
    /// Payload in 24 hours at most. Jobs then have to say how many bytes they may move.
    pub bytes_a_day: Option<Bytes>,
    /// The knobs that may be varied or held; nothing means each one that needs no change of the whole host.
    pub knobs: Option<Vec<Knob>>,
    /// Whether trials may change settings of this whole host.
    #[serde(default)]
    pub host_wide: bool,
    /// The knobs that a fleet's owner may change here for good; nothing means none. Where they may hold, `targets` and `host_wide` say.
    #[serde(default)]
    pub changes: Vec<Knob>,
    /// How long one experiment may take at most; nothing means 2 h.
    #[serde(default, with = "duration_or_none")]
    pub longest: Option<Duration>,
    /// What this host shares with others, whatever is measured: `link:berlin`.
    #[serde(default)]
    pub links: Vec<String>,
    /// How long a turn on what is shared lasts unless it is kept, and so how long others wait for a host that died: nothing means 30 s.
    #[serde(default, with = "duration_or_none")]
    pub turn: Option<Duration>,
    /// How often the server is asked, give or take a half; nothing means 20 s.
    #[serde(default, with = "duration_or_none")]
    pub poll: Option<Duration>,
    /// Where questions for metrics are answered (`127.0.0.1:9177`); nothing means nowhere.
    pub metrics: Option<SocketAddr>,
    /// Files with the keys of servers of ours, by the server's name.
    #[serde(default)]
    pub keys: BTreeMap<String, PathBuf>,
}

/// What a policy says of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyAnswer {
    /// It may be measured.
    Allowed,
    /// It may not, and why.
    Refused(String),
    /// Not now: why, and when to look again.
    Later(String, Duration),
}

impl Policy {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = toml::from_str(text).map_err(|error| wt_units::shortened(&error.to_string()))?;
        policy.hours.iter().try_for_each(|hours| hours.parse::<Hours>().map(drop))?;
        policy.targets.iter().try_for_each(|target| check_target(target).map_err(|why| format!("targets: {why}")))?;
        if policy.longest.is_some_and(|longest| longest.is_zero()) {
            return Err("longest: no experiment ends within no time: write 2h, or leave it out".to_owned());
        }
        Ok(policy)
    }

    /// How long one experiment may take.
    pub(crate) fn longest(&self) -> Duration {
        self.longest.unwrap_or(Duration::from_secs(7200))
    }

    /// The keys of servers that can't be read, as things are, and why not: no job to those servers can be done.
    pub(crate) fn unreadable_keys(&self) -> Vec<String> {
        let told = |server: &str, file: &Path| {
            let problem: Problem = wt_setup::serve::read_key(file).err()?;
            Some(format!("no job to {server} can be done: {}", problem.what))
        };
        self.keys.iter().filter_map(|(server, file)| told(server, file)).collect()
    }

    /// Whether its hours are now; `unix_s` is the time, seconds since 1970.
    pub(crate) fn is_open(&self, unix_s: i64) -> bool {
        let mut hours = self.hours.iter().filter_map(|hours| hours.parse::<Hours>().ok()).peekable();
        hours.peek().is_none() || hours.any(|hours| hours.is_open(unix_s))
    }

    /// What it says of a job; `moved` is what this host moved in the last 24 hours.
    #[must_use]
    pub fn judge(&self, target: &str, spec: &JobSpec, unix_s: i64, moved: Bytes) -> PolicyAnswer {
        self.refusal(target, spec).map_or_else(|| self.delay(spec, unix_s, moved), PolicyAnswer::Refused)
    }

    fn refusal(&self, target: &str, spec: &JobSpec) -> Option<String> {
        let Ok(url) = target.parse::<Url>() else { return Some(format!("{target} is no address of a server")) };
        if url.login.is_some() {
            return Some(format!("{url} comes with a key; keys are this host's own"));
        }
        if !self.targets.iter().any(|pattern| fits(pattern, &url.host)) {
            return Some(format!("{} isn't among this host's targets", url.host));
        }
        if spec.host_wide && !self.host_wide {
            return Some("trials may not change settings of this whole host".to_owned());
        }
        if let Some(allowed) = &self.knobs {
            let Some(named) = spec.named_knobs() else {
                return Some("this host allows some knobs only, and the job doesn't name all of its own".to_owned());
            };
            if let Some(knob) = named.iter().find(|knob| !allowed.contains(knob)) {
                return Some(format!("this host doesn't allow the knob {knob}"));
            }
        }
        let limit = self.bytes_a_day?;
        match spec.budget {
            Some(Budget::Size(size)) if size <= limit => None,
            Some(Budget::Size(size)) => {
                Some(format!("{} are more than this host's {} a day", size.human(), limit.human()))
            }
            _ => Some(format!(
                "this host allows {} a day, and the job doesn't say how many bytes it may move: budget = \"200MB\"",
                limit.human()
            )),
        }
    }

    /// Why a change of settings may not be made here, if it may not. What the plan then comes to is looked at besides.
    pub(crate) fn change_refusal(&self, spec: &RolloutSpec) -> Option<String> {
        if self.changes.is_empty() {
            return Some("this host lets nobody else change its settings: changes = [] in its policy".to_owned());
        }
        for setting in &spec.settings {
            let key = setting.split('=').next().unwrap_or_default();
            if !key.parse().is_ok_and(|knob: Knob| self.changes.contains(&knob)) {
                return Some(format!("this host doesn't allow a change of {key}"));
            }
        }
        let may_hold = match spec.to.as_str() {
            "host" | "default" => self.host_wide,
            network => self.targets.iter().any(|pattern| covers(pattern, network)),
        };
        if !may_hold {
            let to = &spec.to;
            return Some(match to.as_str() {
                "host" | "default" => "settings of this whole host may not be changed".to_owned(),
                _ => format!("{to} isn't among this host's targets"),
            });
        }
        let strange = spec.reach.iter().find(|server| {
            let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            !self.targets.iter().any(|pattern| fits(pattern, host))
        });
        strange.map(|server| format!("{server}, which is to be reached afterwards, isn't among this host's targets"))
    }

    fn delay(&self, spec: &JobSpec, unix_s: i64, moved: Bytes) -> PolicyAnswer {
        let hours = |text: &String| text.parse::<Hours>().ok();
        let own: Vec<Hours> = self.hours.iter().filter_map(hours).collect();
        let wanted = spec.hours.as_ref().map(hours);
        let Some(wanted) = wanted.map_or(Some(None), |hours| hours.map(Some)) else {
            return PolicyAnswer::Refused("its hours of the day can't be read".to_owned());
        };
        // Both at once: the soonest minute of the next day that both have.
        let is_open = |at: i64| {
            (own.is_empty() || own.iter().any(|hours| hours.is_open(at)))
                && wanted.is_none_or(|hours| hours.is_open(at))
        };
        if !is_open(unix_s) {
            let soonest = (1..=24 * 60).map(|minutes| minutes * 60).find(|later| is_open(unix_s + later));
            let Some(soonest) = soonest else {
                return PolicyAnswer::Refused("its hours and this host's have no minute in common".to_owned());
            };
            let until = Duration::from_secs(u64::try_from(soonest).unwrap_or(0));
            let whose =
                if own.iter().any(|hours| hours.is_open(unix_s)) || own.is_empty() { "its" } else { "this host's" };
            return PolicyAnswer::Later(format!("outside of {whose} hours"), until);
        }
        if let (Some(limit), Some(Budget::Size(size))) = (self.bytes_a_day, spec.budget)
            && moved.get().saturating_add(size.get()) > limit.get()
        {
            let why = format!("{} of this host's {} a day are used up", moved.human(), limit.human());
            return PolicyAnswer::Later(why, LATER);
        }
        PolicyAnswer::Allowed
    }
}

/// Sees to it that there can be hosts that a pattern means.
fn check_target(pattern: &str) -> Result<(), String> {
    if pattern.contains('/') {
        return Prefix::parse(pattern).map(drop).ok_or(format!("\"{pattern}\" is no prefix: write 192.0.2.0/24"));
    }
    let name = pattern.strip_prefix("*.").unwrap_or(pattern);
    let place: HostPort = name.parse().map_err(|_| {
        format!("\"{pattern}\" is no host: write speed.example.org, *.example.org, an address, or a prefix such as 192.0.2.0/24")
    })?;
    if place.host != name || place.port.is_some() {
        return Err(format!("\"{pattern}\" has a port or brackets: write {}", place.host));
    }
    match name.strip_suffix('.') {
        Some(without) => Err(format!("\"{pattern}\" ends with a dot, and is compared without: write {without}")),
        None => Ok(()),
    }
}

/// Whether a host of a job is one that a pattern means.
fn fits(pattern: &str, host: &str) -> bool {
    if let Ok(address) = host.parse::<IpAddr>() {
        return match Prefix::parse(pattern) {
            Some(prefix) => prefix.has(address),
            None => pattern.parse() == Ok(address),
        };
    }
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    let host = host.strip_suffix('.').unwrap_or(&host);
    match pattern.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        None => pattern == host,
    }
}

/// Whether a pattern means every address of a network, or the one address. Both are of one version of IP: routes of IPv6 to
/// IPv4 addresses that are written as such (`::ffff:10.0.0.0/104`) are none of IPv4, and their lengths mean something else.
fn covers(pattern: &str, network: &str) -> bool {
    let inner = Prefix::parse(network).or_else(|| Prefix::of_address(network));
    let outer = Prefix::parse(pattern).or_else(|| Prefix::of_address(pattern));
    outer.zip(inner).is_some_and(|(outer, inner)| outer.length <= inner.length && outer.begins(inner.address))
}

/// Addresses that begin alike.
struct Prefix {
    address: IpAddr,
    length: u32,
}

impl Prefix {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (address, length): (IpAddr, u32) = (address.parse().ok()?, length.parse().ok()?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        (length <= most).then_some(Self { address, length })
    }

    /// The one address of a text.
    fn of_address(text: &str) -> Option<Self> {
        let address: IpAddr = text.parse().ok()?;
        Some(Self { address, length: if address.is_ipv4() { 32 } else { 128 } })
    }

    /// Whether an address is among them, in whichever version of IP it is written.
    fn has(&self, other: IpAddr) -> bool {
        self.begins(other.to_canonical())
    }

    /// Whether an address of the same version of IP begins like them.
    fn begins(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(32 - self.length).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(128 - self.length).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        server = "postgresql://a@db.example/windtunnel"
        targets = ["speed.example.org", "*.lab.example", "192.0.2.0/24", "2001:db8::/32"]
        hours = ["22:00-06:00"]
        bytes_a_day = "1GB"
        knobs = ["rwin", "cc"]
    "#;
    const NIGHT: i64 = 23 * 3600;

    fn judged(target: &str, spec: &str, unix_s: i64, moved: u64) -> PolicyAnswer {
        let spec: JobSpec = serde_json::from_str(spec).unwrap();
        Policy::parse(POLICY).unwrap().judge(target, &spec, unix_s, Bytes(moved))
    }

    #[test]
    fn nothing_central_widens_what_a_host_allows() {
        let good = r#"{"levels": ["cc=cubic,bbr"], "budget": "200MB"}"#;
        let s = "wt://speed.example.org";
        for host in [
            "speed.example.org",
            "SPEED.example.org",
            "a.b.lab.example",
            "192.0.2.255",
            "[2001:db8::1]",
            "[::ffff:192.0.2.7]",
        ] {
            assert_eq!(judged(&format!("wt://{host}"), good, NIGHT, 0), PolicyAnswer::Allowed, "{host}");
        }
        for (target, spec, told) in [
            ("wt://192.0.3.1", good, "targets"),
            ("wt://lab.example", good, "targets"),
            ("wt://evillab.example", good, "targets"),
            ("wt://speed.example.org.evil", good, "targets"),
            ("wt://[2001:db9::1]", good, "targets"),
            ("wt://0123@speed.example.org", good, "keys are this host's own"),
            ("/etc/passwd.toml", good, "no address"),
            (s, r#"{"levels": ["cc=cubic,bbr"], "budget": "200MB", "host_wide": true}"#, "whole host"),
            (s, r#"{"levels": ["mtu=1400"], "budget": "200MB"}"#, "knob mtu"),
            (s, r#"{"levels": ["cc=bbr"], "hold": ["mss=1400"], "budget": "200MB"}"#, "knob mss"),
            (s, r#"{"arms": ["x: rwin=1x,sack=off"], "budget": "200MB"}"#, "knob sack"),
            (s, r#"{"levels": ["cc=bbr"], "baseline": "windows-98", "budget": "200MB"}"#, "doesn't name"),
            (s, r#"{"budget": "200MB"}"#, "doesn't name"),
            (s, r#"{"levels": ["cc=bbr"], "budget": "2GB"}"#, "more than this host's"),
            (s, r#"{"levels": ["cc=bbr"], "budget": "10min"}"#, "how many bytes"),
            (s, r#"{"levels": ["cc=bbr"]}"#, "how many bytes"),
            (s, r#"{"levels": ["cc=bbr"], "budget": "200MB", "hours": "08:00-09:00"}"#, "no minute in common"),
        ] {
            match judged(target, spec, NIGHT, 0) {
                PolicyAnswer::Refused(why) => assert!(why.contains(told), "{told}: {why}"),
                other => panic!("{target} {spec}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_change_is_made_only_where_the_policy_names_its_knobs_and_its_place() {
        let refused = |more: &str, settings: &[&str], to: &str, reach: &[&str]| {
            let text = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
            let spec = RolloutSpec {
                settings: text(settings),
                to: to.to_owned(),
                reach: text(reach),
                ..RolloutSpec::default()
            };
            let policy = POLICY.replace("hours", &format!("{more}\nhours"));
            Policy::parse(&policy).unwrap().change_refusal(&spec)
        };
        let yes = "changes = [\"rwin\", \"initcwnd\"]";
        let all = "changes = [\"rwin\"]\nhost_wide = true";
        for (more, settings, to, reach) in [
            (yes, &["rwin=64KiB", "initcwnd=20"][..], "192.0.2.0/24", &["192.0.2.9:80", "speed.example.org:443"][..]),
            (yes, &["rwin=4x"], "192.0.2.7", &["[2001:db8::1]:80"]),
            (yes, &["rwin=4x"], "192.0.2.128/25", &[]),
            (yes, &["rwin=4x"], "2001:db8:7::/48", &["[::ffff:192.0.2.7]:80"]),
            (all, &["rwin=4x"], "host", &[]),
        ] {
            assert_eq!(refused(more, settings, to, reach), None, "{settings:?} {to} {reach:?}");
        }
        for (more, settings, to, reach, told) in [
            ("", &["rwin=64KiB"][..], "192.0.2.7", &[][..], "changes = []"),
            (yes, &["rwin=64KiB", "cc=bbr"], "192.0.2.7", &[], "change of cc"),
            (yes, &["net.ipv4.tcp_sack=0"], "192.0.2.7", &[], "change of net.ipv4.tcp_sack"),
            (yes, &["rwin=64KiB"], "192.0.3.7", &[], "targets"),
            (yes, &["rwin=64KiB"], "192.0.2.0/23", &[], "targets"),
            (yes, &["rwin=64KiB"], "0.0.0.0/0", &[], "targets"),
            (yes, &["rwin=64KiB"], "::ffff:192.0.2.0/24", &[], "targets"),
            (yes, &["rwin=64KiB"], "::ffff:192.0.2.0/120", &[], "targets"),
            (yes, &["rwin=64KiB"], "::ffff:192.0.2.7", &[], "targets"),
            (yes, &["rwin=64KiB"], "2001:db8::/31", &[], "targets"),
            (yes, &["rwin=64KiB"], "eth0", &[], "targets"),
            (yes, &["rwin=64KiB"], "speed.example.org", &[], "targets"),
            (yes, &["rwin=64KiB"], "host", &[], "whole host"),
            (yes, &["rwin=64KiB"], "default", &[], "whole host"),
            (yes, &["rwin=64KiB"], "192.0.2.7", &["198.51.100.1:22"], "to be reached"),
        ] {
            let why = refused(more, settings, to, reach).unwrap_or_else(|| panic!("{settings:?} {to} {reach:?}"));
            assert!(why.contains(told), "{told}: {why}");
        }
    }

    #[test]
    fn what_isnt_allowed_now_is_later() {
        let good = r#"{"levels": ["cc=cubic,bbr"], "budget": "200MB"}"#;
        let s = "wt://speed.example.org";
        let PolicyAnswer::Later(why, after) = judged(s, good, 21 * 3600, 0) else { panic!("it is day") };
        assert!(why.contains("this host's hours") && after == Duration::from_secs(3600), "{why} {after:?}");
        let PolicyAnswer::Later(why, _) = judged(s, good, NIGHT, 900_000_000) else { panic!("no bytes are left") };
        assert!(why.contains("used up"), "{why}");
        let late = r#"{"levels": ["cc=bbr"], "budget": "1MB", "hours": "05:00-07:00"}"#;
        let PolicyAnswer::Later(_, after) = judged(s, late, NIGHT, 0) else { panic!("it is before its hours") };
        assert_eq!(after, Duration::from_secs(6 * 3600));
    }

    #[test]
    fn an_empty_policy_allows_nothing() {
        let policy = Policy::parse("server = \"postgresql:///d\"").unwrap();
        let refused = policy.judge("wt://a.example", &JobSpec::default(), 0, Bytes(0));
        assert!(matches!(refused, PolicyAnswer::Refused(_)), "{refused:?}");
        assert!(Policy::parse("server = \"x\"\ntarget = []").is_err(), "a word that isn't known");
        assert!(Policy::parse("server = \"x\"\ntargets = [\"1.2.3.4/33\"]").is_err());
    }

    #[test]
    fn a_policy_by_which_nothing_can_be_measured_is_told_before_the_first_job() {
        let parsed = |more: &str| Policy::parse(&format!("server = \"x\"\n{more}"));
        assert!(parsed("longest = \"0s\"").unwrap_err().starts_with("longest: "));
        assert_eq!(parsed("longest = \"1s\"").unwrap().longest(), Duration::from_secs(1));
        let folder = tempfile::tempdir().unwrap();
        let (good, bad, none) = (folder.path().join("good"), folder.path().join("bad"), folder.path().join("none"));
        std::fs::write(&good, "00".repeat(32)).unwrap();
        std::fs::write(&bad, "no key").unwrap();
        let files = [("a", &good), ("b", &bad), ("c", &none)];
        let keys: String = files.map(|(server, file)| format!("{server} = {:?}\n", file.to_str().unwrap())).concat();
        let told = parsed(&format!("[keys]\n{keys}")).unwrap().unreadable_keys();
        let [second, third] = &told[..] else { panic!("{told:?}") };
        assert!(second.starts_with("no job to b can be done: ") && second.contains("bad"), "{second}");
        assert!(third.starts_with("no job to c can be done: ") && third.contains("none"), "{third}");
    }

    #[test]
    fn targets_that_no_host_can_be_are_refused_before_anything_is_asked_for() {
        let parsed = |target: &str| Policy::parse(&format!("server = \"x\"\ntargets = [\"{target}\"]"));
        for target in ["speed.example.org", "*.example.org", "192.0.2.7", "2001:db8::1", "fe80::1%eth0", "10.0.0.0/8"] {
            assert!(parsed(target).is_ok(), "{target}: {:?}", parsed(target));
        }
        for target in
            ["", "*", "*.", "a.*", "::::", "a b", "a:80", "[2001:db8::1]", "10.0.0.0/99", "a.example.", "wt://a"]
        {
            let why = parsed(target).unwrap_err();
            assert!(why.starts_with("targets: ") && why.contains(target) && why.contains("write "), "{target}: {why}");
        }
    }
}
