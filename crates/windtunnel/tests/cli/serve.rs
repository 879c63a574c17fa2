//! Our own remote host: who gets in, what they get, and what everybody else gets.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common;
use crate::common::{RunOutput, eventually, ran, windtunnel};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server on the loopback.
pub(super) struct Served {
    pub(super) child: Child,
    /// As clients write it, the key in it.
    pub(super) url: String,
    pub(super) address: String,
    metrics: String,
    home: tempfile::TempDir,
}

impl Served {
    pub(super) fn start(more: &[&str]) -> Self {
        Self::start_in("exec \"$0\" \"$@\"", more)
    }

    /// Starts it by a line of shell, which ends in running `"$0" "$@"`.
    pub(super) fn start_in(shell: &str, more: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let metrics = free_port();
        let mut child = common::windtunnel_in_shell(home.path(), shell)
            .env("XDG_STATE_HOME", home.path().join("state"))
            .env_remove("STATE_DIRECTORY")
            .args(["serve", "--listen", "127.0.0.1:0", "--metrics", &metrics])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.by_ref().map(|line| line.unwrap()).find(|line| line.contains("wt://")).unwrap();
        // What it still says shall not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.trim().to_owned();
        let address = url.rsplit_once('@').unwrap().1.to_owned();
        Self { child, url, address, metrics, home }
    }

    pub(super) fn tune(&self, url: &str, more: &[&str]) -> RunOutput {
        let home = tempfile::tempdir().unwrap();
        let mut command = command(home.path());
        command.args(["tune", url, "--levels", "mss=1000", "--trial", "200ms", "--json", "--pause", "10ms"]);
        if !more.contains(&"--budget") {
            command.args(["--budget", "6 trials"]);
        }
        ran(command.args(more).output().unwrap())
    }

