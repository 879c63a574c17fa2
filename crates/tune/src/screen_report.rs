//! Report of a screening experiment: an object beside that of `tune`.

use super::history::not_assessable;
use super::observed::{TrialFigures, observation};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wt_experiment::factorial::{EffectAssessment, Run, Screen, ScreenAssessment};
use wt_experiment::{TrialEnd, VerdictKind};
use wt_journal::{Factor, Filter, Journal, State, StoredExperiment, WithSamples};
use wt_problem::Problem;
use wt_report::{Axis, Chart, RetypedOptions, Rule, Series, TrialFigure, TuneReport};
use wt_trial::{Phase, Scale, Status, TrialRecord};
use wt_units::{Level, Settings};

/// What a run of a round asks for. A level that the system chooses isn't asked for.
pub(crate) fn settings_of(factors: &[Factor], run: &[bool]) -> Settings {
    let levels = factors.iter().zip(run).map(|(factor, high)| (factor.knob, factor.level(*high)));
    let asked = levels.filter(|(_, level)| **level != Level::Auto);
    asked.fold(Settings::new(), |settings, (knob, level)| settings.with(knob, level.clone()))
}

/// A screen with what was found.
pub(crate) struct ScreenFindings {
    pub(crate) factors: Vec<Factor>,
    pub(crate) found: ScreenAssessment,
    /// What is compared.
    measured: TrialFigure,
    /// Of each combination of levels the sum of the figures' logs, and of how many trials.
    means: BTreeMap<Run, (f64, u32)>,
}

impl ScreenFindings {
    /// Puts together what was measured. Trials of which the settings are none of the screen's are left out.
    ///
    /// # Errors
    /// A [`Problem`] if the trials are none of a screen.
    pub(crate) fn of(factors: Vec<Factor>, alpha: f64, records: &[TrialRecord]) -> Result<Self, Problem> {
        let damaged = |error: &dyn std::fmt::Display| not_assessable("the screen", error);
        let mut screen = Screen::new(factors.len(), alpha).map_err(|error| damaged(&error))?;
        let mut rounds: BTreeMap<u32, BTreeMap<u32, (Run, f64)>> = BTreeMap::new();
        let mut means: BTreeMap<Run, (f64, u32)> = BTreeMap::new();
        let measured = TrialFigure::of(&records.first().into_iter().collect::<Vec<_>>());
        for record in records.iter().filter(|record| record.spec.phase == Phase::Round) {
            let run: Run = factors.iter().map(|f| record.spec.settings.get(f.knob) == Some(&f.high)).collect();
            let run = if factors.iter().any(|f| f.high == Level::Auto) { run_with_auto(&factors, record) } else { run };
            let round = rounds.entry(record.spec.round).or_default();
            let outcome = &record.outcome;
            let seen = observation(record.spec.arm, &TrialFigures::in_record(record));
            if seen.ended == TrialEnd::Void || outcome.status == Status::Running {
                // It may be that an earlier trial in this place was void as well; a later one takes its place.
                round.remove(&record.spec.order);
                continue;
            }
            // What is told of goodput is what was judged: of a trial that was cut off, over the time that it had.
            let figure = match measured.scale {
                Scale::Goodput => Some(seen.y.exp() * 8.0),
                scale => outcome.figure(scale),
            };
            if let Some(figure) = figure.filter(|figure| seen.ended != TrialEnd::Failed && *figure > 0.0) {
                let (sum, count) = means.entry(run.clone()).or_default();
                *sum += figure.ln();
                *count += 1;
            }
            round.insert(record.spec.order, (run, seen.y));
        }
        for round in rounds.into_values() {
            let round: Vec<(Run, f64)> = round.into_values().collect();
            screen.record(&round).map_err(|error| damaged(&error))?;
        }
        Ok(Self { factors, found: screen.assessment(), measured, means })
    }

