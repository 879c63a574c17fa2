//! What the path carries, learnt from a transfer with the settings as they are.

use super::event::{Sink, TuneEvent};
use super::inspect::inspect;
use super::live::{LEAST, Live, measured};
use super::plan::{Plan, aside};
use super::session::{Pilot, Session};
use std::time::Duration;
use wt_live::is_near;
use wt_problem::{Fault, Problem};
use wt_setup::{Budget, tunnel_problem};
use wt_sys::clock::unix_us;
use wt_trial::{Amount, Direction, PathFacts, Phase, Status, TrialOutcome, TrialSpec, Tunnel, Workload};
use wt_units::{BitsPerSecond, Bytes};

/// Of a budget of bytes, the pilot takes at most this part.
const PILOT_PART: u64 = 20;
/// And takes no longer than this beyond its time.
const PILOT_PATIENCE: Duration = Duration::from_secs(10);
/// No path that carries TCP in earnest has smaller segments (RFC 9293 section 3.7.1, less the options).
const LEAST_MSS: u64 = 500;
/// With less than this a pilot has shown nothing: a segment or so.
const NOTHING: u64 = 2000;
/// How often each server may refuse the pilot.
const PILOTS: usize = 3;

/// What to try after a server has said no: one of ours says nothing to whoever hasn't its key.
pub(crate) fn after_refusal(why: &str) -> &'static str {
    if why.contains(wt_load::NO_GREETING) {
        "--key-file: is it the server's serve.key? windtunnel serve shows the address with its key; otherwise try again later"
    } else {
        "try again later, or another server"
    }
}

