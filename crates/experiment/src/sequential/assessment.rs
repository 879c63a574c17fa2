use super::continuation::{Continuation, Enough};
use super::plateau::{LevelState, LevelTest, Plateau, Search};
use super::shares::{ArmShare, all_same, gain_at_most};
use super::strict::Strict;
use super::{Candidate, Config, DroppedSetting, Experiment, Method, StopReason};
use crate::distributions;
use crate::eprocess::{bold_upper_bound, lower_bound_of, upper_bound_of};
use crate::ols::BlockedFit;
use crate::regret::anytime_half_width;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// The gains of which is said how many rounds they need.
const GAINS: [f64; 2] = [0.05, 0.20];

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// A setting is shown to be faster than the current one.
    Faster,
    /// The experiment ran to its end and shows no setting to be faster.
    NoDifference,
    /// It was stopped, or still runs, and shows no setting to be faster so far.
    Stopped,
}

/// What an experiment allows one to say. Ratios are of typical goodput, as `e^difference` of logs.
///
/// Bounds, claims and evidence come from the randomisation alone and hold however often one looks. Estimates, their
/// standard errors, `regret`, `noise` and `needed` come from the blocked model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The answer in one word.
    pub kind: VerdictKind,
    /// The recommended setting: of those shown to be faster the one with the largest estimate, else 0, the current one.
    pub pick: usize,
    /// The setting with the largest estimate, shown or not; 0 if there is no estimate yet.
    pub leader: usize,
    /// Why no further round is drawn; `None` while the experiment goes on.
    pub stop: Option<StopReason>,
    /// Rounds that count.
    pub rounds: usize,
    /// Rounds that were cut short and don't count.
    pub discarded_rounds: usize,
    /// Trials, those of discarded rounds included.
    pub trials: usize,
    /// α: the probability of any false "faster", ever.
    pub alpha: f64,
    /// The share below which differences are not worth pursuing.
    pub indifference: f64,
    /// Every setting, by number.
    pub arms: Vec<ArmAssessment>,
    /// A gain of less than this share isn't worth a change.
    pub relevant: f64,
    /// The log of the largest gain that isn't excluded (with probability 1 − α for all settings together); `None` while
    /// one of the settings that were kept can't be excluded. Settings without a bound that left the race are not in it.
    pub gain_at_most: Option<f64>,
    /// Whether every setting is shown to be the same as the current one within the indifference.
    pub all_same: bool,
    /// By which share at most the pick is slower than the best setting tested (with probability 1 − α); `None` while
    /// nothing can be said.
    pub regret: Option<f64>,
    /// The noise of a trial about its round; `None` without a degree of freedom.
    pub noise: Option<Noise>,
    /// How many more rounds it would take to show a gain of 5 % and of 20 %, once it has stopped without having shown any.
    pub needed: Vec<NeededRounds>,
    /// The smallest sufficient level, if it was sought.
    pub plateau: Option<PlateauAssessment>,
    /// Whether [`Experiment::resume`] finds a question open: candidates that race, or did when the budget was given up; gains that
    /// aren't ruled out of those that left the race by estimate; levels of a plateau.
    #[serde(skip)]
    pub may_go_on: bool,
    /// Settings of which nothing is said: see [`Assessment::without`].
    #[serde(skip)]
    pub unset: BTreeSet<usize>,
}

impl Assessment {
    /// The settings that left the race before a gain of theirs could be excluded: `gain_at_most` says nothing of them.
    pub fn not_excluded(&self) -> impl Iterator<Item = &ArmAssessment> {
        let fewest = fewest_to_exclude(self.alpha);
        self.compared().filter(move |arm| arm.rounds < fewest)
    }

