//! What the model expects of each setting, before anything is measured: it leaves out what isn't worth a trial, and gives more of
//! the error's share to what promises most.
//!
//! It is no evidence. What is claimed comes from trials alone; weights that are fixed before the first trial move trials, never
//! the probability of a false claim. Nothing is left out that somebody named, nor the current settings, nor a level of the knob
//! whose smallest sufficient level is sought.

use super::design::Design;
use crate::commands::model;
use crate::commands::predict::known::{self, Region};
use crate::commands::predict::surface::{Question, measured};
use crate::commands::predict::{fine, has_chance};
use serde_json::json;
use std::time::Duration;
use wt_lab::Scenario;
use wt_sim::{SimTunnel, StackConfig};
use wt_trial::{Amount, Cancel, Direction, PathFacts, Tunnel as _, Workload};
use wt_units::{BitsPerSecond, Settings};

/// Packets that one run of the model may move.
const MOST_PACKETS: f64 = 60_000.0;
/// Fates of chance that each setting meets, where there is chance.
const SEEDS: u64 = 5;
/// What is expected to lose less than this is tried all the same, however sure the model is.
const LOSS_TO_LEAVE_OUT: f64 = 0.25;
/// Weights of what is expected to gain more than the model's error, to be alike, and to lose more than that.
const WEIGHTS: [f64; 3] = [2.0, 1.0, 0.5];

/// Queues in front of a real path's narrowest link that are thought possible, in bandwidth-delay products.
const QUEUES: [f64; 2] = [0.5, 2.0];
/// On a real path no expectation is better than this, whatever the model's error on a known one.
const REAL_ERROR: f64 = 0.05;

/// The model of a path, and how wrong it is there.
pub(super) struct Oracle {
    /// One for each way that the path may be, where it isn't known.
    tunnels: Vec<SimTunnel>,
    error: Option<Region>,
    chance: bool,
    /// The path as the model was told it, where it isn't known.
    about: Option<String>,
}

/// A real path as far as it was measured.
pub(super) struct Seen {
    /// Payload that a transfer moved, or the link's physical limit.
    pub(super) goodput: BitsPerSecond,
    /// Share of probes that were lost.
    pub(super) loss: f64,
    pub(super) direction: Direction,
}

impl Seen {
    /// The path with a queue of so many products in front of a link that carries just what was seen.
    fn scenario(&self, path: &PathFacts, queue: f64) -> Option<Scenario> {
        let payload = path.pmtu.saturating_sub(52).max(1);
        let rate = BitsPerSecond((self.goodput.get() as f64 * path.pmtu as f64 / payload as f64) as u64);
        let rtt = Duration::from_micros(path.rtt_us);
        let packets = ((rate * rtt).get() as f64 * queue / path.pmtu as f64).max(10.0) as u64;
        // A transfer in one direction says nothing of the other one's rate.
        let lossy = format!(", loss = \"{}%\"", self.loss.clamp(0.0, 0.5) * 100.0);
        let loss = |there: Direction| if there == self.direction && self.loss > 0.0 { lossy.as_str() } else { "" };
        let line = |direction| {
            format!(
                "{{ rate = \"{}kbit\", delay = \"{}us\", queue_packets = {packets}{} }}",
                rate.get() as f64 / 1e3,
                path.rtt_us as f64 / 2.0,
                loss(direction)
            )
        };
        let text = format!(
            "title = \"as measured\"\nsource = \"a pilot\"\n[client]\nmtu = {mtu}\n[server]\nmtu = {mtu}\n[[link]]\n\
             name = \"link\"\nmtu = {mtu}\nframing = \"raw\"\ndown = {}\nup = {}\n",
            line(Direction::Down),
            line(Direction::Up),
            mtu = path.pmtu
        );
        Scenario::parse("as-measured", &text).ok()
    }
}

/// What is expected of one setting.
#[derive(Debug, Clone, PartialEq)]
struct One {
    label: String,
    settings: Settings,
    gain: Option<f64>,
    weight: f64,
    left_out: bool,
}

