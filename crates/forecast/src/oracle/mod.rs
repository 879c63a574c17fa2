//! What the model expects of each setting, before anything is measured: it leaves out what isn't worth a trial, and gives more of
//! the error's share to what promises most.
//!
//! It is no evidence. What is claimed comes from trials alone; weights that are fixed before the first trial move trials, never
//! the probability of a false claim. Nothing is left out that somebody named, nor the current settings, nor a level of the knob
//! whose smallest sufficient level is sought.

use crate::gain::Gain;
use crate::known_error::{KnownError, error_on, taken_error, uncompared_knobs};
use crate::model::{self, is_random, left_out_hops};
use crate::surface::{Question, measured, sample_interval};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use wt_lab::Scenario;
use wt_lab::scenario::{Link, LossBy, QueueBound};
use wt_setup::{Arm, Design};
use wt_sim::{SimTunnel, StackConfig};
use wt_trial::{Amount, Cancel, Direction, PathFacts, Tunnel as _, Workload};
use wt_units::{BitsPerSecond, Bytes, Ratio, Settings};

/// Packets that one run of the model may move.
const MOST_PACKETS: f64 = 60_000.0;
/// Random seeds per setting, for paths with randomness.
const SEEDS: u64 = 5;
/// What is expected to lose less than this is tried all the same, however sure the model is.
const LOSS_TO_LEAVE_OUT: f64 = 0.25;
/// Weights of what is expected to gain more than the model's error, to be alike, and to lose more than that.
const WEIGHTS: [f64; 3] = [2.0, 1.0, 0.5];

/// Queues in front of a real path's narrowest link that are thought possible, in bandwidth-delay products.
const QUEUES: [f64; 2] = [0.5, 2.0];
/// The largest queue that a scenario takes, packets.
const LARGEST_QUEUE: f64 = 1e6;
/// On a real path no expectation is better than this, whatever the model's error on a known one.
const REAL_ERROR: f64 = 0.05;

/// The model of a path, and how wrong it is there.
pub struct Oracle {
    /// One for each way that the path may be, where it isn't known.
    tunnels: Vec<SimTunnel>,
    /// The path, or one of those that it may be.
    scenario: Scenario,
    /// What holds for every trial.
    held: Settings,
    /// The path as the model was told it, where it isn't known.
    about: Option<String>,
}

/// A real path as far as it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPath {
    /// Payload that a transfer moved, or the link's physical limit.
    pub goodput: BitsPerSecond,
    /// Share of probes that were lost.
    pub loss: f64,
    /// Which way it was measured.
    pub direction: Direction,
}

impl MeasuredPath {
    /// The path with a queue of so many products in front of a link that carries just what was seen.
    fn scenario(&self, path: &PathFacts, queue: f64) -> Option<Scenario> {
        let payload = path.pmtu.saturating_sub(52).max(1);
        let rate = BitsPerSecond((self.goodput.get() as f64 * path.pmtu as f64 / payload as f64) as u64);
        let rtt = Duration::from_micros(path.rtt_us);
        let packets = ((rate * rtt).get() as f64 * queue / path.pmtu as f64).clamp(10.0, LARGEST_QUEUE);
        // A transfer in one direction says nothing of the other one's rate.
        let way = |there: Direction| {
            let lost = if there == self.direction { self.loss.clamp(0.0, 0.5) } else { 0.0 };
            wt_lab::scenario::Direction::builder(rate)
                .delay(rtt / 2)
                .queue(QueueBound::Packets(packets as u32))
                .loss(Ratio(lost), LossBy::Random)
        };
        let mtu = Bytes(path.pmtu);
        let link = Link::builder("link", way(Direction::Down), way(Direction::Up)).mtu(mtu);
        let scenario = Scenario::builder("as-measured").title("as measured").source("a pilot").mtu(mtu).link(link);
        scenario.build().ok()
    }
}

/// What is expected of one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpectedArm {
    /// What it is called; only where the model was asked, it isn't kept.
    #[serde(skip)]
    pub label: String,
    /// What is set.
    pub settings: Settings,
    /// Its gain over the current settings, as a share; `None` where the model has no answer.
    #[serde(rename = "expected_gain")]
    pub gain: Option<f64>,
    /// What nine in ten expectations of it keep below, as a share, where that is another than on such paths: the model was never compared
    /// with a kernel with such settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_error: Option<f64>,
    /// How much of the error's share it gets.
    pub weight: f64,
    /// Whether it isn't worth a trial.
    pub left_out: bool,
}

