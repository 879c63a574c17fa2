//! What every front end calls: [`run`] takes a [`Request`], says what happens as [`Event`]s, and returns an [`Answer`] or a
//! [`Problem`](wt_problem::Problem).
//!
//! The command line, the HTTP server, `windtunnel worker` and tests are all callers. Requests are read from JSON, and
//! answers and events are written as JSON; both are those of `--json` and `--json-stream`, with a `schema_version` in every
//! answer.
//!
//! # Example
//! ```
//! use wt_api::{Answer, Request, Services, run};
//! use wt_trial::Cancel;
//! let request = r#"{"operation": "overhead", "request": {"encap": "pppoe-llcsnap"}}"#;
//! let request: Request = serde_json::from_str(request)?;
//! let answer = run(request, &Services::default(), &mut |_| {}, &Cancel::new())?;
//! assert!(matches!(answer, Answer::Overhead(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

/// What comes out.
mod answer;
/// What happens meanwhile.
mod event;
/// What is asked.
mod request;

pub use answer::Answer;
pub use event::{BegunEvent, Event, LabEvent};
pub use request::{
    ControlName, DefaultsRequest, FileRequest, ForgetRequest, ImportRequest, JournalExportRequest, LabProbeRequest,
    Request, RestoreRequest, ScenarioRequest, UndoRequest, WhichChange,
};

use std::path::PathBuf;
use wt_compare::{cdn, controls as compared, page_load, prove, side_by_side, stacks};
use wt_journal::ExperimentConfig;
use wt_prober::{first_window, mtu, path, trace};
use wt_problem::Problem;
use wt_setup::HostAccess;
use wt_setup::lab::{LabRequest, LabUpAnswer, RunningLab};
use wt_setup::{analyse, controls, doctor, journal, lab, serve, settings, watch};
use wt_trial::Cancel;

/// What operations use where a request doesn't say otherwise.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// The journal's file; nothing means the user's own.
    pub journal: Option<PathBuf>,
    /// Where checkpoints of settings are kept; nothing means the usual place.
    pub state_dir: Option<PathBuf>,
    /// Configuration files of settings are below this folder; nothing means `/`.
    pub root: Option<PathBuf>,
}

/// Takes events as they happen, on whichever thread they do.
pub type Sink<'a> = &'a mut (dyn FnMut(Event) + Send);

