//! `windtunnel web` attacked by single requests: names, sites, tokens, files, framing of requests, bodies, methods. Each is made from
//! lists, and all are counted: none gets through.

use super::web::{Answer, JSON, Server};
use crate::common::windtunnel;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::time::Duration;

/// What no answer may hold: it stands in a file that only the owner can read.
const SECRET: &str = "S3CR3T-of-the-owner";
/// What isn't allowed with any request here; it changes nothing that a kernel would take.
const APPLY: &str = "/api/v1/settings/apply";
const CHANGE: &str = r#"{"settings":{"sack":"perhaps"}}"#;

/// How many attacks there were of each kind, and which got through.
#[derive(Default)]
struct Tally {
    kinds: Vec<(&'static str, usize)>,
    through: Vec<String>,
}

impl Tally {
    fn count(&mut self, kind: &'static str, attack: &str, got_through: bool) {
        match self.kinds.last_mut().filter(|(last, _)| *last == kind) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((kind, 1)),
        }
        if got_through {
            self.through.push(format!("{kind}: {attack}"));
        }
    }

    /// One that must be refused, as the fault of whoever asks.
    fn refused(&mut self, kind: &'static str, attack: &str, answer: &Answer) {
        let refused = (400..500).contains(&answer.status);
        self.count(kind, &format!("{attack}: {} {}", answer.status, answer.body), !refused || tells(answer));
    }
}

fn tells(answer: &Answer) -> bool {
    answer.head.contains(&SECRET.to_lowercase()) || answer.body.contains(SECRET) || answer.body.contains("root:")
}

fn names(server: &Server, tally: &mut Tally) {
    let port = server.host.rsplit_once(':').expect("a port").1;
    let other = port.parse::<u16>().expect("a number") ^ 1;
    let mut hosts: Vec<String> =
        ["", "127.0.0.1", "localhost", "[::1]", "0", "0.0.0.0", "*"].map(str::to_owned).to_vec();
    let evil = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "0x7f000001",
        "2130706433",
        "127.1",
        "127.0.0.2",
    ];
    hosts.extend(evil.map(|name| format!("{name}:{port}")));
    hosts.extend(["localhost.", "user@localhost", "localhost:80", "[::ffff:127.0.0.1]"].map(|n| format!("{n}:{port}")));
    hosts.extend([format!("127.0.0.1:{other}"), format!("localhost:{other}"), format!("{}@evil.example", server.host)]);
    for host in &hosts {
        tally.refused("names", host, &server.ask("GET", "/api/v1/settings", &[("host", host)], ""));
    }
    let twice = [("host", server.host.as_str()), ("host", "evil.example")];
    tally.refused("names", "two of them", &server.ask("GET", "/api/v1/settings", &twice, ""));
}

