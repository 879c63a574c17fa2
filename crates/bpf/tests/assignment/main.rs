//! Assigns connections to arms, in network namespaces of its own. Needs CAP_BPF; says so without.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod responses;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use wt_bpf::{ArmOptions, TrafficKnowledge, TrafficProgram, TrafficRecord, TrafficRules, missing_traffic_capabilities};
use wt_sys::netlink::Netlink;
use wt_sys::ns::NetNs;
use wt_sys::tcp::{TcpInfo, TcpSocket};
use wt_testing::require;

const WAIT: Duration = Duration::from_secs(60);
const EVEN: [u64; 2] = [1 << 31, 1 << 32];

fn available() -> Result<(), String> {
    let missing = missing_traffic_capabilities();
    if !missing.is_empty() {
        let rules = rules(1, vec![ArmOptions::default()]);
        let error = TrafficProgram::attach(&rules).unwrap_err().to_string();
        assert!(missing.iter().all(|name| error.contains(name)) || error.contains("clang"), "{error}");
        return Err(format!("{} missing", missing.join(", ")));
    }
    TrafficProgram::unavailable().map_or(Ok(()), Err)
}

fn rules(port: u16, arms: Vec<ArmOptions>) -> TrafficRules {
    TrafficRules {
        ports: vec![port],
        arms,
        by_connection: false,
        skip_private: false,
        skip_loopback: false,
        skip_own_cc: true,
        administrators: Vec::new(),
        key: [7, 8],
        tag_key: [9, 10],
        patience_ns: 3_600_000_000_000,
    }
}

/// Runs this in a network namespace of its own, with loopback up.
fn secluded(work: impl FnOnce() + Send + 'static) {
    let run = move || {
        NetNs::create().unwrap().enter().unwrap();
        Netlink::open().unwrap().start("lo", None, None, true).unwrap();
        work();
    };
    std::thread::spawn(run).join().unwrap();
}

/// The kernel's count of accepted connections in this namespace.
fn passive_opens() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let at = names.split(' ').position(|name| name == "PassiveOpens").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// One connection over which the server sends `bytes` and closes; the congestion window as the server finds it.
fn fetch(listener: &TcpListener, from: IpAddr, bytes: usize) -> u32 {
    serve(connect(from, listener), listener, bytes)
}

/// A connection to where a listener is, from this address.
fn connect(from: IpAddr, listener: &TcpListener) -> TcpStream {
    let at = SocketAddr::new(
        if from.is_ipv6() { from } else { [127, 0, 0, 1].into() },
        listener.local_addr().unwrap().port(),
    );
    TcpSocket::new(&at).unwrap().bound_to(from).unwrap().connect(&at, WAIT).unwrap()
}

/// Sends so many bytes over a connection that has been made, and closes it.
fn serve(mut client: TcpStream, listener: &TcpListener, bytes: usize) -> u32 {
    let (mut server, _) = listener.accept().unwrap();
    let cwnd = TcpInfo::read(&server).unwrap().snd_cwnd;
    server.write_all(&vec![1; bytes]).unwrap();
    server.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), bytes);
    cwnd
}

/// Clients of many prefixes, one connection each.
fn clients() -> impl Iterator<Item = IpAddr> + Clone {
    (1..=200_u8).map(|net| IpAddr::from([127, 3, net, 1]))
}

/// Waits until so many records have come.
fn records(program: &mut TrafficProgram, count: u64) -> Vec<TrafficRecord> {
    let mut all = Vec::new();
    while (all.len() as u64) < count {
        all.extend(program.records().connections);
        std::thread::yield_now();
    }
    all
}

