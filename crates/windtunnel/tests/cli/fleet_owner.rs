//! What a fleet's owner gets wrong: it is said at once, and nothing of it is written down. No agent runs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::{RunOutput, ran, windtunnel};
use std::path::Path;
use wt_testing::{PostgresServer, require};

/// A fleet of these hosts.
struct Fleet {
    url: String,
    postgres: PostgresServer,
}

impl Fleet {
    fn start(folder: &Path, hosts: &[&str]) -> Result<Self, String> {
        let postgres = PostgresServer::start(folder)?;
        let fleet = Self { url: postgres.database("fleet")?, postgres };
        assert_eq!(fleet.run(folder, &["fleet", "init", &fleet.url]).code, 0);
        for host in hosts {
            assert_eq!(fleet.run(folder, &["fleet", "add", host, &fleet.url]).code, 0);
        }
        Ok(fleet)
    }

    fn run(&self, folder: &Path, args: &[&str]) -> RunOutput {
        ran(windtunnel(&folder.join("home")).args(args).output().unwrap())
    }
}

#[test]
fn a_change_whose_place_server_or_waves_cant_be_is_refused_before_it_uses_up_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fleet = require!("postgres", Fleet::start(folder, &["berlin"]));
    let network = ["--to", "198.51.100.0/24"];
    for (more, told) in [
        (&["--to", "nonsense"][..], "no place"),
        (&["--to", "0.0.0.0/99"], "no place"),
        (&[&network[..], &["--reach", "x"]].concat(), "no port"),
        (&[&network[..], &["--canaries", "0"]].concat(), "one host at least"),
        (&[&network[..], &["--wave", "0"]].concat(), "one host at least"),
        (&[&network[..], &["--on", "berlin,berlin"]].concat(), "twice"),
    ] {
        let apply = [&["fleet", "apply", "wider", &fleet.url, "--set", "initcwnd=20", "--patience", "1s"][..], more];
        let refused = fleet.run(folder, &apply.concat());
        assert!(refused.code == 2 && refused.err.contains(told), "{more:?}: {} {}", refused.code, refused.err);
        assert_eq!(fleet.postgres.sql("fleet", "SELECT count(*) FROM fleet_rollouts").unwrap(), "0", "{more:?}");
    }
}

#[test]
fn a_mesh_that_isnt_there_is_neither_stopped_nor_reported_and_those_that_are_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fleet = require!("postgres", Fleet::start(folder, &["berlin"]));
    let stop = |mesh: &str| fleet.run(folder, &["fleet", "stop", &fleet.url, "--mesh", mesh]);
    let report = |mesh: &str| fleet.run(folder, &["fleet", "report", mesh, &fleet.url]);
    let none = stop("north");
    assert!(none.code == 2 && none.err.contains("no mesh of the fleet is called north"), "{}", none.err);
    let file = folder.join("mesh.toml").display().to_string();
    for mesh in ["north", "south"] {
        let measure = "[[measure]]\nfrom = [\"berlin\"]\nto = [\"https://speed.example.org/large\"]\n";
        std::fs::write(&file, format!("name = \"{mesh}\"\n{measure}")).unwrap();
        assert_eq!(fleet.run(folder, &["fleet", "run", &file, &fleet.url]).code, 0);
    }
    for refused in [stop("noth"), report("noth")] {
        assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
        for told in ["no mesh of the fleet is called noth", "north, south"] {
            assert!(refused.err.contains(told), "{told}: {}", refused.err);
        }
    }
    let early = report("north");
    assert!(early.code == 2 && early.err.contains("a report takes two"), "{}", early.err);
    // One that is stopped already is still there.
    for stopped in ["1 pair", "0 pairs"] {
        let stop = stop("north");
        assert!(stop.code == 0 && stop.out.contains(stopped), "{stopped}: {}{}", stop.out, stop.err);
    }
}

#[test]
fn the_commands_that_a_host_is_taken_in_with_make_a_certificate_that_its_agent_takes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let openssl = std::process::Command::new("openssl").arg("version").output();
    require!("openssl", openssl);
    let fleet = require!("postgres", Fleet::start(folder, &[]));
    let added = fleet.run(folder, &["fleet", "add", "bonn", &fleet.url, "--json"]);
    let added: serde_json::Value = serde_json::from_str(&added.out).unwrap_or_else(|_| panic!("{}", added.err));
    let printed = added["certificate"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let authority = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.crt";
    let script = [authority].into_iter().chain(printed).collect::<Vec<_>>().join(" &&\n");
    let made = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{script}\n{}", String::from_utf8_lossy(&made.stderr));
    // Nobody listens there: files are looked at before.
    let file = |name: &str| folder.join(name).display().to_string();
    let files = format!("sslrootcert={}&sslcert={}&sslkey={}", file("ca.crt"), file("bonn.crt"), file("bonn.key"));
    std::fs::write(folder.join("agent.toml"), format!("server = \"postgresql://bonn@127.0.0.1:1/fleet?{files}\"\n"))
        .unwrap();
    let agent = fleet.run(folder, &["fleet", "agent", "--once", "--policy", &file("agent.toml")]);
    assert!(agent.code == 3 && agent.err.contains("can't be reached"), "{}", agent.err);
}

#[test]
fn a_host_gets_nobodys_role_and_a_dry_run_names_an_agent_that_isnt_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fleet = require!("postgres", Fleet::start(folder, &["berlin"]));
    for (host, told) in [("wt", "choose another name"), ("public", "no name of an agent")] {
        let refused = fleet.run(folder, &["fleet", "add", host, &fleet.url]);
        assert!(refused.code == 2 && refused.err.contains(told), "{host}: {} {}", refused.code, refused.err);
    }
    let file = folder.join("mesh.toml").display().to_string();
    let measure =
        "name = \"m\"\n[[measure]]\nfrom = [\"berlin\", \"nothere\"]\nto = [\"https://speed.example.org/large\"]\n";
    for (text, code, told) in [
        (measure.to_owned(), 2, "no agent of the fleet is called nothere"),
        (measure.replace(", \"nothere\"", ""), 0, "nothing was written"),
    ] {
        std::fs::write(&file, text).unwrap();
        let dry = fleet.run(folder, &["fleet", "run", &file, &fleet.url, "--dry-run"]);
        assert!(dry.code == code && format!("{}{}", dry.out, dry.err).contains(told), "{} {}", dry.out, dry.err);
    }
    assert_eq!(fleet.postgres.sql("fleet", "SELECT count(*) FROM fleet_jobs").unwrap(), "0");
}
