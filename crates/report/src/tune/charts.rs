use super::{Arm, ArmState, TuneReport};
use crate::words;
use crate::{Axis, Chart, Rule, Series};
use wt_units::Knob;

/// Settings in the chart of evidence at most.
const MOST_SERIES: usize = 6;
/// Less evidence than this is drawn as this: it is none.
const LEAST_EVIDENCE: f64 = 0.01;
/// An interval is drawn as open beyond so many times the largest estimate, or so small a part of the smallest.
const OPEN: f64 = 2.5;

impl TuneReport {
    /// Every setting with its interval, against the current one; `None` where none has an estimate.
    #[must_use]
    pub fn settings_chart(&self) -> Option<Chart> {
        let candidates: Vec<&Arm> = self.arms.iter().skip(1).filter(|arm| arm.is_ranked()).collect();
        let known: Vec<f64> = candidates.iter().filter_map(|arm| arm.ratio).chain([1.0]).collect();
        if known.len() == 1 {
            return None;
        }
        let (least, most) = (known.iter().copied().fold(1.0, f64::min), known.iter().copied().fold(1.0, f64::max));
        let row = |(place, arm): (usize, &&Arm), low: Option<f64>, high: Option<f64>| {
            let low = low.filter(|low| *low >= least / OPEN).unwrap_or(0.0);
            let high = high.filter(|high| *high <= most * OPEN).unwrap_or(f64::INFINITY);
            Some((place as f64, low, arm.ratio?, high))
        };
        let (exact, model): (Vec<_>, Vec<_>) =
            candidates.iter().enumerate().partition(|(_, arm)| arm.low.is_some() || arm.high.is_some());
        let of_model = exact.is_empty() && model.iter().any(|(_, arm)| arm.model_low.is_some());
        let is_shown = |arm: &Arm| matches!(arm.state, ArmState::Faster | ArmState::Slower);
        let (shown, open): (Vec<_>, Vec<_>) = model.into_iter().partition(|(_, arm)| is_shown(arm));
        let exact: Vec<_> = exact.into_iter().filter_map(|c| row(c, c.1.low, c.1.high)).collect();
        let by_model = |arms: Vec<(usize, &&Arm)>| -> Vec<_> {
            arms.into_iter().filter_map(|c| row(c, c.1.model_low, c.1.model_high)).collect()
        };
        let kinds = [
            ("interval that always holds", exact),
            // A claim of one side comes before there is an interval of two.
            ("shown to be faster or slower; the model's interval", by_model(shown)),
            ("estimate, not yet proven", by_model(open)),
        ];
        let series =
            kinds.iter().filter(|(_, rows)| !rows.is_empty()).map(|(name, rows)| Series::intervals(*name, rows));
        let always = format!("intervals from the random order hold with {} however often one looks", self.confidence());
        Some(Chart {
            title: format!("{} against the {}", self.measured.title(), self.reference()),
            subtitle: match of_model {
                true => "Estimates; the intervals are the model's, and claim nothing".to_owned(),
                false => format!("Estimates; {always}"),
            },
            y: Axis::log2(self.measured.ratio_axis(self.reference()), ""),
            categories: candidates.iter().map(|arm| arm.label.clone()).collect(),
            series: series.collect(),
            rules: vec![Rule::horizontal(1.0, self.reference())],
            ..Chart::default()
        })
    }