/// What is expected of all settings before the first trial. It is no evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// What nine in ten expectations on such paths keep below, as a share; a guess where there is no region.
    pub known_error: f64,
    /// The part of the world whose paths the model was compared on; empty where there is none.
    pub region: String,
    /// The path as the model was told it, where it isn't known.
    #[serde(rename = "path")]
    pub about: Option<String>,
    /// Each candidate; not the current settings.
    pub arms: Vec<ExpectedArm>,
    /// What hops do to TCP that the model leaves out, a sentence each: where there is any, no setting is left out or weighed by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_modelled: Vec<String>,
}

/// What two views of a path agree on, within what either may be.
fn agreed(a: Gain, b: Gain) -> Gain {
    let share = a.share.zip(b.share).map(|(a, b)| nearer_to_nothing(a, b));
    let range = a.range.zip(b.range).map(|((a, b), (low, high))| (a.min(low), b.max(high)));
    Gain { share, works_instead: false, range }
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
    pub fn new(scenario: &Scenario, stack: StackConfig) -> Option<Self> {
        let tunnel = model::tunnel(scenario, stack).ok()?;
        Some(Self { tunnels: vec![tunnel], scenario: scenario.clone(), held: Settings::new(), about: None })
    }

    /// The same, where these settings hold for every trial.
    pub fn holding(self, held: &Settings) -> Self {
        let tunnels = self.tunnels.into_iter().map(|tunnel| tunnel.holding(held.clone())).collect();
        Self { tunnels, held: held.clone(), ..self }
    }

    /// A model of a real path, as far as it was measured; its queue is a guess, and what depends on the guess isn't expected.
    pub fn of_real_path(seen: &MeasuredPath, path: &PathFacts, stack: &StackConfig) -> Option<Self> {
        let scenarios: Vec<Scenario> = QUEUES.iter().map(|queue| seen.scenario(path, *queue)).collect::<Option<_>>()?;
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
        let scenario = scenarios.into_iter().next()?;
        Some(Self { tunnels: tunnels.ok()?, scenario, held: Settings::new(), about: Some(about) })
    }

    /// What nine in ten expectations of a workload keep below, or are taken to.
    fn taken_error(&self, known: Option<&KnownError>, workload: &Workload) -> f64 {
        let least = if self.about.is_some() { REAL_ERROR } else { 0.01 };
        taken_error(known, workload).max(least)
    }

    /// The gain of each setting of a design over the first; without a share where the model has no answer.
    fn gains(&self, design: &Design, workload: &Workload, path: &PathFacts) -> Option<Vec<Gain>> {
        let views: Vec<Vec<Gain>> =
            self.tunnels.iter().map(|tunnel| self.gains_on(tunnel, design, workload, path)).collect::<Option<_>>()?;
        let agreed = |arm: usize| views.iter().map(|view| view[arm]).reduce(agreed);
        (0..design.arms.len()).map(agreed).collect()
    }

    fn gains_on(
        &self,
        tunnel: &SimTunnel,
        design: &Design,
        workload: &Workload,
        path: &PathFacts,
    ) -> Option<Vec<Gain>> {
        let known = tunnel.path(workload.direction()).physical_goodput_bps;
        let path = PathFacts { physical_goodput_bps: path.physical_goodput_bps.or(known), ..path.clone() };
        let workload = shorter(workload, &path)?;
        let runnable = |arm: &Arm| tunnel.check(&arm.settings).is_ok();
        if !design.arms.first().is_some_and(runnable) {
            return None;
        }
        let random = is_random(&self.scenario.path(), &workload);
        let arms: Vec<_> = design.arms.iter().filter(|arm| runnable(arm)).cloned().collect();
        let question = Question {
            tunnel,
            arms: &arms,
            workload: workload.clone(),
            deadline: Duration::from_secs(3_600),
            seeds: if random { SEEDS } else { 1 },
            seed: 1,
            sample_every: sample_interval(path.rtt_us) * 4,
            samples: false,
        };
        let answers = question.answer(&Cancel::new()).ok()?;
        let measured = measured(&workload);
        let current = answers.first()?;
        current.figure?;
        // Of what has no figure nothing is expected.
        let mut told = answers.iter().map(|answer| match answer.figure {
            Some(_) => Gain::of(answer, current, &measured, random),
            None => Gain::NONE,
        });
        let gain = |arm: &Arm| if runnable(arm) { told.next() } else { None };
        Some(design.arms.iter().map(gain).map(|gain| gain.unwrap_or(Gain::NONE)).collect())
    }

    /// Leaves out what isn't worth a trial, and says what is expected of the rest. `asked` tells what somebody named.
    pub fn choose(
        &self,
        design: &mut Design,
        workload: &Workload,
        path: &PathFacts,
        asked: &dyn Fn(&Arm) -> bool,
    ) -> Option<Expectation> {
        let gains = self.gains(design, workload, path)?;
        // What holds for all of them decides with which error the model knows any.
        let is_compared = |settings: &Settings| uncompared_knobs(settings).is_empty();
        let all_compared =
            is_compared(&self.held) && design.arms.first().is_some_and(|first| is_compared(&first.settings));
        let known = error_on(&self.scenario, workload).filter(|_| all_compared);
        let (error, guess) = (self.taken_error(known, workload), self.taken_error(None, workload));
        let not_modelled = left_out_hops(&self.scenario);
        let heeded = not_modelled.is_empty();
        let region = known.map_or_else(String::new, |known| known.region.clone());
        let sought: Vec<usize> = design.plateau.iter().flat_map(|(_, levels)| levels.clone()).collect();
        let expected = |(number, arm): (usize, &Arm)| {
            let gain = gains[number];
            let is_guess = known.is_some() && gain.share.is_some() && !is_compared(&arm.settings);
            let own = is_guess.then_some(guess);
            let error = own.unwrap_or(error);
            let weight = match gain {
                _ if !heeded => WEIGHTS[1],
                gain if gain.exceeds(error) => WEIGHTS[0],
                gain if gain.falls_below(error) => WEIGHTS[2],
                _ => WEIGHTS[1],
            };
            let hopeless = gain.falls_below(error.max(LOSS_TO_LEAVE_OUT));
            let gain = gain.share;
            let left_out = heeded && hopeless && !sought.contains(&number) && !asked(arm);
            ExpectedArm {
                label: arm.label.clone(),
                settings: arm.settings.clone(),
                gain,
                known_error: own,
                weight,
                left_out,
            }
        };
        let mut arms: Vec<ExpectedArm> = design.arms.iter().enumerate().skip(1).map(expected).collect();
        if arms.iter().all(|arm| arm.left_out) {
            // With nothing left to compare there would be no experiment.
            arms.iter_mut().for_each(|arm| arm.left_out = false);
        }
        for (arm, expected) in design.arms.iter_mut().skip(1).zip(&arms) {
            if let Some(gain) = expected.gain.filter(|_| heeded) {
                arm.why += &format!("; {}", expected.words(gain, error, &region));
            }
        }
        remove(design, &arms);
        Some(Expectation { known_error: error, region, about: self.about.clone(), arms, not_modelled })
    }
}

