//! What is asked for.

use super::turns::TurnsRequest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_lab::{Backend, Lab, LabOptions, Scenario};
use wt_load::SharedKey;
use wt_prober::IpVersion;
use wt_problem::Problem;
use wt_setup::{Baseline, Budget, Levels, NamedArm, WorkloadRequest, as_text, draw_order_seed, duration_or_none};
use wt_trial::{Direction, Workload};
use wt_units::{Assignment, BitsPerSecond, Knob, Ratio};
use wt_wire::Framing;

/// An experiment: where, what is varied, for how long. It runs on one of `lab` and `target`, or goes on with `resume`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuneRequest {
    /// The server on the real path, `https://HOST/FILE` and so on; or a profile, a TOML file that names several.
    pub target: Option<String>,
    /// The key of a server of ours whose address has none. It is never stored.
    #[serde(skip)]
    pub key: Option<SharedKey>,
    /// The emulated path: a preset's name or a TOML file.
    pub lab: Option<String>,
    /// Run the trials in the model of that path, in virtual time, instead of on real kernels: a rehearsal of the rehearsal,
    /// and no evidence.
    pub model: bool,
    /// What is varied; nothing means what can be set in that direction and usually matters.
    pub knobs: Option<Vec<Knob>>,
    /// Levels of knobs, instead of those chosen from the path.
    pub levels: Vec<Levels>,
    /// What every candidate is compared with; nothing means the current settings.
    pub baseline: Option<Baseline>,
    /// Candidates of several settings that belong together.
    pub arms: Vec<NamedArm>,
    /// Settings fixed in every trial, the baseline's included.
    pub hold: Vec<Assignment>,
    /// What it may cost at most; nothing means 150 s, but at least six or seven rounds of all settings, eight where a path is slow, and
    /// more where a clear gain takes more.
    pub budget: Option<Budget>,
    /// How long each trial transfers; nothing means about 75 RTTs.
    #[serde(with = "duration_or_none")]
    pub trial: Option<Duration>,
    /// What each trial does.
    pub workload: WorkloadRequest,
    /// Which way the payload goes, seen from the client.
    pub direction: TrialDirection,
    /// What is wished for: how the risk of a false claim is shared between speed and delay.
    pub goal: Goal,
    /// Loss of speed tolerated when choosing the smallest sufficient level of a knob with an order, or less delay.
    pub epsilon: Ratio,
    /// Whether levels are compared with the best of all of them instead of the current one.
    pub strict: bool,
    /// Compare so many candidates that are all the current settings (A/A test).
    pub identical: Option<usize>,
    /// Vary all knobs of `levels` at once, two levels each.
    pub screen: bool,
    /// An experiment of the journal to go on with: its name, the beginning of it, or `last`.
    pub resume: Option<String>,
    /// What only the real path needs.
    pub live: LiveRequest,
    /// Seeds everything random on the path.
    pub seed: u64,
    /// Seeds the order of the trials; nothing means that the operating system gives one, and a model takes `seed`.
    pub order_seed: Option<u64>,
    /// How the emulator reaches the hosts' kernels.
    pub backend: Backend,
    /// Keep this machine's processors awake while the lab is up: packets wait less; it costs all of their idle time and needs root.
    pub sharp: bool,
    /// Turns to take before each round, where others measure on the same links; nothing means none.
    pub turns: Option<TurnsRequest>,
    /// Let no model choose which settings are worth a trial, nor weigh them.
    pub no_model: bool,
    /// Note stored with the experiment.
    pub comment: String,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
    /// Say what would be run, and run nothing.
    pub dry_run: bool,
    /// What was typed to ask for this, so that it can be typed again; without passwords and keys.
    pub command: String,
}

/// What only the real path needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LiveRequest {
    /// Believe the certificate authorities in this file, too (PEM).
    pub ca: Option<PathBuf>,
    /// The version of IP; nothing means what the name resolves to first.
    pub ip: Option<IpVersion>,
    /// Between two trials; nothing means 4 RTTs, and for servers on the Internet at least 1 s.
    #[serde(with = "duration_or_none")]
    pub pause: Option<Duration>,
    /// Let trials change settings of this whole host.
    pub allow_host_wide: bool,
    /// The rate of the link that bounds the path.
    pub link_rate: Option<BitsPerSecond>,
    /// How packets are framed on that link.
    #[serde(with = "as_text")]
    pub encap: Framing,
    /// Don't probe the path MTU first; the device's is taken.
    pub no_probes: bool,
}

/// Which way the payload goes, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Direction)]
pub enum TrialDirection {
    /// From the server to the client.
    #[default]
    Down,
    /// From the client to the server.
    Up,
    /// One each way at once.
    Both,
}

