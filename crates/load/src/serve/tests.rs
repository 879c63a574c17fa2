use super::client::Session;
use super::message::{Answer, Ask};
use super::*;
use crate::pattern;
use crate::proto::{Request, SenderOptions};
use crate::transfer::Finish;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use wt_trial::{Amount, Direction};
use wt_units::Bytes;

/// A server on loopback, its key, and somebody who never stops.
struct TestServer(Serve, SharedKey, Cancel);

impl TestServer {
    fn start(max_tests: usize, quota: Quota) -> Self {
        let key: SharedKey = "07".repeat(32).parse().unwrap();
        let config = ServeConfig {
            key: key.clone(),
            max_tests,
            max_waiting: 8,
            longest: Duration::from_secs(30),
            quota,
            congestion_controls: BTreeMap::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self(Serve::start(vec![listener], config).unwrap(), key, Cancel::new())
    }

    /// Asks for a connection; the socket, and what the server answers first.
    fn asks(&self, ask: &dyn Fn(Request) -> Ask, of: (Direction, u64, u64)) -> (TcpStream, Session<'_>, Answer) {
        let (direction, size, token) = of;
        let amount = Amount::Size(Bytes(size));
        let request = Request { direction, amount, token, sender: SenderOptions::default(), window: None };
        let stream = TcpStream::connect(self.0.addresses()[0]).unwrap();
        let mut session = Session::open(stream.try_clone().unwrap(), &self.1, &self.2).unwrap();
        session.ask(&ask(request).to_bytes().unwrap()).unwrap();
        let answer = session.answer(in_ten_seconds()).unwrap();
        (stream, session, answer)
    }

    /// Waits until the client whose socket this is may move only so many bytes more; how many that are at last.
    fn wait_for(&self, left: u64, client: &TcpStream) -> u64 {
        let ip = queue::client_of(client.local_addr().unwrap().ip());
        let (seen, end) = (|| lock(&self.0.shared.accounts).bytes_left(ip), in_ten_seconds());
        while seen() != left && monotonic_ns() < end {
            crate::wire::pause(Duration::from_millis(1), &self.2);
        }
        seen()
    }
}

fn in_ten_seconds() -> u64 {
    monotonic_ns() + 10_000_000_000
}

fn test(request: Request) -> Ask {
    Ask::Test(request, false)
}

fn side(request: Request) -> Ask {
    Ask::Side(request, false)
}

/// Everything that comes until the server closes.
fn all_of(stream: &TcpStream) -> u64 {
    stream.set_nonblocking(false).unwrap();
    let (mut stream, mut all) = (stream, Vec::new());
    let _ = stream.read_to_end(&mut all);
    all.len() as u64
}

const QUOTA: u64 = 1_000_000;

#[test]
fn tests_at_once_of_one_client_have_no_more_than_its_quota_together() {
    let server = TestServer::start(2, Quota { bytes: QUOTA, ..Quota::default() });
    let first = server.asks(&test, (Direction::Down, QUOTA * 3 / 4, 1024));
    let second = server.asks(&test, (Direction::Down, QUOTA * 3 / 4, 2048));
    assert_eq!((&first.2, &second.2), (&Answer::Go, &Answer::Go));
    let moved = std::thread::scope(|scope| {
        let first = scope.spawn(|| all_of(&first.0));
        all_of(&second.0) + first.join().unwrap()
    });
    // The other one may be about to send a piece when the last byte is charged.
    assert!((QUOTA..=QUOTA + pattern::CHUNK as u64).contains(&moved), "{moved}");
    assert_eq!(server.wait_for(0, &first.0), 0);
}

#[test]
fn a_side_connection_is_charged_while_it_moves_bytes_and_keeps_the_place_of_its_test() {
    let server = TestServer::start(1, Quota { bytes: QUOTA, ..Quota::default() });
    let main = server.asks(&test, (Direction::Up, 1000, 1024));
    let mut open = server.asks(&side, (Direction::Up, QUOTA / 2, 1025));
    assert_eq!((&main.2, &open.2), (&Answer::Go, &Answer::Go));
    // The first connection ends; the other one has half of its bytes to go.
    (&main.0).write_all(pattern::at(0, 1000)).unwrap();
    assert!(server.0.shared.take_report(1024, Duration::from_secs(10)).is_some());
    open.0.set_nonblocking(false).unwrap();
    open.0.write_all(pattern::at(0, 1000)).unwrap();
    let (_next, mut waits, answer) = server.asks(&test, (Direction::Up, 1000, 4096));
    assert_eq!(answer, Answer::Queued(1), "the place is taken");
    let late = server.asks(&side, (Direction::Up, 1000, 1026));
    assert!(matches!(&late.2, Answer::Refused { why, .. } if why == "there is no such test"), "{:?}", late.2);
    assert_eq!(server.wait_for(QUOTA - 2000, &main.0), QUOTA - 2000);
    drop((open, main));
    while let Answer::Queued(_) = waits.answer(in_ten_seconds()).unwrap() {}
}

#[test]
fn who_waits_while_the_quota_is_used_up_is_told_so() {
    let server = TestServer::start(1, Quota { bytes: 1000, ..Quota::default() });
    let main = server.asks(&test, (Direction::Up, 2000, 1024));
    assert_eq!(main.2, Answer::Go);
    let (_stream, mut waits, answer) = server.asks(&test, (Direction::Up, 1000, 4096));
    assert_eq!(answer, Answer::Queued(1));
    (&main.0).write_all(pattern::at(0, 2000)).unwrap();
    let answer = loop {
        match waits.answer(in_ten_seconds()).unwrap() {
            Answer::Queued(_) => {}
            other => break other,
        }
    };
    let Answer::Refused { why, pause: Some(pause) } = &answer else { panic!("{answer:?}") };
    assert!(why.contains("quota") && *pause > Duration::from_secs(3600), "{answer:?}");
}

#[test]
fn a_download_ends_with_the_quota_of_time_and_the_report_says_so() {
    let server = TestServer::start(1, Quota { time: Duration::from_millis(200), ..Quota::default() });
    let (stream, _, answer) = server.asks(&test, (Direction::Down, 1 << 40, 1024));
    assert_eq!(answer, Answer::Go);
    all_of(&stream);
    let report = server.0.shared.take_report(1024, Duration::from_secs(10)).unwrap();
    assert_eq!(report.finish, Finish::PeerLeft("the quota of time is used up".to_owned()));
    // A receiver that has vanished is waited for two seconds more.
    assert!(report.elapsed < Duration::from_millis(1900), "{:?}", report.elapsed);
}

#[test]
fn a_download_that_the_quota_of_bytes_cut_short_is_reported_as_that() {
    let server = TestServer::start(1, Quota { bytes: 1000, ..Quota::default() });
    let (stream, _, answer) = server.asks(&test, (Direction::Down, 2000, 1024));
    assert_eq!((answer, all_of(&stream)), (Answer::Go, 1000));
    // It waits until the client leaves, too.
    drop(stream);
    let report = server.0.shared.take_report(1024, Duration::from_secs(10)).unwrap();
    assert_eq!(report.finish, Finish::PeerLeft("the quota of bytes is used up".to_owned()));
}

#[test]
fn a_server_that_stops_gives_the_report_of_what_ran_and_begins_no_test() {
    let server = TestServer::start(1, Quota::default());
    let (stream, _, answer) = server.asks(&test, (Direction::Up, 1000, 1024));
    assert_eq!(answer, Answer::Go);
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| server.0.drain(Duration::from_secs(60)));
        while !server.0.shared.draining.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let refused = server.asks(&test, (Direction::Up, 1000, 2048)).2;
        assert!(matches!(&refused, Answer::Refused { why, pause: Some(_) } if why.contains("about to stop")));
        (&stream).write_all(pattern::at(0, 1000)).unwrap();
        // It lives until its report is fetched, and no longer.
        let (_, _, answer) = server.asks(&|request| Ask::Report(request.token), (Direction::Up, 1000, 1024));
        assert!(matches!(answer, Answer::Report(length) if length > 0), "{answer:?}");
        assert!(drained.join().unwrap());
    });
    assert!(!server.0.shared.owes_reports());
}

