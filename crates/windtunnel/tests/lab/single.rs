//! One transfer, one line of the log: `test`, from the lab's own server.

use super::live::{NEAR, json_of, shell};
use crate::common::{binary, ran, run, shared, windtunnel};

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

#[test]
fn a_server_that_lacks_the_file_has_its_line_and_the_others_go_on() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let lacks = PROFILE.replace("http://server/bytes/300kB", "http://server/missing.bin");
    std::fs::write(home.path().join("servers.toml"), &lacks).unwrap();
    let ran = shell(home.path(), NEAR, "$WT test servers.toml --json && $WT journal list >&2");
    let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err));
    let of = |place: usize, field: &str| answer["tests"][place][field].clone();
    assert_eq!((of(0, "status"), of(0, "bytes"), of(1, "status")), ("failed".into(), 0.into(), "completed".into()));
    assert!(of(1, "bytes").as_u64() > Some(0) && answer["mean_bps"].is_number(), "{answer:#}");
    assert!(ran.out.contains("the server answers 404 Not Found"), "{answer:#}");
}

#[test]
fn what_served_a_test_and_the_way_to_it_are_in_each_form_of_the_journal() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("servers.toml"), PROFILE).unwrap();
    let large = PROFILE.replace("300kB", "30MB").replace("100kB", "30MB");
    std::fs::write(home.path().join("large.toml"), large).unwrap();
    let ran = shell(
        home.path(),
        NEAR,
        "$WT test servers.toml >&2 && $WT journal show && $WT journal export --format csv > trials.csv; \
         $WT tune large.toml --levels mss=1000 --trial 200ms --budget '8 trials' --pause 20ms --json > tuned.json; \
         $WT report --full --csv tuned.csv >&2; $WT journal show | tail -n 40 > shown.txt",
    );
    for server in ["http://server/bytes/300kB", PROFILE_SECOND] {
        assert!(ran.out.contains(&format!("UTC  {server}")), "{}{}", ran.out, ran.err);
    }
    assert!(ran.out.contains("300000 bytes in ") && ran.out.contains(", MTU 1500"), "{}{}", ran.out, ran.err);
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let csv = read("trials.csv");
    assert!(csv.lines().next().unwrap().ends_with(",server,device,connect_us,in_force"), "{csv}");
    let second = csv.lines().nth(2).unwrap();
    assert!(second.contains(PROFILE_SECOND) && second.contains("net.ipv4.ip_default_ttl=64"), "{csv}");
    let tuned: serde_json::Value = serde_json::from_str(&read("tuned.json")).unwrap();
    let servers = tuned["servers"].as_array().unwrap_or_else(|| panic!("{tuned:#}"));
    let of = |row: &serde_json::Value| servers.iter().any(|one| one["server"] == row["server"]);
    let rows = tuned["trial_table"].as_array().unwrap();
    assert!(servers.len() == 2 && !rows.is_empty() && rows.iter().all(of), "{tuned:#}");
    let trials: u64 = servers.iter().map(|one| one["trials"].as_u64().unwrap()).sum();
    assert_eq!(trials, rows.len() as u64, "{tuned:#}");
    let second = "http://198.19.0.1/bytes/30MB";
    assert!(ran.err.contains(&format!("{second}: ")), "{}", ran.err);
    assert!(read("tuned.csv").lines().nth(1).unwrap().ends_with("/bytes/30MB"), "{}", read("tuned.csv"));
    assert!(read("shown.txt").contains(second), "{}", read("shown.txt"));
}

#[test]
fn what_says_how_to_transfer_says_nothing_of_a_summary() {
    for words in ["--each 2", "--time 1s", "--ip 6", "--no-hops", "--ca x", "--key-file x", "--comment x"] {
        let ran = run(&["test", "--summary"].into_iter().chain(words.split(' ')).collect::<Vec<_>>());
        assert!(ran.code == 2 && ran.err.contains("cannot be used with"), "{words}: {}", ran.err);
    }
}

#[test]
fn a_transfer_has_the_congestion_control_that_was_asked_on_the_end_that_sends_or_none() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    for direction in ["down", "up"] {
        let one = |cc: &str| {
            let flags = format!("--size 100kB --direction {direction} --set cc={cc} --json");
            shell(home.path(), NEAR, &format!("$WT lab transfer {flags}; echo code $? >&2"))
        };
        let answer = json_of(&one("reno"));
        assert_eq!((&answer["bytes"], &answer["granted"]["cc"]), (&100_000.into(), &"reno".into()), "{answer:#}");
        let refused = one("cubci");
        let told = ["code 2", "cubci", "this kernel has"].map(|text| refused.err.contains(text));
        assert!(refused.out.is_empty() && told == [true; 3], "{}", refused.err);
    }
}

#[test]
fn the_window_of_an_upload_is_there_before_its_first_byte() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let flags = "--size 60kB --direction up --set rwin=8KiB --json";
    let answer = json_of(&shell(home.path(), NEAR, &format!("$WT lab transfer {flags}")));
    // Of one that was set late the first is 64 KiB. The kernel moves it for a moment when it learns what segments cost.
    let first = answer["samples"]["snd_wnd"][0].as_u64().unwrap();
    assert!(first < 32 * 1024, "{first} bytes");
    assert_eq!((&answer["bytes"], &answer["granted"]["rwin"]), (&60_000.into(), &8192.into()), "{answer:#}");
    let hidden = json_of(&shell(home.path(), NEAR, &format!("umount -l /run/netns/server; $WT lab transfer {flags}")));
    let note = hidden["notes"][0].as_str().unwrap();
    assert!(note.starts_with("rwin=8192 came late"), "{hidden:#}");
}

#[test]
fn what_an_aqm_drops_and_marks_is_counted_as_its_queues() {
    const CODEL: &str = "title = \"codel\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
        down = { rate = \"10mbit\", delay = \"20ms\", queue_packets = 500, aqm = { kind = \"codel\", ecn = true } }\n\
        up = { rate = \"10mbit\", delay = \"20ms\", queue = \"64KiB\" }\n";
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    for (ecn, wanted) in [(0, ["queue_drops", "aqm_drops"]), (1, ["ce_marks"; 2])] {
        std::fs::write(home.path().join("codel.toml"), CODEL).unwrap();
        let script =
            format!("echo {ecn} > /proc/sys/net/ipv4/tcp_ecn && {} lab transfer --trial 2s", binary().display());
        let args = ["lab", "run", "codel.toml", "--cc", "reno", "--stats=json", "--", "sh", "-c", &script];
        let ran = ran(windtunnel(home.path()).args(args).current_dir(home.path()).output().unwrap());
        let told: serde_json::Value = ran.err.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap();
        let lab = &told["lab"];
        assert!(wanted.iter().all(|count| lab[count].as_u64() > Some(0)), "{ecn}: {lab:#}");
        assert_eq!((&lab["queue_drops"], &lab["other_drops"]), (&lab["aqm_drops"], &0.into()), "{ecn}: {lab:#}");
    }
}