#[test]
fn each_prefix_has_one_arm_and_each_arms_connections_get_its_settings_and_no_other_connection_does() {
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let beside = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let forty =
            ArmOptions { initcwnd: Some(40), congestion_control: Some("reno".to_owned()), ..ArmOptions::default() };
        let before = passive_opens();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default(), forty])).unwrap();
        assert_eq!(fetch(&listener, [127, 3, 1, 1].into(), 1), 10, "nothing is assigned before the first epoch");
        program.set_epoch(5, &EVEN);
        let mut arms = BTreeMap::new();
        for client in clients().chain(clients()) {
            let cwnd = fetch(&listener, client, 5_000);
            assert!(cwnd == 10 || cwnd == 40, "{cwnd}");
            assert_eq!(*arms.entry(client).or_insert(cwnd), cwnd, "{client} stays in its arm");
            assert_eq!(fetch(&beside, client, 10), 10, "another port");
        }
        let forties = arms.values().filter(|cwnd| **cwnd == 40).count();
        assert!((60..=140).contains(&forties), "{forties} of 200");
        let counts = program.counts();
        assert_eq!(counts.assigned[1], 2 * forties as u64);
        assert_eq!((counts.all_assigned(), counts.other_port, counts.paused), (400, 400, 1));
        assert_eq!(counts.passive, 801);
        assert_eq!(passive_opens() - before, 801, "none was missed");
        let all = records(&mut program, 400);
        assert_eq!(program.counts().open(), 0);
        for record in &all {
            assert_eq!((record.epoch, record.refused, record.initcwnd), (5, 0, if record.arm == 1 { 40 } else { 10 }));
            assert!(record.bytes_acked >= 5_000 && record.ended_in_order() && record.unacked == 0, "{record:?}");
            assert!(record.finished_ns.is_some_and(|ns| ns <= record.lasted_ns), "{record:?}");
        }
        let tags: BTreeSet<u64> = all.iter().map(|record| record.tag).collect();
        assert_eq!(tags.len(), 200);
        drop(program);
        assert!(clients().all(|client| fetch(&listener, client, 1) == 10), "nothing stays attached");
    });
}

#[test]
fn clients_on_loopback_and_sockets_with_a_congestion_control_of_their_own_are_left_alone() {
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let forty = || ArmOptions { initcwnd: Some(40), ..ArmOptions::default() };
        let program =
            TrafficProgram::attach(&TrafficRules { skip_loopback: true, ..rules(port, vec![forty()]) }).unwrap();
        program.set_epoch(1, &[1 << 32]);
        assert_eq!(fetch(&listener, "::1".parse().unwrap(), 1), 10);
        assert_eq!(fetch(&listener, [127, 0, 0, 1].into(), 1), 10, "IPv4 over a socket of IPv6");
        assert_eq!((program.counts().private, program.counts().all_assigned()), (2, 0));
        drop(program);
        let reno = ArmOptions { congestion_control: Some("reno".to_owned()), ..forty() };
        let usual = wt_sys::ns::read_net_sysctl("ipv4/tcp_congestion_control").unwrap();
        wt_sys::tcp::set_congestion_control(&listener, &usual).unwrap();
        let program = TrafficProgram::attach(&rules(port, vec![reno])).unwrap();
        program.set_epoch(1, &[1 << 32]);
        assert_eq!(fetch(&listener, "::1".parse().unwrap(), 1), 40);
        let allowed = wt_sys::ns::read_net_sysctl("ipv4/tcp_available_congestion_control").unwrap();
        let own =
            require!("a second congestion control", allowed.split(' ').find(|name| *name != usual).ok_or("one only"));
        wt_sys::tcp::set_congestion_control(&listener, own).unwrap();
        assert_eq!(fetch(&listener, "::1".parse().unwrap(), 1), 10);
        assert_eq!((program.counts().own_cc, program.counts().all_assigned()), (1, 1));
    });
}

#[test]
fn what_the_host_has_by_now_is_no_congestion_control_of_a_sockets_own() {
    require!("bpf", available());
    secluded(|| {
        let usual = wt_sys::ns::read_net_sysctl("ipv4/tcp_congestion_control").unwrap();
        let allowed = wt_sys::ns::read_net_sysctl("ipv4/tcp_allowed_congestion_control").unwrap();
        let other =
            require!("a second congestion control", allowed.split(' ').find(|name| *name != usual).ok_or("one only"));
        let listener = TcpListener::bind("[::]:0").unwrap();
        let arm = ArmOptions { congestion_control: Some(usual), initcwnd: Some(40), ..ArmOptions::default() };
        let program = TrafficProgram::attach(&rules(listener.local_addr().unwrap().port(), vec![arm])).unwrap();
        program.set_epoch(1, &[1 << 32]);
        wt_sys::ns::write_net_sysctl("ipv4/tcp_congestion_control", other).unwrap();
        assert_eq!(fetch(&listener, "::1".parse().unwrap(), 1), 10);
        assert_eq!((program.counts().own_cc, program.counts().all_assigned()), (1, 0));
        program.expect_host_cc(other);
        assert_eq!(fetch(&listener, "::1".parse().unwrap(), 1), 40);
        assert_eq!((program.counts().own_cc, program.counts().all_assigned()), (1, 1));
    });
}

