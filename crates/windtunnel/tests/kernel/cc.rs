//! `windtunnel cc`. What loads needs CAP_BPF and CAP_PERFMON, as root has; without them these tests check that it is said.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common;
use crate::common::{RunOutput, alone, eventually, json, ran, run, shared, windtunnel};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};
use wt_testing::require;

/// Whether this user may load BPF programs and the binary has them; if not, why.
fn loadable() -> Result<(), String> {
    let listed = json(&["cc", "list", "--json"]);
    listed["obstacle"].as_str().map_or(Ok(()), |why| Err(why.to_owned()))
}

fn available() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

fn host_default() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap()
}

#[test]
fn the_list_has_the_kernels_and_ours_and_says_who_may_use_them() {
    let listed = json(&["cc", "list", "--json"]);
    let kernel = listed["kernel"].as_array().unwrap();
    assert!(kernel.iter().any(|one| one["name"] == "reno" && one["who"] == "everybody"), "{listed}");
    let ours = listed["ours"].as_array().unwrap();
    for name in ["newreno", "hd", "chd", "cdg", "vegas", "htcp", "illinois", "westwood"] {
        assert!(ours.iter().any(|one| one["name"] == name), "{name}");
    }
    let text = run(&["cc", "list"]).out;
    assert!(text.contains("chd@freebsd-hz100") && text.contains("for everybody"), "{text}");
}

#[test]
fn each_is_shown_in_five_lines_with_its_parameters_and_source() {
    for name in ["newreno", "hd", "chd", "cdg", "vegas", "htcp", "illinois", "westwood", "reno", "cubic", "bbr"] {
        let shown = json(&["cc", "show", name, "--json"]);
        assert_eq!(shown["lines"].as_array().unwrap().len(), 5, "{name}");
        assert!(!shown["source"].as_str().unwrap().is_empty(), "{name}");
    }
    let slow = json(&["cc", "show", "chd@freebsd-hz100", "--json"]);
    let threshold = &slow["parameters"][0];
    assert_eq!((threshold["value"].as_str(), threshold["default"].as_str()), (Some("200ms"), Some("20ms")), "{slow}");
}

#[test]
fn nonsense_is_refused_with_what_there_is() {
    for (args, part) in [
        (&["cc", "show", "bic"][..], "newreno"),
        (&["cc", "load", "chd@linux"], "freebsd-hz1000"),
        (&["cc", "load", "chd", "--pmax", "300%"], "100%"),
        (&["cc", "load", "chd", "--queue-min", "30ms"], "queue-threshold"),
        (&["cc", "load", "vegas", "--queue-min", "30ms"], "no variant or parameter"),
        (&["cc", "load", "hd", "--set", "pmax"], "NAME=VALUE"),
        (&["cc", "compare", "--lab", "lan", "--algorithms", "reno,reno"], "twice"),
        (&["cc", "compare", "--lab", "lan", "--algorithms", "chd@x=1"], "no variant or parameter"),
        (&["cc", "unload", "wt_nothing"], "isn't loaded"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
    }
    let missing = run(&["cc", "compare", "--lab", "lan", "--algorithms", "reno,no_such_one"]);
    assert_eq!(missing.code, 3, "{}", missing.err);
}

#[test]
fn without_the_capabilities_the_error_names_them() {
    require!("no-bpf", loadable().err().ok_or("this user may load"));
    let ran = run(&["cc", "load", "chd"]);
    assert_eq!(ran.code, 3);
    let built = json(&["cc", "list", "--json"])["obstacle"].as_str().is_some_and(|why| why.contains("CAP_BPF"));
    let named = ran.err.contains("CAP_BPF") && ran.err.contains("CAP_PERFMON");
    assert!(named || !built && ran.err.contains("clang"), "{}", ran.err);
}

#[test]
fn a_user_namespace_does_not_help_and_the_error_says_so() {
    require!("bpf", loadable());
    let ran =
        ran(Command::new("unshare").args(["-Urn"]).arg(common::binary()).args(["cc", "load", "chd"]).output().unwrap());
    require!("userns", if ran.err.contains("unshare") { Err(&ran.err) } else { Ok(()) });
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("CAP_BPF and CAP_PERFMON"), "{}", ran.err);
}

