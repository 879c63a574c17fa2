//! How a change of settings goes through a fleet: canaries first, then wave after wave, and back everywhere as soon as one host isn't
//! well. What is to be done follows from how the hosts stand alone, so whoever drives it may die and another one goes on.
//!
//! A host applies the change as one that its guard takes back. It then says so over a new connection, is watched, and only when it
//! asks again over yet another new connection is it told to confirm. Who can't be reached is never confirmed, and its guard, on the
//! host itself, needs nobody to take the change back.
//!
//! What this leaves out: whether hosts are faster with it. That is what the verdict is for, and `windtunnel settings check`.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_fleet::{RolloutHost, RolloutOrder as Order, RolloutPhase as Phase};

/// How patient a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WavePace {
    /// A host is watched for so long after it applied the change, before it is told to confirm.
    #[serde(with = "wt_units::serde_duration")]
    pub watch: Duration,
    /// A host's guard takes the change back unless it is confirmed in so long.
    #[serde(with = "wt_units::serde_duration")]
    pub within: Duration,
    /// How long a host may take to ask for what it is to do.
    #[serde(with = "wt_units::serde_duration")]
    pub patience: Duration,
}

/// What every host of a change is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RolloutSpec {
    /// `KEY=VALUE`.
    pub(crate) settings: Vec<String>,
    /// Where: `host`, `default`, an address or a network.
    pub(crate) to: String,
    /// Servers, `HOST:PORT`, which must take a new connection from each host that has it.
    pub(crate) reach: Vec<String>,
    /// How patient it is.
    pub(crate) pace: WavePace,
}

impl Default for WavePace {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self { watch: minutes(10), within: minutes(15), patience: minutes(15) }
    }
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaveStep {
    /// Look again later.
    Wait,
    /// Order something of these hosts.
    Order(Order, Vec<String>),
    /// Take it back everywhere, and why.
    Stop(String),
    /// Each host has it that may.
    Done,
    /// Nobody has it any more; of these hosts that isn't known, since they don't ask: they are told when they do.
    Undone {
        /// Hosts that don't ask.
        silent: Vec<String>,
    },
}

/// The next step of a change that goes forward.
pub(crate) fn forward(hosts: &[RolloutHost], pace: WavePace) -> WaveStep {
    if let Some(why) = hosts.iter().find_map(|host| trouble(host, pace)) {
        return WaveStep::Stop(why);
    }
    let is_settled = |host: &&RolloutHost| matches!(host.phase, Phase::Confirmed | Phase::Refused);
    let Some(wave) = hosts.iter().filter(|host| !is_settled(host)).map(|host| host.wave).min() else {
        let any = hosts.iter().any(|host| host.phase == Phase::Confirmed);
        return if any { WaveStep::Done } else { WaveStep::Stop("no host's policy allows it".to_owned()) };
    };
    let first = hosts.iter().map(|host| host.wave).min().unwrap_or(wave);
    if wave > first && hosts.iter().filter(|host| host.wave == first).all(|host| host.phase == Phase::Refused) {
        return WaveStep::Stop("no canary's policy allows it, so nothing is known of it".to_owned());
    }
    let named = |of: &dyn Fn(&RolloutHost) -> bool| -> Vec<String> {
        hosts.iter().filter(|host| host.wave == wave && of(host)).map(|host| host.agent.clone()).collect()
    };
    let waits = |host: &RolloutHost| host.phase == Phase::Untouched && host.ordered == Order::Nothing;
    let is_watched =
        |host: &RolloutHost| host.phase == Phase::Applied && host.ordered == Order::Apply && host.since >= pace.watch;
    for (order, agents) in [(Order::Apply, named(&waits)), (Order::Confirm, named(&is_watched))] {
        if !agents.is_empty() {
            return WaveStep::Order(order, agents);
        }
    }
    WaveStep::Wait
}

