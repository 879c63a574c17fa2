//! The largest packet that gets through, and why larger ones don't.

/// What was found, as `--json` has it.
mod answer;
/// What routers said a moment ago.
mod memory;
/// Loss size by size.
mod scan;
/// What a scan found, as `--json` has it.
mod scan_answer;
/// The searches.
mod search;
/// Findings and advice in words.
mod words;

pub use answer::{ClampAnswer, FlowsAnswer, HintAnswer, HopAnswer, MtuAnswer, ReverseCost, SearchAnswer, SizeAnswer};
pub use scan::ScanRequest;
pub use scan_answer::{GainAnswer, LooseAnswer, OpenScan, RateCheckAnswer, ScanAnswer, ThresholdAnswer};
pub use search::{SearchRun, SearchScope, search};
pub(crate) use words::no_connection;
pub use words::unanswered;

use crate::ProbeOptions;
use crate::answers::Answers;
use crate::options::within;
use crate::target::{HostOutcome, each_outcome, find_all, reachable};
use serde::{Deserialize, Serialize};
use wt_problem::Problem;
use wt_trial::Cancel;

/// Hosts to which the path MTU is searched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MtuRequest {
    /// The hosts, as `HOST` or `HOST:PORT` with the port that TCP probes go to, 80 if it isn't said.
    pub hosts: Vec<String>,
    /// Count losses size by size, too; of one host only.
    pub scan: Option<ScanRequest>,
    /// TCP connections that load balancers may send other ways, each with one packet of the path MTU: 1 to 64; 12 to
    /// at most four hosts where their port is open, and none to more, if it isn't said.
    pub flows: Option<u8>,
    /// How to probe.
    pub options: ProbeOptions,
}

/// What happens meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum MtuEvent {
    /// The search for one host has ended.
    Searched {
        /// What it found.
        found: Box<MtuAnswer>,
    },
    /// The scan of sizes begins.
    Scanning {
        /// So many packets at most, until the place is told.
        packets: u32,
        /// So many leave in a second.
        per_second: u32,
    },
    /// The scan goes on.
    Scanned {
        /// So many packets have left.
        packets: u32,
    },
}

/// Finds the largest packet that gets through to each host, and why larger ones don't.
///
/// A host that answers nothing is in the answer, too, and of several one that this host can't reach: [`MtuAnswer::problem`]
/// tells.
///
/// # Errors
/// A usage problem for an invalid request, an environment problem where this host can't probe or reach the only host, and a
/// stopped one after a cancel.
pub fn mtu(
    request: &MtuRequest,
    cancel: &Cancel,
    events: &mut dyn FnMut(MtuEvent),
) -> Result<Answers<MtuAnswer>, Problem> {
    request.options.check()?;
    within("flows", request.flows.unwrap_or(1), 1, 64)?;
    if let Some(scan) = &request.scan {
        scan.check()?;
    }
    let found = find_all(&request.hosts, request.options.ip, cancel)?;
    if request.scan.is_some() && found.len() > 1 {
        return Err(Problem::usage("a scan is of one host").hint("name one host only"));
    }
    let scope = SearchScope { losses: request.scan.is_none(), flows: request.flows };
    let SearchRun { reports, cost, reverse } = search(&reachable(&found), &request.options, scope, cancel)?;
    let hosts = each_outcome(found, reports)?;
    let (Some(scan), [HostOutcome { outcome: Ok((target, report)), .. }]) = (&request.scan, &hosts[..]) else {
        let mut answers = Vec::new();
        for host in &hosts {
            let answer = match &host.outcome {
                Ok((target, report)) => MtuAnswer::of(target, report, cost),
                Err(problem) => MtuAnswer::unreached((&host.name, host.address), problem, cost),
            };
            let answer = MtuAnswer { reverse: Some(reverse.into()), ..answer };
            events(MtuEvent::Searched { found: Box::new(answer.clone()) });
            answers.push(answer);
        }
        return Ok(Answers(answers));
    };
    let cost = cost.plus(reverse);
    let searched = MtuAnswer::of(target, report, cost);
    events(MtuEvent::Searched { found: Box::new(searched.clone()) });
    let scanned = scan::scan(target, report, scan, &request.options, cost, cancel, events)?;
    Ok(Answers(vec![scanned.added_to(searched)]))
}
