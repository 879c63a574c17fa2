//! Transfers over loopback: both directions, by time and by size, and hostile ends.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use wt_load::{Connection, Finish, Request, SenderOptions, Server, ServerConfig, download, upload};
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_trial::{Amount, Cancel, Direction};
use wt_units::{Bytes, Knob, Level, Settings};

const PATIENCE: Duration = Duration::from_secs(10);

fn server() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Server::start(listener, ServerConfig::default()).unwrap()
}

fn request(direction: Direction, amount: Amount) -> Request {
    Request { direction, amount, token: 7, sender: SenderOptions::default(), window: None }
}

fn connect(address: SocketAddr) -> Connection {
    Connection::open(&address, &Settings::new(), PATIENCE).unwrap()
}

#[test]
fn a_download_of_a_size_brings_exactly_that_and_both_ends_agree() {
    let server = server();
    let request = request(Direction::Down, Amount::Size(Bytes(3_000_001)));
    let got = download(connect(server.address()), &request, PATIENCE, &Cancel::new()).unwrap();
    assert_eq!((got.finish, got.bytes), (Finish::Done, 3_000_001));
    let sent = server.take_report(7, PATIENCE).unwrap();
    assert_eq!((sent.finish, sent.bytes), (Finish::Done, 3_000_001));
    assert_eq!(sent.congestion_control, got.congestion_control);
}

#[test]
fn a_download_by_time_ends_on_time_and_leaves_a_report() {
    let server = server();
    let length = Duration::from_millis(200);
    let got =
        download(connect(server.address()), &request(Direction::Down, Amount::Time(length)), PATIENCE, &Cancel::new())
            .unwrap();
    assert_eq!((got.finish, got.elapsed), (Finish::Done, length));
    assert!(got.bytes > 0 && got.samples.len() >= 5);
    let sent = server.take_report(7, PATIENCE).unwrap();
    assert!(sent.bytes >= got.bytes && sent.info.bytes_acked > 0);
}

#[test]
fn an_upload_is_counted_by_the_server() {
    let server = server();
    let request = request(Direction::Up, Amount::Size(Bytes(2_000_000)));
    let sent = upload(connect(server.address()), &request, PATIENCE, &Cancel::new()).unwrap();
    let got = server.take_report(7, PATIENCE).unwrap();
    assert_eq!((got.finish, got.bytes, sent.bytes), (Finish::Done, 2_000_000, 2_000_000));
}

#[test]
fn what_waits_in_a_send_buffer_when_the_time_is_up_has_not_been_uploaded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    wt_sys::tcp::fix_window(&listener, 32_768).unwrap();
    let address = listener.local_addr().unwrap();
    let (taken, time) = (100_000, Duration::from_millis(100));
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut vec![0; 48 + taken]).unwrap();
        // It leaves when its time is up, in the middle of the stream.
        wait_readable(&[], Some(time)).unwrap();
    });
    let sender = SenderOptions { send_buffer: Some(200_000), ..SenderOptions::default() };
    let request = Request { sender, ..request(Direction::Up, Amount::Time(time)) };
    let sent = upload(connect(address), &request, PATIENCE, &Cancel::new()).unwrap();
    receiver.join().unwrap();
    assert_eq!((sent.finish, sent.elapsed), (Finish::Done, time));
    // The window may be full, and the kernel lifts its clamp once.
    assert!((taken as u64..taken as u64 + 100_000).contains(&sent.bytes), "{}", sent.bytes);
}