    /// What is answered to a question for the metrics with these lines in its head.
    fn metrics(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.write_all(format!("GET /metrics HTTP/1.1\r\n{head}\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    pub(super) fn metric(&self, name: &str) -> u64 {
        let text = self.metrics("");
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(home: &std::path::Path) -> Command {
    let mut command = windtunnel(home);
    command.env("XDG_STATE_HOME", home.join("state")).env_remove("STATE_DIRECTORY");
    command
}

/// An address on which nobody listens now.
fn free_port() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn json_of(ran: &RunOutput) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

#[test]
fn those_with_the_key_are_served_in_both_directions_and_both_ends_tell_what_they_saw() {
    let served = Served::start(&[]);
    for direction in ["down", "up"] {
        let ran = served.tune(&served.url, &["--direction", direction]);
        let report = json_of(&ran);
        let table = report["trial_table"].as_array().unwrap();
        assert!(
            table.iter().all(|row| row["status"] == "completed" && row["notes"] == serde_json::json!([])),
            "{table:#?}"
        );
        assert!(report["limits"]["rwnd_limited"].is_number(), "{direction}: {}", report["limits"]);
        assert!(!ran.out.contains(served.url.split('@').next().unwrap()), "the key isn't shown or kept");
    }
    let tests = served.metric("windtunnel_tests_total");
    assert!(tests >= 14, "{tests}");
    assert!(served.metric("windtunnel_sent_bytes_total") > 0 && served.metric("windtunnel_received_bytes_total") > 0);
    assert_eq!(served.metric("windtunnel_unauthenticated_total"), 2, "the two looks whether somebody listens");
}

#[test]
fn who_goes_on_with_an_experiment_is_asked_for_the_key_and_a_server_that_is_gone_is_no_web_server() {
    let served = Served::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let tune = |target: &str| {
        let more = ["--levels", "mss=1000", "--trial", "200ms", "--pause", "10ms", "--budget", "4 trials", "--json"];
        ran(command(home.path()).args(["tune", target]).args(more).output().unwrap())
    };
    let id = json_of(&tune(&served.url))["id"].as_str().unwrap().to_owned();
    let again = ran(command(home.path()).args(["tune", "--resume", "last"]).output().unwrap());
    assert_eq!(again.code, 2, "{}", again.err);
    assert!(again.err.contains("no key is kept in the journal"), "{}", again.err);
    let at = served.url.split_once('@').unwrap().1;
    assert!(again.err.contains(&format!("windtunnel tune wt://{at} --key-file FILE --resume {id}")), "{}", again.err);
    let url = served.url.clone();
    drop(served);
    let gone = tune(&url);
    assert!(gone.code == 4 && gone.err.contains("windtunnel serve there"), "{} {}", gone.code, gone.err);
}

#[test]
fn what_the_far_end_sets_is_asked_granted_and_observed() {
    let served = Served::start(&["--cc", "reno,cubic"]);
    let ran = served.tune(&served.url, &["--levels", "cc=reno", "--levels", "sndbuf=65536", "--budget", "8 trials"]);
    let report = json_of(&ran);
    let row = report["granted"].as_array().unwrap().iter().find(|row| row["knob"] == "cc").unwrap();
    assert_eq!(
        (&row["granted"][0], &row["observed"][0], &row["differs"]),
        (&"reno".into(), &"reno".into(), &false.into())
    );
    let up = served.tune(&served.url, &["--direction", "up", "--levels", "rwin=65536"]);
    let report = json_of(&up);
    let row = report["granted"].as_array().unwrap().iter().find(|row| row["knob"] == "rwin").unwrap();
    assert_eq!((&row["granted"][0], &row["scope"]), (&65_536.into(), &"socket (of the far end)".into()));
    let refused = served.tune(&served.url, &["--levels", "cc=nonsuch"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(refused.err.contains("nonsuch isn't allowed here"), "{}", refused.err);
}

#[test]
fn a_control_of_ours_is_used_at_whichever_end_sends() {
    let listed = common::json(&["cc", "list", "--json"]);
    if !listed["obstacle"].is_null() {
        // Told, and not just left out.
        let home = tempfile::tempdir().unwrap();
        let refused = ran(command(home.path()).args(["serve", "--cc", "chd@pmax=41%"]).output().unwrap());
        assert_eq!(refused.code, 3, "{}", refused.err);
        return;
    }
    let name = "chd@pmax=41%";
    let served = Served::start(&["--cc", &format!("reno,{name}")]);
    for direction in ["down", "up"] {
        let levels = format!("cc=reno,{name}");
        let ran = served.tune(
            &served.url,
            &["--direction", direction, "--knobs", "cc", "--levels", &levels, "--budget", "12 trials"],
        );
        let report = json_of(&ran);
        let rows = report["granted"].as_array().unwrap();
        let row = rows.iter().find(|row| row["granted"][0].as_str().is_some_and(|name| name.starts_with("chd@")));
        let row = row.unwrap_or_else(|| panic!("{direction}: {rows:#?}"));
        assert!(row["observed"][0].as_str().unwrap().starts_with("wt_chd_"), "{direction}: {row}");
    }
    let refused = served.tune(&served.url, &["--levels", "cc=chd@pmax=42%"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(refused.err.contains("isn't allowed here"), "{}", refused.err);
    drop(served);
}

#[test]
fn strangers_get_nothing_but_a_closed_connection() {
    let served = Served::start(&[]);
    let key: String = "0123456789abcdef".repeat(4);
    let ran = served.tune(&format!("wt://{key}@{}", served.address), &[]);
    assert_eq!(ran.code, 4, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("the key is wrong") && ran.err.contains("--key-file"), "{}", ran.err);
    let without = served.tune(&format!("wt://{}", served.address), &[]);
    assert!(without.code == 2 && without.err.contains("--key-file FILE"), "{}", without.err);
    for greeting in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n                              "[..], &[0; 48], &[0xFF; 4096]] {
        let mut stream = TcpStream::connect(&served.address).unwrap();
        stream.write_all(greeting).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut heard = Vec::new();
        // A reset is as good as an end.
        let _ = stream.read_to_end(&mut heard);
        assert!(heard.is_empty(), "{heard:?}");
    }
}

#[test]
fn the_key_of_a_client_comes_from_a_file_or_the_environment_and_in_an_address_it_is_warned_of() {
    let served = Served::start(&[]);
    let (bare, warning) = (format!("wt://{}", served.address), "every user of this host can read the key");
    let file = served.home.path().join("state/windtunnel/serve.key");
    let by_file = served.tune(&bare, &["--key-file", file.to_str().unwrap(), "--dry-run"]);
    assert!(by_file.code == 0 && !by_file.err.contains(warning), "{}", by_file.err);
    let key = std::fs::read_to_string(&file).unwrap();
    let arguments = ["tune", &bare, "--dry-run", "--levels", "mss=1000"];
    let home = tempfile::tempdir().unwrap();
    let by_variable = ran(command(home.path()).args(arguments).env("WINDTUNNEL_KEY", key.trim()).output().unwrap());
    assert!(by_variable.code == 0 && !by_variable.err.contains(warning), "{}", by_variable.err);
    let in_address = served.tune(&served.url, &["--dry-run"]);
    assert!(in_address.code == 0 && in_address.err.contains(warning), "{}", in_address.err);
    assert!(!in_address.err.contains(key.trim()), "{}", in_address.err);
    let wrong = served.tune(&bare, &["--key-file", "/dev/null"]);
    assert!(wrong.code == 2 && wrong.err.contains("a key has 64 hexadecimal digits"), "{}", wrong.err);
}

#[test]
fn where_descriptors_run_out_strangers_make_room_and_the_processor_rests() {
    let served = Served::start_in("ulimit -n 64; exec \"$0\" \"$@\"", &[]);
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", served.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&served.address).unwrap()).collect();
    eventually("the first of them are sent away", || served.metric("windtunnel_unauthenticated_total") >= 100);
    let before = ticks();
    wt_sys::poll::wait_readable(&[], Some(Duration::from_secs(1))).unwrap();
    // 100 ticks are a second: a loop that never rests takes as many as it gets.
    assert!(ticks() - before < 20, "{} ticks", ticks() - before);
    let ran = served.tune(&served.url, &[]);
    assert!(ran.code == 1, "{}{}", ran.out, ran.err);
    drop(idle);
}

#[test]
fn a_recorded_greeting_is_worth_nothing() {
    let served = Served::start(&[]);
    let key: wt_load::SharedKey = served.url.split('@').next().unwrap()[5..].parse().unwrap();
    let greeting = wt_load::greeting(&key).unwrap();
    for (time, expected) in [("first", 48), ("second", 0)] {
        let mut stream = TcpStream::connect(&served.address).unwrap();
        stream.write_all(&greeting).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut heard = [0; 48];
        let mut length = 0;
        while length < 48 {
            match stream.read(&mut heard[length..]) {
                Ok(0) | Err(_) => break,
                Ok(n) => length += n,
            }
        }
        assert_eq!(length, expected, "the {time} time");
    }
}

#[test]
fn a_flood_of_half_open_connections_neither_grows_the_server_nor_keeps_clients_out() {
    let served = Served::start(&[]);
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = memory();
    let mut open = Vec::new();
    for number in 0..10_000 {
        // The server closes most at once, and the kernel may be out of ports for a moment.
        if let Ok(mut stream) = TcpStream::connect(&served.address) {
            let _ = stream.write_all(&[number as u8; 20]);
            if open.len() < 500 {
                open.push(stream);
            }
        }
    }
    let ran = served.tune(&served.url, &[]);
    // While its own address is full of strangers a client may be sent away, but not for long.
    assert!(matches!(ran.code, 1 | 4), "{}{}", ran.out, ran.err);
    assert!(memory() < before + 20_000, "{before} kB before, {} kB after", memory());
    drop(open);
    eventually("those who were silent are forgotten", || {
        let ran = served.tune(&served.url, &[]);
        ran.code == 1
    });
}

#[test]
fn tests_wait_for_their_turn_and_quotas_hold() {
    let served = Served::start(&["--quota-tests", "9"]);
    let (first, second) = std::thread::scope(|scope| {
        let one = scope.spawn(|| served.tune(&served.url, &["--budget", "4 trials"]));
        let other = scope.spawn(|| served.tune(&served.url, &["--budget", "4 trials"]));
        (one.join().unwrap(), other.join().unwrap())
    });
    // Six tests each were too many for one address: pilot, warm-up and four. What was measured is kept.
    for ran in [&first, &second] {
        assert!(matches!(ran.code, 1 | 4), "{}{}", ran.out, ran.err);
    }
    assert_eq!(served.metric("windtunnel_tests_total"), 9);
    assert!(served.metric("windtunnel_refused_total") >= 1);
    assert_eq!(served.metric("windtunnel_tests_running"), 0);
}

#[test]
fn a_server_that_wants_to_be_left_alone_for_a_day_ends_it_with_its_reason_whenever_it_says_so() {
    // In the pilot, and in the first round; with a limit of time there is no waiting for it either.
    for quota in ["1", "3"] {
        let served = Served::start(&["--quota-tests", quota]);
        let ran = served.tune(&served.url, &["--budget", "10min"]);
        assert_eq!(ran.code, 4, "{quota}: {}{}", ran.out, ran.err);
        for part in ["wants to be left alone for", "your quota of today is used up"] {
            assert!(ran.err.contains(part), "{quota}: {}", ran.err);
        }
    }
}

#[test]
fn a_test_that_the_server_refuses_is_none_and_isnt_kept() {
    let served = Served::start(&["--quota-tests", "1"]);
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| ran(command(home.path()).args(args).output().unwrap());
    let test = |url: &str| run(&["test", url, "--time", "200ms", "--no-hops"]);
    let stranger = test(&format!("wt://{}@{}", "0123456789abcdef".repeat(4), served.address));
    for told in ["the key is wrong", "--key-file", "nothing is kept"] {
        assert!(stranger.code == 4 && stranger.err.contains(told), "{} {}", stranger.code, stranger.err);
    }
    let done = test(&served.url);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let used_up = test(&served.url);
    assert!(used_up.code == 4 && used_up.err.contains("quota of today"), "{} {}", used_up.code, used_up.err);
    assert!(!used_up.err.contains("left alone"), "{}", used_up.err);
    let listed: Value = serde_json::from_str(&run(&["journal", "list", "--json"]).out).unwrap();
    assert_eq!(listed["experiments"].as_array().map(Vec::len), Some(1), "{listed:#}");
}

#[test]
fn the_key_is_shown_once_and_kept_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let served = Served::start(&[]);
    let file = served.home.path().join("state/windtunnel/serve.key");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut again =
        command(served.home.path()).args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = again.stdout.take().unwrap();
    let mut said = String::new();
    let mut byte = [0];
    while !said.contains("--new-key") && out.read(&mut byte).unwrap() == 1 {
        said.push(char::from(byte[0]));
    }
    assert!(said.contains("listening on 127.0.0.1:") && !said.contains("wt://"), "{said}");
    again.kill().unwrap();
    again.wait().unwrap();
}

#[test]
fn told_to_stop_it_lets_tests_finish_and_nobody_in() {
    let mut served = Served::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let mut client = command(home.path());
    client.args(["tune", &served.url, "--levels", "mss=1000", "--trial", "2s", "--budget", "6 trials", "--json"]);
    let client = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("a test is under way", || served.metric("windtunnel_tests_running") == 1);
    served.signal("-TERM");
    let status = served.child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(TcpStream::connect(&served.address).is_err());
    Command::new("kill").args(["-INT", &client.id().to_string()]).status().unwrap();
    let _ = client.wait_with_output().unwrap();
}

#[test]
fn an_upload_that_runs_when_a_server_is_told_to_stop_is_completed_and_the_metrics_last_until_then() {
    let mut served = Served::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let mut client = command(home.path());
    let levels = ["--levels", "mss=1000", "--direction", "up", "--trial", "2s", "--budget", "4 trials"];
    client.args(["tune", &served.url, "--json-stream"]).args(levels).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = client.spawn().unwrap();
    eventually("a test is under way", || served.metric("windtunnel_tests_running") == 1);
    served.signal("-TERM");
    assert!(served.metric("windtunnel_tests_total") >= 1, "while it finishes");
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    Command::new("kill").args(["-INT", &client.id().to_string()]).status().unwrap();
    let mut told = String::new();
    client.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    client.wait().unwrap();
    assert!(!told.contains("is missing") && !told.contains("doesn't say what it received"), "{told}");
}

#[test]
fn metrics_for_this_host_alone_are_answered_under_no_name_that_may_have_been_rebound() {
    let served = Served::start(&[]);
    let answered = |host: &str| served.metrics(&format!("Host: {host}\r\n"));
    let port = served.metrics.rsplit_once(':').unwrap().1;
    assert!(answered(&format!("evil.example:{port}")).starts_with("HTTP/1.1 403 "));
    for host in ["127.0.0.1", "localhost"] {
        assert!(answered(&format!("{host}:{port}")).starts_with("HTTP/1.1 200 "), "{host}");
    }
}

#[test]
fn without_a_word_only_this_host_is_served() {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(home.path());
    let mut child = command.arg("serve").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let listening: Vec<String> = lines.by_ref().take_while(|line| line.starts_with("listening")).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // Where somebody else has the port, it says so instead.
    assert!(listening.iter().all(|line| line.contains(" 127.0.0.1:") || line.contains(" [::1]:")), "{listening:?}");
}

#[test]
fn workloads_of_one_and_of_several_connections_are_served_one_test_at_a_time() {
    let served = Served::start(&[]);
    for (args, name) in [
        (&["--workload", "transactions"][..], "transactions a second"),
        (&["--workload", "stream", "--direction", "up"], "lateness (99 %)"),
        (&["--workload", "page"], "load time"),
        (&["--direction", "both"], "goodput both ways (geometric mean)"),
    ] {
        let ran = served.tune(&served.url, &[args, &["--budget", "4 trials"]].concat());
        let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.err));
        assert_eq!(report["measured"]["name"], name);
        let table = report["trial_table"].as_array().unwrap();
        assert!(table.iter().all(|row| row["status"] == "completed"), "{name}: {table:#?}");
    }
    assert_eq!(served.metric("windtunnel_refused_total"), 0);
}

#[test]
fn where_it_listens_is_one_object_of_json_with_the_key_once() {
    let home = tempfile::tempdir().unwrap();
    for (start, clients) in [(0, 1), (1, 0)] {
        let mut child = command(home.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--name", "lab.example", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["schema_version"], 1);
        assert!(answer["listening"][0].as_str().unwrap().starts_with("127.0.0.1:"), "{answer}");
        let told = answer["clients"].as_array().unwrap();
        assert_eq!(told.len(), clients, "start {start}: {answer}");
        assert!(told.iter().all(|address| address.as_str().unwrap().contains("@lab.example:")), "{answer}");
    }
}
