//! Each response of a connection by itself, and what is still open.

use crate::{available, connect, rules, secluded};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;
use wt_bpf::{ArmOptions, TrafficKnowledge, TrafficProgram, TrafficRecords};
use wt_sys::tcp::{TcpInfo, reset_on_close, set_max_segment, set_receive_buffer, set_send_buffer};
use wt_testing::require;

/// A listener all of whose connections are of one arm, with its program; or why this kernel times no responses, as Linux 6.15 does.
fn timed() -> Result<(TcpListener, TrafficProgram), String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default()])).unwrap();
    match program.knows() {
        TrafficKnowledge::Responses => program.set_epoch(4, &[1 << 32]),
        other => return Err(format!("this kernel's programs know no more than {other:?}")),
    }
    Ok((listener, program))
}

#[test]
fn each_response_of_a_connection_that_is_kept_open_is_timed_by_itself_and_one_that_is_cut_says_so() {
    /// Between a request and the next: longer than a client delays its ACK.
    const THINKS: Duration = Duration::from_millis(150);
    require!("bpf", available());
    secluded(|| {
        let (listener, mut program) = require!("responses", timed());
        let mut client = connect([127, 0, 0, 1].into(), &listener);
        let (mut server, _) = listener.accept().unwrap();
        let sizes = [5_000_usize, 1, 70_000, 12_345];
        let began = wt_sys::clock::monotonic_ns();
        for size in sizes {
            client.write_all(b"?").unwrap();
            server.read_exact(&mut [0]).unwrap();
            server.write_all(&vec![b'x'; size]).unwrap();
            client.read_exact(&mut vec![0; size]).unwrap();
            std::thread::park_timeout(THINKS);
        }
        let all_ns = wt_sys::clock::monotonic_ns() - began;
        let open = loop {
            let open = program.still_open().unwrap();
            // The last ACK may be on its way.
            if open.connections[0].last_response.is_none() {
                break open;
            }
        };
        assert_eq!((open.connections.len(), open.responses.len()), (1, 1), "{open:?}");
        assert_eq!((open.responses[0].bytes, open.connections[0].responses), (12_345, 4));
        assert_eq!((open.connections[0].bytes_acked, open.connections[0].last_response), (87_346, None));
        drop(server);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(client);
        let TrafficRecords { responses, connections } = both(&mut program, 1);
        let last = connections[0].last_response.unwrap();
        let mut bytes: Vec<u32> = responses.iter().map(|response| response.bytes).collect();
        bytes.push(last.bytes);
        assert_eq!((bytes, connections[0].responses, last.cut), (vec![5_000, 1, 70_000, 12_345], 4, false));
        // Of a pause no more is part of any than the delay of an ACK, of 40 ms.
        let took: u64 = responses.iter().map(|response| response.took_ns).sum::<u64>() + last.took_ns;
        assert!(took > 0 && took + 2 * (THINKS.as_nanos() as u64) <= all_ns, "{took} of {all_ns} ns");
        assert!(responses.iter().all(|one| one.tag == connections[0].tag && one.since_ns == connections[0].since_ns));
        assert!(responses.windows(2).all(|two| two[0].ended_ns < two[1].ended_ns - two[1].took_ns));
        // What the client doesn't take isn't acknowledged when it resets the connection.
        let client = connect([127, 0, 0, 1].into(), &listener);
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        while server.write(&[0; 1 << 16]).is_ok() {}
        let open = program.still_open().unwrap();
        assert!(open.responses.is_empty() && open.connections[0].last_response.is_some(), "{open:?}");
        reset_on_close(&client).unwrap();
        drop(client);
        let last = both(&mut program, 1).connections[0].last_response.unwrap();
        assert!(last.cut && last.bytes > 0, "{last:?}");
    });
}

/// Waits until so many connections have ended.
fn both(program: &mut TrafficProgram, count: usize) -> TrafficRecords {
    let mut all = TrafficRecords::default();
    while all.connections.len() < count {
        let TrafficRecords { responses, connections } = program.records();
        all.responses.extend(responses);
        all.connections.extend(connections);
        std::thread::yield_now();
    }
    all
}

