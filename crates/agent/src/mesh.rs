//! A mesh: who measures what to whom, how often, within which hours, over which links. A file of TOML.

use crate::hours::Hours;
use crate::job::JobSpec;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;
use wt_fleet::NewJob;
use wt_setup::duration_or_none;
use wt_units::Url;

/// Where nothing else is said, an experiment begins at a random time within so long.
const SPREAD: Duration = Duration::from_secs(600);

/// A plan for a fleet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// What it is called.
    pub name: String,
    /// What is measured.
    #[serde(default)]
    pub measure: Vec<Measure>,
}

/// From some hosts to some targets, all alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Agents.
    pub from: Vec<String>,
    /// Servers, as `windtunnel tune` takes them.
    pub to: Vec<String>,
    /// What all these share, so that one measures at a time: `link:berlin`.
    #[serde(default)]
    pub links: Vec<String>,
    /// How often; nothing means once.
    #[serde(default, with = "duration_or_none")]
    pub every: Option<Duration>,
    /// It begins at a random time within so long; nothing means 10 minutes, or `every` where that is shorter.
    #[serde(default, with = "duration_or_none")]
    pub within: Option<Duration>,
    /// How.
    #[serde(default)]
    pub with: JobSpec,
}

impl Mesh {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mesh: Self = toml::from_str(text).map_err(|error| wt_units::shortened(&error.to_string()))?;
        let is_name = |name: &str| {
            !name.is_empty() && name.len() <= 60 && !name.contains(|c: char| c.is_whitespace() || c == '/')
        };
        if !is_name(&mesh.name) {
            return Err("a mesh needs a name of at most 60 letters, without spaces and slashes".to_owned());
        }
        if mesh.measure.is_empty() {
            return Err("nothing is measured: it needs [[measure]] with from and to".to_owned());
        }
        let mut pairs = BTreeSet::new();
        for measure in &mesh.measure {
            measure.check()?;
            for (from, to) in measure.pairs() {
                if !pairs.insert((from, to)) {
                    return Err(format!("{from} measures to {to} twice: one mesh has each pair once"));
                }
            }
        }
        Ok(mesh)
    }

    /// What each agent gets.
    pub(crate) fn jobs(&self) -> Result<Vec<NewJob>, String> {
        let mut jobs = Vec::new();
        for measure in &self.measure {
            let spec = serde_json::to_string(&measure.with).map_err(|error| error.to_string())?;
            let spread = measure.within.unwrap_or(SPREAD).min(measure.every.unwrap_or(Duration::MAX));
            jobs.extend(measure.pairs().map(|(agent, target)| NewJob {
                agent: agent.to_owned(),
                target: target.to_owned(),
                spec: spec.clone(),
                links: measure.links.clone(),
                every: measure.every,
                spread,
            }));
        }
        Ok(jobs)
    }
}

impl Measure {
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.from.iter().flat_map(|from| self.to.iter().map(move |to| (from.as_str(), to.as_str())))
    }

    fn check(&self) -> Result<(), String> {
        if self.from.is_empty() || self.to.is_empty() {
            return Err("[[measure]] needs agents in from and servers in to".to_owned());
        }
        for to in &self.to {
            let url: Url = to.parse().map_err(|error| format!("{to}: {error}"))?;
            if url.login.is_some() {
                return Err(format!(
                    "{url}: keys and passwords aren't for everybody: they stand in each agent's [keys]"
                ));
            }
        }
        if self.every.is_some_and(|every| every < Duration::from_secs(60)) {
            return Err("every is at least 1min".to_owned());
        }
        let trials = Duration::from_millis(200)..=Duration::from_secs(3600);
        if let Some(trial) = self.with.trial.filter(|trial| !trials.contains(trial)) {
            return Err(format!("a trial of {} s is out of range: allowed is 200ms to 1h", trial.as_secs_f64()));
        }
        self.with.hours.iter().try_for_each(|hours| hours.parse::<Hours>().map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESH: &str = r#"
        name = "north"
        [[measure]]
        from = ["a", "b"]
        to = ["wt://s.example:7411", "https://t.example/file"]
        links = ["link:berlin"]
        every = "6h"
        with = { levels = ["cc=cubic,bbr"], budget = "200MB", hours = "22:00-06:00" }
    "#;

    #[test]
    fn each_agent_gets_each_target_once_and_begins_at_a_random_time() {
        let jobs = Mesh::parse(MESH).unwrap().jobs().unwrap();
        let pairs: Vec<(&str, &str)> = jobs.iter().map(|job| (job.agent.as_str(), job.target.as_str())).collect();
        let (s, t) = ("wt://s.example:7411", "https://t.example/file");
        assert_eq!(pairs, [("a", s), ("a", t), ("b", s), ("b", t)]);
        assert!(jobs.iter().all(|job| job.spread == SPREAD && job.every == Some(Duration::from_secs(21_600))));
        let spec: JobSpec = serde_json::from_str(&jobs[0].spec).unwrap();
        assert_eq!(spec, Mesh::parse(MESH).unwrap().measure[0].with, "what arrives is what was written");
    }

    #[test]
    fn every_takes_days_and_weeks_as_well() {
        for (text, hours) in [("2d", 48), ("1w", 168), ("90min", 1)] {
            let jobs = Mesh::parse(&MESH.replace("6h", text)).unwrap().jobs().unwrap();
            assert_eq!(jobs[0].every.unwrap().as_secs() / 3600, hours, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_mesh_is_named() {
        for (change, told) in [
            (("name = \"north\"", "name = \"a b\""), "without spaces"),
            (("wt://s.example", "wt://0123@s.example"), "[keys]"),
            (("wt://s.example:7411", "nowhere"), "nowhere"),
            (("22:00-06:00", "night"), "hours of the day"),
            (("[\"a\", \"b\"]", "[\"a\", \"a\"]"), "twice"),
            (("6h", "1s"), "1min"),
            (("levels", "journal"), "journal"),
            (("budget =", "trial = \"100ms\", budget ="), "200ms to 1h"),
        ] {
            let error = Mesh::parse(&MESH.replace(change.0, change.1)).unwrap_err();
            assert!(error.contains(told), "{told}: {error}");
        }
    }
}
