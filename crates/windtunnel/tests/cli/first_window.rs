//! First windows as people ask for them: lists, flags and the journal, with nobody asked but this host.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, ran, run, windtunnel};
use std::path::Path;

/// Runs it with the files of this folder, where its journal is, too.
fn at(home: &Path, args: &[&str]) -> RunOutput {
    ran(windtunnel(home).current_dir(home).arg("first-window").args(args).output().unwrap())
}

#[test]
fn an_opt_out_entry_that_would_never_match_is_refused_by_its_line() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("out.txt"), "# those\n127.0.0.1:80\n").unwrap();
    let refused = at(home.path(), &["--unprivileged", "--opt-out", "out.txt", "http://127.0.0.1:1/"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("out.txt, line 2: \"127.0.0.1:80\""), "{}", refused.err);
    std::fs::write(home.path().join("out.txt"), "\u{feff}127.0.0.0/8\n").unwrap();
    let kept = at(home.path(), &["--unprivileged", "--opt-out", "out.txt", "http://[::ffff:127.0.0.1]:1/"]);
    assert!(kept.out.contains("on the opt-out list"), "{}{}", kept.out, kept.err);
}

#[test]
fn one_mss_leaves_the_url_behind_it_alone_and_those_that_the_kernel_cant_make_are_refused() {
    let asked = |mss: &str| run(&["first-window", "--unprivileged", "--mss", mss, "http://127.0.0.1:1/"]);
    for mss in ["300", "300,200"] {
        assert!(asked(mss).out.contains("connection refused"), "{mss}: {}", asked(mss).err);
    }
    assert_eq!(["64", "300,900", "300,200,100"].map(|mss| asked(mss).code), [2; 3]);
}

#[test]
fn the_history_of_a_list_is_of_its_hosts_alone_and_a_line_of_json_is_one() {
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://127.0.0.1:1/{}", "a".repeat(200));
    std::fs::write(home.path().join("all.txt"), format!("{url} Zürich\n")).unwrap();
    assert!(at(home.path(), &["--unprivileged", "--file", "all.txt"]).out.contains("connection refused"));
    let narrow = |args: &[&str]| {
        let mut command = windtunnel(home.path());
        command.current_dir(home.path()).env("COLUMNS", "80").env("LC_ALL", "C").args(["first-window", "--history"]);
        ran(command.args(args).output().unwrap())
    };
    let listed = narrow(&["--json-stream"]);
    let line: serde_json::Value = serde_json::from_str(listed.out.trim_end()).unwrap();
    assert_eq!((line["url"].as_str(), line["provider"].as_str()), (Some(url.as_str()), Some("Zürich")));

    std::fs::write(home.path().join("none.txt"), "# nobody\n").unwrap();
    let none = narrow(&["--file", "none.txt"]);
    assert!((none.code, none.out.is_empty()) == (2, true) && none.err.contains("no URL in none.txt"), "{}", none.err);
    std::fs::write(home.path().join("some.txt"), "ftp://127.0.0.1/\n127.0.0.1\n").unwrap();
    let some = narrow(&["--file", "some.txt"]);
    assert!(some.code == 0 && some.err.contains("line 1: \"ftp://127.0.0.1/\""), "{}", some.err);
}

#[test]
fn at_80_columns_a_host_that_showed_nothing_has_its_reason_and_no_open_figures() {
    let home = tempfile::tempdir().unwrap();
    let mut command = windtunnel(home.path());
    command.env("COLUMNS", "80").args(["first-window", "--unprivileged", "http://127.0.0.1:1/"]);
    let told = ran(command.output().unwrap());
    assert_eq!(told.out, "http://127.0.0.1:1/\n  127.0.0.1: connection refused\n", "{}", told.err);
}

#[test]
fn a_server_that_answers_a_greeting_of_tls_in_plain_text_has_no_first_window() {
    use std::io::{Read as _, Write as _};
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", server.local_addr().unwrap());
    // It answers for as long as the process lives.
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let Ok(mut stream) = stream else { continue };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(format!("HTTP/1.1 400 Bad Request\r\n\r\n{}", "x".repeat(9000)).as_bytes());
        }
    });
    let told = run(&["first-window", "--unprivileged", &url]);
    assert!(told.out.contains("doesn't speak TLS") && !told.out.contains('≥'), "{} {}", told.out, told.err);
    let nobody = run(&["first-window", "--unprivileged", "http://127.0.0.1:1/"]);
    assert_eq!(told.code, nobody.code, "as where nothing is learnt: {}", told.err);
}