/// What is wished for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// The most goodput, whatever the delay: no claim of delay is made.
    Goodput,
    /// The most goodput, and the same with less delay: a fifth of the risk of a false claim is kept for delay.
    #[default]
    Balanced,
    /// Less delay at the same goodput before more goodput: four fifths of the risk are kept for delay.
    Delay,
}

impl Goal {
    /// The word in flags and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Balanced => "balanced",
            Self::Delay => "delay",
        }
    }
}

impl TrialDirection {
    /// The word in flags and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
            Self::Both => "both",
        }
    }
}

impl From<TrialDirection> for Direction {
    fn from(direction: TrialDirection) -> Self {
        match direction {
            // Where only one way counts, both are taken for the usual one.
            TrialDirection::Down | TrialDirection::Both => Self::Down,
            TrialDirection::Up => Self::Up,
        }
    }
}

impl Default for TuneRequest {
    fn default() -> Self {
        Self {
            target: None,
            key: None,
            lab: None,
            model: false,
            knobs: None,
            levels: Vec::new(),
            baseline: None,
            arms: Vec::new(),
            hold: Vec::new(),
            budget: None,
            trial: None,
            workload: WorkloadRequest::default(),
            direction: TrialDirection::default(),
            goal: Goal::default(),
            epsilon: Ratio(0.1),
            strict: false,
            identical: None,
            screen: false,
            resume: None,
            live: LiveRequest::default(),
            seed: 1,
            order_seed: None,
            backend: Backend::default(),
            sharp: false,
            turns: None,
            no_model: false,
            comment: String::new(),
            journal: None,
            dry_run: false,
            command: String::new(),
        }
    }
}

impl Default for LiveRequest {
    fn default() -> Self {
        Self {
            ca: None,
            ip: None,
            pause: None,
            allow_host_wide: false,
            link_rate: None,
            encap: Framing::parse("ethernet").unwrap_or_else(|_| Framing::raw()),
            no_probes: false,
        }
    }
}

impl TuneRequest {
    /// What each trial does; `length` is how long, where that can be chosen.
    pub(crate) fn each_trial(&self, length: Duration) -> Workload {
        let one_way = || self.workload.workload(self.direction.into(), length);
        if self.direction == TrialDirection::Both {
            self.workload.both(length).unwrap_or_else(|_| one_way())
        } else {
            one_way()
        }
    }

    /// Which way the payload of each trial goes: that of the workload, whose figures of the path and whose settings count.
    pub(crate) fn payload_direction(&self) -> Direction {
        self.each_trial(Duration::ZERO).direction()
    }

    /// What the order of the trials is drawn from. Nobody can know it beforehand, unless it is given; a model decides
    /// nothing, and computes the same again.
    pub(crate) fn draw_order_seed(&self) -> Result<u64, Problem> {
        let given = self.order_seed.or(self.model.then_some(self.seed));
        given.map_or_else(draw_order_seed, Ok)
    }

    /// Starts the lab. Must be called before any other thread runs.
    ///
    /// # Errors
    /// An environment [`Problem`] that says what is missing.
    pub(crate) fn start_lab(&self, scenario: Scenario) -> Result<Lab, Problem> {
        let options = LabOptions { sharp: self.sharp, ..LabOptions::seeded(self.backend, self.seed) };
        let turns = self.turns.as_ref().map(|turns| Path::new(&turns.server));
        wt_setup::lab::start_in_reach(scenario, options, [self.journal.as_deref(), turns])
    }

    /// Whether what was asked for goes together.
    ///
    /// # Errors
    /// A usage [`Problem`] that names both.
    pub fn check(&self) -> Result<(), Problem> {
        self.check_place()?;
        self.check_ranges()?;
        if let Some(turns) = &self.turns {
            turns.check()?;
            if self.screen {
                return Err(
                    Problem::usage("a screen takes no turns").hint("compare levels one by one, without --screen")
                );
            }
        }
        if self.direction == TrialDirection::Both {
            self.workload.both(Duration::ZERO).map_err(Problem::usage)?;
        }
        let fits = self.workload.check_direction(self.direction.into()).map_err(Problem::usage);
        fits.map_err(|problem| problem.hint("leave --direction out, or choose another workload"))?;
        self.check_hold()
    }

