//! `windtunnel test`: one transfer from each server, with the settings as they are; one line of the log for each.

use super::event::{Sink, TuneEvent};
use super::logged::Covariate;
use super::notebook::{Notebook, begun, host};
use super::open::{FixedChoices, named, session};
use super::pilot::after_refusal;
use super::profile::ProfileRemote;
use super::request::{LiveRequest, TuneRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use utoipa::ToSchema;
use wt_journal::{
    Arm, ExperimentConfig, Journal, LoggedTestsConfig, NewExperiment, State, StoredExperiment, TrialId, WithSamples,
};
use wt_load::SharedKey;
use wt_prober::trace::{TraceRequest, trace};
use wt_problem::Problem;
use wt_setup::tunnel_problem;
use wt_sys::clock::unix_us;
use wt_sys::ns::read_net_sysctl;
use wt_trial::{Amount, Cancel, Direction, Phase, Status, TrialOutcome, TrialRecord, TrialSpec, Tunnel as _, Workload};
use wt_units::{Settings, counted, serde_duration};

/// How often each server may be asked in one request.
const MOST: usize = 100;
/// How much longer than its time a transfer may take before it counts as incomplete.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the kernel does with every connection: names below /proc/sys/net.
const IN_FORCE: [&str; 19] = [
    "core/rmem_max",
    "core/wmem_max",
    "ipv4/ip_default_ttl",
    "ipv4/ip_no_pmtu_disc",
    "ipv4/tcp_adv_win_scale",
    "ipv4/tcp_base_mss",
    "ipv4/tcp_congestion_control",
    "ipv4/tcp_ecn",
    "ipv4/tcp_moderate_rcvbuf",
    "ipv4/tcp_mtu_probing",
    "ipv4/tcp_no_metrics_save",
    "ipv4/tcp_notsent_lowat",
    "ipv4/tcp_rmem",
    "ipv4/tcp_sack",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_wmem",
    "ipv6/conf/all/hop_limit",
];

/// Transfers to log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TestRequest {
    /// The server with the file, or a profile that names several.
    pub target: String,
    /// The key of a server of ours whose address has none.
    #[serde(skip)]
    pub key: Option<SharedKey>,
    /// Transfers from each server, 1 to 100; servers take turns.
    pub each: usize,
    /// A transfer ends after this time, if the file hasn't before.
    #[serde(with = "serde_duration")]
    pub time: Duration,
    /// Ask no hops.
    pub no_hops: bool,
    /// Certificate authorities, the version of IP.
    pub live: LiveRequest,
    /// What else is known of the moment, by name: the rate at which a modem has connected.
    pub covariates: Vec<Covariate>,
    /// Note stored with the tests.
    pub comment: String,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
    /// What was typed.
    pub command: String,
}

impl Default for TestRequest {
    fn default() -> Self {
        Self {
            target: String::new(),
            key: None,
            each: 1,
            time: Duration::from_secs(60),
            no_hops: false,
            live: LiveRequest::default(),
            covariates: Vec::new(),
            comment: String::new(),
            journal: None,
            command: String::new(),
        }
    }
}

/// What was logged.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LoggedTests {
    /// 1.
    pub schema_version: u32,
    /// The name in the journal.
    pub id: String,
    /// What the kernel did with every connection, by its names.
    #[schema(value_type = std::collections::HashMap<String, String>)]
    pub settings: Map<String, Value>,
    /// What else was known of the moment, by name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = std::collections::HashMap<String, f64>)]
    pub covariates: Map<String, Value>,
    /// The transfers, in the order in which they ran.
    pub tests: Vec<LoggedTest>,
    /// Server by server.
    pub hosts: Vec<HostTests>,
    /// Mean over the servers' means, bit/s; `null` where nothing was completed.
    pub mean_bps: Option<f64>,
    /// Its standard error; `null` for fewer than two servers.
    pub standard_error_bps: Option<f64>,
}

