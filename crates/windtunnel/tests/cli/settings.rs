//! The host's settings as a person uses them: in network namespaces, so that nothing of this machine is touched.

use crate::common::host::{directory, json, row, rows, script};
use crate::common::{binary, ran};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn show_tells_every_setting_with_its_origin_what_clamps_it_and_who_manages_it() {
    let directory = directory();
    let root = directory.path().join("root");
    std::fs::write(root.join("etc/sysctl.d/50-a.conf"), "# first\nnet.ipv4.tcp_sack = 0\n").unwrap();
    std::fs::write(root.join("etc/sysctl.d/99-z.conf"), "\nnet/ipv4/tcp_sack=1\nnet.ipv4.tcp_ecn = 1\n").unwrap();
    std::fs::create_dir_all(root.join("etc/tuned/mine")).unwrap();
    std::fs::write(root.join("etc/tuned/active_profile"), "mine\n").unwrap();
    std::fs::write(root.join("etc/tuned/mine/tuned.conf"), "[sysctl]\nnet.ipv4.tcp_frto=1\n").unwrap();
    std::fs::write(root.join("etc/tuned/tuned-main.conf"), "reapply_sysctl = 1\n").unwrap();
    let report = json(
        directory.path(),
        "sysctl -qw net.ipv4.tcp_timestamps=0 net.ipv4.tcp_rmem='4096 131072 99999999'
         ip route change default via 10.0.0.2 initcwnd 33 congctl reno
         wt show --json",
    );
    assert_eq!(report["schema_version"], 1);
    let knob = |key: &str| row(&report, "knobs", key);
    assert_eq!(knob("sack")["value"], "on");
    let origin = &knob("sack")["origin"];
    assert_eq!((&origin["kind"], &origin["line"]), (&"file".into(), &2.into()));
    assert!(origin["file"].as_str().unwrap().ends_with("/etc/sysctl.d/99-z.conf"), "{origin}");
    assert!(knob("sack")["managed_by"].as_str().unwrap().contains("99-z.conf:2"));
    assert_eq!(knob("timestamps")["origin"]["kind"], "run-time");
    assert_eq!(knob("slow-start-after-idle")["origin"]["kind"], "kernel-default");
    assert_eq!((&knob("initcwnd")["value"], &knob("initcwnd")["origin"]["kind"]), (&33.into(), &"route".into()));
    assert!(knob("tcp-rmem")["clamped_by"].as_str().unwrap().starts_with("net.core.rmem_max="));
    assert!(knob("frto")["managed_by"].as_str().unwrap().contains("tuned profile mine"));
    let adapter = rows(&report, "adapters").into_iter().find(|adapter| adapter["name"] == "v0").unwrap();
    assert_eq!(
        (&adapter["driver"], &adapter["mtu"], &adapter["qdisc"]),
        (&"veth".into(), &1500.into(), &"noqueue".into())
    );
    assert_eq!((&adapter["duplex"], &adapter["default_route"]), (&"full".into(), &true.into()));
    assert!(adapter["speed_mbps"].as_u64().unwrap() >= 1000);
    let route =
        rows(&report, "routes").into_iter().find(|route| route["to"] == "default" && route["family"] == 4).unwrap();
    assert_eq!((&route["initcwnd"], &route["congctl"]), (&33.into(), &"reno".into()));
    let ids: Vec<&str> = rows(&report, "findings").iter().map(|finding| finding["id"].as_str().unwrap()).collect();
    for wanted in ["timestamps-off", "set-twice-sack", "changed-since-boot-ecn", "rwin-clamped", "tuned-active"] {
        assert!(ids.contains(&wanted), "{wanted}: {ids:?}");
    }
    assert!(rows(&report, "findings").iter().all(|f| f["severity"].is_string() && f["text"].is_string()));
}

