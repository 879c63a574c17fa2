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