    /// Whether it ended without showing anything, and nobody can go on with it: [`Assessment::may_go_on`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.kind != VerdictKind::Faster && self.stop.is_some() && !self.may_go_on
    }

    /// Whether there is nothing to compare with: more than half of the current setting's trials weren't completed, and none is shown to
    /// be faster. That others do as badly then says nothing.
    #[must_use]
    pub fn lacks_current(&self) -> bool {
        self.kind != VerdictKind::Faster && self.arms.first().is_some_and(|current| current.mostly_bad)
    }

    /// How many of the current setting's trials failed, and of how many, where a setting is shown to be faster since most of them moved
    /// nothing: by how much it is faster has no meaning then.
    #[must_use]
    pub fn works_alone(&self) -> Option<(usize, usize)> {
        let pick = self.arms.get(self.pick).filter(|arm| self.kind == VerdictKind::Faster && arm.at_least.is_none());
        pick.and(self.arms.first()).map(|current| (current.failed, current.trials - current.void))
    }

    /// The fewest rounds of a setting after which any gain of it can be excluded, however clear it is.
    #[must_use]
    pub fn fewest_to_exclude(&self) -> usize {
        fewest_to_exclude(self.alpha)
    }
}

/// The fewest rounds of a setting after which gains of it can be excluded, however alike it and the current one are.
#[must_use]
pub fn fewest_to_exclude(alpha: f64) -> usize {
    (1..1_000).find(|n| bold_upper_bound(&vec![0.0; *n], 1.0 / alpha).is_finite()).unwrap_or(1_000)
}

/// What is known of one setting against the current one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmAssessment {
    /// Its number.
    pub arm: usize,
    /// Rounds in which both it and the current setting have a value.
    pub rounds: usize,
    /// Trials, all kinds together.
    pub trials: usize,
    /// Attempts that said nothing and were repeated or left out: refused by the remote host, or spoilt by this machine.
    pub spoilt: usize,
    /// Attempts that somebody ended and that were run anew: their rounds count as lost.
    pub interrupted: usize,
    /// Evidence that its attempts say nothing more often than those of the current setting.
    pub spoilt_more: f64,
    /// Whether it has the evidence of a claim only if rounds in which one of the two was spoilt more often than the other, or was
    /// interrupted, aren't counted as lost: then nothing is claimed.
    pub doubtful: bool,
    /// Whether more than half of its trials weren't completed: then nothing is claimed.
    pub mostly_bad: bool,
    /// Trials that the deadline cut off.
    pub incomplete: usize,
    /// Trials without a connection or a byte.
    pub failed: usize,
    /// Trials that say nothing.
    pub void: usize,
    /// τ̂, the log of the estimated ratio; `None` without data.
    pub estimate: Option<f64>,
    /// The estimated ratio.
    pub ratio: Option<f64>,
    /// The standard error of `estimate`.
    pub standard_error: Option<f64>,
    /// The two-sided p value of `estimate` in the blocked model, as if it had been looked at once. Claims nothing.
    pub p_value: Option<f64>,
    /// The lower end of an interval of the log of the ratio that holds with both its ends, for all settings together, at all
    /// times, with probability 1 − α; `None` if nothing can be excluded yet.
    pub lower: Option<f64>,
    /// Its upper end.
    pub upper: Option<f64>,
    /// The log of the ratio is at least this, for all settings together with probability 1 − α; `None` if nothing can be
    /// excluded yet.
    pub at_least: Option<f64>,
    /// Where it is shown to be slower: the log of the ratio is at most this, with the same probability.
    #[serde(skip)]
    pub at_most: Option<f64>,
    /// The log of a ratio that doesn't owe to having been chosen for being large: half-way between the estimate and
    /// `at_least` where it is shown to be faster. As seen so far.
    pub cautious: Option<f64>,
    /// Whether it is shown to be faster, and by so little on average that it isn't worth a change.
    pub faster_by_little: bool,
    /// The largest evidence for "faster" so far.
    pub evidence: f64,
    /// The evidence at the end, which multiplies with that of other experiments, as far as a claim may rest on it: rounds in which one
    /// of the two was spoilt more often, or was interrupted, count as lost, and where nothing is claimed since most of its trials
    /// weren't completed, it speaks for nothing.
    pub evidence_together: f64,
    /// The evidence that a claim needs; `None` for the current setting.
    pub needed: Option<f64>,
    /// The round after which it was shown to be faster.
    pub claimed: Option<usize>,
    /// Whether it is shown to be slower.
    pub slower: bool,
    /// The evidence for "slower"; it needs as much.
    pub evidence_slower: f64,
    /// Whether it is shown to be the same within the indifference, by itself or together with all others.
    pub equivalent: bool,
    /// When and why it left the race.
    pub dropped: Option<DroppedSetting>,
    /// Evidence that it fails more often than the current setting, from the rounds in which one of the two failed.
    pub fails_more: f64,
    /// Σbytes/Σtime over that of the current setting, in the rounds that both share; speaks of the total, stalls
    /// included, where `ratio` speaks of the typical trial. Of trials that are judged by a score, Σ(score·time)/Σtime: what they move
    /// beside it isn't compared.
    pub total_ratio: Option<f64>,
    /// Round and evidence after it, for a plot.
    pub series: Vec<(usize, f64)>,
    /// What it alone says of `gain_at_most` and `all_same`.
    #[serde(skip)]
    pub(super) share: ArmShare,
}