/// What is wrong with a host, if something is.
fn trouble(host: &RolloutHost, pace: WavePace) -> Option<String> {
    let RolloutHost { agent, reason, .. } = host;
    let seconds = |time: Duration| format!("{:.0} s", time.as_secs_f64());
    match host.phase {
        Phase::Failed => Some(format!("{agent}: {reason}")),
        Phase::Reverted => Some(format!("{agent}: its guard took it back: {reason}")),
        Phase::Undone => Some(format!("{agent}: it was taken back there")),
        Phase::Untouched if host.ordered == Order::Apply && host.asked > pace.patience => {
            Some(format!("{agent}: it didn't ask for {}", seconds(host.asked)))
        }
        // Its guard couldn't take it back, or is at it.
        Phase::Applied if !reason.is_empty() => Some(format!("{agent}: {reason}")),
        // The guard's own time is over as well, however long the word of it took.
        Phase::Applying if host.since > pace.within + pace.patience => {
            Some(format!("{agent}: it hasn't said for {} what came of it", seconds(host.since)))
        }
        Phase::Applied if host.since > pace.within => {
            Some(format!("{agent}: it didn't ask in time to confirm, so its guard takes it back"))
        }
        _ => None,
    }
}

/// The next step of a change that is taken back.
pub(crate) fn back(hosts: &[RolloutHost], pace: WavePace) -> WaveStep {
    let may_have_it = |host: &RolloutHost| matches!(host.phase, Phase::Applying | Phase::Applied | Phase::Confirmed);
    let named = |of: &dyn Fn(&RolloutHost) -> bool| -> Vec<String> {
        hosts.iter().filter(|host| of(host)).map(|host| host.agent.clone()).collect()
    };
    let never = named(&|host| host.phase == Phase::Untouched && host.ordered != Order::Nothing);
    if !never.is_empty() {
        return WaveStep::Order(Order::Nothing, never);
    }
    let not_yet = named(&|host| may_have_it(host) && host.ordered != Order::Undo);
    if !not_yet.is_empty() {
        return WaveStep::Order(Order::Undo, not_yet);
    }
    if hosts.iter().any(|host| may_have_it(host) && host.asked <= pace.patience) {
        return WaveStep::Wait;
    }
    WaveStep::Undone { silent: named(&may_have_it) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: WavePace = WavePace {
        watch: Duration::from_secs(60),
        within: Duration::from_secs(180),
        patience: Duration::from_secs(300),
    };

    /// A fleet of four, one canary and two waves, as its server sees it, and what each host does when it is asked.
    struct World {
        hosts: Vec<RolloutHost>,
        stopped: Option<String>,
    }

    impl World {
        fn new() -> Self {
            let host = |(agent, wave): (&str, u32)| RolloutHost {
                agent: agent.to_owned(),
                wave,
                ordered: Order::Nothing,
                asked: Duration::ZERO,
                phase: Phase::Untouched,
                since: Duration::ZERO,
                reason: String::new(),
            };
            let hosts = [("a", 1), ("b", 2), ("c", 2), ("d", 3)].map(host).into();
            Self { hosts, stopped: None }
        }

        /// As the owner's program does it, until it waits or ends.
        fn drive(&mut self) -> WaveStep {
            loop {
                let step = if self.stopped.is_some() { back(&self.hosts, PACE) } else { forward(&self.hosts, PACE) };
                match step {
                    WaveStep::Order(order, agents) => {
                        assert!(!agents.is_empty());
                        for host in self.hosts.iter_mut().filter(|host| agents.contains(&host.agent)) {
                            assert_ne!(host.ordered, order, "an order is given once");
                            (host.ordered, host.asked) = (order, Duration::ZERO);
                        }
                    }
                    WaveStep::Stop(why) => self.stopped = Some(why),
                    end => return end,
                }
            }
        }

        fn pass(&mut self, seconds: u64) {
            for host in &mut self.hosts {
                host.asked += Duration::from_secs(seconds);
                host.since += Duration::from_secs(seconds);
            }
        }

        fn says(&mut self, agent: &str, phase: Phase) {
            let host = self.hosts.iter_mut().find(|host| host.agent == agent).unwrap();
            (host.phase, host.since) = (phase, Duration::ZERO);
            let is_well = matches!(phase, Phase::Applying | Phase::Applied | Phase::Confirmed);
            host.reason = if is_well { String::new() } else { "why".to_owned() };
        }

        fn ordered(&self) -> Vec<Order> {
            self.hosts.iter().map(|host| host.ordered).collect()
        }

        fn phases(&self) -> Vec<Phase> {
            self.hosts.iter().map(|host| host.phase).collect()
        }

        /// A host applies it, is watched and confirms.
        fn goes_well(&mut self, agents: &[&str]) {
            for agent in agents {
                self.says(agent, Phase::Applied);
            }
            assert_eq!(self.drive(), WaveStep::Wait);
            self.pass(60);
            self.drive();
            for agent in agents {
                let host = self.hosts.iter().find(|host| host.agent == *agent).unwrap();
                assert_eq!(host.ordered, Order::Confirm, "{agent}");
                self.says(agent, Phase::Confirmed);
            }
        }
    }

    #[test]
    fn each_wave_begins_when_the_one_before_is_confirmed_and_nobody_confirms_before_it_was_watched() {
        let mut world = World::new();
        assert_eq!(world.drive(), WaveStep::Wait);
        assert_eq!(world.ordered(), [Order::Apply, Order::Nothing, Order::Nothing, Order::Nothing]);
        world.says("a", Phase::Applying);
        world.pass(59);
        world.says("a", Phase::Applied);
        world.pass(59);
        assert_eq!(world.drive(), WaveStep::Wait);
        assert_eq!(world.hosts[0].ordered, Order::Apply, "not watched for long enough");
        world.pass(1);
        assert_eq!(world.drive(), WaveStep::Wait);
        assert_eq!(world.ordered(), [Order::Confirm, Order::Nothing, Order::Nothing, Order::Nothing]);
        world.says("a", Phase::Confirmed);
        assert_eq!(world.drive(), WaveStep::Wait);
        assert_eq!(world.ordered(), [Order::Confirm, Order::Apply, Order::Apply, Order::Nothing]);
        // One of a wave that is done doesn't begin the next one.
        world.goes_well(&["b"]);
        world.drive();
        assert_eq!(world.hosts[3].ordered, Order::Nothing);
        world.goes_well(&["c"]);
        world.drive();
        world.goes_well(&["d"]);
        assert_eq!(world.drive(), WaveStep::Done);
        assert_eq!(world.phases(), [Phase::Confirmed; 4]);
    }

    #[test]
    fn whatever_becomes_of_a_canary_that_isnt_confirmed_nobody_else_is_ever_touched() {
        type Ends<'a> = (&'a str, &'a dyn Fn(&mut World), &'a str);
        let ends: [Ends<'_>; 7] = [
            ("it can't", &|world| world.says("a", Phase::Failed), "a: why"),
            ("its guard fires", &|world| world.says("a", Phase::Reverted), "guard"),
            (
                "its guard can't",
                &|world| {
                    world.says("a", Phase::Applied);
                    world.hosts[0].reason = "revert-failed".to_owned();
                },
                "a: revert-failed",
            ),
            ("somebody there undoes it", &|world| world.says("a", Phase::Undone), "taken back there"),
            ("it is away", &|world| world.pass(301), "didn't ask"),
            (
                "it dies while it applies it",
                &|world| {
                    world.says("a", Phase::Applying);
                    world.pass(481);
                },
                "hasn't said",
            ),
            (
                "it is cut off by it",
                &|world| {
                    world.says("a", Phase::Applied);
                    world.pass(100);
                    world.drive();
                    assert_eq!(world.hosts[0].ordered, Order::Confirm);
                    world.pass(81);
                },
                "didn't ask in time",
            ),
        ];
        for (name, end, told) in ends {
            let mut world = World::new();
            world.drive();
            end(&mut world);
            let mut last = world.drive();
            assert!(world.stopped.as_ref().is_some_and(|why| why.contains(told)), "{name}: {:?}", world.stopped);
            assert_eq!(world.ordered()[1..], [Order::Nothing; 3], "{name}");
            assert_eq!(world.phases()[1..], [Phase::Untouched; 3], "{name}");
            if last == WaveStep::Wait {
                assert_eq!(world.hosts[0].ordered, Order::Undo, "{name}");
                world.says("a", Phase::Undone);
                last = world.drive();
            }
            assert_eq!(last, WaveStep::Undone { silent: vec![] }, "{name}");
        }
    }

    #[test]
    fn what_goes_wrong_in_a_later_wave_takes_it_back_everywhere() {
        let mut world = World::new();
        world.drive();
        world.goes_well(&["a"]);
        world.drive();
        world.says("b", Phase::Applied);
        world.says("c", Phase::Reverted);
        assert_eq!(world.drive(), WaveStep::Wait);
        assert_eq!(world.ordered(), [Order::Undo, Order::Undo, Order::Apply, Order::Nothing]);
        world.says("b", Phase::Undone);
        assert_eq!(world.drive(), WaveStep::Wait, "a still has it");
        world.says("a", Phase::Undone);
        assert_eq!(world.drive(), WaveStep::Undone { silent: vec![] });
    }

    #[test]
    fn who_doesnt_hear_that_it_is_taken_back_is_named_and_stays_ordered_to() {
        let mut world = World::new();
        world.drive();
        world.goes_well(&["a"]);
        world.drive();
        world.says("b", Phase::Failed);
        // c took the order in the moment in which it was called off.
        world.drive();
        assert_eq!(world.hosts[2].ordered, Order::Nothing);
        world.says("c", Phase::Applying);
        assert_eq!(world.drive(), WaveStep::Wait);
        assert_eq!(world.hosts[2].ordered, Order::Undo);
        world.pass(301);
        assert_eq!(world.drive(), WaveStep::Undone { silent: vec!["a".to_owned(), "c".to_owned()] });
        assert_eq!((world.hosts[0].ordered, world.hosts[2].ordered), (Order::Undo, Order::Undo));
        // Whoever goes on later ends as it should.
        world.says("a", Phase::Undone);
        world.says("c", Phase::Undone);
        assert_eq!(world.drive(), WaveStep::Undone { silent: vec![] });
    }

    #[test]
    fn who_may_not_is_left_out_but_a_canary_must_have_tried() {
        let mut world = World::new();
        world.drive();
        world.goes_well(&["a"]);
        world.drive();
        world.says("b", Phase::Refused);
        world.goes_well(&["c"]);
        world.drive();
        world.says("d", Phase::Refused);
        assert_eq!(world.drive(), WaveStep::Done);
        let mut world = World::new();
        world.drive();
        world.says("a", Phase::Refused);
        assert_eq!(world.drive(), WaveStep::Undone { silent: vec![] });
        assert!(world.stopped.unwrap().contains("no canary's policy"));
        let mut alone = World { hosts: World::new().hosts[..1].to_vec(), stopped: None };
        alone.drive();
        alone.says("a", Phase::Refused);
        alone.drive();
        assert!(alone.stopped.unwrap().contains("no host's policy"));
    }

    #[test]
    fn a_change_that_is_undone_on_purpose_is_taken_back_wherever_it_is() {
        let mut world = World::new();
        world.drive();
        world.goes_well(&["a"]);
        world.drive();
        world.says("b", Phase::Applied);
        world.stopped = Some("asked for".to_owned());
        assert_eq!(world.drive(), WaveStep::Wait);
        assert_eq!(world.ordered(), [Order::Undo, Order::Undo, Order::Nothing, Order::Nothing]);
        world.says("a", Phase::Undone);
        world.says("b", Phase::Undone);
        assert_eq!(world.drive(), WaveStep::Undone { silent: vec![] });
        // Of what never began, nothing is left to do.
        assert_eq!(back(&World::new().hosts, PACE), WaveStep::Undone { silent: vec![] });
    }
}
