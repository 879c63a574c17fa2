use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use wt_agent::{
    AgentRequest, FleetAddRequest, FleetApplyRequest, FleetRequest, FleetRunRequest, FleetUndoRequest, MeshRequest,
};
use wt_compare::cdn::CdnRequest;
use wt_compare::controls::ControlsRequest;
use wt_compare::page_load::PageRequest;
use wt_compare::prove::ProveRequest;
use wt_compare::side_by_side::SideBySideRequest;
use wt_compare::stacks::{StackProgram, StacksRequest};
use wt_forecast::{CalibrateRequest, PredictRequest, ReplayRequest};
use wt_prober::first_window::FirstWindowRequest;
use wt_prober::mtu::MtuRequest;
use wt_prober::path::PathRequest;
use wt_prober::trace::TraceRequest;
use wt_setup::analyse::AnalyseRequest;
use wt_setup::controls::{LoadRequest, UnloadRequest};
use wt_setup::journal::{
    ExperimentRequest, ExportFormat, ListRequest, PruneRequest, PushRequest, SamplesRequest, StatusRequest,
};
use wt_setup::lab::{LabRequest, LabRunRequest, TransferRequest};
use wt_setup::schedule::ScheduleRequest;
use wt_setup::serve::ServeRequest;
use wt_setup::settings::{ApplyRequest, ChangeRequest, CheckRequest, Confirmation, ExportRequest, ShowRequest};
use wt_setup::watch::WatchRequest;
use wt_steer::{TrafficCombineRequest, TrafficReportRequest, TrafficRequest};
use wt_tune::{SelfTestRequest, TestRequest, TuneRequest};
use wt_wire::OverheadRequest;

/// What is asked: `{"operation": "predict", "request": {…}}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "operation", content = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What the layers below TCP cost.
    Overhead(Box<OverheadRequest>),
    /// The words of which encapsulations are made.
    OverheadWords,
    /// What other settings would do, by the model.
    Predict(Box<PredictRequest>),
    /// Old studies in the model.
    Replay(Box<ReplayRequest>),
    /// How far the model is from this machine's kernel.
    Calibrate(Box<CalibrateRequest>),
    /// The largest packet that gets through, with or without a scan of sizes.
    Mtu(Box<MtuRequest>),
    /// The hops of a path.
    Trace(Box<TraceRequest>),
    /// One screen about a path.
    Path(Box<PathRequest>),
    /// How much servers send before anything is acknowledged.
    FirstWindow(Box<FirstWindowRequest>),
    /// Vary, measure, decide.
    Tune(Box<TuneRequest>),
    /// An experiment from the journal, assessed again.
    Report(ExperimentRequest),
    /// Experiments of the journal side by side.
    Compare(SideBySideRequest),
    /// Congestion controls in rounds.
    CompareControls(Box<ControlsRequest>),
    /// TCP/IP stacks in rounds.
    CompareStacks(Box<StacksRequest>),
    /// The congestion controls that there are.
    ControlsList,
    /// What one of them does.
    ControlShow(ControlName),
    /// Loads one of ours: for as long as this runs, or until it is unloaded.
    ControlLoad(LoadRequest),
    /// Takes ours out of the kernel.
    ControlUnload(UnloadRequest),
    /// The TCP/IP stacks that there are.
    StacksList,
    /// A program in the client of a lab, through one of them, with this process's input and output.
    StackRun(Box<StackProgram>),
    /// The TCP connections on a device, until it is cancelled.
    Watch(Box<WatchRequest>),
    /// Serves tests until it is cancelled.
    Serve(Box<ServeRequest>),
    /// Which initial windows of a CDN matter.
    Cdn(Box<CdnRequest>),
    /// A page in a real browser, load after load.
    Page(Box<PageRequest>),
    /// Settings of a server's own connections, assigned at random until it is cancelled.
    TrafficStart(Box<TrafficRequest>),
    /// The experiments on connections that are under way.
    TrafficStatus(TrafficReportRequest),
    /// Ends them.
    TrafficStop(TrafficReportRequest),
    /// What one of them found.
    TrafficReport(TrafficReportRequest),
    /// Experiments on connections of several servers together.
    TrafficCombine(TrafficCombineRequest),
    /// Transfers with the settings as they are, each written down.
    Test(Box<TestRequest>),
    /// Such a log, from the journal.
    TestShow(ExperimentRequest),
    /// The method tested on itself.
    SelfTest(Box<SelfTestRequest>),
    /// Tables and captures that somebody measured.
    Analyse(Box<AnalyseRequest>),
    /// The experiments of the journal.
    JournalList(ListRequest),
    /// One of them, with its trials.
    JournalShow(ExperimentRequest),
    /// What TCP said over time.
    JournalSamples(SamplesRequest),
    /// Writes one of them to a file.
    JournalExport(JournalExportRequest),
    /// Takes in files of other journals.
    JournalImport(ImportRequest),
    /// Writes what isn't there yet to the journal of many hosts.
    JournalPush(PushRequest),
    /// What isn't there yet.
    JournalStatus(StatusRequest),
    /// Make a fleet of a database.
    FleetInit(FleetRequest),
    /// Take a host into a fleet.
    FleetAdd(FleetAddRequest),
    /// How a fleet stands; where no server is named, what the journal knows: a fleet in PostgreSQL, or hosts in a file.
    FleetStatus(FleetRequest),
    /// Write down what a fleet is to measure.
    FleetRun(FleetRunRequest),
    /// Stop what a fleet measures.
    FleetStop(MeshRequest),
    /// What a fleet found: somewhere, everywhere, at which, on a new host.
    FleetReport(MeshRequest),
    /// Change settings of a fleet in waves.
    FleetApply(Box<FleetApplyRequest>),
    /// Take such a change back.
    FleetUndo(FleetUndoRequest),
    /// One host's part of a fleet.
    FleetAgent(AgentRequest),
    /// Deletes experiments of the journal.
    JournalPrune(PruneRequest),
    /// The shipped paths.
    LabList,
    /// One of them, or a file.
    LabShow(ScenarioRequest),
    /// A lab that stays up until it is cancelled.
    LabUp(LabRequest),
    /// A program in the client of a lab, with this process's input and output.
    LabRun(Box<LabRunRequest>),
    /// A transfer, from within a lab.
    LabTransfer(Box<TransferRequest>),
    /// A probe of a path of the lab, from its client.
    LabProbe(LabProbeRequest),
    /// What works on this machine.
    Doctor,
    /// This host's settings.
    SettingsShow(ShowRequest),
    /// The change that waits for its confirmation.
    SettingsPending,
    /// What a change would do.
    SettingsPlan(Box<ChangeRequest>),
    /// Changes settings.
    SettingsApply(Box<ApplyRequest>),
    /// Makes a change stay.
    SettingsConfirm(WhichChange),
    /// Reverts a change.
    SettingsUndo(UndoRequest),
    /// Leaves everything as it is and is done with a change.
    SettingsForget(ForgetRequest),
    /// Measures with a change and without it.
    SettingsProve(ProveRequest),
    /// The changes that were made.
    SettingsHistory,
    /// Whether what was changed is still so.
    SettingsVerify,
    /// Whether changes still hold, and the verdicts behind them still apply.
    SettingsCheck(CheckRequest),
    /// Units for systemd that measure a change again.
    Schedule(Box<ScheduleRequest>),
    /// Settings in the words of another system.
    SettingsExport(Box<ExportRequest>),
    /// What operating systems begin with.
    SettingsDefaults(DefaultsRequest),
    /// Stores all settings in a file.
    SettingsBackup(FileRequest),
    /// Makes all settings as a file has them.
    SettingsRestore(RestoreRequest),
}

