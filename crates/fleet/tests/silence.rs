//! Servers that accept connections and then say nothing, or little.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use wt_fleet::{AgentStore, FleetAdmin, PgJournal, StoreAddress, Turns};
use wt_sys::clock::monotonic_ns;

/// Who waits for it longer than this waits for ever.
const LONG: u64 = 8_000_000_000;

/// A server that does this with each connection; its address with little patience.
fn server(serve: impl Fn(&mut TcpStream) + Send + 'static) -> StoreAddress {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        // Each stays open.
        let mut open = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            serve(&mut stream);
            open.push(stream);
        }
    });
    let address: StoreAddress = format!("postgresql://wt@127.0.0.1:{port}/wt").parse().unwrap();
    address.with_patience(Duration::from_millis(100))
}

/// Lets somebody in without a password.
fn let_in(stream: &mut TcpStream) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut rest).unwrap();
    // AuthenticationOk and ReadyForQuery.
    stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
}

/// A message that comes in five parts, with a pause of 300 ms before each.
fn trickle(stream: &mut TcpStream) {
    // The server's name and value of a parameter.
    for part in [&b"S\0\0"[..], b"\0\x0b", b"abc", b"\0de", b"\0"] {
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(300)));
        if stream.write_all(part).is_err() {
            return;
        }
    }
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_away() {
    let address = server(|_| ());
    let begun = monotonic_ns();
    let journal = PgJournal::open_to_read(&address).unwrap_err().to_string();
    let turns = Turns::connect(&address).unwrap_err().to_string();
    let admin = FleetAdmin::connect(&address).unwrap_err().to_string();
    let agent = AgentStore::connect(&address).unwrap_err().to_string();
    for why in [journal, turns, admin, agent] {
        assert!(why.contains("the server hasn't answered for 0.1 s"), "{why}");
    }
    assert!(monotonic_ns() - begun < LONG);
}

#[test]
fn a_server_that_falls_silent_after_the_login_is_away_and_stays_so() {
    let address = server(let_in);
    let begun = monotonic_ns();
    let mut turns = Turns::connect(&address).unwrap();
    let ticket = wt_fleet::TurnWish {
        alone: vec!["a".to_owned()],
        shared: Vec::new(),
        hold: Duration::from_secs(1),
        patience: Duration::from_secs(1),
    };
    let first = turns.ask(&ticket, None, Duration::ZERO).unwrap_err().to_string();
    assert!(first.contains("the server hasn't answered for 0.1 s"), "{first}");
    let second = turns.ask(&ticket, None, Duration::ZERO).unwrap_err();
    assert!(matches!(second, wt_fleet::TurnError::Unreachable(_)), "{second}");
    assert!(matches!(PgJournal::open_to_read(&address), Err(wt_journal::JournalError::Unreachable { .. })));
    assert!(monotonic_ns() - begun < LONG);
}

#[test]
fn a_server_that_answers_slowly_is_waited_for_as_long_as_something_comes() {
    // For 1.5 s in all.
    let address = server(|stream| {
        let_in(stream);
        trickle(stream);
    });
    let begun = monotonic_ns();
    let why = PgJournal::open_to_read(&address.with_patience(Duration::from_secs(1))).unwrap_err().to_string();
    assert!(why.contains("the server hasn't answered for 1 s"), "{why}");
    assert!(monotonic_ns() - begun > 2_000_000_000);
}