/// What is expected of all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    arms: Vec<One>,
    known_error: f64,
    region: String,
    /// The path as the model was told it, where it isn't known.
    about: Option<String>,
}

/// Of two expectations the more careful one; none where they disagree.
fn nearer_to_nothing(a: f64, b: f64) -> f64 {
    if a.signum() != b.signum() {
        0.0
    } else if a.abs() < b.abs() {
        a
    } else {
        b
    }
}

impl Oracle {
    /// A model with ends as the kernel's are; none where it can't be made: then nothing is expected.
    pub(super) fn new(scenario: &Scenario, stack: StackConfig) -> Option<Self> {
        let facts = scenario.facts(Direction::Down);
        let tunnel = model::tunnel(scenario, stack).ok()?;
        let (error, chance) = (known::error_on(scenario, &facts), has_chance(&scenario.path()));
        Some(Self { tunnels: vec![tunnel], error, chance, about: None })
    }

    /// The same, where these settings hold for every trial.
    pub(super) fn holding(self, held: &Settings) -> Self {
        let tunnels = self.tunnels.into_iter().map(|tunnel| tunnel.holding(held.clone())).collect();
        Self { tunnels, ..self }
    }

    /// A model of a real path, as far as it was measured; its queue is a guess, and what depends on the guess isn't expected.
    pub(super) fn of_real_path(seen: &Seen, path: &PathFacts, stack: &StackConfig) -> Option<Self> {
        let scenarios: Vec<Scenario> = QUEUES.iter().map(|queue| seen.scenario(path, *queue)).collect::<Option<_>>()?;
        let error = known::error_on(scenarios.first()?, path);
        let tunnels: Result<_, _> = scenarios.iter().map(|one| model::tunnel(one, stack.clone())).collect();
        let about = format!(
            "what the model is asked about: {} of payload, RTT {:.1} ms, {:.1} % of packets lost; the queue, which nobody knows, \
             from {} to {} bandwidth-delay products",
            seen.goodput.human(),
            path.rtt_us as f64 / 1e3,
            seen.loss * 100.0,
            QUEUES[0],
            QUEUES[1]
        );
        Some(Self { tunnels: tunnels.ok()?, error, chance: seen.loss > 0.0, about: Some(about) })
    }

    /// What nine in ten expectations keep below.
    fn known_error(&self) -> f64 {
        let least = if self.about.is_some() { REAL_ERROR } else { 0.01 };
        self.error.as_ref().map_or(0.1, |region| region.p90).max(least)
    }

    /// The gain of each setting of a design over the first; `None` where the model has no answer.
    fn gains(&self, design: &Design, workload: &Workload, path: &PathFacts) -> Option<Vec<Option<f64>>> {
        let views: Vec<Vec<Option<f64>>> =
            self.tunnels.iter().map(|tunnel| self.gains_on(tunnel, design, workload, path)).collect::<Option<_>>()?;
        let agreed = |arm: usize| views.iter().map(|view| view[arm]).reduce(|a, b| Some(nearer_to_nothing(a?, b?)));
        Some((0..design.arms.len()).map(|arm| agreed(arm).flatten()).collect())
    }

    fn gains_on(
        &self,
        tunnel: &SimTunnel,
        design: &Design,
        workload: &Workload,
        path: &PathFacts,
    ) -> Option<Vec<Option<f64>>> {
        let known = tunnel.path(workload.direction()).physical_goodput_bps;
        let path = PathFacts { physical_goodput_bps: path.physical_goodput_bps.or(known), ..path.clone() };
        let workload = shorter(workload, &path)?;
        let runnable = |arm: &super::design::Arm| tunnel.check(&arm.settings).is_ok();
        if !design.arms.first().is_some_and(runnable) {
            return None;
        }
        let arms: Vec<_> = design.arms.iter().filter(|arm| runnable(arm)).cloned().collect();
        let question = Question {
            tunnel,
            arms: &arms,
            workload: workload.clone(),
            deadline: Duration::from_secs(3_600),
            seeds: if self.chance { SEEDS } else { 1 },
            seed: 1,
            sample_every: fine(path.rtt_us) * 4,
            samples: false,
        };
        let answers = question.answer(&Cancel::new()).ok()?;
        let smaller_is_better = measured(&workload).better == "smaller";
        let current = answers.first()?.figure?;
        let mut told = answers.iter().map(|answer| {
            let ratio = if smaller_is_better { current / answer.figure? } else { answer.figure? / current };
            (ratio.is_finite() && ratio > 0.0).then_some(ratio - 1.0)
        });
        Some(design.arms.iter().map(|arm| if runnable(arm) { told.next().flatten() } else { None }).collect())
    }

