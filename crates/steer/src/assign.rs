use crate::assigner::Assigner;
use crate::backend::{SOCKOPS, Secrets, SockopsBackend};
use crate::routes::{ROUTES, RoutesBackend};
use crate::server_cc::{ControlOrigin, ServerControl};
use crate::slots::{SLOTS, SlotsBackend};
use serde::{Deserialize, Serialize};
use std::cell::LazyCell;
use std::fmt::Write as _;
use wt_problem::Problem;
use wt_setup::connections;
use wt_sys::ns::read_net_sysctl;
use wt_traffic::TrafficConfig;

/// Which backend is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendChoice {
    /// The first that works here and can do what is asked for: sockops, routes, slots.
    #[default]
    Auto,
    /// A BPF program at the root of the control groups.
    Sockops,
    /// Marks of nftables and policy routes, without BPF.
    Routes,
    /// Settings of the whole host, one epoch after the other.
    Slots,
}

/// Whether a way of assigning connections works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BackendState {
    /// Its name: `sockops`, `routes` or `slots`.
    pub name: &'static str,
    /// Whether it works.
    pub works: bool,
    /// What was found.
    pub found: String,
}

impl BackendState {
    fn of(name: &'static str, why_not: Option<String>, does: &str) -> Self {
        Self { name, works: why_not.is_none(), found: why_not.unwrap_or_else(|| does.to_owned()) }
    }
}

/// The ways of assigning connections, and why one doesn't work here.
#[must_use]
pub fn backends() -> Vec<BackendState> {
    vec![
        BackendState::of(
            SOCKOPS,
            crate::backend::unavailable(),
            &wt_bpf::idle_unknown().map_or_else(
                || "a BPF program can assign new connections and record them".to_owned(),
                |why| {
                    format!("a BPF program can assign new connections and record them; {why}: idle time counts as busy")
                },
            ),
        ),
        BackendState::of(
            ROUTES,
            connections::routes_unavailable(),
            "nftables can mark new connections, and routes follow",
        ),
        BackendState::of(SLOTS, connections::slots_unavailable(), "the host's settings can change from slot to slot"),
    ]
}

/// Why a backend can't do what an experiment asks for, whoever runs it.
fn refusal(name: &str, config: &TrafficConfig, servers: &[ServerControl]) -> Option<String> {
    let sysctl = |name| read_net_sysctl(name).map(|value| value.trim().to_owned()).unwrap_or_default();
    match name {
        ROUTES => crate::routes::refusal(config)
            .or_else(|| ecn_refusal(config, &sysctl("ipv4/tcp_ecn")))
            .or_else(|| own_cc(servers))
            .or_else(|| maybe_own_cc(servers)),
        SLOTS => crate::slots::refusal(config).or_else(|| own_cc(servers)),
        _ => ecn_refusal(config, &sysctl("ipv4/tcp_ecn")),
    }
}

/// One connection can accept ECN where the host doesn't, and can't refuse it where the host does.
fn ecn_refusal(config: &TrafficConfig, host: &str) -> Option<String> {
    let named = config.arms.iter().any(|arm| arm.settings.ecn().is_some());
    (named && host != "0").then(|| {
        format!(
            "this host accepts ECN on every connection (net.ipv4.tcp_ecn is {host}), so that no arm would differ: set it to 0 before, or take \
             --backend slots"
        )
    })
}

/// Servers that may set their own congestion control, where arms differ in theirs and such servers aren't taken in.
fn servers(config: &TrafficConfig) -> Vec<ServerControl> {
    if config.own_cc || config.arms.iter().all(|arm| arm.settings.cc().is_none()) {
        return Vec::new();
    }
    ServerControl::watch(&config.ports)
}

/// A server that sets its own congestion control would be given another one by a route, and none by a setting of the host.
fn own_cc(servers: &[ServerControl]) -> Option<String> {
    servers.iter().find(|one| one.origin == ControlOrigin::Server).map(|one| {
        format!(
            "the server on port {} sets its own congestion control, {}: --include own-cc takes it in all the same",
            one.port, one.name
        )
    })
}

/// The same where it isn't known: a route would give it another one without a word, and slots tell that it has its own.
fn maybe_own_cc(servers: &[ServerControl]) -> Option<String> {
    servers.iter().find(|one| one.origin == ControlOrigin::Unknown).map(|one| {
        format!(
            "the server on port {} may set its own congestion control: it listens with {}, the host has {}, and nobody has connected within \
             2 s who would show which of them connections get. Begin it while clients connect; --include own-cc takes the server in all \
             the same",
            one.port, one.name, one.usual
        )
    })
}

/// The same for one experiment: what a backend can't set or whom it can't tell apart is a reason, too, and the first one, as it holds
/// whoever asks.
pub(crate) fn backends_for(config: &TrafficConfig) -> Vec<BackendState> {
    let servers = servers(config);
    backends().into_iter().map(|state| state_for(state, config, &servers)).collect()
}

