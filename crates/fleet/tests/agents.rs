//! Agents on a server of the test's own: over TLS with certificates, and what they may do there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../journal/tests/suite/mod.rs"]
mod suite;

use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;
use suite::finished;
use wt_fleet::{
    AgentState, AgentStore, FleetAdmin, FleetError, JobEnd, NewJob, PgJournal, PushState, RolloutOrder, RolloutPhase,
    StoreAddress, TurnTaker, Turns, push_as_agent,
};
use wt_journal::{Journal as _, JournalError, SqliteJournal, WithSamples, export_json};
use wt_testing::{PostgresServer, require};
use wt_trial::Cancel;

const LEASE: Duration = Duration::from_secs(600);

fn address(text: &str) -> StoreAddress {
    text.parse().unwrap()
}

/// A fleet of two on the server's socket, as which any name may come in.
fn fleet(server: &PostgresServer) -> FleetAdmin {
    let owner = address(&server.database("fleet").unwrap());
    FleetAdmin::install(&owner).unwrap();
    FleetAdmin::install(&owner).unwrap();
    let mut admin = FleetAdmin::connect(&owner).unwrap();
    assert!(admin.add("a").unwrap() && admin.add("b").unwrap() && !admin.add("a").unwrap());
    admin
}

fn of(server: &PostgresServer, role: &str) -> StoreAddress {
    address(&server.address("fleet").replace("wt@", &format!("{role}@")))
}

fn job(agent: &str, target: &str, every: Option<Duration>) -> NewJob {
    let (agent, target, spec) = (agent.to_owned(), target.to_owned(), "{}".to_owned());
    NewJob { agent, target, spec, links: vec!["link:x".to_owned()], every, spread: Duration::ZERO }
}