/// Runs an operation to its end on this thread.
///
/// What runs in the lab (experiments, comparisons, probes, a calibration, `doctor`) moves this process into a user namespace,
/// which takes a process with a single thread: a server asks `windtunnel worker` for those.
///
/// # Errors
/// A [`Problem`] that says whose fault it is, what happened, the likely cause and what to try.
pub fn run(request: Request, services: &Services, sink: Sink<'_>, cancel: &Cancel) -> Result<Answer, Problem> {
    let file = |named: Option<PathBuf>| named.or_else(|| services.journal.clone());
    let host = || HostAccess::open(services.state_dir.as_deref(), services.root.as_deref());
    Ok(match request {
        Request::Overhead(request) => Answer::Overhead(Box::new(overhead(&request)?)),
        Request::OverheadWords => Answer::OverheadWords(wt_wire::overhead_words()),
        Request::Predict(request) => Answer::Predict(Box::new(wt_forecast::predict(&request, cancel)?)),
        Request::Replay(request) => Answer::Replay(Box::new(wt_forecast::replay(&request, cancel)?)),
        Request::Calibrate(request) => {
            let mut events = |event| sink(Event::Calibrate(event));
            Answer::Calibrate(Box::new(wt_forecast::calibrate(&request, &mut events, cancel)?))
        }
        Request::Mtu(request) => Answer::Mtu(mtu::mtu(&request, cancel, &mut |event| sink(Event::Mtu(event)))?),
        Request::Trace(request) => {
            Answer::Trace(trace::trace(&request, cancel, &mut |event| sink(Event::Trace(event)))?)
        }
        Request::Path(request) => {
            Answer::Path(Box::new(path::path(&request, cancel, &mut |event| sink(Event::Path(event)))?))
        }
        Request::FirstWindow(request) => {
            let mut events = |event| sink(Event::FirstWindow(event));
            Answer::FirstWindow(Box::new(first_window::first_window(&request, cancel, &mut events)?))
        }
        Request::Tune(mut request) => {
            request.journal = file(request.journal);
            Answer::Tune(wt_tune::run(&request, cancel, &mut |event| sink(Event::Tune(event)))?)
        }
        Request::Report(request) => report(&request.experiment, file(request.journal))?,
        Request::Compare(mut request) => {
            request.journal = file(request.journal);
            Answer::Compare(Box::new(side_by_side::run(&request)?))
        }
        Request::CompareControls(mut request) => {
            request.lab.journal = file(request.lab.journal);
            let mut events = |event| sink(Event::Compare(event));
            Answer::Controls(Box::new(compared::run(&request, cancel, &mut events)?))
        }
        Request::CompareStacks(mut request) => {
            request.lab.journal = file(request.lab.journal);
            let mut events = |event| sink(Event::Compare(event));
            Answer::Stacks(Box::new(stacks::run(&request, cancel, &mut events)?))
        }
        Request::ControlsList => Answer::ControlsList(controls::list()),
        Request::ControlShow(request) => Answer::ControlShow(Box::new(controls::show(&request.name)?)),
        Request::ControlLoad(request) => {
            let mut loaded = |answer: &controls::LoadAnswer| sink(Event::Begun(BegunEvent::Loaded(answer.clone())));
            Answer::ControlLoad(controls::hold(&request, &mut loaded, cancel)?)
        }
        Request::ControlUnload(request) => Answer::ControlUnload(controls::unload(&request)?),
        Request::StacksList => Answer::StacksList(stacks::list()),
        Request::StackRun(request) => Answer::StackRun(stacks::run_program(&request, cancel)?),
        Request::Watch(request) => {
            let mut begun = || sink(Event::Begun(BegunEvent::Watching));
            Answer::Watch(Box::new(watch::watch(&request, &mut begun, cancel)?))
        }
        Request::Serve(request) => Answer::Serve(serve_tests(&request, sink, cancel)?),
        Request::Cdn(request) => {
            Answer::Cdn(Box::new(cdn::run(&request, cancel, &mut |event| sink(Event::Compare(event)))?))
        }
        Request::TrafficStart(mut request) => {
            request.journal = file(request.journal);
            let mut events = |event| sink(Event::Traffic(event));
            Answer::Traffic(wt_steer::start(&request, &mut events, cancel)?)
        }
        Request::TrafficStatus(request) => Answer::TrafficStatus(wt_steer::status(file(request.journal).as_deref())?),
        Request::TrafficStop(mut request) => {
            request.journal = file(request.journal);
            Answer::TrafficStop(wt_steer::stop(&request)?)
        }
        Request::TrafficReport(mut request) => {
            request.journal = file(request.journal);
            Answer::TrafficReport(Box::new(wt_steer::report(&request)?))
        }
        Request::TrafficCombine(mut request) => {
            request.journal = file(request.journal);
            Answer::TrafficCombined(wt_steer::combine(&request)?)
        }
        Request::Page(mut request) => {
            request.journal = file(request.journal);
            Answer::Page(Box::new(page_load::run(&request, cancel)?))
        }
        Request::Test(mut request) => {
            request.journal = file(request.journal);
            let mut events = |event| sink(Event::Tune(event));
            Answer::Tests(Box::new(wt_tune::test(&request, cancel, &mut events)?))
        }
        Request::TestShow(request) => {
            let journal = journal::open_to_read(file(request.journal).as_deref())?;
            let stored = journal.load(&request.experiment).map_err(|error| journal::problem(&error))?;
            Answer::Tests(Box::new(wt_tune::logged(&*journal, &stored)?))
        }
        Request::SelfTest(mut request) => {
            request.journal = file(request.journal);
            let mut events = |event| sink(Event::Tune(event));
            Answer::SelfTest(Box::new(wt_tune::self_test(&request, cancel, &mut events)?))
        }
        Request::Analyse(request) => Answer::Analyse(Box::new(analyse::analyse(&request)?)),
        Request::JournalList(mut request) => {
            request.journal = file(request.journal);
            Answer::JournalList(journal::list(&request)?)
        }
        Request::JournalShow(mut request) => {
            request.journal = file(request.journal);
            Answer::JournalShow(Box::new(journal::show(&request)?))
        }
        Request::JournalSamples(mut request) => {
            request.journal = file(request.journal);
            Answer::JournalSamples(Box::new(journal::samples(&request)?))
        }
        Request::JournalExport(request) => {
            let JournalExportRequest { experiment, format, samples, file: out, journal: named } = request;
            let request = journal::ExportRequest { experiment, format, samples, journal: file(named) };
            Answer::JournalExport(journal::export_to_file(&request, &out)?)
        }
        Request::JournalImport(request) => {
            Answer::JournalImport(journal::import(file(request.journal).as_deref(), &request.files)?)
        }
        Request::JournalPush(mut request) => {
            request.journal = file(request.journal);
            Answer::JournalPush(journal::push(&request)?)
        }
        Request::JournalStatus(mut request) => {
            request.journal = file(request.journal);
            Answer::JournalStatus(journal::status(&request)?)
        }
        Request::FleetInit(request) => Answer::FleetInit(wt_agent::init(&request)?),
        Request::FleetAdd(request) => Answer::FleetAdd(Box::new(wt_agent::add(&request)?)),
        Request::FleetStatus(request) if request.server.is_empty() => {
            Answer::FleetStatus(wt_agent::status_of(services.journal.as_deref())?)
        }
        Request::FleetStatus(request) => Answer::FleetStatus(wt_agent::status(&request)?),
        Request::FleetRun(request) => Answer::FleetRun(wt_agent::run(&request)?),
        Request::FleetStop(request) => Answer::FleetStop(wt_agent::stop(&request)?),
        Request::FleetReport(mut request) => {
            if let (true, Some(journal)) = (request.server.is_empty(), &services.journal) {
                request.server = journal.display().to_string();
            }
            let experiments = wt_agent::experiments(&request)?;
            let runs = wt_agent::runs(&request)?.into_iter().map(|run| side_by_side::FleetRun {
                agent: run.agent,
                target: run.target,
                experiment: run.experiment,
                ahead_us: run.skew_us,
            });
            let runs: Vec<side_by_side::FleetRun> = runs.collect();
            Answer::Compare(Box::new(side_by_side::of_fleet(&experiments, &runs, request.server.as_ref())?))
        }
        Request::FleetApply(request) => {
            let mut events = |event| sink(Event::Agent(event));
            Answer::FleetApply(Box::new(wt_agent::apply(&request, &mut events, cancel)?))
        }
        Request::FleetUndo(request) => {
            let mut events = |event| sink(Event::Agent(event));
            Answer::FleetUndo(Box::new(wt_agent::undo(&request, &mut events, cancel)?))
        }
        Request::FleetAgent(request) => {
            Answer::FleetAgent(wt_agent::agent(&request, &mut |event| sink(Event::Agent(event)), cancel)?)
        }
        Request::JournalPrune(mut request) => {
            request.journal = file(request.journal);
            Answer::JournalPrune(journal::prune(&request)?)
        }
        Request::LabList => Answer::LabList(lab::list()?),
        Request::LabShow(request) => Answer::LabShow(Box::new(lab::show(&request.path)?)),
        Request::LabUp(request) => Answer::LabUp(lab_up(&request, sink, cancel)?),
        Request::LabRun(request) => Answer::LabRun(Box::new(lab::run(&request, cancel)?)),
        Request::LabTransfer(request) => Answer::LabTransfer(Box::new(lab::transfer(&request, cancel)?)),
        Request::LabProbe(request) => lab_probe(request, services, sink, cancel)?,
        Request::Doctor => Answer::Doctor(doctor::examine()),
        Request::SettingsShow(request) => Answer::SettingsShow(Box::new(host()?.show(&request)?)),
        Request::SettingsPending => Answer::SettingsPending(host()?.pending()),
        Request::SettingsPlan(request) => Answer::SettingsPlan(Box::new(host()?.plan(&request)?)),
        Request::SettingsApply(request) => Answer::SettingsChange(Box::new(host()?.apply(&request)?)),
        Request::SettingsConfirm(which) => Answer::SettingsConfirm(host()?.confirm(which.id.as_deref())?),
        Request::SettingsUndo(UndoRequest { id, force: true }) => {
            Answer::SettingsReleased(host()?.undo_by_force(id.as_deref())?)
        }
        Request::SettingsUndo(UndoRequest { id, .. }) => Answer::SettingsUndo(host()?.undo(id.as_deref())?),
        Request::SettingsForget(request) => Answer::SettingsReleased(host()?.forget(&request.id)?),
        Request::SettingsProve(mut request) => {
            request.journal = file(request.journal);
            let mut events = |event| sink(Event::Prove(event));
            Answer::SettingsProve(prove::prove(&request, &mut host()?, &mut events, cancel)?)
        }
        Request::SettingsHistory => Answer::SettingsHistory(host()?.history()?),
        Request::SettingsVerify => Answer::SettingsVerify(host()?.verify()?),
        Request::SettingsCheck(request) => Answer::SettingsCheck(host()?.check(&request)?),
        Request::Schedule(request) => Answer::Schedule(host()?.schedule(&request)?),
        Request::SettingsExport(request) => Answer::SettingsExport(host()?.export(&request)?.0),
        Request::SettingsDefaults(request) => Answer::SettingsDefaults(settings::defaults(request.os.as_deref())?),
        Request::SettingsBackup(request) => Answer::SettingsBackup(host()?.back_up(&request.file)?),
        Request::SettingsRestore(request) if request.dry_run => {
            Answer::SettingsPlan(Box::new(host()?.plan_backup(&request.file)?))
        }
        Request::SettingsRestore(request) => {
            Answer::SettingsChange(Box::new(host()?.restore(&request.file, request.confirmation)?))
        }
    })
}