#[test]
fn a_muted_finding_is_named_but_not_shown_until_it_is_unmuted() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt mute metrics-saved; wt show --json; wt mute --off metrics-saved >&2; wt show --json",
    );
    let objects: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let has = |object: &Value| rows(object, "findings").iter().any(|finding| finding["id"] == "metrics-saved");
    assert!(!has(&objects[0]) && has(&objects[1]), "{}", ran.out);
    assert_eq!(objects[0]["muted"][0], "metrics-saved");
    assert_eq!(script(directory.path(), "wt mute ../x").code, 2);
    let mistyped = script(directory.path(), "wt mute metrics-savd; wt mute metrics-saved");
    assert!(mistyped.out.contains("no such finding now (did you mean \"metrics-saved\"?)"), "{}", mistyped.out);
    assert_eq!(mistyped.out.matches("no such finding").count(), 1, "{}", mistyped.out);
}

#[test]
fn a_plan_says_old_new_scope_reason_and_commands_and_writes_nothing() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "snap > before; wt plan sack=off initcwnd=20 mtu=1400 --json; snap > after; cmp before after && ls \"$STATE\" 2>&1",
    );
    let plan: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    let sack = row(&plan, "changes", "sack");
    assert_eq!((&sack["old"], &sack["new"], &sack["scope"]), (&"on".into(), &"off".into(), &"host".into()));
    assert!(sack["why"].as_str().unwrap().len() > 10);
    let routes: Vec<_> = rows(&plan, "changes").into_iter().filter(|change| change["key"] == "initcwnd").collect();
    assert_eq!(routes.len(), 2, "IPv4 and IPv6: {plan}");
    assert!(routes.iter().all(|change| change["scope"] == "route" && change["new"] == 20));
    let commands: Vec<&str> = rows(&plan, "commands").iter().map(|command| command.as_str().unwrap()).collect();
    for wanted in [
        "sysctl -w net.ipv4.tcp_sack=0",
        "ip link set dev v0 mtu 1400",
        "ip route change default via 10.0.0.2 dev v0 initcwnd 20",
    ] {
        assert!(commands.contains(&wanted), "{wanted}: {commands:?}");
    }
    assert!(!rows(&plan, "risks").is_empty());
    assert!(ran.out.contains("No such file"), "a plan leaves no state behind: {}", ran.out);
}

