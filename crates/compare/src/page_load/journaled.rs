//! A comparison of loads in the journal: `windtunnel report` assesses it again from there, as any other of settings.

use super::compare::{ALPHA, ComparedLoads, WindowPair};
use super::load::PageLoad;
use super::request::PageRequest;
use std::time::Duration;
use wt_journal::{Arm, ExperimentConfig, NewExperiment, State, TuneConfig};
use wt_lab::LabFacts;
use wt_problem::Problem;
use wt_sys::clock::{monotonic_ns, unix_us};
use wt_trial::{
    MOST_OBJECTS, ObjectTime, Page, PageObject, Phase, Status, TrialOutcome, TrialSpec, USUAL_CONNECTIONS, Workload,
};
use wt_tune::notebook::{Notebook, host};
use wt_units::{Bytes, Settings};

/// The load before those that count.
pub(super) struct LoadBefore {
    /// What was loaded.
    pub(super) load: PageLoad,
    /// How long that took with the browser's start and end.
    pub(super) took: Duration,
    /// The browser with its version.
    pub(super) browser: String,
}

/// The journal of one comparison.
pub(super) struct LoadLog {
    notebook: Notebook,
    settings: [Settings; 2],
    workload: Workload,
    deadline: Duration,
    seed: u64,
    order: u32,
}

impl LoadLog {
    /// Writes down what is compared. What the page is made of is told by a load that doesn't count, and so is how long one
    /// takes with all that is around it.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub(super) fn open(
        request: &PageRequest,
        pair: WindowPair,
        before: &LoadBefore,
        deadline: Duration,
        seed: u64,
    ) -> Result<Self, Problem> {
        let settings = [0, 1].map(|arm| pair.settings(arm));
        let lab = LabFacts::here();
        let workload = Workload::Page { page: page_of(&request.url, &before.load) };
        let config = TuneConfig {
            // Evidence of both sides is looked at, each for half of the risk.
            alpha: Some(ALPHA / 2.0),
            max_trials: usize::try_from(request.runs).ok().map(|rounds| rounds * 2),
            workload: Some(workload.clone()),
            per_trial_us: u64::try_from(before.took.as_micros()).ok(),
            measured_time: Some(true),
            browser: Some(before.browser.clone()),
            again: lab.as_ref().and_then(|lab| request.again(&lab.command)),
            host: Some(host()),
            command: Some(request.command.clone()).filter(|command| !command.is_empty()),
            ..TuneConfig::default()
        };
        let started = unix_us();
        let salt = (monotonic_ns() & 0xFFFF) as u16;
        let arm = |arm: usize| Arm { label: pair.label(arm), settings: settings[arm].clone() };
        let new = NewExperiment {
            started_unix_us: started,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            comment: request.comment.clone(),
            path: lab.map(|lab| lab.path).unwrap_or_default(),
            arms: vec![arm(0), arm(1)],
            config: ExperimentConfig::Tune(Box::new(config.whole())),
            seed,
            owner: wt_setup::journal::own_identity(),
            ..NewExperiment::new(wt_journal::experiment_id(started, "page", salt), &request.url, "lab")
        };
        let notebook = Notebook::open(request.journal.as_deref(), &new)?;
        Ok(Self { notebook, settings, workload, deadline, seed, order: 0 })
    }

    /// Its name in the journal.
    pub(super) fn id(&self) -> &str {
        self.notebook.id()
    }

    /// Loads the page once for one of the two; it is in the journal when this returns.
    ///
    /// # Errors
    /// What the load fails with, or a [`Problem`] that names the journal.
    pub(super) fn trial(
        &mut self,
        round: u32,
        arm: usize,
        load: impl FnOnce() -> Result<PageLoad, Problem>,
    ) -> Result<PageLoad, Problem> {
        self.order += 1;
        let spec = TrialSpec {
            experiment: self.id().to_owned(),
            phase: Phase::Round,
            round,
            order: self.order,
            arm,
            settings: self.settings[arm].clone(),
            workload: self.workload.clone(),
            deadline: self.deadline,
            seed: self.seed,
        };
        let number = self.notebook.begin(&spec, unix_us())?;
        let loaded = load();
        let outcome = match &loaded {
            Ok(load) => outcome(load, &self.settings[arm]),
            Err(problem) => TrialOutcome::empty(Status::Aborted, Duration::ZERO, problem.what.clone()),
        };
        self.notebook.finish(number, &outcome)?;
        loaded
    }

    /// It is over.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub(super) fn end(mut self, compare: &ComparedLoads) -> Result<(), Problem> {
        let better = compare.low.is_some_and(|low| low > 1.0);
        let settings = if better { self.settings[1].clone() } else { Settings::new() };
        let kind = if better { "faster" } else { "no-difference" };
        let verdict =
            serde_json::json!({ "kind": kind, "headline": compare.text, "settings": settings, "page": compare });
        self.notebook.end(State::Finished, &verdict)
    }
}