#[test]
fn more_ports_or_arms_than_there_is_room_for_are_refused() {
    let attach = |ports, arms| {
        let rules = TrafficRules { ports, ..rules(1, vec![ArmOptions::default(); arms]) };
        TrafficProgram::attach(&rules).map(drop).unwrap_err().to_string()
    };
    assert_eq!(attach((1..=9).collect(), 2), "there is room for 8 ports, and not for 9");
    assert_eq!(attach(vec![1], 9), "there is room for 8 arms, and not for 9");
}

#[test]
fn when_nobody_beats_the_heart_nothing_more_is_assigned_and_what_runs_is_recorded() {
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let arms = vec![ArmOptions { initcwnd: Some(40), ..ArmOptions::default() }];
        let from = IpAddr::from([127, 0, 0, 1]);
        // A heart that has stopped before anybody looks.
        let dead = TrafficProgram::attach(&TrafficRules { patience_ns: 1, ..rules(port, arms.clone()) }).unwrap();
        dead.set_epoch(1, &[1 << 32]);
        assert_eq!(fetch(&listener, from, 1), 10);
        assert_eq!((dead.counts().paused, dead.counts().all_assigned()), (1, 0));
        drop(dead);
        let mut program = TrafficProgram::attach(&rules(port, arms)).unwrap();
        program.set_epoch(1, &[1 << 32]);
        let mut client = connect(from, &listener);
        let (server, _) = listener.accept().unwrap();
        assert_eq!(TcpInfo::read(&server).unwrap().snd_cwnd, 40);
        program.pause();
        assert_eq!(fetch(&listener, from, 1), 10);
        assert_eq!((program.counts().paused, program.counts().open()), (1, 1));
        drop(server);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(client);
        assert_eq!(records(&mut program, 1)[0].arm, 0);
        program.set_epoch(2, &[1 << 32]);
        assert_eq!(fetch(&listener, from, 1), 40);
    });
}

#[test]
fn a_ring_without_room_loses_records_and_counts_them() {
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default()])).unwrap();
        program.set_epoch(1, &[1 << 32]);
        while program.counts().lost[0] == 0 {
            wt_sys::tcp::reset_on_close(&connect([127, 0, 0, 1].into(), &listener)).unwrap();
            drop(listener.accept().unwrap());
        }
        let ended = |program: &TrafficProgram| program.counts().open() == 0;
        while !ended(&program) {
            std::thread::yield_now();
        }
        let counts = program.counts();
        assert_eq!(program.records().connections.len() as u64, counts.recorded);
        assert_eq!(counts.recorded + counts.lost[0], counts.assigned[0]);
        assert!(counts.recorded > 10_000, "{counts:?}");
    });
}

/// More connections than there are places for notes in the table.
const OPEN: usize = 8_600;

fn room_for_open_connections() -> Result<(), String> {
    let limit = wt_sys::process::raise_descriptor_limit().map_err(|error| error.to_string())?;
    if limit < 2 * OPEN as u64 + 200 { Err(format!("no more than {limit} descriptors")) } else { Ok(()) }
}

#[test]
fn more_open_connections_than_the_table_of_notes_has_places_are_all_listed_and_recorded() {
    require!("bpf", available());
    require!("descriptors", room_for_open_connections());
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default(); 2])).unwrap();
        program.set_epoch(1, &EVEN);
        let mut open = Vec::new();
        for client in clients().cycle().take(OPEN) {
            let client = connect(client, &listener);
            open.push((client, listener.accept().unwrap().0));
        }
        let by_tag = |records: &[TrafficRecord]| {
            records.iter().fold(BTreeMap::<(u64, usize), usize>::new(), |mut found, record| {
                *found.entry((record.tag, record.arm)).or_default() += 1;
                found
            })
        };
        let expected =
            |found: &BTreeMap<(u64, usize), usize>| found.len() == 200 && found.values().all(|n| *n == OPEN / 200);
        if program.knows() >= TrafficKnowledge::Idle {
            let found = by_tag(&program.still_open().unwrap().connections);
            assert!(expected(&found), "{found:?}");
        }
        // What has been forgotten makes room: the second half lies where the first one did.
        for _ in 0..2 {
            open.drain(..).for_each(|(client, server)| drop((server, client)));
            let found = by_tag(&records(&mut program, OPEN as u64));
            assert!(expected(&found), "{found:?}");
            for client in clients().cycle().take(OPEN) {
                let client = connect(client, &listener);
                open.push((client, listener.accept().unwrap().0));
            }
        }
        let counts = program.counts();
        assert_eq!((counts.without_note, counts.open(), counts.lost[0] + counts.lost[1]), (0, OPEN as u64, 0));
    });
}

