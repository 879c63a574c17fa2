//! `windtunnel web` beside those who keep all its connections, its turns and its memory busy: a client from another address is served
//! as if they weren't there.

use super::crowd::{FloodReport, from, most_memory_kb, stuff, took_ms};
use super::web::{JSON, Server};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Answers of 9.5 MB.
const LARGE: &str = "/api/v1/overhead?sweep=64..65535";
/// Minutes of computing.
const LONG: &str = "/api/v1/predict?rate=10gbit&rtt=100ms&size=10GB&seeds=100";

fn get(server: &Server, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", server.host).into_bytes()
}

/// So many connections from an address, each doing something; they stay.
fn crowd(server: &Server, last: u8, size: usize, act: impl Fn(&mut TcpStream)) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for mut stream in (0..size).filter_map(|_| from(last, &server.host)) {
        act(&mut stream);
        held.push(stream);
    }
    held
}

/// What a client sees: the journal, the settings, a position of the page's sliders, each over a connection of its own.
fn serve(server: &Server, headers: &[(&str, &str)]) -> Vec<u64> {
    let ask = |path: &str| took_ms(|| assert_eq!(server.ask("GET", path, headers, "").status, 200, "{path}"));
    let paths = ["/api/v1/journal", "/api/v1/settings", "/api/v1/predict?rate=8mbit&rtt=40ms", "/api/v1/health"];
    paths.iter().cycle().take(16).map(|path| ask(path)).collect()
}

fn seen(server: &Server, flood: &'static str, connections: usize, headers: &[(&str, &str)]) -> usize {
    let served_ms = serve(server, headers);
    FloodReport { flood, connections, served_ms, memory_kb: most_memory_kb(server.child.id()) }.check()
}

#[test]
fn beside_floods_of_every_kind_a_client_is_served_within_a_second_and_memory_is_bounded() {
    let _alone = crate::common::alone();
    let server = Server::start();
    // So that events are there to be read.
    let request = r#"{"lab":"lan","levels":{"rwin":"4x,16x"},"trial":"200ms","budget":"2000 trials"}"#;
    let run = server.ask("POST", "/api/v1/experiments", &[JSON], request);
    let id = run.json()["id"].as_str().unwrap_or_else(|| panic!("{}", run.body)).to_owned();
    let events = format!("/api/v1/runs/{id}/events");

    let write = |bytes: Vec<u8>| move |stream: &mut TcpStream| drop(stream.write_all(&bytes));
    let drip = write(b"POST /api/v1/settings/plan HTTP/1.1\r\ncontent-length: 60000\r\n".to_vec());
    let body = format!(
        "POST /api/v1/settings/plan HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n{{",
        server.host
    );
    let mut count = 0;
    let mut flood = |what, size: usize, act: &dyn Fn(&mut TcpStream)| {
        // Two addresses: their shares are all that there is.
        let held: Vec<_> = [2, 3].map(|last| crowd(&server, last, size / 2, act)).into_iter().flatten().collect();
        count += seen(&server, what, held.len(), &[]);
    };
    flood("silence", 800, &|_| {});
    flood("heads that don't end", 800, &drip);
    flood("bodies that don't come", 800, &write(body.into_bytes()));
    let small = get(&server, "/api/v1/health").repeat(100);
    flood("answers that aren't read", 800, &|stream| stuff(stream, &small, 100));
    let refused = small.iter().map(|byte| if *byte == b'v' { b'w' } else { *byte }).collect::<Vec<_>>();
    flood("refusals that aren't read", 800, &|stream| stuff(stream, &refused, 10));
    flood("event streams that aren't read", 520, &write(get(&server, &events)));
    flood("large answers that aren't read", 400, &write(get(&server, LARGE).repeat(3)));
    flood("requests that take minutes", 300, &write(get(&server, LONG)));
    flood("requests that start a process", 300, &write(get(&server, "/api/v1/doctor")));
    drop(server.ask("DELETE", &format!("/api/v1/runs/{id}"), &[], ""));

    // Those who come and go as fast as they can.
    let (stop, coming) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for last in [4, 5] {
            let (server, stop, coming) = (&server, &stop, &coming);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if let Some(mut stream) = from(last, &server.host) {
                        let _ = stream.write_all(&get(server, LARGE));
                        let _ = wt_sys::tcp::reset_on_close(&stream);
                        coming.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            seen(&server, "those who come and go", coming.load(Ordering::Relaxed), &[])
        }));
        stop.store(true, Ordering::Relaxed);
        assert!(served.is_ok());
    });
    assert!(count >= 4_500 && coming.load(Ordering::Relaxed) >= 100, "{count} {coming:?}");
    println!("{count} connections held and {coming:?} that came and went: 0 kept a client out");
}

#[test]
fn behind_a_password_neither_guesses_nor_held_connections_keep_its_owner_out() {
    let _alone = crate::common::alone();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "correct\n").expect("a file");
    let password = file.to_str().expect("a path");
    let server = Server::start_with(&["--listen", "127.0.0.1:0", "--password-file", password]);
    // anybody:correct
    let right = [("authorization", "Basic YW55Ym9keTpjb3JyZWN0")];
    let (bare, guess) = (get(&server, "/api/v1/health").repeat(50), get(&server, "/api/v1/health"));
    let guess = String::from_utf8_lossy(&guess).replace("\r\n\r\n", "\r\nauthorization: Basic eDp5\r\n\r\n").repeat(50);
    let mut count = 0;
    for (what, bytes) in [("requests without the password", bare), ("guesses", guess.into_bytes())] {
        let held: Vec<_> = [2, 3]
            .map(|last| crowd(&server, last, 400, |stream| stuff(stream, &bytes, 50)))
            .into_iter()
            .flatten()
            .collect();
        count += seen(&server, what, held.len(), &right);
        // Who hasn't got it keeps no place: the first refusal is the last.
        let mut first = from(2, &server.host).expect("a connection");
        first.write_all(&bytes).expect("requests");
        first.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let mut heard = Vec::new();
        let _ = first.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard);
        assert_eq!(heard.matches("HTTP/1.1 4").count(), heard.matches("HTTP/1.1").count(), "{heard}");
        assert!(heard.matches("HTTP/1.1").count() <= 1, "{heard}");
    }
    assert!(count >= 1_200, "{count}");
}