    /// Goodput by level of the ordered knob, with the smallest sufficient level marked.
    #[must_use]
    pub fn plateau_chart(&self) -> Option<Chart> {
        let plateau = self.plateau.as_ref()?;
        let most = plateau.curve.iter().flat_map(|p| p.figures.iter().copied()).fold(0.0, f64::max);
        let (outcome, outcome_unit, times) = self.measured.axis(most);
        let trials = plateau.curve.iter().flat_map(|p| p.figures.iter().map(|figure| (p.x, figure * times))).collect();
        let means: Vec<(f64, f64)> = plateau.curve.iter().filter_map(|p| Some((p.x, p.figure? * times))).collect();
        // What is drawn last is seen best.
        let mut series = vec![Series::points("each trial", trials)];
        series.extend(self.window_limit(plateau.curve.iter().map(|p| p.x), times));
        series.push(Series::line("mean", means));
        let mut rules = if self.measured.is_goodput() { self.limit_rule(times) } else { Vec::new() };
        if let Some(point) = plateau.curve.iter().find(|p| p.arm == plateau.arm).filter(|_| plateau.shown) {
            let behind = format!("{:.0}", plateau.epsilon * 100.0);
            rules.push(Rule::vertical(point.x, format!("{} suffices (within {behind} %)", point.level)));
        }
        let current = plateau.curve.iter().find(|p| p.arm == 0);
        let current = current.and_then(|p| Some((p.x, p.figure? * times)));
        series.extend(current.map(|point| Series::points("current", vec![point])));
        let name = match plateau.knob {
            Knob::Rwin => "receive window",
            Knob::Sndbuf => "send buffer",
            knob => knob.name(),
        };
        let unit = plateau.unit;
        Some(Chart {
            title: format!("{} by {name}", self.measured.title()),
            subtitle: if plateau.curve.iter().any(|p| p.level.number().is_none()) {
                format!("Where the system chooses ({}), the largest value seen stands for it", plateau.knob)
            } else {
                String::new()
            },
            x: Axis::log2(name, unit),
            y: Axis::linear(outcome, outcome_unit),
            series,
            rules,
            ..Chart::default()
        })
    }

    /// What a window allows at most: one of it in each RTT, up to the link's limit; `times` turns bit/s into the axis's unit.
    fn window_limit(&self, levels: impl Iterator<Item = f64>, times: f64) -> Option<Series> {
        let plateau = self.plateau.as_ref().filter(|p| p.knob == Knob::Rwin && self.measured.is_goodput())?;
        let limit = self.physical_goodput_bps.filter(|_| self.path.rtt_us > 0)? as f64;
        let (first, last) = levels.fold((f64::INFINITY, 0.0), |(a, b), x| (x.min(a), x.max(b)));
        if plateau.curve.len() < 2 || first >= last || first <= 0.0 {
            return None;
        }
        let at = |window: f64| (window, (window * 8e6 / self.path.rtt_us as f64).min(limit) * times);
        let knee = limit * self.path.rtt_us as f64 / 8e6;
        let mut windows: Vec<f64> = (0..=24).map(|i| first * (last / first).powf(f64::from(i) / 24.0)).collect();
        windows.extend(Some(knee).filter(|k| *k > first && *k < last));
        windows.sort_by(f64::total_cmp);
        Some(Series::line("window ÷ RTT", windows.into_iter().map(at).collect()))
    }

    /// Evidence for "faster" after each round over what each setting's claim needs: proven from 1 on.
    #[must_use]
    pub fn evidence_chart(&self) -> Option<Chart> {
        let ranked = self.arms.iter().skip(1).filter(|arm| !arm.series.is_empty() && arm.is_ranked());
        let mut candidates: Vec<(&Arm, f64)> = ranked.filter_map(|arm| Some((arm, arm.needed?))).collect();
        let all = candidates.len();
        candidates.sort_by(|(a, of_a), (b, of_b)| (b.evidence / of_b).total_cmp(&(a.evidence / of_a)));
        candidates.truncate(MOST_SERIES);
        let series = candidates.iter().map(|(arm, needed)| {
            let share = |e: f64| e.clamp(LEAST_EVIDENCE, 1e9) / needed;
            let points = arm.series.iter().map(|(round, e)| (*round as f64, share(*e)));
            Series::line(arm.label.clone(), std::iter::once((0.0, share(1.0))).chain(points).collect())
        });
        (!candidates.is_empty()).then(|| Chart {
            title: format!("Evidence for “faster than the {}” after each round", self.reference()),
            subtitle: if all > MOST_SERIES {
                format!("The {MOST_SERIES} with the most of {all}")
            } else {
                String::new()
            },
            x: Axis::linear("round", ""),
            y: Axis::log10("evidence ÷ what the claim needs", ""),
            series: series.collect(),
            rules: vec![Rule::horizontal(1.0, "proven")],
            ..Chart::default()
        })
    }

    /// The congestion window of the median trials over time.
    #[must_use]
    pub fn cwnd_chart(&self) -> Option<Chart> {
        let series: Vec<Series> = self
            .traces
            .iter()
            .filter(|trace| !trace.cwnd.is_empty())
            .map(|trace| Series::line(trace.label.clone(), trace.cwnd.iter().map(|(t, w)| (*t, w / 1024.0)).collect()))
            .collect();
        let bdp = self.path.bdp_bytes;
        (!series.is_empty()).then(|| Chart {
            title: "Congestion window over time".into(),
            subtitle: "The median trial of each setting".into(),
            x: Axis::linear("time", "s"),
            y: Axis::linear("congestion window", "KiB"),
            series,
            rules: if bdp > 0 {
                vec![Rule::horizontal(bdp as f64 / 1024.0, "bandwidth-delay product")]
            } else {
                Vec::new()
            },
            ..Chart::default()
        })
    }