    /// Leaves out what isn't worth a trial, and says what is expected of the rest. `asked` tells what somebody named.
    pub(super) fn choose(
        &self,
        design: &mut Design,
        workload: &Workload,
        path: &PathFacts,
        asked: &dyn Fn(&super::design::Arm) -> bool,
    ) -> Option<Expected> {
        let gains = self.gains(design, workload, path)?;
        let error = self.known_error();
        let sought: Vec<usize> = design.plateau.iter().flat_map(|(_, levels)| levels.clone()).collect();
        let one = |(number, arm): (usize, &super::design::Arm)| {
            let gain = gains[number];
            let weight = match gain {
                Some(gain) if gain > error => WEIGHTS[0],
                Some(gain) if gain < -error => WEIGHTS[2],
                _ => WEIGHTS[1],
            };
            let hopeless = gain.is_some_and(|gain| gain < -(error.max(LOSS_TO_LEAVE_OUT)));
            let left_out = number > 0 && hopeless && !sought.contains(&number) && !asked(arm);
            One { label: arm.label.clone(), settings: arm.settings.clone(), gain, weight, left_out }
        };
        let mut arms: Vec<One> = design.arms.iter().enumerate().map(one).collect();
        if arms.iter().skip(1).all(|arm| arm.left_out) {
            // With nothing left to compare there would be no experiment.
            arms.iter_mut().for_each(|arm| arm.left_out = false);
        }
        for (number, arm) in design.arms.iter_mut().enumerate().skip(1) {
            if let Some(gain) = arms[number].gain {
                arm.why += &format!("; {}", words(gain, error));
            }
        }
        remove(design, &arms);
        let region = self.error.as_ref().map_or_else(String::new, |region| region.region.clone());
        Some(Expected { arms, known_error: error, region, about: self.about.clone() })
    }
}

/// "the model expects +3.1 %, known error 2.0 %".
fn words(gain: f64, error: f64) -> String {
    format!("the model expects {:+.1} %, known error {:.1} %", gain * 100.0, error * 100.0)
}

/// Takes what was left out from the design, and counts the rest anew.
fn remove(design: &mut Design, arms: &[One]) {
    let kept: Vec<usize> = (0..arms.len()).filter(|number| !arms[*number].left_out).collect();
    let place = |number: usize| kept.iter().position(|kept| *kept == number);
    if let Some((_, levels)) = &mut design.plateau {
        *levels = levels.iter().filter_map(|number| place(*number)).collect();
    }
    let mut number = 0;
    design.arms.retain(|_| {
        number += 1;
        !arms[number - 1].left_out
    });
}

/// A workload that the model runs in moments: a transfer by time is as good after fewer packets, and not before some round
/// trips. `None` where even that is too much.
fn shorter(workload: &Workload, path: &PathFacts) -> Option<Workload> {
    let rate = BitsPerSecond(path.physical_goodput_bps?).get() as f64;
    let most = Duration::from_secs_f64((MOST_PACKETS * 12_000.0 / rate.max(1.0)).min(3_600.0));
    let least = Duration::from_micros(path.rtt_us.saturating_mul(25));
    let mut shorter = workload.clone();
    match &mut shorter {
        Workload::Bulk { amount: Amount::Time(time), .. } | Workload::Soak { time, .. } | Workload::Duplex { time } => {
            cut(time, least, most).then_some(shorter)
        }
        Workload::Competing { time, rivals, .. } => (cut(time, least, most) && *rivals <= 20).then_some(shorter),
        other => {
            let packets = other.size().map_or(0.0, |size| size.get() as f64 / 1_400.0);
            (packets <= MOST_PACKETS).then_some(shorter)
        }
    }
}

