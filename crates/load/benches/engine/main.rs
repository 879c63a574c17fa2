//! Our own transfer against iperf3's, in interleaved pairs, as fast as each goes and with writes of 1500 bytes, in each state of a
//! machine that can be set: congestion controls, offloads, huge pages, processors.
//! `cargo bench -p wt-load --bench engine`; needs no root. `engine -- usual loopback` takes these states only,
//! `large` and `small` compare only the one or the other.
//!
//! With small writes each of ours is a buffer of its own, and those that are ready are gathered in one call; each of `iperf3 -l 1500` is a
//! call of its own.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops when it can't go on")]

/// Where both ends are.
mod place;

use place::{Place, STATES};
use std::io::BufRead as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_load::{
    Connection, Fetch, Quota, Reference, Request, SenderOptions, Serve, ServeConfig, Server, ServerConfig, SharedKey,
    Tls, Url, download, fetch,
};
use wt_sys::ns;
use wt_testing::Goal;
use wt_trial::{Amount, Cancel, Direction};
use wt_units::Settings;

const ROLE: &str = "ENGINE_ROLE";
const PAIRS: usize = 5;
const TIME: Duration = Duration::from_secs(2);
const PORT: u16 = 5299;
/// What is compared; all of it if none is named.
const PARTS: [&str; 2] = ["large", "small"];
/// The small writes, bytes.
const SMALL: u16 = 1500;
/// Goodput, CPU time a byte, and goodput with small writes, ours over iperf3's.
const GOALS: [Goal; 3] = [Goal::AtLeast(1.0), Goal::AtMost(0.8), Goal::AtLeast(2.5)];

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    match std::env::var(ROLE) {
        Ok(url) if url == "server" => server(),
        Ok(role) if role == "plain" => plain_server(),
        Ok(url) if url.starts_with("wt:") => client(&url.parse().unwrap()),
        Ok(address) => small_writes(address.parse().unwrap()),
        Err(_) => compare(),
    }
}

fn server() {
    let key = SharedKey::generate().unwrap();
    let config = ServeConfig {
        key: key.clone(),
        max_tests: 1,
        max_waiting: 1,
        longest: Duration::from_secs(60),
        quota: Quota::default(),
        congestion_controls: std::collections::BTreeMap::new(),
    };
    let serve = Serve::start(vec![TcpListener::bind("0.0.0.0:0").unwrap()], config).unwrap();
    println!("wt://{}@ {}", key.to_hex(), serve.addresses()[0].port());
    let _ = std::io::stdin().lines().next();
}

/// The peer that the lab has: nobody needs a key, and the sender's writes can be made small.
fn plain_server() {
    let server = Server::start(TcpListener::bind("0.0.0.0:0").unwrap(), ServerConfig::default()).unwrap();
    println!(" {}", server.address().port());
    let _ = std::io::stdin().lines().next();
}

/// One download in small writes; prints bytes and seconds.
fn small_writes(peer: SocketAddr) {
    let connection = Connection::open(&peer, &Settings::new(), TIME).unwrap();
    let request = Request {
        direction: Direction::Down,
        amount: Amount::Time(TIME),
        token: 1,
        sender: SenderOptions { write_size: Some(SMALL), ..SenderOptions::default() },
        window: None,
    };
    let report = download(connection, &request, TIME * 2, &Cancel::new()).unwrap();
    println!("{} {}", report.bytes, report.elapsed.as_secs_f64());
}

/// One download; prints bytes and seconds.
fn client(url: &Url) {
    let peer: SocketAddr = format!("{}:{}", url.host, url.port).parse().unwrap();
    let (tls, cancel) = (Tls::new(None).unwrap(), Cancel::new());
    let job =
        Fetch { url, peer, settings: &Settings::new(), amount: Amount::Time(TIME), deadline: TIME * 2, tls: &tls };
    let report = fetch(&job, &mut Reference::new(), &cancel).unwrap().report;
    println!("{} {}", report.bytes, report.elapsed.as_secs_f64());
}

/// CPU time of a process and its children that have ended, s.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..15].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Whether a word stands on the command line.
fn is_asked(word: &str) -> bool {
    std::env::args().any(|argument| argument == word)
}

