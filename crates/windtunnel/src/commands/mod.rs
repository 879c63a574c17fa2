//! One file per command. Each has its clap arguments, and `run`, which returns an [`Outcome`](crate::edge::Outcome).

/// Is there a difference in a table that somebody measured?
pub(crate) mod analyse;
/// How far the model is from this machine's kernel.
pub(crate) mod calibrate;
/// Congestion controls.
pub(crate) mod cc;
/// Client, edge and backend.
pub(crate) mod cdn;
/// Experiments side by side.
pub(crate) mod compare;
/// What the comparisons over one emulated path share.
pub(crate) mod comparison;
/// What works on this machine.
pub(crate) mod doctor;
/// How much servers send before anything is acknowledged.
pub(crate) mod first_window;
/// Many hosts that measure by one plan.
pub(crate) mod fleet;
/// Every trial ever run.
pub(crate) mod journal;
/// The lab's paths, and programs in it.
pub(crate) mod lab;
/// What monitoring reads.
pub(crate) mod metrics;
/// The largest packet that gets through, and why larger ones don't.
pub(crate) mod mtu;
/// Framing arithmetic on the command line.
pub(crate) mod overhead;
/// Manual pages and completions.
pub(crate) mod own;
/// How long a real browser takes for a page.
pub(crate) mod page;
/// One screen about a path.
pub(crate) mod path;
/// What other settings would do, by the model.
pub(crate) mod predict;
/// Old studies in the model.
pub(crate) mod replay;
/// An experiment from the journal in any form.
pub(crate) mod report;
/// Samples as they are taken.
pub(crate) mod samples;
/// The method tested on itself.
pub(crate) mod schedule;
pub(crate) mod self_test;
/// A server for others.
pub(crate) mod serve;
/// This host's TCP/IP settings.
pub(crate) mod settings;
/// TCP/IP stacks side by side.
pub(crate) mod stacks;
/// One transfer, one line of the log.
pub(crate) mod test;
/// The hops of a path.
pub(crate) mod trace;
/// A server's own connections.
pub(crate) mod traffic;
/// The main job: vary, measure, decide.
pub(crate) mod tune;
/// The connections that pass a device.
pub(crate) mod watch;
/// The page, and the API that it uses.
pub(crate) mod web;
/// One request of the library as JSON.
pub(crate) mod worker;
