//! How fast the emulator is, as a ratio to a bare veth pair in the same run: rounds of one transfer each, in turn.
//!
//! `cargo bench -p wt-lab --bench throughput [-- WORD]`, with a word only the cases that hold it; needs no root. Medians of five
//! rounds of 1.5 s.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and fails loudly")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use wt_lab::{Backend, Lab, SERVER_V4, Scenario};
use wt_load::{Connection, Request, SenderOptions, Server, ServerConfig, download};
use wt_sys::netlink::{Netlink, RouteMetrics, VethEnd};
use wt_sys::ns::NetNs;
use wt_trial::{Amount, Cancel, Direction};
use wt_units::Settings;

const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_millis(1500);
const PORT: u16 = 7411;

/// A path that adds nothing but the emulator itself.
fn endless(rate: &str) -> Scenario {
    let text = format!(
        "title = \"bench\"\nsource = \"none\"\n[[link]]\nname = \"l\"\ndown = {{ rate = \"{rate}\", queue = \"64MiB\" }}\nup = {{ rate = \"{rate}\", queue = \"64MiB\" }}\n"
    );
    Scenario::parse("bench.toml", &text).unwrap()
}

/// Two namespaces joined by nothing but a veth pair.
fn bare() -> (NetNs, NetNs) {
    let (client, server) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    let end = |name, last| VethEnd { name, mac: [2, 0, 0, 0, 2, last] };
    let far = std::os::fd::AsFd::as_fd(&server);
    client.run(|| Netlink::open().unwrap().create_veth(&end("b0", 1), &end("b0", 2), far)).unwrap().unwrap();
    for (ns, own) in [(&client, Ipv4Addr::new(198, 18, 0, 1)), (&server, SERVER_V4)] {
        ns.run(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.add_address("b0", own.into(), 32).unwrap();
            netlink.start("b0", Some(1500), None, true).unwrap();
            netlink.set_route("b0", Ipv4Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default()).unwrap();
        })
        .unwrap();
    }
    (client, server)
}

/// Goodput of one download, Gbit/s.
fn goodput(client: &NetNs, server: &NetNs) -> f64 {
    let address = SocketAddr::new(SERVER_V4.into(), PORT);
    let listener = server.run(|| wt_sys::tcp::listen(address)).unwrap().unwrap();
    let server = Server::start(listener, ServerConfig::default()).unwrap();
    let sender = SenderOptions { congestion_control: Some("reno".to_owned()), ..SenderOptions::default() };
    let request = Request { direction: Direction::Down, amount: Amount::Time(LENGTH), token: 1, sender, window: None };
    let report = client
        .run(|| {
            let connection = Connection::open(&address, &Settings::new(), LENGTH).unwrap();
            download(connection, &request, LENGTH * 2, &Cancel::new()).unwrap()
        })
        .unwrap();
    drop(server);
    report.bytes as f64 * 8e-9 / report.elapsed.as_secs_f64()
}

/// Goodput through the emulator, Gbit/s, and its CPU seconds per Gbit.
fn through(backend: Backend, rate: &str) -> Option<(f64, f64)> {
    let lab = Lab::start(endless(rate), backend, 1).ok()?;
    let before = lab.stats();
    let goodput = goodput(&lab.client.ns, &lab.server.ns);
    let spent = lab.stats().since(&before);
    Some((goodput, spent.cpu_ns as f64 * 1e-9 / (goodput * LENGTH.as_secs_f64())))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    wt_lab::enter().unwrap();
    let mut bares = Vec::new();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut cases = vec![
        ("TUN", Backend::Tun, "400gbit"),
        ("AF_PACKET", Backend::Veth, "400gbit"),
        ("TUN at 10 Gbit/s", Backend::Tun, "10gbit"),
        ("TUN at 1 Gbit/s", Backend::Tun, "1gbit"),
    ];
    cases.retain(|(name, ..)| words.is_empty() || words.iter().any(|word| name.contains(word.as_str())));
    let mut figures = vec![(Vec::new(), Vec::new()); cases.len()];
    for _ in 0..ROUNDS {
        let (client, server) = bare();
        bares.push(goodput(&client, &server));
        for ((_, backend, rate), (goodputs, costs)) in cases.iter().zip(&mut figures) {
            if let Some((goodput, cost)) = through(*backend, rate) {
                goodputs.push(goodput);
                costs.push(cost);
            }
        }
    }
    let bare = median(bares);
    println!("{:<18} {bare:>7.2} Gbit/s", "bare veth");
    for ((name, _, rate), (goodputs, costs)) in cases.iter().zip(figures) {
        let (middle, cost) = (median(goodputs), median(costs));
        let of = match *rate {
            "400gbit" => format!("{:.2} of the bare pair", middle / bare),
            // 1448 of every 1500 bytes are payload.
            "10gbit" => format!("{:.3} of the ideal", middle / (10.0 * 1448.0 / 1500.0)),
            _ => format!("{:.3} of the ideal", middle / (1448.0 / 1500.0)),
        };
        println!("{name:<18} {middle:>7.2} Gbit/s   {of}   emulator {:.1} CPU-ms per Gbit", cost * 1e3);
    }
}