fn compare() {
    if Command::new("iperf3").arg("-v").output().is_err() {
        println!("iperf3 isn't installed: nothing to compare with");
        return;
    }
    ns::enter_user_namespace().or_else(|_| ns::enter_network_namespace()).unwrap();
    let any = STATES.iter().any(|state| is_asked(state.name));
    for state in STATES.iter().filter(|state| !any || is_asked(state.name)) {
        println!("{}: {}", state.name, state.what);
        in_state(state.name, &Place::of(state));
    }
}

/// All that is asked for, in one state.
fn in_state(name: &str, place: &Place) {
    let port = PORT.to_string();
    let mut iperf = place.server_command("iperf3");
    iperf.args(["-s", "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut iperf = place.server.run(|| iperf.spawn()).unwrap().unwrap();
    // It says nothing when it listens.
    place
        .client
        .run(|| {
            while std::net::TcpStream::connect((place.address, PORT)).is_err() {
                std::thread::yield_now();
            }
        })
        .unwrap();
    let wanted = |part: &str| !PARTS.iter().any(|known| is_asked(known)) || is_asked(part);
    if wanted("large") {
        let (goodput, cpu) = pairs(place, "server", &iperf, &[]);
        println!("{}", GOALS[0].line(&format!("{name}: goodput over iperf3's"), goodput, "times"));
        println!("{}", GOALS[1].line(&format!("{name}: CPU time a byte over iperf3's"), cpu, "times"));
    }
    if wanted("small") {
        let (goodput, cpu) = pairs(place, "plain", &iperf, &["-l", &SMALL.to_string()]);
        println!("{}", GOALS[2].line(&format!("{name}: goodput, 1500-byte writes"), goodput, "times"));
        println!("{}", GOALS[1].line(&format!("{name}: CPU time a byte, 1500-byte writes"), cpu, "times"));
    }
    iperf.kill().unwrap();
    iperf.wait().unwrap();
}

/// Pairs of transfers, ours and iperf3's with these arguments; the medians of goodput and of CPU per byte, ours over iperf3's.
fn pairs(place: &Place, role: &str, iperf: &Child, more: &[&str]) -> (f64, f64) {
    let me = std::env::current_exe().unwrap();
    let me = me.to_str().unwrap();
    let mut ours = place.server_command(me);
    let ours = ours.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut ours = place.server.run(move || ours.spawn()).unwrap().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(ours.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (before, own_port) = line.trim_end().rsplit_once(' ').unwrap();
    let url = format!("{before}{}:{own_port}", place.address);
    let (own, port, address) = (std::process::id(), PORT.to_string(), place.address.to_string());
    let run = |command: &mut Command| place.client.run(|| command.output()).unwrap().unwrap().stdout;
    let measure = |server: &Child, run: &mut dyn FnMut() -> (f64, f64)| {
        let before = cpu(server.id()) + cpu(own);
        let (bytes, seconds) = run();
        let spent = cpu(server.id()) + cpu(own) - before;
        (bytes * 8.0 / seconds / 1e9, spent / (bytes / 1e9))
    };
    let mut rows = Vec::new();
    for _ in 0..PAIRS {
        let mine = measure(&ours, &mut || {
            let text = String::from_utf8(run(place.client_command(me).env(ROLE, &url))).unwrap();
            let mut words = text.split_whitespace().map(|word| word.parse::<f64>().unwrap());
            (words.next().unwrap(), words.next().unwrap())
        });
        let theirs = measure(iperf, &mut || {
            let seconds = TIME.as_secs().to_string();
            let usual = ["-c", &address, "-p", &port, "-R", "-J", "-t", &seconds];
            let out = run(place.client_command("iperf3").args(usual).args(more));
            let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let sum = &json["end"]["sum_received"];
            (sum["bytes"].as_f64().unwrap(), sum["seconds"].as_f64().unwrap())
        });
        println!(
            "  ours {:.1} Gbit/s, {:.2} CPU s/GB; iperf3 {:.1} Gbit/s, {:.2} CPU s/GB",
            mine.0, mine.1, theirs.0, theirs.1
        );
        rows.push((mine.0 / theirs.0, mine.1 / theirs.1));
    }
    ours.kill().unwrap();
    ours.wait().unwrap();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(rows.iter().map(|row| row.0).collect()), median(rows.iter().map(|row| row.1).collect()))
}