#[test]
fn what_an_agent_pushes_is_the_same_there_and_nobody_elses_can_be_touched() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    drop(fleet(&server));
    let mut a = AgentStore::connect(&of(&server, "a")).unwrap();
    let mut b = AgentStore::connect(&of(&server, "b")).unwrap();
    let mut local = SqliteJournal::open(&folder.path().join("a")).unwrap();
    finished(&mut local, "one", 10_000, 250, None);
    finished(&mut local, "two", 20_000, 30, Some("one"));
    let new = |report: wt_fleet::PushReport| report.experiments.iter().map(|one| one.new).collect::<Vec<_>>();
    assert_eq!(new(push_as_agent(&local, &mut a, None).unwrap()), [250, 30]);
    for _ in 0..3 {
        let again = push_as_agent(&local, &mut a, None).unwrap();
        assert!(again.experiments.iter().all(|one| one.state == PushState::Known && one.new == 0), "{again:?}");
    }
    let common = PgJournal::open_to_read(&address(&server.address("fleet"))).unwrap();
    let exported = |journal: &dyn wt_journal::Journal, id: &str| {
        let mut out = Vec::new();
        export_json(journal, id, WithSamples::Yes, &mut out).unwrap();
        out
    };
    for id in ["one", "two"] {
        assert!(exported(&local, id) == exported(&common, id), "byte for byte");
    }
    assert_eq!(server.sql("fleet", "SELECT DISTINCT site FROM experiments").unwrap(), "a", "who asks is the role");

    // Another agent can neither take the name nor write into it.
    let mut forged = SqliteJournal::open(&folder.path().join("b")).unwrap();
    finished(&mut forged, "one", 10_000, 251, None);
    let refused = push_as_agent(&forged, &mut b, None).unwrap();
    assert!(
        matches!(&refused.experiments[0].state, PushState::Refused(why) if why.contains("another one")),
        "{refused:?}"
    );
    assert_eq!(server.sql("fleet", "SELECT count(*) FROM trials").unwrap(), "280");
    // Nor are there numbers that no trial has.
    for (round, arm) in [(-1, 0), (1, -1), (1, 2)] {
        let one = |of: &str| format!("ARRAY[{of}]");
        let bad = format!(
            "SELECT fleet_push_trials('one', ARRAY[9000], ARRAY['round'], {}, ARRAY[0], {}, ARRAY['completed'], ARRAY[0], ARRAY[0], \
             ARRAY[0], ARRAY['{{}}'], ARRAY['{{}}'], ARRAY[0], ARRAY[0], ARRAY['{{}}'], ARRAY['{{}}'], ARRAY['{{}}'], ARRAY[0], \
             ARRAY[0], ARRAY[0], ARRAY['[]'], ARRAY[NULL::float8], ARRAY[NULL::text], ARRAY[NULL::bytea], ARRAY[NULL::bytea])",
            one(&round.to_string()),
            one(&arm.to_string())
        );
        let error = server.sql_as("a", "fleet", &bad).unwrap_err();
        assert!(error.contains("no trial has such"), "{round} {arm}: {error}");
    }
    // No table is theirs, to read or to write, nor what only owners do.
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    let tables = server.sql("fleet", tables).unwrap();
    assert!(tables.lines().count() >= 12, "{tables}");
    for table in tables.lines() {
        for sql in [format!("SELECT FROM {table}"), format!("DELETE FROM {table}"), format!("TRUNCATE {table} CASCADE")]
        {
            let error = server.sql_as("a", "fleet", &sql).unwrap_err();
            assert!(error.contains("permission denied"), "{sql}: {error}");
        }
    }
    assert!(server.sql_as("a", "fleet", "CREATE TABLE mine (x int)").is_err());
    assert!(matches!(
        PgJournal::open_to_read(&of(&server, "a")).and_then(|j| j.list(&wt_journal::Filter::default())),
        Err(JournalError::Open { .. })
    ));
    // Who is no agent can't even say hello.
    server.sql("fleet", "CREATE ROLE stranger LOGIN").unwrap();
    let error = AgentStore::connect(&of(&server, "stranger")).unwrap().hello("0", AgentState::default()).unwrap_err();
    assert!(error.to_string().contains("permission denied"), "{error}");
    server.sql("fleet", "CREATE ROLE member LOGIN IN ROLE windtunnel_agent").unwrap();
    let error = AgentStore::connect(&of(&server, "member")).unwrap().hello("0", AgentState::default()).unwrap_err();
    assert!(error.to_string().contains("no agent is called member"), "{error}");
}

