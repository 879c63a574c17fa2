//! The lab as strangers use it: signals, recordings, other tools of tracing, files that want too much.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common;
use crate::common::{binary, eventually, json, processes_with, ran, run, shared, windtunnel};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a shell script in the client of a path.
fn shell(path: &str, options: &[&str], script: &str) -> common::RunOutput {
    let mut args = vec!["lab", "run", path];
    args.extend(options);
    args.extend(["--", "sh", "-c", script]);
    run(&args)
}

/// A scenario in a folder of its own: `head` before its links, and each link's further fields.
fn scenario(head: &str, links: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut text = format!("title = \"t\"\nsource = \"s\"\n{head}\n");
    for (number, more) in links.iter().enumerate() {
        let way = "{ rate = \"100mbit\", delay = \"1ms\" }";
        text += &format!("[[link]]\nname = \"l{number}\"\n{more}\n");
        if !more.contains("down =") {
            text += &format!("down = {way}\nup = {way}\n");
        }
    }
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

fn kill(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Interface, block type and length of a pcapng file's blocks, walked from both ends of each.
fn blocks(file: &Path) -> Vec<u32> {
    let bytes = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let (mut at, mut kinds) = (0, Vec::new());
    while at < bytes.len() {
        let len = word(at + 4) as usize;
        assert!(len >= 12 && len.is_multiple_of(4) && word(at + len - 4) as usize == len, "block at {at}");
        kinds.push(word(at));
        at += len;
    }
    kinds
}

#[test]
fn a_signal_ends_everything_and_completes_the_recording() {
    let _machine = shared();
    for (signal, code) in [("-TERM", 143), ("-HUP", 129), ("-QUIT", 131)] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("signal.pcapng");
        let mark = format!("3{}00{}", code, std::process::id());
        let script = format!("ping -c 1 server; echo there; sleep {mark}");
        let mut child = windtunnel(home.path())
            .args(["lab", "run", "lan", "--record", file.to_str().unwrap(), "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "there"));
        kill(child.id(), signal);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        eventually("every process is gone", || processes_with(&mark).is_empty());
        // A section, two interfaces, and a ping there and back at each of them.
        let kinds = blocks(&file);
        assert_eq!((&kinds[..3], kinds[3..].iter().filter(|kind| **kind == 6).count()), (&[0x0A0D_0D0A, 1, 1][..], 4));
        assert!(!home.path().join("signal.pcapng.part").exists(), "{signal}");
    }
}

#[test]
fn a_lab_that_is_up_and_is_killed_says_so() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let mut up = windtunnel(home.path());
    up.args(["lab", "up", "lan", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = up.spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let pid = serde_json::from_str::<serde_json::Value>(&line).unwrap()["pid"].as_u64().unwrap();
    kill(u32::try_from(pid).unwrap(), "-KILL");
    let ended = ran(child.wait_with_output().unwrap());
    assert!(ended.code == 3 && ended.err.contains("its process 1 was killed"), "{} {}", ended.code, ended.err);
}

#[test]
fn programs_in_a_lab_find_what_makes_it_again_and_its_path() {
    let told = shell("adsl", &["--seed", "7", "--server", "exec sleep 60"], "cat /run/windtunnel-lab.json; env");
    let (facts, environment) = told.out.split_once('}').unwrap();
    let facts: serde_json::Value = serde_json::from_str(&format!("{facts}}}}}")).unwrap();
    assert_eq!(facts["command"], "windtunnel lab run adsl --seed 7 --server 'exec sleep 60'", "{}", told.out);
    assert!(facts["path"]["rtt_us"].as_u64() > Some(10_000) && facts["path"]["pmtu"] == 1492, "{}", told.out);
    assert!(!environment.contains("WINDTUNNEL_LAB"), "{environment}");
}

#[test]
fn a_lab_whose_emulator_stops_says_so_and_vouches_for_nothing() {
    let _machine = shared();
    let script = "ip netns exec server ip link del $WT_DEVICE; exit 9";
    let plain = shell("lan", &["--backend", "veth"], script);
    assert!(plain.code == 9 && plain.err.contains("emulator stopped: can't read from the device"), "{plain:?}");
    let told = shell("lan", &["--backend", "veth", "--stats=json"], script);
    let stats: serde_json::Value = serde_json::from_str(told.err.lines().last().unwrap()).unwrap();
    assert!(stats["valid"] == false && stats["why_invalid"].as_str().unwrap().contains("stopped"), "{stats}");
}

#[test]
fn as_many_hosts_are_on_the_way_as_there_may_be_links() {
    let _machine = shared();
    let hosts: Vec<String> = (1..64).map(|host| format!("hop = {{ host = \"h{host}x\" }}")).collect();
    let links: Vec<&str> = [""].into_iter().chain(hosts.iter().map(String::as_str)).collect();
    let (_folder, file) = scenario("", &links);
    let ran = shell(&file, &[], "ping -c 2 -i 0.2 server && ping -c 1 h63x");
    assert!(ran.code == 0 && ran.out.contains("2 received"), "{ran:?}");
}

#[test]
fn a_browsers_profile_goes_with_the_lab_whatever_ends_it() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let (fake, tmp) = (folder.path().join("fakefox"), folder.path().join("tmp"));
    std::fs::create_dir(&tmp).unwrap();
    let mark = format!("4000{}", std::process::id());
    let script = format!(
        "#!/bin/sh\nfor word; do case $word in --user-data-dir=*) profile=${{word#*=}} ;; esac; done\n\
         echo x > $profile/Cookies && echo x > $TMPDIR/socket && [ \"$XDG_CONFIG_HOME$XDG_CACHE_HOME\" = $TMPDIR$TMPDIR ] && stat -f -c %T $profile\nsleep {mark}\n"
    );
    std::fs::write(&fake, script).unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut child = windtunnel(folder.path())
        .env("TMPDIR", &tmp)
        .args(["lab", "browser", "lan", "--program", fake.to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "tmpfs");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("every process is gone", || processes_with(&mark).is_empty());
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0, "nothing was written outside of the lab");
    assert!(!Path::new("/run/browser-profile").exists());
}

#[test]
fn settings_of_the_host_cannot_be_changed_from_a_lab_and_those_of_its_own_network_can() {
    let _machine = shared();
    // What is there is written: where it isn't refused, nothing changes.
    let script = "for file in /proc/sys/vm/swappiness /proc/sys/kernel/core_pattern /sys/kernel/mm/transparent_hugepage/enabled; do \
                  [ -e $file ] && sed 's/.*\\[\\(.*\\)\\].*/\\1/' $file > /tmp/.wt-$$ && { cat /tmp/.wt-$$ > $file; } 2>/dev/null && echo $file; done; \
                  rm -f /tmp/.wt-$$; echo 77 > /proc/sys/net/ipv4/ip_default_ttl; cat /proc/sys/net/ipv4/ip_default_ttl; \
                  ip netns exec server sh -c 'echo 78 > /proc/sys/net/ipv4/ip_default_ttl; cat /proc/sys/net/ipv4/ip_default_ttl'";
    let ran = shell("lan", &[], script);
    assert_eq!(ran.out.split_whitespace().collect::<Vec<_>>(), ["77", "78"], "{}", ran.err);
}

#[test]
fn a_lab_that_cannot_be_made_says_why_and_leaves_no_recording() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.pcapng");
    let binary = binary();
    // In a user namespace whose limits are ours to set; a process without any right in it is an ordinary user's.
    let within = |limit: &str, drop: &str| {
        let script = format!(
            "echo 0 > /proc/sys/user/{limit} && exec {drop} {} lab run lan --record {} -- true",
            binary.display(),
            file.display()
        );
        ran(Command::new("unshare").args(["-Ur", "sh", "-c", &script]).env("HOME", folder.path()).output().unwrap())
    };
    let none = "setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all";
    for (limit, drop, wanted) in [
        ("max_net_namespaces", "", "user.max_net_namespaces=10000"),
        ("max_user_namespaces", none, "a limit of namespaces is reached: user.max_user_namespaces"),
    ] {
        let ran = within(limit, drop);
        assert!(ran.code == 3 && ran.err.contains(wanted), "{limit}: {} {}", ran.code, ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{limit}: a file was left");
    }
    // Whoever has the rights already needs no further user namespace, and a root without any makes one as others do.
    // Whoever has the rights already needs no further user namespace.
    let rights = within("max_user_namespaces", "");
    assert_eq!(rights.code, 0, "{}", rights.err);
    assert!(blocks(&file).len() >= 3);
    // Root in a container that keeps no right, and in one that keeps the right to map itself.
    for (keep, code, wanted) in [("", 3, "this is root without CAP_SETFCAP"), (",+setfcap", 0, "")] {
        let drop = format!("setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all{keep}");
        let script = format!("exec {drop} {} lab run lan -- true", binary.display());
        let mut container = Command::new("unshare");
        let container = ran(container.args(["-Ur", "sh", "-c", &script]).env("HOME", folder.path()).output().unwrap());
        assert!(container.code == code && container.err.contains(wanted), "{}", container.err);
    }
}

#[test]
fn where_apparmor_takes_the_rights_the_message_names_the_profile() {
    let _machine = shared();
    // The kernel's answer, and a process that is given none of the rights which its user namespace should have.
    let script = "mount -t tmpfs tmpfs /proc/sys/kernel && echo 1 > /proc/sys/kernel/apparmor_restrict_unprivileged_userns && \
                  exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all \"$@\"";
    let folder = tempfile::tempdir().unwrap();
    let restricted = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-Urm", "sh", "-c", script, "sh"]).arg(binary()).args(args).env("HOME", folder.path());
        ran(command.output().unwrap())
    };
    for command in [&["lab", "run", "lan", "--", "true"][..], &["lab", "up", "adsl"], &["lab", "ping", "lan"]] {
        let ran = restricted(command);
        assert_eq!(ran.code, 3, "{command:?}: {}", ran.err);
        assert!(ran.err.contains("kernel.apparmor_restrict_unprivileged_userns is 1"), "{}", ran.err);
        assert!(ran.err.contains("windtunnel doctor --apparmor-profile"), "{}", ran.err);
    }
    let doctor = restricted(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("FAIL user namespaces"), "{}", doctor.out);
    let profile = restricted(&["doctor", "--apparmor-profile"]);
    let own = binary().display().to_string();
    assert!(profile.code == 0 && profile.out.contains("userns,") && profile.out.contains(&own), "{}", profile.out);
}

#[test]
fn a_program_that_a_command_stands_for_and_that_is_not_there_is_named_with_its_package() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    for (command, package) in [("ping", "iputils-ping"), ("iperf3", "iperf3")] {
        let told = ran(windtunnel(home.path()).args(["lab", command, "lan"]).env("PATH", "/nowhere").output().unwrap());
        assert_eq!(told.code, 3, "{command}: {}", told.err);
        assert!(told.err.contains(&format!("{command} isn't in PATH")), "{}", told.err);
        assert!(told.err.contains(&format!("apt-get install {package}\n")), "{}", told.err);
    }
}

/// Whether each of eleven hops is on its line, and on no other.
fn eleven(text: &str, router: impl Fn(usize) -> String, server: &str) {
    for hop in 1..=11 {
        let wanted = if hop == 11 { server.to_owned() } else { router(hop) };
        let number =
            |line: &str| line.trim_start().split([' ', ':', '.', '?']).next().and_then(|word| word.parse().ok());
        let lines: Vec<&str> = text.lines().filter(|line| number(line) == Some(hop)).collect();
        let there = lines.iter().any(|line| line.split([' ', '(', ')']).any(|word| word == wanted));
        assert!(there, "hop {hop} is {wanted}: {text}");
    }
}

#[test]
fn every_way_of_tracing_sees_the_eleven_hops() {
    let _machine = shared();
    let (v4, v6) = (|hop| format!("198.18.255.{}", hop + 1), |hop| format!("2001:2:0:ff::{:x}", hop + 1));
    for method in ["-I", "-T -p 80", "-U -p 53", ""] {
        let traced = shell("freebsd-scp", &[], &format!("traceroute -n -q 6 {method} server"));
        eleven(&traced.out, v4, "198.19.0.1");
        let traced = shell("freebsd-scp", &[], &format!("traceroute -6 -n -q 6 {method} server6"));
        eleven(&traced.out, v6, "2001:2:0:19::1");
    }
    for method in ["", "--udp", "--tcp -P 80"] {
        let mtr = shell("freebsd-scp", &[], &format!("mtr -6 -n -r -c 6 -i 0.2 {method} server6"));
        eleven(&mtr.out, v6, "2001:2:0:19::1");
    }
    let path = shell("freebsd-scp", &[], "tracepath -6 -n server6");
    eleven(&path.out, v6, "2001:2:0:19::1");
    assert!(path.out.contains("pmtu 1500 hops 11 back 11"), "{}", path.out);
}

#[test]
fn a_trace_of_mahimahi_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (down, up) = ("0\n0\n3\n7\n7\n7\n20\n", "5\n10\n");
    std::fs::write(at("a.down"), down).unwrap();
    std::fs::write(at("a.up"), up).unwrap();
    let file = at("cell.toml");
    let imported =
        run(&["lab", "import", "--down", &at("a.down"), "--up", &at("a.up"), "--delay", "30ms", "-o", &file]);
    assert_eq!(imported.code, 0, "{}", imported.err);
    let out = at("out");
    let exported = json(&["lab", "export", &file, "--to", "mahimahi", "--dir", &out, "--json"]);
    assert!(exported["script"].as_str().unwrap().contains("mm-delay 30 mm-link"), "{exported}");
    assert!(!exported["not_expressed"].to_string().contains("trace"), "{exported}");
    for (name, text) in [("cell.down", down), ("cell.up", up)] {
        assert_eq!(std::fs::read_to_string(Path::new(&out).join(name)).unwrap(), text);
    }
    let nowhere =
        run(&["lab", "import", "--down", &at("a.down"), "--up", &at("a.up"), "-o", &at("no/such/folder/x.toml")]);
    assert!(nowhere.code == 2 && nowhere.err.contains("no/such/folder:"), "{}", nowhere.err);
}

