//! A change of settings that goes through a fleet in waves: agents as processes, each in network and user namespaces of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "what takes its time in other processes is looked at now and then")]

use crate::common::host::WORLD;
use crate::common::{RunOutput, binary, eventually_within, ran, windtunnel};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_testing::{PostgresServer, require};

/// What is changed, and where: a route to one address.
const CHANGE: [&str; 4] = ["--set", "initcwnd=20", "--to", "10.0.0.9"];

/// A host: namespaces that last as long as a process in them, and an agent.
struct Host {
    name: &'static str,
    folder: PathBuf,
    holder: Child,
    agent: Option<Child>,
}

impl Drop for Host {
    fn drop(&mut self) {
        for child in self.agent.iter_mut().chain([&mut self.holder]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Host {
    fn start(name: &'static str, folder: &Path) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(folder.join("root/etc/sysctl.d")).unwrap();
        let mut holder = Command::new("unshare")
            .args(["-Urnm", "sh", "-c", &format!("{WORLD}echo ready; exec cat")])
            .env("WT", binary())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready");
        Self { name, folder, holder, agent: None }
    }

    /// A command within its namespaces.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--user", "--net", "--mount", "--preserve-credentials", "--target"])
            .arg(self.holder.id().to_string())
            .arg("--")
            .arg(program)
            .env("HOME", &self.folder)
            .env("WINDTUNNEL_STATE_DIR", self.folder.join("state"))
            .env("WINDTUNNEL_ROOT", self.folder.join("root"))
            .stdin(Stdio::null());
        command
    }

    fn start_agent(&mut self) {
        let log = std::fs::File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let mut command = self.command(&binary());
        command.args(["fleet", "agent", "--policy"]).arg(self.folder.join("agent.toml"));
        self.agent = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    fn kill_agent(&mut self) {
        let mut agent = self.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// As `systemctl restart` does.
    fn restart_agent(&mut self) {
        let mut agent = self.agent.take().unwrap();
        assert!(self.shell(&format!("kill {}", agent.id())).code == 0);
        agent.wait().unwrap();
        self.start_agent();
    }

    fn shell(&self, script: &str) -> RunOutput {
        let script = format!("PATH=$PATH:/sbin:/usr/sbin; {script}");
        ran(self.command(Path::new("/bin/sh")).args(["-c", &script]).env("WT", binary()).output().unwrap())
    }

    /// As the end of its unit's control group does.
    fn kill_guards(&self) {
        let of_it = self.folder.join("state").display().to_string();
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let said = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let said = String::from_utf8_lossy(&said).replace('\0', " ");
            if said.contains("settings guard") && said.contains(&of_it) {
                self.shell(&format!("kill -9 {}", process.file_name().display()));
            }
        }
    }

    fn has_change(&self) -> bool {
        let routes = self.shell("ip route");
        assert!(routes.out.contains("default via"), "{}{}", routes.out, routes.err);
        routes.out.lines().any(|line| line.contains("10.0.0.9") && line.contains("initcwnd 20"))
    }

    /// How many changes were ever begun on it.
    fn changes(&self) -> usize {
        std::fs::read_dir(self.folder.join("state/checkpoints")).map_or(0, Iterator::count)
    }
}

struct Fleet {
    url: String,
    home: PathBuf,
    hosts: Vec<Host>,
    postgres: PostgresServer,
}

impl Fleet {
    fn start(folder: &Path, hosts: &[(&'static str, &str)]) -> Result<Self, String> {
        let postgres = PostgresServer::start(folder)?;
        let url = postgres.database("fleet")?;
        let mut fleet = Self { url, home: folder.join("home"), hosts: Vec::new(), postgres };
        assert_eq!(fleet.run(&["fleet", "init"]).code, 0);
        for (name, policy) in hosts {
            assert_eq!(fleet.run(&["fleet", "add", name]).code, 0);
            let mut host = Host::start(name, folder);
            let server = fleet.url.replace("wt@", &format!("{name}@"));
            let journal = host.folder.join("journal.sqlite3").display().to_string();
            let text = format!(
                "server = \"{server}\"\njournal = \"{journal}\"\ntargets = [\"10.0.0.0/8\"]\npoll = \"400ms\"\n{policy}\n"
            );
            std::fs::write(host.folder.join("agent.toml"), text).unwrap();
            host.start_agent();
            fleet.hosts.push(host);
        }
        Ok(fleet)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = windtunnel(&self.home);
        // NAME before the URL, everything else after it.
        let (first, rest) = args.split_at(args.len().min(if args[1] == "init" || args[1] == "status" { 2 } else { 3 }));
        command.args(first).arg(&self.url).args(rest);
        command
    }

    fn run(&self, args: &[&str]) -> RunOutput {
        ran(self.command(args).output().unwrap())
    }

    fn json(&self, args: &[&str]) -> (i32, Value) {
        let ran = self.run(&[args, &["--json"]].concat());
        (ran.code, serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err)))
    }

    /// How far a host is with a change, as the server knows, and why.
    fn phase(&self, change: &str, host: &str) -> String {
        let sql = format!(
            "SELECT h.phase || ': ' || h.reason FROM fleet_rollout_hosts h JOIN fleet_rollouts USING (rollout) \
             WHERE name = '{change}' AND agent = '{host}'"
        );
        self.postgres.sql("fleet", &sql).unwrap()
    }

    /// Whoever drives a change, while it runs.
    fn drive(&self, name: &str, more: &[&str]) -> Child {
        let mut driver = self.command(&[&["fleet", "apply", name][..], more, &["--json"]].concat());
        driver.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn of_hosts<T>(&self, of: impl Fn(&Host) -> T) -> Vec<T> {
        self.hosts.iter().map(of).collect()
    }
}

fn phases(change: &Value) -> Vec<&str> {
    change["hosts"].as_array().unwrap().iter().map(|host| host["phase"].as_str().unwrap()).collect()
}

#[test]
fn a_change_goes_through_in_waves_and_one_whose_canary_cant_confirm_it_never_touches_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let may = "changes = [\"initcwnd\"]";
    let hosts = [("a", may), ("b", may), ("c", "changes = [\"rwin\"]")];
    let mut fleet = require!("postgres", Fleet::start(folder.path(), &hosts));
    let apply = |fleet: &Fleet, name: &str, more: &[&str]| {
        fleet.json(&[&["fleet", "apply", name][..], &CHANGE, &["--watch", "500ms"], more].concat())
    };

    // All who may have it, and confirm it over a new connection.
    let (code, done) = apply(&fleet, "one", &[]);
    assert_eq!((code, &done["state"]), (0, &Value::from("done")), "{done}");
    assert_eq!(phases(&done), ["confirmed", "confirmed", "refused"], "{done}");
    assert!(done["hosts"][2]["reason"].as_str().unwrap().contains("doesn't allow a change of initcwnd"), "{done}");
    assert_eq!(fleet.of_hosts(Host::has_change), [true, true, false]);
    let (again, _) = fleet.json(&["fleet", "apply", "one"]);
    assert_eq!(again, 0, "it is at its end, and nothing more is to be done");
    assert_eq!(fleet.of_hosts(Host::changes), [1, 1, 0]);
    let refused = fleet.run(&[&["fleet", "apply", "one"][..], &CHANGE].concat());
    assert!(refused.code == 2 && refused.err.contains("already"), "{}", refused.err);
    // And back.
    let (code, undone) = fleet.json(&["fleet", "undo", "one"]);
    assert_eq!((code, &undone["state"]), (0, &Value::from("undone")), "{undone}");
    assert_eq!(phases(&undone), ["undone", "undone", "refused"], "{undone}");
    assert_eq!(fleet.of_hosts(Host::has_change), [false; 3]);

    // What has to be reached isn't with it: the canary takes it back at once, nobody else hears of it.
    let (code, stopped) = apply(&fleet, "two", &["--reach", "10.0.0.1:9"]);
    assert_eq!((code, &stopped["state"]), (1, &Value::from("undone")), "{stopped}");
    assert_eq!(phases(&stopped), ["failed", "untouched", "untouched"], "{stopped}");
    assert!(stopped["reason"].as_str().unwrap().contains("10.0.0.1:9 takes no new connection"), "{stopped}");
    assert_eq!(fleet.of_hosts(Host::changes), [2, 1, 0]);

    // The canary is gone before it can be told to confirm: its own guard takes it back, and nobody else hears of it.
    let three = [&["fleet", "apply", "three"][..], &CHANGE, &["--watch", "20s", "--confirm-within", "21s"]].concat();
    let mut driver = fleet.command(&[&three[..], &["--patience", "20s"]].concat());
    let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let canary = "SELECT phase FROM fleet_rollout_hosts JOIN fleet_rollouts USING (rollout) WHERE name = 'three' AND agent = 'a'";
    let phase = |fleet: &Fleet| fleet.postgres.sql("fleet", canary).unwrap();
    while phase(&fleet) != "applied" {
        assert!(driver.try_wait().unwrap().is_none(), "it ended, and the canary is {}", phase(&fleet));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(fleet.hosts[0].has_change());
    fleet.hosts[0].kill_agent();
    // Whoever drives it dies, too; the next one goes on where it stands. The guard's time is made short by its clock at the server only.
    driver.kill().unwrap();
    driver.wait().unwrap();
    let back = "UPDATE fleet_rollout_hosts SET since = since - interval '60 s' WHERE agent = 'a' AND phase = 'applied'";
    fleet.postgres.sql("fleet", back).unwrap();
    let mut driver = fleet.command(&["fleet", "apply", "three"]);
    let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while phase(&fleet) == "applied" && fleet.hosts[0].has_change() {
        assert!(driver.try_wait().unwrap().is_none_or(|status| status.code() == Some(1)));
        std::thread::sleep(Duration::from_millis(50));
    }
    // The agent is back, is told that it is called off, and finds that its guard was faster.
    fleet.hosts[0].start_agent();
    while phase(&fleet) != "undone" {
        std::thread::sleep(Duration::from_millis(50));
    }
    driver.wait().unwrap();
    let (code, end) = fleet.json(&["fleet", "undo", "three"]);
    assert_eq!((code, phases(&end)), (0, vec!["undone", "untouched", "untouched"]), "{end}");
    assert_eq!(fleet.of_hosts(Host::has_change), [false; 3]);
    assert_eq!(fleet.of_hosts(Host::changes), [3, 1, 0], "b and c never began anything since");
    let status = fleet.run(&["fleet", "status"]).out;
    assert!(status.contains("change three: undone: a: it didn't ask in time to confirm"), "{status}");
    assert!(fleet.hosts.iter().all(|host| host.agent.is_some() && !host.name.is_empty()));
}

/// What a busy machine and a fleet's pauses may take.
fn until(what: &str, is_so: impl FnMut() -> bool) {
    eventually_within(300, what, is_so);
}

fn end_of(driver: Child) -> (i32, Value) {
    let ran = ran(driver.wait_with_output().unwrap());
    (ran.code, serde_json::from_str(&ran.out).unwrap())
}

#[test]
fn whatever_ends_an_agent_its_host_comes_back_and_the_owner_hears_what_is_so() {
    let folder = tempfile::tempdir().unwrap();
    let may = "changes = [\"initcwnd\", \"ttl\"]\nhost_wide = true";
    let mut fleet = require!("postgres", Fleet::start(folder.path(), &[("a", may), ("b", may)]));
    let is_applied = |fleet: &Fleet, change: &str, host: &str| {
        until("applied", || fleet.phase(change, host) == "applied:");
    };

    // Somebody confirms it on the host, and the agent ends before it says so: it stays, and nothing is taken back.
    let driver = fleet.drive("kept", &[&CHANGE[..], &["--watch", "3s", "--confirm-within", "120s"]].concat());
    is_applied(&fleet, "kept", "a");
    assert_eq!(fleet.hosts[0].shell("\"$WT\" settings confirm").code, 0);
    fleet.hosts[0].restart_agent();
    is_applied(&fleet, "kept", "b");
    assert_eq!(fleet.hosts[1].shell("\"$WT\" settings confirm").code, 0);
    fleet.hosts[1].kill_agent();
    fleet.hosts[1].start_agent();
    let (code, kept) = end_of(driver);
    assert_eq!((code, phases(&kept)), (0, vec!["confirmed", "confirmed"]), "{kept}");
    assert_eq!(fleet.of_hosts(Host::has_change), [true, true]);
    let (code, undone) = fleet.json(&["fleet", "undo", "kept"]);
    assert_eq!((code, phases(&undone)), (0, vec!["undone", "undone"]), "{undone}");
    assert_eq!(fleet.of_hosts(Host::has_change), [false, false]);

    // The agent and both guards are killed, and the next agent reaches no server: it takes the change back when its time is over.
    let only_a = ["--on", "a", "--watch", "4s", "--confirm-within", "5s", "--patience", "100s"];
    let driver = fleet.drive("cut", &[&CHANGE[..], &only_a].concat());
    is_applied(&fleet, "cut", "a");
    fleet.hosts[0].kill_agent();
    fleet.hosts[0].kill_guards();
    assert!(fleet.hosts[0].has_change());
    let policy = fleet.hosts[0].folder.join("agent.toml");
    let there = std::fs::read_to_string(&policy).unwrap();
    std::fs::write(&policy, there.replace("%2F", "%2Fnowhere%2F")).unwrap();
    fleet.hosts[0].start_agent();
    until("put back without a server", || !fleet.hosts[0].has_change());
    std::fs::write(&policy, &there).unwrap();
    fleet.hosts[0].restart_agent();
    let (code, cut) = end_of(driver);
    assert_eq!((code, phases(&cut)), (1, vec!["undone"]), "{cut}");

    // As long as nobody kills them, guards outlive their agent: systemd ends nothing else of its unit.
    let unit = include_str!("../../../../packaging/windtunnel-agent.service");
    assert!(unit.contains("\nKillMode=process\n"));

    // It ends by itself, since its journal is damaged: at once, and not only when its guard's time is over.
    let driver = fleet.drive("own", &[&CHANGE[..], &["--on", "a", "--watch", "100s", "--patience", "100s"]].concat());
    is_applied(&fleet, "own", "a");
    let damage = "cd \"$HOME\" && rm -f journal.sqlite3-wal && head -c 40000 /dev/urandom > journal.sqlite3";
    assert_eq!(fleet.hosts[0].shell(damage).code, 0);
    assert!(!fleet.hosts[0].agent.as_mut().unwrap().wait().unwrap().success());
    assert!(!fleet.hosts[0].has_change());
    fleet.hosts[0].shell("cd \"$HOME\" && rm -f journal.sqlite3 journal.sqlite3-*");
    fleet.hosts[0].start_agent();
    let (code, own) = end_of(driver);
    assert_eq!((code, phases(&own)), (1, vec!["undone"]), "{own}");

    // What can't be put back is never called taken back, whoever is started anew meanwhile.
    let ttl = ["--set", "ttl=77", "--to", "host", "--on", "a"];
    let mut driver = fleet.drive("stuck", &[&ttl[..], &["--watch", "9s", "--confirm-within", "10s"]].concat());
    is_applied(&fleet, "stuck", "a");
    let sealed = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys";
    assert_eq!(fleet.hosts[0].shell(sealed).code, 0);
    driver.kill().unwrap();
    driver.wait().unwrap();
    let mut undo = fleet.command(&["fleet", "undo", "stuck", "--json"]);
    let driver = undo.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let failed = |fleet: &Fleet| fleet.phase("stuck", "a").contains("can't be taken back");
    until("it is told to take it back", || failed(&fleet));
    let stuck =
        "grep -q '\"phase\":\"revert-failed\".*\"by_guard\":true' \"$WINDTUNNEL_STATE_DIR\"/checkpoints/*/state.json";
    until("its guard can't", || fleet.hosts[0].shell(stuck).code == 0);
    fleet.hosts[0].restart_agent();
    fleet.postgres.sql("fleet", "UPDATE fleet_rollout_hosts SET reason = ''").unwrap();
    until("it is asked again", || failed(&fleet) || fleet.phase("stuck", "a").starts_with("undone"));
    assert!(fleet.phase("stuck", "a").starts_with("applied"), "{}", fleet.phase("stuck", "a"));
    assert_eq!(fleet.hosts[0].shell("umount /proc/sys").code, 0);
    let (code, back) = end_of(driver);
    assert_eq!((code, phases(&back)), (0, vec!["undone"]), "{back}");
    assert_eq!(fleet.hosts[0].shell("cat /proc/sys/net/ipv4/ip_default_ttl").out.trim(), "64");
}

/// A packaged agent's folder and view of the files, as systemd makes them for a dynamic user, and what the guide says for root.
const PACKAGED: &str = r#"
mount -t tmpfs none /var/lib && cd /var/lib && mkdir -p -m 700 private/windtunnel-agent && chmod 700 private
# Where everybody may go, unlike a checkout of root's.
touch wt && mount --bind "$WT" wt && WT=/var/lib/wt
chown 1000:1000 private/windtunnel-agent && ln -s private/windtunnel-agent windtunnel-agent
unshare -m sh -c 'mount --bind private/windtunnel-agent /mnt && mount -t tmpfs -o mode=755 none private &&
    mkdir private/windtunnel-agent && mount --bind /mnt private/windtunnel-agent &&
    exec setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all,+net_admin --ambient-caps=+net_admin \
        env XDG_STATE_HOME=/var/lib/windtunnel-agent sh -c "$0"' \
    '"$WT" settings apply initcwnd=20 --to 10.0.0.9 --confirm-within 5min > windtunnel-agent/said && exec cat' <&3 &
main=$!
until grep -qs ' settings undo' private/windtunnel-agent/said; do kill -0 $main || exit 9; sleep 0.1; done
sudo() { "$@"; }
systemctl() { echo $main; }
"#;

#[test]
fn root_sees_and_takes_back_what_a_packaged_agent_changed_as_the_guide_says() {
    let is_root = wt_sys::process::effective_uid() == 0;
    require!("root", is_root.then_some(()).ok_or("only root gives a namespace many users"));
    let guide = include_str!("../../../../docs/guide/fleet.md");
    let said = guide.lines().skip_while(|line| !line.contains("agent=$(systemctl"));
    let said: Vec<&str> = said.take_while(|line| line.starts_with("    ")).collect();
    assert_eq!(said.len(), 5, "{said:?}");
    let said = said.join("\n").replace("windtunnel settings", "\"$WT\" settings");
    let folder = tempfile::tempdir().unwrap();
    let mut holder = Command::new("unshare").args(["-Unm", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    let of_holder = |file: &str| format!("/proc/{}/{file}", holder.id());
    let same =
        |file: &str| std::fs::read_link(of_holder(file)).ok() == std::fs::read_link(format!("/proc/self/{file}")).ok();
    until("in namespaces of its own", || !same("ns/mnt"));
    for map in ["uid_map", "gid_map"] {
        std::fs::write(of_holder(map), "0 0 65536").unwrap();
    }
    // The state directory isn't to be named: it follows from whose it is.
    let script = format!("exec 3<&0; {WORLD}{PACKAGED}{said}\nip route; kill $main");
    let mut command = Command::new("nsenter");
    command.args(["-U", "-n", "-m", "-S", "0", "-G", "0", "-t"]).arg(holder.id().to_string());
    command.args(["sh", "-c", &script]).env("WT", binary()).env("HOME", folder.path()).stdin(Stdio::piped());
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stays = run.stdin.take();
    let ran = ran(run.wait_with_output().unwrap());
    drop(stays);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(ran.out.contains("applied        initcwnd=20 on 10.0.0.9"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("Change 1 was taken back"), "{}{}", ran.out, ran.err);
    assert!(!ran.out.lines().last().unwrap().contains("initcwnd 20"), "{}", ran.out);
}