#[test]
fn a_job_is_one_agents_until_it_ends_is_stopped_or_goes_to_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let mut admin = fleet(&server);
    let hour = Some(Duration::from_secs(3600));
    let jobs = [job("a", "wt://s", hour), job("b", "wt://s", None), job("b", "wt://t", None)];
    assert_eq!(admin.run("m", &jobs).unwrap(), 3);
    let unknown = admin.run("m", &[job("c", "wt://s", None)]).unwrap_err();
    assert!(matches!(&unknown, FleetError::NoSuchAgent { agent } if agent == "c"), "{unknown}");
    let mut a = AgentStore::connect(&of(&server, "a")).unwrap();
    let mut b = AgentStore::connect(&of(&server, "b")).unwrap();
    let first = a.next(LEASE).unwrap().unwrap();
    assert_eq!((first.mesh.as_str(), first.target.as_str(), first.run), ("m", "wt://s", 1));
    assert_eq!(a.next(LEASE).unwrap(), None, "it has its only one");
    // Another agent's job can't be kept or ended, whatever token is shown.
    assert!(!b.keep(&first, LEASE).unwrap());
    let done = |id: &str| JobEnd::Done { experiment: id.to_owned() };
    assert!(!b.end_job(&first, &done("x")).unwrap());
    assert!(a.keep(&first, LEASE).unwrap());
    // Its process died: one that begins anew gets it at once, and the old one is told so.
    a.hello("1", AgentState { begins: true, ..AgentState::default() }).unwrap();
    let again = a.next(LEASE).unwrap().unwrap();
    assert_eq!((again.job, again.run), (first.job, 1));
    assert!(again.token != first.token && !a.keep(&first, LEASE).unwrap() && !a.end_job(&first, &done("x")).unwrap());
    // It ends with an experiment of its own, and is due again in the next hour.
    let mut local = SqliteJournal::open(&folder.path().join("a")).unwrap();
    finished(&mut local, "e1", 10_000, 3, None);
    push_as_agent(&local, &mut a, None).unwrap();
    assert!(a.end_job(&again, &done("e1")).unwrap());
    assert_eq!(a.next(LEASE).unwrap(), None);
    let state = admin.state().unwrap();
    let of_a = state.jobs.iter().find(|job| job.agent == "a").unwrap();
    assert_eq!((of_a.state.as_str(), of_a.run, of_a.experiment.as_deref()), ("waiting", 2, Some("e1")));
    assert!(of_a.due_s.unwrap() <= 3600.0, "{of_a:?}");
    // Nobody brings in another's experiment as a run of his own.
    let (s, t) = (b.next(LEASE).unwrap().unwrap(), b.next(LEASE).unwrap().unwrap());
    assert!(b.end_job(&s, &done("e1")).unwrap());
    assert_eq!(admin.experiments("m", false).unwrap(), ["e1"]);
    let why = "s isn't among this host's targets".to_owned();
    assert!(b.end_job(&t, &JobEnd::Refused { why: why.clone() }).unwrap());
    let state = admin.state().unwrap();
    assert!(
        state.jobs.iter().any(|job| job.target == "wt://t" && job.state == "refused" && job.reason == why),
        "{state:?}"
    );
    // Run again, what was refused is asked again; what the mesh has no more is stopped, and whoever has it is told.
    admin.run("m", &[job("b", "wt://t", None)]).unwrap();
    let t = b.next(LEASE).unwrap().unwrap();
    let state = admin.state().unwrap();
    assert!(state.jobs.iter().any(|job| job.agent == "a" && job.state == "stopped"), "{state:?}");
    assert_eq!(admin.stop(Some("m")).unwrap(), 1);
    assert!(!b.keep(&t, LEASE).unwrap() && !b.end_job(&t, &done("e2")).unwrap());
    // A clock that is an hour wrong is shown, and decides nothing.
    let wrong = wt_sys::clock::unix_us() + 3_600_000_000;
    a.hello("1", AgentState { unix_us: wrong, ..AgentState::default() }).unwrap();
    let skew = admin.state().unwrap().agents.iter().find(|agent| agent.agent == "a").and_then(|agent| agent.skew_s);
    assert!((3590.0..3600.5).contains(&skew.unwrap()), "{skew:?}");
}