/// One line of the log.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LoggedTest {
    /// Its number in the journal.
    pub number: i64,
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// The server.
    pub server: String,
    /// Its address.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// `completed`, `incomplete`, `failed`, `aborted` or `invalid`.
    pub status: &'static str,
    /// Payload that came.
    pub bytes: u64,
    /// How long it took, s.
    pub seconds: f64,
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// From the first SYN until the connection stood, µs.
    pub connect_us: Option<u64>,
    /// The smallest RTT, µs.
    pub min_rtt_us: Option<u64>,
    /// Segments that were retransmitted, as far as this end knows.
    pub retransmits: Option<u64>,
    /// The largest segment, bytes of payload.
    pub mss: Option<u64>,
    /// The widest window that was announced, bytes.
    pub rwin_max: Option<u64>,
    /// The device of this host, with its MTU, and the route over which the server was reached, as they were.
    #[schema(value_type = Option<std::collections::HashMap<String, Value>>)]
    pub link: Option<Value>,
    /// What a person should know of it.
    pub notes: Vec<String>,
}

/// What one server gave.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HostTests {
    /// The server.
    pub server: String,
    /// What its profile says of it.
    pub comment: String,
    /// Its address.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// How many hops away it is, where that could be asked.
    pub hops: Option<u8>,
    /// The TTL with which its answers arrive.
    pub reply_ttl: Option<u8>,
    /// Transfers that count.
    pub completed: usize,
    /// Transfers that were begun.
    pub tests: usize,
    /// The mean time to connect, µs.
    pub connect_us: Option<f64>,
    /// The mean of its transfers, bit/s.
    pub mean_bps: Option<f64>,
    /// Its standard error; `null` for fewer than two transfers.
    pub standard_error_bps: Option<f64>,
}