#[test]
fn a_report_that_nobody_fetches_keeps_a_server_for_no_longer_than_it_may_take_to_stop() {
    let server = TestServer::start(1, Quota::default());
    server.0.shared.store(7, EndReport::of_several(Finish::Done, 1, Duration::ZERO));
    assert!(server.0.shared.owes_reports());
    let begun = monotonic_ns();
    assert!(server.0.drain(Duration::from_millis(100)));
    let took = Duration::from_nanos(monotonic_ns() - begun);
    assert!((Duration::from_millis(100)..REPORT_WAIT).contains(&took), "{took:?}");
}

#[test]
fn a_test_takes_no_longer_than_the_quota_and_a_quota_of_no_tests_lets_nobody_in() {
    let server = TestServer::start(1, Quota { time: Duration::from_millis(200), ..Quota::default() });
    let (stream, _, answer) = server.asks(&test, (Direction::Up, 2000, 1024));
    assert_eq!(answer, Answer::Go);
    // It would wait for 30 seconds.
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    let ended = (&stream).read(&mut [0]);
    assert!(!matches!(&ended, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock), "{ended:?}");
    for quota in [Quota { tests: 0, ..Quota::default() }, Quota { bytes: 0, ..Quota::default() }] {
        let server = TestServer::start(1, quota);
        let answer = server.asks(&test, (Direction::Up, 2000, 1024)).2;
        assert!(matches!(&answer, Answer::Refused { why, pause: Some(_) } if why.contains("quota")), "{answer:?}");
    }
}

#[test]
fn a_connection_that_joins_at_the_end_of_a_test_keeps_its_place_for_no_second_one() {
    let s = Duration::from_secs;
    let (all, time) = (Amount::Size(Bytes(1)), Amount::Time(s(5)));
    assert_eq!((gate::deadline_of(all, s(60), s(0)), gate::deadline_of(time, s(60), s(0))), (s(70), s(15)));
    assert_eq!((gate::deadline_of(all, s(60), s(69)), gate::deadline_of(time, s(60), s(69))), (s(11), s(11)));
    assert_eq!(gate::deadline_of(all, s(60), s(81)), s(0));
}
