//! The journal of many hosts, in PostgreSQL: what is pushed to it, and what reads it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::{RunOutput, ran, windtunnel};
use serde_json::Value;
use std::path::{Path, PathBuf};
use wt_testing::{PostgresServer, require};

/// Journals of every version, as `journal export` wrote them.
fn goldens() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.ends_with(".json") && !name.contains(".report.")
        })
        .collect();
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    files
}

#[test]
fn every_report_is_the_same_from_both_stores_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let url = server.database("fleet").unwrap();
    let secret = url.replace("wt@", "wt:hunter%32@");
    let home = folder.path().join("home");
    let run = |args: &[&str]| ran(windtunnel(&home).args(args).output().unwrap());
    let json = |ran: RunOutput| serde_json::from_str::<Value>(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.err));

    let none = run(&["journal", "status"]);
    assert!(none.code == 2 && none.err.contains("nothing was ever pushed"), "{}", none.err);
    let empty = run(&["journal", "list", "--journal", &url]);
    assert!(empty.code == 3 && empty.err.contains("journal push makes them"), "{} {}", empty.code, empty.err);

    let files: Vec<String> = goldens().iter().map(|path| path.display().to_string()).collect();
    let mut import: Vec<&str> = vec!["journal", "import"];
    import.extend(files.iter().map(String::as_str));
    let imported = json(run(&[&import[..], &["--json"]].concat()));
    let ids: Vec<&str> = imported["imported"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(ids.len() > 8, "{imported}");

    // Only one at first.
    let one = run(&["journal", "push", &secret, ids[0], "--site", "berlin"]);
    assert_eq!(one.code, 0, "{}", one.err);
    let lacking = run(&["journal", "status", "--json"]);
    assert_eq!(lacking.code, 1);
    assert_eq!(json(lacking)["incomplete"], ids.len() - 1);
    let all = json(run(&["journal", "push", &secret, "--json"]));
    assert_eq!((&all["refused"], &all["complete"]), (&Value::from(0), &Value::from(1)), "{all}");
    let again = json(run(&["journal", "push", &secret, "--json"]));
    assert_eq!((&again["trials"], &again["complete"]), (&Value::from(0), &Value::from(ids.len())), "{again}");
    assert_eq!(run(&["journal", "status"]).code, 0);
    assert_eq!(server.sql("fleet", "SELECT count(*) FROM experiments WHERE site = 'berlin'").unwrap(), "1");

    let both = |args: &[&str]| {
        let (local, common) = (run(args), run(&[args, &["--journal", &url]].concat()));
        assert_eq!((local.code, &local.err), (common.code, &common.err), "{args:?}");
        assert!(local.out == common.out, "{args:?}:\n{}\n{}", local.out, common.out);
        local
    };
    both(&["journal", "list"]);
    assert_eq!(
        json(both(&["journal", "list", "--limit", "99", "--json"]))["experiments"].as_array().unwrap().len(),
        ids.len()
    );
    let mut reports = 0;
    for id in &ids {
        // What flent ran and a logged test have no report of ours.
        reports += usize::from(!both(&["report", id, "--json"]).out.is_empty());
        both(&["journal", "show", id, "--json"]);
        both(&["journal", "export", id]);
    }
    assert_eq!(reports, ids.len() - 2);
    both(&["journal", "export", "last", "--format", "csv"]);
    both(&["journal", "samples", ids[1], "--json"]);
    both(&["compare", ids[0], ids[1], "--anyway", "--json"]);
    both(&["journal", "show", "no-such-experiment"]);
    let metrics = both(&["metrics"]).out;
    assert!(metrics.contains("windtunnel_journal_up 1\n") && metrics.contains("windtunnel_verdict{"), "{metrics}");
    let away = run(&["metrics", "--journal", &url.replace("/fleet", "/nowhere")]);
    assert!(away.code == 0 && away.out.contains("windtunnel_journal_up 0\n"), "{}", away.err);
    assert_eq!(run(&["metrics", "--journal", "postgresql://h/d?sslmode=require"]).code, 2);
    assert_eq!(run(&["fleet", "init", &url]).code, 0);
    every_query_of_the_dashboard_is_answered(&server);

    // What isn't a measurement is written there at once: taken in, and thrown away again.
    let imports = server.database("imports").unwrap();
    let there = json(run(&[&import[..], &["--json", "--journal", &imports]].concat()));
    assert_eq!(there["imported"], imported["imported"]);
    for id in &ids {
        // What is taken in has numbers of that journal: everything else is the same.
        let (local, common) = (run(&["report", id]), run(&["report", id, "--journal", &imports]));
        assert!((local.code, &local.out) == (common.code, &common.out), "{id}: {} {}", common.out, common.err);
    }
    let sites = "SELECT count(*) FROM experiments WHERE site <> config->'host'->>'name'";
    assert_eq!(server.sql("imports", sites).unwrap(), "0", "the host that measured is its site");
    let known = json(run(&[&import[..], &["--json", "--journal", &imports]].concat()));
    assert_eq!((known["imported"].as_array().unwrap().len(), known["known"].as_array().unwrap().len()), (0, ids.len()));
    let pruned = json(run(&["journal", "prune", ids[0], "--json", "--journal", &imports]));
    assert_eq!((&pruned["pruned"], &pruned["experiments"]), (&Value::from(vec![ids[0]]), &Value::from(1)), "{pruned}");
    let left = json(run(&["journal", "list", "--limit", "99", "--json", "--journal", &imports]));
    assert_eq!(left["experiments"].as_array().unwrap().len(), ids.len() - 1);

    // What is measured for it is here while it runs, and there when it has ended; a server that isn't there is told before it begins.
    let measured = |store: &str| {
        let tune = ["tune", "--lab", "lan", "--levels", "cc=reno", "--workload", "bulk:size=64KiB", "--no-model"];
        run(&[&tune[..], &["--budget", "4 trials", "--quiet", "--json", "--journal", store]].concat())
    };
    let tuned = measured(&secret);
    assert!([0, 1].contains(&tuned.code), "{}", tuned.err);
    let id = json(tuned)["id"].as_str().unwrap().to_owned();
    both(&["journal", "export", &id]);
    let missing = measured(&secret.replace("/fleet", "/nowhere"));
    assert!(missing.code == 3 && missing.err.contains("does not exist"), "{} {}", missing.code, missing.err);
    // Nobody finds the password.
    let away = run(&["journal", "push", &secret.replace("/fleet", "/nowhere")]);
    assert!(away.code == 3 && away.err.contains("does not exist"), "{} {}", away.code, away.err);
    let data = std::fs::read_dir(home.join("data/windtunnel")).unwrap();
    let kept: Vec<u8> = data.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    let said = [one, missing, away].iter().map(|ran| format!("{}{}", ran.out, ran.err)).collect::<String>();
    for text in [String::from_utf8_lossy(&kept).into_owned(), said, all.to_string()] {
        assert!(!text.contains("hunter"), "a password is kept or shown");
    }
}

