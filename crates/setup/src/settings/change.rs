use super::{basis, problem};
use crate::controls;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use wt_host::{Knob, Request, Survey, Target};
use wt_journal::{ExperimentConfig, StoredExperiment};
use wt_problem::Problem;
use wt_trial::Direction;
use wt_units::{Level, Recommendation, Role, Settings};

/// What is to be changed, and where. Settings win over files, files over experiments, and these over defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChangeRequest {
    /// Settings as `KEY=VALUE`: `initcwnd=20`, `rwin=4x`, `ttl=0`, `net.ipv4.tcp_sack=1`.
    pub settings: Vec<String>,
    /// Plans: TOML with `to = "…"` and `[settings]`, or what a plan is as JSON.
    pub files: Vec<PathBuf>,
    /// The settings that an experiment recommends: its name, the beginning of it, or `last`.
    pub verdict: Option<String>,
    /// What this host is in the transfers that `verdict` measured; nothing means what the host was on which it ran.
    pub side: Option<Role>,
    /// The journal for `verdict`; nothing means the usual one.
    pub journal: Option<PathBuf>,
    /// Every setting as the kernel has it by itself.
    pub defaults: bool,
    /// Where: `host`, `default` (the default routes), a target such as `192.0.2.1`, or a device such as `eth0`.
    pub to: Option<String>,
}

impl ChangeRequest {
    /// Whether nothing was asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.files.is_empty() && !self.defaults && self.verdict.is_none()
    }

    /// Puts everything together that doesn't depend on this host.
    pub(super) fn read_for_others(&self) -> Result<Request, Problem> {
        let pairs = self.settings.iter().map(|pair| in_kernel(pair)).collect::<Result<Vec<_>, _>>()?;
        let mut request = Request::of_pairs(pairs.iter().map(String::as_str)).map_err(|error| problem::knob(&error))?;
        for file in &self.files {
            merge(&mut request, read_file(file)?);
        }
        if let Some(id) = &self.verdict {
            let recommended = self.read_verdict(id)?;
            not_another_level(id, &request, &recommended)?;
            merge(&mut request, recommended);
        }
        if let Some(to) = &self.to {
            request.target = to.parse().unwrap_or_default();
            // What can only be had for the host stays there, whatever the target of the rest.
            let elsewhere = request.target != Target::Host;
            request.places.retain(|_, place| elsewhere && *place == Target::Host);
        }
        Ok(request)
    }

    /// Puts everything together.
    pub(super) fn read(&self, survey: &Survey) -> Result<Request, Problem> {
        let mut request = self.read_for_others()?;
        if self.defaults {
            let mut defaults = Request::defaults(survey);
            defaults.pairs.retain(|(knob, _)| match &request.target {
                Target::Host => true,
                Target::DefaultRoutes => knob.route.is_some(),
                Target::Route(..) => knob.route.is_some() || knob.connection.is_some(),
                Target::Device(_) => knob.link.is_some() || knob.route.is_some(),
            });
            merge(&mut request, defaults);
        }
        Ok(request)
    }

    /// The same for another machine: what an experiment recommends then holds for all of that machine, which is the end on
    /// which it acts, unless somebody says otherwise.
    pub(super) fn read_for_export(&self, survey: &Survey) -> Result<Request, Problem> {
        if self.verdict.is_none() {
            return self.read(survey);
        }
        let to = self.to.clone().or_else(|| Some("host".to_owned()));
        let as_role = |side| Self { to: to.clone(), side, ..self.clone() }.read(survey);
        as_role(self.side).or_else(|first| {
            let others = [Role::Sender, Role::Receiver].into_iter().filter(|_| self.side.is_none());
            others.map(|role| as_role(Some(role))).find_map(Result::ok).ok_or(first)
        })
    }

    /// What the experiment of `verdict` fetched, if curl can fetch it.
    ///
    /// # Errors
    /// A usage [`Problem`] where there is no such experiment.
    pub fn measured(&self) -> Result<Option<String>, Problem> {
        let Some(id) = &self.verdict else { return Ok(None) };
        let journal = crate::journal::open_to_read(self.journal.as_deref())?;
        let found = journal.load(id).map_err(|error| crate::journal::problem(&error))?;
        no_proof(&found)?;
        Ok(basis::fetched(&*journal, &found))
    }

    /// What an experiment recommends, as far as it isn't what is anyway.
    fn read_verdict(&self, id: &str) -> Result<Request, Problem> {
        let journal = crate::journal::open_to_read(self.journal.as_deref())?;
        let found = journal.load(id).map_err(|error| crate::journal::problem(&error))?;
        no_proof(&found)?;
        let verdict = found.verdict.as_ref().ok_or_else(|| {
            Problem::usage(format!("{} has no verdict yet", found.id))
                .hint("windtunnel journal list shows the experiments of before, --verdict EXPERIMENT takes one of them")
        })?;
        if matches!(found.config, ExperimentConfig::Traffic(_)) {
            let request = super::traffic::recommended(&found.id, verdict, self.to.as_deref())?;
            return Ok(Request { basis: Some(basis::of(&*journal, &found, None, None)), ..request });
        }
        if verdict["settings"].is_null() {
            return Err(recommends_nothing(&found));
        }
        let settings: Settings = serde_json::from_value(verdict["settings"].clone())
            .map_err(|error| Problem::internal(format!("the verdict of {}: {error}", found.id)))?;
        let reason = verdict["headline"].as_str().unwrap_or("recommended").trim_end_matches('.');
        let config = found.config.tune();
        let was = if config.direction() == Direction::Up { Role::Sender } else { Role::Receiver };
        let role = self.side.unwrap_or(was);
        // The address is the server's: to the server itself, and after a rehearsal, nobody has told yet whom it concerns.
        let measured = if role == was { basis::served(&*journal, &found) } else { Vec::new() };
        let target = self.to.clone().or_else(|| measured.first().map(|host| host.address.to_string()));
        let settings = settings.differing_from(&found.current);
        let mut recommended = Recommendation::of(&settings, role, target.as_deref().unwrap_or("ADDRESS"));
        let id = &found.id;
        if recommended.here.is_empty() && recommended.elsewhere.is_empty() {
            if verdict["answer"]["action"] == "undecided" {
                return Err(undecided(&*journal, id, verdict));
            }
            return Err(Problem::usage(format!(
                "{id} recommends the settings that it found: there is nothing to change"
            )));
        }
        if !recommended.elsewhere.is_empty() {
            let (what, here) = (recommended.elsewhere_text(), role.name());
            let there = recommended.other_role().name();
            return Err(Problem::usage(format!("{what} acts on the {there}, and this host was the {here} in {id}"))
                .because("settings of the other end have no effect here")
                .hint(format!(
                    "on the {there}: sudo windtunnel settings apply {what} --to ADDRESS_OF_THE_{}; if this host is to be the {there}: --side {there} --to ADDRESS",
                    here.to_uppercase()
                )));
        }
        if target.is_none() {
            return Err(Problem::usage(format!("{id} doesn't say for whom its settings are to hold here: it was measured on an emulated path, or from the other end"))
                .hint("name the other host or its network, --to 192.0.2.1; or all of them, --to host, which changes every connection of this host"));
        }
        if self.to.is_none() && measured.len() > 1 && recommended.here.iter().any(|setting| setting.to != "host") {
            let hosts: Vec<String> = measured.iter().map(|host| host.address.to_string()).collect();
            return Err(Problem::usage(format!("{id} was measured with {} hosts in turn: {}", hosts.len(), hosts.join(", ")))
                .hint(format!(
                    "--to {} for the first, and once that is confirmed, the same for the next; --to host changes every connection of this host",
                    hosts[0]
                )));
        }
        for setting in &mut recommended.here {
            if let (wt_units::Knob::Cc, Level::Name(name)) = (setting.knob, &setting.level) {
                setting.level = Level::Name(name_in_kernel(name)?);
            }
        }
        let towards = target.as_deref().and_then(|to| to.parse().ok());
        let mut request = Request::of_recommendation(&recommended).map_err(|error| problem::knob(&error))?;
        request.basis = Some(basis::of(&*journal, &found, Some(role).filter(|role| *role == was), towards));
        for setting in &recommended.here {
            let instead = match settings.get(wt_units::Knob::Mss) {
                Some(mss) if setting.knob == wt_units::Knob::Mtu && role == Role::Sender => {
                    format!(", as mss={mss} did in the trials")
                }
                _ => String::new(),
            };
            request
                .reasons
                .insert(Knob::of(setting.knob).name, format!("{id}: {reason}; acts on the {}{instead}", role.name()));
        }
        Ok(request)
    }
}

