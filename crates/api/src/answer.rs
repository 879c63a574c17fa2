use serde::Serialize;
use wt_agent::{
    AgentAnswer, FleetAddAnswer, FleetApplyAnswer, FleetInitAnswer, FleetRunAnswer, FleetStatusAnswer, FleetStopAnswer,
};
use wt_compare::cdn::CdnAnswer;
use wt_compare::controls::ControlsAnswer;
use wt_compare::page_load::PageAnswer;
use wt_compare::prove::ProveAnswer;
use wt_compare::side_by_side::SideBySideAnswer;
use wt_compare::stacks::{StackProgramAnswer, StacksAnswer, StacksList};
use wt_experiment::VerdictKind;
use wt_flow::CaptureAnswer;
use wt_forecast::{CalibrateAnswer, PredictAnswer, ReplayAnswer};
use wt_host::{ConfirmOutcome, Export, Plan, ReleasedChange, Report, Undone, VerifyReport};
use wt_prober::Answers;
use wt_prober::first_window::FirstWindowAnswer;
use wt_prober::mtu::MtuAnswer;
use wt_prober::path::PathAnswer;
use wt_prober::trace::TraceAnswer;
use wt_problem::Problem;
use wt_report::AnalyseAnswer;
use wt_setup::controls::{ControlShown, ControlsList, LoadAnswer, UnloadAnswer};
use wt_setup::doctor::DoctorAnswer;
use wt_setup::journal::{ExportAnswer, ImportAnswer, ListAnswer, PruneAnswer, PushAnswer, SamplesAnswer, ShowAnswer};
use wt_setup::lab::{LabRunAnswer, LabUpAnswer, PresetsAnswer, ScenarioAnswer, TransferAnswer};
use wt_setup::schedule::ScheduleAnswer;
use wt_setup::serve::ServeAnswer;
use wt_setup::settings::{BackupAnswer, ChangeAnswer, CheckReport, DefaultsAnswer, HistoryAnswer, PendingAnswer};
use wt_steer::{TrafficAnswer, TrafficCombined, TrafficList, TrafficStop};
use wt_traffic::TrafficReport;
use wt_tune::{LoggedTests, SelfTestAnswer, TuneAnswer};
use wt_wire::{OverheadAnswer, OverheadWords};

/// What comes out: as JSON the very object that the command prints with `--json`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// What the layers cost.
    Overhead(Box<OverheadAnswer>),
    /// The words of encapsulations.
    OverheadWords(OverheadWords),
    /// What settings would do.
    Predict(Box<PredictAnswer>),
    /// Old studies.
    Replay(Box<ReplayAnswer>),
    /// How far the model is from the kernel.
    Calibrate(Box<CalibrateAnswer>),
    /// Path MTUs.
    Mtu(Answers<MtuAnswer>),
    /// Hops.
    Trace(Answers<TraceAnswer>),
    /// A path.
    Path(Box<PathAnswer>),
    /// First windows.
    FirstWindow(Box<FirstWindowAnswer>),
    /// The report of an experiment, or what one would compare.
    Tune(TuneAnswer),
    /// Experiments side by side.
    Compare(Box<SideBySideAnswer>),
    /// Congestion controls.
    Controls(Box<ControlsAnswer>),
    /// TCP/IP stacks.
    Stacks(Box<StacksAnswer>),
    /// Congestion controls that there are.
    ControlsList(ControlsList),
    /// What one does.
    ControlShow(Box<ControlShown>),
    /// One that was loaded.
    ControlLoad(LoadAnswer),
    /// Those that were unloaded.
    ControlUnload(UnloadAnswer),
    /// TCP/IP stacks that there are.
    StacksList(StacksList),
    /// How a program ended whose connections went through one of them.
    StackRun(StackProgramAnswer),
    /// The connections that were seen on a device.
    Watch(Box<CaptureAnswer>),
    /// A server that listened.
    Serve(ServeAnswer),
    /// Windows of a CDN.
    Cdn(Box<CdnAnswer>),
    /// Loads of a page.
    Page(Box<PageAnswer>),
    /// An experiment on connections: what it found, or what would be done.
    Traffic(TrafficAnswer),
    /// What one of the journal found.
    TrafficReport(Box<TrafficReport>),
    /// Experiments on connections of several servers together.
    TrafficCombined(TrafficCombined),
    /// Those under way.
    TrafficStatus(TrafficList),
    /// Those that were ended.
    TrafficStop(TrafficStop),
    /// Transfers that were logged.
    Tests(Box<LoggedTests>),
    /// How often the method claims a difference where there is none.
    SelfTest(Box<SelfTestAnswer>),
    /// What measurements allow one to say.
    Analyse(Box<AnalyseAnswer>),
    /// Experiments.
    JournalList(ListAnswer),
    /// An experiment with its trials.
    JournalShow(Box<ShowAnswer>),
    /// What TCP said over time.
    JournalSamples(Box<SamplesAnswer>),
    /// A file that was written.
    JournalExport(ExportAnswer),
    /// What was taken in.
    JournalImport(ImportAnswer),
    /// What was written to the journal of many hosts.
    JournalPush(PushAnswer),
    /// What isn't there yet.
    JournalStatus(PushAnswer),
    /// A fleet is there.
    FleetInit(FleetInitAnswer),
    /// A host is in it.
    FleetAdd(Box<FleetAddAnswer>),
    /// How it stands.
    FleetStatus(FleetStatusAnswer),
    /// What it is to measure is written down.
    FleetRun(FleetRunAnswer),
    /// It was stopped.
    FleetStop(FleetStopAnswer),
    /// How a change of settings went through a fleet.
    FleetApply(Box<FleetApplyAnswer>),
    /// How it was taken back.
    FleetUndo(Box<FleetApplyAnswer>),
    /// What one host did for it.
    FleetAgent(AgentAnswer),
    /// What was deleted.
    JournalPrune(PruneAnswer),
    /// The shipped paths.
    LabList(PresetsAnswer),
    /// A path.
    LabShow(Box<ScenarioAnswer>),
    /// A lab that was up.
    LabUp(LabUpAnswer),
    /// How a program in a lab ended.
    LabRun(Box<LabRunAnswer>),
    /// A transfer.
    LabTransfer(Box<TransferAnswer>),
    /// What works.
    Doctor(DoctorAnswer),
    /// This host's settings.
    SettingsShow(Box<Report>),
    /// The change that waits.
    SettingsPending(PendingAnswer),
    /// What a change would do.
    SettingsPlan(Box<Plan>),
    /// What a change did.
    SettingsChange(Box<ChangeAnswer>),
    /// A change that stays.
    SettingsConfirm(ConfirmOutcome),
    /// A change that was reverted.
    SettingsUndo(Undone),
    /// A change that is done with, and what of it stays.
    SettingsReleased(ReleasedChange),
    /// Whether it is faster with a change.
    SettingsProve(ProveAnswer),
    /// Changes.
    SettingsHistory(HistoryAnswer),
    /// What isn't as it was made.
    SettingsVerify(VerifyReport),
    /// Whether changes still hold, and rest on something.
    SettingsCheck(CheckReport),
    /// Units for systemd.
    Schedule(ScheduleAnswer),
    /// Settings in other words.
    SettingsExport(Export),
    /// What systems begin with.
    SettingsDefaults(DefaultsAnswer),
    /// What a file holds.
    SettingsBackup(BackupAnswer),
}

