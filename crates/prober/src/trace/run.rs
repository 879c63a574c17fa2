use super::TraceRequest;
use crate::driver::{Cost, Driver, limit_at_rate};
use crate::names::names_of;
use crate::target::{Target, offered};
use crate::waves::waves;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use wt_probe::{Kind, Machine, Trace, TraceConfig};
use wt_problem::Problem;
use wt_trial::Cancel;

/// No trace takes longer, unless a low rate was asked for.
const LIMIT: Duration = Duration::from_secs(30);
/// Hops that are asked, and each of them a second time.
const ASKED: u32 = 2 * 30;
/// Names are waited for no longer.
const NAMES: Duration = Duration::from_millis(500);

/// Traces all targets at once, several of one address one after the other; of a target that this host can't send to, why not.
///
/// # Errors
/// An environment problem where this host can't probe at all, and a stopped one after a cancel.
pub(crate) fn trace_all(
    targets: &[Target],
    request: &TraceRequest,
    cancel: &Cancel,
) -> Result<(Vec<Result<Trace, Problem>>, Cost), Problem> {
    let mut traces: Vec<Option<Result<Trace, Problem>>> = targets.iter().map(|_| None).collect();
    let mut cost = Cost::default();
    for wave in waves(targets) {
        let Some(v6) = wave.first().map(|first| targets[*first].ip.is_ipv6()) else { continue };
        let mut driver = Driver::open(v6, wave.len(), &request.options, cancel)?;
        let kinds = driver.kinds();
        let config = |target: &Target| TraceConfig {
            kind: if kinds.contains(&Kind::Echo) { Kind::Echo } else { Kind::Udp },
            handshake: kinds.contains(&Kind::OldSegment),
            flows: request.flows,
            probes: request.probes,
            size: request.size,
            max: target.mtu,
            offered: offered(target),
        };
        let packets = ASKED * (u32::from(request.probes) * u32::from(request.flows) + 1);
        let limit = limit_at_rate(LIMIT, wave.len(), packets, &request.options);
        let mut machines: Vec<Trace> = wave.iter().map(|i| Trace::new(config(&targets[*i]))).collect();
        let pairs = wave.iter().zip(&mut machines).map(|(i, machine)| (&targets[*i], machine as &mut dyn Machine));
        let (spent, failed) = driver.run_all(pairs.collect(), limit)?;
        cost = cost.plus(spent);
        for ((i, machine), failed) in wave.into_iter().zip(machines).zip(failed) {
            traces[i] = Some(failed.map_or(Ok(machine), Err));
        }
    }
    Ok((traces.into_iter().flatten().collect(), cost))
}

/// The names of all hops.
pub(crate) fn names<'a>(traces: impl Iterator<Item = &'a Trace>) -> HashMap<IpAddr, String> {
    let hops = traces.flat_map(Trace::hops);
    let mut addresses: Vec<IpAddr> = hops.flat_map(|hop| hop.addresses).collect();
    addresses.sort_unstable();
    addresses.dedup();
    names_of(&addresses, NAMES)
}
