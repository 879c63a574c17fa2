//! Opening servers: those that a target names, and those of an experiment that is continued.

use super::answer::TuneAnswer;
use super::event::{Sink, TuneEvent};
use super::hold::held_in;
use super::inspect::{reached, unfound};
use super::live::{ASSUMED, Live};
use super::profile::{self, ProfileRemote};
use super::request::{LiveRequest, TrialDirection, TuneRequest};
use super::session::Session;
use super::turns::RoundTurns;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wt_journal::StoredExperiment;
use wt_live::{Changer, Control, LiveConfig, LiveTunnel, Target};
use wt_load::{Scheme, SharedKey, Tls, Url};
use wt_prober::IpVersion;
use wt_problem::{Fault, Problem};
use wt_setup::{Budget, Controls, HostAccess, controls};
use wt_sys::ns::read_net_sysctl;
use wt_trial::{Cancel, Direction, Holding, LoadedControl, Workload};
use wt_units::{BitsPerSecond, Knob, Login, Settings};

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(
    request: &TuneRequest,
    target: &str,
    cancel: &Cancel,
    events: Sink<'_>,
) -> Result<TuneAnswer, Problem> {
    let names: Vec<String> = request.names().map(str::to_owned).collect();
    let named = named(target, request.key.as_ref())?;
    for one in &named {
        request.workload.check(one.url.scheme).map_err(|why| Problem::usage(format!("{}: {why}", one.url)))?;
        if request.direction == TrialDirection::Both && one.url.scheme != Scheme::Wt {
            let why = format!("{}: both ways at once need windtunnel serve, wt://KEY@HOST", one.url);
            return Err(Problem::usage(why).hint("or --direction up and --direction down, one after the other"));
        }
    }
    session(request, named, &names, &FixedChoices::default(), cancel, events)?.run(events)
}

/// The servers that a target stands for. Those of ours that have no key in their address get this one.
pub(crate) fn named(target: &str, key: Option<&SharedKey>) -> Result<Vec<ProfileRemote>, Problem> {
    let mut all = servers(target)?;
    for url in all.iter_mut().map(|one| &mut one.url).filter(|url| url.scheme == Scheme::Wt && url.login.is_none()) {
        let missing = || {
            Problem::usage(format!("{url} needs the key that windtunnel serve showed there"))
                .hint("--key-file FILE, or the environment variable WINDTUNNEL_KEY")
        };
        let user = key.ok_or_else(missing)?.to_hex();
        url.login = Some(Login { user, password: String::new() });
    }
    Ok(all)
}

fn servers(target: &str) -> Result<Vec<ProfileRemote>, Problem> {
    if !profile::is_profile(target) {
        let url: Url = target.parse().map_err(|error: wt_load::UrlError| {
            let or_profile = "or name a profile, a .toml file with [[target]] url = \"…\"";
            let is_path = wt_lab::presets::names().contains(&target);
            Problem::usage(error.to_string()).hint(if is_path { in_lab(target) } else { or_profile.to_owned() })
        })?;
        return Ok(vec![ProfileRemote { url, comment: String::new() }]);
    }
    let text = std::fs::read_to_string(target).map_err(|error| Problem::usage(format!("{target}: {error}")))?;
    profile::parse(&text).map_err(|error| {
        let wrong = Problem::usage(format!("{target}: {error}"));
        if wt_lab::presets::load(target).is_ok() { wrong.hint(in_lab(target)) } else { wrong }
    })
}

/// What to type where a path is named in place of a server.
fn in_lab(path: &str) -> String {
    format!("{path} is a path of the lab: windtunnel tune --lab {}", wt_units::shell_word(path))
}

