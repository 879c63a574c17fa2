use super::answer::{CdnAnswer, CdnMeasured, HopRtts, RequestMeasured, WindowMeasured};
use super::chain::Chain;
use super::model;
use super::request::CdnRequest;
use super::timed::TimedRequests;
use super::windows::{EdgeRequest, WINDOWS};
use crate::event::{CompareEvent, Sink, Subject};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use std::time::Duration;
use wt_experiment::factorial::{EffectAssessment, Run, Screen};
use wt_problem::{Fault, Problem};
use wt_trial::Cancel;

/// The probability of any false "matters", over both kinds of requests.
const ALPHA: f64 = 0.05;
/// Requests that come late by our own fault are asked again at most so often in a row.
const REPEATS: u32 = 3;
/// The least ratio that matters to anybody. On a quiet machine less than a thousandth can be shown, such as a last segment that
/// leaves in one burst with others.
pub const RELEVANT: f64 = 1.01;

/// Asks which of the four initial windows of a CDN matters on which request.
///
/// Unless the model is asked, this process moves into a user namespace, which takes a process with a single thread: whoever
/// has more asks a process of its own.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn run(request: &CdnRequest, cancel: &Cancel, events: Sink<'_>) -> Result<CdnAnswer, Problem> {
    request.check()?;
    let scenario = wt_setup::lab::load(&request.lab.path)?;
    if scenario.links.iter().filter(|link| link.hop.host.is_some()).count() != 1 {
        return Err(Problem::usage(format!("{} has not exactly one host on the way", request.lab.path))
            .hint("windtunnel lab show cdn-chain prints an example: hop = { host = \"edge\" }"));
    }
    if request.model {
        return Ok(CdnAnswer::Modelled(model::run(request, &scenario)?));
    }
    let request = CdnRequest { lab: request.lab.ordered()?, ..request.clone() };
    let lab = request.lab.start(scenario)?;
    let chain = Chain::start(lab, request.object, request.proxy)?;
    let mut session = Session { request: &request, chain, cancel, events, counter: 0 };
    Ok(CdnAnswer::Measured(session.run()?))
}

/// What is asked of the edge, with what came of it.
struct EdgeScreen {
    request: EdgeRequest,
    screen: Screen,
    timed: TimedRequests,
}

struct Session<'a> {
    request: &'a CdnRequest,
    chain: Chain,
    cancel: &'a Cancel,
    events: Sink<'a>,
    /// Names objects that nobody has asked for yet.
    counter: u64,
}

impl Session<'_> {
    fn run(&mut self) -> Result<CdnMeasured, Problem> {
        let ours = |error: &dyn std::fmt::Display| Problem::internal(error.to_string());
        let mut rng = ChaCha12Rng::seed_from_u64(self.request.lab.order_seed());
        let mut kinds = Vec::new();
        for request in EdgeRequest::ALL {
            let screen = Screen::new(WINDOWS.len(), ALPHA / 2.0).map_err(|error| ours(&error))?;
            kinds.push(EdgeScreen { request, screen, timed: TimedRequests::default() });
        }
        let rounds = self.request.rounds;
        let expected_s = self.expected().as_secs_f64();
        (self.events)(CompareEvent::Begin {
            subject: Subject::Windows,
            arms: WINDOWS.len(),
            rounds,
            trials: u32::try_from(WINDOWS.len() * EdgeRequest::ALL.len()).unwrap_or(u32::MAX).saturating_mul(rounds),
            trial_s: None,
            expected_s,
        });
        for round in 1..=rounds {
            for kind in &mut kinds {
                let mut outcomes: Vec<(Run, f64)> = Vec::new();
                for run in kind.screen.next_round(&mut rng) {
                    if self.cancel.is_cancelled() {
                        break;
                    }
                    let took = match self.timed(kind.request, &run) {
                        // Whatever failed: the rounds before count.
                        Err(_) if self.cancel.is_cancelled() => break,
                        took => took?,
                    };
                    outcomes.push((run.clone(), -took.as_secs_f64().ln()));
                    kind.timed.0.push((run, took));
                }
                kind.screen.record(&outcomes).map_err(|error| ours(&error))?;
            }
            if self.cancel.is_cancelled() {
                if round == 1 {
                    return Err(Problem::new(Fault::Stopped, "stopped in the first round"));
                }
                break;
            }
            (self.events)(CompareEvent::Round { done: round, rounds });
        }
        Ok(self.answer(&kinds))
    }

    fn answer(&self, kinds: &[EdgeScreen]) -> CdnMeasured {
        let [client_edge, edge_backend] = self.chain.round_trips().map(|rtt| rtt.as_secs_f64() * 1e3);
        let levels = (self.request.low, self.request.high);
        CdnMeasured {
            schema_version: 1,
            path: self.request.lab.path.clone(),
            proxy: self.request.proxy.name(),
            order_seed: self.request.lab.order_seed(),
            object_bytes: self.request.object.get(),
            low: levels.0,
            high: levels.1,
            fewest_rounds: fewest_rounds(),
            rtt_ms: HopRtts { client_edge, edge_backend },
            requests: kinds.iter().map(|kind| (kind.request, kind.answer(levels))).collect(),
        }
    }

    /// About how long all rounds take: eight combinations of each kind, half of them with small windows.
    fn expected(&self) -> Duration {
        let (low, high) = (self.request.low, self.request.high);
        let each =
            EdgeRequest::ALL.map(|request| self.chain.expected(request, low) + self.chain.expected(request, high));
        each.iter().sum::<Duration>() * 4 * self.request.rounds
    }

    /// One request over cold connections; again when the lab itself was late.
    fn timed(&mut self, request: EdgeRequest, run: &Run) -> Result<Duration, Problem> {
        let level = |high: bool| if high { self.request.high } else { self.request.low };
        let windows = [level(run[0]), level(run[1]), level(run[2]), level(run[3])];
        self.chain.set_windows(windows)?;
        let mut taken = None;
        for _ in 0..=REPEATS {
            self.counter += 1;
            let (took, complaint) = self.chain.request(request, self.counter)?;
            taken = Some(took);
            if complaint.is_none() {
                break;
            }
        }
        taken.ok_or_else(|| Problem::internal("a request took no time"))
    }
}

