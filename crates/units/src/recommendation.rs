use crate::{Knob, Level, Settings, Side};
use std::net::IpAddr;

/// What a host was in the transfers that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Role {
    /// It sent the payload.
    Sender,
    /// It received the payload.
    Receiver,
}

impl Role {
    /// Its word in flags and text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    /// Whether a knob that acts on this side acts here.
    #[must_use]
    pub fn has(self, side: Side) -> bool {
        match side {
            Side::Sender => self == Self::Sender,
            Side::Receiver => self == Self::Receiver,
            Side::Own => true,
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Sender, Self::Receiver]
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("\"{text}\" is neither sender nor receiver"))
    }
}

/// A setting of a recommendation, and where it is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecommendedSetting {
    /// What.
    pub knob: Knob,
    /// To what.
    pub level: Level,
    /// The target, or `host` where it can't be had for a target alone.
    pub to: String,
}

/// What an experiment recommends for one of the two hosts: the one place from which commands are printed and changes made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recommendation {
    /// What the host was in the transfers that were measured.
    pub role: Role,
    /// What is to be set on it.
    pub here: Vec<RecommendedSetting>,
    /// What acts on the other host.
    pub elsewhere: Vec<(Knob, Level)>,
}

impl Recommendation {
    /// What `settings` mean for the host that had `role`, towards a target as `settings apply --to` takes it. Scope and effect are
    /// those of the trials: what a socket or a route had goes to the target's connections alone.
    ///
    /// The MSS of a trial's socket bounds what it sends, too, and that of a route only what comes in: a sender gets the MTU that leaves
    /// room for it.
    ///
    /// # Source
    /// `tcp_connect_init()` of Linux: `TCP_MAXSEG` bounds the MSS of what is sent (`mss_clamp`) and the one that is announced (`advmss`),
    /// a route's `advmss` the latter alone.
    #[must_use]
    pub fn of(settings: &Settings, role: Role, target: &str) -> Self {
        let mut found = Self { role, here: Vec::new(), elsewhere: Vec::new() };
        let settings = if role == Role::Sender { sender_settings(settings, target) } else { settings.clone() };
        for (knob, level) in settings.iter() {
            if role.has(knob.side()) {
                let to = if knob.is_per_target() { target } else { "host" };
                found.here.push(RecommendedSetting { knob, level: level.clone(), to: to.to_owned() });
            } else {
                found.elsewhere.push((knob, level.clone()));
            }
        }
        found
    }

    /// The one command that makes it hold on the host with the role; `None` if nothing of it is set there, or if some of it acts
    /// on the other host, so that this one alone isn't what was measured.
    #[must_use]
    pub fn command(&self, experiment: &str) -> Option<String> {
        let first = self.here.first().filter(|_| self.elsewhere.is_empty())?;
        if self.here.iter().any(|setting| setting.to != first.to) {
            // Two places in one change, which is confirmed and undone as one.
            return Some(format!("sudo windtunnel settings apply --verdict {experiment}"));
        }
        let pairs: Vec<String> =
            self.here.iter().map(|setting| format!("{}={}", setting.knob, setting.level)).collect();
        Some(format!("sudo windtunnel settings apply {} --to {}", pairs.join(" "), first.to))
    }

    /// The commands that make `settings` hold on the host with `role` towards each of these targets, one change after the other: each
    /// waits until the one before it is confirmed. What is the whole host's is set once.
    #[must_use]
    pub fn commands(settings: &Settings, role: Role, targets: &[String], experiment: &str) -> Vec<String> {
        let mut commands: Vec<String> = Vec::new();
        for target in targets {
            let found = Self::of(settings, role, target);
            let in_two_places = found.here.iter().any(|setting| setting.to != found.here[0].to);
            let to = if in_two_places && targets.len() > 1 { format!(" --to {target}") } else { String::new() };
            let command = found.command(experiment).map(|command| command + &to);
            commands.extend(command.filter(|command| !commands.contains(command)));
        }
        commands
    }

    /// The commands that make it hold where there is no journal with the verdict, one for each place.
    #[must_use]
    pub fn commands_by_place(&self) -> Vec<String> {
        let mut places: Vec<&str> = self.here.iter().map(|setting| setting.to.as_str()).collect();
        places.sort_unstable();
        places.dedup();
        let command = |to: &&str| {
            let there = self.here.iter().filter(|setting| setting.to == *to);
            let pairs: Vec<String> = there.map(|setting| format!("{}={}", setting.knob, setting.level)).collect();
            format!("sudo windtunnel settings apply {} --to {to}", pairs.join(" "))
        };
        places.iter().map(command).collect()
    }

    /// What acts on the other host, in words: `initcwnd=32`.
    #[must_use]
    pub fn elsewhere_text(&self) -> String {
        let pairs: Vec<String> = self.elsewhere.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
        pairs.join(" ")
    }