#[test]
fn the_periods_of_a_mesh_are_counted_from_its_own_beginning_and_are_the_same_for_who_joins_later() {
    const DAY: f64 = 86_400.0;
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let mut admin = fleet(&server);
    let mut a = AgentStore::connect(&of(&server, "a")).unwrap();
    let week = Some(Duration::from_secs(7 * 86_400));
    let pairs = |targets: &[&str]| targets.iter().map(|target| job("a", target, week)).collect::<Vec<_>>();
    // Runs what is due, and says in how many days it is again.
    let mut again = |admin: &mut FleetAdmin, target: &str| {
        let due = a.next(LEASE).unwrap().unwrap();
        assert_eq!(due.target, target);
        assert!(a.end_job(&due, &JobEnd::Done { experiment: "none".to_owned() }).unwrap());
        let of_target = |job: &&wt_fleet::JobLine| job.target == target;
        admin.state().unwrap().jobs.iter().find(of_target).and_then(|job| job.due_s).unwrap() / DAY
    };
    let is_about = |days: f64, wanted: f64| (wanted - 0.01..=wanted).contains(&days);
    let shift = |days: u32| {
        let sql = format!(
            "UPDATE fleet_jobs SET period = period - interval '{days} days', next = next - interval '{days} days'"
        );
        server.sql("fleet", &sql).unwrap();
    };
    admin.run("m", &pairs(&["wt://s"])).unwrap();
    let days = again(&mut admin, "wt://s");
    assert!(is_about(days, 7.0), "the next run is a period after the first one: {days}");
    // Three days later one joins, and one more a day after that: each runs at once, and then with the first one.
    shift(3);
    admin.run("m", &pairs(&["wt://s", "wt://t"])).unwrap();
    let days = again(&mut admin, "wt://t");
    assert!(is_about(days, 4.0), "{days}");
    shift(1);
    admin.run("m", &pairs(&["wt://s", "wt://t", "wt://u"])).unwrap();
    let days = again(&mut admin, "wt://u");
    assert!(is_about(days, 10.0), "not again within half a period: {days}");
    let due = "SELECT count(DISTINCT period) FROM fleet_jobs WHERE target <> 'wt://u'";
    assert_eq!(server.sql("fleet", due).unwrap(), "1");
    // A mesh that was stopped begins anew; so do periods.
    admin.stop(None).unwrap();
    admin.run("m", &pairs(&["wt://s"])).unwrap();
    assert!(is_about(again(&mut admin, "wt://s"), 7.0));

    // One of an older program has none: it is run all the same, and brought up to date its jobs keep the periods that they had.
    server.sql("fleet", "DROP FUNCTION fleet_period; ALTER TABLE fleet_jobs DROP COLUMN period").unwrap();
    admin.run("old", &[job("b", "wt://s", week)]).unwrap();
    FleetAdmin::install(&address(&server.address("fleet"))).unwrap();
    let mut b = AgentStore::connect(&of(&server, "b")).unwrap();
    let due = b.next(LEASE).unwrap().unwrap();
    assert!(b.end_job(&due, &JobEnd::Done { experiment: "none".to_owned() }).unwrap());
    let phase = "SELECT extract(epoch FROM period - timestamptz '2000-01-01 00:00:00+00')::bigint % 604800 FROM fleet_jobs WHERE agent = 'b'";
    assert_eq!(server.sql("fleet", phase).unwrap(), "0");
    // Who joins them has those, too.
    admin.run("old", &[job("b", "wt://s", week), job("b", "wt://t", week)]).unwrap();
    assert_eq!(server.sql("fleet", &phase.replace("= 'b'", "= 'b' AND target = 'wt://t'")).unwrap(), "0");
}

