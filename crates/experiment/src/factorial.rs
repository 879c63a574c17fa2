//! Many knobs of two levels each at once: every trial of a round sets them all, and every trial says something about
//! every knob.
//!
//! A round is an orthogonal design. Before each round a fair coin for every knob decides which of its two levels takes
//! the part of the first (a randomised fold-over), and the trials are run in random order. If a knob does nothing, the
//! contrast of its levels is then its coin's sign times something that doesn't depend on the coin: exactly symmetric,
//! however much the other knobs do and however they interact. So the same [`EProcess`] applies.
//!
//! What this leaves out: how knobs interact. What is found must be tried together against the current setting in an
//! [`Experiment`](crate::Experiment) of its own.

use crate::eprocess::{EProcess, lower_bound, upper_bound};
use crate::sequential::RoundOutcome;
use rand::seq::SliceRandom as _;
use rand::{Rng, RngExt as _};
use serde::Serialize;

/// The most knobs that one screen takes.
pub const MOST_KNOBS: usize = 15;
/// More rounds than any `alpha` asks of effects that are seen in each round.
const MOST_ROUNDS_TO_SHOW: usize = 1_000;

/// One trial of a round: for every knob whether it is at its alternative level.
pub type Run = Vec<bool>;

/// What is wrong with a screen or a round.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScreenError {
    /// Too few or too many knobs.
    #[error("a screen takes 2 to {MOST_KNOBS} knobs, not {knobs}")]
    Knobs {
        /// What was asked for.
        knobs: usize,
    },
    /// An error probability that is none.
    #[error("alpha lies between 0 and 1, both excluded, not {alpha}")]
    Alpha {
        /// What was asked for.
        alpha: f64,
    },
    /// The runs are not those of a round.
    #[error("the round is not one of this screen's designs: each pair of levels of each two knobs must occur alike")]
    Design,
    /// An outcome that is no finite number.
    #[error("the outcome of trial {trial} of the round is {y}")]
    Outcome {
        /// Its place, from 1.
        trial: usize,
        /// The outcome.
        y: f64,
    },
}

/// A sequential screen of knobs.
#[derive(Debug, Clone)]
pub struct Screen {
    knobs: usize,
    alpha: f64,
    design: Vec<Run>,
    effects: Vec<Contrast>,
    rounds: usize,
    trials: usize,
    discarded: usize,
}

/// What is compared: one knob, or the interaction of two.
#[derive(Debug, Clone)]
struct Contrast {
    knobs: Vec<usize>,
    better: EProcess,
    worse: EProcess,
    contrasts: Vec<f64>,
    series: Vec<f64>,
    claimed: Option<usize>,
    peak: f64,
}

/// What is known of one knob, or of the interaction of two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectAssessment {
    /// The knob; two for an interaction.
    pub knobs: Vec<usize>,
    /// The log of the estimated ratio of the alternative level to the current one. For an interaction: half of by how much
    /// more one knob does when the other is at its alternative level.
    pub estimate: Option<f64>,
    /// Its standard error over the rounds; `None` for fewer than two.
    pub standard_error: Option<f64>,
    /// The effect is at least this, as a log; all bounds hold together, however often one looks. `None` while nothing can
    /// be excluded.
    pub lower: Option<f64>,
    /// The effect is at most this.
    pub upper: Option<f64>,
    /// The largest evidence so far that the alternative level is faster.
    pub evidence: f64,
    /// The evidence that a claim needs.
    pub needed: f64,
    /// The round after which it was shown to be faster.
    pub claimed: Option<usize>,
    /// Whether it is shown to be slower.
    pub slower: bool,
    /// The evidence after each round, for a plot.
    pub series: Vec<f64>,
}

/// What a screen allows one to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenAssessment {
    /// Every knob, and with two knobs their interaction.
    pub effects: Vec<EffectAssessment>,
    /// Rounds that count.
    pub rounds: usize,
    /// Rounds that don't.
    pub discarded_rounds: usize,
    /// Trials, those of discarded rounds included.
    pub trials: usize,
}

