//! Exchanges, bursts, streams and several flows at once over loopback: with our server, with one that has a key, and with
//! servers that lose, mix up, drip or leave.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::far::TestConnector;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use wt_load::page::PageMemory;
use wt_load::work::{Leg, Turns, WorkOutcome, in_pairs, join, work};
use wt_load::{
    Connection, Fetch, FetchError, FetchOutcome, Finish, Quota, Request, SenderOptions, Serve, ServeConfig, Server,
    ServerConfig, SharedKey, Tls, Url, work_at,
};
use wt_trial::{Amount, Cancel, Direction, Page, Repeat, Workload};
use wt_units::{Bytes, Settings};

const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);

fn server() -> Server {
    Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), ServerConfig::default()).unwrap()
}

/// Runs a workload at our server, both views joined.
fn run(workload: &Workload) -> WorkOutcome {
    let server = server();
    let mut worked = work(workload, &TestConnector(server.address(), PATIENCE), PATIENCE, &Cancel::new()).unwrap();
    let servers: Vec<_> = worked.tokens.iter().map(|token| server.take_report(*token, PATIENCE)).collect();
    assert!(servers.iter().all(Option::is_some), "every connection has its report");
    join(workload, &mut worked, &servers);
    worked
}

fn transactions(request: u64, response: u64, amount: Repeat) -> Workload {
    Workload::Transactions { request: Bytes(request), response: Bytes(response), think: Duration::ZERO, amount }
}

fn stream(direction: Direction, message: u64, interval_ms: u64, count: u64) -> Workload {
    let interval = Duration::from_millis(interval_ms);
    Workload::Stream { direction, message: Bytes(message), interval, time: interval * count as u32 }
}

#[test]
fn so_many_transactions_are_done_and_every_byte_of_them_counts() {
    let worked = run(&transactions(100, 3000, Repeat::Count(50)));
    let exchanges = worked.report.measures.exchanges.unwrap();
    assert_eq!((worked.report.finish, worked.report.bytes), (Finish::Done, 50 * 3100));
    assert_eq!(exchanges.latency.count, 50);
    assert!(exchanges.latency.min_us > 0 && exchanges.latency.p99_us <= exchanges.latency.max_us);
}

#[test]
fn two_ways_take_turns_and_every_byte_of_both_counts() {
    let server = server();
    let far = TestConnector(server.address(), PATIENCE);
    let turns = Turns { request: 100, answer: 3000, count: 20, deadline: PATIENCE };
    let mut asked = 0;
    let first = || {
        asked += 1;
        asked % 2
    };
    let done = in_pairs([&far, &far], &turns, first, &Cancel::new()).unwrap();
    assert_eq!((done.finish, done.times_ns.len(), asked), (Finish::Done, 20, 20));
    assert!(done.times_ns.iter().flatten().all(|ns| *ns > 0));
    for token in done.tokens {
        assert_eq!(server.take_report(token, PATIENCE).unwrap().bytes, 20 * 3100);
    }
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = in_pairs([&far, &far], &turns, || 0, &cancel).unwrap();
    assert_eq!((stopped.finish, stopped.times_ns.len()), (Finish::Cancelled, 0));
}

#[test]
fn large_requests_and_answers_that_fill_no_buffer_at_once_come_through() {
    let worked = run(&transactions(3_000_000, 2_000_000, Repeat::Count(2)));
    assert_eq!((worked.report.finish, worked.report.bytes), (Finish::Done, 10_000_000));
}

#[test]
fn thinking_lowers_the_rate_and_not_the_response_time() {
    let think = Duration::from_millis(20);
    let workload = Workload::Transactions { request: Bytes(10), response: Bytes(10), think, amount: Repeat::Count(5) };
    let worked = run(&workload);
    let exchanges = worked.report.measures.exchanges.unwrap();
    // Four pauses between five of them.
    assert!(exchanges.per_second <= 5.0 / (4.0 * 0.02), "{exchanges:?}");
    let sum = exchanges.latency.mean_us * exchanges.latency.count;
    assert!(worked.report.elapsed <= Duration::from_micros(sum) + Duration::from_millis(1), "pauses aren't counted");
}

