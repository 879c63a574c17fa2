use serde::Serialize;
use wt_agent::AgentEvent;
use wt_compare::CompareEvent;
use wt_compare::prove::ProveEvent;
use wt_forecast::CalibrateEvent;
use wt_prober::first_window::FirstWindowEvent;
use wt_prober::mtu::MtuEvent;
use wt_prober::path::PathEvent;
use wt_prober::trace::TraceEvent;
use wt_setup::controls::LoadAnswer;
use wt_setup::lab::LabUpAnswer;
use wt_setup::serve::ServeAnswer;
use wt_steer::TrafficEvent;
use wt_tune::TuneEvent;

/// What happens while an operation runs: an object with the field `event`, which says which.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// In a calibration.
    Calibrate(CalibrateEvent),
    /// In a search for the path MTU.
    Mtu(MtuEvent),
    /// In a trace.
    Trace(TraceEvent),
    /// In a look at a path.
    Path(PathEvent),
    /// In a survey of first windows.
    FirstWindow(FirstWindowEvent),
    /// In an experiment.
    Tune(TuneEvent),
    /// In an experiment on a server's connections.
    Traffic(TrafficEvent),
    /// At an agent of a fleet.
    Agent(AgentEvent),
    /// In a comparison.
    Compare(CompareEvent),
    /// While a change is proved.
    Prove(ProveEvent),
    /// In a lab that stays up.
    Lab(LabEvent),
    /// Of what goes on until it is cancelled.
    Begun(BegunEvent),
}

/// What goes on until it is cancelled has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum BegunEvent {
    /// A congestion control is in the kernel.
    Loaded(LoadAnswer),
    /// A device is watched.
    Watching,
    /// A server listens.
    Listening(ServeAnswer),
    /// A server finishes running tests.
    Draining,
}

/// What happens in a lab that stays up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LabEvent {
    /// It is up.
    Up(LabUpAnswer),
}