/// Refuses a level that somebody names beside an experiment that recommends another one: what is stored would say that it was measured.
fn not_another_level(id: &str, asked: &Request, recommended: &Request) -> Result<(), Problem> {
    for (knob, value) in &asked.pairs {
        let other = recommended.pairs.iter().find(|(of, measured)| of.name == knob.name && measured != value);
        if let Some((_, measured)) = other {
            return Err(Problem::usage(format!(
                "{}={value} isn't what {id} recommends: that is {}={measured}",
                knob.name, knob.name
            ))
            .hint(format!("leave out {}={value}, or apply it without --verdict", knob.name)));
        }
    }
    Ok(())
}

/// A congestion control's name as the kernel has it: one of ours may be named with its variant or parameters, `chd@freebsd-hz100`.
fn name_in_kernel(name: &str) -> Result<String, Problem> {
    match controls::ours(name).filter(|_| name.contains('@')) {
        Some(choice) => Ok(choice?.kernel_name()),
        None => Ok(name.to_owned()),
    }
}

/// A setting as the kernel takes it.
fn in_kernel(pair: &str) -> Result<String, Problem> {
    match pair.split_once('=').filter(|(key, _)| Knob::find(key.trim()).is_ok_and(|knob| knob.name == "cc")) {
        Some((key, name)) => Ok(format!("{key}={}", name_in_kernel(name.trim())?)),
        None => Ok(pair.to_owned()),
    }
}

