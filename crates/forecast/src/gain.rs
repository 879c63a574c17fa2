use crate::surface::SettingForecast;
use wt_report::TrialFigure;

/// No time is told more finely, s: being late by nothing isn't better without end.
const FINEST: f64 = 1e-6;

/// How many standard errors of so few values, from two on, chance stays below in 95 % of cases, by Student's t; of more it is about two.
const STANDARD_ERRORS: [f64; 4] = [6.31, 2.92, 2.35, 2.13];

/// What a setting gains over the current ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gain {
    /// The ratio of what is compared, less one; more is better. `None` where there is nothing to compare.
    pub(crate) share: Option<f64>,
    /// Whether it gets done what the current settings don't: no number says how much better that is.
    pub(crate) works_instead: bool,
    /// Between which shares it lies on average, as far as runs with the same seeds tell; `None` where one run alone doesn't.
    pub(crate) range: Option<(f64, f64)>,
}

/// Between which shares the mean of such ratios lies; `None` for fewer than two.
pub(crate) fn range_of(ratios: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let logs: Vec<f64> = ratios.map(f64::ln).filter(|log| log.is_finite()).collect();
    let (count, more) = (logs.len() as f64, logs.len().checked_sub(2)?);
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let margin = STANDARD_ERRORS.get(more).unwrap_or(&2.0) * (variance / count).sqrt();
    Some(((mean - margin).exp_m1(), (mean + margin).exp_m1()))
}

impl Gain {
    /// What no other setting is compared with.
    pub(crate) const NONE: Self = Self { share: None, works_instead: false, range: None };

    /// Of two answers, with the same seeds in the same order; `random` tells whether another seed would give another one.
    pub(crate) fn of(
        forecast: &SettingForecast,
        current: &SettingForecast,
        measured: &TrialFigure,
        random: bool,
    ) -> Self {
        let works_instead = forecast.figure.is_some() && current.figure.is_none() && !current.was_cut();
        let ratio = match (forecast.figure, current.figure) {
            (Some(figure), Some(now)) if measured.better == "smaller" => now.max(FINEST) / figure.max(FINEST),
            (Some(figure), Some(now)) => figure / now,
            (None, Some(_)) if !forecast.was_cut() => 0.0,
            // What the model left undone for want of time is compared by what was done until then, on both sides.
            _ => forecast.goodput_bps / current.goodput_bps,
        };
        let share = (ratio.is_finite() && !works_instead).then_some(ratio - 1.0);
        let paired = |values: &[f64], now: &[f64]| range_of(values.iter().zip(now).map(|(value, now)| value / now));
        let range = if !random {
            share.map(|share| (share, share))
        } else if forecast.figure.is_none() || current.figure.is_none() {
            paired(&forecast.goodputs, &current.goodputs)
        } else if measured.better == "smaller" {
            let fine = |times: &[f64]| times.iter().map(|time| time.max(FINEST)).collect::<Vec<_>>();
            paired(&fine(&current.figures), &fine(&forecast.figures))
        } else {
            paired(&forecast.figures, &current.figures)
        };
        Self { share, works_instead, range }
    }

    /// Whether it is more than an error and chance together explain.
    pub(crate) fn exceeds(&self, error: f64) -> bool {
        let both = self.share.zip(self.range);
        self.works_instead || both.is_some_and(|(share, (low, _))| share.min(low) > error)
    }

    /// Whether it is a larger loss than an error and chance together explain.
    pub(crate) fn falls_below(&self, error: f64) -> bool {
        self.share.zip(self.range).is_some_and(|(share, (_, high))| share.max(high) < -error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer's time, s, and its goodput, bit/s.
    fn transfer(figure: Option<f64>, goodput_bps: f64, cut_short: usize) -> SettingForecast {
        SettingForecast { figure, goodput_bps, cut_short, ..SettingForecast::default() }
    }

    #[test]
    fn what_works_where_nothing_did_is_a_gain_and_what_was_cut_is_compared_until_then() {
        let (done, nothing) = (transfer(Some(2.0), 4e6, 0), transfer(None, 0.0, 0));
        let gain = |a: &SettingForecast, b: &SettingForecast| Gain::of(a, b, &TrialFigure::completion(), false);
        assert_eq!(gain(&done, &transfer(Some(3.0), 4e6, 0)).share, Some(0.5), "times, not rates");
        assert!(gain(&done, &nothing).works_instead && gain(&done, &nothing).exceeds(9.0));
        assert_eq!((gain(&nothing, &done).share, gain(&nothing, &nothing).share), (Some(-1.0), None));
        assert!(gain(&nothing, &done).falls_below(0.9) && !gain(&nothing, &nothing).works_instead);
        let (fast, slow) = (transfer(None, 9e6, 1), transfer(None, 3e6, 1));
        assert_eq!(gain(&fast, &slow).share, Some(2.0), "both cut");
        assert_eq!((gain(&slow, &done).share, gain(&done, &fast).share), (Some(-0.25), Some(4.0 / 9.0 - 1.0)));
    }

    #[test]
    fn a_gain_that_comes_and_goes_with_the_seed_is_none() {
        let runs = |figures: &[f64]| SettingForecast {
            figure: Some(figures[figures.len() / 2]),
            figures: figures.to_vec(),
            ..SettingForecast::default()
        };
        let (current, steady) = (runs(&[2.0, 3.0, 4.0, 5.0, 6.0]), runs(&[1.5, 2.3, 3.0, 3.8, 4.5]));
        let gain = |setting: &SettingForecast, random| Gain::of(setting, &current, &TrialFigure::completion(), random);
        assert!(gain(&steady, true).exceeds(0.1), "a third with every seed: {:?}", gain(&steady, true));
        assert!(!gain(&steady, true).exceeds(0.33) && !gain(&steady, true).falls_below(0.01));
        let by_chance = runs(&[1.0, 9.0, 3.0, 2.0, 9.0]);
        assert!(!gain(&by_chance, true).exceeds(0.1) && gain(&by_chance, false).exceeds(0.3), "{by_chance:?}");
        let (one, now) = (runs(&[3.0]), runs(&[4.0]));
        let single = Gain::of(&one, &now, &TrialFigure::completion(), true);
        assert!(single.share.is_some() && !single.exceeds(0.0), "one seed tells nothing: {single:?}");
    }
}
