//! `windtunnel web` as a browser or a script uses it.

use crate::common::{binary, ran};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server with a journal of its own.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) host: String,
    pub(super) token: String,
    pub(super) directory: tempfile::TempDir,
}

/// An answer: status, head, body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn what(&self) -> String {
        self.json()["error"]["what"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    pub(super) fn start() -> Self {
        Self::start_on("127.0.0.1:0")
    }

    fn start_on(listen: &str) -> Self {
        Self::start_with(&["--listen", listen])
    }

    pub(super) fn start_with(args: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(directory.path().join("tmp")).expect("a folder");
        let mut child = Command::new(binary())
            .args(["web", "--json"])
            .args(args)
            .env("XDG_DATA_HOME", directory.path())
            .env("WINDTUNNEL_STATE_DIR", directory.path().join("state"))
            .env("WINDTUNNEL_ROOT", directory.path())
            .env("TMPDIR", directory.path().join("tmp"))
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("windtunnel");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("where it listens");
        let ready: Value = serde_json::from_str(&line).expect("an object");
        let url = ready["url"].as_str().expect("an address");
        let host = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { child, host, token: ready["token"].as_str().expect("a token").to_owned(), directory }
    }

    /// Sends a request as it is; the connection for the answer.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).expect("a connection");
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += &format!("host: {}\r\n", self.host);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).expect("a request sent");
        stream
    }

    pub(super) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        read(self.send(method, path, headers, body))
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[JSON], &body.to_string())
    }

    /// What the command line prints, with the same journal.
    pub(super) fn command(&self, args: &[&str]) -> Value {
        let output = Command::new(binary()).args(args).env("XDG_DATA_HOME", self.directory.path()).output();
        let ran = ran(output.expect("windtunnel"));
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
    }

    /// Interrupts it and waits for its end.
    fn interrupt(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
        self.child.wait().expect("its end").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn a_scrape_is_what_the_command_prints_under_the_rules_of_every_read() {
    let server = Server::start();
    let printed = || {
        let mut command = Command::new(binary());
        command.arg("metrics").env("XDG_DATA_HOME", server.directory.path());
        command.env("WINDTUNNEL_STATE_DIR", server.directory.path().join("state"));
        command.env("WINDTUNNEL_ROOT", server.directory.path());
        ran(command.output().expect("windtunnel")).out
    };
    // No journal yet, and none is made for it.
    let first = server.get("/metrics");
    assert_eq!((first.status, first.body.as_str()), (200, printed().as_str()));
    assert!(first.head.contains("content-type: text/plain; version=0.0.4"), "{}", first.head);
    assert!(!server.directory.path().join("windtunnel").exists());

    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/journal/tune-7.json");
    let imported = server.command(&["journal", "import", "--json", golden]);
    assert_eq!(imported["imported"].as_array().map(Vec::len), Some(1), "{imported}");
    let journal = server.directory.path().join("windtunnel/journal.sqlite3");
    let before = std::fs::read(&journal).expect("a journal");
    let second = server.get("/metrics");
    assert_eq!((second.status, second.body.as_str()), (200, printed().as_str()));
    assert!(second.body.contains("windtunnel_verdict{target=\"path\""), "{}", second.body);
    assert_eq!(std::fs::read(&journal).expect("a journal"), before, "a scrape writes nothing");

    assert_eq!(server.ask("GET", "/metrics", &[("host", "evil.example")], "").status, 403);
    assert_eq!(server.ask("GET", "/metrics", &[("sec-fetch-site", "cross-site")], "").status, 403);
    assert_eq!(server.ask("POST", "/metrics", &[], "").status, 405);
}

/// Reads an answer to its end.
fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

#[test]
fn answers_are_the_objects_that_the_command_line_prints() {
    let server = Server::start();
    for (path, args) in [
        (
            "/api/v1/overhead?encap=vlan%2Bethernet&link_rate=8mbit",
            &["overhead", "--json", "--encap=vlan+ethernet", "--link-rate=8mbit"][..],
        ),
        ("/api/v1/overhead?sweep=1400..1500", &["overhead", "--json", "--sweep=1400..1500"]),
        ("/api/v1/overhead/encapsulations", &["overhead", "--list", "--json"]),
        ("/api/v1/lab/presets", &["lab", "list", "--json"]),
        ("/api/v1/lab/presets/adsl", &["lab", "show", "adsl", "--json"]),
        ("/api/v1/journal", &["journal", "list", "--json"]),
        ("/api/v1/traffic", &["traffic", "status", "--json"]),
        (
            "/api/v1/predict?rate=8mbit&rtt=40ms&set=rwin%3D64KiB,cc%3Dbbr&size=1MB&samples=true",
            &["predict", "--json", "--samples", "--rate=8mbit", "--rtt=40ms", "--set=rwin=64KiB,cc=bbr", "--size=1MB"],
        ),
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.json()), (200, server.command(args)), "{path}");
        assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    }
    let tune = [
        "tune",
        "--lab=lan",
        "--knobs=rwin",
        "--levels=rwin=64KiB",
        "--trial=200ms",
        "--budget=4 trials",
        "--json",
        "--quiet",
    ];
    let [one, other] = [(); 2].map(|()| server.command(&tune)["id"].as_str().unwrap().to_owned());
    let answer = server.get(&format!("/api/v1/compare?experiments={one},{other}&anyway=true"));
    assert_eq!(answer.json(), server.command(&["compare", &one, &other, "--anyway", "--json"]), "{}", answer.body);
    assert_eq!((answer.status, answer.json()["kind"].as_str()), (200, Some("compare")));
    let settings = server.get("/api/v1/settings").json();
    assert_eq!(settings["schema_version"], 1);
    assert!(!settings["knobs"].as_array().unwrap().is_empty());
}

