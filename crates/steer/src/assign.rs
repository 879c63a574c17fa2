use crate::assigner::Assigner;
use crate::backend::{Keys, SOCKOPS, SockopsBackend};
use crate::routes::{ROUTES, RoutesBackend};
use crate::slots::{SLOTS, SlotsBackend};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use wt_problem::Problem;
use wt_setup::connections;
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
            "a BPF program can assign new connections and record them",
        ),
        BackendState::of(
            ROUTES,
            connections::routes_unavailable(),
            "nftables can mark new connections, and routes follow",
        ),
        BackendState::of(SLOTS, connections::slots_unavailable(), "the host's settings can change from slot to slot"),
    ]
}

/// The same for one experiment: what a backend can't set or whom it can't tell apart is a reason, too.
pub(crate) fn backends_for(config: &TrafficConfig) -> Vec<BackendState> {
    let mut states = backends();
    for state in states.iter_mut().filter(|state| state.works) {
        let refused = match state.name {
            ROUTES => crate::routes::refusal(config),
            SLOTS => crate::slots::refusal(config),
            _ => None,
        };
        if let Some(why) = refused {
            (state.works, state.found) = (false, why);
        }
    }
    states
}

/// Begins with the backend that is wanted; nothing is assigned yet.
///
/// # Errors
/// A [`Problem`] that says of each backend why it doesn't do.
pub(crate) fn begin(choice: BackendChoice, config: &TrafficConfig, keys: Keys) -> Result<Box<dyn Assigner>, Problem> {
    let wanted = match choice {
        BackendChoice::Auto => None,
        BackendChoice::Sockops => Some(SOCKOPS),
        BackendChoice::Routes => Some(ROUTES),
        BackendChoice::Slots => Some(SLOTS),
    };
    let states = backends_for(config);
    let fit = |state: &&BackendState| wanted.is_none_or(|name| name == state.name);
    let Some(found) = states.iter().filter(fit).find(|state| state.works) else {
        let mut what = "connections can't be assigned here".to_owned();
        for (at, state) in states.iter().filter(fit).enumerate() {
            let _ = write!(what, "{} {}: {}", if at == 0 { ":" } else { ";" }, state.name, state.found);
        }
        return Err(Problem::environment(what).hint("windtunnel doctor says what works here"));
    };
    Ok(match found.name {
        ROUTES => Box::new(RoutesBackend::begin(config, keys)?),
        SLOTS => Box::new(SlotsBackend::begin(config, keys)?),
        _ => Box::new(SockopsBackend::begin(config, keys)?),
    })
}
