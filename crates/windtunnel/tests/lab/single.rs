//! One transfer, one line of the log: `test`, from the lab's own server.

use super::live::{NEAR, json_of, shell};
use crate::common::shared;

/// Two names of one server.
const PROFILE: &str = "[[target]]\nurl = \"http://server/bytes/300kB\"\ncomment = \"one\"\n\n\
    [[target]]\nurl = \"http://198.19.0.1/bytes/100kB\"\n";

/// The second as it is named.
const PROFILE_SECOND: &str = "http://198.19.0.1/bytes/100kB";

#[test]
fn a_test_is_one_line_of_the_log_with_all_settings_in_force() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let ran = shell(home.path(), NEAR, "$WT test http://server/bytes/300kB --comment 'new modem' --json | tr -d '\\n'");
    let answer = json_of(&ran);
    let test = &answer["tests"][0];
    assert_eq!((&test["bytes"], &test["address"]), (&300_000.into(), &"198.19.0.1".into()), "{answer:#}");
    assert!(test["number"] == 1 && test["seconds"].as_f64().unwrap() > 0.0, "{answer:#}");
    for name in ["net.ipv4.ip_default_ttl", "net.ipv4.tcp_rmem", "net.ipv4.tcp_mtu_probing", "net.ipv4.ip_no_pmtu_disc"]
    {
        assert!(answer["settings"][name].is_string(), "{name}: {answer:#}");
    }
    assert!(test["link"]["mtu"].is_u64(), "{answer:#}");
    let ran = shell(home.path(), NEAR, "$WT journal list --json; $WT report last; echo code $? >&2");
    let listed = &json_of(&ran)["experiments"][0];
    assert_eq!((&listed["kind"], &listed["comment"]), (&"test".into(), &"new modem".into()), "{listed:#}");
    assert!(listed["answer"].as_str().unwrap().starts_with("300000 bytes in "), "{listed:#}");
    assert!(ran.err.contains("compares no settings") && ran.err.contains("code 2"), "{}", ran.err);
}

#[test]
fn the_servers_of_a_profile_take_turns_and_have_a_row_each() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("servers.toml"), PROFILE).unwrap();
    let ran = shell(
        home.path(),
        NEAR,
        "$WT test servers.toml --each 2 --covariate connect-rate=31200 --json | tr -d '\\n'; echo; \
         $WT test --summary servers.toml --by server --json | tr -d '\\n'; $WT test --summary >&2",
    );
    let (first, second) = ran.out.trim().split_once('\n').unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    let [answer, summary]: [serde_json::Value; 2] = [first, second].map(|text| serde_json::from_str(text).unwrap());
    assert_eq!(answer["covariates"]["connect-rate"], 31_200.0, "{answer:#}");
    assert_eq!(
        (&summary["groups"][1]["label"], &summary["groups"][0]["completed"]),
        (&PROFILE_SECOND.into(), &2.into())
    );
    assert_eq!((&summary["covariate"], &summary["effect"]), (&"connect-rate".into(), &serde_json::Value::Null));
    assert!(summary["groups"][1]["low"].is_number() && summary["groups"][0]["low"].is_null(), "{summary:#}");
    assert!(ran.err.contains("by comment") && ran.err.contains("isn't taken out"), "{}", ran.err);
    let bytes: Vec<u64> =
        answer["tests"].as_array().unwrap().iter().map(|test| test["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [300_000, 100_000, 300_000, 100_000], "{answer:#}");
    let hosts = answer["hosts"].as_array().unwrap();
    assert_eq!((hosts.len(), &hosts[0]["comment"], &hosts[1]["tests"]), (2, &"one".into(), &2.into()), "{answer:#}");
}