    /// Reads it from the journal; `None` if the experiment is no screen.
    ///
    /// # Errors
    /// A [`Problem`] that says what is wrong with it.
    pub(crate) fn read(journal: &dyn Journal, stored: &StoredExperiment) -> Result<Option<Self>, Problem> {
        let Some(plan) = stored.config.screen() else { return Ok(None) };
        let factors = plan
            .factors
            .clone()
            .ok_or_else(|| Problem::internal(format!("the knobs of the screen {} can't be read", stored.id)))?;
        let records =
            journal.trials(&stored.id, WithSamples::No).map_err(|error| wt_setup::journal::problem(&error))?;
        Self::of(factors, stored.config.tune().alpha(), &records).map(Some)
    }

    fn interaction(&self) -> Option<&EffectAssessment> {
        self.found.effects.iter().find(|effect| effect.knobs.len() == 2)
    }

    /// The levels that are shown to be better; knobs of which nothing is shown stay as they are.
    pub(crate) fn chosen(&self) -> Settings {
        let shown = |effect: &EffectAssessment| effect.claimed.is_some() || effect.slower;
        if self.interaction().is_some_and(shown) {
            return settings_of(&self.factors, &self.best_of_four());
        }
        let main = self.found.effects.iter().filter(|effect| effect.knobs.len() == 1 && shown(effect));
        main.fold(Settings::new(), |settings, effect| {
            let factor = &self.factors[effect.knobs[0]];
            match factor.level(effect.claimed.is_some()) {
                Level::Auto => settings,
                level => settings.with(factor.knob, level.clone()),
            }
        })
    }

    /// The levels that are shown to be worse than the others of their knobs.
    fn worse(&self) -> Vec<String> {
        let shown = |effect: &&EffectAssessment| effect.claimed.is_some() || effect.slower;
        let main = self.found.effects.iter().filter(|effect| effect.knobs.len() == 1).filter(shown);
        let level = |effect: &EffectAssessment| {
            let factor = &self.factors[effect.knobs[0]];
            format!("{}={}", factor.knob, factor.level(effect.claimed.is_none()))
        };
        main.map(level).collect()
    }

    /// Where two knobs don't act by themselves: the best of the four combinations, by the estimates.
    fn best_of_four(&self) -> Run {
        let value = |run: &Run| -> f64 {
            let signed = self.found.effects.iter().map(|effect| {
                let minus = effect.knobs.iter().filter(|knob| !run[**knob]).count();
                effect.estimate.unwrap_or(0.0) * if minus.is_multiple_of(2) { 0.5 } else { -0.5 }
            });
            signed.sum()
        };
        let runs = [[false, false], [false, true], [true, false], [true, true]].map(Vec::from);
        runs.into_iter().max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or_default()
    }

    /// What an effect is called.
    fn name(&self, effect: &EffectAssessment) -> String {
        match effect.knobs.as_slice() {
            [knob] => {
                let Factor { knob, low, high } = &self.factors[*knob];
                format!("{knob}: {high} against {low}")
            }
            knobs => {
                let names: Vec<&str> = knobs.iter().map(|knob| self.factors[*knob].knob.name()).collect();
                format!("{} together", names.join(" and "))
            }
        }
    }