/// The noise of one trial about its round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// σ̂ of the log outcome.
    pub sigma: f64,
    /// The coefficient of variation, √(e^σ̂² − 1).
    pub cv: f64,
    /// Degrees of freedom.
    pub df: usize,
}

/// What it takes to show a gain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NeededRounds {
    /// The gain as a share.
    pub gain: f64,
    /// Rounds altogether after which it would show in four of five experiments.
    pub rounds: usize,
    /// Of those, rounds still to come.
    pub more_rounds: usize,
    /// Trials in them.
    pub more_trials: usize,
}

/// What is known of the smallest sufficient level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlateauAssessment {
    /// Whether levels are compared with the best of all levels instead of the anchor.
    pub strict: bool,
    /// The setting that levels are compared with; in the strict search the level with the largest estimate.
    pub anchor: usize,
    /// By which share a level may lie behind.
    pub epsilon: f64,
    /// Only rounds after this one count (those before chose the anchor).
    pub since_round: usize,
    /// The smallest level shown to be within ε; the anchor itself if none is.
    pub smallest: usize,
    /// Whether further rounds could still change the answer.
    pub settled: bool,
    /// The levels below the anchor, ascending; in the strict search all levels.
    pub levels: Vec<LevelAssessment>,
}

/// What is known of one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelAssessment {
    /// The setting.
    pub arm: usize,
    /// What is shown.
    pub verdict: LevelVerdict,
    /// The largest evidence for "within ε" so far.
    pub evidence: f64,
    /// The evidence that it needs.
    pub needed: f64,
    /// The estimated ratio to the anchor.
    pub ratio: Option<f64>,
    /// The standard error of the log of `ratio`.
    pub standard_error: Option<f64>,
    /// Round and evidence after it, for a plot.
    pub series: Vec<(usize, f64)>,
}

/// What is shown of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelVerdict {
    /// Within ε of the anchor, as is every level between; in the strict search, within ε of the best.
    Within,
    /// By the model's estimate clearly more than ε behind.
    Below,
    /// Neither.
    Undecided,
}