#[test]
fn ipv6_clients_are_drawn_by_their_48_bits_and_reset_connections_are_told_from_closed_ones() {
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default(); 2])).unwrap();
        program.set_epoch(1, &EVEN);
        let client = connect("::1".parse().unwrap(), &listener);
        wt_sys::tcp::reset_on_close(&client).unwrap();
        let _server = listener.accept().unwrap();
        drop(client);
        let found = records(&mut program, 1);
        assert!(!found[0].ended_in_order(), "{:?}", found[0]);
        let arms: BTreeSet<usize> = (0..20)
            .map(|_| {
                fetch(&listener, "::1".parse().unwrap(), 100);
                records(&mut program, 1)[0].arm
            })
            .collect();
        assert_eq!(arms.into_iter().collect::<Vec<_>>(), [found[0].arm]);
    });
}

#[test]
fn clients_in_private_ranges_are_left_alone_and_those_beside_the_ranges_are_not() {
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let arms = vec![ArmOptions { initcwnd: Some(40), ..ArmOptions::default() }];
        let program = TrafficProgram::attach(&TrafficRules { skip_private: true, ..rules(port, arms) }).unwrap();
        program.set_epoch(1, &[1 << 32]);
        let mut netlink = Netlink::open().unwrap();
        let mut cwnd = |address: [u8; 4]| {
            netlink.add_address("lo", address.into(), 32).unwrap();
            fetch(&listener, address.into(), 1)
        };
        for private in [
            [10, 0, 0, 1],
            [10, 255, 255, 254],
            [172, 16, 0, 1],
            [172, 31, 9, 9],
            [192, 168, 7, 7],
            [100, 64, 0, 1],
            [100, 127, 9, 9],
            [169, 254, 3, 3],
        ] {
            assert_eq!(cwnd(private), 10, "{private:?}");
        }
        for public in [
            [9, 9, 9, 9],
            [11, 0, 0, 1],
            [172, 15, 9, 9],
            [172, 32, 0, 1],
            [192, 167, 1, 1],
            [100, 63, 9, 9],
            [100, 128, 0, 1],
            [169, 253, 3, 3],
        ] {
            assert_eq!(cwnd(public), 40, "{public:?}");
        }
        let counts = program.counts();
        assert_eq!((counts.private, counts.all_assigned()), (8, 8));
    });
}

#[test]
fn the_kernels_draw_is_the_one_that_the_statistics_know() {
    use wt_traffic::{ArmThresholds, ClientPrefix, DrawKey, TrafficUnit};
    require!("bpf", available());
    secluded(|| {
        let mut netlink = Netlink::open().unwrap();
        let mut addresses: Vec<IpAddr> = clients().take(100).collect();
        for v6 in (0..40_u16).map(|n| IpAddr::from([0x2001, 0xdb8, n, 1, 0xa, 0xb, 0xc, 0xd + n])) {
            netlink.add_address("lo", v6, 128).unwrap();
            addresses.push(v6);
        }
        let shares = [0.5, 0.25, 0.125, 0.125];
        let thresholds = ArmThresholds::new(&shares);
        for (by_connection, unit) in [(false, TrafficUnit::Prefix), (true, TrafficUnit::Connection)] {
            // One listener of each family, and IPv4 clients of an IPv6 socket, which the kernel shows as mapped addresses.
            for at in ["127.0.0.1:0", "[::]:0"] {
                let listener = TcpListener::bind(at).unwrap();
                let port = listener.local_addr().unwrap().port();
                let rules = TrafficRules { by_connection, ..rules(port, vec![ArmOptions::default(); shares.len()]) };
                let (draw, tags) = (DrawKey(rules.key), DrawKey(rules.tag_key));
                let mut program = TrafficProgram::attach(&rules).unwrap();
                program.set_epoch(77, &thresholds.cumulative);
                for client in addresses.iter().filter(|client| at.starts_with('[') || client.is_ipv4()) {
                    let connection = connect(*client, &listener);
                    let from = connection.local_addr().unwrap();
                    serve(connection, &listener, 10);
                    let found = records(&mut program, 1).remove(0);
                    let prefix = ClientPrefix::of(*client);
                    let rest = ClientPrefix::rest(*client, from.port());
                    assert_eq!(
                        (found.tag, Some(found.arm)),
                        (tags.tag(prefix), draw.arm(prefix, 77, unit, rest, &thresholds)),
                        "{from} at {at}, {unit:?}"
                    );
                }
            }
        }
    });
}