#[test]
fn a_mesh_that_measures_otherwise_is_a_new_run_and_a_fleet_that_is_made_anew_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let mut admin = fleet(&server);
    let mut a = AgentStore::connect(&of(&server, "a")).unwrap();
    admin.run("m", &[job("a", "wt://s", None)]).unwrap();
    let first = a.next(LEASE).unwrap().unwrap();
    admin.run("m", &[job("a", "wt://s", None)]).unwrap();
    assert!(a.keep(&first, LEASE).unwrap(), "nothing is new");
    admin.run("m", &[NewJob { spec: "{\"hours\":null}".to_owned(), ..job("a", "wt://s", None) }]).unwrap();
    assert!(
        !a.keep(&first, LEASE).unwrap() && !a.end_job(&first, &JobEnd::Done { experiment: "x".to_owned() }).unwrap()
    );
    let second = a.next(LEASE).unwrap().unwrap();
    assert_eq!((second.job, second.run), (first.job, 2));

    // What is said of a change counts only where nobody wants something else of it by then.
    admin.begin_rollout("r", "{}", &[("a".to_owned(), 1)]).unwrap();
    let number = admin.rollouts(Some("r")).unwrap()[0].number;
    assert!(admin.set_rollout(number, &["running", "done"], "undoing", "asked for").unwrap());
    assert!(!admin.set_rollout(number, &["running", "done"], "done", "").unwrap());
    assert_eq!(admin.rollouts(Some("r")).unwrap()[0].state, "undoing");

    // The host takes it back while nobody drives it any more: it is over all the same.
    let standing = |admin: &mut FleetAdmin| admin.state().unwrap().rollouts[0].state.clone();
    admin.order(number, RolloutOrder::Apply, &["a".to_owned()]).unwrap();
    let task = a.rollout_tasks().unwrap().pop().unwrap();
    assert!(a.rollout_said(&task, RolloutPhase::Applied, "").unwrap());
    admin.order(number, RolloutOrder::Undo, &["a".to_owned()]).unwrap();
    assert_eq!(standing(&mut admin), "undoing");
    assert!(a.rollout_said(&task, RolloutPhase::Undone, "").unwrap());
    assert_eq!(standing(&mut admin), "undone");

    let owner = address(&server.address("fleet"));
    let here = a.identity().unwrap().unwrap();
    assert_eq!((here.id.len(), here.changes), (16, 0));
    FleetAdmin::install(&owner).unwrap();
    assert_eq!(a.identity().unwrap().unwrap(), here, "it is the same for good");
    // One of an older program has none; brought up to date, agents may know its changes by the server's address.
    server.sql("fleet", "DROP FUNCTION fleet_id; DROP TABLE fleet_identity").unwrap();
    assert_eq!(a.identity().unwrap(), None);
    FleetAdmin::install(&owner).unwrap();
    let anew = a.identity().unwrap().unwrap();
    assert!(anew.id != here.id && anew.changes == number, "{anew:?}");
}

#[test]
fn a_mesh_that_is_corrected_or_measures_more_often_doesnt_wait_for_when_the_old_one_was_due() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let mut admin = fleet(&server);
    let mut a = AgentStore::connect(&of(&server, "a")).unwrap();
    let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
    let month = minutes(30 * 24 * 60);
    let of_spec = |spec: &str, every| NewJob { spec: spec.to_owned(), ..job("a", "wt://s", every) };
    let mut again = |a: &mut AgentStore, job: NewJob| {
        admin.run("m", &[job]).unwrap();
        let due = a.next(LEASE).unwrap();
        let line = admin.state().unwrap().jobs.remove(0);
        (due, line.due_s.unwrap_or(0.0), line.reason)
    };
    let fails = |a: &mut AgentStore, job: &wt_fleet::FleetJob| {
        assert!(a.end_job(job, &JobEnd::Failed { why: "a trial is too short".to_owned(), experiment: None }).unwrap());
    };
    let (first, ..) = again(&mut a, of_spec("{}", month));
    fails(&mut a, &first.unwrap());
    // Nothing is new: it waits for its next period, and says why it failed.
    let (due, later, reason) = again(&mut a, of_spec("{}", month));
    assert!(due.is_none() && later > 29.0 * 86_400.0 && reason.contains("too short"), "{later} {reason}");
    // The mistake is corrected: it begins now, and its next period is one of those that count from now.
    let (due, ..) = again(&mut a, of_spec("{\"trial\":\"1s\"}", month));
    let due = due.unwrap();
    assert_eq!(due.run, 3);
    fails(&mut a, &due);
    let (due, later, _) = again(&mut a, of_spec("{\"trial\":\"1s\"}", month));
    assert!(due.is_none() && later < 30.5 * 86_400.0, "{later}");
    // It runs more often: what was due is no further away than that, and then so, too.
    let (due, ..) = again(&mut a, of_spec("{\"trial\":\"1s\"}", minutes(2)));
    fails(&mut a, &due.unwrap());
    let (due, later, _) = again(&mut a, of_spec("{\"trial\":\"1s\"}", minutes(3)));
    assert!(due.is_none() && (1.0..=180.0).contains(&later), "what is due within the new time stays: {later}");
}

