use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::path::PathBuf;
use utoipa::ToSchema;
use wt_trial::{Direction, Workload, kept_object, say_none};
use wt_units::{Knob, Level, Settings};

/// How sure a claim was before a row said so.
const ALPHA: f64 = 0.05;
/// How small a difference was of no interest before a row said so.
const INDIFFERENCE: f64 = 0.05;
/// How far below the best a plateau reached before a row said so.
const EPSILON: f64 = 0.1;

kept_object! {
    /// A comparison of settings: its rules, its circumstances, and what it follows.
    pub struct TuneConfig {
        /// The path of the lab, as it was named.
        lab: String,
        /// What its file or preset said: one that says something else is another path.
        lab_text: String,
        /// The risk of claiming anything where there is nothing.
        alpha: f64,
        /// The risk of claiming less delay where there is none; with `alpha` it is the risk of the experiment.
        delay_alpha: f64,
        /// The share by which the goodput may lie behind where less delay is claimed.
        delay_epsilon: f64,
        /// Trials of the budget that the race leaves to the test of less delay, where a setting promises that and the race isn't about to
        /// show a gain; it left none where nothing is said.
        delay_room: usize,
        /// Differences below this share are of no interest.
        indifference: f64,
        /// A gain below this share isn't worth a change.
        relevant: f64,
        /// How rounds were drawn and what was bet on them: `directed`; `uniform` where nothing is said.
        method: String,
        /// Whether a round on a quiet path may have each of its settings twice; no where nothing is said.
        twice: bool,
        /// Whether it is given up as futile only after the rounds that can exclude gains; no where nothing is said.
        excludes: bool,
        /// Seeds the order of the trials, apart from what is random on the path; the experiment's seed where nothing is said.
        order_seed: u64,
        /// Trials at most.
        max_trials: usize,
        /// The share of `alpha` of each of the settings but the current ones, in any unit.
        weights: Vec<f64>,
        /// What each trial did.
        workload: Workload,
        /// Whether uploads of a size are timed by their sender, to the acknowledgement of the last byte; by their receiver where
        /// nothing is said, in the lab, in the model and at servers of ours.
        by_sender: bool,
        /// How long one was expected to take with what is around it, µs.
        per_trial_us: u64,
        /// Whether a report's duration is that of the trials, with the pauses between them; so many times the expected one where
        /// nothing is said.
        measured_time: bool,
        /// From one to the next, µs.
        cool_down_us: u64,
        /// The machine.
        host: HostConfig,
        /// What was typed.
        command: String,
        /// The levels among which a plateau is sought.
        plateau: PlateauConfig,
        /// The settings of a 2 × 2 that stayed in every round; none where nothing is said.
        cells: Vec<usize>,
        /// The browser that loaded the pages of a comparison of loads, with its version.
        browser: String,
        /// What runs another comparison of these loads, in its lab, but for how many rounds; of rows of before that was said, nothing.
        again: String,
        /// What was the same in every trial.
        hold: Settings,
        /// The real path, if it was run on one.
        live: LiveConfig,
        /// What the model expected of each of the settings, in its own form.
        model: Value,
        /// The experiment that it goes on with.
        continues: String,
        /// Whether the round that was cut short there is finished under the budget of trials under which it was drawn; under that of
        /// this row where nothing is said.
        cut_as_drawn: bool,
        /// The screen of which it tries the answer.
        confirms: String,
        /// Whether the settings were all the same: the method tested on itself.
        identical: bool,
    }
}

impl TuneConfig {
    /// The same as this version writes it: what every row has to name is named, also where there is none.
    #[must_use]
    pub fn whole(mut self) -> Self {
        say_none!(self; lab, max_trials, weights, plateau);
        self
    }

