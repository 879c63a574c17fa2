//! Each response of a connection by itself, and what is still open.

use crate::{available, connect, rules, secluded};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;
use wt_bpf::{ArmOptions, TrafficKnowledge, TrafficProgram, TrafficRecords};
use wt_testing::require;

/// Whether this kernel times responses; Linux 6.15 does.
fn times_responses(program: &TrafficProgram) -> Result<(), String> {
    match program.knows() {
        TrafficKnowledge::Responses => Ok(()),
        other => Err(format!("this kernel's programs know no more than {other:?}")),
    }
}

#[test]
fn each_response_of_a_connection_that_is_kept_open_is_timed_by_itself_and_one_that_is_cut_says_so() {
    /// Between a request and the next: longer than a client delays its ACK.
    const THINKS: Duration = Duration::from_millis(150);
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default()])).unwrap();
        require!("responses", times_responses(&program));
        program.set_epoch(4, &[1 << 32]);
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
        wt_sys::tcp::reset_on_close(&client).unwrap();
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default()])).unwrap();
        require!("responses", times_responses(&program));
        program.set_epoch(4, &[1 << 32]);
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default()])).unwrap();
        require!("responses", times_responses(&program));
        program.set_epoch(4, &[1 << 32]);
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