fn overhead(request: &wt_wire::OverheadRequest) -> Result<wt_wire::OverheadAnswer, Problem> {
    wt_wire::overhead(request).map_err(|error| Problem::usage(error.to_string()))
}

/// Serves tests until somebody cancels.
fn serve_tests(request: &serve::ServeRequest, sink: Sink<'_>, cancel: &Cancel) -> Result<serve::ServeAnswer, Problem> {
    let sink = std::cell::RefCell::new(sink);
    let mut listening =
        |answer: &serve::ServeAnswer| (sink.borrow_mut())(Event::Begun(BegunEvent::Listening(answer.clone())));
    let mut draining = || (sink.borrow_mut())(Event::Begun(BegunEvent::Draining));
    serve::serve(request, &mut listening, &mut draining, cancel)
}

fn report(experiment: &str, file: Option<PathBuf>) -> Result<Answer, Problem> {
    let journal = journal::open_to_read(file.as_deref())?;
    let stored = journal.load(experiment).map_err(|error| journal::problem(&error))?;
    if stored.proved_change().is_some() {
        return Ok(Answer::SettingsProve(prove::again(&stored)?));
    }
    Ok(match &stored.config {
        ExperimentConfig::Controls(config) => Answer::Controls(Box::new(compared::again(&*journal, &stored, config)?)),
        ExperimentConfig::Traffic(_) => Answer::TrafficReport(Box::new(wt_steer::report_of(&*journal, &stored)?)),
        ExperimentConfig::Stacks(config) => Answer::Stacks(Box::new(stacks::again(&*journal, &stored, config)?)),
        _ => Answer::Tune(wt_tune::report(&*journal, stored)?),
    })
}

