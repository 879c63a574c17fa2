//! Finding the settings that make a path fastest: vary them in rounds, measure, decide honestly, report.
//!
//! [`run`] takes a [`TuneRequest`], says what happens as [`TuneEvent`]s, and answers with a [`TuneAnswer`].

#![forbid(unsafe_code)]

/// What comes out.
mod answer;
/// The current settings, as far as they are asked for.
mod current;
/// The same speed with less delay.
mod delay;
/// What of a budget is left to its test.
mod delay_room;
/// Running the rounds.
mod drive;
/// How long trials took.
mod duration;
/// What happens meanwhile.
mod event;
/// The end of an experiment.
mod finish;
/// What the journal holds of an experiment.
mod history;
/// What is the same in every trial.
mod hold;
/// The A/A test.
mod identical;
/// A look at the path.
mod inspect;
/// The link under an experiment.
mod link;
/// What is known of the far side of a real path.
mod live;
/// What the log says of them.
mod logged;
/// The machines of its sessions.
mod machines;
/// Rounds of an experiment, from the first to the last.
mod measure;
/// Where trials are written down.
pub mod notebook;
/// What a trial is to its experiment, and what a round is drawn from.
mod observed;
/// Opening servers.
mod open;
/// The RTT that a path is taken to have.
mod path_rtt;
/// Learning what a real path carries.
mod pilot;
/// What stays the same from trial to trial.
mod plan;
/// Several servers.
mod profile;
/// From the journal to the report.
mod report;
/// What is asked for.
mod request;
/// Going on with an experiment on another day.
mod resume;
/// From a request to its answer.
mod run;
/// Many knobs at once.
mod screen;
/// The report of a screen.
mod screen_report;
/// The method tested on itself.
mod self_test;
/// One run, from the path to the answer.
mod session;
/// One transfer, one line of the log.
mod single;
/// Turns on what others measure on, too.
mod turns;

pub use answer::{ScreenPlan, TuneAnswer, TunePlan};
pub use event::{RoundEvent, Sink, TrialEvent, TuneEvent};
pub use history::History;
pub use logged::{Covariate, SummaryRequest, TestGroup, TestGrouping, TestSummary, summary};
pub use report::report;
pub use request::{Goal, LiveRequest, TrialDirection, TuneRequest};
pub use run::run;
pub use screen_report::ScreenReport;
pub use self_test::{LabClaims, PowerRow, SelfTestAnswer, SelfTestRequest, self_test};
pub use single::{HostTests, LoggedTest, LoggedTests, TestRequest, logged, logged_lines, test};
pub use turns::TurnsRequest;
