//! What an agent says at its start: of a policy that can't do, and of a server that doesn't let it in.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::{RunOutput, ran, windtunnel};

/// One turn of an agent whose policy has this address of a server, and more.
fn once(server: &str, more: &str) -> RunOutput {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("agent.toml");
    let journal = folder.path().join("journal.sqlite3").display().to_string();
    std::fs::write(&policy, format!("server = \"{server}\"\njournal = \"{journal}\"\n{more}\n")).unwrap();
    let mut command = windtunnel(&folder.path().join("home"));
    ran(command.args(["fleet", "agent", "--once", "--policy"]).arg(&policy).output().unwrap())
}

/// A server on a port where nobody listens.
const NOBODY: &str = "postgresql://berlin@127.0.0.1:1/fleet";

#[test]
fn a_policy_that_cant_do_is_refused_before_the_server_is_asked() {
    let files = format!("{NOBODY}?sslmode=verify-full&sslrootcert=/nowhere/ca.crt");
    for (server, more, told) in [
        (NOBODY, "turn = \"0s\"", "a turn lasts 1 s to 10 minutes"),
        (NOBODY, "turn = \"11min\"", "a turn lasts 1 s to 10 minutes"),
        (NOBODY, "links = [\"two words\"]", "without spaces"),
        (NOBODY, "targets = [\"::::\"]", "\"::::\" is no host"),
        (NOBODY, "targets = [\"*\"]", "\"*\" is no host"),
        (&files, "", "/nowhere/ca.crt"),
    ] {
        let refused = once(server, more);
        assert_eq!(refused.code, 2, "{more}: {}", refused.err);
        assert!(refused.err.contains(told) && refused.err.contains("agent.toml"), "{told}: {}", refused.err);
        assert!(!refused.err.contains("can't be reached"), "{more}: {}", refused.err);
    }
}

#[test]
fn an_agent_that_isnt_let_in_says_what_its_certificate_has_to_be_and_of_no_measurements_that_it_hasnt() {
    let away = once(NOBODY, "turn = \"10min\"\ntargets = [\"speed.example.org\"]");
    assert_eq!(away.code, 3, "{}", away.err);
    let said = away.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in ["can't be reached", "name (CN) has to be berlin", "ssl_ca_file"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(!said.contains("what was measured"), "{said}");
}
