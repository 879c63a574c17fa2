use super::{LabRequest, RunningLab};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wt_lab::{EngineStats, LinkEnd, Program, Recording, Scenario};
use wt_problem::Problem;
use wt_trial::Cancel;

/// A program in a lab's client.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabRunRequest {
    /// The path.
    pub lab: LabRequest,
    /// What runs.
    pub program: LabProgram,
    /// The congestion control of every connection, on both ends and whatever programs ask for.
    #[serde(default)]
    pub control: Option<String>,
    /// The packets that are recorded.
    #[serde(default)]
    pub record: Option<LabRecording>,
}

/// What runs in the client of a lab, with this process's input and output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LabProgram {
    /// Any program.
    Command {
        /// The program and its arguments.
        #[serde(deserialize_with = "words")]
        argv: Vec<OsString>,
        /// A shell command that runs in the server meanwhile.
        #[serde(default, deserialize_with = "word")]
        server: Option<OsString>,
    },
    /// ping(8) to the server.
    Ping {
        /// Its options; without any: `-c 4`.
        #[serde(default, deserialize_with = "words")]
        options: Vec<OsString>,
    },
    /// iperf3 to the server.
    Iperf3 {
        /// Options of its client.
        #[serde(default, deserialize_with = "words")]
        options: Vec<OsString>,
    },
    /// A browser, with a profile that is forgotten afterwards.
    Browser {
        /// What it shows.
        url: String,
        /// Which; nothing means `$BROWSER`, or the first of the known ones that is there.
        #[serde(default, deserialize_with = "word")]
        program: Option<OsString>,
        /// Its further options.
        #[serde(default, deserialize_with = "words")]
        options: Vec<OsString>,
    },
}

/// A recording of packets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabRecording {
    /// The pcapng file.
    pub file: PathBuf,
    /// Ends of links, as `LINK:client`, `LINK:server` or `all`; without any: the devices of client and server.
    #[serde(default)]
    pub at: Vec<String>,
}

/// How a program in a lab ended, and how the lab did meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabRunAnswer {
    /// 1.
    pub schema_version: u32,
    /// The program's, or 128 and the signal that killed it.
    pub exit_code: u8,
    /// Whether the lab was never so late that it could be felt, and lost nothing itself.
    pub valid: bool,
    /// Why not.
    pub why_invalid: Option<String>,
    /// What the lab counted.
    pub lab: Value,
    /// Packets in the recording.
    pub recorded: Option<u64>,
    /// Packets that came faster than they could be recorded.
    pub not_recorded: u64,
    /// How often this kernel skipped a program of the congestion control.
    pub programs_skipped: u64,
    /// What the lab counted, for people.
    #[serde(skip)]
    pub stats: EngineStats,
    /// Round-trip time of a full-sized segment on the idle path.
    #[serde(skip)]
    pub rtt: Duration,
}

/// Words of a command line, which JSON has as text.
///
/// # Errors
/// What isn't a list of texts.
pub fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
    Ok(Vec::<String>::deserialize(from)?.into_iter().map(OsString::from).collect())
}

fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OsString>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(OsString::from))
}

/// Runs a program in the client of a new lab, to its end or until somebody cancels. Must be called before any other thread runs.
///
/// # Errors
/// A [`Problem`]: an invalid path or end of a link, a program that isn't there, a lab that can't be. That the program fails is an answer.
pub fn run(request: &LabRunRequest, cancel: &Cancel) -> Result<LabRunAnswer, Problem> {
    let program = request.program.program()?;
    let record = |scenario: &Scenario| request.record.as_ref().map(|record| record.of(scenario)).transpose();
    let running = RunningLab::start(&request.lab, request.control.as_deref(), record)?;
    // Where there can't be a lab, that is what is told first.
    request.program.check()?;
    let exit_code = running.run(&program, cancel, |_| {})?;
    let ended = running.lab().ended_by_now();
    let (stats, rtt, programs_skipped) = (running.stats(), running.rtt, running.guard_hits());
    let recorded = running.stop()?;
    let why_invalid = ended.map(|why| format!("the lab's emulator stopped: {why}")).or_else(|| stats.complaint(rtt));
    Ok(LabRunAnswer {
        schema_version: 1,
        exit_code,
        valid: why_invalid.is_none(),
        why_invalid,
        lab: stats.to_json(),
        not_recorded: recorded.as_ref().map_or(0, |recorded| recorded.missed),
        recorded: recorded.map(|recorded| recorded.packets),
        programs_skipped,
        stats,
        rtt,
    })
}