/// Opens the target that an experiment of the journal was run on.
///
/// # Errors
/// A [`Problem`] when it isn't there any more.
pub(crate) fn again<'a>(
    request: &'a TuneRequest,
    stored: &StoredExperiment,
    cancel: &'a Cancel,
    events: Sink<'_>,
) -> Result<Session<'a, LiveTunnel>, Problem> {
    let config = stored.config.tune();
    let before = config.live.clone().unwrap_or_default();
    let urls = before.targets.clone().unwrap_or_default();
    // What was typed now counts: a password isn't kept.
    let urls = request.target.clone().map_or(urls, |target| vec![target]);
    if urls.is_empty() {
        return Err(Problem::internal(format!("{} doesn't say where it was run", stored.id)));
    }
    let known = before.targets.iter().chain(&before.asked).flatten().map(String::as_str);
    let known: Vec<&str> = known.chain(stored.target.split(' ')).collect();
    let mut all = Vec::new();
    for url in urls {
        let kept = request.target.is_none();
        all.extend(named(&url, request.key.as_ref()).map_err(|failure| {
            match url.strip_prefix("wt://").filter(|_| kept) {
                Some(host) => failure
                    .because("no key is kept in the journal")
                    .hint(format!("windtunnel tune wt://{host} --key-file FILE --resume {}", stored.id)),
                None => failure,
            }
        })?);
    }
    if let Some(other) = all.iter().map(|one| one.url.to_string()).find(|url| !known.contains(&url.as_str())) {
        return Err(Problem::usage(format!("{} was run on {}, not on {other}", stored.id, stored.target))
            .hint("leave the target away (only a password or a key is asked for anew), or begin a new experiment"));
    }
    let held = held_in(stored)?;
    let arms = stored.arms.iter().map(|arm| &arm.settings).chain([&held]);
    let names = arms.filter_map(|settings| settings.name(Knob::Cc).map(str::to_owned));
    let fixed = FixedChoices {
        direction: config.workload.as_ref().map(Workload::direction),
        v6: before.address.map(|address| address.is_ipv6()),
        held: Some(held.clone()),
        // A share of lost probes is known wherever they were sent.
        unprobed: before.loss.is_none(),
    };
    let mut session = session(request, all, &names.collect::<Vec<_>>(), &fixed, cancel, events)?;
    if let Some(live) = &mut session.live {
        live.description.targets = before.targets.or_else(|| live.description.targets.take());
        live.description.asked = before.asked;
        live.rate.set(before.rate_bps.map(BitsPerSecond));
        live.length.set(before.length);
    }
    Ok(session)
}

/// What an experiment that is gone on with has fixed, whatever is said now.
#[derive(Debug, Default)]
pub(crate) struct FixedChoices {
    direction: Option<Direction>,
    v6: Option<bool>,
    held: Option<Settings>,
    /// Nothing was probed when it began, as it was asked for (`--no-probes`) or nothing could be: what is added doesn't begin with it.
    unprobed: bool,
}

impl FixedChoices {
    /// The request by which the path is looked at.
    fn look(&self, request: &TuneRequest) -> TuneRequest {
        let live = LiveRequest { no_probes: request.live.no_probes || self.unprobed, ..request.live.clone() };
        TuneRequest { live, ..request.clone() }
    }
}