#[test]
fn it_is_there_while_the_command_runs_and_gone_afterwards() {
    require!("bpf", loadable());
    let _machine = shared();
    let before = host_default();
    let script = "echo $WT_CC; cat /proc/sys/net/ipv4/tcp_available_congestion_control; exit 7";
    let ran = run(&["cc", "load", "chd@pmax=33%", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 7, "{}", ran.err);
    let mut lines = ran.out.lines();
    let name = lines.next().unwrap();
    assert!(name.starts_with("wt_chd_") && lines.next().unwrap().contains(name), "{}", ran.out);
    assert!(!available().contains(&name.to_owned()));
    assert_eq!(host_default(), before, "it never becomes the host's default");
}

#[test]
fn a_name_that_is_taken_is_told() {
    require!("bpf", loadable());
    let binary = common::binary();
    let again = ["cc", "load", "chd@pmax=34%"];
    let ran = run(&["cc", "load", "chd@pmax=34%", "--", binary.to_str().unwrap(), again[0], again[1], again[2]]);
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(ran.err.contains("already has a congestion control named wt_chd_"), "{}", ran.err);
}

/// What bpftool shows of ours by these words; `None` where it isn't installed.
fn shown_by_bpftool(name: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for what in ["map", "prog", "link"] {
        let out = Command::new("bpftool").args([what, "show"]).output().ok().filter(|out| out.status.success())?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        found.extend(text.lines().filter(|line| line.contains(name)).map(str::to_owned));
    }
    Some(found)
}

#[test]
fn a_kill_at_any_point_leaves_nothing_in_the_kernel() {
    require!("bpf", loadable());
    let _machine = alone();
    let home = tempfile::tempdir().unwrap();
    let choice = "westwood@interval=61ms";
    let name = json(&["cc", "show", choice, "--json"])["kernel_name"].as_str().unwrap().to_owned();
    // Killed at moments between its start and its saying that it is loaded.
    let mut loaded = 0;
    for step in 0..24 {
        let mut child = windtunnel(home.path())
            .args(["cc", "load", choice])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if step % 4 == 3 {
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert!(line.contains("is loaded"), "{line}");
            assert!(available().contains(&name));
            loaded += 1;
        } else {
            // Anywhere before: what matters is that the moments differ, not what they are.
            let _ = wt_sys::poll::wait_readable(&[], Some(std::time::Duration::from_millis(step * 12)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("unregistering after a kill", || !available().contains(&name));
    }
    assert_eq!(loaded, 6);
    freed(&name);
}

/// Waits until the kernel has nothing of this name any more.
fn freed(name: &str) {
    eventually("unregistering", || !available().iter().any(|known| known == name));
    if shown_by_bpftool(name).is_none() {
        wt_testing::not_run("bpftool", &"it isn't here, so only the list of the kernel was looked at");
        return;
    }
    // The kernel frees maps and programs after a grace period.
    eventually("freeing of maps, programs and links", || shown_by_bpftool(name).is_some_and(|left| left.is_empty()));
}

#[test]
fn a_kill_while_connections_use_it_leaves_nothing_in_the_kernel() {
    require!("bpf", loadable());
    let _machine = alone();
    let home = tempfile::tempdir().unwrap();
    let choice = "westwood@interval=62ms";
    let name = json(&["cc", "show", choice, "--json"])["kernel_name"].as_str().unwrap().to_owned();
    // Connections of programs that aren't ours live on for as long as the kernel lets them: here there are none.
    let compare = ["cc", "compare", "--lab", "adsl", "--algorithms", choice, "--rounds", "1", "--trial", "9s"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--cc", choice];
    let run = ["lab", "run", "adsl", "--cc", choice, "--", "sleep", "9"];
    for args in [&run[..], &compare, &serve] {
        for pause_ms in [0, 700] {
            let mut child = windtunnel(home.path())
                .args(args)
                .env("XDG_STATE_HOME", home.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            eventually("loading", || available().contains(&name));
            // At once, and when connections are under way.
            let _ = wt_sys::poll::wait_readable(&[], Some(std::time::Duration::from_millis(pause_ms)));
            child.kill().unwrap();
            child.wait().unwrap();
            freed(&name);
        }
    }
}

#[test]
fn a_pinned_one_stays_until_it_is_unloaded() {
    require!("bpf", loadable());
    let _machine = shared();
    let binary = common::binary();
    let binary = binary.to_str().unwrap();
    // A mount namespace of its own, so that the host's /sys/fs/bpf is left alone.
    let script = format!(
        "{binary} cc load htcp@rtt-scaling=on --pin >/dev/null && cat /proc/sys/net/ipv4/tcp_available_congestion_control \
         && {binary} cc unload htcp@rtt-scaling=on && cat /proc/sys/net/ipv4/tcp_available_congestion_control"
    );
    let ran = ran(Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].contains("wt_htcp_") && lines[1].contains("is unloaded"), "{}", ran.out);
    eventually("unregistering", || !available().iter().any(|name| name.starts_with("wt_htcp_")));
}

/// What systemd would run at the next boot is run as it stands in the unit.
#[test]
fn a_unit_loads_one_at_boot_until_it_is_unloaded_with_boot() {
    require!("bpf", loadable());
    let _machine = shared();
    // Parameters that no other test has, so that its name in the kernel is this test's own.
    const NAME: &str = "hd@queue-min=7ms";
    let name = NAME.parse::<wt_cc::Choice>().unwrap().kernel_name();
    let root = tempfile::tempdir().unwrap();
    let binary = common::binary();
    let units = root.path().join("etc/systemd/system");
    let unit = units.join(format!("windtunnel-cc-{name}.service"));
    let script = format!(
        "wt() {{ '{binary}' cc \"$@\"; }}; set -e
         wt load {NAME} --boot --json; wt load {NAME} --boot | head -1
         test -f {link} && wt unload {NAME}
         eval \"$(sed -n 's/%%/%/g; s/^ExecStart=//p' {unit})\" | head -1
         if command -v systemd-analyze >/dev/null; then systemd-analyze verify --man=no {unit}; fi
         mkdir -p {root}/etc/sysctl.d; echo net.ipv4.tcp_congestion_control = {name} > {root}/etc/sysctl.d/90-windtunnel.conf
         wt unload {NAME} --boot --json; wt unload {name} || echo gone",
        binary = binary.display(),
        unit = unit.display(),
        root = root.path().display(),
        link = units.join(format!("sysinit.target.wants/windtunnel-cc-{name}.service")).display(),
    );
    // A mount namespace of its own, so that the host's /sys/fs/bpf is left alone.
    let mut command = Command::new("unshare");
    let ran = ran(command.args(["-m", "sh", "-c", &script]).env("WINDTUNNEL_ROOT", root.path()).output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let [loaded, again, unloaded, started, gone, last] = ran.out.lines().collect::<Vec<_>>()[..] else {
        panic!("{}{}", ran.out, ran.err)
    };
    let object = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    assert_eq!(object(loaded)["unit"], unit.to_str().unwrap(), "{loaded}");
    assert!(again.contains("loaded already") && unloaded.contains("is unloaded"), "{}", ran.out);
    assert!(started.contains("is loaded as") || started.contains("mounted"), "the unit's own command: {}", ran.out);
    let gone = object(gone);
    assert_eq!((&gone["units"][0], &gone["unloaded"][0]), (&unit.to_str().unwrap().into(), &name.as_str().into()));
    assert!(gone["notes"].to_string().contains("90-windtunnel.conf"), "a file for the boot still names it: {gone}");
    assert_eq!(last, "gone", "{}", ran.err);
    assert_eq!(std::fs::read_dir(&units).unwrap().count(), 0, "nothing is left");
    eventually("unregistering", || !available().contains(&name));
}

#[test]
fn compare_keeps_its_contract_on_a_short_path() {
    let _machine = alone();
    let ours = loadable().is_ok();
    let algorithms = if ours { "reno,newreno,chd@freebsd-hz100" } else { "reno,bbr" };
    let enough = ours || available().contains(&"bbr".to_owned());
    require!("bbr", enough.then_some(()).ok_or("this kernel has only one congestion control for everybody"));
    let home = tempfile::tempdir().unwrap();
    let pictures = home.path().join("pictures");
    let args =
        ["cc", "compare", "--lab", "adsl", "--algorithms", algorithms, "--rounds", "2", "--trial", "1s", "--json"];
    let page = home.path().join("page.html");
    let mut command = windtunnel(home.path());
    command.args(args).arg("--svg").arg(&pictures).arg("--html").arg(&page);
    let compared = ran(command.output().unwrap());
    assert!(compared.code <= 1, "{}{}", compared.out, compared.err);
    let told: serde_json::Value = serde_json::from_str(&compared.out).unwrap();
    let rows = told["algorithms"].as_array().unwrap();
    assert_eq!(rows.len(), algorithms.split(',').count());
    for row in rows {
        let runs = row["goodput_kBps"]["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2, "{row}");
        let mean = runs.iter().map(|run| run.as_f64().unwrap()).sum::<f64>() / 2.0;
        assert!((row["goodput_kBps"]["mean"].as_f64().unwrap() - mean).abs() < 1e-6, "{row}");
        // The line carries 8 Mbit/s of cells: 1000 kB/s are out of reach.
        assert!((100.0..1000.0).contains(&mean), "{row}");
        for field in ["t90_s", "recovery_s", "p95_queue_ms", "retransmit_share", "guard_hits", "name", "variant"] {
            assert!(row.get(field).is_some(), "{field}: {row}");
        }
    }
    if ours {
        assert_eq!(rows[2]["variant"], "freebsd-hz100");
        assert!(available().iter().all(|name| !name.starts_with("wt_newreno")), "all are unloaded");
    }
    assert!(!told["verdict"]["text"].as_str().unwrap().is_empty());
    let drawn = std::fs::read_dir(&pictures).unwrap().count();
    assert_eq!(drawn, 2 + rows.len());
    let page = std::fs::read_to_string(&page).unwrap();
    // Each picture twice: for screens and for phones.
    assert_eq!(page.matches("<svg ").count(), 2 * drawn);
    for elsewhere in ["src=", "<link", "@import", "url(http", "url(/"] {
        assert!(!page.contains(elsewhere), "it needs nothing else, but has {elsewhere}");
    }
    // The journal has all of it, so the answer can be had again.
    let again = ran(windtunnel(home.path()).args(["report", "last", "--json"]).output().unwrap());
    assert_eq!(again.code, compared.code, "{}", again.err);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again.out).unwrap(), told);
    let listed = ran(windtunnel(home.path()).args(["journal", "list"]).output().unwrap());
    assert!(listed.out.contains(told["id"].as_str().unwrap()) && listed.out.contains("finished"), "{}", listed.out);
    let resumed = ran(windtunnel(home.path()).args(["tune", "--resume", "last"]).output().unwrap());
    assert_eq!(resumed.code, 2, "{}", resumed.err);
}

/// Runs one trial of reno in which this happens: the answer, and the trial as the journal has it.
fn disturbed(name: &str) -> (serde_json::Value, serde_json::Value) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("quiet.toml");
    // 52 packets fill the path; with a queue as long reno never leaves it idle. A short one keeps the RTT below 84 ms.
    let queue = if name == "rtt-step" { 20 } else { 60 };
    let way = format!("{{ rate = \"10mbit\", delay = \"30ms\", queue_packets = {queue} }}");
    let head = "title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\nmtu = 1500\n";
    std::fs::write(&path, format!("{head}down = {way}\nup = {way}\n")).unwrap();
    let args = ["--algorithms", "reno", "--rounds", "1", "--trial", "3s", "--quiet", "--json", "--disturb", name];
    let mut command = windtunnel(home.path());
    let ran_once = ran(command.args(["cc", "compare", "--lab"]).arg(&path).args(args).output().unwrap());
    assert_eq!(ran_once.code, 0, "{name}: {}", ran_once.err);
    let told: serde_json::Value = serde_json::from_str(&ran_once.out).unwrap();
    let exported = ran(windtunnel(home.path()).args(["journal", "export", "last"]).output().unwrap());
    let exported: serde_json::Value = serde_json::from_str(&exported.out).unwrap();
    let trials = exported["trials"].as_array().unwrap();
    (told, trials.iter().rfind(|trial| trial["outcome"]["status"] == "completed").unwrap().clone())
}

#[test]
fn every_disturbance_happens_on_a_real_kernels_path_and_the_recovery_is_timed() {
    let _machine = alone();
    for name in ["loss", "burst", "outage", "half-rate", "rtt-step", "flow"] {
        let (told, trial) = disturbed(name);
        let (row, outcome) = (&told["algorithms"][0], &trial["outcome"]);
        assert_eq!(told["disturbance"]["kind"], name);
        assert!((told["disturbance"]["at_s"].as_f64().unwrap() - 1.2).abs() < 1e-9, "{}", told["disturbance"]);
        let after = &row["after_disturbance"];
        assert_eq!(after["events"], 1, "{name}: {after}");
        assert!(after["recovered"] == 0 || after["median_s"].as_f64().is_some(), "{name}: {after}");
        let depth = after["median_depth"].as_f64().unwrap();
        let losses = outcome["observed"]["losses"].as_u64().unwrap();
        match name {
            "loss" => assert_eq!(losses, 1, "{outcome}"),
            "burst" => assert_eq!(losses, 10),
            "outage" => assert!(depth < 0.1, "nothing arrives for a second: {after}"),
            "half-rate" => {
                // Half of the line for 0.6 s costs 360 kB, and what comes of it some more.
                let cost = after["mean_cost_bytes"].as_f64().unwrap();
                assert!(depth < 0.7 && cost > 250e3, "{after}");
            }
            "rtt-step" => {
                // 60 ms and half of that, and a little for a packet's own length; before it at most 60 ms and the queue.
                let last = outcome["sender"].as_array().unwrap().last().unwrap();
                assert!(last["rtt"].as_u64().unwrap() > 88_000, "{last}");
            }
            _ => {
                let beside = &row["beside"];
                let number = |field: &str| beside[field].as_f64().unwrap();
                assert!(number("other_kBps") > 20.0 && number("own_kBps") > 20.0, "{beside}");
                assert!((0.5..=1.0).contains(&number("jain")), "{beside}");
                let both = number("other_kBps") + number("own_kBps");
                // The line, and within 0.45 s what had waited behind a lost packet: at most what path and queue hold.
                assert!(both < 1206.0 + 112.0 * 1.448 / 0.45, "no more than the line carries: {beside}");
                assert_eq!(beside["convergence"]["events"], 1);
            }
        }
    }
}

/// Downloads in the lab with a program that knows nothing of congestion controls; what ss shows at the server meanwhile.
fn control_of_curls_server(cc: &str) -> RunOutput {
    let home = tempfile::tempdir().unwrap();
    let script = "curl -s -o /dev/null http://server/bytes/3MB & \
        n=0; until ip netns exec server ss -tinH state established '( sport = :80 )' | grep bytes_acked; do \
        n=$((n+1)); [ $n -gt 500 ] && exit 9; done; wait";
    ran(windtunnel(home.path()).args(["lab", "run", "adsl", "--cc", cc, "--", "sh", "-c", script]).output().unwrap())
}

#[test]
fn an_unmodified_program_gets_the_control_of_the_lab() {
    let _machine = shared();
    let reno = control_of_curls_server("reno");
    assert_eq!(reno.code, 0, "{}{}", reno.out, reno.err);
    assert!(reno.out.contains(" reno "), "{}", reno.out);
    let unknown = control_of_curls_server("nonsuch");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("no congestion control nonsuch"), "{}", unknown.err);
    if loadable().is_ok() {
        let ours = control_of_curls_server("vegas@alpha=2");
        assert_eq!(ours.code, 0, "{}{}", ours.out, ours.err);
        assert!(ours.out.contains(" wt_vegas_"), "{}", ours.out);
        eventually("unregistering", || !available().iter().any(|name| name.starts_with("wt_vegas_")));
    }
}

/// A copy by OpenSSH's own scp to OpenSSH's own server in the lab, under a congestion control; what `ss` said meanwhile, and
/// `same` in the end.
fn secure_copy(cc: &str) -> RunOutput {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(
        home.path().join("path.toml"),
        "title = \"a slow copy\"\nsource = \"this test\"\n[[link]]\nname = \"link\"\nmtu = 1500\n\
         down = { rate = \"8mbit\", delay = \"10ms\" }\nup = { rate = \"8mbit\", delay = \"10ms\" }\n",
    )
    .unwrap();
    let script = r#"set -e; umask 077; PATH=$PATH:/usr/sbin:/sbin
        ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f user; cp user.pub keys
        head -c 1500000 /dev/urandom > file
        printf '%s\n' 'Port 2222' "HostKey $PWD/host" "AuthorizedKeysFile $PWD/keys" 'StrictModes no' 'UsePAM no' \
            'PidFile none' 'PermitRootLogin yes' 'Subsystem sftp internal-sftp' > sshd.conf
        "$WT" lab run path.toml --cc "$CC" --server "mkdir -p /run/sshd; exec $(command -v sshd) -D -q -f $PWD/sshd.conf" -- sh -c '
            until ssh-keyscan -p 2222 server 2>/dev/null | grep -q ssh; do :; done
            scp -q -F none -P 2222 -i user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null file "server:$PWD/got" & copy=$!
            until ss -tinH state established "( dport = :2222 )" | grep bytes_acked; do kill -0 $copy; done
            wait $copy; cmp file got && echo same'"#;
    let mut command = Command::new("timeout");
    command.args(["60", "sh", "-c", script]).env("WT", common::binary()).env("CC", cc);
    ran(command.current_dir(home.path()).output().unwrap())
}

#[test]
fn a_secure_copy_between_unmodified_programs_gets_the_control_of_the_lab() {
    let _machine = shared();
    // Only in root's lab there are the users that sshd steps down to.
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    require!("root", root.then_some(()).ok_or("sshd needs it"));
    let copied = secure_copy("cubic");
    assert!(copied.out.contains(" cubic ") && copied.out.ends_with("same\n"), "{}{}", copied.out, copied.err);
    if loadable().is_ok() {
        let copied = secure_copy("chd@freebsd-hz100");
        assert!(copied.out.contains(" wt_chd") && copied.out.ends_with("same\n"), "{}{}", copied.out, copied.err);
    }
}

#[test]
fn a_kernel_without_btf_is_told() {
    require!("bpf", loadable());
    // An empty file system over the kernel's types, in mounts of our own.
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" cc load chd";
    let ran = ran(Command::new("unshare").args(["-m", "sh", "-c", script]).arg(common::binary()).output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("has no BTF") && ran.err.contains("CONFIG_DEBUG_INFO_BTF"), "{}", ran.err);
}

#[test]
fn only_the_capability_that_is_missing_is_named() {
    require!("bpf", loadable());
    for (has, lacks) in [("+bpf", "CAP_PERFMON"), ("+perfmon", "CAP_BPF")] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all,+bpf,+perfmon"]);
        command.arg(format!("--inh-caps=-all,{has}")).arg(format!("--ambient-caps=-all,{has}"));
        // Another user can't read the build's folder.
        let place = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let copy = place.path().join("windtunnel");
        std::fs::copy(common::binary(), &copy).unwrap();
        let ran = ran(command.arg(&copy).args(["cc", "load", "chd"]).output().unwrap());
        assert_eq!(ran.code, 3, "{}", ran.err);
        let first = ran.err.lines().next().unwrap();
        assert!(first.contains(&format!("needs {lacks},")), "with {has}: {}", ran.err);
    }
}

#[test]
fn tune_compares_ours_like_any_other_level() {
    require!("bpf", loadable());
    let _machine = alone();
    let levels = "cc=reno,chd@freebsd-hz100,hd@queue-min=6ms+pmax=30%";
    let args = [
        "tune", "--lab", "adsl", "--knobs", "cc", "--levels", levels, "--trial", "500ms", "--budget", "8 trials",
        "--json",
    ];
    let home = tempfile::tempdir().unwrap();
    let ran = ran(windtunnel(home.path()).args(args).output().unwrap());
    assert!(ran.code <= 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("chd@freebsd-hz100") && ran.out.contains("hd@queue-min=6ms+pmax=30%"), "{}", ran.out);
}