#[test]
fn bursts_are_all_their_blocks_in_order() {
    let blocks = vec![Bytes(65_536), Bytes(10), Bytes(1000)];
    let pause = Duration::from_millis(10);
    let worked = run(&Workload::Bursts { request: Bytes(50), blocks, pause, amount: Repeat::Count(3) });
    assert_eq!((worked.report.finish, worked.report.bytes), (Finish::Done, 3 * (65_536 + 10 + 1000 + 3 * 50)));
    assert_eq!(worked.report.measures.exchanges.unwrap().latency.count, 9);
}

#[test]
fn streams_are_timed_where_they_arrive_in_both_directions() {
    for direction in [Direction::Down, Direction::Up] {
        let worked = run(&stream(direction, 100, 5, 40));
        assert_eq!(worked.report.finish, Finish::Done, "{direction:?}");
        let late = worked.report.measures.lateness.unwrap();
        assert_eq!((late.expected, late.spread.count, late.spread.min_us), (40, 40, 0), "{direction:?}");
        // Law: 39 intervals pass from the first message to the last.
        assert!(worked.report.elapsed >= Duration::from_millis(39 * 5), "{:?}", worked.report.elapsed);
        let score = worked.report.measures.score.unwrap();
        assert!((score * late.spread.p99_us.max(10) as f64 / 1e6 - 1.0).abs() < 1e-9);
    }
}

#[test]
fn several_flows_are_told_apart() {
    // Long enough for each of eight threads to get a core, however busy the machine is.
    let time = Duration::from_secs(1);
    let duplex = run(&Workload::Duplex { time });
    let [down, up] = duplex.report.measures.flows_bps[..] else { panic!("two flows") };
    assert!(down > 0.0 && up > 0.0);
    let score = duplex.report.measures.score.unwrap() * 8.0;
    assert!((score / (down * up).sqrt() - 1.0).abs() < 1e-9, "the geometric mean of both");
    for direction in [Direction::Down, Direction::Up] {
        let worked = run(&Workload::Competing { direction, rivals: 3, time });
        assert_eq!(worked.tokens.len(), 4);
        let flows = &worked.report.measures.flows_bps;
        assert!(flows.len() == 4 && flows.iter().all(|bps| *bps > 0.0), "{direction:?}: {flows:?}");
    }
}

#[test]
fn round_trips_are_taken_on_the_idle_path_and_beside_a_transfer() {
    let worked = run(&Workload::Load { direction: Direction::Down, time: Duration::from_millis(600) });
    let load = worked.report.measures.under_load.unwrap();
    assert!(load.idle.count >= 2 && load.loaded.count >= 2, "{load:?}");
    assert!((load.rpm * load.loaded.mean_us.max(1) as f64 / 60e6 - 1.0).abs() < 1e-9);
    assert!(worked.report.bytes > 0 && worked.report.finish == Finish::Done);
}

/// A peer that is asked for exchanges and answers each (its number) as it likes.
fn faulty(answer: impl Fn(usize, usize, &mut TcpStream) -> std::io::Result<()> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 48]).unwrap();
        for number in 0.. {
            let mut record = [0; 24];
            if stream.read_exact(&mut record).is_err() {
                return;
            }
            let size = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| record[at + i])) as usize;
            let mut request = vec![0; size(8)];
            if stream.read_exact(&mut request).is_err() || answer(number, size(12), &mut stream).is_err() {
                return;
            }
        }
    });
    address
}

/// The bytes of the pattern from here on: what our server sends first over a fresh connection.
fn pattern(from: usize, count: usize) -> Vec<u8> {
    let server = server();
    let request = Request {
        direction: Direction::Down,
        amount: Amount::Size(Bytes((from + count) as u64)),
        token: 1,
        sender: SenderOptions::default(),
        window: None,
    };
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(&request.to_bytes().unwrap()).unwrap();
    let mut bytes = vec![0; from + count];
    stream.read_exact(&mut bytes).unwrap();
    bytes.split_off(from)
}

fn at(address: SocketAddr, workload: &Workload, patience: Duration) -> WorkOutcome {
    work(workload, &TestConnector(address, PATIENCE), patience, &Cancel::new()).unwrap()
}

#[test]
fn a_server_that_loses_a_fast_answer_is_caught() {
    // The fifth answer is never sent; the connection stands and the server waits for more.
    let bytes = pattern(0, 100_000);
    let loses = faulty(move |number, size, stream| {
        if number == 4 {
            return Ok(());
        }
        stream.write_all(&bytes[number * size..(number + 1) * size])
    });
    let worked = at(loses, &transactions(10, 1000, Repeat::Count(50)), SHORT);
    let Finish::Lost(why) = &worked.report.finish else { panic!("{:?}", worked.report.finish) };
    assert_eq!(why, "the answer to request 5 never came whole: 0 of 1000 bytes");
    assert_eq!(worked.report.elapsed, SHORT, "as bad as it can be");
    assert_eq!(worked.report.measures.exchanges.unwrap().latency.count, 4);
}