impl Screen {
    /// A screen of this many knobs with the probability `alpha` of any false "faster", ever.
    ///
    /// Rounds have 4 trials for 2 or 3 knobs, 8 up to 7, 12 up to 11 and 16 up to 15. With 2 knobs every combination
    /// occurs, and their interaction is tested as well.
    ///
    /// # Errors
    /// [`ScreenError::Knobs`], [`ScreenError::Alpha`].
    ///
    /// # Source
    /// Plackett and Burman, Biometrika 33 (1946); Box, Hunter, Hunter, *Statistics for Experimenters*, chapter 6.
    pub fn new(knobs: usize, alpha: f64) -> Result<Self, ScreenError> {
        if !(2..=MOST_KNOBS).contains(&knobs) {
            return Err(ScreenError::Knobs { knobs });
        }
        if !(alpha > 0.0 && alpha < 1.0) {
            return Err(ScreenError::Alpha { alpha });
        }
        let mut effects: Vec<Contrast> = (0..knobs).map(|knob| Contrast::new(vec![knob])).collect();
        if knobs == 2 {
            effects.push(Contrast::new(vec![0, 1]));
        }
        Ok(Self { knobs, alpha, design: design(knobs), effects, rounds: 0, trials: 0, discarded: 0 })
    }

    /// The trials of a round.
    #[must_use]
    pub fn trials_per_round(&self) -> usize {
        self.design.len()
    }

    /// After how many rounds an effect can be shown at the earliest, however clear it is.
    #[must_use]
    pub fn fewest_rounds(&self) -> usize {
        let (need, mut clearest) = (self.needed().ln(), EProcess::new());
        let shows = |_: &usize| {
            clearest.push(1.0);
            clearest.log_evidence() >= need
        };
        (1..=MOST_ROUNDS_TO_SHOW).find(shows).unwrap_or(MOST_ROUNDS_TO_SHOW)
    }

    /// Whether of every effect is shown which way it goes.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let need = self.needed().ln();
        self.effects.iter().all(|effect| effect.claimed.is_some() || effect.worse.log_evidence() >= need)
    }

    /// The trials of the next round in the order in which to run them.
    pub fn next_round(&self, rng: &mut impl Rng) -> Vec<Run> {
        let coins: Run = (0..self.knobs).map(|_| rng.random()).collect();
        let mut round: Vec<Run> =
            self.design.iter().map(|run| run.iter().zip(&coins).map(|(level, coin)| level ^ coin).collect()).collect();
        round.shuffle(rng);
        round
    }

    /// Takes the outcomes of a round (logs, larger is better). A round with fewer trials than its design was cut short and
    /// is discarded as a whole.
    ///
    /// # Errors
    /// [`ScreenError::Design`], [`ScreenError::Outcome`]; the screen is then as before.
    pub fn record(&mut self, round: &[(Run, f64)]) -> Result<RoundOutcome, ScreenError> {
        if let Some(trial) = round.iter().position(|(_, y)| !y.is_finite()) {
            return Err(ScreenError::Outcome { trial: trial + 1, y: round[trial].1 });
        }
        if round.len() < self.design.len() {
            self.trials += round.len();
            self.discarded += 1;
            return Ok(RoundOutcome::Discarded);
        }
        if round.len() > self.design.len() || !self.is_orthogonal(round) {
            return Err(ScreenError::Design);
        }
        self.trials += round.len();
        self.rounds += 1;
        let need = self.needed().ln();
        for effect in &mut self.effects {
            effect.record(round, self.rounds, need);
        }
        Ok(RoundOutcome::Counted)
    }

    /// What can be said now.
    #[must_use]
    pub fn assessment(&self) -> ScreenAssessment {
        let needed = self.needed();
        ScreenAssessment {
            effects: self.effects.iter().map(|effect| effect.assess(needed)).collect(),
            rounds: self.rounds,
            discarded_rounds: self.discarded,
            trials: self.trials,
        }
    }

    fn needed(&self) -> f64 {
        self.effects.len() as f64 / self.alpha
    }

    /// Whether every knob is at each level in half of the trials, and every two knobs agree in half of them.
    fn is_orthogonal(&self, round: &[(Run, f64)]) -> bool {
        let half = round.len() / 2;
        let columns = || (0..self.knobs).flat_map(|a| (0..=a).map(move |b| (a, b)));
        round.iter().all(|(run, _)| run.len() == self.knobs)
            && columns().all(|(a, b)| {
                let agree = round.iter().filter(|(run, _)| if a == b { run[a] } else { run[a] == run[b] }).count();
                agree == half
            })
    }
}

