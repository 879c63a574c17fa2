use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;
use wt_journal::StoredExperiment;
use wt_setup::{Baseline, Budget, Levels, NamedArm, WorkloadRequest, duration_or_none};
use wt_tune::{TrialDirection, TuneRequest};
use wt_units::{Assignment, Knob};

/// How an agent is to measure: what of an experiment a fleet's owner may say. Files, keys and who is believed are the agent's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSpec {
    /// What is varied; nothing means what usually matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knobs: Option<Vec<Knob>>,
    /// Levels of knobs, instead of those chosen from the path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Levels>,
    /// Candidates of several settings that belong together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<NamedArm>,
    /// What every candidate is compared with; nothing means the current settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Settings fixed in every trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hold: Vec<Assignment>,
    /// What it may cost at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How long each trial transfers.
    #[serde(with = "duration_or_none", skip_serializing_if = "Option::is_none")]
    pub trial: Option<Duration>,
    /// What each trial does. No job names a file, and a HAR is one.
    #[serde(deserialize_with = "workload_without_file")]
    pub workload: WorkloadRequest,
    /// Which way the payload goes, seen from the agent.
    pub direction: TrialDirection,
    /// Whether trials may change settings of the whole host; the agent has to allow it, too.
    pub host_wide: bool,
    /// Hours of the day in which it may begin, in UTC: `22:00-06:00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
}

/// Reads a workload that a fleet's owner wrote: the agent would open a file with rights of its own, before its policy is asked, and
/// tell the owner what came of it.
fn workload_without_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WorkloadRequest, D::Error> {
    let text = String::deserialize(deserializer)?;
    if WorkloadRequest::names_file(&text) {
        return Err(D::Error::custom(
            "workload: a job can't name a HAR file (har=), which would be opened on each agent's host: leave it out, or run \
             windtunnel tune with it on the host that has the file",
        ));
    }
    text.parse().map_err(D::Error::custom)
}

impl JobSpec {
    /// The knobs that it names; `None` where it leaves some to the program.
    pub(crate) fn named_knobs(&self) -> Option<Vec<Knob>> {
        let assignments = self.arms.iter().flat_map(|arm| &arm.settings).chain(&self.hold);
        let mut named: Vec<Knob> = assignments.map(|one| one.knob).collect();
        named.extend(self.levels.iter().map(|levels| levels.knob));
        named.extend(self.knobs.iter().flatten());
        match &self.baseline {
            Some(Baseline::Settings(settings)) => named.extend(settings.iter().map(|one| one.knob)),
            // Which knobs those are changes with the program.
            Some(Baseline::System(_)) => return None,
            None => {}
        }
        let varies = self.knobs.is_some() || !self.levels.is_empty() || !self.arms.is_empty();
        varies.then_some(named)
    }

    /// Whether an experiment varies and holds nothing but what this names and a host allows.
    pub(crate) fn has(&self, old: &StoredExperiment, allowed: Option<&[Knob]>) -> bool {
        let Ok(held) = old.config.tune().held() else { return false };
        let named = self.named_knobs();
        let may_be = |knob: &Knob| {
            named.as_ref().is_none_or(|named| named.contains(knob))
                && allowed.is_none_or(|allowed| allowed.contains(knob))
        };
        old.arms.iter().flat_map(|arm| arm.settings.iter()).chain(held.iter()).all(|(knob, _)| may_be(&knob))
    }

    /// The experiment that it asks for, without what is the agent's own.
    pub(crate) fn experiment(&self) -> TuneRequest {
        let mut request = TuneRequest {
            knobs: self.knobs.clone(),
            levels: self.levels.clone(),
            arms: self.arms.clone(),
            baseline: self.baseline.clone(),
            hold: self.hold.clone(),
            budget: self.budget,
            trial: self.trial,
            workload: self.workload.clone(),
            direction: self.direction,
            ..TuneRequest::default()
        };
        request.live.allow_host_wide = self.host_wide;
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Mesh;

    #[test]
    fn only_an_experiment_on_what_the_job_names_and_the_host_allows_is_one_of_it() {
        let begun = |settings: &[&str], held: &str| {
            let arm = |text: &&str| serde_json::json!({"label": text, "settings": serde_json::from_str::<serde_json::Value>(text).unwrap()});
            let arms: Vec<_> = settings.iter().map(arm).collect();
            let mut new = wt_journal::NewExperiment::new("e", "wt://s.example", "live");
            new.arms = serde_json::from_value(arms.into()).unwrap();
            new.config = serde_json::json!({"hold": serde_json::from_str::<serde_json::Value>(held).unwrap()}).into();
            new.begun()
        };
        let spec: JobSpec = serde_json::from_str(r#"{"levels": ["rwin=16KiB"], "hold": ["cc=cubic"]}"#).unwrap();
        let old = begun(&["{}", r#"{"rwin":16384}"#], r#"{"cc":"cubic"}"#);
        assert!(spec.has(&old, None) && spec.has(&old, Some(&[Knob::Rwin, Knob::Cc])));
        assert!(!spec.has(&old, Some(&[Knob::Rwin])), "the host allows it no more");
        assert!(!spec.has(&begun(&["{}", r#"{"mss":1400}"#], "{}"), None), "another spec began it");
        assert!(!spec.has(&begun(&["{}"], r#"{"mss":1400}"#), None));
        assert!(JobSpec::default().has(&begun(&[r#"{"mss":1400}"#], "{}"), None), "it names none of its own");
    }

    #[test]
    fn a_job_that_names_a_file_is_refused_before_the_file_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("page.har");
        let entry = r#"{"response": {"status": 200, "bodySize": 100}}"#;
        std::fs::write(&there, format!(r#"{{"log": {{"entries": [{entry}]}}}}"#)).unwrap();
        let (there, missing) = (there.display(), folder.path().join("missing").display().to_string());
        let page = format!("page:har={there}");
        assert!(page.parse::<WorkloadRequest>().is_ok(), "on the host itself it is a workload");
        // What is said of a file that is there, of none and of a folder is the same.
        let mut told = std::collections::BTreeSet::new();
        for text in [
            page.clone(),
            format!("page:har={missing}"),
            format!("page: har = {}", folder.path().display()),
            format!("page:connections=6,har={there}"),
        ] {
            let spec = serde_json::json!({ "workload": text }).to_string();
            told.insert(serde_json::from_str::<JobSpec>(&spec).unwrap_err().to_string());
        }
        let told = Vec::from_iter(told);
        assert!(told.iter().all(|why| why.contains("can't name a HAR file") && !why.contains("No such")), "{told:?}");
        let reasons: std::collections::BTreeSet<_> = told.iter().map(|why| why.split(" at line").next()).collect();
        assert_eq!(reasons.len(), 1, "{told:?}");
        // Whoever writes the plan learns it at once.
        let mesh = format!(
            "name = \"m\"\n[[measure]]\nfrom = [\"a\"]\nto = [\"wt://s.example\"]\nwith = {{ workload = \"{page}\" }}"
        );
        let why = Mesh::parse(&mesh).unwrap_err();
        assert!(why.contains("can't name a HAR file"), "{why}");
        let other: JobSpec = serde_json::from_str(r#"{"workload": "page:size=10kB"}"#).unwrap();
        assert_eq!(other.workload.to_string(), "page:size=10kB");
    }
}
