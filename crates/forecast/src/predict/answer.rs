use super::HELD;
use crate::gain::Gain;
use crate::known_error::{KnownError, error_on, taken_error, uncompared_knobs};
use crate::model::{changes_with_time, left_out_hops};
use crate::stack::StackSettings;
use crate::surface::{SettingForecast, measured};
use serde::Serialize;
use utoipa::ToSchema;
use wt_lab::Scenario;
use wt_report::TrialFigure;
use wt_setup::Design;
use wt_trial::{Direction, PathFacts, SampleColumns, Workload};
use wt_units::{Bytes, Knob, Level, Settings};

/// No smaller gain is worth a measurement.
const LEAST_GAIN: f64 = 0.01;

/// What the model says of the settings of a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PredictAnswer {
    /// 1.
    pub schema_version: u32,
    /// `sim`.
    pub tunnel: &'static str,
    /// The path's name.
    pub path: String,
    /// What the path is, in words.
    #[serde(skip)]
    pub title: String,
    /// Which way the payload went.
    pub direction: Direction,
    /// What was done.
    pub workload: Workload,
    /// What is compared.
    pub measured: TrialFigure,
    /// Payload of the workload, bytes; nothing where it goes by time.
    pub bytes: Option<u64>,
    /// Time of the workload, µs; nothing where it goes by size.
    pub time_us: Option<u64>,
    /// Random seeds per setting.
    pub seeds: u64,
    /// Whether anything is left to chance; then one seed says little of what another would.
    pub random: bool,
    /// Whether the path changes with time, as a trace does; each run meets it from its first second on.
    pub changes_with_time: bool,
    /// What is known of the path.
    pub path_facts: PathFacts,
    /// What the current settings are where those of this host were asked for; otherwise they are the defaults of Linux 6.18, which
    /// `why` of the first arm names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub this_host: Option<StackSettings>,
    /// Each setting, the current one first.
    pub arms: Vec<PredictedArm>,
    /// What is worth measuring, the most promising settings first.
    pub candidates: Vec<Settings>,
    /// The model's error on such paths, if it is known: nothing where it was never compared with a kernel on such a path, with
    /// several flows at once, or with any of the settings that are compared here.
    pub model_error: Option<KnownError>,
    /// Whether the model was compared with a kernel on such a path and in such a workload.
    #[serde(skip)]
    pub knows_path: bool,
    /// What hops do to TCP that the model leaves out, a sentence each: where there is any, its answer says little of the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What a gain must exceed besides chance to be worth measuring, as a share: the known error on nine in ten of such paths, or
    /// what it is taken as; at least 1 %.
    pub least_gain: f64,
}

/// What the model says of one setting: medians over all seeds.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PredictedArm {
    /// What is set.
    pub settings: Settings,
    /// What it sets with which the model was never compared with a kernel.
    #[serde(skip)]
    pub uncompared: Vec<Knob>,
    /// What its gain must exceed besides chance, as a share, where that is more than the answer's `least_gain`: the model was compared
    /// with a kernel on such paths, but not with such settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_gain: Option<f64>,
    /// What it is called in tables.
    #[serde(skip)]
    pub label: String,
    /// Why it was tried.
    pub why: String,
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// One in twenty seeds had less.
    pub goodput_p5_bps: f64,
    /// One in twenty seeds had more.
    pub goodput_p95_bps: f64,
    /// What is compared, in its unit; nothing where most runs weren't whole.
    pub figure: Option<f64>,
    /// From the request to the last byte, µs; nothing if not all arrived in time.
    pub completion_us: Option<u64>,
    /// The mean of the smoothed RTT over the smallest one, less one of these, µs.
    pub queueing_delay_us: f64,
    /// Retransmitted segments, of all with payload.
    pub retransmitted_share: f64,
    /// Time in which the sender waited for room in its send buffer, of all in which it had something to send.
    #[serde(skip)]
    pub buffer_limited: f64,
    /// Seeds in which nothing arrived.
    pub failures: usize,
    /// Seeds in which the model stopped early, for want of time: figures are of what was done until then.
    pub cut_short: usize,
    /// The gain over the current settings, as a share; more is better. Nothing for the current settings themselves, and where
    /// there is nothing to compare.
    pub gain: Option<f64>,
    /// Whether it gets done what the current settings don't, which no number says.
    pub works_instead: bool,
    /// Whether it works instead, or the gain is more than the model's error on nine in ten of such paths, and than the spread
    /// between seeds explains.
    pub worth_measuring: bool,
    /// The sender over time under the first seed, if that was asked for.
    pub samples: Option<SampleColumns>,
}