impl ExpectedArm {
    /// "the model expects +3.1 %, known error 2.0 %"; `error` and `region` are those of the path.
    fn words(&self, gain: f64, error: f64, region: &str) -> String {
        match self.known_error {
            Some(own) => words(gain, own, ""),
            None => words(gain, error, region),
        }
    }
}

/// "the model expects +3.1 %, known error 2.0 %".
fn words(gain: f64, error: f64, region: &str) -> String {
    let known = if region.is_empty() { "without a known error there, taken as" } else { "known error" };
    format!("the model expects {} %, {known} {:.1} %", wt_units::change(gain * 100.0, 1), error * 100.0)
}

/// Takes what was left out from the design, and counts the rest anew. `arms` are its candidates.
fn remove(design: &mut Design, arms: &[ExpectedArm]) {
    let is_kept = |number: usize| number == 0 || !arms[number - 1].left_out;
    let kept: Vec<usize> = (0..design.arms.len()).filter(|number| is_kept(*number)).collect();
    let place = |number: usize| kept.iter().position(|kept| *kept == number);
    if let Some((_, levels)) = &mut design.plateau {
        *levels = levels.iter().filter_map(|number| place(*number)).collect();
    }
    let mut number = 0;
    design.arms.retain(|_| {
        number += 1;
        is_kept(number - 1)
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

impl Expectation {
    /// The weight of each candidate that was kept, the current settings not counted.
    #[must_use]
    pub fn weights(&self) -> Vec<f64> {
        self.arms.iter().filter(|arm| !arm.left_out).map(|arm| arm.weight).collect()
    }

    /// What to tell people before the first trial.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let gone = self.arms.iter().filter(|arm| arm.left_out).filter_map(|arm| {
            Some(format!(
                "left out: {} ({}); name it with --levels to try it",
                arm.label,
                arm.words(arm.gain?, self.known_error, &self.region)
            ))
        });
        let best = self.arms.iter().filter(|arm| arm.weight > 1.0).filter_map(|arm| {
            Some(format!(
                "{}: {}; it needs less evidence, and the others more",
                arm.label,
                arm.words(arm.gain?, self.known_error, &self.region)
            ))
        });
        let told: Vec<String> = self.not_modelled_line().into_iter().chain(gone).chain(best).collect();
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

    /// Why what the model expects has no say here, where it hasn't.
    fn not_modelled_line(&self) -> Option<String> {
        let told = self.not_modelled.join(" ");
        (!told.is_empty()).then(|| format!("{told} What it expects has no say: all settings have the same chance"))
    }

    /// For the journal and the report.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

#[cfg(test)]
mod tests;