/// Cuts a time that is too long; false if what is left of it would say nothing.
fn cut(time: &mut Duration, least: Duration, most: Duration) -> bool {
    let cut = *time > most;
    *time = (*time).min(most);
    !cut || *time >= least
}

impl Expected {
    /// The weight of each candidate that was kept, the current settings not counted.
    pub(super) fn weights(&self) -> Vec<f64> {
        self.arms.iter().skip(1).filter(|arm| !arm.left_out).map(|arm| arm.weight).collect()
    }

    /// What to tell people before the first trial.
    pub(super) fn lines(&self) -> Vec<String> {
        let gone = self.arms.iter().filter(|arm| arm.left_out).filter_map(|arm| {
            Some(format!(
                "left out: {} ({}); name it with --levels to try it",
                arm.label,
                words(arm.gain?, self.known_error)
            ))
        });
        let best = self.arms.iter().skip(1).filter(|arm| arm.weight > 1.0).filter_map(|arm| {
            Some(format!(
                "{}: {}; it needs less evidence, and the others more",
                arm.label,
                words(arm.gain?, self.known_error)
            ))
        });
        let told: Vec<String> = gone.chain(best).collect();
        let nothing = || {
            let error = self.known_error * 100.0;
            format!(
                "the model expects no setting to gain more than its own error of {error:.0} %; all have the same chance"
            )
        };
        match &self.about {
            Some(about) => {
                let told = if told.is_empty() { vec![nothing()] } else { told };
                [vec![format!("{about}; it is no evidence")], told].concat()
            }
            None => told,
        }
    }

