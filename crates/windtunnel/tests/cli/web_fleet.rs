//! `windtunnel web --journal postgresql://…`: the page over the journal of many hosts, and its fleet.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::web::Server;
use serde_json::Value;
use std::path::Path;
use wt_testing::{PostgresServer, require};

/// A mesh of two hosts and one target.
const MESH: &str = "name = \"north\"\n[[measure]]\nfrom = [\"berlin\", \"bonn\"]\nto = [\"https://speed.example.org/large\"]\n\
                    links = [\"link:uplink\"]\nwithin = \"1h\"\nwith = { levels = [\"rwin=64KiB\"], budget = \"9 trials\" }\n";

#[test]
fn the_page_reads_the_journal_of_many_hosts_its_fleet_and_what_this_host_has_not_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = require!("postgres", PostgresServer::start(folder.path()));
    let url = postgres.database("fleet").unwrap();
    let secret = url.replace("wt@", "wt:hunter%32@");
    let server = Server::start_with(&["--listen", "127.0.0.1:0", "--journal", &secret]);
    let run = |args: &[&str]| server.command(&[args, &["--json"]].concat());

    // Before there is anything, that is said and not a fault of this server.
    let none = server.get("/api/v1/fleet");
    assert!(none.status == 400 && none.body.contains("has no fleet yet"), "{} {}", none.status, none.body);
    run(&["fleet", "init", &url]);
    for host in ["berlin", "bonn"] {
        run(&["fleet", "add", host, &url]);
    }
    let mesh = folder.path().join("mesh.toml");
    std::fs::write(&mesh, MESH).unwrap();
    assert_eq!(run(&["fleet", "run", &mesh.display().to_string(), &url])["jobs"], 2);

    // What each host measured comes there, and belongs to its job as when an agent ends one.
    let golden = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/journal/{name}.json"));
        run(&["journal", "import", &path.display().to_string()])["imported"][0].as_str().unwrap().to_owned()
    };
    let (first, second, own) = (golden("tune-7"), golden("live-7"), golden("identical-3"));
    for (id, host) in [(&first, "berlin"), (&second, "bonn")] {
        run(&["journal", "push", &url, id, "--site", host]);
        let end = format!(
            "INSERT INTO fleet_runs (job, run, experiment) SELECT job, run, '{id}' FROM fleet_jobs WHERE agent = '{host}'"
        );
        postgres.sql("fleet", &end).unwrap();
    }
    for host in ["berlin", "bonn"] {
        let wish = "SELECT is_granted FROM ask_turn(NULL, ARRAY['link:uplink'], ARRAY[]::text[], 600000, 600000)";
        let granted = postgres.sql_as(host, "fleet", wish).unwrap();
        assert_eq!(granted, if host == "berlin" { "t" } else { "f" }, "one after the other");
    }

    let fleet = server.get("/api/v1/fleet");
    assert!(fleet.status == 200 && !fleet.body.contains("hunter"), "{}", fleet.body);
    let status = fleet.json();
    let printed = run(&["fleet", "status", &url]);
    // Times go on between the two.
    let still = |status: &Value, list: &str, fields: &[&str]| -> Vec<Vec<Value>> {
        let one = |line: &Value| fields.iter().map(|field| line[*field].clone()).collect();
        status[list].as_array().unwrap().iter().map(one).collect()
    };
    let job = ["mesh", "agent", "target", "state", "experiment", "verdict", "action", "answer", "setting", "change_bp"];
    assert_eq!(still(&status, "jobs", &job), still(&printed, "jobs", &job));
    assert_eq!(
        still(&status, "turns", &["agent", "granted"]),
        [["berlin", "true"], ["bonn", "false"]]
            .map(|[agent, has]| { vec![Value::from(agent), Value::from(has == "true")] })
    );
    assert_eq!(
        still(&status, "agents", &["agent"]),
        [["berlin"], ["bonn"]].map(|names| names.map(Value::from).to_vec())
    );

    // Each pair has the verdict of its newest experiment, as the journal lists it, and its age.
    let listed = server.get("/api/v1/journal").json();
    assert_eq!(listed, run(&["journal", "list", "--journal", &url]));
    assert_eq!(listed["experiments"].as_array().unwrap().len(), 2, "{listed}");
    for (at, id) in [&first, &second].into_iter().enumerate() {
        let line = &status["jobs"][at];
        let one = listed["experiments"].as_array().unwrap().iter().find(|one| one["id"] == id.as_str()).unwrap();
        for field in ["verdict", "action", "answer", "setting", "change_bp"] {
            assert_eq!(line[field], one[field], "{field} of {line}");
        }
        assert!(line["experiment"] == id.as_str() && line["age_s"].as_f64().unwrap() > 0.0, "{line}");
        assert_eq!(server.get(&format!("/api/v1/reports/{id}")).json(), run(&["report", id, "--journal", &url]));
    }
    let report = server.get("/api/v1/fleet/report?mesh=north");
    assert_eq!(report.json(), run(&["fleet", "report", "north", &url]), "{}", report.body);

    // What one host's rows make unreadable takes the report from nobody else: it is left out and named.
    postgres.sql("fleet", "INSERT INTO fleet_agents (agent) VALUES ('cologne')").unwrap();
    let more = format!(
        "INSERT INTO experiments (id, site, target, tunnel, state, started_us, comment, version, current, config, seed, path, \
         owner_pid, owner_start, owner_boot, kind) SELECT 'odd', 'cologne', target, tunnel, state, started_us, comment, version, \
         current, config, seed, '{{}}', owner_pid, owner_start, owner_boot, kind FROM experiments WHERE id = '{first}'; \
         INSERT INTO fleet_jobs (mesh, agent, target, spec, links, spread_ms, state, next) \
         SELECT mesh, 'cologne', target, spec, links, spread_ms, 'done', next FROM fleet_jobs WHERE agent = 'berlin'; \
         INSERT INTO fleet_runs (job, run, experiment) SELECT job, run, 'odd' FROM fleet_jobs WHERE agent = 'cologne'"
    );
    postgres.sql("fleet", &more).unwrap();
    let others = run(&["fleet", "report", "north", &url]);
    assert_eq!(others["experiments"], report.json()["experiments"]);
    let told = others["notes"].to_string();
    assert!(told.contains("odd is left out") && told.contains("rtt_us"), "{told}");

    // What wasn't pushed is found by its name.
    assert_eq!(server.get(&format!("/api/v1/reports/{own}")).json(), run(&["report", &own]));
    assert_eq!(server.get(&format!("/api/v1/journal/{own}")).status, 200);
    let nobody = server.get("/api/v1/reports/nope");
    assert!(nobody.status == 400 && nobody.body.contains("no experiment"), "{}", nobody.body);
}

#[test]
fn a_journal_that_is_no_address_is_refused_before_anything_listens() {
    let folder = tempfile::tempdir().unwrap();
    for (journal, said) in
        [("journal.sqlite3", "no address of a journal of many hosts"), ("postgresql://h/d?sslmode=require", "sslmode")]
    {
        let mut command = crate::common::windtunnel(folder.path());
        let ran = crate::common::ran(
            command.args(["web", "--listen", "127.0.0.1:0", "--journal", journal]).output().unwrap(),
        );
        assert!(ran.code == 2 && ran.err.contains(said) && ran.out.is_empty(), "{journal}: {} {}", ran.code, ran.err);
    }
}