impl<T: Tunnel> Session<'_, T> {
    /// Learns what the path carries with the settings as they are.
    pub(crate) fn pilot_live(&mut self, facts: &PathFacts, events: Sink<'_>) -> Result<Pilot, Problem> {
        let rtt = Duration::from_micros(facts.rtt_us);
        let length = (rtt * 20).clamp(Duration::from_millis(1500), Duration::from_secs(10));
        let direction = self.request.payload_direction();
        let budget =
            if let Some(Budget::Size(total)) = self.request.budget { Some(total.get() / PILOT_PART) } else { None };
        events(TuneEvent::note(format!("measuring what the path carries first ({:.1} s)", length.as_secs_f64())));
        let mut size = match (budget, direction) {
            (Some(part), Direction::Down) => Some(part.max(LEAST)),
            (None, Direction::Down) => None,
            (None, Direction::Up) if self.live.as_ref().is_some_and(|live| live.by_time) => None,
            (part, Direction::Up) => Some(part.unwrap_or(u64::MAX).clamp(LEAST, 4 * LEAST)),
        };
        let mut told: Vec<String> = Vec::new();
        loop {
            let amount = size.map_or(Amount::Time(length), |size| Amount::Size(Bytes(size)));
            let pilot = self.pilot_of(facts, amount, length, events)?;
            for note in &pilot.1.notes {
                // What holds for this upload holds for the next one, too.
                if !told.contains(note) {
                    events(TuneEvent::note(note));
                    told.push(note.clone());
                }
            }
            self.look_where_it_led(facts, &pilot.1, events);
            let spent = self.live.as_ref().map_or(0, |live| live.spent.get()) + pilot.1.bytes;
            let larger = size
                .map(|size| size * 8)
                .filter(|larger| direction == Direction::Up && spent + larger <= budget.unwrap_or(256 << 20));
            if let Some(live) = &self.live {
                live.spent.set(spent);
                live.rate.set(Some(BitsPerSecond(pilot.1.goodput_bps() as u64)).filter(|rate| rate.get() > 0));
                live.length.set(pilot.1.observed.length);
                live.mss.set(pilot.1.observed.mss.filter(|mss| *mss >= LEAST_MSS));
            }
            // An upload that was over at once says nothing of the rate.
            match larger {
                Some(larger) if pilot.1.elapsed_us < 500_000 && !self.cancel.is_cancelled() => size = Some(larger),
                _ => {
                    let live = self.live.as_ref().filter(|_| !self.request.no_model);
                    let oracle = live.and_then(|live| live.oracle(&measured(live, facts, &pilot.1), direction));
                    self.oracle = oracle.map(|oracle| oracle.holding(self.tunnel.held()));
                    return Ok(pilot);
                }
            }
        }
    }

    /// Takes down who served the pilot, and looks at the path to it if that is another address than the one looked at: a redirection
    /// led there, or the servers before it were of no use.
    fn look_where_it_led(&mut self, facts: &PathFacts, pilot: &TrialOutcome, events: Sink<'_>) {
        let (Some(live), Some((url, peer))) = (&mut self.live, self.tunnel.asked_last()) else { return };
        let now: Vec<String> = self.tunnel.target().split(' ').map(str::to_owned).collect();
        let named = live.description.targets.replace(now);
        if named != live.description.targets && live.description.asked.is_none() {
            live.description.asked = named;
        }
        live.near &= is_near(peer.ip());
        if live.description.address.replace(peer.ip()).is_none_or(|before| before == peer.ip()) {
            return;
        }
        events(TuneEvent::note(format!("served by {url}, at {}: looking at the path to there", peer.ip())));
        let looked = inspect(self.request, &url, peer, self.turns.cancel(self.cancel), events);
        let (facts, loss) = looked.map_or_else(
            // It has just served: what it showed then is enough to go on.
            |_| (PathFacts { rtt_us: pilot.observed.min_rtt_us.unwrap_or(facts.rtt_us), ..facts.clone() }, None),
            |found| (found.facts, found.loss),
        );
        (live.elsewhere, live.loss) = (Some(facts), loss);
    }

    fn pilot_of(
        &mut self,
        facts: &PathFacts,
        amount: Amount,
        length: Duration,
        events: Sink<'_>,
    ) -> Result<Pilot, Problem> {
        let spec = TrialSpec {
            phase: Phase::Pilot,
            workload: Workload::Bulk { direction: self.request.payload_direction(), amount },
            deadline: length + PILOT_PATIENCE,
            ..aside(&self.plan(facts), Phase::Pilot)
        };
        let mut said = String::new();
        let attempts = PILOTS * self.live.as_ref().map_or(1, Live::targets);
        for _ in 0..attempts {
            let started = unix_us();
            let outcome =
                self.tunnel.run(&spec, self.turns.cancel(self.cancel)).map_err(|error| tunnel_problem(&error))?;
            match outcome.status {
                Status::Invalid => {}
                Status::Failed => return Err(self.useless(&outcome, length)),
                Status::Aborted => {}
                _ if outcome.bytes < NOTHING => return Err(self.useless(&outcome, length)),
                _ => return Ok((spec, outcome, started)),
            }
            if self.cancel.is_cancelled() {
                return Err(Problem::new(
                    Fault::Stopped,
                    "stopped before anything was measured; nothing was journaled",
                ));
            }
            if self.turns.is_cut() && !self.turns.take(self.cancel, None, events)? {
                continue;
            }
            let before = std::mem::replace(&mut said, outcome.notes.join("; "));
            if said != before {
                events(TuneEvent::note(&said));
            }
            if self.tunnel.gives_up_round() {
                break;
            }
        }
        let what = format!("{} refused {attempts} times in a row", self.tunnel.target());
        let hint = after_refusal(&said);
        Err(Problem::new(Fault::Remote, what).because(said).hint(hint))
    }

    /// Nothing could be learnt from the pilot.
    fn useless(&self, outcome: &TrialOutcome, length: Duration) -> Problem {
        let target = self.tunnel.target();
        let (bytes, seconds) = (outcome.bytes, outcome.elapsed_us as f64 / 1e6);
        // A transfer that ended long before its time had no more to move; one that took it was slow.
        if outcome.status == Status::Completed && seconds < length.as_secs_f64() / 2.0 {
            return Problem::new(Fault::Remote, format!("{target}: {bytes} bytes are too few to measure anything"))
                .because("the file ends before a connection has begun to show its speed")
                .hint("name a file of some megabytes: one that takes a second or more");
        }
        let mut notes = outcome.notes.clone();
        if notes.is_empty() {
            notes.push(format!("{bytes} bytes in {seconds:.1} s"));
        }
        let host = self.request.target.as_deref().and_then(|url| url.parse::<wt_load::Url>().ok()).map(|url| url.host);
        Problem::new(Fault::Remote, format!("{target}: nothing could be measured: {}", notes.join("; ")))
            .because("the server is too slow or broken, or the path drops full-sized packets")
            .hint(format!(
                "windtunnel mtu {} tells whether large packets get through",
                host.as_deref().unwrap_or("HOST")
            ))
    }

    /// What a dry run says beyond the settings.
    pub(crate) fn foreseen(&self, plan: &Plan, trials: usize) -> Option<String> {
        let live = self.live.as_ref()?;
        let bytes = self.expected_bytes(plan, trials)?;
        let assumed = format!(
            "Nothing was transferred yet: windows and bytes are for {}, until a pilot has measured the path",
            live.rate().human()
        );
        Some(if live.rate.get().is_none() { format!("{bytes}\n{assumed}") } else { bytes })
    }

    /// How long it may take, and how many bytes it may move.
    pub(crate) fn expected_bytes(&self, plan: &Plan, trials: usize) -> Option<String> {
        Some(format!("about {} of payload at most", Bytes(self.bytes_at_most(plan, trials)?).human()))
    }

    /// Bytes of payload that so many trials and the one that warms up move at most, on the real path.
    pub(crate) fn bytes_at_most(&self, plan: &Plan, trials: usize) -> Option<u64> {
        let live = self.live.as_ref()?;
        let each = plan.workload.size().unwrap_or_else(|| live.rate() * plan.length()).get();
        Some(each.saturating_mul(trials as u64 + 1))
    }
}