    /// The rate of the median trials over time, with the link's physical limit.
    #[must_use]
    pub fn rate_chart(&self) -> Option<Chart> {
        let most = self.traces.iter().flat_map(|trace| trace.rate.iter().map(|(_, rate)| *rate)).fold(0.0, f64::max);
        let (unit, times) = wt_units::RateUnit::of_axis(most);
        let series: Vec<Series> = self
            .traces
            .iter()
            .filter(|trace| !trace.rate.is_empty())
            .map(|trace| Series::line(trace.label.clone(), trace.rate.iter().map(|(t, r)| (*t, r * times)).collect()))
            .collect();
        (!series.is_empty()).then(|| Chart {
            title: "Rate over time".into(),
            subtitle: "Payload at the receiver, the median trial of each setting".into(),
            x: Axis::linear("time", "s"),
            y: Axis::linear("rate", unit),
            series,
            rules: self.limit_rule(times),
            ..Chart::default()
        })
    }

    /// The link's limit in the axis's unit, `times` bit/s.
    fn limit_rule(&self, times: f64) -> Vec<Rule> {
        let rule = |limit: u64| {
            let label = format!("physical limit {}", words::rate(Some(limit as f64)));
            Rule::horizontal(limit as f64 * times, label)
        };
        self.physical_goodput_bps.filter(|limit| *limit > 0).map(rule).into_iter().collect()
    }

    /// Whether what is said of the limits goes beyond the link's.
    pub(crate) fn limits_say_more(&self) -> bool {
        !self.measured.is_goodput() || self.limits.text.contains("flows")
    }

    /// How long transfers did by their thirds.
    pub(crate) fn soak_lines(&self) -> Vec<String> {
        let label = |arm: usize| self.arms.get(arm).map_or_else(|| format!("setting {arm}"), |arm| arm.label.clone());
        self.soak.iter().map(|soak| soak.sentence(&label(soak.arm))).collect()
    }

    /// `95 %`.
    pub(crate) fn confidence(&self) -> String {
        format!("{:.0} %", (1.0 - self.verdict.alpha) * 100.0)
    }

    /// What the others were compared with, after "the".
    fn reference(&self) -> &'static str {
        if self.baseline.is_some() { "baseline" } else { "current settings" }
    }

    /// Whether throughput ÷ link is what framing leaves of it, with the interval.
    pub(crate) fn ceiling_line(&self) -> Option<String> {
        let ceiling = self.ceiling.as_ref()?;
        let label = self.arms.get(ceiling.arm)?;
        ceiling.sentence(if label.state == ArmState::Current { self.reference_with_article() } else { &label.label })
    }

    fn reference_with_article(&self) -> &'static str {
        if self.baseline.is_some() { "the baseline" } else { "the current settings" }
    }

    /// How near the fastest setting came to the link's limit.
    pub(crate) fn limit_line(&self) -> Option<String> {
        let limit = self.physical_goodput_bps.filter(|limit| *limit > 0 && self.measured.is_goodput())? as f64;
        let share = |bps: f64| format!("{:.0} %", bps / limit * 100.0);
        let current = self.arms.first().and_then(|arm| arm.goodput_bps);
        let best = self.arms.iter().filter_map(|arm| arm.goodput_bps.map(|bps| (bps, arm)));
        let (best, arm) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (own, reaches) =
            if self.baseline.is_some() { ("the baseline", "reaches") } else { ("the current settings", "reach") };
        let line = format!("The link carries at most {} of TCP payload", words::rate(Some(limit)));
        Some(match current {
            Some(bps) if arm.state == ArmState::Current || (best - bps) / limit < 0.005 => {
                format!("{line}; {own} {reaches} {} of it.", share(bps))
            }
            Some(bps) => format!("{line}; {own} {reaches} {}, {} {}.", share(bps), arm.label, share(best)),
            None => format!("{line}; {} reaches {} of it.", arm.label, share(best)),
        })
    }
}