#[test]
fn a_role_of_somebody_else_is_no_agents() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let mut admin = fleet(&server);
    server.sql("postgres", "CREATE DATABASE theirs").unwrap();
    let theirs = "CREATE TABLE x (y int); CREATE ROLE grafana LOGIN; GRANT SELECT ON x TO grafana; CREATE ROLE app LOGIN; \
                  CREATE TABLE z (y int); ALTER TABLE z OWNER TO app";
    server.sql("theirs", theirs).unwrap();
    let roles = "CREATE ROLE carol SUPERUSER LOGIN; CREATE ROLE dba CREATEROLE LOGIN; CREATE ROLE backup LOGIN IN ROLE pg_read_all_data; \
                 CREATE ROLE people";
    server.sql("fleet", roles).unwrap();
    for (role, told) in [
        ("wt", "with which you are connected"),
        ("carol", "superuser"),
        ("dba", "create roles"),
        ("backup", "member of other roles"),
        ("grafana", "rights of its own"),
        ("app", "owns something"),
        ("people", "may not log in"),
    ] {
        let refused = admin.add(role).unwrap_err();
        assert!(matches!(&refused, FleetError::RoleOfOthers { agent, .. } if agent == role), "{role}: {refused}");
        assert!(refused.to_string().contains(told), "{told}: {refused}");
        let is_member = format!(
            "SELECT count(*) FROM pg_auth_members WHERE member = '{role}'::regrole AND roleid = 'windtunnel_agent'::regrole"
        );
        assert_eq!(server.sql("fleet", &is_member).unwrap(), "0", "{role}");
    }
    assert_eq!(server.sql("fleet", "SELECT count(*) FROM fleet_agents").unwrap(), "2");
    // One that an administrator made for the host, and one of another fleet on the same server.
    server.sql("fleet", "CREATE ROLE kiel LOGIN").unwrap();
    assert!(admin.add("kiel").unwrap() && !admin.add("kiel").unwrap());
    let other = address(&server.database("other").unwrap());
    FleetAdmin::install(&other).unwrap();
    assert!(FleetAdmin::connect(&other).unwrap().add("a").unwrap());
}

/// What `openssl x509 -req` of OpenSSL 3.0 makes without an extension.
const VERSION_1: &str = "-----BEGIN CERTIFICATE-----
MIIBBjCBrAIBATAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJjYTAgFw0yNjExMjkx
MTMxMzhaGA8yMTI2MTEwNTExMzEzOFowDzENMAsGA1UEAwwEYm9ubjBZMBMGByqG
SM49AgEGCCqGSM49AwEHA0IABMUrMZem73amjco1Uwozym6dJlRORhquK+Qx0Q+m
dPl7Xf3B4APYQJDDXuhgfHjwgyV24ZtqMd8EQNGwZJaaRLcwCgYIKoZIzj0EAwID
SQAwRgIhAJQMnSK6Zb8L23OVeLf6mDl3c8U8wn4hCUclp/McNLCQAiEAvBnPYEtX
JGNDoGrPaTbJCNeIzY3hbC0LzTGn0O2+jAU=
-----END CERTIFICATE-----
";

#[test]
fn a_certificate_of_version_1_is_refused_with_what_makes_another() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let key = pem("PRIVATE KEY", &KeyPair::generate().unwrap().serialize_der());
    let (certificate, key) = (write("bonn.crt", VERSION_1), write("bonn.key", &key));
    let place =
        address(&format!("postgresql://bonn@localhost/d?sslrootcert={certificate}&sslcert={certificate}&sslkey={key}"));
    let why = place.check_files().unwrap_err();
    assert!(why.contains("bonn.crt") && why.contains("version 3") && why.contains("-extfile"), "{why}");
}