#[test]
fn a_stack_that_loses_data_in_a_fast_answer_is_caught_at_its_byte() {
    // From byte 2500 on, 100 bytes are missing, as if a segment had been lost and never retransmitted.
    let bytes = pattern(0, 100_000);
    let skips = faulty(move |number, size, stream| {
        let (from, to) = (number * size, (number + 1) * size);
        let skip = |at: usize| if at >= 2500 { at + 100 } else { at };
        stream.write_all(&(from..to).map(|at| bytes[skip(at)]).collect::<Vec<u8>>())
    });
    let worked = at(skips, &transactions(10, 1000, Repeat::Count(50)), PATIENCE);
    assert!(
        matches!(worked.report.finish, Finish::Corrupt(at) if (2500..2503).contains(&at)),
        "{:?}",
        worked.report.finish
    );
    assert_eq!(worked.report.measures.missing_bytes, Some(100));
}

#[test]
fn drips_resets_and_early_ends_cost_no_more_than_the_deadline() {
    let drips = faulty(|_, size, stream| {
        stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        for byte in pattern(0, size) {
            stream.write_all(&[byte])?;
            // Waits for nothing but time, or until the client leaves.
            if matches!(stream.read(&mut [0]), Ok(0)) {
                break;
            }
        }
        Ok(())
    });
    let worked = at(drips, &transactions(10, 100_000, Repeat::Count(2)), SHORT);
    assert!(matches!(&worked.report.finish, Finish::Lost(why) if why.contains("of 100000 bytes")));
    let resets = faulty(|_, _, stream| {
        wt_sys::tcp::reset_on_close(stream).unwrap();
        Err(std::io::ErrorKind::Other.into())
    });
    let worked = at(resets, &transactions(10, 1000, Repeat::Count(2)), PATIENCE);
    assert!(matches!(worked.report.finish, Finish::PeerLeft(_) | Finish::Lost(_)), "{:?}", worked.report.finish);
    assert_eq!(worked.report.elapsed, PATIENCE);
    let leaves = faulty(|_, _, stream| {
        stream.write_all(&pattern(0, 10))?;
        Err(std::io::ErrorKind::Other.into())
    });
    let worked = at(leaves, &transactions(10, 1000, Repeat::Count(2)), PATIENCE);
    assert!(
        matches!(&worked.report.finish, Finish::Lost(why) if why.contains("10 of 1000")),
        "{:?}",
        worked.report.finish
    );
}

#[test]
fn messages_that_never_come_count_as_late_as_can_be() {
    let some = faulty(|_, _, _| Ok(()));
    // Its record asks for 40 messages, which this server never sends.
    let worked = at(some, &stream(Direction::Down, 100, 5, 40), Duration::from_millis(400));
    assert!(matches!(&worked.report.finish, Finish::Lost(why) if why == "40 of 40 messages never came"));
    assert_eq!(worked.report.measures.score, None);
}

