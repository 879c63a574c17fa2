//! A change of settings that goes through a fleet in waves: agents as processes, each in network and user namespaces of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "what takes its time in other processes is looked at now and then")]

use crate::common::host::WORLD;
use crate::common::{RunOutput, binary, ran, windtunnel};
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

    fn has_change(&self) -> bool {
        let routes = ran(self
            .command(Path::new("/bin/sh"))
            .args(["-c", "PATH=$PATH:/sbin:/usr/sbin ip route"])
            .output()
            .unwrap());
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