#[test]
fn a_turn_that_cant_be_kept_is_cut_before_it_ends_and_one_that_can_isnt() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    drop(fleet(&server));
    let hold = Duration::from_secs(9);
    let taker = |role: &str| TurnTaker::new(of(&server, role), vec!["link:x".to_owned()], hold);
    let (mut one, user) = (taker("a"), Cancel::new());
    let held = one.take(&user, None, &mut |_| ()).unwrap().unwrap();
    let until = || server.sql("fleet", "SELECT until FROM turns WHERE granted IS NOT NULL").unwrap();
    let first = until();
    while until() == first {
        std::thread::yield_now();
    }
    assert!(!held.is_cut() && !held.cancel().is_cancelled(), "it is kept before a third of it is over");
    assert!(one.give_back(held));
    // Another one waits for it, and the user doesn't want to any more.
    let held = one.take(&user, None, &mut |_| ()).unwrap().unwrap();
    let impatient = Cancel::new();
    let mut told = Vec::new();
    let none = taker("b").take(&impatient, None, &mut |why| {
        told.push(why);
        impatient.cancel();
    });
    assert!(none.unwrap().is_none() && told == [wt_fleet::TurnWaits::Behind(1)], "{told:?}");
    // The server dies: the transfer is told to end while the turn is still ours.
    let mine: i64 = server
        .sql(
            "fleet",
            "SELECT extract(epoch FROM until - clock_timestamp()) * 1000 FROM turns WHERE granted IS NOT NULL",
        )
        .unwrap()
        .parse::<f64>()
        .unwrap() as i64;
    let asked = wt_sys::clock::boottime_ns();
    drop(server);
    while !held.cancel().is_cancelled() {
        std::thread::yield_now();
    }
    let after = i64::try_from((wt_sys::clock::boottime_ns() - asked) / 1_000_000).unwrap();
    assert!(held.is_cut() && after < mine, "{after} ms of {mine} ms");
    assert!(!one.give_back(held), "it wasn't held to the end");
}

/// As text.
fn pem(what: &str, bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"))
}

