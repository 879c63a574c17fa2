use crate::surface::SettingForecast;
use wt_report::TrialFigure;

/// No time is told more finely, s: being late by nothing isn't better without end.
const FINEST: f64 = 1e-6;

/// What a setting gains over the current ones.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Gain {
    /// The ratio of what is compared, less one; more is better. `None` where there is nothing to compare.
    pub(crate) share: Option<f64>,
    /// Whether it gets done what the current settings don't: no number says how much better that is.
    pub(crate) works_instead: bool,
}

impl Gain {
    pub(crate) fn of(forecast: &SettingForecast, current: &SettingForecast, measured: &TrialFigure) -> Self {
        let ratio = match (forecast.figure, current.figure) {
            (Some(figure), Some(now)) if measured.better == "smaller" => now.max(FINEST) / figure.max(FINEST),
            (Some(figure), Some(now)) => figure / now,
            (Some(_), None) if !current.was_cut() => return Self { share: None, works_instead: true },
            (None, Some(_)) if !forecast.was_cut() => 0.0,
            // What the model left undone for want of time is compared by what was done until then, on both sides.
            _ => forecast.goodput_bps / current.goodput_bps,
        };
        Self { share: ratio.is_finite().then_some(ratio - 1.0), works_instead: false }
    }

    /// Whether it is more than an error.
    pub(crate) fn exceeds(&self, error: f64) -> bool {
        self.works_instead || self.share.is_some_and(|share| share > error)
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
        let gain = |a: &SettingForecast, b: &SettingForecast| Gain::of(a, b, &TrialFigure::completion());
        assert_eq!(gain(&done, &transfer(Some(3.0), 4e6, 0)).share, Some(0.5), "times, not rates");
        assert!(gain(&done, &nothing).works_instead && gain(&done, &nothing).exceeds(9.0));
        assert_eq!(gain(&nothing, &done), Gain { share: Some(-1.0), works_instead: false });
        assert_eq!(gain(&nothing, &nothing), Gain::default());
        let (fast, slow) = (transfer(None, 9e6, 1), transfer(None, 3e6, 1));
        assert_eq!(gain(&fast, &slow).share, Some(2.0), "both cut");
        assert_eq!((gain(&slow, &done).share, gain(&done, &fast).share), (Some(-0.25), Some(4.0 / 9.0 - 1.0)));
    }
}
