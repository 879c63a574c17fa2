//! The hops of a path, all asked at once.

/// What was found, as `--json` has it.
mod answer;
/// The traces, and names.
mod run;

pub use answer::{RouteAnswer, TraceAnswer, TraceEnd, TraceHopAnswer};
pub(crate) use run::{names, trace_all};

use crate::ProbeOptions;
use crate::answers::Answers;
use crate::options::within;
use crate::target::{Target, each_outcome, find_all, reachable};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use wt_problem::Problem;
use wt_trial::Cancel;

/// Hosts to which the hops are traced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceRequest {
    /// The hosts, as `HOST` or `HOST:PORT` with the port that SYNs go to, 80 if it isn't said.
    pub hosts: Vec<String>,
    /// Flows: load balancers may send each another way.
    pub flows: u8,
    /// Probes of each flow to each hop.
    pub probes: u8,
    /// Length of the probes, bytes.
    pub size: u16,
    /// Whether to look up the hops' names.
    pub names: bool,
    /// How to probe.
    pub options: ProbeOptions,
}

impl Default for TraceRequest {
    fn default() -> Self {
        Self { hosts: Vec::new(), flows: 1, probes: 3, size: 64, names: true, options: ProbeOptions::default() }
    }
}

impl TraceRequest {
    fn check(&self) -> Result<(), Problem> {
        within("flows", self.flows, 1, 16)?;
        within("probes", self.probes, 1, 100)?;
        within("bytes as the length of probes", self.size, 52, 9000)?;
        self.options.check()
    }
}

/// What happens meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TraceEvent {
    /// All hops have been asked; their names are looked up.
    Traced,
}

/// Finds the hops to each host: address, loss, RTT, the MTU of the next link, and what each changes in TCP's handshake.
///
/// A host to which no hop answered is in the answer, too, and of several one that this host can't reach:
/// [`TraceAnswer::problem`] tells.
///
/// # Errors
/// A usage problem for an invalid request, an environment problem where this host can't probe or reach the only host, and a
/// stopped one after a cancel.
pub fn trace(
    request: &TraceRequest,
    cancel: &Cancel,
    events: &mut dyn FnMut(TraceEvent),
) -> Result<Answers<TraceAnswer>, Problem> {
    request.check()?;
    let found = find_all(&request.hosts, request.options.ip, cancel)?;
    let targets = reachable(&found);
    if let Some(target) = targets.iter().find(|target| request.size > target.mtu) {
        let Target { name, device, mtu, .. } = target;
        return Err(Problem::usage(format!(
            "probes of {} bytes to {name}: {device} takes packets of {mtu} bytes at most",
            request.size
        ))
        .hint(format!("--size 52 to --size {mtu}; windtunnel mtu {name} finds what gets through")));
    }
    let (traces, cost) = trace_all(&targets, request, cancel)?;
    let hosts = each_outcome(found, traces)?;
    events(TraceEvent::Traced);
    let traces = hosts.iter().filter_map(|host| Some(&host.outcome.as_ref().ok()?.1));
    let names = if request.names { names(traces) } else { HashMap::new() };
    let answers = hosts.iter().map(|host| match &host.outcome {
        Ok((target, trace)) => TraceAnswer::of(target, trace, &names, cost),
        Err(problem) => TraceAnswer::unreached((&host.name, host.address), problem, cost),
    });
    Ok(Answers(answers.collect()))
}