/// Everything that can be said of the experiment now.
pub(super) fn assess(e: &Experiment) -> Assessment {
    let fit = e.fit().clone();
    let pick = e.best_claimed(&fit).unwrap_or(0);
    let leader = e.leader(&fit, 0).map_or(0, |(arm, _)| arm);
    let shares: Vec<ArmShare> = e.arms.iter().map(|c| ArmShare::of(c, e.config.alpha)).collect();
    let noise = fit.variance.map(|v| Noise { sigma: v.sqrt(), cv: v.exp_m1().sqrt(), df: fit.df });
    // What wasn't completed counts over all the time that it had, which says nothing of how alike two are.
    let is_bad = |arm: usize| e.arms[arm].counts.mostly_bad();
    let comparable = pick != 0 || !is_bad(0);
    let all_same = !(0..e.arms.len()).any(is_bad) && all_same(shares.iter().skip(1), e.config.indifference);
    Assessment {
        kind: kind(pick, e.stop),
        pick,
        leader,
        stop: e.stop,
        rounds: e.rounds,
        discarded_rounds: e.discarded,
        trials: e.trials,
        alpha: e.config.alpha,
        indifference: e.config.indifference,
        relevant: e.config.relevant,
        gain_at_most: gain_at_most(shares.iter().skip(1)).filter(|_| comparable),
        all_same,
        arms: (0..e.arms.len())
            .map(|arm| {
                let found = assess_arm(arm, &e.arms[arm], &fit, &e.config);
                // What is shown of all of them together is shown of each.
                let equivalent = arm != 0 && all_same || found.equivalent && !is_bad(arm) && !is_bad(0);
                ArmAssessment { equivalent, share: shares[arm], ..found }
            })
            .collect(),
        regret: regret(&fit, pick, e.config.alpha, e.config.arms).filter(|_| comparable),
        needed: noise
            .filter(|_| e.stop.is_some() && pick == 0 && comparable)
            .map(|n| needed(e, n, leader))
            .unwrap_or_default(),
        noise,
        plateau: e.plateau.as_ref().map(|p| assess_search(p, &fit, &is_bad)),
        may_go_on: may_go_on(e),
        unset: BTreeSet::new(),
    }
}

/// Whether [`Experiment::resume`] finds a question open, with budget enough.
fn may_go_on(e: &Experiment) -> bool {
    let is_left_out = || (1..e.arms.len()).any(|arm| e.may_gain(arm));
    match e.race {
        None | Some(StopReason::Futile) => true,
        Some(StopReason::OnlyCurrentLeft) if is_left_out() => true,
        Some(_) => e.plateau.as_ref().is_some_and(Search::may_go_on),
    }
}

fn kind(pick: usize, stop: Option<StopReason>) -> VerdictKind {
    match stop {
        _ if pick != 0 => VerdictKind::Faster,
        None | Some(StopReason::User) => VerdictKind::Stopped,
        Some(_) => VerdictKind::NoDifference,
    }
}

fn assess_arm(arm: usize, c: &Candidate, fit: &BlockedFit, config: &Config) -> ArmAssessment {
    let estimate = fit.estimate(arm);
    let standard_error = estimate.and(fit.standard_error(arm, 0));
    let t = estimate.zip(standard_error).map(|(own, se)| own / se);
    let Bounds { lower, upper, at_least, at_most } = match estimate {
        _ if arm == 0 => Bounds::itself(),
        Some(own) if c.counts.has_empty() && c.counts.has_ratio() => Bounds::of(c).around(own),
        Some(_) if c.counts.has_ratio() => Bounds::of(c),
        _ => Bounds::unknown(),
    };
    let same = config.indifference.ln_1p();
    let shown = c.is_shown();
    let peak = c.series.iter().map(|(_, log)| *log).fold(0.0, f64::max);
    ArmAssessment {
        arm,
        rounds: c.differences.len(),
        trials: c.counts.trials,
        incomplete: c.counts.incomplete,
        failed: c.counts.failed,
        void: c.counts.void,
        spoilt: c.counts.spoilt,
        interrupted: c.counts.interrupted,
        spoilt_more: c.spoilt_more.evidence(),
        doubtful: c.claimed.is_some() && c.is_doubtful(),
        mostly_bad: c.counts.mostly_bad(),
        estimate,
        ratio: estimate.map(f64::exp),
        standard_error,
        p_value: t.filter(|t| t.is_finite()).map(|t| distributions::t_two_sided(t, fit.df as f64)),
        lower,
        upper,
        at_least,
        // That it is shown at all says that it is below 0.
        at_most: at_most.filter(|_| arm != 0 && c.is_slower()).map(|most| most.min(0.0)),
        cautious: estimate.zip(at_least).filter(|_| shown).map(|(own, least)| f64::midpoint(own.max(least), least)),
        faster_by_little: c.is_ahead_by_little(),
        evidence: c.claimed.map_or(peak, |claim| claim.log_evidence.max(peak)).exp(),
        evidence_together: c.evidence_together(),
        needed: Some(c.threshold).filter(|t| t.is_finite()),
        claimed: c.claimed.filter(|_| shown).map(|claim| claim.round),
        slower: arm != 0 && c.is_slower(),
        evidence_slower: c.slower.evidence(),
        equivalent: arm != 0 && lower.is_some_and(|l| l >= -same) && upper.is_some_and(|u| u <= same),
        dropped: c.dropped,
        fails_more: c.fails_more.evidence(),
        total_ratio: if arm == 0 { None } else { c.counts.total_ratio() },
        series: exponentials(&c.series),
        share: ArmShare::default(),
    }
}