    /// The risk of claiming anything where there is nothing.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha.unwrap_or(ALPHA)
    }

    /// Differences below this share are of no interest.
    #[must_use]
    pub fn indifference(&self) -> f64 {
        self.indifference.unwrap_or(INDIFFERENCE)
    }

    /// Which way the payload went; down where nothing is said or it can't be read.
    #[must_use]
    pub fn direction(&self) -> Direction {
        let up = self.said("workload")["direction"] == "up";
        if up { Direction::Up } else { Direction::Down }
    }

    /// What the row says under the name of one of the fields, whether or not it is understood; `null` where it says nothing.
    #[must_use]
    pub fn said(&self, field: &str) -> Value {
        match field {
            "workload" if self.workload.is_some() => serde_json::to_value(&self.workload).unwrap_or_default(),
            _ => self.more.get(field).cloned().unwrap_or_default(),
        }
    }

    /// What was the same in every trial; nothing where nothing is said.
    ///
    /// # Errors
    /// Why it can't be read.
    pub fn held(&self) -> Result<Settings, serde_json::Error> {
        match (&self.hold, self.more.get("hold")) {
            (None, Some(held)) if !held.is_null() => Settings::deserialize(held),
            (held, _) => Ok(held.clone().unwrap_or_default()),
        }
    }
}

kept_object! {
    /// The machine that an experiment was run on.
    pub struct HostConfig {
        /// Its name.
        name: String,
        /// The release of its kernel.
        kernel: String,
    }
}

impl HostConfig {
    /// The same as this version writes it: both are named, also where there is none.
    #[must_use]
    pub fn whole(mut self) -> Self {
        say_none!(self; name, kernel);
        self
    }
}

kept_object! {
    /// Where a plateau is sought: the smallest level that is nearly as good as the best.
    pub struct PlateauConfig {
        /// Of which knob.
        knob: Knob,
        /// Its levels, as the numbers of the settings.
        levels: Vec<usize>,
        /// How far below the best it may be, as a share.
        epsilon: f64,
        /// Whether it is claimed by evidence of its own.
        strict: bool,
    }
}

impl PlateauConfig {
    /// How far below the best it may be, as a share.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon.unwrap_or(EPSILON)
    }

    /// Whether it is claimed by evidence of its own; rows of before it could be say nothing.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.strict.unwrap_or(false)
    }
}

kept_object! {
    /// A real path, as far as it takes to go on with an experiment there.
    pub struct LiveConfig {
        /// The servers' URLs, without passwords and keys.
        targets: Vec<String>,
        /// As they were named, where redirections led elsewhere.
        asked: Vec<String>,
        /// The address that served the pilot; of old rows that of the first server.
        address: IpAddr,
        /// Certificate authorities that were believed, too.
        ca: PathBuf,
        /// The share of probes that were lost.
        loss: f64,
        /// Payload per second that the pilot had.
        rate_bps: u64,
        /// Bytes of the file.
        length: u64,
    }
}

impl LiveConfig {
    /// The same as this version writes it: what isn't known is named, too.
    #[must_use]
    pub fn whole(mut self) -> Self {
        say_none!(self; ca, loss, rate_bps, length);
        self
    }
}

/// A screen: many knobs of two levels at once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScreenConfig {
    /// The knobs, and how many rounds.
    pub screen: ScreenRules,
    /// What it has in common with a comparison of settings.
    pub tune: TuneConfig,
}

impl From<Map<String, Value>> for ScreenConfig {
    fn from(mut map: Map<String, Value>) -> Self {
        let screen = match map.remove("screen") {
            Some(Value::Object(screen)) => screen.into(),
            _ => ScreenRules::default(),
        };
        Self { screen, tune: map.into() }
    }
}

impl Serialize for ScreenConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tune = self.tune.clone();
        let screen = serde_json::to_value(&self.screen).map_err(serde::ser::Error::custom)?;
        tune.more.insert("screen".to_owned(), screen);
        tune.serialize(serializer)
    }
}

kept_object! {
    /// What a screen varies.
    pub struct ScreenRules {
        /// The knobs with their two levels.
        factors: Vec<Factor>,
        /// Rounds at most.
        rounds: usize,
    }
}

/// A knob with two levels.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Factor {
    /// Which.
    pub knob: Knob,
    /// Where it counts as low.
    pub low: Level,
    /// Where it counts as high.
    pub high: Level,
}

impl Factor {
    /// One of its levels.
    #[must_use]
    pub fn level(&self, high: bool) -> &Level {
        if high { &self.high } else { &self.low }
    }
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Which text is a level is the knob's business.
        #[derive(Deserialize)]
        struct Raw {
            knob: Knob,
            low: Value,
            high: Value,
        }
        let Raw { knob, low, high } = Raw::deserialize(deserializer)?;
        let level = |value: Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            knob.parse_level(&text).map_err(serde::de::Error::custom)
        };
        Ok(Self { knob, low: level(low)?, high: level(high)? })
    }
}