/// Transfers once from each server, or several times in turn, and writes all of it down.
///
/// # Errors
/// A [`Problem`] that says what to try; of several servers those that aren't there are in the answer instead.
pub fn test(request: &TestRequest, cancel: &Cancel, events: Sink<'_>) -> Result<LoggedTests, Problem> {
    let tune = TuneRequest {
        target: Some(request.target.clone()),
        key: request.key.clone(),
        live: LiveRequest { no_probes: true, ..request.live.clone() },
        no_model: true,
        ..TuneRequest::default()
    };
    tune.check()?;
    if !(1..=MOST).contains(&request.each) {
        return Err(Problem::usage(format!("{} transfers of each server: allowed is 1 to {MOST}", request.each)));
    }
    let servers = named(&request.target, request.key.as_ref())?;
    // Its tests would count as those of two servers that agree.
    let is_named_before =
        |(place, server): &(usize, &ProfileRemote)| servers[..*place].iter().any(|other| other.url == server.url);
    if let Some((_, server)) = servers.iter().enumerate().find(is_named_before) {
        return Err(Problem::usage(format!("{} names {} twice", request.target, server.url))
            .hint("--each asks every server several times"));
    }
    let covariates = Covariate::by_name(&request.covariates)?;
    let settings = in_force();
    let mut log: Option<Notebook> = None;
    let mut tests: Vec<LoggedTest> = Vec::new();
    let mut routes = vec![(None, None, None); servers.len()];
    for round in 1..=request.each {
        for (place, server) in servers.iter().enumerate() {
            if cancel.is_cancelled() {
                break;
            }
            let name = server.url.to_string();
            let mut opened = match session(&tune, vec![server.clone()], &[], &FixedChoices::default(), cancel, events) {
                Ok(opened) => opened,
                Err(problem) if servers.len() == 1 => return Err(problem),
                Err(problem) => {
                    events(TuneEvent::note(of_server(&name, &problem.what)));
                    continue;
                }
            };
            let address = opened.live.as_ref().and_then(|live| live.description.address);
            let log = match &mut log {
                Some(log) => log,
                none => {
                    let new = NewExperiment {
                        comment: request.comment.clone(),
                        current: opened.tunnel.current(),
                        arms: vec![Arm { label: "current".to_owned(), settings: Settings::new() }],
                        config: ExperimentConfig::Tests(Box::new(LoggedTestsConfig {
                            command: Some(request.command.clone()),
                            host: Some(host()),
                            test: Some(settings.clone()),
                            covariates: Some(covariates.clone()).filter(|all| !all.is_empty()),
                            ..LoggedTestsConfig::default()
                        })),
                        path: opened.tunnel.path(Direction::Down),
                        ..begun(&opened.tunnel)
                    };
                    none.insert(Notebook::open(request.journal.as_deref(), &new)?)
                }
            };
            let spec = TrialSpec {
                experiment: log.id().to_owned(),
                phase: Phase::Round,
                round: u32::try_from(round).unwrap_or(u32::MAX),
                order: u32::try_from(place + 1).unwrap_or(u32::MAX),
                arm: 0,
                settings: Settings::new(),
                workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Time(request.time) },
                deadline: request.time + PATIENCE,
                seed: tune.seed,
            };
            let started = unix_us();
            let number = log.begin(&spec, started)?;
            let mut outcome = match opened.tunnel.run(&spec, cancel) {
                Ok(outcome) => outcome,
                // One of several that lacks the file, or wants to be left alone, is in the log, and the others go on.
                Err(error) if servers.len() > 1 && !cancel.is_cancelled() => {
                    let problem = tunnel_problem(&error);
                    events(TuneEvent::note(problem.what.clone()));
                    TrialOutcome::empty(Status::Failed, Duration::ZERO, problem.what)
                }
                Err(error) => return Err(tunnel_problem(&error)),
            };
            // A refusal of the only one is no test, least of all one of 0 bit/s.
            if servers.len() == 1 && tests.is_empty() && outcome.status == Status::Invalid && outcome.bytes == 0 {
                log.discard()?;
                return Err(refused(&name, &outcome.notes));
            }
            outcome.observed.target = Some(name.clone());
            log.finish(number, &outcome)?;
            // A redirection may have led elsewhere.
            let address = outcome.observed.address.or(address);
            if round == 1 {
                let (hops, ttl) = address.filter(|_| !request.no_hops).map_or((None, None), |to| hops(to, cancel));
                routes[place] = (address, hops, ttl);
            }
            tests.push(LoggedTest::of(number, started, name, address, &outcome));
        }
    }
    let Some(mut log) = log else {
        let what = format!("none of the {} servers of {} could be reached", servers.len(), request.target);
        return Err(Problem::remote(what).hint("windtunnel path HOST tells what is in the way"));
    };
    let host = |(server, (address, hops, reply_ttl)): (&ProfileRemote, (_, _, _))| {
        let name = server.url.to_string();
        let own: Vec<&LoggedTest> = tests.iter().filter(|test| test.server == name).collect();
        let done = || own.iter().filter(|test| test.status == Status::Completed.name() && test.bytes > 0);
        let connects: Vec<f64> = done().filter_map(|test| test.connect_us).map(|us| us as f64).collect();
        let (mean_bps, standard_error_bps) = mean(&done().map(|test| test.goodput_bps).collect::<Vec<_>>());
        HostTests {
            server: name,
            comment: server.comment.clone(),
            address,
            hops,
            reply_ttl,
            completed: done().count(),
            tests: own.len(),
            connect_us: mean(&connects).0,
            mean_bps,
            standard_error_bps,
        }
    };
    let hosts: Vec<HostTests> = servers.iter().zip(routes).map(host).collect();
    let (mean_bps, standard_error_bps) = mean(&hosts.iter().filter_map(|host| host.mean_bps).collect::<Vec<_>>());
    let id = log.id().to_owned();
    let answer =
        LoggedTests { schema_version: 1, id, settings, covariates, tests, hosts, mean_bps, standard_error_bps };
    let state = if cancel.is_cancelled() { State::Stopped } else { State::Finished };
    let what = answer.headline();
    log.end(state, &json!({"kind": "test", "headline": what, "text": what, "hosts": answer.hosts}))?;
    Ok(answer)
}

/// What was logged, from the journal.
///
/// # Errors
/// A usage [`Problem`] where it is another experiment; one that names the journal.
pub fn logged(journal: &dyn Journal, stored: &StoredExperiment) -> Result<LoggedTests, Problem> {
    let ExperimentConfig::Tests(config) = &stored.config else {
        return Err(Problem::usage(format!("{} is no log of tests", stored.id))
            .hint(format!("windtunnel report {}", stored.id)));
    };
    let hosts = hosts_of(stored);
    let mut tests = Vec::new();
    let mut each = |trial: TrialRecord| {
        tests.push(LoggedTest::kept(stored, &hosts, &trial));
        Ok(())
    };
    let read = journal.for_each_trial_from(&stored.id, TrialId::MIN, WithSamples::No, &mut each);
    read.map_err(|error| wt_setup::journal::problem(&error))?;
    let (mean_bps, standard_error_bps) = mean(&hosts.iter().filter_map(|host| host.mean_bps).collect::<Vec<_>>());
    let settings = config.test.clone().unwrap_or_default();
    let covariates = config.covariates.clone().unwrap_or_default();
    let id = stored.id.clone();
    Ok(LoggedTests { schema_version: 1, id, settings, covariates, tests, hosts, mean_bps, standard_error_bps })
}

