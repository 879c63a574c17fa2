use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use wt_problem::Problem;
use wt_traffic::{ArmSettings, TrafficArm, TrafficConfig};

/// An experiment to be run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficRequest {
    /// Ports, arms, unit and rules.
    pub config: TrafficConfig,
    /// What assigns connections.
    pub backend: crate::BackendChoice,
    /// For how long connections are assigned, s; until it is cancelled where nothing is said.
    pub for_s: Option<f64>,
    /// Begins although BPF programs of others see the same connections.
    pub beside_programs: bool,
    /// Nothing is done; it is only told what would be.
    pub dry_run: bool,
    /// The journal's file.
    pub journal: Option<PathBuf>,
    /// A note that is stored with it.
    pub comment: String,
    /// What was typed.
    pub command: String,
    /// Goes on measuring the gain of an experiment that is done; the configuration is that experiment's then.
    pub holdback: Option<HoldbackRequest>,
}

/// A holdback: everybody has the setting that won but for a share that keeps the old one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HoldbackRequest {
    /// The experiment whose verdict it is: its name, the beginning of it, or "last".
    pub experiment: String,
    /// The share that keeps the old setting, 0.01 to 0.5.
    pub share: f64,
    /// What the settings were before, `KEY=LEVEL`, where the experiment's first arm doesn't say.
    pub old: Vec<String>,
}

/// Experiments that are added up.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficCombineRequest {
    /// Their names, or the beginnings of them.
    pub experiments: Vec<String>,
    /// The journal's file.
    pub journal: Option<PathBuf>,
}

/// Which experiment on connections is meant.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficReportRequest {
    /// Its name, or the beginning of it; the newest where nothing is said.
    pub experiment: Option<String>,
    /// Whether only the whole name will do of what is to end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole_name: bool,
    /// The journal's file.
    pub journal: Option<PathBuf>,
}

/// The arms of lists of levels, each `KEY=LEVEL,LEVEL…`: every level of one with every level of the others, the first of each
/// first. A single arm is compared with the current settings.
///
/// # Errors
/// A usage [`Problem`] that says what is allowed.
pub fn arms_of_levels(lists: &[String]) -> Result<Vec<TrafficArm>, Problem> {
    let mut all = vec![ArmSettings::current()];
    for list in lists {
        let (name, levels) = list.split_once('=').ok_or_else(|| {
            Problem::usage(format!("{list}: invalid, allowed are KEY=LEVEL,LEVEL…")).hint("--levels initcwnd=10,32")
        })?;
        let mut more = Vec::new();
        for settings in &all {
            for level in levels.split(',') {
                let mut settings = settings.clone();
                settings.set(name, level).map_err(|error| Problem::usage(error.to_string()))?;
                more.push(settings);
            }
        }
        all = more;
    }
    if all.len() == 1 && !all[0].is_current() {
        all.insert(0, ArmSettings::current());
    }
    Ok(all.into_iter().map(|settings| TrafficArm { name: settings.to_string(), settings }).collect())
}

/// Two arms with the settings of the first of these.
#[must_use]
pub fn identical_arms(arms: &[TrafficArm]) -> Vec<TrafficArm> {
    let settings = arms.first().map_or_else(ArmSettings::current, |arm| arm.settings.clone());
    ["A", "A again"].map(|name| TrafficArm { name: name.to_owned(), settings: settings.clone() }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lists: &[&str]) -> Vec<String> {
        let lists: Vec<String> = lists.iter().map(|list| (*list).to_owned()).collect();
        arms_of_levels(&lists).unwrap().into_iter().map(|arm| arm.name).collect()
    }

    #[test]
    fn levels_are_crossed_and_the_first_of_each_are_the_first_arm() {
        assert_eq!(names(&["initcwnd=10,32"]), ["initcwnd=10", "initcwnd=32"]);
        assert_eq!(names(&["initcwnd=32"]), ["current settings", "initcwnd=32"]);
        assert_eq!(
            names(&["initcwnd=10,32", "cc=cubic,bbr"]),
            ["cc=cubic initcwnd=10", "cc=bbr initcwnd=10", "cc=cubic initcwnd=32", "cc=bbr initcwnd=32"]
        );
        assert_eq!(names(&[]), ["current settings"]);
    }

    #[test]
    fn a_list_without_levels_and_a_level_out_of_range_are_refused_with_what_is_allowed() {
        for (list, said) in [("initcwnd", "KEY=LEVEL"), ("initcwnd=10,65", "1 to 64"), ("mtu=9", "allowed are")] {
            let problem = arms_of_levels(&[list.to_owned()]).unwrap_err().to_string();
            assert!(problem.contains(said), "{problem}");
        }
    }
}