    /// For the journal and the report.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let arm = |arm: &One| {
            json!({
                "settings": arm.settings, "expected_gain": arm.gain, "weight": arm.weight, "left_out": arm.left_out,
            })
        };
        json!({
            "known_error": self.known_error,
            "region": self.region,
            "path": self.about,
            "arms": self.arms.iter().skip(1).map(arm).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::{Known, Levels, design};
    use super::*;
    use wt_lab::presets;
    use wt_units::Knob;

    /// What is compared on a far, lossy path by a host with this congestion control, and what is expected of it.
    fn chosen(cc: &str, given: &[&str]) -> (Design, Expected) {
        let scenario = presets::load("freebsd-scp").unwrap();
        let stack = StackConfig { congestion_control: cc.to_owned(), ..StackConfig::default() };
        let oracle = Oracle::new(&scenario, stack).unwrap();
        let (path, current) = (scenario.facts(Direction::Down), oracle.tunnels[0].current());
        let controls = ["reno", "cubic", "bbr", "some_other"].map(str::to_owned);
        let known =
            Known { current: &current, path: &path, congestion_controls: &controls, mss: 1448, best_mtu: &|_| None };
        let given: Vec<Levels> = given.iter().map(|text| text.parse().unwrap()).collect();
        let mut design = design(&[Knob::Rwin, Knob::Cc], &given, &known).unwrap();
        let time = Duration::from_secs(40);
        let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Time(time) };
        let named = |arm: &super::super::design::Arm| {
            arm.settings.iter().any(|(knob, _)| given.iter().any(|levels| levels.knob == knob))
        };
        let expected = oracle.choose(&mut design, &workload, &path, &named).unwrap();
        (design, expected)
    }

    fn one<'a>(expected: &'a Expected, settings: &str) -> &'a One {
        expected.arms.iter().find(|arm| arm.settings.to_string() == settings).unwrap()
    }

    #[test]
    fn what_bears_loss_weighs_more_and_what_the_model_lacks_is_tried_all_the_same() {
        let (design, expected) = chosen("cubic", &[]);
        let bbr = one(&expected, "cc=bbr");
        assert!(bbr.gain.unwrap() > 0.3 && bbr.weight > 1.0 && !bbr.left_out, "{bbr:?}");
        let other = one(&expected, "cc=some_other");
        assert_eq!((other.gain, other.weight, other.left_out), (None, 1.0, false));
        assert_eq!(expected.weights().len(), design.arms.len() - 1);
        assert!(
            expected.lines().iter().any(|line| line.contains("cc=bbr: the model expects +")),
            "{:?}",
            expected.lines()
        );
        let arm = design.arms.iter().find(|arm| arm.label == "cc=bbr").unwrap();
        assert!(arm.why.contains("known error"), "{}", arm.why);
    }

    #[test]
    fn what_is_hopeless_is_left_out_unless_somebody_named_it() {
        let (design, expected) = chosen("bbr", &[]);
        let left_out: Vec<&str> =
            expected.arms.iter().filter(|arm| arm.left_out).map(|arm| arm.label.as_str()).collect();
        assert_eq!(left_out, ["cc=reno", "cc=cubic"], "{expected:?}");
        assert!(design.arms[0].settings.iter().next().is_none(), "the current settings stay first");
        let windows = design.arms.iter().filter(|arm| arm.settings.get(Knob::Rwin).is_some()).count();
        let (knob, levels) = design.plateau.clone().unwrap();
        assert_eq!((knob, levels.len()), (Knob::Rwin, windows + 1), "every level of the search stays");
        assert!(levels.iter().all(|level| *level < design.arms.len()));
        assert_eq!(expected.to_json()["arms"].as_array().unwrap().len(), expected.arms.len() - 1);
        let (named, expected) = chosen("bbr", &["cc=reno,cubic"]);
        assert!(expected.arms.iter().all(|arm| !arm.left_out), "{expected:?}");
        assert!(named.arms.iter().any(|arm| arm.label == "cc=reno"));
    }

    #[test]
    fn a_model_that_would_take_too_long_is_not_asked() {
        let path = |bps| PathFacts { rtt_us: 100_000, physical_goodput_bps: Some(bps), ..PathFacts::default() };
        let bulk =
            |secs| Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(secs)) };
        assert_eq!(shorter(&bulk(10), &path(8_000_000)), Some(bulk(10)));
        assert_eq!(shorter(&bulk(10), &path(10_000_000_000)), None, "so few packets aren't two round trips");
        assert!(shorter(&bulk(3_600), &path(100_000_000)).unwrap().time().unwrap() < Duration::from_secs(10));
    }

    #[test]
    fn on_a_real_path_only_what_holds_for_every_queue_is_expected() {
        let path = PathFacts { rtt_us: 40_000, pmtu: 1500, bdp_bytes: 100_000, physical_goodput_bps: None };
        let seen = Seen { goodput: BitsPerSecond(20_000_000), loss: 0.0, direction: Direction::Down };
        let oracle = Oracle::of_real_path(&seen, &path, &StackConfig::default()).unwrap();
        let current = oracle.tunnels[0].current();
        let controls = ["cubic".to_owned()];
        let known =
            Known { current: &current, path: &path, congestion_controls: &controls, mss: 1448, best_mtu: &|_| None };
        let given: Vec<Levels> = vec!["rwin=8x,400x".parse().unwrap()];
        let mut design = design(&[], &given, &known).unwrap();
        let time = Duration::from_secs(5);
        let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Time(time) };
        let expected = oracle.choose(&mut design, &workload, &path, &|_| false).unwrap();
        // Eight segments in 40 ms are 2.3 Mbit/s, whatever the queue.
        let small = expected.arms.iter().find(|arm| arm.settings.number(Knob::Rwin) == Some(8 * 1448)).unwrap();
        assert!((small.gain.unwrap() + 0.88).abs() < 0.03, "{small:?}");
        let large = expected.arms.iter().find(|arm| arm.settings.number(Knob::Rwin) == Some(400 * 1448)).unwrap();
        assert!(large.gain.unwrap().abs() < 0.05 && !large.left_out, "{large:?}");
        assert!(expected.known_error >= REAL_ERROR && expected.lines()[0].contains("no evidence"));
        assert_eq!((nearer_to_nothing(0.3, -0.1), nearer_to_nothing(-0.3, -0.1)), (0.0, -0.1));
    }
}
