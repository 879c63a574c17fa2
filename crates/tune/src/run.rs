//! From a request to its answer.

use super::answer::TuneAnswer;
use super::event::Sink;
use super::measure::Start;
use super::path_rtt::{chosen_by, measured};
use super::request::TuneRequest;
use super::session::{PreparedExperiment, Session};
use super::turns::RoundTurns;
use super::{finish, live, open, resume};
use wt_forecast::{Oracle, kernel_stack};
use wt_lab::LabTunnel;
use wt_problem::Problem;
use wt_setup::Controls;
use wt_trial::{Cancel, Holding, Tunnel};
use wt_units::{Bytes, Knob};
use wt_wire::{Headers, IpVersion, Transport};

/// What stands before the payload of a segment of ours: IPv4, and TCP with timestamps.
const SEGMENT: Headers = Headers { ip: IpVersion::V4, transport: Transport::Tcp { options_len: 12 } };

/// Runs an experiment, or says what one would do.
///
/// A lab moves this process into a user namespace, which takes a process with a single thread: whoever has more asks a
/// process of its own.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn run(request: &TuneRequest, cancel: &Cancel, events: Sink<'_>) -> Result<TuneAnswer, Problem> {
    request.check()?;
    if let Some(key) = &request.resume {
        return resume::run(request, key, cancel, events);
    }
    if let Some(target) = &request.target {
        return open::run(request, target, cancel, events);
    }
    let scenario = wt_setup::lab::load(request.lab.as_deref().unwrap_or_default())?;
    let bottleneck = scenario.bottleneck().framing.clone();
    // Only where packets are cut into cells does a smaller packet waste less: look one cell below.
    let best_mtu = |most: u64| {
        bottleneck.cells(Bytes(most))?;
        bottleneck.best_mtu(Bytes(most.saturating_sub(47)), SEGMENT).ok().map(Bytes::get)
    };
    if request.model {
        let tunnel = wt_forecast::model::tunnel(&scenario, wt_forecast::host_stack())?;
        let held = request.held(&tunnel)?;
        let controls = wt_sim::cc::NAMES.map(str::to_owned).to_vec();
        let tunnel = Holding::new(tunnel, held);
        let turns = RoundTurns::of(request.turns.as_ref())?;
        let session = Session::new(request, tunnel, controls, turns, cancel);
        return Session { best_mtu: &best_mtu, ..session }.run(events);
    }
    let loaded = Controls::load(request.names())?;
    let path = scenario.clone();
    let mut tunnel = LabTunnel::new(request.start_lab(scenario)?).map_err(|error| wt_setup::lab::problem(&error))?;
    let held = request.held(&tunnel)?;
    let mut stack = kernel_stack(&tunnel);
    // Where a congestion control is set the lab lets connections begin without the default one's pacing.
    stack.pacing &= held.get(Knob::Cc).is_none();
    let oracle = if request.no_model { None } else { Oracle::new(&path, stack).map(|oracle| oracle.holding(&held)) };
    loaded.attach(&mut tunnel);
    let controls = tunnel.congestion_controls().to_vec();
    let tunnel = Holding::new(tunnel, held);
    let turns = RoundTurns::of(request.turns.as_ref())?;
    let session = Session::new(request, tunnel, controls, turns, cancel);
    Session { best_mtu: &best_mtu, oracle, ..session }.run(events)
}

impl<T: Tunnel> Session<'_, T> {
    pub(crate) fn run(mut self, events: Sink<'_>) -> Result<TuneAnswer, Problem> {
        let facts = self.tunnel.path(self.request.payload_direction());
        if self.request.screen {
            self.check_screen(&facts)?;
        }
        if self.request.dry_run {
            let plan = self.plan(&facts);
            if self.request.screen {
                return self.screen_plan(facts, &plan);
            }
            let prepared = self.prepare(facts, &plan)?;
            let on_delay = self.lacks_room_for_delay(&prepared).map(|(text, _)| text);
            return Ok(self.planned(&prepared, &plan, on_delay));
        }
        // What can't be run at all shall be told before anything is measured.
        if !self.request.screen {
            let prepared = self.prepare(facts.clone(), &self.plan(&facts))?;
            self.stands_ready(&prepared)?;
        }
        if !self.turns.take(self.cancel, None, events)? {
            return Err(Problem::stopped("stopped before anything was measured; nothing was journaled"));
        }
        let pilot = self.pilot(&facts, events)?;
        self.turns.give_back();
        if self.cancel.is_cancelled() {
            return Err(Problem::stopped("stopped before anything was measured; nothing was journaled"));
        }
        let path = match &self.live {
            Some(live) => live::measured(live, &facts, &pilot.1),
            None => measured(&facts, &pilot.1, live::payload(None, &facts, self.tunnel.header_len())),
        };
        let by = if self.live.is_some() { &path } else { chosen_by(&facts, &path, &pilot.1) };
        let plan = self.plan(by);
        if self.request.screen {
            return self.screen(path, plan, pilot, events);
        }
        let prepared = PreparedExperiment { path: path.clone(), ..self.prepare(by.clone(), &plan)? };
        self.warn_of_a_small_budget(&prepared, events);
        let start = Start::fresh(&prepared, Some(pilot))?;
        let measured = self.measure(&prepared, plan, start, events)?;
        finish::conclude(measured, None)
    }
}