    /// One line for each effect.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |effect: &EffectAssessment| {
            let shown = match (effect.claimed, effect.slower, effect.knobs.len()) {
                (Some(_), _, 1) => "shown to be faster",
                (None, true, 1) => "shown to be slower",
                (Some(_), ..) | (_, true, _) => "shown not to act by themselves",
                _ => "nothing shown",
            };
            let times = |log: f64| format!("×{:.3}", log.exp());
            let interval = match (effect.lower.map(times), effect.upper.map(times)) {
                (Some(low), Some(high)) => format!(" ({low} to {high})"),
                (Some(low), None) => format!(" (at least {low})"),
                (None, Some(high)) => format!(" (at most {high})"),
                (None, None) => ", too few rounds for an interval".to_owned(),
            };
            format!(
                "{}: {}{interval}; evidence {:.1} : 1, {:.0} : 1 needed; {shown}.",
                self.name(effect),
                effect.estimate.map_or_else(|| "no estimate".to_owned(), times),
                effect.evidence,
                effect.needed
            )
        };
        self.found.effects.iter().map(line).collect()
    }

    /// The screen's part of the object.
    pub(crate) fn json(&self) -> Value {
        let figures = |effect: &EffectAssessment| {
            json!({
                "effect_ratio": effect.estimate.map(f64::exp), "at_least": effect.lower.map(f64::exp),
                "at_most": effect.upper.map(f64::exp), "standard_error": effect.standard_error,
                "evidence": effect.evidence, "needed": effect.needed, "claimed": effect.claimed.is_some(),
                "slower": effect.slower,
            })
        };
        let factor = |effect: &EffectAssessment| {
            let mut object = figures(effect);
            let Factor { knob, low, high } = &self.factors[effect.knobs[0]];
            object["knob"] = json!(knob.name());
            object["low"] = json!(low);
            object["high"] = json!(high);
            object
        };
        let main = self.found.effects.iter().filter(|effect| effect.knobs.len() == 1);
        let factors: Vec<Value> = main.map(factor).collect();
        json!({"factors": factors, "interaction": self.interaction().map(figures)})
    }

    /// Main effects with their simultaneous intervals, the evidence, and with two knobs the four means.
    pub(crate) fn charts(&self) -> Vec<(&'static str, Chart)> {
        let effects = &self.found.effects;
        let row = |(place, effect): (usize, &EffectAssessment)| {
            let low = effect.lower.map_or(0.0, f64::exp);
            Some((place as f64, low, effect.estimate?.exp(), effect.upper.map_or(f64::INFINITY, f64::exp)))
        };
        let rows: Vec<_> = effects.iter().enumerate().filter_map(row).collect();
        let ratio = match self.measured.better {
            "smaller" => format!("ratio of one over the {}; larger is better", self.measured.name),
            _ => format!("ratio of {}", self.measured.name),
        };
        let main = Chart {
            title: "Effects".into(),
            subtitle: "Intervals hold together (95 %), however often one looks".into(),
            y: Axis::log2(ratio, ""),
            categories: effects.iter().map(|effect| self.name(effect)).collect(),
            series: vec![Series::intervals("", &rows)],
            rules: vec![Rule::horizontal(1.0, "no effect")],
            ..Chart::default()
        };
        let line = |effect: &EffectAssessment| {
            let points = effect.series.iter().enumerate().map(|(i, e)| ((i + 1) as f64, e.clamp(0.01, 1e9)));
            Series::line(self.name(effect), std::iter::once((0.0, 1.0)).chain(points).collect())
        };
        let needed = effects.first().map_or(1.0, |effect| effect.needed);
        let evidence = Chart {
            title: "Evidence for “the second level is faster” after each round".into(),
            x: Axis::linear("round", ""),
            y: Axis::log10("evidence to one", ""),
            series: effects.iter().take(6).map(line).collect(),
            rules: vec![Rule::horizontal(needed, format!("a claim needs {needed:.0} : 1"))],
            ..Chart::default()
        };
        [Some(("effects", main)), Some(("evidence", evidence)), self.four_means().map(|chart| ("interaction", chart))]
            .into_iter()
            .flatten()
            .collect()
    }

    fn four_means(&self) -> Option<Chart> {
        let [first, second] = self.factors.as_slice() else { return None };
        let mean = |a: bool, b: bool| self.means.get(&vec![a, b]).map(|(sum, count)| (sum / f64::from(*count)).exp());
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let most = all.into_iter().filter_map(|(a, b)| mean(a, b)).fold(0.0, f64::max);
        let (name, unit, times) = self.measured.axis(most);
        let line = |b: bool| {
            let points = [false, true].into_iter().filter_map(|a| Some((f64::from(u8::from(a)), mean(a, b)? * times)));
            Series::line(format!("{} {}", second.knob, second.level(b)), points.collect())
        };
        Some(Chart {
            title: format!("{} by {} and {}", self.measured.title(), first.knob, second.knob),
            subtitle: "geometric means; parallel lines: no interaction".into(),
            x: Axis::named(first.knob.name(), vec![first.low.to_string(), first.high.to_string()]),
            y: Axis::linear(name, unit),
            series: vec![line(false), line(true)],
            ..Chart::default()
        })
    }
}

