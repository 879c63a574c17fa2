//! What a change rests on: the experiment that recommends it, and what was so when it was measured.

use std::net::{IpAddr, SocketAddr};
use wt_host::{Basis, BasisDevice, Survey, System};
use wt_journal::{Journal, StoredExperiment, WithSamples};
use wt_units::{Role, Url};

/// What was so when an experiment ran. The path counts only where this host has the role in which it measured, `role`.
pub(super) fn of(journal: &dyn Journal, found: &StoredExperiment, role: Option<Role>) -> Basis {
    let config = found.config.tune();
    let is_real = role.is_some() && config.live.is_some();
    let live = config.live.as_ref().filter(|_| is_real);
    let url: Option<Url> = live.and_then(|live| live.targets.as_ref()?.first()?.parse().ok());
    let port = url.as_ref().map(|url| url.port);
    let server = live.and_then(|live| live.address).zip(port).map(|(address, port)| SocketAddr::new(address, port));
    let host = config.host.clone().unwrap_or_default();
    let known = |number: u64| Some(number).filter(|number| is_real && *number > 0);
    Basis {
        experiment: found.id.clone(),
        tunnel: found.tunnel.clone(),
        target: found.target.clone(),
        measured_unix_s: u64::try_from(found.started_unix_us / 1_000_000).unwrap_or(0),
        host: host.name,
        kernel: host.kernel,
        url: fetched(found),
        server,
        rtt_us: known(least_rtt_us(journal, &found.id).unwrap_or(found.path.rtt_us)),
        path_mtu: known(found.path.pmtu),
        device: None,
    }
}

/// What an experiment fetched, if curl can fetch it.
pub(super) fn fetched(found: &StoredExperiment) -> Option<String> {
    let is_ours = |url: &&String| ["http://", "https://", "ftp://"].iter().any(|scheme| url.starts_with(scheme));
    let targets = found.config.tune().live.as_ref().and_then(|live| live.targets.as_ref())?;
    targets.iter().find(is_ours).cloned()
}

/// The smallest RTT of any trial.
fn least_rtt_us(journal: &dyn Journal, id: &str) -> Option<u64> {
    let mut least: Option<u64> = None;
    let mut look = |trial: wt_trial::TrialRecord| {
        let seen = trial.outcome.observed.min_rtt_us.filter(|rtt| *rtt > 0);
        least = [least, seen].into_iter().flatten().min();
        Ok(())
    };
    journal.for_each_trial(id, WithSamples::No, &mut look).ok()?;
    least
}

/// The device that carries what goes to an address, or by default.
pub(super) fn device(system: &mut dyn System, survey: &Survey, towards: Option<IpAddr>) -> Option<BasisDevice> {
    let route = towards.and_then(|address| system.route_to(address).ok());
    let index = route.and_then(|route| route.hops().first().map(|hop| hop.device));
    let link = match index {
        Some(index) => survey.devices.links.iter().find(|link| link.index == index),
        None => survey.main_link(),
    }?;
    let details = survey.details.get(&link.name);
    let driver = details.and_then(|details| details.driver.as_ref()).map(|driver| driver.name.clone());
    let speed_mbps = details.and_then(|details| details.mode).and_then(|mode| mode.speed_mbps);
    Some(BasisDevice { name: link.name.clone(), driver: driver.filter(|name| !name.is_empty()), speed_mbps })
}

/// This machine's name.
pub(super) fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