/// Those of the dashboard over the common journal, with what Grafana puts in the place of its variables.
fn every_query_of_the_dashboard_is_answered(server: &PostgresServer) {
    let dashboard = include_str!("../../../../packaging/grafana/fleet.json");
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let panels = panels.map(|panel| (&panel["title"], &panel["targets"][0]["rawSql"]));
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let variables = variables.filter(|one| one["type"] == "query").map(|one| (&one["name"], &one["query"]));
    let mut queries = 0;
    for (name, query) in panels.chain(variables) {
        let query = ["site", "target"].iter().fold(query.as_str().unwrap().to_owned(), |query, name| {
            query.replace(&format!("(${name})"), &format!("(SELECT {name} FROM v_experiments)"))
        });
        let query = query.replace("$__unixEpochFrom()", "0").replace("$__unixEpochTo()", "4102444800");
        assert!(!query.contains('$'), "{name}: {query}");
        let rows = server.sql("fleet", &query).unwrap_or_else(|error| panic!("{name}: {error}"));
        // No agent was added, so that nobody asks for a turn or has a job; and no verdict of these says by how much.
        let nothing = ["fleet_agents", "FROM turns", "fleet_jobs", "change_percent IS NOT NULL"];
        assert_eq!(rows.is_empty(), nothing.iter().any(|of| query.contains(of)), "{name}: {rows}");
        queries += 1;
    }
    assert_eq!(queries, 9);
}

#[test]
fn an_address_that_is_none_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| ran(windtunnel(folder.path()).args(args).output().unwrap());
    for (url, told) in [
        ("mysql://x/y", "postgresql://USER@HOST/DATABASE"),
        ("postgresql://h/d?sslmode=require", "sslmode is verify-full"),
        ("postgresql://ann:p@ss@h/d", "%40"),
        ("postgresql://127.0.0.1:1/d", "can't be reached"),
        ("postgresql://127.0.0.1:1/d?sslrootcert=/nowhere", "/nowhere"),
    ] {
        let ran = run(&["journal", "push", url]);
        assert!([2, 3].contains(&ran.code) && ran.err.contains(told), "{url}: {} {}", ran.code, ran.err);
        assert!(!ran.err.contains("p@ss") && !ran.err.contains("ss@h"), "{}", ran.err);
    }
}