/// A path to show.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRequest {
    /// A preset's name or a TOML file.
    pub path: String,
}

/// A congestion control to show.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlName {
    /// Its name, with a variant where it has some.
    pub name: String,
}

/// A probe within a lab.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabProbeRequest {
    /// The lab.
    pub lab: LabRequest,
    /// What is done in its client: `mtu`, `trace`, `path` or `first_window`, to `server`.
    pub probe: Box<Request>,
}

/// Which change is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhichChange {
    /// Its number; nothing means the one that waits, or the latest in force.
    pub id: Option<String>,
}

/// A change to revert.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UndoRequest {
    /// Its number; nothing means the latest in force.
    pub id: Option<String>,
    /// Put back what can be, say what stays, and be done with the change.
    pub force: bool,
}

/// A change to be done with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgetRequest {
    /// Its number.
    pub id: String,
}

/// An experiment to write to a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalExportRequest {
    /// Its name, the beginning of it, or `last`.
    pub experiment: String,
    /// As what.
    #[serde(default)]
    pub format: ExportFormat,
    /// Of Parquet: a row for each sample instead of each trial.
    #[serde(default)]
    pub samples: bool,
    /// The file, which is written as a whole or not at all.
    pub file: PathBuf,
    /// The journal; nothing means the usual one.
    #[serde(default)]
    pub journal: Option<PathBuf>,
}

/// Files to take in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// Exported JSON, flent's data, or journals.
    pub files: Vec<PathBuf>,
    /// The journal's file; nothing means the usual one.
    #[serde(default)]
    pub journal: Option<PathBuf>,
}

/// Which operating systems are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultsRequest {
    /// One by its name; nothing means all.
    pub os: Option<String>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRequest {
    /// The file.
    pub file: PathBuf,
}

/// Settings to restore.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// The file that holds them.
    pub file: PathBuf,
    /// Say what would change, and write nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// How it is confirmed.
    #[serde(default)]
    pub confirmation: Confirmation,
}