#[test]
fn what_is_exported_to_netem_is_what_the_path_does() {
    let way = |more: &str| format!("down = {{ rate = \"8mbit\", {more} }}\nup = {{ rate = \"8mbit\", {more} }}");
    for (links, wanted, lacks) in [
        // What a link notices is lost, not delivered with flipped bits.
        (vec![way("corrupt = { probability = \"10%\", detected = true }")], "loss random 10%", "corrupt"),
        (vec![way("corrupt = { probability = \"10%\" }"); 2], "corrupt 19%", "loss"),
        (vec![way("duplicate = \"50%\""), way("duplicate = \"0%\"")], "duplicate 50%", "corrupt"),
        // Ten bits for each byte.
        (vec![way("modem = { bits_per_byte = 10 }")], "rate 6400000bit", "8000000"),
        // A rate of 0 would be none.
        (
            vec![
                way("steps = { rates = [[\"0s\", \"0bit\"], [\"1s\", \"2mbit\"]] }").replace("rate = \"8mbit\", ", ""),
            ],
            "rate 2000000bit",
            "rate 0bit",
        ),
        (
            vec![way(
                "jitter_model = { kind = \"pareto\", scale = \"24h\", shape = 1.0000000000000002, max = \"24h\" }",
            )],
            "delay 86400000ms 86400000ms distribution pareto",
            "inf",
        ),
    ] {
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let (_folder, file) = scenario("", &links);
        let exported = json(&["lab", "export", &file, "--to", "netem", "--json"]);
        let script = exported["script"].as_str().unwrap();
        assert!(script.matches(wanted).count() == 2 && !script.contains(lacks), "{wanted}: {script}");
    }
}