impl Answer {
    /// Whether the answer is "no": nothing is shown to be faster, no difference is shown, something doesn't work or isn't as
    /// it was made.
    #[must_use]
    pub fn is_no(&self) -> bool {
        match self {
            Self::Tune(TuneAnswer::Report(report)) => report.verdict.kind != VerdictKind::Faster,
            Self::Tune(TuneAnswer::Screen(screen)) => screen.kind() != VerdictKind::Faster,
            Self::Compare(answer) => !answer.comparable,
            Self::Controls(answer) => answer.is_no(),
            Self::Stacks(answer) => answer.is_no(),
            Self::Cdn(answer) => answer.is_no(),
            Self::Analyse(answer) => !answer.is_yes(),
            Self::Watch(answer) => !answer.has_connections(),
            Self::JournalImport(answer) => !answer.refused.is_empty(),
            Self::JournalPush(answer) => answer.refused > 0,
            Self::JournalStatus(answer) => answer.refused > 0 || answer.incomplete > 0,
            Self::FleetApply(answer) => !answer.is_as_wanted(false),
            Self::FleetUndo(answer) => !answer.is_as_wanted(true),
            Self::FleetAgent(answer) => answer.refused > 0 || answer.failed > 0,
            Self::Doctor(answer) => !answer.works,
            Self::LabRun(answer) => answer.exit_code != 0,
            Self::StackRun(answer) => answer.exit_code != 0,
            Self::Tests(answer) => answer.mean_bps.is_none(),
            Self::SelfTest(answer) => !answer.passed,
            Self::SettingsProve(answer) => answer.is_no(),
            Self::SettingsVerify(report) => !report.drift.is_empty(),
            Self::SettingsCheck(report) => !report.holds,
            _ => false,
        }
    }

    /// What keeps it from being a whole answer, if anything does: a host that answered nothing, a survey that was stopped, a
    /// change that failed half-way.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        match self {
            Self::Mtu(answers) => answers.0.iter().find_map(MtuAnswer::problem).cloned(),
            Self::Trace(answers) => answers.0.iter().find_map(TraceAnswer::problem).cloned(),
            Self::FirstWindow(answer) => answer.problem(),
            Self::SettingsChange(answer) => answer.problem.clone(),
            Self::LabTransfer(answer) => answer.problem.clone(),
            _ => None,
        }
    }
}
