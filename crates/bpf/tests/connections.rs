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