fn start(request: &LabRequest) -> Result<RunningLab, Problem> {
    RunningLab::start(request, None, |_| Ok(None))
}

/// Keeps a lab up until somebody cancels.
fn lab_up(request: &LabRequest, sink: Sink<'_>, cancel: &Cancel) -> Result<LabUpAnswer, Problem> {
    let running = start(request)?;
    let mut was_up = None;
    running.stay(None, cancel, |up| {
        was_up = Some(up.clone());
        sink(Event::Lab(LabEvent::Up(up)));
    })?;
    running.stop()?;
    was_up.ok_or_else(|| Problem::stopped("stopped before the lab was up"))
}

/// Probes the path of a lab from its client.
fn lab_probe(
    request: LabProbeRequest,
    services: &Services,
    sink: Sink<'_>,
    cancel: &Cancel,
) -> Result<Answer, Problem> {
    if !matches!(*request.probe, Request::Mtu(_) | Request::Trace(_) | Request::Path(_) | Request::FirstWindow(_)) {
        return Err(Problem::usage("this is no probe of a path").hint("mtu, trace, path or first_window"));
    }
    let running = start(&request.lab)?;
    let answer = running.in_client(|| run(*request.probe, services, sink, cancel))??;
    running.stop()?;
    Ok(answer)
}

#[cfg(test)]
mod tests;
