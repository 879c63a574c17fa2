//! Workloads of several flows at servers that close, reset, fall silent, pour or drip: each ends in time, and none counts as done.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::far::TestConnector;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use wt_load::Finish;
use wt_load::work::work;

use wt_sys::clock::monotonic_ns;
use wt_trial::{Cancel, Direction, Workload};

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