#[test]
fn nothing_in_a_name_becomes_a_command_of_an_exported_script() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a\ntouch owned\n.toml");
    let way = "{ rate = \"8mbit\", aqm = { kind = \"codel\" } }";
    let text =
        format!("title = \"t\\ntouch owned\"\nsource = \"s\"\n[[link]]\nname = \"l\"\ndown = {way}\nup = {way}\n");
    std::fs::write(&file, text).unwrap();
    for (target, tool) in [("netem", "tc"), ("mahimahi", "mm-delay")] {
        let mut export = windtunnel(folder.path());
        export.current_dir(folder.path()).args(["lab", "export", "--to", target]).arg(&file);
        let exported = ran(export.output().unwrap());
        assert!(exported.code == 0 && exported.out.contains("# - "), "{}", exported.err);
        let fake = folder.path().join(tool);
        std::fs::write(&fake, "#!/bin/sh\necho called\n").unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let mut run = Command::new("sh");
        run.current_dir(folder.path()).env("PATH", path).env("CLIENT_DEV", "a").env("SERVER_DEV", "b");
        run.args(["-e", "-c", &exported.out]);
        let called = ran(run.output().unwrap());
        assert!(called.code == 0 && called.out.contains("called"), "{}{}", called.err, exported.out);
        assert!(!folder.path().join("owned").exists(), "{target}: {}", exported.out);
    }
}