#[test]
fn errors_say_what_happened_and_are_never_our_fault() {
    let server = Server::start();
    for (path, status, part) in [
        ("/api/v1/overhead?mtu=99999", 400, "out of range"),
        ("/api/v1/overhead?mtu=15%0000", 400, "control characters"),
        ("/api/v1/overhead?encap=--list", 400, "--list"),
        ("/api/v1/overhead?json=1", 400, "unknown field"),
        ("/api/v1/lab/presets/nope", 400, "no preset"),
        ("/api/v1/lab/presets/..%2Fadsl", 400, "name of a preset"),
        ("/api/v1/lab/presets/%FF", 400, "UTF-8"),
        ("/api/v1/predict?lab=nope", 400, "no preset"),
        ("/api/v1/predict?rate=8mbit&set=rwin", 400, "KNOB=LEVEL"),
        ("/api/v1/predict?rate=8mbit&set=cc%3Dreno,cc%3Dbbr", 400, "set twice"),
        ("/api/v1/predict?rate=8mbit&seeds=0", 400, "out of range"),
        ("/api/v1/journal/nope", 400, "no experiment"),
        ("/api/v1/journal/nope/samples", 400, "no experiment"),
        ("/api/v1/journal/--json/samples", 400, "name of an experiment"),
        ("/api/v1/runs/nope", 404, "no such"),
        ("/api/v1/reports/nope", 400, "no experiment"),
        ("/api/v1/reports/--json", 400, "name of an experiment"),
        ("/api/v1/traffic/nope", 400, "no experiment"),
        ("/api/v1/traffic/--json", 400, "name of an experiment"),
        ("/api/v1/tests/nope", 400, "no experiment"),
        ("/api/v1/fleet/report", 400, "missing field"),
        ("/api/v1/fleet/report?mesh=north", 409, "no fleet's"),
        ("/api/v1/compare", 400, "missing field"),
        ("/api/v1/compare?experiments=nope", 400, "two experiments"),
        ("/api/v1/compare?experiments=nope,--json", 400, "name of an experiment"),
        ("/api/v1/compare?experiments=nope,nor-this", 400, "no experiment"),
        ("/api/v1/experiments/nope", 404, "no such experiment"),
        ("/api/v1/experiments/nope/events", 404, "no such experiment"),
        ("/api/v1/nothing", 404, "nothing there"),
        ("/api/v2/health", 404, "nothing there"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.what().contains(part), "{path}: {}", answer.body);
    }
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("[]", 422),
        ("{}", 422),
        (r#"{"lab":"../x"}"#, 400),
        (r#"{"lab":"a","html":"x"}"#, 422),
    ] {
        let answer = server.ask("POST", "/api/v1/experiments", &[JSON], body);
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        assert!(!answer.what().is_empty(), "{}", answer.body);
    }
    for place in ["experiments", "experiments/plan", "labs"] {
        let answer = server.ask("POST", &format!("/api/v1/{place}"), &[JSON], r#"{"lab":"adls"}"#);
        assert_eq!((answer.status, answer.what().contains("adsl")), (400, true), "{place}: {}", answer.body);
    }
    // A file of that name where the server runs is no preset.
    std::fs::write(server.directory.path().join("mine"), "title = \"secret\"\n").expect("a file");
    let answer = server.get("/api/v1/lab/presets/mine");
    assert_eq!((answer.status, answer.what().as_str()), (400, "there is no preset \"mine\""), "{}", answer.body);
    let large = format!(r#"{{"lab":"{}"}}"#, "a".repeat(100_000));
    assert_eq!(server.ask("POST", "/api/v1/experiments", &[JSON], &large).status, 413);
    assert_eq!(server.ask("POST", "/api/v1/health", &[], "").status, 405);
}

#[test]
fn a_body_that_isnt_well_formed_isnt_called_long_and_a_very_long_one_is_refused_at_once() {
    let server = Server::start();
    let asked = |framing: &str, body: &str| {
        let mut stream = TcpStream::connect(&server.host).expect("a connection");
        let head = format!("POST /api/v1/predict HTTP/1.1\r\nhost: {}\r\n{framing}\r\n\r\n{body}", server.host);
        stream.write_all(head.as_bytes()).expect("a request sent");
        read(stream)
    };
    let broken = asked("transfer-encoding: chunked", "zz\r\n");
    assert!(broken.status == 400 && broken.what().contains("can't be read"), "{} {}", broken.status, broken.body);
    let long = asked("content-length: 99999999999999", "");
    assert_eq!((long.status, long.what().as_str()), (413, "the body is longer than 64 KiB"), "{}", long.body);
}

#[test]
fn other_names_and_other_sites_are_refused() {
    let server = Server::start();
    let (own, port) = (format!("http://{}", server.host), server.host.rsplit_once(':').unwrap().1.to_owned());
    let localhost = format!("localhost:{port}");
    for (header, status) in [
        (("host", "evil.example"), 403),
        (("host", "127.0.0.1"), 403),
        (("host", "localhost.evil.example"), 403),
        (("host", localhost.as_str()), 200),
        (("origin", "http://evil.example"), 403),
        (("origin", "null"), 403),
        (("origin", own.as_str()), 200),
        (("sec-fetch-site", "cross-site"), 403),
        (("sec-fetch-site", "same-site"), 403),
        (("sec-fetch-site", "same-origin"), 200),
    ] {
        let answer = server.ask("GET", "/api/v1/health", &[header], "");
        assert_eq!(answer.status, status, "{header:?}");
        assert!(!answer.head.contains("access-control-allow"), "{}", answer.head);
    }
    let head = server.get("/").head;
    for policy in
        ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "x-content-type-options: nosniff"]
    {
        assert!(head.contains(policy), "{policy}: {head}");
    }
    assert!(!head.contains("unsafe-"), "{head}");
}

#[test]
fn changing_the_host_needs_the_token() {
    let server = Server::start();
    // A value that no kernel takes, so that nothing is changed even if the door stood open.
    let body = json!({"settings": {"sack": "perhaps"}}).to_string();
    let token = ("x-windtunnel-token", server.token.as_str());
    let wrong = ("x-windtunnel-token", "00000000000000000000000000000000");
    for verb in ["apply", "confirm", "undo"] {
        let path = format!("/api/v1/settings/{verb}");
        assert_eq!(server.ask("POST", &path, &[JSON], &body).status, 401, "{verb}");
        assert_eq!(server.ask("POST", &path, &[JSON, wrong], &body).status, 403, "{verb}");
        let cross = [JSON, token, ("origin", "http://evil.example")];
        assert_eq!(server.ask("POST", &path, &cross, &body).status, 403, "{verb}");
        let form = [token, ("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(server.ask("POST", &path, &form, "a=b").status, 415, "{verb}");
    }
    let refused = server.ask("POST", "/api/v1/settings/apply", &[JSON, token], &body);
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.what().contains("sack"), "{}", refused.body);
    // Looking at a plan changes nothing, and needs none.
    let plan = server.post("/api/v1/settings/plan", &json!({"settings": {"sack": "off"}}));
    assert_eq!(plan.json()["changes"][0]["key"], "sack", "{}", plan.body);
}

#[test]
fn an_experiment_is_watched_by_two_hundred_and_stopped() {
    let mut server = Server::start();
    let request = json!({"lab": "adsl", "knobs": ["rwin"], "levels": {"rwin": "4x,16x"}, "trial": "500ms", "budget": "400 trials"});
    let begun = server.post("/api/v1/experiments", &request);
    assert_eq!(begun.status, 202, "{}", begun.body);
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let second = server.post("/api/v1/experiments", &request);
    assert_eq!(second.status, 409, "{}", second.body);

    let events = format!("/api/v1/experiments/{id}/events");
    let mut first = BufReader::new(server.send("GET", &events, &[], ""));
    let mut line = String::new();
    while !line.starts_with("event: trial") {
        line.clear();
        assert!(first.read_line(&mut line).unwrap() > 0, "it ended before its first trial");
    }
    let watching: Vec<_> = (0..200).map(|_| server.send("GET", &events, &[], "")).collect();
    assert_eq!(server.get("/api/v1/health").status, 200);
    let stopped = server.ask("DELETE", &format!("/api/v1/experiments/{id}"), &[], "");
    assert_eq!(stopped.status, 202, "{}", stopped.body);
    for stream in watching {
        let answer = read(stream);
        assert!(answer.head.contains("text/event-stream"), "{}", answer.head);
        assert!(answer.body.contains("\nevent: begin\n") || answer.body.contains("id: 0\nevent: begin\n"));
        assert!(answer.body.contains("event: end\n"), "{}", answer.body);
    }
    // Whoever was away goes on where he was.
    let rest = server.ask("GET", &events, &[("last-event-id", "0")], "").body;
    assert!(rest.contains("id: 1\n") && !rest.contains("id: 0\n"), "{rest}");
    // So does a page that begins a stream anew, and what its browser then says of it goes before that.
    let after = |number: &str| format!("{events}?after={number}");
    assert_eq!(server.get(&after("0")).body, rest);
    assert_eq!(server.ask("GET", &after("1000000"), &[("last-event-id", "0")], "").body, rest);
    assert_eq!(server.get(&after("first")).status, 400);
    // Who has seen its end, or more than there is, is told not to ask again.
    let end = rest.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().expect("the number of its end");
    for seen in [end, "1000000"] {
        assert_eq!(server.ask("GET", &events, &[("last-event-id", seen)], "").status, 204, "{seen}");
        assert_eq!(server.get(&after(seen)).status, 204, "{seen}");
    }

    let summary = server.get(&format!("/api/v1/experiments/{id}")).json();
    let name = summary["experiment"].as_str().expect("its name in the journal");
    assert!(summary["end"]["exit_code"].is_number(), "{summary}");
    let journal = server.get("/api/v1/journal").json();
    assert_eq!(journal["experiments"][0]["id"], name);
    assert_ne!(journal["experiments"][0]["state"], "running");
    assert_eq!(server.interrupt(), Some(0));
}

/// A drawn path of one link.
fn drawn() -> Value {
    json!({"links": [{"name": "only", "mtu": 1400, "down": {"rate": "20mbit", "delay": "5ms", "queue": "64KiB"}}]})
}

#[test]
fn a_report_is_given_as_a_file_and_an_experiment_is_deleted_with_the_token_only() {
    let server = Server::start();
    let ask =
        json!({"lab": "adsl", "knobs": ["rwin"], "levels": {"rwin": "4x"}, "trial": "300ms", "budget": "4 trials"});
    let (events, end) = finished(&server, &server.post("/api/v1/experiments", &ask));
    assert!(events.contains("event: start\ndata: {\"event\":\"start\""), "{events}");
    let name = end["experiment"].as_str().expect("its name in the journal").to_owned();
    let listed = server.get("/api/v1/journal").json();
    assert_eq!(listed["experiments"][0]["workload"], "bulk", "{listed}");
    assert!(listed["experiments"][0]["answer"].is_string(), "{listed}");
    for (form, begin) in [("html", "<!doctype html>"), ("csv", "")] {
        let file = server.get(&format!("/api/v1/reports/{name}/{form}"));
        assert_eq!(file.status, 200, "{}", file.body);
        assert!(file.body.to_lowercase().contains(begin) && file.body.contains("rwin"), "{}", file.body);
        assert!(file.head.contains(&format!("filename=\"{name}.{form}\"")), "{}", file.head);
    }
    assert_eq!(server.get(&format!("/api/v1/reports/{name}/pdf")).status, 404);
    let path = format!("/api/v1/journal/{name}");
    assert_eq!(server.ask("DELETE", &path, &[], "").status, 401);
    assert_eq!(server.ask("DELETE", &path, &[("x-windtunnel-token", "0")], "").status, 403);
    assert_eq!(server.get(&path).status, 200);
    let token = server.token.clone();
    // Only its whole name deletes it.
    for other in ["last", &name[..name.len() - 1]] {
        let refused = server.ask("DELETE", &format!("/api/v1/journal/{other}"), &[("x-windtunnel-token", &token)], "");
        assert!(refused.status == 400 && refused.body.contains(&name), "{other}: {}", refused.body);
    }
    let gone = server.ask("DELETE", &path, &[("x-windtunnel-token", &token)], "");
    assert_eq!((gone.status, &gone.json()["pruned"]), (200, &json!([name])), "{}", gone.body);
    assert_eq!(server.get(&path).status, 400);
}

#[test]
fn a_file_that_is_sent_is_analysed_and_forgotten() {
    let server = Server::start();
    let table = "rwin,r1,r2,r3,r4,r5,r6,r7\na,5.1,5.2,5.0,5.1,5.2,5.1,5.0\nb,6.6,6.5,6.7,6.6,6.5,6.6,6.7\n";
    let binary = [("content-type", "application/octet-stream")];
    let answer = server.ask("POST", "/api/v1/analyse?file=../../runs.csv", &binary, table);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    assert_eq!((&answer["kind"], &answer["answer"]["design"]["factor"]), (&json!("table"), &json!("rwin")), "{answer}");
    assert!(answer["text"].as_str().is_some_and(|text| text.contains("geometric mean")), "{answer}");
    assert!(answer["charts"][0]["svg"].as_str().is_some_and(|svg| svg.starts_with("<svg")), "{answer}");
    // Longer than any other body may be.
    let long = format!("{}\n{table}", "# a comment that says nothing\n".repeat(100_000));
    let answer = server.ask("POST", "/api/v1/analyse?file=runs.csv", &binary, &long);
    assert_eq!((answer.status, &answer.json()["kind"]), (200, &json!("table")), "{}", answer.body);
    assert_eq!(server.ask("POST", "/api/v1/predict", &binary, &long).status, 413);
    let refused = server.ask("POST", "/api/v1/analyse?file=runs.csv", &binary, "a,b\n1\n");
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.what().contains("runs.csv") && !refused.body.contains("/tmp"), "{}", refused.body);
    assert_eq!(server.ask("POST", "/api/v1/analyse", &binary, "").status, 400);
    let left: Vec<_> = std::fs::read_dir(server.directory.path().join("tmp")).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_shipped_path_is_drawn_with_what_it_keeps_and_nothing_waits_for_a_confirmation() {
    let server = Server::start();
    let drawn = server.get("/api/v1/lab/presets/leo-satellite/drawn").json();
    assert_eq!(drawn["kept"].as_array().map(Vec::len), Some(5), "{drawn}");
    let shown = server.post("/api/v1/lab/paths", &drawn["path"]).json();
    let shipped = server.get("/api/v1/lab/presets/leo-satellite").json();
    assert_eq!((&shown["path"], &shown["links"]), (&shipped["path"], &shipped["links"]));
    assert_eq!(server.get("/api/v1/lab/presets/nope/drawn").status, 404);
    assert_eq!(server.get("/api/v1/settings/pending").json(), json!({"schema_version": 1, "pending": null}));
}

/// Waits for the end of something that was started, and returns what it said.
fn finished(server: &Server, started: &Answer) -> (String, Value) {
    assert_eq!(started.status, 202, "{}", started.body);
    let id = started.json()["id"].as_str().expect("its name here").to_owned();
    let events = server.get(&format!("/api/v1/runs/{id}/events")).body;
    (events, server.get(&format!("/api/v1/runs/{id}")).json())
}

#[test]
fn a_drawn_path_is_checked_probed_and_kept_up() {
    let server = Server::start();
    let shown = server.post("/api/v1/lab/paths", &drawn()).json();
    assert_eq!((&shown["path"]["pmtu"], &shown["links"][0]["name"]), (&json!(1400), &json!("only")), "{shown}");
    let toml = server.post("/api/v1/lab/paths/toml", &drawn()).body;
    assert!(toml.contains("rate = \"20mbit\""), "{toml}");
    let mut wrong = drawn();
    wrong["links"][0]["down"]["delay"] = json!("soon");
    // As a file, too, which the command line would refuse.
    for place in ["/api/v1/lab/paths", "/api/v1/lab/paths/toml"] {
        let refused = server.post(place, &wrong);
        assert_eq!(refused.status, 400, "{place}: {}", refused.body);
        assert!(refused.what().contains("delay") && !refused.what().contains("/tmp"), "{}", refused.body);
    }

    let probe = server.post("/api/v1/probes", &json!({"kind": "mtu", "path": drawn()}));
    let (events, end) = finished(&server, &probe);
    assert!(events.contains("event: result\n") && events.contains("\"pmtu\":1400"), "{events}");
    assert_eq!(end["end"]["exit_code"], 0, "{end}");

    let lab = server.post("/api/v1/labs", &json!({"path": drawn()}));
    assert_eq!(lab.status, 202, "{}", lab.body);
    let id = lab.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(server.post("/api/v1/labs", &json!({"lab": "adsl"})).status, 409);
    let mut up = BufReader::new(server.send("GET", &format!("/api/v1/runs/{id}/events"), &[], ""));
    let mut line = String::new();
    while !line.starts_with("event: result") {
        line.clear();
        assert!(up.read_line(&mut line).unwrap() > 0, "it isn't up");
    }
    let works = format!("/api/v1/labs/{id}/workloads");
    let down = server.post(&works, &json!({"kind": "download", "size": "300kB", "settings": {"rwin": "64KiB"}}));
    let (events, _) = finished(&server, &down);
    assert!(events.contains("\"bytes\":300000") && events.contains("\"finish\":\"done\""), "{events}");
    let (events, end) = finished(&server, &server.post(&works, &json!({"kind": "ping", "count": 2})));
    assert!(events.contains("2 packets transmitted, 2 received"), "{events}{end}");
    assert_eq!(server.post(&works, &json!({"kind": "ping", "size": "1MB"})).status, 400);
    assert_eq!(server.post("/api/v1/labs/nope/workloads", &json!({"kind": "ping"})).status, 404);
    assert_eq!(server.ask("DELETE", &format!("/api/v1/runs/{id}"), &[], "").status, 202);
    let mut rest = String::new();
    up.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("event: end"), "{rest}");
    assert_eq!(server.post(&works, &json!({"kind": "ping"})).status, 409);
    let left: Vec<_> = std::fs::read_dir(server.directory.path().join("tmp")).unwrap().flatten().collect();
    assert!(left.is_empty(), "the files of drawn paths go away: {left:?}");
}

#[test]
fn what_leaves_this_machine_needs_the_token() {
    let server = Server::start();
    for (path, body) in [
        ("/api/v1/probes", json!({"kind": "path", "target": "192.0.2.1"})),
        ("/api/v1/experiments", json!({"target": "http://192.0.2.1/x"})),
        ("/api/v1/tests", json!({"targets": ["http://192.0.2.1/x"]})),
        ("/api/v1/traffic", json!({"ports": [443], "levels": ["initcwnd=10,32"]})),
    ] {
        assert_eq!(server.post(path, &body).status, 401, "{path}");
        let wrong = [JSON, ("x-windtunnel-token", "0")];
        assert_eq!(server.ask("POST", path, &wrong, &body.to_string()).status, 403, "{path}");
    }
    for body in [json!({"kind": "path"}), json!({"kind": "path", "lab": "adsl", "path": drawn()})] {
        assert_eq!(server.post("/api/v1/probes", &body).status, 422, "{body}");
    }
    let token = [JSON, ("x-windtunnel-token", server.token.as_str())];
    for target in ["--json", "profile.toml", "file:///etc/passwd", "http://"] {
        let answer = server.ask("POST", "/api/v1/experiments", &token, &json!({"target": target}).to_string());
        assert!(answer.status == 400 || answer.status == 202, "{target}: {}", answer.body);
        assert!(answer.status == 400 || target == "http://", "{target}: {}", answer.body);
    }
    for (headers, status) in [(&[][..], 401), (&[("x-windtunnel-token", "0")], 403)] {
        assert_eq!(server.ask("DELETE", "/api/v1/traffic/nope", headers, "").status, status);
    }
    let bad = [JSON, ("x-windtunnel-token", server.token.as_str())];
    let refused = server.ask("POST", "/api/v1/traffic", &bad, r#"{"ports": [443], "levels": ["initcwnd=10,65"]}"#);
    assert!(refused.status == 400 && refused.what().contains("1 to 64"), "{}", refused.body);
    // What it would do may be asked by everybody who may look.
    let plan = server.post("/api/v1/traffic/plan", &json!({"ports": [443], "levels": ["initcwnd=10,32"]})).json();
    assert!(plan["whom"].as_str().is_some_and(|whom| whom.contains("to port 443 from public addresses")), "{plan}");
    assert_eq!((plan["arms"][1]["share"].as_f64(), plan["backends"].as_array().map(Vec::len)), (Some(0.05), Some(3)));
    let plan = server.post("/api/v1/experiments/plan", &json!({"lab": "adsl", "knobs": ["rwin"]})).json();
    assert!(plan["arms"].as_array().unwrap().len() > 2 && plan["expected_s"].as_f64() > Some(1.0), "{plan}");
}

#[test]
fn what_the_server_started_ends_with_it() {
    let mut server = Server::start();
    let request = json!({"lab": "adsl", "knobs": ["rwin"], "trial": "500ms", "budget": "400 trials"});
    let id = server.post("/api/v1/experiments", &request).json()["id"].as_str().unwrap().to_owned();
    let mut events = BufReader::new(server.send("GET", &format!("/api/v1/experiments/{id}/events"), &[], ""));
    let mut line = String::new();
    while !line.starts_with("event: begin") {
        line.clear();
        assert!(events.read_line(&mut line).unwrap() > 0, "it ended before it began");
    }
    assert_eq!(server.interrupt(), Some(0));
    let journal = server.command(&["journal", "list", "--json"]);
    assert_ne!(journal["experiments"][0]["state"], "running", "{journal}");
}

#[test]
fn over_ipv6_the_same_page_and_the_same_rules_hold() {
    let server = Server::start_on("[::1]:0");
    assert!(server.host.starts_with("[::1]:"), "{}", server.host);
    assert_eq!(server.ask("GET", "/", &[("accept-encoding", "gzip, br")], "").status, 200);
    assert_eq!(server.get("/api/v1/lab/presets").json(), server.command(&["lab", "list", "--json"]));
    // Asked for by its name, from a page of ours, it answers; by another one, from another page or without the token it doesn't.
    let port = server.host.rsplit_once(':').unwrap().1;
    let origin = format!("http://{}", server.host);
    let plan = json!({"set": ["initcwnd=20"], "to": "192.0.2.1"}).to_string();
    for (headers, status) in [
        (&[("host", &*format!("localhost:{port}"))][..], 200),
        (&[("host", &format!("[::2]:{port}"))], 403),
        (&[("host", &format!("127.0.0.1:{port}"))], 403),
        (&[("origin", &origin)], 200),
        (&[("origin", "http://[::1]:1")], 403),
    ] {
        assert_eq!(server.ask("GET", "/api/v1/journal", headers, "").status, status, "{headers:?}");
    }
    assert_eq!(server.ask("POST", "/api/v1/settings/apply", &[JSON], &plan).status, 401);
    let output = Command::new(binary()).args(["web", "--listen", &server.host]).output().expect("windtunnel");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    for listen in ["0.0.0.0:0", "[::]:0", "nonsense"] {
        let output = Command::new(binary()).args(["web", "--listen", listen]).output().expect("windtunnel");
        assert_eq!(output.status.code(), Some(2), "{listen}");
    }
    let server = Server::start();
    let output = Command::new(binary()).args(["web", "--listen", &server.host]).output().expect("windtunnel");
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--listen 127.0.0.1:0"));
}
