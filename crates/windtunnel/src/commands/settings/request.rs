//! What is to be changed, on the command line: KEY=VALUE, a file, the defaults, or what an experiment recommends.

use super::errors;
use crate::commands::journal;
use crate::edge::Failure;
use clap::Args;
use std::path::PathBuf;
use wt_host::{Knob, Request, Survey, Target};
use wt_journal::Journal as _;
use wt_units::Settings;

/// What is to be changed, and where.
#[derive(Debug, Args)]
pub(super) struct RequestArgs {
    /// Settings such as initcwnd=20, rwin=4x, ttl=0 or net.ipv4.tcp_sack=1, or a plan's file
    #[arg(value_name = "KEY=VALUE|PLAN")]
    items: Vec<String>,
    /// A plan: TOML with to = "…" and [settings], or what `plan --json` printed
    #[arg(long, value_name = "PLAN")]
    file: Option<PathBuf>,
    /// Every setting as the kernel has it by itself
    #[arg(long)]
    defaults: bool,
    /// The settings that an experiment recommends: its name, the beginning of it, or "last"
    #[arg(long, value_name = "ID")]
    verdict: Option<String>,
    /// The journal for --verdict
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Where: host, default (the default routes), a target such as 192.0.2.1 or 192.0.2.0/24, or a device such as eth0
    #[arg(long = "to", value_name = "ROUTE|IFACE|host")]
    to: Option<String>,
}

impl RequestArgs {
    /// Arguments of another command that has no places.
    pub(super) fn of(items: Vec<String>, file: Option<PathBuf>, defaults: bool, to: Option<String>) -> Self {
        Self { items, file, defaults, verdict: None, journal: None, to }
    }

    /// Whether nothing was asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.file.is_none() && !self.defaults && self.verdict.is_none()
    }

    /// Puts everything together. Arguments win over files, files over experiments, and these over defaults.
    pub(super) fn read(&self, survey: &Survey) -> Result<Request, Failure> {
        let (pairs, files): (Vec<&String>, Vec<&String>) = self.items.iter().partition(|item| item.contains('='));
        let mut request =
            Request::of_pairs(pairs.into_iter().map(String::as_str)).map_err(|error| errors::knob(&error))?;
        for file in files.into_iter().map(PathBuf::from).chain(self.file.clone()) {
            merge(&mut request, read_file(&file)?);
        }
        if let Some(id) = &self.verdict {
            merge(&mut request, self.read_verdict(id)?);
        }
        if let Some(to) = &self.to {
            request.target = to.parse().unwrap_or_default();
        }
        if self.defaults {
            let mut defaults = Request::defaults(survey);
            defaults.pairs.retain(|(knob, _)| match &request.target {
                Target::Host => true,
                Target::DefaultRoutes | Target::Route(..) => knob.route.is_some(),
                Target::Device(_) => knob.link.is_some() || knob.route.is_some(),
            });
            merge(&mut request, defaults);
        }
        Ok(request)
    }

    /// What an experiment recommends, as far as it isn't what is anyway.
    fn read_verdict(&self, id: &str) -> Result<Request, Failure> {
        let journal = journal::open(self.journal.as_deref())?;
        let found = journal.load(id).map_err(|error| journal::failure(&error))?;
        let verdict =
            found.verdict.as_ref().ok_or_else(|| Failure::usage(format!("{} has no verdict yet", found.id)))?;
        let settings: Settings = serde_json::from_value(verdict["settings"].clone())
            .map_err(|error| Failure::ours(format!("the verdict of {}: {error}", found.id)))?;
        let reason = verdict["headline"].as_str().unwrap_or("recommended").trim_end_matches('.');
        let mut request = Request::default();
        for (key, level) in settings.differing_from(&found.current).iter() {
            let knob = Knob::find(key.name()).map_err(|error| errors::knob(&error))?;
            let value = knob.parse(&level.to_string()).map_err(|error| errors::knob(&error))?;
            request.add(knob, value).map_err(|error| errors::knob(&error))?;
            request.reasons.insert(knob.name, format!("{}: {reason}", found.id));
        }
        if request.pairs.is_empty() {
            return Err(Failure::usage(format!(
                "{} recommends the settings that it found: there is nothing to change",
                found.id
            )));
        }
        Ok(request)
    }
}

fn read_file(path: &std::path::Path) -> Result<Request, Failure> {
    /// More than any plan has.
    const LARGEST: u64 = 1 << 20;
    let name = path.display().to_string();
    let wrong = |error: std::io::Error| {
        let failure = Failure::usage(format!("{name}: {error}"));
        match Knob::find(&name) {
            Ok(knob) => failure.hint(format!("give {} a value: {name}=…", knob.name)),
            Err(_) => failure.hint("write settings as KEY=VALUE, or name a plan's file"),
        }
    };
    let size = std::fs::metadata(path).map_err(wrong)?.len();
    if size > LARGEST {
        return Err(Failure::usage(format!("{name} is too large for a plan: {size} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(wrong)?;
    Request::of_file(&text).map_err(|error| errors::request(&name, &error))
}

/// Adds what isn't said yet.
fn merge(request: &mut Request, other: Request) {
    for (knob, value) in other.pairs {
        // One that is there already has more weight.
        let _ = request.add(knob, value);
    }
    request.reasons.extend(other.reasons);
    if request.target == Target::default() {
        request.target = other.target;
    }
}