/// The fewest rounds after which a window whose large level is always as much faster is shown to be.
#[must_use]
pub fn fewest_rounds() -> u32 {
    const MOST: u32 = 1000;
    let mut rng = ChaCha12Rng::seed_from_u64(0);
    let Ok(mut screen) = Screen::new(WINDOWS.len(), ALPHA / 2.0) else { return MOST };
    for round in 1..MOST {
        let runs = screen.next_round(&mut rng);
        let outcomes: Vec<(Run, f64)> =
            runs.into_iter().map(|run| (run.clone(), f64::from(u8::from(run[0])))).collect();
        if screen.record(&outcomes).is_err() || screen.assessment().effects.iter().any(|one| one.claimed.is_some()) {
            return round;
        }
    }
    MOST
}

impl EdgeScreen {
    fn answer(&self, levels: (u32, u32)) -> RequestMeasured {
        let assessment = self.screen.assessment();
        // Each window with what is claimed of it.
        let effects: Vec<(usize, EffectAssessment)> =
            assessment.effects.into_iter().filter_map(|effect| Some((*effect.knobs.first()?, effect))).collect();
        let mut strongest: Vec<&(usize, EffectAssessment)> =
            effects.iter().filter(|(_, effect)| matters(effect)).collect();
        strongest.sort_by(|a, b| b.1.estimate.unwrap_or(0.0).total_cmp(&a.1.estimate.unwrap_or(0.0)));
        RequestMeasured {
            rounds: assessment.rounds,
            seconds: self.timed.mean(|_| true),
            matters: strongest.iter().map(|(knob, _)| WINDOWS[*knob].0).collect(),
            windows: effects.iter().map(|(knob, effect)| window(*knob, effect)).collect(),
            combinations: self.timed.hops(levels),
        }
    }
}

fn window(knob: usize, effect: &EffectAssessment) -> WindowMeasured {
    WindowMeasured {
        window: WINDOWS[knob].0,
        what: WINDOWS[knob].1,
        ratio: effect.estimate.map(f64::exp),
        lower: effect.lower.map(f64::exp),
        upper: effect.upper.map(f64::exp),
        evidence: effect.evidence,
        needed: effect.needed,
        matters: matters(effect),
        slower: effect.slower,
        faster: effect.claimed.is_some(),
    }
}

/// Whether the large level is shown to be faster, and by enough to matter.
fn matters(effect: &EffectAssessment) -> bool {
    effect.claimed.is_some() && effect.lower.is_some_and(|log| log >= RELEVANT.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rounds_that_one_gets_unasked_can_show_something() {
        assert!((2..=CdnRequest::default().rounds).contains(&fewest_rounds()), "{}", fewest_rounds());
    }
}
