//! What a change rests on: the experiment that recommends it, and what was so when it was measured.

use std::net::{IpAddr, SocketAddr};
use wt_host::{Basis, BasisDevice, Survey, System};
use wt_journal::{Journal, StoredExperiment, WithSamples};
use wt_units::{Role, Url};

/// A host that served an experiment's rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServingHost {
    pub(super) address: IpAddr,
    /// What was fetched there.
    url: Option<String>,
    /// The smallest RTT of its trials.
    rtt_us: Option<u64>,
}

/// Who served an experiment's rounds, in the order in which they first did; of trials that don't say so, whom the experiment names.
pub(super) fn served(journal: &dyn Journal, found: &StoredExperiment) -> Vec<ServingHost> {
    let config = found.config.tune();
    let Some(live) = config.live.as_ref() else { return Vec::new() };
    let named = live.targets.as_ref().and_then(|targets| targets.first().cloned());
    let host = |address, url: Option<String>| ServingHost { address, url: url.or_else(|| named.clone()), rtt_us: None };
    let mut hosts: Vec<ServingHost> = Vec::new();
    let mut look = |trial: wt_trial::TrialRecord| {
        let seen = trial.outcome.observed;
        let Some(address) = seen.address.or(live.address) else { return Ok(()) };
        let is_of_round = trial.spec.round > 0 && trial.outcome.bytes > 0;
        let place = hosts.iter().position(|host| host.address == address).or_else(|| {
            // Trials of old say what they fetched, and not where: it needn't be at the address that the experiment names.
            let url = seen.target.filter(|_| seen.address.is_some());
            is_of_round.then(|| hosts.push(host(address, url)))?;
            Some(hosts.len() - 1)
        });
        if let Some(host) = place.map(|place| &mut hosts[place]) {
            host.rtt_us = [host.rtt_us, seen.min_rtt_us.filter(|rtt| *rtt > 0)].into_iter().flatten().min();
        }
        Ok(())
    };
    // What can't be read says nothing; whom the experiment names is known all the same.
    let _ = journal.for_each_trial(&found.id, WithSamples::No, &mut look);
    if hosts.is_empty() {
        hosts.extend(live.address.map(|address| host(address, None)));
    }
    hosts
}

/// What was so when an experiment ran. The path counts only where this host has the role in which it measured, `role`: that to `towards`,
/// if it is one of those that served, or else to the first of them.
pub(super) fn of(
    journal: &dyn Journal,
    found: &StoredExperiment,
    role: Option<Role>,
    towards: Option<IpAddr>,
) -> Basis {
    let config = found.config.tune();
    let is_real = role.is_some() && config.live.is_some();
    let hosts = if is_real { served(journal, found) } else { Vec::new() };
    let host = hosts.iter().find(|host| Some(host.address) == towards).or(hosts.first());
    let url: Option<Url> = host.and_then(|host| host.url.as_ref()?.parse().ok());
    let server = host.zip(url).map(|(host, url)| SocketAddr::new(host.address, url.port));
    let this = config.host.clone().unwrap_or_default();
    let known = |number: u64| Some(number).filter(|number| is_real && *number > 0);
    Basis {
        experiment: found.id.clone(),
        tunnel: found.tunnel.clone(),
        target: found.target.clone(),
        measured_unix_s: u64::try_from(found.started_unix_us / 1_000_000).unwrap_or(0),
        host: this.name,
        kernel: this.kernel,
        url: fetched(journal, found),
        server,
        rtt_us: known(host.and_then(|host| host.rtt_us).unwrap_or(found.path.rtt_us)),
        path_mtu: known(found.path.pmtu),
        device: None,
    }
}

/// What an experiment fetched, if curl can fetch it: from whom it got something, before whom it named.
pub(super) fn fetched(journal: &dyn Journal, found: &StoredExperiment) -> Option<String> {
    let is_ours = |url: &String| ["http://", "https://", "ftp://"].iter().any(|scheme| url.starts_with(scheme));
    let named = found.config.tune().live.as_ref()?.targets.clone().unwrap_or_default();
    let mut urls = served(journal, found).into_iter().filter_map(|host| host.url).chain(named);
    urls.find(is_ours)
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
