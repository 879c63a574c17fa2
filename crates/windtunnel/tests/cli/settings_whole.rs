//! What a change means: the same as what was measured, whatever was tried before, and back to what the system does by itself.

use crate::common::host::{directory, json, row, rows, script};
use serde_json::Value;

fn objects(text: &str) -> Vec<Value> {
    text.lines().filter(|line| line.starts_with('{')).filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn multiples_of_the_mss_follow_the_mss_of_the_same_plan_and_that_in_force() {
    let directory = directory();
    for plan in ["mtu=576 rwin=4x", "mss=536 rwin=4x"] {
        let plan = json(directory.path(), &format!("wt plan {plan} --json"));
        assert_eq!(row(&plan, "changes", "rwin")["new"], 2_144, "{plan}");
    }
    let plan = json(directory.path(), "ip route change default via 10.0.0.2 mtu lock 576; wt plan rwin=4x --json");
    assert_eq!(row(&plan, "changes", "rwin")["new"], 2_144, "{plan}");
}

#[test]
fn multiples_of_the_mtu_follow_the_mtu_of_the_same_plan_and_that_in_force() {
    let directory = directory();
    let lock = "ip route change default via 10.0.0.2 mtu lock 1456;";
    for (before, plan, bytes) in [
        ("", "rwin=32xmtu", 48_000),
        ("", "mtu=1456 rwin=33xmtu", 48_048),
        ("", "mss=536 rwin=32xmtu", 48_000),
        (lock, "rwin=33xmtu", 48_048),
    ] {
        let plan = json(directory.path(), &format!("{before} wt plan {plan} --json"));
        assert_eq!(row(&plan, "changes", "rwin")["new"], bytes, "{plan}");
    }
}

#[test]
fn buffers_do_not_depend_on_what_was_tried_before() {
    let directory = directory();
    let read = "cat /proc/sys/net/ipv4/tcp_rmem";
    let ran = script(
        directory.path(),
        &format!(
            "sysctl -qw net.ipv4.tcp_rmem='4096 131072 6291456'; wt apply rwin=16x --yes > out; {read}; wt undo > out
             wt apply rwin=1x --yes > out; {read}; wt apply rwin=16x --yes > out; {read}; wt apply rwin=256x --yes > out; {read}"
        ),
    );
    let sizes: Vec<Vec<u64>> =
        ran.out.lines().map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect();
    assert_eq!(
        sizes,
        [[4_096, 46_720, 46_720], [2_920; 3], [4_096, 46_720, 46_720], [4_096, 131_072, 747_520]],
        "{}",
        ran.err
    );
}

#[test]
fn the_systems_own_values_come_back_for_everything_and_plan_and_apply_say_the_same() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply --defaults --yes > out; cat out >&2; snap > before
         wt apply mtu=1300 rwin=8192 sndbuf=65536 cc=reno initcwnd=3 ttl=32 sack=off txqueuelen=500 --yes > out || exit 1
         wt apply mss=1000 initrwnd=9 --to 10.0.0.9 --yes > out || exit 1
         wt plan --defaults --json; wt apply --defaults --yes --json
         ip route del 10.0.0.9; snap > after; diff before after && echo SAME; wt plan --defaults; cat \"$ROOT/etc/sysctl.d/90-windtunnel.conf\"",
    );
    assert!(ran.out.contains("SAME") && ran.out.contains("Everything is so already"), "{}{}", ran.out, ran.err);
    let [plan, applied] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
    let planned: Vec<(&Value, &Value, &Value)> =
        rows(plan, "changes").iter().map(|row| (&row["key"], &row["new"], &row["target"])).collect();
    let done: Vec<(&Value, &Value, &Value)> =
        rows(applied, "applied").iter().map(|row| (&row["key"], &row["granted"], &row["target"])).collect();
    assert_eq!(planned, done);
    for key in ["mtu", "tcp-rmem", "tcp-wmem", "cc", "initcwnd", "ttl", "sack", "txqueuelen", "mss", "initrwnd"] {
        row(plan, "changes", key);
    }
    assert!(rows(plan, "changes").iter().all(|change| change["unchanged"] == false), "{plan}");
}