#[test]
fn an_upload_of_a_size_is_over_with_the_last_acknowledgement_not_when_the_receiver_leaves() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stays = Duration::from_millis(500);
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        let there = monotonic_ns();
        wait_readable(&[], Some(stays)).unwrap();
        there
    });
    let request = request(Direction::Up, Amount::Size(Bytes(100_000)));
    let begun = monotonic_ns();
    let sent = upload(connect(address), &request, PATIENCE, &Cancel::new()).unwrap();
    let whole = Duration::from_nanos(monotonic_ns() - begun);
    assert_eq!((sent.finish, sent.bytes), (Finish::Done, 100_000));
    // Until the receiver knew that this was all, and not for what it stayed beyond that.
    let there = Duration::from_nanos(receiver.join().unwrap() - begun);
    assert!(sent.elapsed < there + stays / 2 && whole >= there + stays, "{:?} of {whole:?}", sent.elapsed);
}

#[test]
fn the_window_is_clamped_from_the_first_byte() {
    let server = server();
    let settings = Settings::new().with(Knob::Rwin, Level::Number(16 * 1448));
    let connection = Connection::open(&server.address(), &settings, PATIENCE).unwrap();
    assert_eq!(connection.granted.number(Knob::Rwin), Some(16 * 1448));
    let request = request(Direction::Down, Amount::Size(Bytes(100_000)));
    download(connection, &request, PATIENCE, &Cancel::new()).unwrap();
    let sent = server.take_report(7, PATIENCE).unwrap();
    // The kernel lifts the clamp once, when the first segment teaches it their size; what it offered then may stand.
    let widest = sent.samples.iter().map(|sample| sample.snd_wnd).chain([sent.info.snd_wnd.into()]).max();
    assert!(widest <= Some(65_536), "{widest:?}");
}

#[test]
fn an_unknown_congestion_control_is_told_and_the_transfer_still_runs() {
    let server = server();
    let mut request = request(Direction::Down, Amount::Size(Bytes(1000)));
    request.sender.congestion_control = Some("nonesuch".to_owned());
    download(connect(server.address()), &request, PATIENCE, &Cancel::new()).unwrap();
    let sent = server.take_report(7, PATIENCE).unwrap();
    assert!(sent.refused[0].contains("nonesuch"), "{:?}", sent.refused);
}

#[test]
fn a_server_that_lies_is_caught_at_the_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let liar = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 48]).unwrap();
        stream.write_all(&[0xAA; 10_000]).unwrap();
        // Until the client leaves.
        let _ = stream.read(&mut [0; 1]);
    });
    let request = request(Direction::Down, Amount::Size(Bytes(10_000)));
    let got = download(connect(address), &request, PATIENCE, &Cancel::new()).unwrap();
    assert!(matches!(got.finish, Finish::Corrupt(at) if at < 4), "{:?}", got.finish);
    liar.join().unwrap();
}

#[test]
fn a_server_that_stays_silent_costs_no_more_than_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let request = request(Direction::Down, Amount::Size(Bytes(10_000)));
    let connection = connect(listener.local_addr().unwrap());
    let got = download(connection, &request, Duration::from_millis(100), &Cancel::new()).unwrap();
    assert_eq!((got.finish, got.bytes), (Finish::Deadline, 0));
}

#[test]
fn cancelling_ends_a_transfer_that_would_run_for_an_hour() {
    let server = server();
    let cancel = Cancel::new();
    let connection = connect(server.address());
    let request = request(Direction::Down, Amount::Time(Duration::from_secs(3600)));
    let stopper = cancel.clone();
    let got = std::thread::scope(|scope| {
        let running = scope.spawn(|| download(connection, &request, Duration::from_secs(4000), &cancel).unwrap());
        stopper.cancel();
        running.join().unwrap()
    });
    assert_eq!(got.finish, Finish::Cancelled);
}

#[test]
fn plain_http_works_beside_it() {
    let server = server();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /bytes/100000 HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_eq!(answer.len() - body, 100_000);
}

#[test]
fn garbage_gets_no_more_than_a_short_error() {
    let server = server();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"WTL1 but nothing sensible follows in the rest of it",
        b"SSH-2.0-x\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(garbage).unwrap();
        // The server may have left already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 400, "{} bytes", answer.len());
    }
}