impl LabRecording {
    /// The recording on a path.
    ///
    /// # Errors
    /// A usage [`Problem`]: a file that can't be written, an end that the path doesn't have.
    pub fn of(&self, scenario: &Scenario) -> Result<Recording, Problem> {
        wt_lab::check_target(&self.file)
            .map_err(|error| Problem::usage(format!("can't record into {}: {error}", self.file.display())))?;
        let mut ends = Vec::new();
        for text in &self.at {
            for end in parse_end(scenario, text)? {
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
        }
        if ends.is_empty() {
            ends = LinkEnd::outer(scenario);
        }
        Ok(Recording { file: self.file.clone(), ends })
    }
}

/// `all`, or `LINK:client`, by name or by number from 1.
fn parse_end(scenario: &Scenario, text: &str) -> Result<Vec<LinkEnd>, Problem> {
    if text == "all" {
        return Ok(LinkEnd::all(scenario));
    }
    let (name, side) = text.rsplit_once(':').unwrap_or((text, ""));
    let mut named = (0..scenario.links.len()).filter(|link| scenario.links[*link].name == name);
    let (named, twin) = (named.next(), named.next());
    if let (Some(one), Some(other)) = (named, twin) {
        let all = format!("links {} and {} are both called \"{name}\"", one + 1, other + 1);
        return Err(Problem::usage(format!("--record-at {text:?}: {all}"))
            .hint(format!("write the number instead: {}:{side}", one + 1)));
    }
    let numbered = || name.parse::<usize>().ok()?.checked_sub(1).filter(|link| *link < scenario.links.len());
    match (named.or_else(numbered), side) {
        (Some(link), "client") => Ok(vec![LinkEnd { link, server_side: false }]),
        (Some(link), "server") => Ok(vec![LinkEnd { link, server_side: true }]),
        _ => {
            let names: Vec<String> = scenario.links.iter().map(|link| format!("\"{}\"", link.name)).collect();
            Err(Problem::usage(format!("--record-at {text:?} is no end of a link"))
                .hint(format!("write LINK:client, LINK:server or all; the links are {}", names.join(", "))))
        }
    }
}

/// Waits until the server listens on iperf3's port, 5201, and becomes the client.
const IPERF3: &str = "\
    n=0; until ip netns exec server cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ':1451 .* 0A '; do \
    n=$((n+1)); [ $n -gt 100 ] && { echo 'windtunnel: iperf3 does not listen in the server' >&2; exit 4; }; sleep 0.05; \
    done; exec iperf3 -c server \"$@\"";

/// Browsers that are tried, the first one that is there is taken.
const BROWSERS: [&str; 6] =
    ["firefox", "firefox-esr", "chromium", "chromium-browser", "google-chrome", "brave-browser"];

/// A browser's profile lies in the lab's own file system in memory, which goes with the lab, whatever ends it.
const PROFILE: &str = "/run/browser-profile";
/// Makes it, and becomes the browser.
const WITH_PROFILE: &str = "mkdir -m 700 /run/browser-profile /run/browser-tmp || exit 126; \
    TMPDIR=/run/browser-tmp; XDG_CONFIG_HOME=$TMPDIR; XDG_CACHE_HOME=$TMPDIR; export TMPDIR XDG_CONFIG_HOME XDG_CACHE_HOME; exec \"$@\"";

impl LabProgram {
    /// Whether the program is there that it stands for.
    ///
    /// # Errors
    /// An environment [`Problem`] that says what to install.
    fn check(&self) -> Result<(), Problem> {
        match self {
            Self::Ping { .. } => needs("ping", "apt-get install iputils-ping"),
            Self::Iperf3 { .. } => needs("iperf3", "apt-get install iperf3"),
            // Of any program its exit code tells, as a shell's; a browser is looked for.
            Self::Command { .. } | Self::Browser { .. } => Ok(()),
        }
    }

