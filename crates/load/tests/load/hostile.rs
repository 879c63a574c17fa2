//! Workloads of several flows at servers that close, reset, fall silent, pour or drip: each ends in time, and none counts as done.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::far::TestConnector;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use wt_load::work::work;
use wt_load::{Fetch, FetchError, FetchOutcome, Finish, Reference, Tls, fetch};
use wt_sys::clock::monotonic_ns;
use wt_trial::{Amount, Cancel, Direction, Workload};
use wt_units::{Bytes, Settings};

const TIME: Duration = Duration::from_millis(400);
const DEADLINE: Duration = Duration::from_secs(1);
/// What ends a sender whose peer never leaves comes two seconds after the deadline; other connections have run before.
const IN_TIME: Duration = Duration::from_secs(30);

/// What a server does once it has heard what is wanted.
type Act = fn(&mut TcpStream) -> std::io::Result<()>;

fn hostile(act: Act) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                if stream.read_exact(&mut [0; 48]).is_ok() {
                    // A client that leaves is no error of the server's.
                    let _ = act(&mut stream);
                }
            });
        }
    });
    address
}

/// Holds the connection and neither reads nor writes, until the client leaves.
fn hold(stream: &mut TcpStream) -> std::io::Result<()> {
    while wt_sys::tcp::TcpInfo::read(stream).is_ok_and(|info| info.state == 1) {
        // Waits for nothing but time.
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(20)));
    }
    Ok(())
}

const KINDS: [(&str, Act); 6] = [
    ("closes", |_| Ok(())),
    ("resets", |stream| {
        wt_sys::tcp::reset_on_close(stream).unwrap();
        Ok(())
    }),
    ("falls silent", hold),
    ("pours zeros", |stream| {
        loop {
            stream.write_all(&[0; 65_536])?;
        }
    }),
    ("drips", |stream| {
        stream.set_read_timeout(Some(Duration::from_millis(30)))?;
        loop {
            stream.write_all(b"x")?;
            let _ = stream.read(&mut [0; 64]);
        }
    }),
    ("answers with HTTP", |stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")),
];

fn ends_in_time_and_not_well(workload: &Workload) {
    std::thread::scope(|scope| KINDS.iter().for_each(|kind| drop(scope.spawn(|| at(workload, kind)))));
}

fn at(workload: &Workload, (kind, act): &(&str, Act)) {
    let begun = monotonic_ns();
    let worked = work(workload, &TestConnector(hostile(*act), DEADLINE), DEADLINE, &Cancel::new());
    let took = Duration::from_nanos(monotonic_ns() - begun);
    assert!(took < IN_TIME, "{} at one that {kind}: {took:?}", workload.name());
    if let Ok(worked) = worked {
        let all = [&worked.report].into_iter().chain(&worked.others);
        let done = all.filter(|end| end.finish == Finish::Done && end.bytes > 0).count();
        assert_eq!(done, 0, "{} at one that {kind}: {:?}", workload.name(), worked.report.finish);
    }
}

#[test]
fn both_ways_at_once() {
    ends_in_time_and_not_well(&Workload::Duplex { time: TIME });
}

#[test]
fn beside_others() {
    for direction in [Direction::Down, Direction::Up] {
        ends_in_time_and_not_well(&Workload::Competing { direction, rivals: 3, time: TIME });
    }
}

#[test]
fn latency_under_load() {
    for direction in [Direction::Down, Direction::Up] {
        ends_in_time_and_not_well(&Workload::Load { direction, time: TIME });
    }
}

/// Fetches so much from there.
fn fetched(scheme: &str, peer: SocketAddr, amount: Amount, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let url = format!("{scheme}://{peer}/").parse().unwrap();
    let (settings, tls) = (Settings::new(), Tls::nobody().unwrap());
    let job = Fetch { url: &url, peer, settings: &settings, amount, deadline: Duration::from_secs(60), tls: &tls };
    fetch(&job, &mut Reference::new(), cancel)
}

/// An iperf3 server that has nothing to say at the end, and says it without end.
fn chatters(listener: &TcpListener, cancel: &Cancel) -> std::io::Result<()> {
    let (mut control, _) = listener.accept()?;
    control.read_exact(&mut [0; 37])?;
    control.write_all(&[9])?;
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    control.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize])?;
    control.write_all(&[10])?;
    let (mut data, _) = listener.accept()?;
    data.read_exact(&mut [0; 37])?;
    control.write_all(&[1, 2])?;
    data.write_all(&b"0123456789".repeat(100))?;
    control.read_exact(&mut [0])?;
    cancel.cancel();
    let end = monotonic_ns() + 10_000_000_000;
    while monotonic_ns() < end {
        control.write_all(&[2; 65_536])?;
    }
    Ok(())
}

#[test]
fn an_iperf3_server_that_chatters_at_the_end_of_a_test_holds_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, cancel) = (listener.local_addr().unwrap(), Cancel::new());
    std::thread::scope(|scope| {
        // It ends with an error when the client leaves.
        scope.spawn(|| drop(chatters(&listener, &cancel)));
        let begun = monotonic_ns();
        let done = fetched("iperf3", address, Amount::Time(Duration::from_millis(100)), &cancel).unwrap();
        let took = Duration::from_nanos(monotonic_ns() - begun);
        assert!(done.report.finish == Finish::Done && took < Duration::from_secs(4), "{took:?} {done:?}");
    });
}

#[test]
fn less_of_a_file_than_was_asked_for_is_no_whole_transfer() {
    let part = |range: &'static str| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head =
                format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {range}\r\nContent-Length: 3000\r\n\r\n");
            let _ = stream.write_all(&[head.as_bytes(), &[b'x'; 3000]].concat());
            let _ = stream.read(&mut [0]);
        });
        fetched("http", address, Amount::Size(Bytes(10_000)), &Cancel::new()).unwrap().report.finish
    };
    let short = Finish::Garbage("the server sent 3000 of 10000 bytes that were asked for".to_owned());
    assert_eq!((part("0-2999/50000"), part("0-2999/3000"), part("0-2999/*")), (short, Finish::Done, Finish::Done));
}