/// What the log of a ratio lies between.
struct Bounds {
    lower: Option<f64>,
    upper: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

impl Bounds {
    /// Of the current setting over itself.
    fn itself() -> Self {
        Self { lower: Some(0.0), upper: Some(0.0), at_least: Some(0.0), at_most: Some(0.0) }
    }

    /// Of what has no ratio: the differences are made of what a trial without a byte counts as.
    fn unknown() -> Self {
        Self { lower: None, upper: None, at_least: None, at_most: None }
    }

    /// The bounds now. What is claimed stays so: the one-sided lower bound is at least what it was then, for all of them hold
    /// together. Each end of the interval takes half of the error.
    fn of(c: &Candidate) -> Self {
        let finite = |bound: f64| Some(bound).filter(|b| b.is_finite());
        let at_least = finite(lower_bound_of(&c.compared, c.threshold));
        Self {
            lower: finite(lower_bound_of(&c.compared, 2.0 * c.threshold)),
            upper: finite(upper_bound_of(&c.compared, 2.0 * c.threshold)),
            at_least: c
                .claimed
                .filter(|_| !c.is_doubtful())
                .map(|claim| claim.lower_bound)
                .into_iter()
                .chain(at_least)
                .reduce(f64::max),
            at_most: finite(upper_bound_of(&c.compared, c.threshold)),
        }
    }