    /// As the lab runs it.
    ///
    /// # Errors
    /// An environment [`Problem`] where a program isn't there.
    fn program(&self) -> Result<Program, Problem> {
        match self {
            Self::Command { argv, server } => Ok(Program { argv: argv.clone(), server: server.clone() }),
            Self::Ping { options } => {
                let few = ["-c", "4"].map(OsString::from);
                let options = if options.is_empty() { &few[..] } else { options };
                let argv = ["ping".into()].into_iter().chain(options.iter().cloned()).chain(["server".into()]);
                Ok(Program { argv: argv.collect(), server: None })
            }
            Self::Iperf3 { options } => {
                let shell = ["sh", "-c", IPERF3, "iperf3"].map(OsString::from);
                let argv = shell.into_iter().chain(options.iter().cloned()).collect();
                Ok(Program { argv, server: Some("exec iperf3 -s -1 >/dev/null".into()) })
            }
            Self::Browser { url, program, options } => browser(url, program.clone(), options),
        }
    }
}

fn browser(url: &str, program: Option<OsString>, options: &[OsString]) -> Result<Program, Problem> {
    let program = program.or_else(|| std::env::var_os("BROWSER").filter(|name| !name.is_empty()));
    let known = || BROWSERS.iter().find(|name| in_path(name)).map(OsString::from);
    let Some(program) = program.or_else(known) else {
        return Err(Problem::environment("there is no browser that I know")
            .because(format!("none of {} is in PATH", BROWSERS.join(", ")))
            .hint("name one: windtunnel lab browser PATH --program /usr/bin/BROWSER"));
    };
    let name = PathBuf::from(&program).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut argv = ["sh", "-c", WITH_PROFILE, "sh"].map(OsString::from).to_vec();
    argv.push(program);
    if name.contains("firefox") {
        argv.extend(["--no-remote", "--new-instance", "--profile", PROFILE].map(OsString::from));
    } else {
        // One is root in the lab, where Chromium wants no sandbox of its own; the lab reaches nothing outside.
        argv.extend(["--no-first-run", "--no-sandbox"].map(OsString::from));
        argv.push(format!("--user-data-dir={PROFILE}").into());
    }
    argv.extend(options.iter().cloned());
    argv.push(url.into());
    Ok(Program { argv, server: None })
}

fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn needs(program: &str, install: &str) -> Result<(), Problem> {
    if in_path(program) {
        return Ok(());
    }
    Err(Problem::environment(format!("{program} isn't in PATH")).hint(format!("install it: {install}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_json_says_what_runs_where() {
        let text = r#"{"lab": {"path": "adsl"}, "program": {"command": {"argv": ["curl", "http://server/"]}},
            "record": {"file": "a.pcapng", "at": ["1:client"]}}"#;
        let request: LabRunRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.program.program().unwrap().argv, ["curl", "http://server/"]);
        assert_eq!(request.record.unwrap().at, ["1:client"]);
        let ping: LabProgram = serde_json::from_str(r#"{"ping": {}}"#).unwrap();
        assert_eq!(ping.program().unwrap().argv, ["ping", "-c", "4", "server"]);
        assert!(serde_json::from_str::<LabProgram>(r#"{"ping": {"count": 3}}"#).is_err(), "unknown words are refused");
    }

    #[test]
    fn ends_of_links_are_named_or_numbered_and_others_are_told_with_what_there_is() {
        let scenario = super::super::load("adsl").unwrap();
        let all = parse_end(&scenario, "all").unwrap();
        assert_eq!(all.len(), 2 * scenario.links.len());
        assert_eq!(parse_end(&scenario, "1:client").unwrap(), [LinkEnd { link: 0, server_side: false }]);
        let name = scenario.links[0].name.clone();
        assert_eq!(parse_end(&scenario, &format!("{name}:server")).unwrap(), [LinkEnd { link: 0, server_side: true }]);
        for wrong in ["", "1", "0:client", "99:server", "nowhere:client", "1:middle"] {
            let problem = parse_end(&scenario, wrong).unwrap_err().to_string();
            assert!(problem.contains("--record-at"), "{wrong}: {problem}");
        }
    }
}