/// The run of a trial where one of the levels is what the system chooses: asked for by not being asked for.
fn run_with_auto(factors: &[Factor], record: &TrialRecord) -> Run {
    let level = |factor: &Factor| record.spec.settings.get(factor.knob).cloned().unwrap_or(Level::Auto);
    factors.iter().map(|factor| level(factor) == factor.high).collect()
}

/// The experiment that tried what came out of a screen, if there is one.
///
/// # Errors
/// A [`Problem`] if the journal can't be read.
pub(crate) fn confirmation(
    journal: &dyn Journal,
    screen: &StoredExperiment,
) -> Result<Option<StoredExperiment>, Problem> {
    let filter = Filter {
        target: Some(screen.target.clone()),
        since_unix_us: Some(screen.started_unix_us),
        ..Filter::default()
    };
    let later = journal.list(&filter).map_err(|error| wt_setup::journal::problem(&error))?;
    // It follows the screen at once: the oldest first.
    for summary in later.iter().rev().filter(|summary| summary.id != screen.id) {
        let stored = journal.load(&summary.id).map_err(|error| wt_setup::journal::problem(&error))?;
        if stored.config.tune().confirms.as_ref() == Some(&screen.id) {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}

/// A screen with its confirmation, ready to be told.
pub struct ScreenReport {
    pub(crate) stored: StoredExperiment,
    pub(crate) screened: ScreenFindings,
    /// The chosen combination against the current settings.
    pub(crate) confirmation: Option<TuneReport>,
    /// Whether the user ended it.
    pub(crate) stopped: bool,
    /// Whether somebody still measures it.
    pub(crate) is_running: bool,
    /// What tries what came out against the current settings, if that is to be done yet, and it has just been run.
    pub(crate) confirm_by: Option<String>,
}

impl ScreenReport {
    /// What kind of answer it is: that of the confirmation, where there is one.
    pub fn kind(&self) -> VerdictKind {
        match &self.confirmation {
            Some(report) => report.verdict.kind,
            None if self.stopped || !self.is_current() => VerdictKind::Stopped,
            None => VerdictKind::NoDifference,
        }
    }

    /// What to type next, and where it is kept; in commands with these options.
    #[must_use]
    pub fn next(&mut self, options: &RetypedOptions) -> Vec<String> {
        let to_do = match (&mut self.confirmation, &self.confirm_by) {
            (Some(report), _) => {
                report.retype(options);
                Some(report.verdict.answer.lines[2].clone())
            }
            (None, Some(command)) => Some(format!("Do: {command}{}", options.to_measure())),
            (None, None) => None,
        };
        let id = &self.stored.id;
        to_do.into_iter().chain([options.in_text(&format!("Kept: windtunnel report {id}"), id)]).collect()
    }

    /// Whether what came out is what the host has already.
    pub(crate) fn is_current(&self) -> bool {
        self.screened.chosen().iter().all(|(knob, level)| self.stored.current.get(knob) == Some(level))
    }

    /// The first sentences.
    fn headline(&self) -> String {
        if !self.is_running {
            return self.outcome();
        }
        if self.screened.chosen().is_empty() && self.screened.worse().is_empty() {
            return "The screen still runs: no knob's effect is shown so far.".to_owned();
        }
        format!("The screen still runs. So far: {}", self.outcome())
    }

    /// What came out, in a sentence.
    fn outcome(&self) -> String {
        let chosen = self.screened.chosen();
        let worse = self.screened.worse();
        if chosen.is_empty() && worse.is_empty() && self.stopped {
            return "Stopped before any knob's effect was shown.".to_owned();
        }
        if chosen.is_empty() && worse.is_empty() {
            return "No knob's effect is shown; keep what you have.".to_owned();
        }
        if self.confirmation.is_none() && self.is_current() {
            let verb = if worse.len() > 1 { "are" } else { "is" };
            return format!("Keep what you have: {} {verb} shown to be worse.", worse.join(" and "));
        }
        match &self.confirmation {
            Some(report) if report.verdict.kind == VerdictKind::Faster => {
                format!("{chosen} is faster than the current settings, confirmed by rounds of its own.")
            }
            Some(report) if report.state.is_some() => {
                format!(
                    "{chosen} came out of the screen; the rounds that try it against the current settings still run."
                )
            }
            Some(_) => {
                format!("{chosen} came out of the screen, and isn't shown to be faster than the current settings.")
            }
            None => format!("{chosen} came out of the screen; it isn't tried against the current settings yet."),
        }
    }

    /// What a person reads.
    pub fn text(&self) -> String {
        let found = &self.screened.found;
        let mut lines = vec![self.headline(), String::new()];
        lines.extend(self.screened.lines());
        let discarded = if found.discarded_rounds > 0 {
            format!(", {} rounds more that don't count", found.discarded_rounds)
        } else {
            String::new()
        };
        lines.push(format!(
            "{} rounds, {} trials{discarded}. Each knob by itself, averaged over the others.",
            found.rounds, found.trials
        ));
        if let Some(report) = &self.confirmation {
            lines.extend([String::new(), format!("Confirmation ({}):", report.id), report.verdict.text.clone()]);
        }
        lines.join("\n")
    }

    /// The object of `tune --screen --json`.
    pub fn json(&self) -> Value {
        let found = &self.screened.found;
        let settings = match &self.confirmation {
            Some(report) => json!(report.verdict.settings),
            None => json!(self.stored.current),
        };
        let mut object = json!({
            "schema_version": 1, "id": self.stored.id, "target": self.stored.target, "tunnel": self.stored.tunnel,
            "path": self.stored.path, "current": self.stored.current, "rounds": found.rounds, "trials": found.trials,
            "screen": self.screened.json(), "chosen": self.screened.chosen(), "confirmation": self.confirmation,
            "verdict": self.verdict_with(settings),
        });
        if self.is_running {
            object["state"] = json!(State::Running.name());
        }
        object
    }

    /// What the journal keeps.
    pub fn verdict(&self) -> Value {
        let chosen = self.screened.chosen();
        // It is kept before what came out is tried.
        let open = chosen.is_empty() || self.confirmation.is_none() && self.is_current();
        let headline = if open { self.outcome() } else { format!("{chosen} came out of the screen.") };
        let mut verdict = self.verdict_with(json!(chosen));
        verdict["headline"] = json!(headline);
        verdict
    }

    fn verdict_with(&self, settings: Value) -> Value {
        let confirmed = self.confirmation.as_ref().is_some_and(|report| report.verdict.kind == VerdictKind::Faster);
        json!({"kind": self.kind(), "settings": settings, "confirmed": confirmed, "text": self.text()})
    }

    /// A self-contained page.
    pub fn html(&self) -> String {
        let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let figures: String = self
            .screened
            .charts()
            .iter()
            .map(|(_, chart)| format!("<figure>{}</figure>\n", chart.to_svg(734, 330)))
            .collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, \
             initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n<style>body{{font:16px/1.5 \
             system-ui,sans-serif;max-width:760px;margin:2em auto;padding:0 1em}}figure{{margin:1em \
             0}}svg{{max-width:100%;height:auto}}pre{{white-space:pre-wrap;font:inherit}}</style>\n</head>\n<body>\n<h1>{0}</h1>\n\
             <pre>{1}</pre>\n{figures}<footer><p>{2} · {3}</p></footer>\n</body>\n</html>\n",
            escape(&self.headline()),
            escape(&self.text()),
            escape(&self.stored.id),
            escape(&self.stored.target)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wt_trial::{Amount, Direction, Page, TrialOutcome, TrialSpec, Workload};
    use wt_units::Knob;

    /// A round of two knobs, each trial of so many seconds.
    fn round(workload: &Workload, seconds: [f64; 4]) -> ScreenFindings {
        let named =
            |knob, low: &str, high: &str| Factor { knob, low: Level::Name(low.into()), high: Level::Name(high.into()) };
        let factors = vec![named(Knob::Cc, "reno", "cubic"), named(Knob::Timestamps, "on", "off")];
        let trial = |(order, seconds): (u32, f64)| {
            let run = [order / 2 == 1, order % 2 == 1];
            let spec = TrialSpec {
                experiment: "e".into(),
                phase: Phase::Round,
                round: 1,
                order: order + 1,
                arm: 0,
                settings: settings_of(&factors, &run),
                workload: workload.clone(),
                deadline: Duration::from_secs(60),
                seed: 1,
            };
            let outcome = TrialOutcome {
                bytes: 1_000_000,
                ..TrialOutcome::empty(Status::Completed, Duration::from_secs_f64(seconds), "")
            };
            TrialRecord { id: 0, spec, started_unix_us: 0, outcome }
        };
        let records: Vec<TrialRecord> = (0..).zip(seconds).map(trial).collect();
        ScreenFindings::of(factors, 0.05, &records).expect("a whole round")
    }

    #[test]
    fn charts_of_a_screen_speak_of_what_its_trials_measured() {
        let page = round(&Workload::Page { page: Page::built_in() }, [0.4, 0.3, 0.2, 0.1]);
        let charts = page.charts();
        let four = &charts.iter().find(|(name, _)| *name == "interaction").expect("two knobs").1;
        assert_eq!((four.y.label.as_str(), four.y.unit.as_str()), ("load time", "s"));
        assert_eq!(four.title, "Load time by cc and timestamps");
        assert_eq!(four.x.names, ["reno", "cubic"]);
        assert!((four.series[0].points[1].1 - 0.2).abs() < 1e-9, "{:?}", four.series);
        assert!(charts[0].1.y.label.contains("load time; larger is better"), "{}", charts[0].1.y.label);
        assert!(charts.iter().all(|(_, chart)| !chart.to_svg(734, 330).contains("goodput")));
        let amount = Amount::Time(Duration::from_secs(1));
        let bulk = round(&Workload::Bulk { direction: Direction::Down, amount }, [2.0, 1.0, 1.0, 1.0]).charts();
        assert_eq!((bulk[0].1.y.label.as_str(), bulk[2].1.y.unit.as_str()), ("ratio of goodput", "Mbit/s"));
        assert!((bulk[2].1.series[0].points[0].1 - 4.0).abs() < 1e-9, "{:?}", bulk[2].1.series);
    }

    #[test]
    fn what_is_kept_of_a_screen_has_a_line_for_the_list_of_experiments() {
        let amount = Amount::Time(Duration::from_secs(1));
        let bulk = Workload::Bulk { direction: Direction::Down, amount };
        let kept = |stopped: bool| {
            let stored = StoredExperiment {
                id: "e".to_owned(),
                target: "lan".to_owned(),
                tunnel: "lab".to_owned(),
                state: State::Finished,
                started_unix_us: 1,
                ended_unix_us: Some(2),
                comment: String::new(),
                version: String::new(),
                current: Settings::new(),
                arms: Vec::new(),
                config: wt_journal::ExperimentConfig::Unknown(Value::Null),
                seed: 1,
                path: wt_trial::PathFacts::default(),
                verdict: None,
                owner: wt_journal::Owner::default(),
            };
            let screened = round(&bulk, [1.0; 4]);
            let report =
                ScreenReport { stored, screened, confirmation: None, stopped, is_running: false, confirm_by: None };
            report.verdict()["headline"].clone()
        };
        assert_eq!(kept(false), "No knob's effect is shown; keep what you have.");
        assert_eq!(kept(true), "Stopped before any knob's effect was shown.");
    }
}