    /// No tighter than that they hold the estimate: it leaves out the trials that moved nothing, and the differences have them as if they
    /// had moved next to nothing.
    fn around(self, estimate: f64) -> Self {
        Self {
            lower: self.lower.map(|bound| bound.min(estimate)),
            upper: self.upper.map(|bound| bound.max(estimate)),
            at_least: self.at_least.map(|bound| bound.min(estimate)),
            at_most: self.at_most.map(|bound| bound.max(estimate)),
        }
    }
}

/// The share by which the pick is at most slower than the best setting tested.
fn regret(fit: &BlockedFit, pick: usize, alpha: f64, arms: usize) -> Option<f64> {
    let alpha = 2.0 * alpha / (arms - 1) as f64;
    let (variance, own) = (fit.variance?, fit.estimate(pick)?);
    let behind = (0..arms).filter(|arm| *arm != pick).filter_map(|arm| {
        let width = anytime_half_width(variance, fit.unit_variance(arm, pick), fit.df as f64, alpha);
        Some(fit.estimate(arm)? - own + width)
    });
    let most = behind.fold(0.0, f64::max);
    most.is_finite().then(|| -(-most).exp_m1())
}

/// What a continuation of this experiment takes to show these gains of the candidate that leads.
fn needed(e: &Experiment, noise: Noise, leader: usize) -> Vec<NeededRounds> {
    let candidate = if leader == 0 { e.candidate_ahead() } else { leader };
    let continued = Continuation {
        candidate: &e.arms[candidate],
        sigma: noise.sigma,
        trials: e.trials,
        round: e.round_length().max(2),
        knows_budget: e.config.method == Method::Directed,
    };
    // While it runs, what it would take if every rival stayed does.
    let rivals = e.stop.is_some() && e.config.method == Method::Directed && e.config.arms > 2;
    let row = |gain: f64| {
        let mut enough = continued.enough(gain);
        if rivals {
            enough = continued.with_rivals(e, candidate, gain, enough);
        }
        let Enough { rounds: more_rounds, trials: more_trials } = enough;
        NeededRounds { gain, rounds: e.rounds.saturating_add(more_rounds), more_rounds, more_trials }
    };
    GAINS.map(row).to_vec()
}

fn assess_search(search: &Search, fit: &BlockedFit, is_bad: &dyn Fn(usize) -> bool) -> PlateauAssessment {
    match search {
        Search::Anchored(p) => assess_plateau(p, search.settled(), fit, is_bad),
        Search::Strict(s) => assess_strict(s, fit, is_bad),
    }
}

fn assess_plateau(p: &Plateau, settled: bool, fit: &BlockedFit, is_bad: &dyn Fn(usize) -> bool) -> PlateauAssessment {
    let complete = p.tests.iter().take_while(|test| !is_bad(test.arm) && !is_bad(p.anchor)).count();
    let shown = p.shown().min(complete);
    let level = |(i, test): (usize, &LevelTest)| LevelAssessment {
        arm: test.arm,
        verdict: match test.state {
            _ if i < shown => LevelVerdict::Within,
            LevelState::Below => LevelVerdict::Below,
            _ => LevelVerdict::Undecided,
        },
        evidence: test.peak.max(0.0).exp(),
        needed: p.need.exp(),
        ratio: ratio(fit, test.arm, p.anchor),
        standard_error: fit.standard_error(test.arm, p.anchor),
        series: exponentials(&test.series),
    };
    PlateauAssessment {
        strict: false,
        anchor: p.anchor,
        epsilon: p.epsilon,
        since_round: p.since,
        smallest: shown.checked_sub(1).map_or(p.anchor, |last| p.tests[last].arm),
        settled,
        levels: p.tests.iter().enumerate().map(level).rev().collect(),
    }
}

fn assess_strict(s: &Strict, fit: &BlockedFit, is_bad: &dyn Fn(usize) -> bool) -> PlateauAssessment {
    let reached = |i: usize| s.reached(i) && !is_bad(s.levels[i].arm) && !is_bad(s.leader);
    let level = |i: usize| {
        let level = &s.levels[i];
        let verdict = match (reached(i), level.below) {
            (true, _) => LevelVerdict::Within,
            (_, true) => LevelVerdict::Below,
            _ => LevelVerdict::Undecided,
        };
        let peak = s.log_evidence(i);
        LevelAssessment {
            arm: level.arm,
            verdict,
            evidence: if peak.is_finite() { peak.max(0.0).exp() } else { 1.0 },
            needed: s.needed(i),
            ratio: ratio(fit, level.arm, s.leader),
            standard_error: fit.standard_error(level.arm, s.leader),
            series: exponentials(&level.series),
        }
    };
    PlateauAssessment {
        strict: true,
        anchor: s.leader,
        epsilon: s.epsilon,
        since_round: 0,
        smallest: (0..s.levels.len()).find(|i| reached(*i)).map_or(s.leader, |i| s.levels[i].arm),
        settled: s.settled(),
        levels: (0..s.levels.len()).map(level).collect(),
    }
}

fn ratio(fit: &BlockedFit, arm: usize, anchor: usize) -> Option<f64> {
    Some((fit.estimate(arm)? - fit.estimate(anchor)?).exp())
}

/// More points than this no plot can show.
const MOST_POINTS: usize = 2_000;

/// The evidence after rounds, thinned if there are very many; the last one always stays.
fn exponentials(series: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let step = series.len().div_ceil(MOST_POINTS).max(1);
    let kept = series.iter().enumerate().filter(|(i, _)| (series.len() - 1 - i).is_multiple_of(step));
    kept.map(|(_, (round, log))| (*round, log.exp())).filter(|(_, e)| e.is_finite()).collect()
}