impl PredictAnswer {
    /// What was computed, with what is known of the model's error.
    pub(super) fn of(
        scenario: &Scenario,
        workload: Workload,
        (seeds, random): (u64, bool),
        design: &Design,
        forecasts: Vec<SettingForecast>,
    ) -> Self {
        let direction = workload.direction();
        let (path_facts, measured) = (scenario.facts(direction), measured(&workload));
        let uncompared = |forecast: &SettingForecast| uncompared_knobs(&design.arms[forecast.arm].settings);
        // What is compared with the current settings, by whether the model was compared with a kernel under it.
        let others = forecasts.get(1..).unwrap_or_default();
        let is_known = others.is_empty() || others.iter().any(|forecast| uncompared(forecast).is_empty());
        let path_error = error_on(scenario, &workload);
        let model_error = path_error.filter(|_| is_known);
        let least = |known: Option<&KnownError>| taken_error(known, &workload).max(LEAST_GAIN);
        let (least_gain, guess) = (least(model_error), least(None));
        let gain = |forecast: &SettingForecast| match forecasts.first() {
            Some(current) if forecast.arm > 0 => Gain::of(forecast, current, &measured, random),
            _ => Gain::NONE,
        };
        let gains: Vec<Gain> = forecasts.iter().map(gain).collect();
        let arms: Vec<PredictedArm> = forecasts
            .into_iter()
            .zip(gains)
            .map(|(forecast, gain)| {
                let uncompared = uncompared(&forecast);
                let own = (!uncompared.is_empty() && guess > least_gain).then_some(guess);
                let is_worth = gain.exceeds(own.unwrap_or(least_gain));
                PredictedArm { uncompared, least_gain: own, ..PredictedArm::of(design, forecast, gain, is_worth) }
            })
            .collect();
        let mut candidates: Vec<&PredictedArm> = arms.iter().filter(|arm| arm.worth_measuring).collect();
        // What works instead has no gain that could be higher.
        let order = |arm: &PredictedArm| (arm.gain.unwrap_or(f64::INFINITY), arm.goodput_bps);
        candidates.sort_by(|a, b| {
            let ((a, fast), (b, faster)) = (order(a), order(b));
            b.total_cmp(&a).then(faster.total_cmp(&fast))
        });
        Self {
            schema_version: 1,
            tunnel: "sim",
            path: scenario.name.clone(),
            title: scenario.title.clone(),
            direction,
            bytes: workload.size().map(Bytes::get),
            time_us: workload.time().map(|time| time.as_micros() as u64),
            workload,
            measured,
            seeds,
            random,
            changes_with_time: changes_with_time(&scenario.path()),
            path_facts,
            this_host: None,
            candidates: candidates.into_iter().map(|arm| arm.settings.clone()).collect(),
            arms,
            model_error: model_error.cloned(),
            knows_path: path_error.is_some(),
            left_out: left_out_hops(scenario),
            least_gain,
        }
    }
}

impl PredictAnswer {
    /// The knobs with which the model was never compared with a kernel, though it was on such paths.
    #[must_use]
    pub fn uncompared(&self) -> Vec<Knob> {
        let mut knobs: Vec<Knob> = self.arms.iter().flat_map(|arm| arm.uncompared.iter().copied()).collect();
        knobs.sort();
        knobs.dedup();
        if self.knows_path { knobs } else { Vec::new() }
    }

    /// For what share of its time the sender waits for its send buffer, where that holds the transfer with the current settings
    /// and no other size of it was tried.
    #[must_use]
    pub fn untried_buffer(&self) -> Option<f64> {
        let held = self.arms.first().map(|arm| arm.buffer_limited).filter(|share| *share >= HELD)?;
        self.arms.iter().all(|arm| arm.settings.get(Knob::Sndbuf).is_none()).then_some(held)
    }
}

impl PredictedArm {
    fn of(design: &Design, forecast: SettingForecast, gain: Gain, worth_measuring: bool) -> Self {
        let arm = &design.arms[forecast.arm];
        Self {
            settings: arm.settings.clone(),
            uncompared: Vec::new(),
            least_gain: None,
            label: arm.label.clone(),
            why: arm.why.clone(),
            goodput_bps: forecast.goodput_bps,
            goodput_p5_bps: forecast.range_bps.0,
            goodput_p95_bps: forecast.range_bps.1,
            figure: forecast.figure,
            completion_us: forecast.completion.map(|time| time.as_micros() as u64),
            queueing_delay_us: forecast.queueing_us,
            retransmitted_share: forecast.retransmitted,
            buffer_limited: forecast.buffer_limited,
            failures: forecast.failures,
            cut_short: forecast.cut_short,
            gain: gain.share,
            works_instead: gain.works_instead,
            worth_measuring,
            samples: (!forecast.samples.is_empty()).then(|| SampleColumns::of(&forecast.samples)),
        }
    }

    /// What it varies: the knob and its level; nothing for the current settings.
    #[must_use]
    pub fn varied(&self) -> Option<(Knob, &Level)> {
        self.settings.iter().next()
    }
}