/// Refuses a proof: it says something of a change that was in force already.
fn no_proof(found: &StoredExperiment) -> Result<(), Problem> {
    let Some(change) = found.proved_change() else { return Ok(()) };
    let hint = if found.verdict.as_ref().is_some_and(|verdict| verdict["proof"]["slower"] == true) {
        format!("it is shown to be slower: windtunnel settings undo {change} takes it back")
    } else {
        "windtunnel settings history says whether it still is; --verdict takes what tune found".to_owned()
    };
    let what = format!("{} is a proof of change {change}, which was in force when it was measured", found.id);
    Err(Problem::usage(what).because("it recommends no setting that isn't made already").hint(hint))
}

/// Why the verdict of an experiment can't be applied that has found nothing out yet.
fn undecided(journal: &dyn wt_journal::Journal, id: &str, verdict: &serde_json::Value) -> Problem {
    let what = verdict["answer"]["what"].as_str().unwrap_or("more trials may tell");
    let later = journal.continuations(id).ok().and_then(|mut chain| chain.pop());
    let hint = match later {
        Some(later) => format!("{later} goes on with it: --verdict {later} takes what all trials show"),
        None => {
            format!("windtunnel report {id} shows how far it has come, windtunnel tune --resume {id} goes on with it")
        }
    };
    Problem::usage(format!("{id} has no answer yet: there is nothing to apply"))
        .because(what.trim_end_matches('.'))
        .hint(hint)
}

/// Comparisons and tests rank or log; which of it is wanted is for people to say.
fn recommends_nothing(found: &StoredExperiment) -> Problem {
    let (what, hint) = match &found.config {
        ExperimentConfig::Controls(_) => {
            ("compares congestion controls", "name the one that you want, such as cc=NAME, instead of --verdict")
        }
        ExperimentConfig::Stacks(_) => (
            "compares TCP/IP stacks",
            "which stack a program uses is the program's own; --verdict takes what tune found",
        ),
        ExperimentConfig::Tests(_) => {
            ("logs transfers with the settings as they were", "--verdict takes what tune found")
        }
        _ => ("compares no settings", "--verdict takes what tune found; windtunnel journal list shows it"),
    };
    Problem::usage(format!("{} {what}, and recommends no setting", found.id)).hint(hint)
}

fn read_file(path: &Path) -> Result<Request, Problem> {
    /// More than any plan has.
    const LARGEST: u64 = 1 << 20;
    let name = path.display().to_string();
    if name.is_empty() {
        return Err(
            Problem::usage("an empty word names no setting").hint("write settings as KEY=VALUE, or name a plan's file")
        );
    }
    let wrong = |error: std::io::Error| {
        let failure = Problem::usage(format!("{name}: {error}"));
        match Knob::find(&name) {
            Ok(knob) => failure.hint(format!("give {} a value: {name}=…", knob.name)),
            Err(_) => failure.hint("write settings as KEY=VALUE, or name a plan's file"),
        }
    };
    let size = std::fs::metadata(path).map_err(wrong)?.len();
    if size > LARGEST {
        return Err(Problem::usage(format!("{name} is too large for a plan: {size} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(wrong)?;
    Request::of_file(&text).map_err(|error| problem::request(&name, &error))
}

/// Adds what isn't said yet.
fn merge(request: &mut Request, other: Request) {
    for (knob, value) in other.pairs {
        // One that is there already has more weight.
        let _ = request.add(knob, value);
    }
    request.reasons.extend(other.reasons);
    request.places.extend(other.places);
    request.resets |= other.resets;
    request.basis = request.basis.take().or(other.basis);
    if request.target == Target::default() {
        request.target = other.target;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wt_journal::{Journal as _, NewExperiment, SqliteJournal, State, TuneConfig};

    #[test]
    fn an_experiment_without_an_answer_names_the_last_one_that_goes_on_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal");
        let mut journal = SqliteJournal::open(&file).unwrap();
        let nothing = json!({"settings": {}, "headline": "No answer yet.", "answer": {"action": "undecided"}});
        let mut before: Option<&str> = None;
        for id in ["first", "second", "third"] {
            let config = TuneConfig { continues: before.map(str::to_owned), ..TuneConfig::default() };
            let config = ExperimentConfig::Tune(Box::new(config));
            journal.create_experiment(&NewExperiment { config, ..NewExperiment::new(id, "lan", "lab") }).unwrap();
            journal.finish_experiment(id, State::Finished, 1, Some(&nothing)).unwrap();
            before = Some(id);
        }
        drop(journal);
        let hint = |id: &str| {
            let verdict = Some(id.to_owned());
            let request = ChangeRequest { verdict, journal: Some(file.clone()), ..ChangeRequest::default() };
            request.read_for_others().unwrap_err().hint.unwrap()
        };
        assert_eq!(hint("first"), "third goes on with it: --verdict third takes what all trials show");
        assert!(hint("third").ends_with("windtunnel tune --resume third goes on with it"), "{}", hint("third"));
    }
}
