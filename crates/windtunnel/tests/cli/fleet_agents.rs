//! Agents of a fleet as processes: on one emulated link in turn, killed, without their server, refusing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "what is on the link is timed as it passes")]

use crate::common::{RunOutput, ran, windtunnel};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wt_testing::{PostgresServer, require};

/// What is less than this is a request or an answer, and no transfer.
const DATA: usize = 4096;
/// The link's rate: so many bytes a step, and no faster.
const STEP: usize = 16 * 1024;
const PER_STEP: Duration = Duration::from_millis(4);

/// The agent whose wall clock is an hour ahead, where that is asked for.
const WRONG: &str = "c";

/// What makes a wall clock wrong, without the monotonic one.
fn faketime() -> Result<PathBuf, String> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file()).ok_or_else(|| "no libfaketimeMT.so.1 (package faketime)".to_owned())
}

/// Who moved data over the link, and when.
type Passed = Arc<Mutex<Vec<(usize, Instant)>>>;

/// An emulated link that agents share: a relay with a rate, on one port for each agent, which notes whose data passes.
struct SharedLink {
    ports: Vec<u16>,
    passed: Passed,
}

impl SharedLink {
    fn to(server: SocketAddr, agents: usize) -> Self {
        let passed = Passed::default();
        let ports = (0..agents).map(|agent| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let passed = Arc::clone(&passed);
            std::thread::spawn(move || {
                for near in listener.incoming().map_while(Result::ok) {
                    let Ok(far) = TcpStream::connect(server) else { continue };
                    for (from, to) in [(&near, &far), (&far, &near)] {
                        let (from, to, passed) =
                            (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(&passed));
                        std::thread::spawn(move || relay(from, to, agent, &passed));
                    }
                }
            });
            port
        });
        Self { ports: ports.collect(), passed }
    }

    /// How near each other data of two agents came, at the nearest; and how much passed of each.
    fn nearest(&self) -> (Option<Duration>, Vec<usize>) {
        let passed = self.passed.lock().unwrap();
        let mut counts = vec![0; self.ports.len()];
        passed.iter().for_each(|(agent, _)| counts[*agent] += 1);
        let changes = passed.windows(2).filter(|two| two[0].0 != two[1].0);
        (changes.map(|two| two[1].1.duration_since(two[0].1)).min(), counts)
    }
}

