//! Rules for connections, in a network namespace and with a bpf file system of its own. Needs CAP_BPF; says so without.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use wt_bpf::{ConnectionRule, missing_capabilities};
use wt_sys::netlink::Netlink;
use wt_sys::ns::NetNs;
use wt_sys::tcp::TcpInfo;
use wt_testing::require;

/// Far more than the windows and buffers here.
const PAYLOAD: usize = 2_000_000;

/// Moves this thread to where nothing of this machine is touched.
fn seclude() {
    const PRIVATE: u64 = 1 << 18 | 1 << 14;
    wt_sys::process::own_mounts().unwrap();
    wt_sys::ns::mount("none", "/", None, PRIVATE).unwrap();
    wt_sys::ns::mount("bpf", "/sys/fs/bpf", Some("bpf"), 0).unwrap();
    NetNs::create().unwrap().enter().unwrap();
    Netlink::open().unwrap().start("lo", None, None, true).unwrap();
}

/// Sends the payload from a server to a client at this address; the greatest window that the server was offered, and the send
/// buffer of the client.
fn download(address: &str) -> (u32, u32) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let at: SocketAddr = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut greatest = 0;
        for piece in vec![1_u8; PAYLOAD].chunks(1_000) {
            stream.write_all(piece).unwrap();
            greatest = greatest.max(TcpInfo::read(&stream).unwrap().snd_wnd);
        }
        greatest
    });
    let mut client = TcpStream::connect(at).unwrap();
    let buffer = wt_sys::tcp::send_buffer(&client).unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), PAYLOAD);
    (server.join().unwrap(), buffer)
}

#[test]
fn a_rule_bounds_the_window_that_connections_with_its_network_offer_and_nobody_elses() {
    let missing = missing_capabilities();
    require!("bpf", if missing.is_empty() { Ok(()) } else { Err(format!("{} missing", missing.join(", "))) });
    std::thread::spawn(|| {
        seclude();
        let namespace = wt_sys::ns::network_cookie().unwrap();
        let mut rule = ConnectionRule::new(namespace, "127.0.0.8".parse().unwrap(), 29);
        (rule.window, rule.send_buffer) = (Some(20_000), Some(30_000));
        let mut sixth = ConnectionRule::new(namespace, "::1".parse().unwrap(), 128);
        sixth.window = Some(10_000);
        assert!(download("127.0.0.9").0 > 60_000);
        for rule in [&rule, &sixth, &rule] {
            rule.add().unwrap();
        }
        let mut found = ConnectionRule::in_force(namespace);
        found.sort();
        assert_eq!(found, [rule.clone(), sixth.clone()]);
        let (window, buffer) = download("127.0.0.9");
        assert!((15_000..=20_000).contains(&window), "{window}");
        assert_eq!(buffer, 60_000, "the kernel doubles it");
        let (window, _) = download("::1");
        assert!((7_500..=10_000).contains(&window), "{window}");
        // Beside the network, and the same address in another namespace.
        assert!(download("127.0.0.16").0 > 60_000);
        let other = NetNs::create().unwrap();
        let elsewhere = other.run(|| {
            Netlink::open().unwrap().start("lo", None, None, true).unwrap();
            (download("127.0.0.9").0, ConnectionRule::in_force(wt_sys::ns::network_cookie().unwrap()))
        });
        let (window, rules) = elsewhere.unwrap();
        assert!(window > 60_000 && rules.is_empty(), "{window} {rules:?}");
        for rule in [&rule, &sixth, &sixth] {
            rule.remove().unwrap();
        }
        assert!(ConnectionRule::in_force(namespace).is_empty());
        assert!(download("127.0.0.9").0 > 60_000);
    })
    .join()
    .unwrap();
}

#[test]
fn rules_of_network_namespaces_that_are_no_more_make_room_for_others() {
    let missing = missing_capabilities();
    require!("bpf", if missing.is_empty() { Ok(()) } else { Err(format!("{} missing", missing.join(", "))) });
    // A control group of its own in place of the root, so that nobody else finds no room meanwhile.
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap();
    let place_of = |line: &str| line.split(' ').nth(1).map(str::to_owned).filter(|_| line.contains(" cgroup2 "));
    let place = mounts.lines().find_map(place_of).unwrap();
    let group = std::path::Path::new(&place).join(format!("windtunnel-test-{}", std::process::id()));
    std::fs::create_dir(&group).unwrap();
    let own_group = group.clone();
    let ended = std::thread::spawn(move || {
        const BIND: u64 = 1 << 12;
        seclude();
        wt_sys::ns::mount(own_group.to_str().unwrap(), &place, None, BIND).unwrap();
        let namespace = wt_sys::ns::network_cookie().unwrap();
        let rule_of = |namespace, last| {
            let mut rule = ConnectionRule::new(namespace, std::net::Ipv4Addr::new(192, 0, 2, last).into(), 32);
            rule.window = Some(20_000);
            rule
        };
        let rule_here = rule_of(namespace, 1);
        rule_here.add().unwrap();
        let ended = {
            let other = NetNs::create().unwrap();
            let cookie = other.run(wt_sys::ns::network_cookie).unwrap().unwrap();
            rule_of(cookie, 2).add().unwrap();
            assert_eq!(ConnectionRule::remove_orphans(), 0, "somebody holds it");
            cookie
        };
        // Others may have programs there, too: the kernel calls 64 at most.
        let mut rules = vec![rule_here];
        for last in 3..=67 {
            let rule = rule_of(namespace, last);
            rule.add().unwrap();
            rules.push(rule);
            if ConnectionRule::in_force(ended).is_empty() {
                break;
            }
        }
        let left = ConnectionRule::in_force(ended);
        let error = rule_of(namespace, 99).add().map_err(|error| error.to_string());
        rules.push(rule_of(namespace, 99));
        let mut found = ConnectionRule::in_force(namespace).len();
        found += usize::from(error.is_err());
        for rule in &rules {
            rule.remove().unwrap();
        }
        assert!(left.is_empty() && found == rules.len(), "{left:?} {found}");
        let error = error.unwrap_err();
        assert!(error.contains("64") && error.contains("windtunnel-connections"), "{error}");
    })
    .join();
    std::fs::remove_dir(&group).unwrap();
    ended.unwrap();
}