#[test]
fn hosts_of_the_longest_name_and_the_smallest_mtu_work_over_both_backends() {
    let _machine = shared();
    let head = "[client]\nmtu = 576\n[server]\nmtu = 576";
    let (_folder, file) = scenario(head, &["", "hop = { host = \"fifteen-letters\", host_mtu = 576 }"]);
    let script =
        "curl -sS -m 20 http://fifteen-letters/bytes/70 | wc -c; curl -sS -m 20 http://server/bytes/90000 | wc -c";
    for backend in ["veth", "auto"] {
        let ran = shell(&file, &["--backend", backend], script);
        assert_eq!(ran.out.split_whitespace().collect::<Vec<_>>(), ["70", "90000"], "{backend}: {}", ran.err);
    }
}

#[test]
fn an_end_of_a_link_that_two_links_have_is_told_apart_by_number() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let way = "{ rate = \"100mbit\", delay = \"1ms\" }";
    let link = format!("[[link]]\nname = \"twin\"\ndown = {way}\nup = {way}\n");
    let file = folder.path().join("twins.toml");
    std::fs::write(&file, format!("title = \"t\"\nsource = \"s\"\n{link}{link}")).unwrap();
    let out = folder.path().join("twins.pcapng");
    let record = |end: &str| {
        let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
        run(&["lab", "run", file, "--record", out, "--record-at", end, "--", "ping", "-c", "1", "server"])
    };
    let both = record("twin:server");
    assert!(both.code == 2 && both.err.contains("links 1 and 2 are both called"), "{}", both.err);
    let second = record("2:server");
    assert_eq!((second.code, blocks(&out).iter().filter(|kind| **kind == 6).count()), (0, 2), "{}", second.err);
}