/// What was said of the servers at the end.
fn hosts_of(stored: &StoredExperiment) -> Vec<HostTests> {
    let hosts = stored.verdict.as_ref().and_then(|verdict| verdict.get("hosts")).cloned();
    hosts.and_then(|hosts| serde_json::from_value(hosts).ok()).unwrap_or_default()
}

/// These trials of logged tests as lines of the log.
#[must_use]
pub fn logged_lines(stored: &StoredExperiment, trials: &[TrialRecord]) -> Vec<LoggedTest> {
    let hosts = hosts_of(stored);
    trials.iter().map(|trial| LoggedTest::kept(stored, &hosts, trial)).collect()
}

impl LoggedTest {
    /// From the journal: while they run nothing is said of the servers.
    fn kept(stored: &StoredExperiment, hosts: &[HostTests], trial: &TrialRecord) -> Self {
        let host = hosts.get((trial.spec.order as usize).wrapping_sub(1));
        let told = trial.outcome.observed.target.clone().or_else(|| host.map(|host| host.server.clone()));
        let server = told.unwrap_or_else(|| stored.target.clone());
        Self::of(trial.id, trial.started_unix_us, server, host.and_then(|host| host.address), &trial.outcome)
    }

    fn of(
        number: TrialId,
        started_unix_us: i64,
        server: String,
        address: Option<IpAddr>,
        outcome: &TrialOutcome,
    ) -> Self {
        let seen = &outcome.observed;
        Self {
            number,
            started_unix_us,
            server,
            address: seen.address.or(address),
            status: outcome.status.name(),
            bytes: outcome.bytes,
            seconds: outcome.elapsed_us as f64 / 1e6,
            goodput_bps: outcome.goodput_bps(),
            connect_us: seen.connect_us,
            min_rtt_us: seen.min_rtt_us,
            retransmits: seen.retransmits,
            mss: seen.mss,
            rwin_max: seen.rwin_max,
            link: seen.link.clone(),
            notes: outcome.notes.clone(),
        }
    }
}