/// The page as the browser asked for it.
fn page_of(url: &str, load: &PageLoad) -> Page {
    let object = |one: &super::load::LoadedResource| PageObject {
        path: Some(one.url.clone()),
        size: Bytes(one.bytes.unwrap_or(0.0).max(0.0) as u64),
    };
    let http2 = load.resources.first().and_then(|first| first.protocol.as_deref()) == Some("h2");
    Page {
        name: url.to_owned(),
        objects: load.resources.iter().take(MOST_OBJECTS).map(object).collect(),
        connections: if http2 { 1 } else { USUAL_CONNECTIONS },
        http2,
        close_each: false,
        tls: url.to_ascii_lowercase().starts_with("https:"),
    }
}

/// A load as an outcome: what is compared is the time until the event load, whatever bytes came by then.
fn outcome(load: &PageLoad, granted: &Settings) -> TrialOutcome {
    let us = |ms: f64| (ms * 1e3).round().max(0.0) as u64;
    let object = |(place, one): (usize, &super::load::LoadedResource)| {
        let done = one.end_ms?;
        Some(ObjectTime {
            object: u32::try_from(place).unwrap_or(u32::MAX),
            connection: one.connection.unwrap_or(0),
            asked_us: us(one.start_ms),
            sent_us: one.sent_ms.map(us),
            first_byte_us: us(one.first_byte_ms.unwrap_or(done)),
            done_us: us(done),
            bytes: one.bytes.unwrap_or(0.0).max(0.0) as u64,
        })
    };
    let mut outcome = TrialOutcome::empty(Status::Completed, Duration::from_micros(us(load.load_ms)), "");
    outcome.notes.clear();
    outcome.bytes = load.bytes.max(1.0) as u64;
    outcome.granted = granted.clone();
    outcome.measures.score = Some(1e3 / load.load_ms.max(1e-3));
    outcome.measures.objects = load.resources.iter().take(MOST_OBJECTS).enumerate().filter_map(object).collect();
    outcome
}

#[cfg(test)]
mod tests {
    use super::super::load::LoadedResource;
    use super::*;

    #[test]
    fn a_load_is_a_trial_of_a_page_whose_time_is_judged() {
        let resource = |end_ms: f64, bytes: f64| LoadedResource {
            url: "https://x/a".to_owned(),
            start_ms: 1.0,
            sent_ms: Some(80.0),
            connection: Some(1),
            end_ms: Some(end_ms),
            bytes: Some(bytes),
            protocol: Some("h2".to_owned()),
            ..LoadedResource::default()
        };
        let load = PageLoad {
            load_ms: 250.0,
            requests: 2,
            bytes: 3_000.0,
            resources: vec![resource(100.0, 1_000.0), resource(250.0, 2_000.0)],
            ..PageLoad::default()
        };
        let outcome = outcome(&load, &Settings::new());
        assert_eq!((outcome.elapsed_us, outcome.bytes, outcome.measures.score), (250_000, 3_000, Some(4.0)));
        let last = outcome.measures.objects[1];
        assert_eq!((last.sent_us, last.connection), (Some(80_000), 1));
        assert_eq!((last.asked_us, last.first_byte_us, last.done_us, last.bytes), (1_000, 250_000, 250_000, 2_000));
        let page = page_of("https://x/a", &load);
        assert_eq!((page.size(), page.connections, page.http2, page.tls), (Bytes(3_000), 1, true, true));
    }
}
