//! `windtunnel web` where others can reach it: only with TLS and a password. Needs openssl and curl.

use crate::common::binary;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const PASSWORD: &str = "correct horse: battery";

/// A server behind TLS and a password.
struct Server {
    child: Child,
    url: String,
    token: String,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .expect("this test needs openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::write(folder.join("password"), format!("{PASSWORD}\nnot this line\n")).expect("a file");
}

fn web(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("web").args(args).current_dir(folder).env("XDG_DATA_HOME", folder).stdin(Stdio::null());
    command
}

const ALL: [&str; 6] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--password-file", "password"];

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        certificate(folder.path());
        let args = [&["--listen", "0.0.0.0:0", "--json"], &ALL[..]].concat();
        let mut child = web(folder.path(), &args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("where it listens");
        let ready: Value = serde_json::from_str(&line).expect("an object");
        let text = |name: &str| ready[name].as_str().expect("a text").to_owned();
        Self { child, url: text("url"), token: text("token"), folder }
    }

    /// What curl gets: the status, then the rest.
    fn curl(&self, args: &[&str], path: &str) -> (u16, String) {
        let output = Command::new("curl")
            .args(["-sS", "--noproxy", "*", "--cacert", "cert.pem", "-w", "\n%{http_code}", "-D", "-"])
            .args(args)
            .arg(format!("{}{path}", self.url))
            .current_dir(self.folder.path())
            .output()
            .expect("this test needs curl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let status = text.rsplit('\n').next().and_then(|code| code.parse().ok());
        (status.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))), text)
    }
}

fn refused(output: Output, part: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(part), "{part}: {stderr}");
}

#[test]
fn without_tls_or_a_password_an_open_address_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    certificate(folder.path());
    let run = |args: &[&str]| web(folder.path(), args).output().expect("windtunnel");
    refused(run(&["--listen", "0.0.0.0:0"]), "neither TLS nor a password");
    refused(run(&["--listen", "0.0.0.0:0", "--password-file", "password"]), "without TLS");
    // Nobody sits at a terminal who could be asked.
    refused(run(&["--listen", "0.0.0.0:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]), "without a password");
    refused(run(&["--listen", "127.0.0.1:0", "--tls-cert", "cert.pem"]), "--tls-key");
    refused(run(&["--tls-cert", "key.pem", "--tls-key", "key.pem"]), "key.pem");
    refused(run(&["--tls-cert", "cert.pem", "--tls-key", "nowhere.pem"]), "nowhere.pem");
    refused(run(&["--password-file", "nowhere"]), "nowhere");
    std::fs::write(folder.path().join("empty"), "\n").expect("a file");
    refused(run(&["--password-file", "empty"]), "empty");
}

#[test]
fn nothing_is_answered_without_the_password_and_guessing_is_slow() {
    let server = Server::start();
    let known = format!("anybody:{PASSWORD}");
    let health = "api/v1/health";
    let (status, text) = server.curl(&[], health);
    assert!(status == 401 && text.to_lowercase().contains("www-authenticate: basic realm"), "{text}");
    assert_eq!(server.curl(&[], "").0, 401, "the page, too");
    assert_eq!(server.curl(&["-u", &known], health).0, 200);
    let evil = ["-u", &known, "-H", "Host: evil.example"];
    assert_eq!(server.curl(&evil, health).0, 403, "a name that isn't ours");
    assert_eq!(server.curl(&["-u", &known, "-H", "Origin: https://evil.example"], health).0, 403);
    // Changing the host still needs the token.
    let change = ["-u", &known, "-H", "content-type: application/json", "-d", r#"{"settings": {"sack": "perhaps"}}"#];
    assert_eq!(server.curl(&change, "api/v1/settings/apply").0, 401);
    let token = format!("x-windtunnel-token: {}", server.token);
    assert_eq!(server.curl(&[&change[..], &["-H", &token]].concat(), "api/v1/settings/apply").0, 400);
    let guesses: Vec<u16> = (0..7).map(|n| server.curl(&["-u", &format!("x:guess{n}")], health).0).collect();
    assert_eq!(guesses, [401, 401, 401, 401, 401, 429, 429]);
    let (status, text) = server.curl(&["-u", &known], health);
    assert!(status == 429 && text.to_lowercase().contains("retry-after"), "{text}");
    assert!(!text.contains(PASSWORD));
}

#[test]
fn only_tls_is_spoken_and_old_versions_arent() {
    let server = Server::start();
    let address = server.url.trim_start_matches("https://").trim_end_matches('/').replace("localhost", "127.0.0.1");
    let mut plain = std::net::TcpStream::connect(&address).expect("a connection");
    plain.write_all(b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").expect("a request");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    let old = Command::new("curl")
        .args(["-sS", "--noproxy", "*", "-k", "--tls-max", "1.1", &server.url])
        .output()
        .expect("this test needs curl");
    assert!(!old.status.success());
}
