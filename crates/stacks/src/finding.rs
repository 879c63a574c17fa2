//! What is wrong with a stack, by name and date.

use crate::seen::{AckDelay, StackObservation};
use serde::Serialize;
use wt_experiment::drift;

/// What was found in one trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Finding {
    /// It acknowledges later and later.
    AckDelayGrows {
        /// When that began, s since the connection began.
        at_s: f64,
        /// How late ACKs were before, ms.
        start_ms: f64,
        /// How late they were in the end, ms.
        end_ms: f64,
    },
    /// Data that the stack acknowledged never came to the program.
    DataLost {
        /// When the program missed them, s since the work began.
        at_s: f64,
        /// How soon answers came after their requests, ms, as seen at the stack's device.
        answer_ms: Option<f64>,
        /// What is missing.
        what: String,
    },
    /// Data came that nobody sent.
    DataCorrupt {
        /// When, s since the work began.
        at_s: f64,
        /// Which.
        what: String,
    },
}

/// A course of fewer parts shows nothing.
const FEWEST: usize = 12;
/// A growth is told if chance alone would show one so steady this rarely, ...
const CHANCE: f64 = 0.001;
/// ... if it is as large as this, ms, ...
const LEAST_MS: f64 = 5.0;
/// ... if delays have doubled by it, ...
const LEAST_RATIO: f64 = 2.0;
/// ... and if it explains so much of how they differ.
const LEAST_SHARE: f64 = 0.6;

/// How late a stack acknowledged in the first and in the last third of the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// The mean of the first third, ms.
    pub start_ms: f64,
    /// The mean of the last third, ms.
    pub end_ms: f64,
    /// How often chance alone shows as steady a growth.
    pub p: Option<f64>,
}

impl Trend {
    /// The trend of ACK delays; `None` where too little was acknowledged.
    #[must_use]
    pub fn of(delay: &AckDelay) -> Option<Self> {
        let (start_us, end_us) = delay.ends_us?;
        Some(Self { start_ms: start_us / 1e3, end_ms: end_us / 1e3, p: chance(&delay.course) })
    }
}

/// How often chance alone shows as steady a growth.
fn chance(course: &[(f64, f64)]) -> Option<f64> {
    if course.len() < FEWEST {
        return None;
    }
    drift::rise(&course.iter().map(|(_, us)| *us).collect::<Vec<_>>())
}

impl Finding {
    /// The growth of ACK delays in a trial, if there is any.
    #[must_use]
    pub fn ack_delay(seen: &StackObservation) -> Option<Self> {
        let course = &seen.ack_delay.as_ref()?.course;
        if chance(course)? > CHANCE {
            return None;
        }
        let hinge = Hinge::fit(course)?;
        let (start_ms, end_ms) = (hinge.low / 1e3, hinge.high / 1e3);
        // By medians: one very late ACK is no growth.
        let quarter = course.len() / 4;
        let (early, late) = (median(&course[..quarter]) / 1e3, median(&course[course.len() - quarter..]) / 1e3);
        let large = late - early >= LEAST_MS && late >= LEAST_RATIO * early;
        (large && hinge.share(course) >= LEAST_SHARE).then_some(Self::AckDelayGrows {
            at_s: hinge.from,
            start_ms,
            end_ms,
        })
    }

    /// What became of the data of a trial, if it isn't as it was sent.
    #[must_use]
    pub fn data(integrity: &str, took_us: u64, what: &str, seen: &StackObservation) -> Option<Self> {
        let at_s = took_us as f64 / 1e6;
        let what = what.to_owned();
        match integrity {
            "lost" => Some(Self::DataLost { at_s, answer_ms: seen.answer_us.map(|us| us / 1e3), what }),
            "corrupt" => Some(Self::DataCorrupt { at_s, what }),
            _ => None,
        }
    }

    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::AckDelayGrows { at_s, start_ms, end_ms } => format!(
                "from {at_s:.0} s on it acknowledges later and later: {start_ms:.1} ms before, {end_ms:.0} ms in the end"
            ),
            Self::DataLost { at_s, answer_ms, what } => {
                let fast =
                    answer_ms.map_or_else(String::new, |ms| format!("; the answer came {ms:.2} ms after its request"));
                format!("after {} data is lost that it had acknowledged ({what}){fast}", time(*at_s))
            }
            Self::DataCorrupt { at_s, what } => format!("after {} data is corrupt ({what})", time(*at_s)),
        }
    }
}

/// A time in the unit that shows it: what is lost with the first answer is lost within milliseconds.
fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

fn median(part: &[(f64, f64)]) -> f64 {
    wt_units::upper_median(part.iter().map(|(_, us)| *us)).unwrap_or(0.0)
}

/// A level, then a straight rise, then another level.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hinge {
    from: f64,
    low: f64,
    high: f64,
    squares: f64,
}

impl Hinge {
    /// The one with the least squares among those that begin and end at times of the course, and rise.
    fn fit(course: &[(f64, f64)]) -> Option<Self> {
        if course.len() < FEWEST {
            return None;
        }
        let mut best: Option<Self> = None;
        for begin in 0..course.len() - 1 {
            for end in begin + 1..course.len() {
                let (from, to) = (course[begin].0, course[end].0);
                let ramp = |t: f64| ((t - from) / (to - from).max(1e-9)).clamp(0.0, 1.0);
                if let Some(fit) = Self::line(course, ramp, from)
                    && best.is_none_or(|best| fit.squares < best.squares)
                {
                    best = Some(fit);
                }
            }
        }
        best
    }

