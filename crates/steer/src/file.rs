//! Experiment files: the options of `windtunnel traffic start` as TOML.

use crate::TrafficOptions;
use crate::options::one_or_many_texts;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use wt_problem::Problem;

/// What an experiment file holds: the options of an experiment, and what else `windtunnel traffic start` takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrafficFile {
    /// The experiment.
    pub options: TrafficOptions,
    /// The experiment of which this is a holdback.
    pub holdback: Option<String>,
    /// The share that keeps the old setting then, 0 to 1.
    pub keep_back: Option<f64>,
    /// What settings were before, `KEY=LEVEL`, where that experiment doesn't say.
    pub old: Vec<String>,
    /// The journal's file.
    pub journal: Option<PathBuf>,
    /// Whether nothing is said on the way.
    pub quiet: bool,
}

/// The names that are no options of an experiment by itself, and so none of the API's.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BesideOptions {
    holdback: Option<String>,
    #[serde(alias = "keep-back", deserialize_with = "share_or_text")]
    keep_back: Option<f64>,
    #[serde(deserialize_with = "one_or_many_texts")]
    old: Vec<String>,
    journal: Option<PathBuf>,
    quiet: bool,
}

impl BesideOptions {
    const NAMES: [&str; 6] = ["holdback", "keep_back", "keep-back", "old", "journal", "quiet"];
}

impl TrafficFile {
    /// Reads a file: TOML, with the names of the options.
    ///
    /// # Errors
    /// A usage [`Problem`] that names the file, and the line or the option.
    pub fn read(file: &Path) -> Result<Self, Problem> {
        let bad = |why: String| {
            Problem::usage(format!("{}: {why}", file.display())).hint(
                "an experiment file has lines such as ports = [443], levels = [\"initcwnd=10,32\"], unit = \"prefix\", for = \"2h\"",
            )
        };
        let text = wt_sys::file::read_text(file).map_err(|error| bad(error.to_string()))?;
        Self::parse(&text).map_err(|error| bad(wt_units::shortened(error.to_string().trim()).replace('\n', " ")))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What isn't TOML, no option, or not of an option's grammar.
    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let mut table: toml::Table = toml::from_str(text)?;
        let all = table.len();
        BesideOptions::NAMES.iter().for_each(|name| drop(table.remove(*name)));
        // An error names its line only where nothing was taken out.
        let options = if table.len() == all { toml::from_str(text)? } else { table.try_into()? };
        let BesideOptions { holdback, keep_back, old, journal, quiet } = toml::from_str(text)?;
        Ok(Self { options, holdback, keep_back, old, journal, quiet })
    }
}

/// A share, `5%` or `0.05`, as 0 to 1.
///
/// # Errors
/// What to write.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, of) = text.trim().strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map_err(|_| "write a share such as 5%".to_owned())? / of;
    if share.is_finite() && share > 0.0 { Ok(share) } else { Err("write a share such as 5%".to_owned()) }
}

/// A share as a number or a text.
fn share_or_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a share such as \"5%\"")]
    enum Share {
        Number(f64),
        Text(String),
    }
    let text = match Share::deserialize(from)? {
        Share::Number(number) => number.to_string(),
        Share::Text(text) => text,
    };
    parse_share(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_traffic::{TrafficAllocation, TrafficUnit};

    fn file(text: &str) -> Result<TrafficOptions, Problem> {
        let folder = std::env::temp_dir().join(format!("wt-options-{}-{}", std::process::id(), text.len()));
        std::fs::write(&folder, text).unwrap();
        let read = TrafficFile::read(&folder);
        std::fs::remove_file(&folder).unwrap();
        read.map(|file| file.options)
    }

    #[test]
    fn an_experiment_file_has_the_names_of_the_options_and_the_options_come_before_it() {
        let text = "ports = [80, 443]\nlevels = [\"initcwnd=10,32\"]\nunit = \"connection\"\nepoch = \"5m\"\nburn-in = \"10s\"\n\
                    allocations = \"mixed\"\nno-ramp = true\ninclude = [\"own-cc\"]\nfor = \"2h\"\n";
        let flags = TrafficOptions { ports: vec![8080], epoch: Some("1m".to_owned()), ..TrafficOptions::default() };
        let both = flags.or(file(text).unwrap());
        let request = both.request().unwrap();
        let config = &request.config;
        assert_eq!(
            (config.ports.as_slice(), config.epoch.as_secs(), config.unit),
            (&[8080][..], 60, TrafficUnit::Connection)
        );
        assert_eq!((config.allocation, config.own_cc, config.administrator), (TrafficAllocation::Mixed, true, false));
        assert_eq!(request.for_s, Some(7200.0));
        assert_eq!(
            both.command(),
            "windtunnel traffic start --port 8080 --levels initcwnd=10,32 --unit connection --epoch 1m --burn-in 10s --for 2h \
             --allocations mixed --include own-cc --no-ramp"
        );
    }

    #[test]
    fn a_file_with_a_word_that_is_no_option_is_refused_with_the_word() {
        let one = file("port = 443\nlevels = [\"initcwnd=10,32\"]\n").unwrap();
        assert_eq!(one.ports, [443]);
        assert!(file("port = \"https\"\n").unwrap_err().to_string().contains("a port, or a list of them"));
        let problem = file("ports = [80]\nlevel = [\"initcwnd=10,32\"]\n").unwrap_err().to_string();
        assert!(problem.contains("level") && problem.contains("experiment file has lines"), "{problem}");
        assert!(TrafficFile::read(Path::new("/nowhere.toml")).unwrap_err().to_string().contains("/nowhere.toml"));
        let soon = TrafficOptions { epoch: Some("soon".to_owned()), ..TrafficOptions::default() };
        assert!(soon.request().unwrap_err().to_string().contains("epoch"));
    }

    #[test]
    fn a_file_holds_a_holdback_its_journal_and_one_list_of_levels_by_itself_as_the_command_line_does() {
        let text = "port = 443\nlevels = \"initcwnd=10,32\"\ninclude = \"private\"\nholdback = \"last\"\nkeep-back = \"10%\"\n\
                    old = \"initcwnd=10\"\njournal = \"/var/lib/x.sqlite3\"\nquiet = true\nfor = \"28d\"\n";
        let file = TrafficFile::parse(text).unwrap();
        assert_eq!(
            (file.options.ports.as_slice(), file.options.levels.as_slice()),
            (&[443][..], &["initcwnd=10,32".to_owned()][..])
        );
        assert!(file.options.request().unwrap().config.private && file.quiet);
        assert_eq!((file.holdback.as_deref(), file.keep_back), (Some("last"), Some(0.1)));
        assert_eq!(
            (file.old, file.journal),
            (vec!["initcwnd=10".to_owned()], Some(PathBuf::from("/var/lib/x.sqlite3")))
        );
        assert_eq!(TrafficFile::parse("keep_back = 0.2\n").unwrap().keep_back, Some(0.2));
        for (text, said) in [
            ("holdback = \"last\"\nkeepback = \"5%\"\n", "keepback"),
            ("keep-back = \"few\"\n", "a share such as 5%"),
            ("keep-back = true\n", "a share such as"),
            ("include = \"everybody\"\n", "own-cc"),
            ("levels = 5\n", "a list of them"),
            ("quiet = 1\n", "boolean"),
        ] {
            let error = TrafficFile::parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