/// Opens the remote hosts; `names` are the levels that may be congestion controls of ours.
pub(crate) fn session<'a>(
    request: &'a TuneRequest,
    named: Vec<ProfileRemote>,
    names: &[String],
    before: &FixedChoices,
    cancel: &'a Cancel,
    events: Sink<'_>,
) -> Result<Session<'a, LiveTunnel>, Problem> {
    let direction = before.direction.unwrap_or_else(|| request.payload_direction());
    let v6 = request.live.ip.map(|ip| ip == IpVersion::V6).or(before.v6);
    let ours = ours(direction, names)?;
    let mut targets = Vec::new();
    let mut first_found = None;
    let mut last = Problem::usage("there is no target");
    let mut probing = RoundTurns::shared(request.turns.as_ref().filter(|_| !request.dry_run))?;
    if !probing.take(cancel, None, events)? {
        return Err(Problem::stopped("stopped before anything was measured; nothing was journaled"));
    }
    // Of several, those that aren't there are passed over.
    let passes_over = named.len() > 1;
    let look = before.look(request);
    for ProfileRemote { url, comment } in named {
        let mut found = Target::find(url.clone(), v6, cancel).map_err(|error| unfound(&error));
        if first_found.is_none() && found.is_ok() {
            found = reached(&look, &url, v6, cancel, events).map(|(target, inspected)| {
                first_found = Some(inspected);
                target
            });
        }
        match found {
            Ok(target) => targets.push(target.commented(comment)),
            Err(failure) if failure.fault == Fault::Stopped => return Err(failure),
            Err(failure) => {
                if passes_over {
                    events(TuneEvent::note(&failure.what));
                }
                last = failure;
            }
        }
    }
    probing.give_back();
    let (Some(first), Some(inspected)) = (targets.first(), first_found) else { return Err(last) };
    let near = targets.iter().all(Target::is_near);
    let tls = Tls::new(request.live.ca.as_deref()).map_err(|error| Problem::usage(error.to_string()))?;
    let controls = controls();
    let allowance = if let Some(Budget::Size(total)) = request.budget { Some(total.get()) } else { None };
    let live = Live {
        pause: request.live.pause,
        near,
        by_time: matches!(first.url.scheme, Scheme::Iperf3 | Scheme::Wt),
        rate: Cell::new(None),
        length: Cell::new(None),
        mss: Cell::new(None),
        assumed: inspected.facts.physical_goodput_bps.map_or(ASSUMED, BitsPerSecond),
        spent: Cell::new(0),
        loss: inspected.loss,
        elsewhere: None,
        description: wt_journal::LiveConfig {
            targets: Some(targets.iter().map(|target| target.url.to_string()).collect()),
            address: Some(first.peer.ip()),
            ca: request.live.ca.clone(),
            ..wt_journal::LiveConfig::default()
        },
    };
    let tunnel = LiveTunnel::new(LiveConfig {
        direction,
        v6,
        tls,
        changer: changer(request)?,
        facts: inspected.facts,
        device_mtu: inspected.device_mtu,
        congestion_control: read_net_sysctl("ipv4/tcp_congestion_control").unwrap_or_default(),
        congestion_controls: controls.clone(),
        controls: ours,
        allowance,
        targets,
    });
    let held = before.held.clone().map_or_else(|| request.held(&tunnel), Ok)?;
    let tunnel = Holding::new(tunnel, held);
    let turns = RoundTurns::of(request.turns.as_ref())?;
    Ok(Session { live: Some(live), ..Session::new(request, tunnel, controls, turns, cancel) })
}

/// Congestion controls of ours among these names: loaded here where this end sends; where the remote host does, the name under
/// which a `windtunnel serve` has it.
fn ours(direction: Direction, names: &[String]) -> Result<BTreeMap<String, Control>, Problem> {
    if direction == Direction::Up {
        let loaded = Controls::load(names.iter().map(String::as_str))?;
        let one = |(name, control): (String, Rc<dyn LoadedControl>)| {
            let kernel_name = control.kernel_name().to_owned();
            (name, Control { kernel_name, loaded: Some(control) })
        };
        return Ok(loaded.loaded().map(one).collect());
    }
    let mut found = BTreeMap::new();
    for name in names.iter().filter(|name| name.contains('@')) {
        if let Some(choice) = controls::ours(name).transpose()? {
            found.insert(name.clone(), Control { kernel_name: choice.kernel_name(), loaded: None });
        }
    }
    Ok(found)
}

/// The congestion controls that this process may use.
fn controls() -> Vec<String> {
    let all = ["ipv4/tcp_available_congestion_control", "ipv4/tcp_allowed_congestion_control"];
    let file = all[usize::from(wt_sys::process::effective_uid() != 0)];
    read_net_sysctl(file).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// What changes routes and the host; only asked for when a knob needs it.
fn changer(request: &TuneRequest) -> Result<Option<Changer>, Problem> {
    let HostAccess { system, store, guard } = HostAccess::open(None, None)?;
    Ok(Some(Changer { system, store, guard, allow_host_wide: request.live.allow_host_wide }))
}

#[cfg(test)]
mod tests;