    /// How much of the squares it explains, of 1.
    fn share(&self, course: &[(f64, f64)]) -> f64 {
        let mean = course.iter().map(|(_, y)| y).sum::<f64>() / course.len() as f64;
        let all: f64 = course.iter().map(|(_, y)| (y - mean).powi(2)).sum();
        if all > 0.0 { 1.0 - self.squares / all } else { 0.0 }
    }

    /// Least squares of a level and a multiple of the ramp.
    fn line(course: &[(f64, f64)], ramp: impl Fn(f64) -> f64, from: f64) -> Option<Self> {
        let n = course.len() as f64;
        let x_mean = course.iter().map(|(t, _)| ramp(*t)).sum::<f64>() / n;
        let y_mean = course.iter().map(|(_, y)| y).sum::<f64>() / n;
        let (mut xx, mut xy) = (0.0, 0.0);
        for (t, y) in course {
            let x = ramp(*t) - x_mean;
            (xx, xy) = (xx + x * x, xy + x * (y - y_mean));
        }
        let slope = xy / xx;
        let low = y_mean - slope * x_mean;
        let squares = course.iter().map(|(t, y)| (y - low - slope * ramp(*t)).powi(2)).sum();
        (xx > 0.0 && slope > 0.0).then_some(Self { from, low: low.max(0.0), high: low + slope, squares })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::AckDelay;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha12Rng;

    /// Five minutes in 64 parts; from `start` on the delay rises to 0.4 s at five minutes.
    fn course(start: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        (0..64)
            .map(|part| {
                let t = f64::from(part) * 300.0 / 64.0;
                let late = ((t - start) / (300.0 - start)).max(0.0) * 400_000.0;
                (t, 500.0 + late + noise * rng.random_range(0.0..1.0))
            })
            .collect()
    }

    #[test]
    fn a_rise_is_dated_to_within_ten_seconds_under_noise() {
        for (start, noise) in [(60.0, 0.0), (60.0, 20_000.0), (120.0, 40_000.0), (30.0, 5_000.0)] {
            for seed in 0..20 {
                let fit = Hinge::fit(&course(start, noise, seed)).unwrap();
                assert!((fit.from - start).abs() <= 10.0, "{start} {noise}: {}", fit.from);
                assert!((fit.high - 400_000.0).abs() < 0.15 * 400_000.0, "{}", fit.high);
            }
        }
    }

    fn seen(course: Vec<(f64, f64)>) -> StackObservation {
        let ends_us = Some((course[0].1, course[course.len() - 1].1));
        StackObservation {
            ack_delay: Some(AckDelay { median_us: 500.0, ends_us, course }),
            ..StackObservation::default()
        }
    }

    #[test]
    fn what_grows_after_a_minute_is_named_and_dated() {
        for seed in 0..20 {
            let Some(Finding::AckDelayGrows { at_s, start_ms, end_ms }) =
                Finding::ack_delay(&seen(course(60.0, 3e4, seed)))
            else {
                panic!("not found")
            };
            assert!((50.0..=70.0).contains(&at_s) && start_ms < 40.0 && end_ms > 300.0, "{at_s} {start_ms} {end_ms}");
        }
    }

    /// Delays that depend on those before them, and now and then one that is very late.
    fn clean(seed: u64, scale: f64) -> Vec<(f64, f64)> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut level = 0.0;
        (0..64)
            .map(|part| {
                level = 0.9 * level + rng.random_range(-1.0..1.0f64);
                let spike = if rng.random_range(0..40) == 0 { 40.0 } else { 0.0 };
                (f64::from(part) * 300.0 / 64.0, scale * ((0.3 * level).exp() + spike))
            })
            .collect()
    }

    #[test]
    fn a_thousand_clean_courses_that_wander_raise_few_alarms_and_small_delays_none() {
        let alarms = |scale| (0..1000).filter(|seed| Finding::ack_delay(&seen(clean(*seed, scale))).is_some()).count();
        assert_eq!(alarms(500.0), 0, "delays of half a millisecond");
        assert!(alarms(10_000.0) <= 10, "delays of ten milliseconds: {}", alarms(10_000.0));
    }

    #[test]
    fn data_that_goes_wrong_is_dated_in_milliseconds_within_the_first_second() {
        let seen = StackObservation { answer_us: Some(1_830.0), ..StackObservation::default() };
        let text = |integrity, took_us| Finding::data(integrity, took_us, "byte 0", &seen).unwrap().text();
        let lost = "data is lost that it had acknowledged (byte 0); the answer came 1.83 ms after its request";
        assert_eq!(text("lost", 2_340), format!("after 2.3 ms {lost}"));
        assert_eq!(text("lost", 61_040_000), format!("after 61.0 s {lost}"));
        assert_eq!(text("corrupt", 1_000), "after 1.0 ms data is corrupt (byte 0)");
    }

    #[test]
    fn what_does_not_grow_is_no_finding() {
        assert_eq!(Finding::ack_delay(&seen(course(1e9, 300.0, 1))), None);
        assert_eq!(Finding::ack_delay(&seen(vec![(0.0, 1.0), (1.0, 2.0)])), None);
        assert_eq!(Finding::ack_delay(&StackObservation::default()), None);
        assert_eq!(Finding::data("ok", 1, "", &StackObservation::default()), None);
    }
}