#[test]
fn a_restored_backup_leaves_equal_routes_alone_with_several_link_locals() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "sysctl -qw net.ipv6.conf.default.accept_dad=0
         for n in 0 2 4; do ip link add w$n type veth peer name w$((n + 1)); ip link set w$n up; ip link set w$((n + 1)) up; done
         ip -6 route add 2001:db8:7::/48 dev w0; all() { snap | sort; }; all > before; wt backup saved.json > out
         wt restore saved.json --dry-run; all > after; cmp before after || exit 1
         ip -6 route del 2001:db8:7::/48; ip -6 route del fe80::/64 dev w2
         ip -6 route append fe80::/64 dev w2 proto kernel metric 256 mtu 1300; sysctl -qw net.ipv4.tcp_sack=0
         wt restore saved.json --yes > out || { cat out; exit 2; }
         all > after; diff before after && echo SAME; ip -6 route show fe80::/64 | wc -l; wt undo > out && echo UNDONE; wt apply ttl=50 --yes > out && echo GOES ON",
    );
    assert!(ran.out.contains("Everything is so already"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("SAME\n6\n") && ran.out.ends_with("UNDONE\nGOES ON\n"), "{}{}", ran.out, ran.err);
}

#[test]
fn what_cannot_be_put_back_has_a_way_out_that_says_what_stays() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply sack=off --confirm-within 1h --json > out; wt apply ttl=50; echo \"second $?\"; wt forget 1 --json
         sysctl -n net.ipv4.tcp_sack; wt apply ttl=50 --yes > out; echo \"third $?\"; wt undo --force 2 --json
         sysctl -n net.ipv4.ip_default_ttl; wt history; unguarded 1",
    );
    let [forgotten, forced] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!(forgotten["stays"], serde_json::json!(["sack=off on net.ipv4.tcp_sack"]), "{forgotten}");
    assert_eq!((&forced["stays"], &forced["errors"]), (&serde_json::json!([]), &serde_json::json!([])), "{forced}");
    assert!(
        ran.out.contains("second 3") && ran.out.contains("\n0\nthird 0") && ran.out.contains("\n64\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("forgotten") && ran.out.contains("undone"), "{}", ran.out);
}

#[test]
fn a_connection_shows_what_was_applied_and_a_window_for_one_target_needs_more_than_a_namespace() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply rwin=16384 sack=off timestamps=off cc=reno --json; wt undo > out
         wt apply mss=900 mtu=1200 initrwnd=5 --to 10.0.0.9 --json; wt undo > out
         wt apply rwin=8192 --to 10.0.0.9; echo \"rwin $?\"; wt plan initrwnd=10",
    );
    let [host, route] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
    for (key, wanted) in [("sack", "off"), ("timestamps", "off"), ("cc", "reno")] {
        assert_eq!(row(host, "applied", key)["observed"], wanted, "{host}");
    }
    assert!(
        row(host, "applied", "rwin")["observed"].as_u64().is_some_and(|window| (4_000..=32_768).contains(&window)),
        "{host}"
    );
    for (key, wanted) in [("mss", 900), ("mtu", 1200), ("initrwnd", 5)] {
        assert_eq!(row(route, "applied", key)["observed"], wanted, "{route}");
    }
    assert!(ran.out.contains("rwin 3") && ran.err.contains("--to host"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("begins with 44 segments"), "{}", ran.out);
}

#[test]
fn what_routes_have_shows_on_a_connection_of_a_pair_where_nobody_answers() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply initcwnd=23 initrwnd=7 mss=900 cc=reno --to default --json; wt undo > out
         wt apply initcwnd=24 --to 10.0.0.9 --json; wt undo > out
         wt apply initcwnd=25 --to 10.77.0.0/16 --json; wt undo > out
         wt apply mtu=200 --to 10.0.0.9 --json; wt undo > out; ip route | grep -c 10.0.0.9; ip -o link | wc -l",
    );
    let [default, host, network, small] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
    for (key, wanted) in [
        ("initcwnd", serde_json::json!(23)),
        ("initrwnd", serde_json::json!(7)),
        ("mss", serde_json::json!(900)),
        ("cc", serde_json::json!("reno")),
    ] {
        let rows = rows(default, "applied");
        let observed: Vec<&Value> = rows.iter().filter(|row| row["key"] == key).map(|row| &row["observed"]).collect();
        assert!(!observed.is_empty() && observed.iter().all(|found| **found == wanted), "{key}: {default}");
    }
    assert_eq!(row(host, "applied", "initcwnd")["observed"], 24, "{host}");
    assert_eq!(row(network, "applied", "initcwnd")["observed"], 25, "{network}");
    // Linux announces 256 at least, unless the route has less.
    assert_eq!(row(small, "applied", "mtu")["observed"], 200, "{small}");
    let mss = row(small, "applied", "mss");
    assert_eq!((&mss["granted"], &mss["observed"]), (&160.into(), &160.into()), "{small}");
    assert!(ran.out.ends_with("\n0\n3\n"), "nothing of the pairs is left here: {}", ran.out);
}