#[test]
fn the_programs_hash_is_the_statistics_hash_on_five_thousand_inputs() {
    // What the kernel runs, compiled for this processor.
    const MAIN: &str = r#"
int printf(const char *, ...);
int scanf(const char *, ...);
#include "traffic.c"
int main(void)
{
	u64 key[2], a, b, c;
	while (scanf("%llx %llx %llx %llx %llx", &key[0], &key[1], &a, &b, &c) == 5)
		printf("%016llx\n", siphash(key, a, b, c));
	return 0;
}
"#;
    let folder = std::env::temp_dir().join(format!("wt-hash-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (source, program) = (folder.join("main.c"), folder.join("main"));
    std::fs::write(&source, MAIN).unwrap();
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
    let done =
        Command::new("cc").args(["-O1", "-w", "-I", programs]).arg(&source).arg("-o").arg(&program).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // Every word takes every value of its bits; the generator is Vigna's SplitMix64.
    let mut state = 1_u64;
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let mut inputs: Vec<[u64; 5]> = (0..5_000).map(|_| std::array::from_fn(|_| word())).collect();
    inputs.extend([[0; 5], [u64::MAX; 5], [0, 0, 4 << 60 | 0x00c0_0002, 1, 0]]);
    let text: String = inputs.iter().map(|[k, l, a, b, c]| format!("{k:x} {l:x} {a:x} {b:x} {c:x}\n")).collect();
    let mut running = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = running.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = running.wait_with_output().unwrap();
    writer.join().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let hashes: Vec<u64> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| u64::from_str_radix(line, 16).unwrap()).collect();
    assert_eq!(hashes.len(), inputs.len());
    for ([k, l, a, b, c], hash) in inputs.into_iter().zip(hashes) {
        assert_eq!(hash, wt_traffic::sip13([k, l], [a, b, c]), "{k:x} {l:x} {a:x} {b:x} {c:x}");
    }
}

#[test]
fn time_in_which_a_connection_is_only_kept_open_is_told_apart() {
    const IDLE: Duration = Duration::from_millis(400);
    require!("bpf", available());
    require!("CAP_PERFMON and BTF", wt_bpf::idle_unknown().map_or(Ok(()), Err));
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut program = TrafficProgram::attach(&rules(port, vec![ArmOptions::default()])).unwrap();
        assert!(program.knows() >= TrafficKnowledge::Idle);
        program.set_epoch(1, &[1 << 32]);
        let mut client = connect([127, 0, 0, 1].into(), &listener);
        let (mut server, _) = listener.accept().unwrap();
        let mut response = [0; 5_000];
        let began = wt_sys::clock::monotonic_ns();
        for _ in 0..2 {
            server.write_all(&response).unwrap();
            client.read_exact(&mut response).unwrap();
            std::thread::park_timeout(IDLE);
        }
        while wt_sys::clock::monotonic_ns() - began < 2 * IDLE.as_nanos() as u64 {
            std::thread::park_timeout(IDLE);
        }
        drop(server);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(client);
        let found = records(&mut program, 1).remove(0);
        let finished = found.finished_ns.unwrap();
        assert!(finished >= 2 * IDLE.as_nanos() as u64 && found.idle_ns <= finished, "{found:?}");
        // Two responses on loopback are acknowledged at once; a jiffy or two is rounded.
        assert!(found.idle_ns * 4 >= finished * 3, "{found:?}");
        // What is outstanding all the while isn't idle: the client's window is full.
        let client = connect([127, 0, 0, 1].into(), &listener);
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        while server.write(&[0; 1 << 16]).is_ok() {}
        let began = wt_sys::clock::monotonic_ns();
        while wt_sys::clock::monotonic_ns() - began < IDLE.as_nanos() as u64 {
            std::thread::park_timeout(IDLE);
        }
        let mut client = client;
        let reader = std::thread::spawn(move || std::io::copy(&mut client, &mut std::io::sink()).unwrap());
        drop(server);
        reader.join().unwrap();
        let found = records(&mut program, 1).remove(0);
        assert!(found.finished_ns.unwrap() >= IDLE.as_nanos() as u64, "{found:?}");
        assert!(found.idle_ns * 4 <= found.finished_ns.unwrap(), "{found:?}");
    });
}