#[test]
fn a_client_that_asks_for_ever_is_told_of_no_more_than_sixty_four_times() {
    require!("bpf", available());
    secluded(|| {
        let (listener, mut program) = require!("responses", timed());
        let mut client = connect([127, 0, 0, 1].into(), &listener);
        let (mut server, _) = listener.accept().unwrap();
        for _ in 0..200 {
            server.write_all(b"x").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        drop(server);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(client);
        let found = both(&mut program, 1);
        assert!(found.responses.len() <= 64 && found.connections[0].responses <= 64, "{}", found.responses.len());
        assert_eq!(found.connections[0].bytes_acked, 201, "all of it, and the FIN");
    });
}

#[test]
fn who_writes_and_waits_for_room_is_timed_from_where_it_began() {
    const SLOW: Duration = Duration::from_millis(400);
    require!("bpf", available());
    secluded(|| {
        let (listener, mut program) = require!("responses", timed());
        let mut client = connect([127, 0, 0, 1].into(), &listener);
        let (mut server, _) = listener.accept().unwrap();
        let reader = std::thread::spawn(move || {
            let began = wt_sys::clock::monotonic_ns();
            while wt_sys::clock::monotonic_ns() - began < SLOW.as_nanos() as u64 {
                std::thread::park_timeout(SLOW);
            }
            std::io::copy(&mut client, &mut std::io::sink()).unwrap()
        });
        // More than both buffers hold: the call returns when the client has read most of it.
        server.write_all(&vec![0; 30_000_000]).unwrap();
        drop(server);
        assert_eq!(reader.join().unwrap(), 30_000_000);
        let last = both(&mut program, 1).connections[0].last_response.unwrap();
        assert!(last.took_ns as u128 * 10 >= SLOW.as_nanos() * 9, "{last:?}");
        assert_eq!((last.bytes, last.cut), (30_000_000, false));
    });
}

/// A body that neither end's buffer holds, of a server whose send buffer is fixed.
const BODY: usize = 1_000_000;
const SEND_BUFFER: u32 = 128 << 10;

/// A client and its server, of whose buffers the client's is far smaller, if several times as long as a segment.
fn small_buffers(listener: &TcpListener) -> (TcpStream, TcpStream) {
    set_max_segment(listener, 1_000).unwrap();
    let client = connect([127, 0, 0, 1].into(), listener);
    let (server, _) = listener.accept().unwrap();
    set_receive_buffer(&client, 8 << 10).unwrap();
    set_send_buffer(&server, SEND_BUFFER).unwrap();
    (client, server)
}

/// Writes what the kernel takes at once, which is more than the client's buffer holds; how many bytes.
fn fill(server: &mut TcpStream) -> usize {
    server.set_nonblocking(true).unwrap();
    let written = server.write(&[b'h'; BODY]).unwrap();
    server.set_nonblocking(false).unwrap();
    assert!(written < BODY);
    written
}

/// Writes the body with calls that wait for room; the thread ends when the kernel has taken all, or the connection has ended.
fn write_body(server: &TcpStream) -> JoinHandle<()> {
    let mut server = server.try_clone().unwrap();
    std::thread::spawn(move || drop(server.write_all(&[b'b'; BODY])))
}

/// Reads so many bytes, never so far that the writer, who may not have run meanwhile, has nothing more queued.
fn follow(client: &mut TcpStream, server: &TcpStream, writer: &JoinHandle<()>, bytes: usize) {
    let mut left = bytes;
    while left > 0 {
        while !writer.is_finished() && TcpInfo::read(server).unwrap().notsent_bytes < SEND_BUFFER / 4 {
            std::thread::yield_now();
        }
        left -= client.read(&mut [0; 4_000][..left.min(4_000)]).unwrap();
    }
}

#[test]
fn a_body_whose_writer_waits_for_room_is_one_response_with_its_head_and_what_comes_after_a_pause_is_another() {
    require!("bpf", available());
    secluded(|| {
        let (listener, mut program) = require!("responses", timed());
        let (mut client, mut server) = small_buffers(&listener);
        let mut sizes = Vec::new();
        for round in 1..=2 {
            let head = fill(&mut server);
            let writer = write_body(&server);
            // The head is acknowledged while the rest of the body isn't written yet.
            follow(&mut client, &server, &writer, head + BODY);
            writer.join().unwrap();
            sizes.push((head + BODY) as u32);
            while program.still_open().unwrap().connections[0].last_response.is_some() {
                // The last ACK may be on its way.
                std::thread::yield_now();
            }
            assert_eq!(program.still_open().unwrap().connections[0].responses, round);
        }
        // Nobody waits for more from who has said that this was all.
        server.write_all(b"bye").unwrap();
        server.shutdown(std::net::Shutdown::Write).unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        sizes.push(3);
        while program.still_open().unwrap().connections[0].last_response.is_some() {
            std::thread::yield_now();
        }
        drop(client);
        drop(server);
        let TrafficRecords { responses, connections } = both(&mut program, 1);
        let last = connections[0].last_response.unwrap();
        let mut bytes: Vec<u32> = responses.iter().map(|response| response.bytes).collect();
        bytes.push(last.bytes);
        assert_eq!((bytes, connections[0].responses, last.cut), (sizes, 3, false));
    });
}

#[test]
fn a_connection_that_ends_while_its_server_waits_for_room_has_a_response_that_is_cut() {
    /// Longer than two ticks of any kernel.
    const WAITS: Duration = Duration::from_millis(100);
    require!("bpf", available());
    secluded(|| {
        let (listener, mut program) = require!("responses", timed());
        for has_head in [true, false] {
            let (mut client, mut server) = small_buffers(&listener);
            let head = if has_head { fill(&mut server) } else { 0 };
            let writer = write_body(&server);
            // All of the head was acknowledged, and some of the body.
            follow(&mut client, &server, &writer, head + BODY / 4);
            std::thread::park_timeout(WAITS);
            let open = program.still_open().unwrap();
            let now = open.connections[0].last_response.unwrap();
            assert!(open.responses.is_empty() && open.connections[0].responses == 1, "{open:?}");
            assert_eq!((u64::from(now.bytes), now.cut), (open.connections[0].bytes_acked, true));
            assert!(now.bytes as usize > head && now.took_ns as u128 >= WAITS.as_nanos() / 2, "{now:?}");
            reset_on_close(&client).unwrap();
            drop(client);
            writer.join().unwrap();
            let TrafficRecords { responses, connections } = both(&mut program, 1);
            let last = connections[0].last_response.unwrap();
            assert!(responses.is_empty() && connections[0].responses == 1, "{responses:?}");
            assert_eq!((u64::from(last.bytes), last.cut), (connections[0].bytes_acked, true));
            assert!(last.took_ns >= now.took_ns, "{last:?}");
        }
    });
}