/// Writes a text where the server can read it, as the server's own user.
fn write_there(server: &PostgresServer, name: &str, text: &str) {
    let place = server.sql("postgres", "SHOW data_directory").unwrap();
    let lines = text.trim_end().replace('\'', "''");
    let sql = format!("COPY (SELECT regexp_split_to_table('{lines}', E'\\n')) TO '{place}/{name}'");
    server.sql("postgres", &sql).unwrap();
    std::fs::set_permissions(Path::new(&place).join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn only_the_right_certificate_over_tls_comes_in_and_only_as_itself() {
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = ["listen_addresses=127.0.0.1".to_owned(), format!("port={port}")];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut server = require!("postgres", PostgresServer::start_with(folder.path(), &settings));
    drop(fleet(&server));

    let authority = |name: &str| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = pem("CERTIFICATE", params.self_signed(&key).unwrap().der());
        (pem, Issuer::new(params, key))
    };
    let leaf = |of: &Issuer<'_, KeyPair>, name: &str, names: &[&str]| {
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        (pem("CERTIFICATE", params.signed_by(&key, of).unwrap().der()), pem("PRIVATE KEY", &key.serialize_der()))
    };
    let (ours, issuer) = authority("ours");
    let (theirs, foreign) = authority("theirs");
    let (certificate, key) = leaf(&issuer, "localhost", &["localhost"]);
    write_there(&server, "server.crt", &certificate);
    write_there(&server, "server.key", &key);
    write_there(&server, "ca.crt", &ours);
    // The line that `windtunnel fleet add` prints, and the owner on the socket.
    write_there(&server, "pg_hba.conf", "hostssl fleet +windtunnel_agent all cert\nlocal all wt trust");
    for setting in ["ssl = on", "ssl_ca_file = 'ca.crt'"] {
        server.sql("postgres", &format!("ALTER SYSTEM SET {setting}")).unwrap();
    }
    server.kill_and_restart().unwrap();

    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let pair = |name: &str, of: &Issuer<'_, KeyPair>, role: &str| {
        let (certificate, key) = leaf(of, role, &[]);
        (write(&format!("{name}.crt"), &certificate), write(&format!("{name}.key"), &key))
    };
    let (root, wrong_root) = (write("ca.pem", &ours), write("other.pem", &theirs));
    let (a, b, forged) = (pair("a", &issuer, "a"), pair("b", &issuer, "b"), pair("forged", &foreign, "a"));
    let url = |role: &str, host: &str, root: &str, pair: Option<&(String, String)>| {
        let shown = pair.map(|(certificate, key)| format!("&sslcert={certificate}&sslkey={key}")).unwrap_or_default();
        address(&format!("postgresql://{role}@{host}:{port}/fleet?sslrootcert={root}{shown}"))
    };
    let mixed = (a.0.clone(), b.1.clone());
    for (what, place, told) in [
        ("its own", url("a", "localhost", &root, Some(&a)), None),
        ("another's key", url("a", "localhost", &root, Some(&mixed)), Some("a.crt")),
        ("no such authority", url("a", "localhost", "/nowhere/ca", Some(&a)), Some("/nowhere/ca")),
        ("none, and no TLS", address("postgresql://a@localhost/fleet?sslmode=disable&sslrootcert=/nowhere/ca"), None),
    ] {
        let checked = place.check_files();
        assert_eq!(checked.is_ok(), told.is_none(), "{what}: {checked:?}");
        assert!(told.is_none_or(|told| checked.as_ref().is_err_and(|why| why.contains(told))), "{what}: {checked:?}");
    }
    let mut good = AgentStore::connect(&url("a", "localhost", &root, Some(&a))).unwrap();
    good.hello("1", AgentState::default()).unwrap();
    let no_tls = address(&format!("postgresql://a@localhost:{port}/fleet?sslmode=disable"));
    for (what, place, told) in [
        ("no TLS", no_tls, "no pg_hba.conf entry"),
        ("no certificate", url("a", "localhost", &root, None), "client certificate"),
        ("another's certificate", url("a", "localhost", &root, Some(&b)), "authentication failed"),
        ("another authority's certificate", url("a", "localhost", &root, Some(&forged)), ""),
        ("a server of another authority", url("a", "localhost", &wrong_root, Some(&a)), "certificate"),
        ("a server of another name", url("a", "127.0.0.1", &root, Some(&a)), "certificate"),
        ("the owner from afar", url("wt", "localhost", &root, Some(&a)), "no pg_hba.conf entry"),
    ] {
        let error = AgentStore::connect(&place).map(drop).unwrap_err();
        assert!(
            matches!(error, JournalError::Unreachable { .. }) && error.to_string().contains(told),
            "{what}: {error}"
        );
    }
    // Turns of others stay theirs over TLS, too.
    let hold = Duration::from_secs(60);
    let wish = wt_fleet::TurnWish { alone: vec!["link:x".into()], shared: Vec::new(), hold, patience: hold };
    let mut turns = Turns::connect(&url("a", "localhost", &root, Some(&a))).unwrap();
    let wt_fleet::TurnAnswer::Granted(turn) = turns.ask(&wish, None, Duration::ZERO).unwrap() else {
        panic!("it is free")
    };
    let mut other = Turns::connect(&url("b", "localhost", &root, Some(&b))).unwrap();
    assert!(matches!(other.ask(&wish, None, Duration::ZERO).unwrap(), wt_fleet::TurnAnswer::Waits { ahead: 1, .. }));
    assert!(!other.end(turn).unwrap(), "it isn't theirs to end");
    assert_eq!(server.sql("fleet", "SELECT agent FROM turns WHERE granted IS NOT NULL").unwrap(), "a");
    assert!(Path::new(&root).is_file());
}
