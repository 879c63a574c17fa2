//! What it takes to go on: the rounds after which a true gain would show, from the evidence that there is.

use super::Experiment;
use super::candidate::Candidate;
use crate::Observation;
use crate::distributions::normal;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// So many continuations are simulated.
const CONTINUATIONS: usize = 500;
/// A gain shows in this share of them.
const CHANCE: f64 = 0.8;
/// The longest continuation that is simulated, in rounds: a few hundredths of a second.
const LONGEST: usize = 128;

/// So many continuations are simulated of experiments with rivals, which cost more.
const WITH_RIVALS: usize = 100;
/// The longest of them, in rounds: some tenths of a second, once, at an experiment's end.
const LONGEST_WITH_RIVALS: usize = 24;
/// What is longer is judged by a continuation of about so many rounds.
const HALF_OF_IT: usize = LONGEST_WITH_RIVALS / 2;

/// What a continuation takes to show a gain.
pub(super) struct Enough {
    /// Rounds.
    pub(super) rounds: usize,
    /// Trials of those.
    pub(super) trials: usize,
}

/// The same where rivals race beside the candidate: they leave, and rounds get shorter, so that the whole experiment goes on. `most`
/// is what it would take if they all stayed. The rivals are as good as the current setting.
fn with_rivals(e: &Experiment, candidate: usize, sigma: f64, gain: f64, most: Enough) -> Enough {
    let round = most.trials.div_ceil(most.rounds.max(1)).max(2);
    // At the least all rivals leave at once, and each round has two trials.
    let (mut low, mut high) = ((most.rounds * 2, None), (most, None));
    while high.0.trials - low.0 > round + high.0.trials / 16 {
        let middle = usize::midpoint(low.0, high.0.trials);
        let (share, rounds) = gone_on(e, candidate, sigma, gain, middle);
        if share >= CHANCE {
            high = (Enough { rounds, trials: middle }, Some(share));
        } else {
            low = (middle, Some(share));
        }
    }
    let ((below, Some(less)), (Enough { rounds, trials }, Some(more))) = (low, &high) else { return high.0 };
    // Between the two the share grows about evenly.
    let part = (CHANCE - less) / (more - less).max(f64::EPSILON);
    let spared = ((trials - below) as f64 * (1.0 - part)) as usize;
    Enough { rounds: rounds - (spared / round).min(rounds - 1), trials: trials - spared }
}

/// The share of continuations of so many trials in which the candidate's gain is shown, and the rounds of the longest.
fn gone_on(e: &Experiment, candidate: usize, sigma: f64, gain: f64, trials: usize) -> (f64, usize) {
    let effect = |arm: usize| if arm == candidate { gain.ln_1p() } else { 0.0 };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut shown, mut rounds) = (0, 1);
    for _ in 0..WITH_RIVALS {
        let mut one = e.clone();
        one.race_on(Some(e.trials.saturating_add(trials)));
        let mut ended = Ok(());
        while let Some(order) = one.next_round(&mut rng).filter(|_| ended.is_ok()) {
            let seen = |arm: usize| Observation::of(arm, effect(arm) + sigma * normal(&mut rng));
            let round: Vec<Observation> = order.into_iter().map(seen).collect();
            ended = one.record(&round).map(|_| ());
        }
        shown += usize::from(ended.is_ok() && one.pick() == candidate);
        rounds = rounds.max(one.rounds - e.rounds);
    }
    (shown as f64 / WITH_RIVALS as f64, rounds)
}

/// An experiment that goes on for some rounds, of which only one candidate and the current setting are looked at.
pub(super) struct Continuation<'a> {
    pub(super) candidate: &'a Candidate,
    /// The noise of a trial.
    pub(super) sigma: f64,
    /// Trials so far.
    pub(super) trials: usize,
    /// Trials of a round.
    pub(super) round: usize,
    /// Whether bets look at the end of the budget.
    pub(super) knows_budget: bool,
}

impl Continuation<'_> {
    /// How many more rounds show a true gain of this share with a chance of 80 %: the budget of the continuation, at the end of
    /// which it would be shown. Rounded up by a few percent where it is large, and by a fit where it is beyond all
    /// simulation.
    pub(super) fn enough(&self, gain: f64) -> Enough {
        let rounds = self.rounds(gain);
        Enough { rounds, trials: rounds.saturating_mul(self.round) }
    }

    /// The same where rivals race beside the candidate; `most` is what it would take if they all stayed. What is too long to be
    /// simulated with them is shortened by what they spare in a shorter continuation, which shows a larger gain.
    pub(super) fn with_rivals(&self, e: &Experiment, candidate: usize, gain: f64, most: Enough) -> Enough {
        if most.rounds <= LONGEST_WITH_RIVALS {
            return with_rivals(e, candidate, self.sigma, gain, most);
        }
        // Rounds grow with the square of noise over gain.
        let larger = (gain.ln_1p() * (most.rounds as f64 / HALF_OF_IT as f64).sqrt()).exp_m1();
        let shorter = self.enough(larger);
        if !(2..=LONGEST_WITH_RIVALS).contains(&shorter.rounds) {
            return most;
        }
        let all = shorter.trials;
        let spared = with_rivals(e, candidate, self.sigma, larger, shorter);
        let trials = (most.trials as f64 * spared.trials as f64 / all as f64).ceil() as usize;
        Enough { rounds: most.rounds, trials: trials.max(2 * most.rounds).min(most.trials) }
    }

    fn rounds(&self, gain: f64) -> usize {
        let enough = |rounds: usize| self.chance(gain, rounds) >= CHANCE;
        if self.far(gain) > 2 * LONGEST {
            return self.far(gain);
        }
        let doubled = std::iter::successors(Some(1), |n: &usize| Some(n * 2)).take_while(|n| *n <= LONGEST);
        let Some(mut high) = doubled.into_iter().find(|n| enough(*n)) else { return self.far(gain).max(LONGEST) };
        let mut low = high / 2;
        while high - low > 1 + high / 32 {
            let middle = usize::midpoint(low, high);
            if enough(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// The share of continuations of so many rounds in which a true gain of this share is shown by their end.
    fn chance(&self, gain: f64, rounds: usize) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (gain, spread) = (gain.ln_1p(), self.sigma * std::f64::consts::SQRT_2);
        let budget = self.trials + rounds * self.round;
        let shows = |_: &usize| {
            let mut bets = self.candidate.bets();
            (0..rounds).any(|done| {
                let used = self.trials + done * self.round;
                let left = (self.knows_budget && super::in_end_game(used, budget)).then(|| rounds - done);
                bets.push(gain + spread * normal(&mut rng), left);
                bets.log_evidence() >= self.candidate.threshold.ln()
            })
        };
        (0..CONTINUATIONS).filter(shows).count() as f64 / CONTINUATIONS as f64
    }

    /// By a fit, for what takes too long to simulate: four times the logarithm of what is needed over the square of the
    /// effect in standard deviations of a difference.
    fn far(&self, gain: f64) -> usize {
        let effect = gain.ln_1p() / (self.sigma * std::f64::consts::SQRT_2);
        let rounds = (4.0 * self.candidate.threshold.ln() / (effect * effect)).ceil();
        if rounds.is_finite() { rounds.min(1e15) as usize } else { usize::MAX }
    }
}