#[test]
fn the_guides_pictures_are_what_the_program_draws() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/pictures");
    for name in ["adsl", "black-hole", "cdn-chain"] {
        let drawn = folder.path().join("drawn.svg");
        assert_eq!(run(&["lab", "show", name, "--svg", drawn.to_str().unwrap()]).code, 0);
        // Another user's tests may not see the sources.
        let Ok(shown) = std::fs::read_to_string(pictures.join(format!("{name}.svg"))) else { continue };
        let drawn = std::fs::read_to_string(drawn).unwrap();
        assert!(drawn == shown, "windtunnel lab show {name} --svg docs/guide/pictures/{name}.svg");
    }
}

#[test]
fn hosts_know_their_names_where_the_machine_has_no_file_of_names() {
    let _machine = shared();
    // As in a container that came without it: all of /etc but hosts(5), in mounts of its own.
    let script = r#"
        mkdir "$OLD" && mount --rbind /etc "$OLD" && mount -t tmpfs none /etc || exit 9
        for file in "$OLD"/*; do
            case $file in */hosts) ;; *) ln -s "$file" /etc/ ;; esac
        done
        test ! -e /etc/hosts || exit 8
        exec "$WT" lab run lan -- sh -c 'getent ahostsv4 server; getent ahostsv4 "$(cat /proc/sys/kernel/hostname)"; ls -d /etc/passwd'
    "#;
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    command.env("OLD", home.path().join("etc")).env("WT", binary()).env("HOME", home.path()).stdin(Stdio::null());
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for part in ["198.19.0.1", "127.0.1.1", "/etc/passwd"] {
        assert!(ran.out.contains(part), "{part}: {}{}", ran.out, ran.err);
    }
}