#[test]
fn administrators_and_this_hosts_own_addresses_are_left_alone_and_sockets_that_are_changed_are_told() {
    require!("bpf", available());
    secluded(|| {
        let mut netlink = Netlink::open().unwrap();
        for address in [[203, 0, 113, 9], [203, 0, 113, 10], [203, 0, 113, 75], [198, 51, 100, 1]] {
            netlink.add_address("lo", address.into(), 32).unwrap();
        }
        for at in ["198.51.100.1:0", "[::]:0"] {
            let listener = TcpListener::bind(at).unwrap();
            let port = listener.local_addr().unwrap().port();
            let arm = ArmOptions { notsent_lowat: Some(16_384), initcwnd: Some(40), ..ArmOptions::default() };
            let administrators = vec![[203, 0, 113, 9].into()];
            let mut program =
                TrafficProgram::attach(&TrafficRules { skip_loopback: true, administrators, ..rules(port, vec![arm]) })
                    .unwrap();
            program.set_epoch(1, &[1 << 32]);
            // Of many addresses the one that is asked for is found, and no other client is taken for one.
            program.leave_own_alone(&(12..=75).map(|last| [203, 0, 113, last].into()).collect::<Vec<IpAddr>>());
            let to = SocketAddr::from(([198, 51, 100, 1], port));
            for (from, cwnd) in
                [([203, 0, 113, 9], 10), ([198, 51, 100, 1], 10), ([203, 0, 113, 75], 10), ([203, 0, 113, 10], 40)]
            {
                let client = TcpSocket::new(&to).unwrap().bound_to(from.into()).unwrap().connect(&to, WAIT).unwrap();
                let (server, _) = listener.accept().unwrap();
                assert_eq!(TcpInfo::read(&server).unwrap().snd_cwnd, cwnd, "{from:?} at {at}");
                if cwnd == 40 {
                    wt_sys::tcp::set_unsent_low_water(&server, 9_000).unwrap();
                }
                drop((client, server));
            }
            let counts = program.counts();
            assert_eq!((counts.administrator, counts.private, counts.all_assigned()), (1, 2, 1), "{at}");
            let record = records(&mut program, 1).remove(0);
            let lowat = ArmOptions::REFUSABLE.iter().position(|name| *name == "notsent-lowat").unwrap();
            assert_eq!((record.refused, record.changed), (0, 1 << lowat));
        }
    });
}

#[test]
fn a_setting_of_which_the_kernel_makes_something_else_counts_as_refused() {
    require!("bpf", available());
    secluded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let all = ArmOptions {
            delack_max_us: Some(20_000),
            rto_min_us: Some(50_000),
            notsent_lowat: Some(16_384),
            window_clamp: Some(1 << 20),
            pacing_rate: Some(2_500_000),
            ..ArmOptions::default()
        };
        let tiny = ArmOptions { window_clamp: Some(1), ..ArmOptions::default() };
        let clamp = ArmOptions::REFUSABLE.iter().position(|name| *name == "window-clamp").unwrap();
        for (arm, refused) in [(all, 0), (tiny, 1 << clamp)] {
            let mut program = TrafficProgram::attach(&rules(port, vec![arm])).unwrap();
            program.set_epoch(1, &[1 << 32]);
            fetch(&listener, [127, 0, 0, 1].into(), 10);
            let found = records(&mut program, 1).remove(0);
            assert_eq!(found.refused, refused, "{found:?}");
        }
    });
}
