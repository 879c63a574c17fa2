//! Which server served the trials, where a profile names several.

use super::{TrialFigure, TuneReport};
use serde::Serialize;
use utoipa::ToSchema;
use wt_trial::{Status, TrialRecord};
use wt_units::upper_median;

/// What one of several servers gave; servers take turns by rounds, so it says nothing of settings.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ServerTrials {
    /// The server.
    pub server: String,
    /// Trials that it served, or was asked for.
    pub trials: usize,
    /// Of those, completed ones.
    pub completed: usize,
    /// Median figure of the completed ones: see `measured`.
    pub figure: Option<f64>,
}

/// Server by server, in the order in which they were first asked; nothing where only one was.
pub(super) fn servers(records: &[&TrialRecord], measured: &TrialFigure) -> Vec<ServerTrials> {
    let mut all: Vec<(ServerTrials, Vec<f64>)> = Vec::new();
    for record in records {
        let Some(server) = &record.outcome.observed.target else { continue };
        let place = all.iter().position(|(known, _)| known.server == *server).unwrap_or_else(|| {
            let new = ServerTrials { server: server.clone(), trials: 0, completed: 0, figure: None };
            all.push((new, Vec::new()));
            all.len() - 1
        });
        let (known, figures) = &mut all[place];
        known.trials += 1;
        if record.outcome.status == Status::Completed {
            known.completed += 1;
            figures.extend(record.outcome.figure(measured.scale));
        }
    }
    all.into_iter().map(|(known, figures)| ServerTrials { figure: upper_median(figures), ..known }).collect()
}

impl TuneReport {
    /// A line for each server.
    pub(crate) fn server_lines(&self) -> Vec<String> {
        let line = |one: &ServerTrials| {
            let figure =
                one.figure.map_or_else(String::new, |_| format!(", median {}", self.measured.show(one.figure)));
            format!("{}: {} of {} completed{figure}", one.server, one.completed, wt_units::counted(one.trials, "trial"))
        };
        self.servers.iter().map(line).collect()
    }
}