fn relay(mut from: TcpStream, mut to: TcpStream, agent: usize, passed: &Passed) {
    let mut buffer = vec![0; STEP];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if count >= DATA {
            let mut passed = passed.lock().unwrap();
            passed.push((agent, Instant::now()));
            drop(passed);
            std::thread::sleep(PER_STEP);
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}

/// A fleet on this host: its server, a server of tests, the link to it, and a folder for each agent.
struct Fleet {
    postgres: PostgresServer,
    url: String,
    home: PathBuf,
    serve: Child,
    link: SharedLink,
    /// What makes the clock of [`WRONG`] wrong.
    wrong: Option<PathBuf>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}

impl Fleet {
    fn start(folder: &Path, agents: &[&str]) -> Result<Self, String> {
        let postgres = PostgresServer::start(folder)?;
        let url = postgres.database("fleet")?;
        let home = folder.join("home");
        let mut serve =
            windtunnel(&home).args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(serve.stdout.take().unwrap()).lines().map_while(Result::ok);
        let shown = lines.by_ref().find_map(|line| Some(line.trim().strip_prefix("wt://")?.to_owned())).unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let (key, server) = shown.split_once('@').unwrap();
        std::fs::write(folder.join("key"), key).unwrap();
        let link = SharedLink::to(server.parse().unwrap(), agents.len());
        let fleet = Self { postgres, url, home, serve, link, wrong: None };
        assert_eq!(fleet.run(&["fleet", "init", &fleet.url]).code, 0);
        for agent in agents {
            assert_eq!(fleet.run(&["fleet", "add", agent, &fleet.url]).code, 0);
            fleet.policy(folder, agent, "");
        }
        Ok(fleet)
    }

    fn policy(&self, folder: &Path, agent: &str, more: &str) -> PathBuf {
        let path = folder.join(format!("{agent}.toml"));
        let server = self.url.replace("wt@", &format!("{agent}@"));
        let (journal, key) = (folder.join(format!("{agent}.sqlite3")), folder.join("key"));
        let (journal, key) = (journal.display(), key.display());
        let keys = format!("[keys]\n\"127.0.0.1\" = \"{key}\"\n");
        let text = format!(
            "server = \"{server}\"\njournal = \"{journal}\"\ntargets = [\"127.0.0.0/8\"]\nturn = \"4s\"\npoll = \"400ms\"\n{more}\n{keys}"
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> RunOutput {
        ran(windtunnel(&self.home).args(args).output().unwrap())
    }

    /// Each agent measures over its own end of the link, a few trials.
    fn mesh(&self, folder: &Path, agents: &[&str], name: &str, trials: usize) {
        let each = agents.iter().zip(&self.link.ports).map(|(agent, port)| {
            format!(
                "[[measure]]\nfrom = [\"{agent}\"]\nto = [\"wt://127.0.0.1:{port}\"]\nlinks = [\"link:shared\"]\nwithin = \"0s\"\n\
                 with = {{ levels = [\"rwin=64KiB\"], budget = \"{trials} trials\", trial = \"400ms\" }}\n"
            )
        });
        let file = folder.join(format!("{name}.toml"));
        std::fs::write(&file, format!("name = \"{name}\"\n{}", each.collect::<String>())).unwrap();
        let run = self.run(&["fleet", "run", &file.display().to_string(), &self.url]);
        assert_eq!(run.code, 0, "{}", run.err);
    }

    fn agent(&self, folder: &Path, agent: &str) -> Child {
        let policy = folder.join(format!("{agent}.toml"));
        let log = std::fs::File::options().create(true).append(true).open(folder.join(format!("{agent}.log"))).unwrap();
        let mut command = windtunnel(&self.home);
        if let Some(library) = self.wrong.as_ref().filter(|_| agent == WRONG) {
            command.env("LD_PRELOAD", library).env("FAKETIME", "+1h").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.args(["fleet", "agent", "--policy"]).arg(policy).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    fn status(&self, of: &str) -> Vec<Value> {
        let status = self.run(&["fleet", "status", &self.url, "--json"]);
        let status: Value = serde_json::from_str(&status.out).unwrap_or_else(|error| panic!("{error}: {}", status.err));
        status[of].as_array().unwrap().clone()
    }

    fn jobs(&self) -> Vec<Value> {
        self.status("jobs")
    }
}

/// Trials of an agent's journal that have ended, so far.
fn ended(journal: &Path) -> usize {
    let sql = "SELECT count(*) FROM trials WHERE status <> 'running'";
    let open = rusqlite::Connection::open_with_flags(journal, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    open.and_then(|journal| journal.query_row(sql, [], |row| row.get::<_, i64>(0))).map_or(0, |count| count as usize)
}

/// Waits for something that has to come; the test's own time limit ends a wait in vain.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(3600), "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn agents_measure_in_turn_on_a_shared_link_whoever_is_killed_and_nothing_is_lost() {
    let agents = ["a", "b", "c"];
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut fleet = require!("postgres", Fleet::start(folder, &agents));
    fleet.wrong = Some(require!("faketime", faketime()));
    let kills = 2;
    fleet.mesh(folder, &agents, "one", 6 + 2 * kills);
    let journal = |agent: &str| folder.join(format!("{agent}.sqlite3"));
    let mut running: Vec<Child> = agents.iter().map(|agent| fleet.agent(folder, agent)).collect();
    for kill in 0..kills {
        // Whoever is next in the row, once somebody's trial has ended again.
        let victim = kill % agents.len();
        let before: usize = agents.iter().map(|agent| ended(&journal(agent))).sum();
        until("another trial", || {
            agents.iter().map(|agent| ended(&journal(agent))).sum::<usize>() > before
                || fleet.jobs().iter().all(|job| job["state"] == "done")
        });
        running[victim].kill().unwrap();
        running[victim].wait().unwrap();
        running[victim] = fleet.agent(folder, agents[victim]);
        if kill == kills / 3 || kill == kills * 2 / 3 {
            // Its server as well, twice: what was begun ends by itself or goes on when it is back.
            fleet.postgres.kill_and_restart().unwrap();
        }
    }
    until("all are done", || fleet.jobs().iter().all(|job| job["state"] == "done"));
    for child in &mut running {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (nearest, counts) = fleet.link.nearest();
    assert!(counts.iter().all(|count| *count > 50), "everybody has moved data: {counts:?}");
    assert!(nearest.unwrap() > Duration::from_millis(2), "two were on the link at once: {nearest:?}");
    // A clock that is an hour wrong is shown, and changed nothing of all this.
    for agent in fleet.status("agents") {
        let skew = agent["skew_s"].as_f64().unwrap();
        let wrong = if agent["agent"] == WRONG { 3600.0 } else { 0.0 };
        assert!((skew - wrong).abs() < 60.0, "{agent}");
    }

    // Both journals have the same trials, and pushing again adds none.
    let count = "SELECT (SELECT count(*) FROM trials), (SELECT count(*) FROM trials WHERE status = 'running'), \
                 (SELECT count(*) FROM experiments WHERE state = 'running')";
    let there = fleet.postgres.sql("fleet", count).unwrap();
    for agent in agents {
        let list = fleet.run(&["journal", "list", "--json", "--journal", &journal(agent).display().to_string()]);
        let list: Value = serde_json::from_str(&list.out).unwrap();
        for one in list["experiments"].as_array().unwrap() {
            let id = one["id"].as_str().unwrap();
            let export = |place: &str| fleet.run(&["journal", "export", id, "--journal", place]);
            let (local, common) = (export(&journal(agent).display().to_string()), export(&fleet.url));
            assert!(local.code == 0 && local.out == common.out, "{agent}: {id}: {}", common.err);
        }
        let policy = folder.join(format!("{agent}.toml")).display().to_string();
        let again = fleet.run(&["fleet", "agent", "--policy", &policy, "--once", "--json"]);
        assert_eq!(again.code, 0, "{}", again.err);
    }
    let local: usize = agents.iter().map(|agent| ended(&journal(agent))).sum();
    assert_eq!(there, format!("{local}|0|0"));
    assert_eq!(fleet.postgres.sql("fleet", count).unwrap(), there);
    // Each site's order comes from a seed of its own, so their evidence multiplies.
    let report = fleet.run(&["fleet", "report", "one", &fleet.url, "--json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap_or_else(|error| panic!("{error}: {}", report.err));
    let settings = report["settings"].as_array().unwrap();
    assert!(settings.len() == 1 && settings[0]["combined"] == "product", "{report}");
    assert_eq!(settings[0]["each"].as_array().unwrap().len(), 3, "{report}");
}

/// The experiment that an agent runs.
fn experiment_of(agent: &Child) -> Option<u32> {
    let path = format!("/proc/{0}/task/{0}/children", agent.id());
    std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// Whether a process is stopped by a signal; one that is gone, or ended and not yet waited for, isn't.
fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn an_experiment_that_is_stopped_ends_with_its_turn_and_goes_on_in_a_process_of_its_own() {
    const SIGSTOP: i32 = 19;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fleet = require!("postgres", Fleet::start(folder, &["a", "b"]));
    fleet.mesh(folder, &["a"], "one", 8);
    let mut agent = fleet.agent(folder, "a");
    // In the middle of a trial, with the turn that is for it.
    let journal = folder.join("a.sqlite3");
    until("a trial has ended", || ended(&journal) > 0);
    let before = fleet.link.nearest().1[0];
    until("the next one moves data", || fleet.link.nearest().1[0] > before + 10);
    let experiment = experiment_of(&agent).unwrap();
    wt_sys::process::signal(experiment, SIGSTOP).unwrap();
    until("it is stopped", || is_stopped(experiment) || experiment_of(&agent) != Some(experiment));
    let begun = Instant::now();
    // Nobody lets it go on: only the end of its turn, 4 s at most, takes it away.
    until("it is killed", || !is_stopped(experiment));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    until("it is done", || fleet.jobs().iter().all(|job| job["state"] == "done"));
    agent.kill().unwrap();
    agent.wait().unwrap();
    let log = std::fs::read_to_string(folder.join("a.log")).unwrap();
    assert!(log.contains("its process was killed (signal 9); it goes on"), "{log}");
    let sql = "SELECT (SELECT count(*) FROM experiments), (SELECT count(*) FROM trials WHERE status = 'aborted')";
    assert_eq!(fleet.postgres.sql("fleet", sql).unwrap(), "2|1", "{log}");
}

#[test]
fn without_turns_the_same_link_has_two_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fleet = require!("postgres", Fleet::start(folder, &["a", "b"]));
    let key = folder.join("key").display().to_string();
    let tunes: Vec<Child> = (0..2)
        .map(|agent| {
            let target = format!("wt://127.0.0.1:{}", fleet.link.ports[agent]);
            let journal = folder.join(format!("{agent}.sqlite3")).display().to_string();
            let mut command = windtunnel(&fleet.home);
            command.args(["tune", &target, "--key-file", &key, "--levels", "rwin=64KiB", "--budget", "8 trials"]);
            command.args(["--trial", "400ms", "--quiet", "--journal", &journal]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut tune in tunes {
        tune.wait().unwrap();
    }
    let (nearest, counts) = fleet.link.nearest();
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    assert!(nearest.unwrap() < Duration::from_millis(2), "the link shows who is on it: {nearest:?}");
}

#[test]
fn what_a_hosts_policy_forbids_is_refused_with_the_reason_and_never_begins() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fleet = require!("postgres", Fleet::start(folder, &["a"]));
    let port = fleet.link.ports[0];
    let policy = fleet.policy(folder, "a", "bytes_a_day = \"10MB\"\nknobs = [\"rwin\"]").display().to_string();
    let cases = [
        ("wt://198.51.100.7:7411", "levels = [\"rwin=64KiB\"], budget = \"1MB\"", "isn't among this host's targets"),
        ("wt://127.0.0.2", "levels = [\"rwin=64KiB\"], budget = \"1MB\", host_wide = true", "this whole host"),
        ("wt://127.0.0.3", "levels = [\"rwin=64KiB\"], budget = \"1GB\"", "more than this host's"),
        ("wt://127.0.0.4", "levels = [\"rwin=64KiB\"], budget = \"10min\"", "how many bytes"),
        ("wt://127.0.0.5", "levels = [\"cc=reno\"], budget = \"1MB\"", "doesn't allow the knob cc"),
    ];
    let measures = cases.map(|(to, with, _)| {
        format!("[[measure]]\nfrom = [\"a\"]\nto = [\"{to}\"]\nwithin = \"0s\"\nwith = {{ {with} }}\n")
    });
    let mesh = folder.join("mesh.toml");
    std::fs::write(&mesh, format!("name = \"m\"\n{}", measures.concat())).unwrap();
    let mesh = mesh.display().to_string();
    assert_eq!(fleet.run(&["fleet", "run", &mesh, &fleet.url]).code, 0);
    let once = fleet.run(&["fleet", "agent", "--policy", &policy, "--once", "--json"]);
    let answer: Value = serde_json::from_str(&once.out).unwrap_or_else(|error| panic!("{error}: {}", once.err));
    assert_eq!(
        (once.code, &answer["refused"], &answer["measured"]),
        (1, &Value::from(5), &Value::from(0)),
        "{}",
        once.err
    );
    let jobs = fleet.jobs();
    for (target, _, why) in cases {
        let job = jobs.iter().find(|job| job["target"] == target).unwrap();
        assert_eq!(job["state"], "refused", "{job}");
        assert!(job["reason"].as_str().unwrap().contains(why), "{job}");
    }
    let text = fleet.run(&["fleet", "status", &fleet.url]).out;
    assert!(
        text.contains("isn't among this host's targets") && text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );
    // Hours that are not now: the job waits, and says for what.
    let now = wt_sys::clock::unix_us() / 60_000_000 % 1440;
    let hour = |minutes: i64| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
    let hours = format!("{}-{}", hour(now + 120), hour(now + 180));
    fleet.policy(folder, "a", &format!("hours = [\"{hours}\"]"));
    let with = "levels = [\"rwin=64KiB\"], budget = \"1MB\"";
    std::fs::write(&mesh, format!("name = \"m\"\n[[measure]]\nfrom = [\"a\"]\nto = [\"wt://127.0.0.1:{port}\"]\nwithin = \"0s\"\nwith = {{ {with} }}\n")).unwrap();
    assert_eq!(fleet.run(&["fleet", "run", &mesh, &fleet.url]).code, 0);
    assert_eq!(fleet.run(&["fleet", "agent", "--policy", &policy, "--once"]).code, 0);
    let jobs = fleet.jobs();
    let job = jobs.iter().find(|job| job["state"] == "waiting").unwrap();
    assert!(
        job["reason"].as_str().unwrap().contains("this host's hours") && job["due_s"].as_f64().unwrap() > 3000.0,
        "{job}"
    );
    assert_eq!(fleet.link.nearest().1, [0], "nothing was ever on the link");
    assert_eq!(ended(&folder.join("a.sqlite3")), 0);
}