    /// The command line that asks for the same; without what is usual.
    #[must_use]
    pub fn command_line(&self) -> String {
        let usual = Self::default();
        let list = |values: Vec<String>| Some(values.join(",")).filter(|list| !list.is_empty());
        let mut words = vec!["windtunnel".to_owned(), "tune".to_owned()];
        let mut option = |name: &str, value: Option<String>| {
            words
                .extend(value.into_iter().flat_map(|value| [format!("--{name}"), wt_units::shell_word(&value).into()]));
        };
        option("lab", self.lab.clone());
        option("knobs", list(self.knobs.iter().flatten().map(ToString::to_string).collect()));
        self.levels.iter().for_each(|levels| option("levels", Some(levels.to_string())));
        option("baseline", self.baseline.as_ref().map(ToString::to_string));
        self.arms.iter().for_each(|arm| option("arm", Some(arm.to_string())));
        option("hold", list(self.hold.iter().map(ToString::to_string).collect()));
        option("budget", self.budget.map(|budget| budget.to_string()));
        option("trial", self.trial.map(wt_units::format_duration));
        option("workload", Some(self.workload.to_string()).filter(|_| self.workload != usual.workload));
        option("direction", Some(self.direction.name().to_owned()).filter(|_| self.direction != usual.direction));
        option("goal", Some(self.goal.name().to_owned()).filter(|_| self.goal != usual.goal));
        option("epsilon", Some(self.epsilon.to_string()).filter(|_| self.epsilon != usual.epsilon));
        option("identical", self.identical.map(|n| n.to_string()));
        option("resume", self.resume.clone());
        option("pause", self.live.pause.map(wt_units::format_duration));
        option("link-rate", self.live.link_rate.map(|rate| rate.to_string()));
        let encap = self.live.encap.to_string();
        option("encap", Some(encap).filter(|_| self.live.link_rate.is_some() && self.live.encap != usual.live.encap));
        option("seed", Some(self.seed.to_string()).filter(|_| self.seed != usual.seed));
        option("order-seed", self.order_seed.map(|seed| seed.to_string()));
        option("comment", Some(self.comment.clone()).filter(|comment| !comment.is_empty()));
        let switches = [
            ("--strict", self.strict),
            ("--screen", self.screen),
            ("--no-model", self.no_model),
            ("--no-probes", self.live.no_probes),
            ("--allow-host-wide", self.live.allow_host_wide),
        ];
        words.extend(switches.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_owned()));
        words.extend(self.target.iter().map(|target| wt_units::shell_word(target).into()));
        words.join(" ")
    }

    fn check_place(&self) -> Result<(), Problem> {
        if self.model && self.target.is_some() {
            return Err(
                Problem::usage("the model is of an emulated path, not of the real one").hint("name a path of the lab")
            );
        }
        match (&self.target, &self.lab, &self.resume) {
            (Some(_), Some(_), _) => {
                Err(Problem::usage("an experiment runs in the lab or on the real path, not on both")
                    .hint("leave the target or the lab out"))
            }
            (None, None, None) => Err(Problem::usage("there is nowhere to run the experiment").hint(
                "name a TARGET such as https://HOST/FILE, or rehearse on an emulated path: windtunnel tune --lab adsl",
            )),
            _ => Ok(()),
        }
    }

    /// Whether somebody said what is compared with what.
    fn has_arms(&self) -> bool {
        self.baseline.is_some() || !self.arms.is_empty()
    }

    fn check_ranges(&self) -> Result<(), Problem> {
        let out =
            |what: &str, allowed: &str| Err(Problem::usage(format!("{what} is out of range: allowed is {allowed}")));
        let trial = Duration::from_millis(200)..=Duration::from_secs(3600);
        if let Some(time) = self.trial.filter(|time| !trial.contains(time)) {
            return out(&format!("a trial of {} s", time.as_secs_f64()), "200ms to 1h");
        }
        if let Some(pause) = self.live.pause.filter(|pause| *pause > Duration::from_secs(3600)) {
            return out(&format!("a pause of {} s", pause.as_secs_f64()), "at most 1h");
        }
        if !(0.001..=0.5).contains(&self.epsilon.get()) {
            return out(&format!("epsilon {}", self.epsilon), "0.1% to 50%");
        }
        let fixed = || {
            let varied = !self.levels.is_empty() || !self.hold.is_empty() || self.identical.is_some();
            varied || self.has_arms() || self.trial.is_some() || self.workload != WorkloadRequest::default()
        };
        if self.resume.is_some() && fixed() {
            return Err(Problem::usage("an experiment goes on as it began")
                .hint("leave levels, baseline, arms, hold, identical, trial and workload out"));
        }
        let usual = Self::default();
        let ruled = || {
            let rules = self.goal != usual.goal || self.epsilon != usual.epsilon || self.strict;
            rules || self.knobs.is_some() || self.direction != usual.direction
        };
        if self.resume.is_some() && ruled() {
            return Err(Problem::usage("an experiment goes on by the rules that it began with")
                .hint("leave knobs, direction, goal, epsilon and strict out, or begin a new experiment"));
        }
        if self.has_arms() && (self.screen || self.identical.is_some()) {
            return Err(Problem::usage("a screen and an A/A test have no baseline and no arms of their own")
                .hint("leave --baseline and --arm out"));
        }
        if self.screen && (self.epsilon != usual.epsilon || self.goal != usual.goal) {
            return Err(Problem::usage(
                "a screen has no goal and no epsilon: it ranks knobs by their own workload's measure",
            )
            .hint("leave --goal and --epsilon out, or leave out --screen"));
        }
        if self.screen && (self.identical.is_some() || self.resume.is_some() || self.strict) {
            return Err(Problem::usage("a screen can't be strict, identical, or go on with another experiment"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_it_was_written() {
        let request = TuneRequest {
            lab: Some("adsl".into()),
            knobs: Some(vec![Knob::Rwin, Knob::Cc]),
            levels: vec!["rwin=1x..16x".parse().unwrap()],
            baseline: Some("windows-98".parse().unwrap()),
            arms: vec!["probing: pmtud=on,mtu-probing=on".parse().unwrap()],
            hold: vec!["cc=reno".parse().unwrap()],
            budget: Some("60 trials".parse().unwrap()),
            trial: Some(Duration::from_millis(1500)),
            workload: "page:size=10kB".parse().unwrap(),
            ..TuneRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        let back: TuneRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!((back.levels, back.workload, back.trial), (request.levels, request.workload, request.trial));
    }

    #[test]
    fn what_is_left_out_is_usual_and_what_is_unknown_is_refused() {
        let request: TuneRequest = serde_json::from_str(r#"{"lab": "adsl"}"#).unwrap();
        assert!(request.check().is_ok());
        assert_eq!(request.live.encap.to_string(), "ethernet");
        assert!(serde_json::from_str::<TuneRequest>(r#"{"lab": "adsl", "labb": 1}"#).is_err());
    }

    #[test]
    fn the_path_is_that_of_the_way_that_the_payload_of_a_trial_goes() {
        let of = |workload: &str, direction| {
            TuneRequest { workload: workload.parse().unwrap(), direction, ..TuneRequest::default() }.payload_direction()
        };
        for (workload, asked, goes) in [
            ("bulk", TrialDirection::Up, Direction::Up),
            ("bulk", TrialDirection::Both, Direction::Down),
            ("transactions:request=10kB,response=1kB", TrialDirection::Down, Direction::Up),
            ("transactions", TrialDirection::Up, Direction::Down),
            ("page", TrialDirection::Down, Direction::Down),
        ] {
            assert_eq!(of(workload, asked), goes, "{workload}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let base = TuneRequest { lab: Some("adsl".into()), ..TuneRequest::default() };
        for wrong in [
            TuneRequest { lab: None, ..base.clone() },
            TuneRequest { target: Some("http://h/f".into()), ..base.clone() },
            TuneRequest { baseline: Some("os".parse().unwrap()), identical: Some(2), ..base.clone() },
            TuneRequest {
                arms: vec!["cc=reno".parse().unwrap()],
                hold: vec!["cc=bbr".parse().unwrap()],
                ..base.clone()
            },
            TuneRequest { trial: Some(Duration::from_millis(1)), ..base.clone() },
            TuneRequest { epsilon: Ratio(0.9), ..base.clone() },
            TuneRequest { screen: true, strict: true, ..base.clone() },
            TuneRequest { knobs: Some(vec![Knob::Cc]), hold: vec!["cc=reno".parse().unwrap()], ..base.clone() },
            TuneRequest { workload: "page".parse().unwrap(), direction: TrialDirection::Up, ..base.clone() },
        ] {
            assert_eq!(wrong.check().unwrap_err().fault, wt_problem::Fault::Usage, "{wrong:?}");
        }
    }

    #[test]
    fn what_goes_on_does_so_by_the_rules_that_it_began_with() {
        let of = |change: fn(&mut TuneRequest)| {
            let mut request = TuneRequest { resume: Some("last".into()), ..TuneRequest::default() };
            change(&mut request);
            request.check().map_err(|problem| problem.what)
        };
        assert_eq!(of(|request| (request.seed, request.no_model) = (9, true)), Ok(()));
        let changes: [fn(&mut TuneRequest); 5] = [
            |request| request.knobs = Some(vec![Knob::Mtu]),
            |request| request.direction = TrialDirection::Up,
            |request| request.goal = Goal::Delay,
            |request| request.epsilon = "1%".parse().unwrap(),
            |request| request.strict = true,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let refused = of(change).unwrap_err();
            assert_eq!(refused, "an experiment goes on by the rules that it began with", "{number}");
        }
    }
}