#[test]
fn defaults_are_no_drift_of_what_was_set_before_and_what_does_not_differ_is_not_restored() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply rwin=16x --yes > out; wt apply --defaults --yes > out; wt verify > out; echo \"verified $?\"
         sysctl -qw net.ipv4.tcp_rmem='4096 65536 131072'; wt verify > out; echo \"drifted $?\"
         wt backup whole > out; wt restore whole; echo \"restored $?\"; wt restore whole --json
         sysctl -qw net.ipv4.tcp_sack=0; wt restore whole --yes > out; sysctl -n net.ipv4.tcp_sack",
    );
    assert!(ran.out.contains("verified 0\ndrifted 1\n"), "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("Nothing differs from whole: nothing was changed.\nrestored 0\n"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(objects(&ran.out)[0]["applied"], serde_json::json!([]), "{}", ran.out);
    assert!(ran.out.ends_with("\n1\n"), "what does differ is: {}{}", ran.out, ran.err);
}

#[test]
fn what_a_device_has_shows_on_a_connection_to_whom_it_leads_or_of_a_pair() {
    let directory = directory();
    let device = "$(ip -o route show default | sed 's/.* dev \\([^ ]*\\).*/\\1/')";
    let ran = script(
        directory.path(),
        &format!(
            "d={device}; before=$(cat /sys/class/net/$d/mtu)
             wt apply mtu=1300 --to $d --json; wt undo > out
             ip route replace default via 10.0.0.2 mtu lock 1200; ip route replace 10.0.0.2 dev $d mtu lock 1200
             wt apply mtu=1400 --to $d --json; wt undo > out
             ip route del default; ip route del 10.0.0.2; ip -6 route del default 2> out
             wt apply mtu=1300 --to $d --json; wt undo > out; [ $(cat /sys/class/net/$d/mtu) = $before ] && echo as before"
        ),
    );
    let [through, narrower, alone] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!(row(through, "applied", "mtu")["observed"], 1_300, "{through}");
    assert_eq!(row(narrower, "applied", "mtu")["observed"], 1_200, "the route has less: {narrower}");
    assert_eq!(row(alone, "applied", "mtu")["observed"], 1_300, "{alone}");
    assert!(ran.out.contains("as before"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_verdict_is_applied_at_the_end_where_it_acts_and_a_rehearsals_only_where_one_says() {
    use wt_journal::{Arm, Journal as _, NewExperiment, SqliteJournal, State};
    use wt_units::{Knob, Level, Settings};
    let directory = directory();
    let mut journal = SqliteJournal::open(&directory.path().join("journal")).unwrap();
    let sender = Settings::new().with(Knob::Initcwnd, Level::Number(20));
    let receiver = Settings::new().with(Knob::Mss, Level::Number(1_000));
    for (id, settings) in [("sent", sender), ("received", receiver)] {
        let arms = [("current", Settings::new()), ("faster", settings.clone())];
        let arms = arms.map(|(label, settings)| Arm { label: label.to_owned(), settings });
        journal
            .create_experiment(&NewExperiment { arms: arms.into(), ..NewExperiment::new(id, "adsl", "lab") })
            .unwrap();
        let verdict = serde_json::json!({"headline": "It is faster.", "settings": settings});
        journal.finish_experiment(id, State::Finished, 1, Some(&verdict)).unwrap();
    }
    for (arguments, code, wanted) in [
        ("sent", 2, "acts on the sender, and this host was the receiver"),
        ("sent --to 10.0.0.9", 2, "--to ADDRESS_OF_THE_RECEIVER"),
        ("sent --side sender", 2, "--to host"),
        ("sent --side sender --to 10.0.0.9", 0, "initcwnd"),
        ("received", 2, "emulated path"),
        ("received --to 10.0.0.9", 0, "acts on the receiver"),
        ("received --to default", 0, "default via 10.0.0.2"),
        ("received --side neither", 2, "neither sender nor receiver"),
    ] {
        let ran = script(directory.path(), &format!("wt plan --journal journal --verdict {arguments}"));
        assert!(ran.code == code && (ran.out + &ran.err).contains(wanted), "{arguments}: {} {}", ran.code, ran.err);
    }
}

#[test]
fn a_verdict_holds_for_the_hosts_that_served_and_not_for_one_that_only_redirected() {
    use std::time::Duration;
    use wt_journal::{Arm, ExperimentConfig, Journal as _, NewExperiment, SqliteJournal, State, TuneConfig};
    use wt_trial::{Amount, Direction, Phase, Status, TrialOutcome, TrialSpec, Workload};
    use wt_units::{Bytes, Knob, Level, Settings};
    let directory = directory();
    let mut journal = SqliteJournal::open(&directory.path().join("journal")).unwrap();
    let settings = Settings::new().with(Knob::Mss, Level::Number(1_000));
    for (id, served) in [("one", &["10.0.0.9"][..]), ("two", &["10.0.0.9", "10.0.0.8"])] {
        let live = serde_json::json!({"live": {"targets": ["http://10.0.0.7/a"], "address": "10.0.0.7"}});
        let Value::Object(live) = live else { unreachable!() };
        let arms = [("current", Settings::new()), ("faster", settings.clone())];
        let arms = arms.map(|(label, settings)| Arm { label: label.to_owned(), settings });
        let config = ExperimentConfig::Tune(Box::new(TuneConfig::from(live)));
        let new = NewExperiment { arms: arms.into(), config, ..NewExperiment::new(id, "http://10.0.0.7/a", "live") };
        journal.create_experiment(&new).unwrap();
        for (round, address) in (1..).zip(served) {
            let spec = TrialSpec {
                experiment: id.to_owned(),
                phase: Phase::Round,
                round,
                order: 1,
                arm: 0,
                settings: Settings::new(),
                workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(1)) },
                deadline: Duration::from_secs(1),
                seed: 1,
            };
            let mut outcome = TrialOutcome::empty(Status::Completed, Duration::from_secs(1), "");
            (outcome.bytes, outcome.observed.address) = (1, Some(address.parse().unwrap()));
            let number = journal.begin_trial(&spec, 1).unwrap();
            journal.finish_trial(number, &outcome).unwrap();
        }
        let verdict = serde_json::json!({"headline": "It is faster.", "settings": settings});
        journal.finish_experiment(id, State::Finished, 1, Some(&verdict)).unwrap();
    }
    for (arguments, code, wanted) in [
        ("one", 0, "10.0.0.9"),
        ("two", 2, "measured with 2 hosts in turn: 10.0.0.9, 10.0.0.8"),
        ("two --to 10.0.0.8", 0, "10.0.0.8"),
    ] {
        let ran = script(directory.path(), &format!("wt plan --journal journal --verdict {arguments}"));
        let said = ran.out + &ran.err;
        assert!(
            ran.code == code && said.contains(wanted) && !said.contains("10.0.0.7/32"),
            "{arguments}: {} {said}",
            ran.code
        );
    }
}

#[test]
fn the_work_for_eight_thousand_routes_grows_with_their_number_and_no_faster() {
    let directory = directory();
    // Seconds of the processor, which a busy machine doesn't make longer; comparing each route with each other takes far more.
    let ran = script(
        directory.path(),
        "for n in $(seq 0 7999); do echo \"route add 10.$((64 + n / 250)).$((n % 250)).0/24 via 10.0.0.$((n % 200 + 3))\"; done | ip -batch - || exit 9
         (ulimit -t 8; wt apply initcwnd=20 --to v0 --yes > out) || { tail -3 out; exit 1; }
         ip route | grep -c 'initcwnd 20'; (ulimit -t 8; wt undo > out) || exit 2; ip route | grep -c initcwnd",
    );
    assert!(ran.out.ends_with("8002\n0\n"), "{} {}{}", ran.code, ran.out, ran.err);
}