impl Contrast {
    fn new(knobs: Vec<usize>) -> Self {
        Self {
            knobs,
            better: EProcess::new(),
            worse: EProcess::below(0.0),
            contrasts: Vec::new(),
            series: Vec::new(),
            claimed: None,
            peak: 0.0,
        }
    }

    fn record(&mut self, round: &[(Run, f64)], number: usize, need: f64) {
        // An even number of knobs at their current level makes the sign of an interaction positive.
        let high = |run: &Run| self.knobs.iter().filter(|knob| !run[**knob]).count().is_multiple_of(2);
        let half = round.len() as f64 / 2.0;
        let contrast = round.iter().map(|(run, y)| if high(run) { *y } else { -y }).sum::<f64>() / half;
        self.contrasts.push(contrast);
        self.better.push(contrast);
        self.worse.push(contrast);
        let log_evidence = self.better.log_evidence();
        self.series.push(log_evidence.exp());
        self.peak = self.peak.max(log_evidence);
        if self.claimed.is_none() && log_evidence >= need {
            self.claimed = Some(number);
        }
    }

    fn assess(&self, needed: f64) -> EffectAssessment {
        let n = self.contrasts.len() as f64;
        let description = crate::classic::describe(&self.contrasts);
        EffectAssessment {
            knobs: self.knobs.clone(),
            estimate: description.map(|d| d.mean),
            standard_error: description.and_then(|d| d.sd).map(|sd| sd / n.sqrt()),
            // Each end of the interval takes half of the error.
            lower: Some(lower_bound(&self.contrasts, 2.0 * needed)).filter(|bound| bound.is_finite()),
            upper: Some(upper_bound(&self.contrasts, 2.0 * needed)).filter(|bound| bound.is_finite()),
            evidence: self.peak.exp(),
            needed,
            claimed: self.claimed,
            slower: self.worse.log_evidence() >= needed.ln(),
            series: self.series.clone(),
        }
    }
}

/// An orthogonal design for this many knobs, each column once with either sign.
fn design(knobs: usize) -> Vec<Run> {
    match knobs {
        0..=3 => by_parity(4, &[1, 2, 3], knobs),
        4..=7 => by_parity(8, &[1, 2, 4, 7, 3, 5, 6], knobs),
        8..=11 => plackett_burman_12(knobs),
        _ => by_parity(16, &[1, 2, 4, 8, 15, 7, 11, 13, 14, 3, 5, 6, 9, 10, 12], knobs),
    }
}

/// Regular designs: the level of a knob in run r is the parity of the bits that r has in common with the knob's number.
/// Numbers with an odd count of bits come first, so that few knobs are clear of each other's interactions.
fn by_parity(runs: u32, numbers: &[u32], knobs: usize) -> Vec<Run> {
    let level = |run: u32, number: u32| !(run & number).count_ones().is_multiple_of(2);
    (0..runs).map(|run| numbers.iter().take(knobs).map(|number| level(run, *number)).collect()).collect()
}

/// The twelve-run design of Plackett and Burman: the cyclic shifts of one row, and a row of minus.
fn plackett_burman_12(knobs: usize) -> Vec<Run> {
    const ROW: [bool; 11] = [true, true, false, true, true, true, false, false, false, true, false];
    let shifted = |shift: usize| (0..knobs).map(|knob| ROW[(knob + shift) % 11]).collect();
    (0..11).map(shifted).chain(std::iter::once(vec![false; knobs])).collect()
}