#[test]
fn the_commands_of_a_plan_do_what_the_plan_says() {
    let directory = directory();
    let settings = "sack=off ttl=77 rwin=256KiB initcwnd=20 mss=from-mtu mtu=1400 ecn=off rto-min=300ms quickack=on";
    let ran = script(
        directory.path(),
        &format!(
            "wt plan {settings} --json | sed 's/.*\"commands\":\\[\\([^]]*\\)\\].*/\\1/' > list
             sed 's/\",\"/\\n/g; s/^\"//; s/\"$//' list | sed 's/\\\\\"/\"/g' > commands.sh
             sh -e commands.sh || exit 9
             wt plan {settings} --json"
        ),
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    let again: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!(rows(&again, "commands"), Vec::<&Value>::new(), "{again}");
    assert!(rows(&again, "changes").iter().all(|change| change["unchanged"] == true), "{again}");
}

#[test]
fn every_value_that_the_classic_optimisers_had_can_be_planned_applied_and_undone() {
    let directory = directory();
    let mut settings: Vec<String> =
        ["mtu=552", "mtu=576", "mtu=1002", "mtu=1500", "mss=1400", "mss=from-mtu", "ttl=0"].map(str::to_owned).to_vec();
    settings.extend((1..=16).map(|times| format!("rwin={times}x")));
    let others = "ttl=32 ttl=64 ttl=128 rwin=65535 window-scaling=off pmtud=off black-hole-detection=on sack=off";
    settings.extend(others.split(' ').map(str::to_owned));
    settings.extend(
        ["timestamps=off", "initcwnd=2", "initrwnd=4", "slow-start-after-idle=off", "cc=reno"].map(str::to_owned),
    );
    let ran = script(
        directory.path(),
        &format!(
            "snap > before
             for one in {}; do
                 wt plan $one --json > plan.json || {{ echo \"plan $one\"; exit 1; }}
                 wt apply plan.json --yes --json > applied.json || {{ echo \"apply $one\"; exit 1; }}
                 wt undo > out || {{ echo \"undo $one\"; exit 1; }}
                 snap > after; cmp -s before after || {{ echo \"left by $one\"; diff before after; exit 1; }}
             done",
            settings.join(" ")
        ),
    );
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn applied_then_confirmed_it_stays_and_undo_brings_every_byte_back() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "snap > before
         wt apply sack=off initcwnd=20 mtu=1400 tso=off txqueuelen=321 qdisc=pfifo --confirm-within 10m --json
         ls \"$ROOT/etc/sysctl.d\" | wc -l
         wt confirm --json
         cat \"$ROOT/etc/sysctl.d/90-windtunnel.conf\"; stat -c %a \"$ROOT/etc/sysctl.d/90-windtunnel.conf\"
         unguarded 1
         wt undo --json; snap > after; cmp before after && echo SAME; ls -A \"$ROOT/etc/sysctl.d\"",
    );
    let lines: Vec<&str> = ran.out.lines().collect();
    let applied: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(applied["id"], "1");
    assert!(rows(&applied, "applied").iter().all(|row| row["asked"] == row["granted"]), "{applied}");
    assert!(applied["confirm_deadline"].as_str().unwrap().ends_with('Z') && applied["revert"].is_null());
    assert_eq!(lines[1], "0", "nothing that stays is written before the confirmation");
    let confirmed: Value = serde_json::from_str(lines[2]).unwrap();
    assert!(confirmed["files"][0].as_str().unwrap().ends_with("/etc/sysctl.d/90-windtunnel.conf"));
    assert!(ran.out.contains("net.ipv4.tcp_sack = 0\n644\n"), "{}", ran.out);
    assert_eq!(*lines.last().unwrap(), "SAME", "{}{}", ran.out, ran.err);
}

#[test]
fn an_unconfirmed_change_is_put_back_though_everything_that_made_it_was_killed() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "snap > before
         # The shell stands for a session over ssh: it is killed with its whole process group, and its terminal hangs up.
         setsid sh -c '\"$WT\" settings apply initcwnd=20 sack=off mtu=1400 --confirm-within 2s --json > applied; kill -HUP -$$; kill -9 -$$' &
         wait
         cat applied; snap > during; cmp -s before during || echo CHANGED
         unguarded 1
         snap > after; cmp before after && echo SAME
         wt history --json; wt confirm; echo \"confirm $?\"",
    );
    assert!(ran.out.contains("CHANGED") && ran.out.contains("SAME"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("\"phase\":\"reverted\"") && ran.out.contains("confirm 3"), "{}", ran.out);
    assert!(ran.err.contains("too late"), "{}", ran.err);
}

#[test]
fn killed_at_any_moment_of_apply_all_of_the_old_or_all_of_the_new_is_there() {
    let directory = directory();
    // Moments by the clock rather than by steps: those nobody thought of.
    let ran = script(
        directory.path(),
        "snap > before
         wt apply initcwnd=20 sack=off mtu=1400 --yes > out; snap > new; wt undo > out
         tried=0
         for ms in 0 1 2 3 4 5 6 7 8 9 10 12 14 16 18 20 25 30; do
             timeout -s KILL 0.$(printf %03d $ms) \"$WT\" settings apply initcwnd=20 sack=off mtu=1400 --confirm-within 1h > out 2>&1
             last=$(ls \"$STATE/checkpoints\" | sort -n | tail -1)
             phase() { sed 's/.*\"phase\":\"\\([a-z-]*\\)\".*/\\1/' \"$STATE/checkpoints/$last/state.json\" 2>/dev/null; }
             [ \"$(phase)\" = applied ] || [ ! -e \"$STATE/checkpoints/$last/guard.lock\" ] || unguarded $last
             snap > now
             cmp -s now before || cmp -s now new || { echo \"mixture after $ms ms\"; diff before now; exit 1; }
             wt undo > out 2>&1
             snap > now; cmp -s now before || { echo \"left after $ms ms\"; diff before now; exit 1; }
             tried=$((tried + 1))
         done
         echo tried $tried",
    );
    assert!(ran.out.contains("tried 18"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_few_of_the_kills_of_make_kill_soak_leave_nothing_behind() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/kill-soak.py");
    let directory = directory();
    let mut soak = Command::new("python3");
    soak.arg(script).arg(binary()).args(["8", "7"]).env("TMPDIR", directory.path()).stdin(Stdio::null());
    let done = ran(soak.output().unwrap());
    assert!(done.code == 0 && done.out.contains("of seed 7, 0 failures"), "{}{}", done.out, done.err);
}

#[test]
fn without_its_guards_an_expired_change_is_put_back_by_the_next_command_which_says_so() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "snap > before
         wt apply sack=off --confirm-within 1s --json > out
         for pid in $(grep -lz '^guard$' /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do
             tr '\\0' '\\n' < /proc/$pid/cmdline | grep -qxF \"$STATE\" && kill -9 $pid
         done
         flock \"$STATE/checkpoints/1/guard.lock\" true
         wt show --json; sleep 1.1; wt show --json; snap > after; cmp before after && echo SAME",
    );
    let objects: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!((&objects[0]["pending"]["id"], &objects[0]["pending"]["guarded"]), (&"1".into(), &false.into()));
    let ids: Vec<_> = rows(&objects[1], "findings").iter().map(|f| f["id"].clone()).collect();
    assert!(ids.contains(&"recovered".into()) && objects[1]["pending"].is_null(), "{ids:?}");
    assert!(ran.out.contains("SAME"), "{}", ran.out);
}

#[test]
fn what_the_kernel_refuses_or_clamps_is_put_back_and_both_halves_are_reported() {
    let directory = directory();
    for (settings, wanted) in [
        ("sack=off mtu=65535 --to 10.0.0.9", None),
        ("sack=off qdisc=no_such_qdisc", Some("the kernel doesn't have this qdisc")),
        ("mtu=65535 initcwnd=20 --to 10.0.0.9", Some("asked 65535, granted 65520")),
        ("hoplimit=255 cc=nonsense --to 10.0.0.9", None),
    ] {
        let ran = script(
            directory.path(),
            &format!(
                "snap > before; wt apply {settings} --json; rc=$?; snap > after; cmp before after >&2 || exit 9; exit $rc"
            ),
        );
        let object: Value = serde_json::from_str(&ran.out).unwrap();
        let Some(wanted) = wanted else {
            assert!(
                matches!(ran.code, 2 | 3) && object["error"]["what"].is_string(),
                "{settings}: {}{}",
                ran.out,
                ran.err
            );
            continue;
        };
        assert_eq!(ran.code, 3, "{settings}: {}{}", ran.out, ran.err);
        assert!(object["error"].as_str().unwrap().contains(wanted), "{object}");
        assert_eq!((&object["revert"]["done"], &object["confirm_deadline"]), (&true.into(), &Value::Null));
        assert!(Path::new(object["revert"]["backup"].as_str().unwrap()).exists());
        assert!(ran.err.contains("everything was put back"), "{}", ran.err);
    }
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    let directory = directory();
    for (arguments, code, wanted) in [
        ("plan initcwn=5", 2, "did you mean initcwnd"),
        ("plan initcwnd=5000", 2, "1 to 1000"),
        ("plan initcwnd=20 --to v9", 2, "there is no device \"v9\": there are lo, v1, v0"),
        ("plan initcwnd=20 --to example.org", 2, "getent ahosts example.org"),
        ("plan mtu=1200 --to 2001:db8:80::1", 2, "IPv6 has no MTU below 1280"),
        ("plan sack=on --to 10.0.0.9", 2, "it can be set for the whole host"),
        ("plan sack=on sack=off", 2, "given twice"),
        ("plan", 2, "nothing to change"),
        ("plan missing.toml", 2, "missing.toml"),
        ("plan cc=cubik", 3, "no congestion control \"cubik\""),
        ("plan mtu=67 --to v0", 2, "68 to 65535"),
        ("apply sack=on --confirm-within 0s", 2, "1s to 168h"),
        ("apply sack=on --yes --confirm-within 5s", 2, "cannot be used with"),
        ("undo ../../etc/passwd", 2, "not the number of a change"),
        ("undo 7", 2, "there is no change 7"),
        ("confirm", 2, "no change waits"),
        ("defaults --os 'Windws XP'", 2, "Windows XP"),
        ("show --adapter v9", 2, "there is no adapter \"v9\""),
        ("export --to nowhere", 2, "sysctl.d"),
        ("restore missing.json", 2, "missing.json"),
    ] {
        let ran = script(directory.path(), &format!("wt {arguments}"));
        assert_eq!(ran.code, code, "{arguments}: {}", ran.err);
        assert!(ran.err.contains(wanted), "{arguments}: {}", ran.err);
    }
}

#[test]
fn without_the_privilege_nothing_is_written_and_the_capability_and_the_command_are_named() {
    let directory = directory();
    // Root of a user namespace that has no network of its own: as powerless over this one as anybody.
    let output = Command::new("unshare")
        .args(["-Ur", "setpriv", "--bounding-set=-all", "--inh-caps=-all"])
        .arg(binary())
        .args(["settings", "apply", "sack=on", "initcwnd=10", "net.ipv4.tcp_frto=1", "--to", "host", "--json"])
        .env("WINDTUNNEL_STATE_DIR", directory.path().join("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = ran(output);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("CAP_NET_ADMIN") && ran.err.contains("sudo "), "{}", ran.err);
    let object: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(object["error"]["code"], 3);
}

#[test]
fn files_of_others_cut_off_files_and_files_of_newer_versions_are_refused_with_the_reason() {
    let directory = directory();
    let prepare = "wt apply sack=off --confirm-within 1h > out; file=\"$STATE/checkpoints/1/checkpoint.json\"; state=\"$STATE/checkpoints/1/state.json\"; ";
    for (damage, wanted) in [
        ("head -c 500 \"$file\" > cut; cat cut > \"$file\"", "truncated"),
        ("sed -i 's/\"schema_version\":1/\"schema_version\":99/' \"$file\"", "newer windtunnel (schema 99"),
        ("chmod 666 \"$file\"", "changed by others"),
        ("chmod 666 \"$state\"", "changed by others"),
        ("chmod 777 \"$STATE/checkpoints/1\"", "changed by others"),
        ("sed -i 's/windtunnel-checkpoint/something-else/' \"$file\"", "something-else"),
        ("sed -i 's/\"id\":\"1\"/\"id\":\"2\"/' \"$file\"", "it says that it is change 2"),
        ("mv \"$file\" x; ln -s \"$PWD/x\" \"$file\"", "not an ordinary file"),
        ("echo > \"$state\"", "truncated"),
    ] {
        let fresh = tempfile::tempdir().unwrap();
        let ran = script(fresh.path(), &format!("{prepare}{damage}; wt undo 1; echo \"rc $?\"; wt history"));
        assert!(ran.err.contains(wanted), "{damage}: {}", ran.err);
        assert!(ran.out.contains("rc 3") || ran.out.contains("rc 2"), "{damage}: {}", ran.out);
        assert!(ran.out.contains("unreadable"), "{damage}: {}", ran.out);
    }
    drop(directory);
}

#[test]
fn of_two_at_once_one_is_refused_and_one_that_waits_keeps_others_out() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply sack=off --json > one & wt apply ecn=on --json > two 2>err & wait
         cat one two; wt apply ttl=50; echo \"third $?\"; wt undo",
    );
    let objects: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let done = objects.iter().filter(|object| object["applied"].is_array()).count();
    assert_eq!((done, objects.len()), (1, 2), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("third 3") && ran.err.contains("waits for its confirmation"), "{}{}", ran.out, ran.err);
}

#[test]
fn verify_finds_drift_and_history_tells_every_change() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply sack=off initcwnd=20 --to host --yes > out
         wt verify --json; echo \"rc $?\"
         sysctl -qw net.ipv4.tcp_sack=1; ip route change default via 10.0.0.2 initcwnd 5
         wt verify --json; echo \"rc $?\"; wt history --json",
    );
    let objects: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(ran.out.contains("rc 0") && ran.out.contains("rc 1"), "{}", ran.out);
    assert_eq!(rows(&objects[0], "drift").len(), 0);
    let drift = rows(&objects[1], "drift");
    assert_eq!(drift.len(), 2, "{drift:?}");
    assert_eq!(
        (&drift[0]["key"], &drift[0]["expected"], &drift[0]["found"]),
        (&"sack".into(), &"off".into(), &"on".into())
    );
    assert_eq!(objects[2]["changes"][0]["phase"], "confirmed");
}

#[test]
fn a_change_made_by_another_hand_after_it_was_applied_is_not_confirmed() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply sack=off > out; sysctl -qw net.ipv4.tcp_sack=1; wt confirm; echo \"rc $?\"; ls \"$ROOT/etc/sysctl.d\"",
    );
    assert!(ran.out.starts_with("rc 3") && !ran.out.contains("90-windtunnel"), "{}", ran.out);
    assert!(ran.err.contains("isn't in force any more"), "{}", ran.err);
}

#[test]
fn undone_in_the_middle_the_drop_in_keeps_the_lines_of_others() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "wt apply sack=off --yes > out; wt apply ttl=99 --yes > out; echo 'net.ipv4.tcp_frto = 1' >> \"$ROOT/etc/sysctl.d/90-windtunnel.conf\"
         wt undo 1 > out; cat \"$ROOT/etc/sysctl.d/90-windtunnel.conf\"; wt undo 2 > out; grep -v '^#' \"$ROOT/etc/sysctl.d/90-windtunnel.conf\"
         sysctl -n net.ipv4.tcp_sack net.ipv4.ip_default_ttl",
    );
    let lines: Vec<&str> = ran.out.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        lines,
        ["net.ipv4.ip_default_ttl = 99", "net.ipv4.tcp_frto = 1", "net.ipv4.tcp_frto = 1", "1", "64"],
        "{}",
        ran.err
    );
    // What a later change builds on isn't taken from under it.
    let ran = script(
        directory.path(),
        "rm -rf \"$STATE\"; wt apply sack=off --yes > out; wt apply sack=on --yes > out; wt undo 1; echo \"rc $?\"",
    );
    assert!(ran.out.contains("rc 2") && ran.err.contains("undo that one first"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_backup_brings_everything_back_like_a_change_that_can_be_undone() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "snap > before; wt backup saved.json > out; stat -c %a saved.json
         sysctl -qw net.ipv4.tcp_sack=0 net.ipv4.tcp_rmem='4096 5000 6000'; ip link set v0 mtu 1300 txqueuelen 77
         ip route change default via 10.0.0.2 initcwnd 44; ip route add 203.0.113.0/24 via 10.0.0.2
         snap > changed
         wt restore saved.json --dry-run --json > plan.json; wt restore saved.json --yes > out || exit 1
         snap > after; cmp before after && echo SAME
         wt undo > out; snap > again; cmp changed again && echo CHANGED AGAIN
         head -c 300 saved.json > cut.json; wt restore cut.json; echo \"rc $?\"",
    );
    assert!(ran.out.contains("SAME") && ran.out.contains("CHANGED AGAIN"), "{}{}", ran.out, ran.err);
    assert!(
        ran.out.starts_with("600\n") && ran.out.contains("rc 2") && ran.err.contains("truncated"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn a_route_that_would_differ_in_nothing_is_not_added() {
    let directory = directory();
    for settings in ["ttl=0 --to 2001:db8::9", "ttl=0 --to 10.9.9.9", "--defaults --to default"] {
        let plan = json(directory.path(), &format!("wt plan {settings} --json"));
        assert_eq!(plan["commands"].as_array().map(Vec::len), Some(0), "{settings}: {plan:#}");
    }
    let inherited = "ip route change default via 10.0.0.2 initcwnd 20; wt plan initcwnd=20 --to 10.9.9.9 --json";
    assert_eq!(json(directory.path(), inherited)["commands"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_hundred_routes_and_no_default_route_still_make_one_screen() {
    let directory = directory();
    let many = "for i in $(seq 100); do echo route add 10.7.$i.0/24 via 10.0.0.2; done | ip -batch -; ip route del default; ip -6 route del default";
    let ran = script(directory.path(), &format!("{many}; wt show"));
    assert!(ran.code == 0 && ran.out.lines().count() <= 66, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("more: windtunnel settings show --all"), "{}", ran.out);
    for since in ["2.6.30", "2.6.33", "2.6.39"] {
        assert!(ran.out.contains(&format!("(since Linux {since})")), "{}", ran.out);
    }
    let report = json(directory.path(), &format!("{many}; wt show --json"));
    assert!(rows(&report, "routes").len() > 100);
    assert!(row(&report, "knobs", "mtu")["value"].is_number(), "of some device that is up");
}

#[test]
fn a_default_routes_own_value_is_told_beside_the_hosts() {
    let directory = directory();
    let report = json(directory.path(), "ip route change default via 10.0.0.2 hoplimit 33 mtu 1300; wt show --json");
    assert_eq!(row(&report, "knobs", "ttl")["value"], 64);
    for (key, wanted) in [("ttl", "ttl=33"), ("mtu", "mtu=1300")] {
        let by = row(&report, "knobs", key)["clamped_by"].as_str().unwrap();
        assert!(by.contains(wanted), "{by}");
    }
    assert!(rows(&report, "findings").iter().any(|finding| finding["id"] == "ttl-on-route"));
}

#[test]
fn what_an_experiment_recommends_is_planned_with_its_reason_applied_and_undone() {
    use wt_journal::{Arm, Journal as _, NewExperiment, SqliteJournal, State};
    use wt_units::{Knob, Level, Settings};
    let directory = directory();
    let mut journal = SqliteJournal::open(&directory.path().join("journal")).unwrap();
    let faster = Settings::new().with(Knob::Initcwnd, Level::Number(20));
    let arms = [("current", Settings::new()), ("faster", faster.clone())]
        .map(|(label, settings)| Arm { label: label.to_owned(), settings });
    journal
        .create_experiment(&NewExperiment { arms: arms.into(), ..NewExperiment::new("found", "adsl", "lab") })
        .unwrap();
    let verdict = serde_json::json!({"headline": "20 segments are faster.", "settings": faster});
    journal.finish_experiment("found", State::Finished, 1, Some(&verdict)).unwrap();
    let ran = script(
        directory.path(),
        "snap > before; for id in found last; do wt plan --verdict $id --journal journal --side sender --to default --json; done
         wt apply --verdict found --journal journal --side sender --to default --json; wt undo > out; snap > after; cmp before after && echo SAME",
    );
    let objects: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for plan in &objects[..2] {
        let change = row(plan, "changes", "initcwnd");
        assert_eq!((&change["new"], &change["scope"]), (&20.into(), &"route".into()), "{plan}");
        assert!(change["why"].as_str().unwrap().starts_with("found: 20 segments are faster"), "{plan}");
    }
    assert_eq!(row(&objects[2], "applied", "initcwnd")["granted"], 20);
    assert!(ran.out.contains("SAME"), "{}{}", ran.out, ran.err);
}

#[test]
fn roots_checkpoints_are_in_var_lib() {
    let directory = directory();
    // A root of a namespace, with a /var/lib of its own; nothing is confirmed, so nothing is written to /etc.
    let ran = script(
        directory.path(),
        "unset WINDTUNNEL_STATE_DIR WINDTUNNEL_ROOT; mount -t tmpfs none /var/lib || exit 9; wt apply sack=off > out
         ls /var/lib/windtunnel/checkpoints; stat -c %a /var/lib/windtunnel/checkpoints/1/checkpoint.json; wt undo > out",
    );
    assert_eq!(ran.out, "1\n600\n", "{}", ran.err);
}

#[test]
fn whoever_is_not_root_hears_that_roots_changes_are_unknown_and_not_that_there_are_none() {
    let directory = directory();
    let ran = script(
        directory.path(),
        "unset WINDTUNNEL_STATE_DIR WINDTUNNEL_ROOT XDG_STATE_HOME; mount -t tmpfs none /var/lib || exit 9
         other() { unshare --map-user=1000 \"$WT\" \"$@\"; }
         other settings history; wt apply sack=off > out
         other settings history; other settings history --json
         for how in verify 'check --offline'; do other settings $how 2> said; echo $?; head -1 said; done
         other metrics | grep -v '^#' | grep settings; other settings --state-dir elsewhere verify
         \"$WT\" metrics | grep -e '^windtunnel_settings_up' -e '^windtunnel_settings_pending '; wt undo > out",
    );
    let unknown = "only root reads /var/lib/windtunnel: what root changed isn't known here";
    let lines: Vec<&str> = ran.out.lines().collect();
    let [none, history, json, code, verify, same, check, up, hidden, elsewhere, rest @ ..] = lines.as_slice() else {
        panic!("{}{}", ran.out, ran.err)
    };
    assert_eq!(*none, "No change was made yet.");
    assert_eq!(*history, format!("{unknown}; sudo windtunnel settings history shows it"));
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!((rows(&json, "changes").len(), json["hidden"].as_str()), (0, Some(unknown)), "{json}");
    assert_eq!([*code, *same], ["3", "3"]);
    assert!(verify.contains(unknown) && check.contains(unknown), "{}", ran.out);
    assert_eq!([*up, *hidden], ["windtunnel_settings_up 0", "windtunnel_settings_hidden 1"]);
    assert_eq!(*elsewhere, "No change is in force.");
    assert_eq!(rest, ["windtunnel_settings_up 1", "windtunnel_settings_pending 1"]);
}

#[test]
fn the_table_of_operating_systems_has_the_classic_ones() {
    let directory = directory();
    for (name, mtu, rwin) in [
        ("Windows XP", 1500, 65_536),
        ("Windows 98SE", 1500, 8_192),
        ("windows me", 1500, 16_384),
        ("Windows 2000", 1500, 16_384),
    ] {
        let table = json(directory.path(), &format!("wt defaults --os '{name}' --json"));
        assert_eq!((&table["systems"][0]["mtu"], &table["systems"][0]["rwin"]), (&mtu.into(), &rwin.into()), "{name}");
        assert!(table["systems"][0]["source"].is_string());
    }
}

#[test]
fn a_plan_of_the_kernels_own_values_changes_what_was_changed() {
    let directory = directory();
    let plan = json(
        directory.path(),
        "sysctl -qw net.ipv4.tcp_sack=0 net.ipv4.tcp_retries2=8; ip route change default via 10.0.0.2 initcwnd 3; wt plan --defaults --json",
    );
    let changed: Vec<&str> = rows(&plan, "changes")
        .iter()
        .filter(|change| change["unchanged"] == false)
        .map(|change| change["key"].as_str().unwrap())
        .collect();
    assert_eq!(changed, ["sack", "initcwnd", "retries2"], "{plan}");
}