fn sites(server: &Server, tally: &mut Tally) {
    let own = format!("http://{}", server.host);
    let origins = [
        "null",
        "",
        "http://evil.example",
        "https://evil.example",
        "file://",
        "http://localhost",
        "http://127.0.0.1:1",
    ];
    let mut origins: Vec<String> = origins.map(str::to_owned).to_vec();
    origins.extend([
        format!("{own}.evil.example"),
        format!("{own}/"),
        own.replace("http", "https"),
        format!("http://evil.example@{}", server.host),
    ]);
    for (method, path, body) in [("GET", "/api/v1/settings", ""), ("POST", "/api/v1/experiments", r#"{"lab":"lan"}"#)] {
        for origin in &origins {
            tally.refused("origins", origin, &server.ask(method, path, &[JSON, ("origin", origin)], body));
        }
        let second = [JSON, ("origin", own.as_str()), ("origin", "http://evil.example")];
        tally.refused("origins", "a second one", &server.ask(method, path, &second, body));
    }
    let costly = "/api/v1/predict?rate=10gbit&rtt=100ms&size=10GB&seeds=100";
    for site in ["cross-site", "same-site", "nonsense"] {
        for mode in ["navigate", "cors", "no-cors", "websocket", "same-origin"] {
            for dest in ["document", "iframe", "frame", "embed", "object", "image", "script", "empty"] {
                let headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
                let of = format!("{site} {mode} {dest}");
                tally.refused("pages of others", &of, &server.ask("GET", costly, &headers, ""));
                // A link to the page is what it is for.
                if (mode, dest) != ("navigate", "document") {
                    tally.refused("pages of others", &of, &server.ask("GET", "/", &headers, ""));
                }
            }
        }
    }
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_ne!(server.ask("GET", "/", &link, "").status, 403, "a link to the page leads to it");
}

fn tokens(server: &Server, tally: &mut Tally) {
    let right = server.token.as_str();
    let guesses = [
        String::new(),
        "0".repeat(32),
        right[1..].to_owned(),
        right[..31].to_owned(),
        format!("{right}0"),
        format!("0{right}"),
        right.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A"),
        format!("Bearer {right}"),
        format!("\"{right}\""),
        "null".to_owned(),
    ];
    let asks = [
        (APPLY, CHANGE),
        ("/api/v1/settings/confirm", "{}"),
        ("/api/v1/settings/undo", "{}"),
        ("/api/v1/experiments", r#"{"target":"http://127.0.0.1:9/"}"#),
        ("/api/v1/experiments", r#"{"resume":"last"}"#),
        ("/api/v1/probes", r#"{"kind":"path","target":"127.0.0.1"}"#),
    ];
    for (path, body) in asks {
        for guess in &guesses {
            let answer = server.ask("POST", path, &[JSON, ("x-windtunnel-token", guess)], body);
            tally.refused("tokens", &format!("{path} {guess}"), &answer);
        }
        for place in ["?token=", "?x-windtunnel-token="] {
            tally.refused("tokens", place, &server.ask("POST", &format!("{path}{place}{right}"), &[JSON], body));
        }
        let cookie = format!("x-windtunnel-token={right}");
        tally.refused("tokens", "a cookie", &server.ask("POST", path, &[JSON, ("cookie", &cookie)], body));
    }
}

fn files(server: &Server, secret: &str, tally: &mut Tally) {
    let mut bodies = Vec::new();
    for har in ["page:har=", "page:har =", "page: har=", "page:connections=6,har=", "har=", "page:har=file://"] {
        bodies.push(json!({"lab": "lan", "workload": format!("{har}{secret}")}));
    }
    for other in ["/dev/zero", "/proc/self/environ", "/etc/passwd", "../../../etc/passwd"] {
        bodies.push(json!({"lab": "lan", "workload": format!("page:har={other}")}));
    }
    for (field, kept) in [
        ("lab", ""),
        ("target", ""),
        ("resume", "last"),
        ("ca", "http://127.0.0.1:9/"),
        ("workload", "lan"),
        ("encap", "lan"),
        ("budget", "lan"),
        ("trial", "lan"),
        ("ip", "lan"),
        ("link_rate", "lan"),
    ] {
        for file in [secret.to_owned(), format!("file://{secret}"), format!("@{secret}")] {
            let mut body = if kept == "lan" { json!({"lab": "lan"}) } else { json!({}) };
            if kept.starts_with("http") {
                body["target"] = json!(kept);
            }
            body[field] = json!(file);
            bodies.push(body);
        }
    }
    for knobs in [
        json!({"levels": {"cc": secret}}),
        json!({"hold": {"cc": secret}}),
        json!({"knobs": [secret]}),
        json!({"html": secret}),
        json!({"journal": secret}),
        json!({"key_file": secret}),
    ] {
        let mut body = knobs;
        body["lab"] = json!("lan");
        bodies.push(body);
    }
    let side = json!({"rate": "8mbit", "trace": secret});
    bodies.push(json!({"path": {"links": [{"name": "a", "down": side, "up": side}]}}));
    for body in &bodies {
        for path in ["/api/v1/experiments/plan", "/api/v1/experiments"] {
            let token = ("x-windtunnel-token", server.token.as_str());
            // With the token, and for what isn't on a real path also without it.
            tally.refused("files", &body.to_string(), &server.ask("POST", path, &[JSON, token], &body.to_string()));
        }
    }
    let climbs = [
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/etc/passwd",
        "/..\\..\\etc\\passwd",
        "/assets/%00.js",
        "/./.git/config",
        "/file:///etc/passwd",
    ];
    let named =
        ["/api/v1/lab/presets/", "/api/v1/journal/", "/api/v1/reports/", "/api/v1/runs/", "/api/v1/experiments/"];
    let climbs = climbs.map(str::to_owned).into_iter().chain(named.iter().flat_map(|at| {
        [
            format!("{at}..%2f..%2fetc%2fpasswd"),
            format!("{at}%2fetc%2fpasswd"),
            format!("{at}{}", secret.replace('/', "%2f")),
            format!("{at}--json"),
            format!("{at}%00"),
        ]
    }));
    for path in climbs {
        let answer = server.get(&path);
        tally.count(
            "files",
            &format!("{path}: {}", answer.body),
            tells(&answer) || path.starts_with("/api") && answer.status < 400,
        );
    }
}

/// Bytes as they are; all that comes back.
fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(&server.host).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    // It may be refused before it is all sent, and then the rest of the answer lost.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

fn framings(server: &Server, tally: &mut Tally) {
    let host = &server.host;
    let hidden = format!("GET /api/v1/journal HTTP/1.1\r\nhost: {host}\r\n\r\n");
    let plain = "GET /api/v1/health HTTP/1.1\r\nhost: ";
    let long = "a".repeat(1 << 20);
    let many = "x: y\r\n".repeat(5_000);
    let posted = |how: &str| {
        format!("POST /api/v1/settings/plan HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{how}")
    };
    for (attack, bytes) in [
        ("two lengths", posted(&format!("content-length: 2\r\ncontent-length: 40\r\n\r\n{{}}{hidden}"))),
        ("a length with a sign", posted(&format!("content-length: +2\r\n\r\n{{}}{hidden}"))),
        ("a negative length", posted(&format!("content-length: -1\r\n\r\n{hidden}"))),
        ("a length in hexadecimal", posted(&format!("content-length: 0x2\r\n\r\n{{}}{hidden}"))),
        ("a length too large for numbers", posted(&format!("content-length: 99999999999999999999999\r\n\r\n{hidden}"))),
        ("a coding that isn't known", posted(&format!("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"))),
        (
            "chunked, and then another coding",
            posted(&format!("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}")),
        ),
        ("chunks that aren't numbers", posted(&format!("transfer-encoding: chunked\r\n\r\nzz\r\n{hidden}"))),
        ("a chunk of all memory", posted("transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}")),
        ("a chunk that never ends", posted(&format!("transfer-encoding: chunked\r\n\r\n2{}", " ".repeat(1 << 18)))),
        ("a blank before the colon", format!("{plain}{host}\r\ncontent-length : 2\r\n\r\n{{}}{hidden}")),
        ("a folded header", format!("{plain}{host}\r\nx: a\r\n b: c\r\n\r\n{hidden}")),
        ("a zero byte in a header", format!("{plain}{host}\r\nx: a\0b\r\n\r\n{hidden}")),
        ("a carriage return alone", format!("{plain}{host}\r\nx: a\rhost: evil\r\n\r\n{hidden}")),
        ("no version", format!("GET /api/v1/journal\r\nhost: {host}\r\n\r\n")),
        ("a version of its own", format!("GET /api/v1/journal HTTP/1.2\r\nhost: {host}\r\n\r\n")),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_owned()),
        ("no name at all", "GET /api/v1/journal HTTP/1.1\r\n\r\n".to_owned()),
        (
            "a name in the place of the path",
            "GET http://evil.example/api/v1/journal HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(),
        ),
        ("a method that isn't one", format!("G\x01T /api/v1/journal HTTP/1.1\r\nhost: {host}\r\n\r\n")),
        ("a megabyte of path", format!("GET /{long} HTTP/1.1\r\nhost: {host}\r\n\r\n")),
        ("a megabyte of header", format!("{plain}{host}\r\nx: {long}\r\n\r\n")),
        ("thousands of headers", format!("{plain}{host}\r\n{many}\r\n")),
        ("a proxy's method", format!("CONNECT evil.example:80 HTTP/1.1\r\nhost: {host}\r\n\r\n")),
        ("TLS", "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03".to_owned()),
        ("nothing but ends of lines", "\r\n".repeat(50_000)),
    ] {
        let heard = raw(server, bytes.as_bytes());
        tally.count("framings", &format!("{attack}: {heard}"), heard.contains("HTTP/1.1 2"));
    }
}

fn bodies(server: &Server, tally: &mut Tally) {
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "application/xml",
        "text/json",
    ] {
        for path in [
            "/api/v1/experiments",
            "/api/v1/labs",
            "/api/v1/probes",
            "/api/v1/settings/plan",
            "/api/v1/experiments/plan",
        ] {
            let answer = server.ask("POST", path, &[("content-type", kind)], r#"{"lab":"lan"}"#);
            tally.refused("bodies", &format!("{path} {kind}"), &answer);
        }
    }
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let texts = [
        "",
        "{",
        "[]",
        "null",
        "0",
        "\"\"",
        "{\"lab\":1}",
        "{\"lab\":\"lan\",\"lab\":\"lan\"}",
        "{\"lab\":\"lan\",\"budget\":\"1e999 trials\"}",
        "{\"lab\":\"lan\",\"seed\":-1}",
        "{\"lab\":\"lan\",\"identical\":1e99}",
        "\u{feff}{}",
        "{\"lab\":\"\\ud800\"}",
    ];
    for text in texts.map(str::to_owned).into_iter().chain([
        deep(30_000),
        "1".repeat(60_000),
        " ".repeat(70_000),
        format!("{{\"lab\":\"{}\"}}", "a".repeat(60_000)),
    ]) {
        let answer = server.ask("POST", "/api/v1/experiments", &[JSON], &text);
        tally.refused("bodies", &text[..text.len().min(60)], &answer);
    }
    // A gigabyte is refused for its length, and one without a length once it is too long.
    let head = format!(
        "POST {APPLY} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nx-windtunnel-token: {}\r\n",
        server.host, server.token
    );
    for (attack, how) in [
        ("a gigabyte", "content-length: 1073741824\r\n\r\n".to_owned()),
        (
            "chunks without end",
            format!("transfer-encoding: chunked\r\n\r\n{}", format!("4000\r\n{}\r\n", "x".repeat(0x4000)).repeat(64)),
        ),
    ] {
        let mut stream = TcpStream::connect(&server.host).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let _ = stream.write_all(format!("{head}{how}{}", " ".repeat(100_000)).as_bytes());
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard);
        tally.count("bodies", &format!("{attack}: {heard}"), heard.contains("HTTP/1.1 2"));
    }
}

fn methods(server: &Server, tally: &mut Tally) {
    for method in ["PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "PROPFIND", "BREW"] {
        for path in ["/api/v1/settings", APPLY, "/api/v1/experiments", "/api/v1/journal", "/api/v1/health"] {
            tally.refused("methods", &format!("{method} {path}"), &server.ask(method, path, &[], ""));
        }
    }
    for path in [APPLY, "/api/v1/settings/undo", "/api/v1/settings/confirm", "/api/v1/probes", "/api/v1/labs"] {
        tally.refused("methods", &format!("GET {path}"), &server.get(path));
    }
    for (name, value) in [
        ("x-http-method-override", "DELETE"),
        ("upgrade", "websocket"),
        ("x-forwarded-host", "evil.example"),
        ("forwarded", "for=127.0.0.1"),
        ("x-original-url", APPLY),
    ] {
        let answer = server.ask("POST", "/api/v1/experiments/nope", &[(name, value), ("connection", "upgrade")], "");
        tally.refused("methods", name, &answer);
    }
}

#[test]
fn of_hundreds_of_attacks_none_gets_through() {
    let server = Server::start();
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("s.json");
    std::fs::write(&secret, format!("\"{SECRET}\"")).expect("a file");
    let mut tally = Tally::default();
    names(&server, &mut tally);
    sites(&server, &mut tally);
    tokens(&server, &mut tally);
    files(&server, secret.to_str().expect("a path"), &mut tally);
    framings(&server, &mut tally);
    bodies(&server, &mut tally);
    methods(&server, &mut tally);
    // The owner's own hundred: one runs.
    let begun =
        (0..100).map(|_| server.post("/api/v1/experiments", &json!({"lab": "lan", "budget": "2000 trials"})).status);
    let begun: Vec<u16> = begun.collect();
    for (number, status) in begun.iter().enumerate() {
        tally.count("experiments at once", &number.to_string(), (*status == 202) != (number == 0));
    }
    let sum: usize = tally.kinds.iter().map(|(_, count)| count).sum();
    println!("{sum} attacks, {:?}: {} got through", tally.kinds, tally.through.len());
    assert!(tally.through.is_empty(), "{:#?}", tally.through);
    assert!(sum >= 237 && tally.kinds.iter().all(|(_, count)| *count >= 20), "{:?}", tally.kinds);
    assert_eq!(server.get("/api/v1/health").status, 200, "and the owner is answered");
    assert_eq!(server.get("/api/v1/runs").json().as_array().map(Vec::len), Some(1), "nothing else was started");
}

/// What curl gets as another account: the status, then the body.
fn as_another(server: &Server, args: &[&str], path: &str) -> (u16, String) {
    let mut command = std::process::Command::new("curl");
    command
        .args(["-sS", "--noproxy", "*", "-m", "20", "-w", "\n%{http_code}", "-H", "content-type: application/json"])
        .args(args);
    let output = command.arg(format!("http://{}{path}", server.host)).current_dir("/").uid(65_534).gid(65_534).output();
    let text = String::from_utf8_lossy(&output.expect("this test needs curl").stdout).into_owned();
    let (body, status) = text.rsplit_once('\n').expect("a status");
    (status.parse().expect("a number"), body.to_owned())
}

#[test]
fn another_account_of_this_host_neither_starts_nor_stops_anything_without_the_token() {
    assert_eq!(wt_sys::process::effective_uid(), 0, "this test takes another account: run it as root");
    let server = Server::start();
    let lab = r#"{"lab":"lan","budget":"2000 trials"}"#;
    let token = format!("x-windtunnel-token: {}", server.token);
    let started = server.ask("POST", "/api/v1/experiments", &[JSON], lab);
    assert_eq!(started.status, 202, "the owner needs nothing more: {}", started.body);
    let run = format!("/api/v1/runs/{}", started.json()["id"].as_str().expect("a name"));
    let experiment = run.replace("runs", "experiments");
    let mut refused = 0;
    for (args, path) in [
        (&["-d", lab][..], "/api/v1/experiments"),
        (&["-d", r#"{"lab":"lan"}"#], "/api/v1/labs"),
        (&["-d", r#"{"kind":"path","lab":"lan"}"#], "/api/v1/probes"),
        (&["-d", r#"{"kind":"ping"}"#], "/api/v1/labs/nope/workloads"),
        (&["-X", "DELETE"], &run),
        (&["-X", "DELETE"], &experiment),
    ] {
        let (status, body) = as_another(&server, args, path);
        assert!(status == 401 && body.contains("the account that runs this server"), "{path}: {status} {body}");
        let wrong = [args, &["-H", "x-windtunnel-token: 00000000000000000000000000000000"]].concat();
        assert_eq!(as_another(&server, &wrong, path).0, 403, "{path}");
        refused += 2;
    }
    assert_eq!(refused, 12);
    assert!(server.get(&run).json()["end"].is_null(), "it still runs");
    // Looking is for everybody on this host, and the token is as good as the account.
    assert_eq!(as_another(&server, &[], "/api/v1/lab/presets").0, 200);
    assert_eq!(as_another(&server, &["-X", "DELETE", "-H", &token], &run).0, 202);
}

#[test]
fn a_har_on_the_command_line_is_a_plain_file() {
    let home = tempfile::tempdir().expect("a folder");
    let pipe = home.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for file in ["/dev/zero", "/proc/self", ".", pipe.to_str().expect("a path")] {
        let output = windtunnel(home.path())
            .args(["tune", "--lab", "lan", "--workload", &format!("page:har={file}"), "--dry-run"])
            .output()
            .expect("windtunnel");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains("no regular file"), "{file}: {stderr}");
    }
}