fn state_for(mut state: BackendState, config: &TrafficConfig, servers: &[ServerControl]) -> BackendState {
    if let Some(why) = refusal(state.name, config, servers) {
        (state.works, state.found) = (false, why);
        return state;
    }
    if state.works && [ROUTES, SLOTS].contains(&state.name) {
        let shortest_ms = crate::backend::shortest_by_jiffies_us() / 1_000;
        state.found += &format!("; transfers of less than {shortest_ms} ms count as alike");
    }
    if let Some(one) = servers.iter().find(|one| one.origin == ControlOrigin::Unknown && state.name == SLOTS) {
        let _ = write!(
            state.found,
            "; the server on port {} may set its own congestion control, {}: its connections would be told as not compliant",
            one.port, one.name
        );
    }
    state
}

/// The backend that is wanted, by its own name; a dry run asks for one by its name only.
///
/// # Errors
/// A usage [`Problem`] where the experiment isn't for the one that is named, and an environment [`Problem`] that says of each why it
/// doesn't work here.
pub(crate) fn choose(choice: BackendChoice, config: &TrafficConfig) -> Result<BackendChoice, Problem> {
    let wanted = match choice {
        BackendChoice::Auto => None,
        BackendChoice::Sockops => Some(SOCKOPS),
        BackendChoice::Routes => Some(ROUTES),
        BackendChoice::Slots => Some(SLOTS),
    };
    // What takes a look of some seconds is only looked for where it matters.
    let servers = LazyCell::new(|| servers(config));
    let of = |name: &str| if name == SOCKOPS { &[] } else { servers.as_slice() };
    if let Some((name, why)) = wanted.and_then(|name| Some((name, refusal(name, config, of(name))?))) {
        return Err(Problem::usage(format!("--backend {name} isn't for this experiment: {why}"))
            .hint("--backend auto takes one that is"));
    }
    let mut what = "connections can't be assigned here".to_owned();
    let fit = backends().into_iter().filter(|state| wanted.is_none_or(|name| name == state.name));
    for (at, state) in fit.enumerate() {
        let servers = of(state.name);
        let state = state_for(state, config, servers);
        if state.works {
            return Ok(match state.name {
                ROUTES => BackendChoice::Routes,
                SLOTS => BackendChoice::Slots,
                _ => BackendChoice::Sockops,
            });
        }
        let _ = write!(what, "{} {}: {}", if at == 0 { ":" } else { ";" }, state.name, state.found);
    }
    Err(Problem::environment(what).hint("windtunnel doctor says what works here"))
}

/// Refuses to run beside programs of others that may set what an arm has set.
///
/// # Errors
/// An environment [`Problem`] that names them.
pub(crate) fn alone(others: &[wt_bpf::OtherProgram]) -> Result<(), Problem> {
    if others.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = others.iter().map(ToString::to_string).collect();
    Err(Problem::environment(format!("other BPF programs see this host's connections: {}", names.join(", ")))
        .because("a tuner such as bpftune may set what an arm has set, and its outcome would be the arm's")
        .hint(
            "end it (bpftool cgroup tree), or --beside-programs: connections that it changes are told as not compliant",
        ))
}

/// Begins with the backend that was chosen; nothing is assigned yet.
///
/// # Errors
/// A [`Problem`] that says what is in the backend's way.
pub(crate) fn begin(
    chosen: BackendChoice,
    config: &TrafficConfig,
    secrets: &Secrets,
) -> Result<Box<dyn Assigner>, Problem> {
    Ok(match chosen {
        BackendChoice::Routes => Box::new(RoutesBackend::begin(config, secrets)?),
        BackendChoice::Slots => Box::new(SlotsBackend::begin(config, secrets)?),
        _ => Box::new(SockopsBackend::begin(config, secrets)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_cant_do_what_is_asked_is_the_requests_fault_and_others_in_the_way_are_named() {
        let config = TrafficConfig {
            arms: crate::arms_of_levels(&["pacing=20mbit".to_owned()]).unwrap(),
            ..TrafficConfig::default()
        };
        for (choice, said) in
            [(BackendChoice::Slots, "--unit slot"), (BackendChoice::Routes, "no route can give connections pacing")]
        {
            let problem = choose(choice, &config).unwrap_err();
            assert_eq!(problem.fault, wt_problem::Fault::Usage);
            assert!(problem.what.contains(said), "{problem}");
        }
        let ecn = TrafficConfig { arms: crate::arms_of_levels(&["ecn=off,on".to_owned()]).unwrap(), ..config };
        assert_eq!(ecn_refusal(&ecn, "0"), None);
        assert!(ecn_refusal(&ecn, "2").unwrap().contains("tcp_ecn is 2"));
        assert!(alone(&[]).is_ok());
        let tuner = wt_bpf::OtherProgram { id: 12, name: "conn_tuner".to_owned() };
        let problem = alone(&[tuner]).unwrap_err();
        assert!(problem.what.ends_with(": conn_tuner (program 12)"), "{problem}");
        assert_eq!(problem.fault, wt_problem::Fault::Environment);
    }
}