/// The effects in a table of two knobs of two levels, one measurement for each combination.
///
/// There is no replication, so there is no measure of the noise: these numbers describe, and nothing can be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TwoByTwo {
    /// The mean over the second knob of high − low of the first, on the scale measured.
    pub first: f64,
    /// The same for the second knob.
    pub second: f64,
    /// Half of by how much more the first does at the second's high level than at its low one.
    pub interaction: f64,
    /// The first knob's effect as a ratio of geometric means; `None` unless all are positive, as for the next two.
    pub first_ratio: Option<f64>,
    /// The second knob's.
    pub second_ratio: Option<f64>,
    /// The interaction as a ratio: 1 where the knobs multiply.
    pub interaction_ratio: Option<f64>,
}

/// The effects of an unreplicated 2 × 2 table; `cells[i][j]` has the first knob at level i and the second at level j.
#[must_use]
pub fn two_by_two(cells: [[f64; 2]; 2]) -> TwoByTwo {
    let effects = |c: [[f64; 2]; 2]| {
        let first = (c[1][0] + c[1][1] - c[0][0] - c[0][1]) / 2.0;
        let second = (c[0][1] + c[1][1] - c[0][0] - c[1][0]) / 2.0;
        [first, second, (c[1][1] - c[1][0] - c[0][1] + c[0][0]) / 2.0]
    };
    let [first, second, interaction] = effects(cells);
    let ratios = effects(cells.map(|row| row.map(f64::ln))).map(|e| Some(e.exp()).filter(|r| r.is_finite()));
    let [first_ratio, second_ratio, interaction_ratio] = ratios;
    TwoByTwo { first, second, interaction, first_ratio, second_ratio, interaction_ratio }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{NoiseModel, Path};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha12Rng;

    /// Runs a screen for some rounds; outcomes are `effect(run)` plus the path's noise.
    fn run(knobs: usize, rounds: usize, seed: u64, effect: impl Fn(&Run) -> f64) -> ScreenAssessment {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut path = Path::new(NoiseModel::Typical, &mut rng);
        let mut screen = Screen::new(knobs, 0.05).unwrap();
        for _ in 0..rounds {
            let runs = screen.next_round(&mut rng);
            let round: Vec<(Run, f64)> =
                runs.into_iter().map(|run| (run.clone(), path.outcome(effect(&run), &mut rng))).collect();
            screen.record(&round).unwrap();
        }
        screen.assessment()
    }

    #[test]
    fn every_design_is_orthogonal_whatever_the_coins() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        for knobs in 2..=MOST_KNOBS {
            let mut screen = Screen::new(knobs, 0.05).unwrap();
            for _ in 0..20 {
                let round: Vec<(Run, f64)> = screen.next_round(&mut rng).into_iter().map(|run| (run, 0.0)).collect();
                assert_eq!(screen.record(&round), Ok(RoundOutcome::Counted), "{knobs} knobs");
            }
        }
    }

    #[test]
    fn what_is_clear_shows_after_the_fewest_rounds_and_not_before() {
        for knobs in [2, 3, 7] {
            let (mut rng, mut screen) = (ChaCha12Rng::seed_from_u64(1), Screen::new(knobs, 0.05).unwrap());
            let fewest = screen.fewest_rounds();
            assert!(fewest > 6, "{fewest}");
            for _ in 0..fewest {
                assert_eq!(screen.assessment().effects[0].claimed, None, "{knobs} knobs, {fewest} rounds");
                let runs = screen.next_round(&mut rng);
                let round: Vec<(Run, f64)> =
                    runs.into_iter().map(|run| (run.clone(), f64::from(u8::from(run[0])))).collect();
                screen.record(&round).unwrap();
            }
            assert_eq!(screen.assessment().effects[0].claimed, Some(fewest));
        }
    }

    #[test]
    fn every_knob_starts_at_either_level_equally_often() {
        let mut rng = ChaCha12Rng::seed_from_u64(2);
        let screen = Screen::new(7, 0.05).unwrap();
        let high = (0..2_000).filter(|_| screen.next_round(&mut rng)[0][3]).count();
        assert!((850..1150).contains(&high), "{high} of 2000");
    }

    #[test]
    fn a_gain_among_seven_knobs_is_found_in_twenty_rounds_and_nothing_else_is() {
        let mut found = 0;
        let mut false_claims = 0;
        for seed in 0..100 {
            let effect = |run: &Run| {
                [1.2f64.ln(), 1.1f64.ln(), 0.85f64.ln()].iter().zip(run).map(|(e, on)| if *on { *e } else { 0.0 }).sum()
            };
            let a = run(7, 20, seed, effect);
            found += usize::from(a.effects[0].claimed.is_some());
            false_claims += usize::from(a.effects[2..].iter().any(|e| e.claimed.is_some()));
        }
        // The long simulation gives 94 % and 1.3 %.
        assert!(found >= 84 && false_claims <= 5, "{found} {false_claims}");
    }

    #[test]
    fn a_strong_interaction_of_two_knobs_is_no_effect_of_a_third() {
        let claims = (0..200)
            .filter(|seed| {
                let a = run(7, 20, *seed, |run| if run[0] == run[1] { 0.3 } else { 0.0 });
                a.effects.iter().any(|e| e.claimed.is_some())
            })
            .count();
        assert!(claims <= 10, "{claims} of 200");
    }

    #[test]
    fn with_two_knobs_the_interaction_is_estimated_and_tested_beside_the_main_effects() {
        let a = run(2, 60, 3, |run| if run[0] && run[1] { 0.8 } else { 0.0 });
        let [first, second, both] = &a.effects[..] else { panic!("three effects") };
        for effect in [first, second, both] {
            assert!((effect.estimate.unwrap() - 0.4).abs() < 4.0 * effect.standard_error.unwrap(), "{effect:?}");
            assert!(effect.claimed.is_some() && effect.needed == 60.0 && !effect.slower);
            let (low, high) = (effect.lower.unwrap(), effect.upper.unwrap());
            assert!(0.0 < low && low < effect.estimate.unwrap() && effect.estimate.unwrap() < high, "{effect:?}");
        }
        assert_eq!((both.knobs.as_slice(), a.trials), ([0, 1].as_slice(), 240));
    }

    #[test]
    fn rounds_that_are_no_rounds_are_refused_and_short_ones_discarded() {
        assert_eq!(Screen::new(1, 0.05).unwrap_err(), ScreenError::Knobs { knobs: 1 });
        assert_eq!(Screen::new(16, 0.05).unwrap_err(), ScreenError::Knobs { knobs: 16 });
        assert!(Screen::new(3, 1.0).is_err() && Screen::new(3, f64::NAN).is_err());
        let mut screen = Screen::new(3, 0.05).unwrap();
        let same = vec![(vec![true; 3], 1.0); 4];
        assert_eq!(screen.record(&same), Err(ScreenError::Design));
        assert_eq!(screen.record(&vec![(vec![true], 1.0); 4]), Err(ScreenError::Design));
        assert!(matches!(screen.record(&[(vec![true; 3], f64::NAN)]), Err(ScreenError::Outcome { trial: 1, .. })));
        assert_eq!(screen.record(&same[..2]), Ok(RoundOutcome::Discarded));
        let a = screen.assessment();
        assert_eq!((a.rounds, a.discarded_rounds, a.trials, a.effects[0].estimate), (0, 1, 2, None));
    }

    #[test]
    fn the_adsl_table_gives_both_main_effects_and_the_interaction() {
        // 8 Mbit/s service: MTU 1400, 1500 by RWIN 16000, 21000; Mbit/s.
        let t = two_by_two([[1.46, 1.53], [1.58, 1.62]]);
        assert!((t.first - 0.105).abs() < 1e-12 && (t.second - 0.055).abs() < 1e-12);
        assert!((t.interaction + 0.015).abs() < 1e-12);
        assert!((t.first_ratio.unwrap() - (1.58 * 1.62 / (1.46 * 1.53f64)).sqrt()).abs() < 1e-12);
        // What multiplies has no interaction on the scale of logs.
        assert!((two_by_two([[1.0, 2.0], [3.0, 6.0]]).interaction_ratio.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(two_by_two([[0.0, 2.0], [3.0, 6.0]]).first_ratio, None);
    }
}