#[test]
fn cancelling_ends_each_of_them_at_once() {
    let server = server();
    let hour = Duration::from_secs(3600);
    for workload in [
        transactions(10, 10, Repeat::Time(hour)),
        Workload::Transactions {
            request: Bytes(1),
            response: Bytes(1),
            think: Duration::from_secs(60),
            amount: Repeat::Count(9),
        },
        Workload::Stream {
            direction: Direction::Down,
            message: Bytes(1),
            interval: Duration::from_secs(50),
            time: hour,
        },
        Workload::Stream { direction: Direction::Up, message: Bytes(1), interval: Duration::from_secs(50), time: hour },
        Workload::Load { direction: Direction::Down, time: hour },
        Workload::Competing { direction: Direction::Down, rivals: 2, time: hour },
        Workload::Duplex { time: hour },
    ] {
        let (cancel, far) = (Cancel::new(), TestConnector(server.address(), PATIENCE));
        let stopper = cancel.clone();
        let worked = std::thread::scope(|scope| {
            let running = scope.spawn(|| work(&workload, &far, hour, &cancel).unwrap());
            stopper.cancel();
            running.join().unwrap()
        });
        assert_eq!(worked.report.finish, Finish::Cancelled, "{}", workload.name());
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_the_server_without_a_byte() {
    let server = server();
    let request = Request {
        direction: Direction::Down,
        amount: Amount::Time(SHORT),
        token: 9,
        sender: SenderOptions::default(),
        window: None,
    };
    for record in [[0xFF; 24], [0; 24], {
        // 4 GiB a message, for ever, without a pause.
        let mut record = [0; 24];
        record[0] = 2;
        record[8..16].fill(0xFF);
        record
    }] {
        let mut stream = Connection::open(&server.address(), &Settings::new(), PATIENCE)
            .unwrap()
            .ask(&request, &Leg::Talk { time: SHORT })
            .unwrap()
            .stream;
        stream.write_all(&record).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{} bytes", answer.len());
        let report = server.take_report(9, PATIENCE).unwrap();
        assert!(matches!(report.finish, Finish::Garbage(_)), "{:?}", report.finish);
    }
}

/// A server with a key that runs one test at a time.
fn keyed(quota: Quota) -> (Serve, Url, SocketAddr) {
    let key: SharedKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff".parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url =
        format!("wt://00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff@{address}").parse().unwrap();
    let config = ServeConfig {
        key,
        max_tests: 1,
        max_waiting: 4,
        longest: Duration::from_secs(60),
        quota,
        congestion_controls: std::collections::BTreeMap::new(),
    };
    (Serve::start(vec![listener], config).unwrap(), url, address)
}

fn at_keyed(url: &Url, peer: SocketAddr, workload: &Workload) -> Result<FetchOutcome, FetchError> {
    let (settings, tls) = (Settings::new(), Tls::nobody().unwrap());
    let amount = Amount::Size(Bytes(1));
    let fetch = Fetch { url, peer, settings: &settings, amount, deadline: PATIENCE, tls: &tls };
    work_at(&fetch, workload, &PageMemory::default(), &Cancel::new())
}

#[test]
fn a_server_with_a_key_runs_all_of_them_although_it_runs_one_test_at_a_time() {
    let (_serve, url, address) = keyed(Quota::default());
    let time = SHORT;
    for workload in [
        transactions(100, 1000, Repeat::Count(20)),
        stream(Direction::Down, 100, 5, 20),
        stream(Direction::Up, 100, 5, 20),
        Workload::Duplex { time },
        Workload::Soak { direction: Direction::Down, time },
        Workload::Soak { direction: Direction::Up, time },
        Workload::Competing { direction: Direction::Up, rivals: 2, time },
        Workload::Load { direction: Direction::Up, time: Duration::from_millis(600) },
        Workload::Page { page: Page::built_in() },
    ] {
        let name = format!("{workload}");
        let fetched = at_keyed(&url, address, &workload).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(fetched.report.finish, Finish::Done, "{name}");
        assert!(fetched.report.bytes > 0 && fetched.other.is_some() && fetched.notes.is_empty(), "{name}: {fetched:?}");
        let measures = &fetched.report.measures;
        match &workload {
            Workload::Stream { .. } | Workload::Load { .. } | Workload::Duplex { .. } => {
                assert!(measures.score.is_some(), "{name}")
            }
            Workload::Competing { .. } => assert_eq!(measures.flows_bps.len(), 3, "{name}"),
            Workload::Page { .. } => assert_eq!((measures.objects.len(), fetched.report.bytes), (44, 265_100)),
            _ => {}
        }
    }
}

#[test]
fn what_further_connections_move_counts_towards_the_quota() {
    // Enough for a second connection to come before the first one has used it up.
    let (serve, url, address) = keyed(Quota { bytes: 20_000_000, ..Quota::default() });
    let duplex = Workload::Duplex { time: SHORT };
    let first = at_keyed(&url, address, &duplex).unwrap();
    assert!(first.report.bytes > 0);
    // Both connections together, by the server's own count; what each reads or writes at once, 256 KiB or more, may go beyond.
    let moved: f64 = serve
        .metrics()
        .lines()
        .filter(|line| line.contains("_bytes_total") && !line.starts_with('#'))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    assert!((19_500_000.0..=21_500_000.0).contains(&moved), "{}", serve.metrics());
    let again = at_keyed(&url, address, &duplex);
    assert!(matches!(&again, Err(FetchError::Refused { why, .. }) if why.contains("quota")), "{again:?}");
}