impl LoggedTest {
    /// The way to the server, as it was: `eth0 (virtio_net), MTU 1500, via 192.0.2.1 from 192.0.2.7, initcwnd 20`; nothing where
    /// the kernel didn't tell.
    #[must_use]
    pub fn way(&self) -> Option<String> {
        let link = self.link.as_ref()?;
        let word = |name: &str| link.get(name).and_then(Value::as_str);
        let mut told = word("device")?.to_owned();
        word("driver").into_iter().for_each(|driver| told.push_str(&format!(" ({driver})")));
        link["mtu"].as_u64().into_iter().for_each(|mtu| told.push_str(&format!(", MTU {mtu}")));
        word("via").into_iter().for_each(|gateway| told.push_str(&format!(", via {gateway}")));
        word("source").into_iter().for_each(|source| told.push_str(&format!(" from {source}")));
        for (name, value) in link["route"].as_object().into_iter().flatten() {
            told.push_str(&format!(", {name} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        Some(told)
    }
}

impl LoggedTests {
    /// What came of it, in a line.
    #[must_use]
    pub fn headline(&self) -> String {
        let rate = |bps: f64| wt_units::BitsPerSecond(bps.max(0.0) as u64).human();
        match (self.tests.as_slice(), self.mean_bps, self.standard_error_bps) {
            ([only], ..) => {
                let status = if only.status == Status::Completed.name() { "" } else { only.status };
                let figures = format!("{} bytes in {:.2} s, {}", only.bytes, only.seconds, rate(only.goodput_bps));
                if status.is_empty() { figures } else { format!("{status}: {figures}") }
            }
            (all, Some(mean), Some(error)) => {
                format!("{} tests of {} servers: {} ± {}", all.len(), self.hosts.len(), rate(mean), rate(error))
            }
            (all, Some(mean), None) => format!("{}: {}", counted(all.len(), "test"), rate(mean)),
            (all, None, _) => format!("{}, none completed", counted(all.len(), "test")),
        }
    }
}

/// What is wrong with one of several servers, which it mostly names itself.
fn of_server(name: &str, what: &str) -> String {
    if what.starts_with(name) { what.to_owned() } else { format!("{name}: {what}") }
}

/// The server said no before anything was transferred. How long it is left alone is of no matter: this ends here.
fn refused(server: &str, notes: &[String]) -> Problem {
    let said = notes.join("; ");
    let why = said.split("; it is left alone").next().unwrap_or_default();
    let what = if why.is_empty() { format!("{server} refuses") } else { why.to_owned() };
    Problem::remote(what).because("nothing was transferred, and nothing is kept").hint(after_refusal(&said))
}

/// How many hops away a host is, and the TTL with which its answers arrive; nothing where probes aren't allowed.
fn hops(to: IpAddr, cancel: &Cancel) -> (Option<u8>, Option<u8>) {
    let request = TraceRequest { hosts: vec![to.to_string()], names: false, probes: 1, ..TraceRequest::default() };
    let traced = trace(&request, cancel, &mut |_| {}).ok();
    let route = traced.and_then(|mut answers| answers.0.pop()).map(|answer| answer.route);
    route.map_or((None, None), |route| (route.hop_count, route.reply_ttl))
}

/// What the kernel does now with every connection.
fn in_force() -> Map<String, Value> {
    let one = |name: &str| Some((format!("net.{}", name.replace('/', ".")), read_net_sysctl(name).ok()?));
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    IN_FORCE.iter().filter_map(|name| one(name)).map(|(name, text)| (name, Value::String(words(text)))).collect()
}

/// The mean and its standard error.
fn mean(values: &[f64]) -> (Option<f64>, Option<f64>) {
    let n = values.len() as f64;
    if values.is_empty() {
        return (None, None);
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (Some(mean), (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_named_twice_isnt_two_that_agree() {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("two.toml");
        let target = |comment: &str| format!("[[target]]\nurl = \"http://192.0.2.1/a\"\ncomment = \"{comment}\"\n");
        std::fs::write(&profile, target("morning") + &target("evening")).unwrap();
        let request = TestRequest { target: profile.to_str().unwrap().to_owned(), ..TestRequest::default() };
        let problem = test(&request, &Cancel::new(), &mut |_| {}).unwrap_err();
        assert!(problem.what.ends_with("two.toml names http://192.0.2.1/a twice"), "{problem:?}");
    }

    #[test]
    fn of_several_servers_each_that_isnt_there_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("two.toml");
        let urls = ["wt://127.0.0.1:1", "wt://127.0.0.1:2"];
        std::fs::write(&profile, urls.map(|url| format!("[[target]]\nurl = \"{url}\"\n")).concat()).unwrap();
        let key = Some("07".repeat(32).parse().unwrap());
        let request = TestRequest { target: profile.to_str().unwrap().to_owned(), key, ..TestRequest::default() };
        let mut told = Vec::new();
        let problem = test(&request, &Cancel::new(), &mut |event| told.push(format!("{event:?}"))).unwrap_err();
        assert!(problem.what.contains("none of the 2 servers"), "{problem:?}");
        for url in urls {
            let of_it: Vec<_> = told.iter().filter(|text| text.contains(url)).collect();
            assert!(of_it.len() == 1 && of_it[0].matches(url).count() == 1, "{told:?}");
        }
    }

    #[test]
    fn the_standard_error_is_that_of_the_mean() {
        assert_eq!(mean(&[]), (None, None));
        assert_eq!(mean(&[3.0]), (Some(3.0), None));
        let (middle, error) = mean(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(middle, Some(2.5));
        // The sample variance is 5/3, that of the mean a fourth of it.
        assert!((error.unwrap() - (5.0_f64 / 12.0).sqrt()).abs() < 1e-12);
    }
}