    /// The role of the other host.
    #[must_use]
    pub fn other_role(&self) -> Role {
        if self.role == Role::Sender { Role::Receiver } else { Role::Sender }
    }
}

/// An MSS as the MTU that leaves room for it without options of TCP, in packets to `target`; the smaller one, if there is one already.
fn sender_settings(settings: &Settings, target: &str) -> Settings {
    let Some(mss) = settings.number(Knob::Mss) else { return settings.clone() };
    let address = target.split('/').next().and_then(|address| address.parse::<IpAddr>().ok());
    let headers = if address.is_some_and(|address| address.to_canonical().is_ipv6()) { 60 } else { 40 };
    let mtu = settings.number(Knob::Mtu).unwrap_or(u64::MAX).min(mss.saturating_add(headers));
    let others = settings.iter().filter(|(knob, _)| *knob != Knob::Mss).map(|(knob, level)| (knob, level.clone()));
    others.collect::<Settings>().with(Knob::Mtu, Level::Number(mtu))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(Knob, Level)]) -> Settings {
        pairs.iter().cloned().collect()
    }

    #[test]
    fn what_sockets_and_routes_had_goes_to_the_target_and_the_rest_to_the_host() {
        let chosen = settings(&[(Knob::Rwin, Level::Number(8_192)), (Knob::Mtu, Level::Number(1_400))]);
        let found = Recommendation::of(&chosen, Role::Receiver, "192.0.2.1");
        let command = found.command("x").unwrap();
        assert_eq!(command, "sudo windtunnel settings apply rwin=8192 mtu=1400 --to 192.0.2.1");
        let both = settings(&[(Knob::Rwin, Level::Number(8_192)), (Knob::Sack, Level::Name("off".into()))]);
        let found = Recommendation::of(&both, Role::Receiver, "192.0.2.1");
        assert_eq!(found.command("x").unwrap(), "sudo windtunnel settings apply --verdict x");
        assert_eq!(found.here[1].to, "host");
    }

    #[test]
    fn the_mss_of_a_sender_is_the_mtu_that_bounds_what_it_sends_and_that_of_a_receiver_stays() {
        let mss = settings(&[(Knob::Mss, Level::Number(1_000))]);
        let command = |chosen: &Settings, role, to: &str| Recommendation::of(chosen, role, to).command("x").unwrap();
        let told = |rest: &str| format!("sudo windtunnel settings apply {rest}");
        for (to, pair) in [
            ("192.0.2.1", "mtu=1040"),
            ("192.0.2.0/24", "mtu=1040"),
            ("2001:db8::1", "mtu=1060"),
            ("::ffff:192.0.2.1", "mtu=1040"),
            ("default", "mtu=1040"),
        ] {
            assert_eq!(command(&mss, Role::Sender, to), told(&format!("{pair} --to {to}")));
            assert_eq!(command(&mss, Role::Receiver, to), told(&format!("mss=1000 --to {to}")));
        }
        let both = |mtu| mss.clone().with(Knob::Mtu, Level::Number(mtu));
        assert_eq!(command(&both(1_400), Role::Sender, "192.0.2.1"), told("mtu=1040 --to 192.0.2.1"));
        assert_eq!(command(&both(900), Role::Sender, "192.0.2.1"), told("mtu=900 --to 192.0.2.1"));
    }

    #[test]
    fn each_of_several_targets_has_a_command_of_its_own_and_the_host_one() {
        let targets = ["192.0.2.1", "192.0.2.2"].map(str::to_owned);
        let commands = |chosen: &Settings| Recommendation::commands(chosen, Role::Receiver, &targets, "x");
        let window = settings(&[(Knob::Rwin, Level::Number(8_192))]);
        let told = |rest: &str| format!("sudo windtunnel settings apply {rest}");
        assert_eq!(commands(&window), [told("rwin=8192 --to 192.0.2.1"), told("rwin=8192 --to 192.0.2.2")]);
        let sack = settings(&[(Knob::Sack, Level::Name("off".into()))]);
        assert_eq!(commands(&sack), [told("sack=off --to host")]);
        let both = commands(&window.overlaid(&sack));
        assert_eq!(both, [told("--verdict x --to 192.0.2.1"), told("--verdict x --to 192.0.2.2")]);
        assert_eq!(commands(&settings(&[(Knob::Initcwnd, Level::Number(32))])), [""; 0]);
    }

    #[test]
    fn what_acts_on_the_other_host_is_no_command_here() {
        let chosen = settings(&[(Knob::Initcwnd, Level::Number(32))]);
        let found = Recommendation::of(&chosen, Role::Receiver, "192.0.2.1");
        assert_eq!((found.command("x"), found.elsewhere_text()), (None, "initcwnd=32".to_owned()));
        let there = Recommendation::of(&chosen, found.other_role(), "198.51.100.0/24");
        assert_eq!(there.command("x").unwrap(), "sudo windtunnel settings apply initcwnd=32 --to 198.51.100.0/24");
    }
}
