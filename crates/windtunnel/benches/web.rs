//! How much `windtunnel web` answers: `cargo bench -p windtunnel --bench web`.
//!
//! Fails below 10 000 requests of `/api/v1/health` a second on two cores, the load generator's own work included; if one of
//! 200 event streams of one experiment misses an event; if what the model says of a slider's position takes longer than
//! 50 ms (median); and if `/api/v1/overhead` or `/api/v1/predict` answers less than 20 times as many requests as processes of
//! `windtunnel` answer, one for each. Questions of `overhead` are all different; those of `predict` are 32 positions of a slider that is
//! moved to and fro, and once all different, which is the model's own time.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_testing::Goal;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const LEAST_REQUESTS: f64 = 10_000.0;
const MOST_ANSWER: Duration = Duration::from_millis(50);
const STREAMS: usize = 200;
/// Connections of the load generator, asked in turn by one thread: the server never waits for it.
const CONNECTIONS: usize = 64;
/// So many of one client may wait for what is computed.
const FEW: usize = 16;
const RUN: Duration = Duration::from_secs(2);
const RUNS: usize = 5;
/// So many times the requests of a process for each.
const LEAST_RATIO: f64 = 20.0;
/// Positions of a slider.
const POSITIONS: u64 = 32;

struct Server {
    child: Child,
    host: String,
    _journal: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start() -> Result<Self> {
        let journal = tempfile::tempdir()?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_windtunnel"))
            .args(["web", "--listen", "127.0.0.1:0", "--json"])
            .env("XDG_DATA_HOME", journal.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        let url = serde_json::from_str::<Value>(&line)?["url"].as_str().ok_or("no address")?.to_owned();
        let host = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self { child, host, _journal: journal })
    }

    /// Sends a request; the connection on which the answer comes, which is the last one on it.
    fn send(&self, method: &str, path: &str, body: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.host)?;
        let (host, length) = (&self.host, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )?;
        Ok(stream)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let mut text = String::new();
        self.send(method, path, body)?.read_to_string(&mut text)?;
        let (_, body) = text.split_once("\r\n\r\n").ok_or("no head")?;
        Ok(serde_json::from_str(body)?)
    }

    /// Requests a second over kept connections; the n-th asks for a path of its own.
    fn requests(&self, connections: usize, path: impl Fn(u64) -> String) -> Result<f64> {
        let mut connections = (0..connections)
            .map(|_| Ok(BufReader::new(TcpStream::connect(&self.host)?)))
            .collect::<std::io::Result<Vec<_>>>()?;
        let (begun, mut asked, mut answered) = (monotonic_ns(), 0, 0_u32);
        while monotonic_ns() - begun < RUN.as_nanos() as u64 {
            for connection in &mut connections {
                let request = format!("GET {} HTTP/1.1\r\nhost: {}\r\n\r\n", path(asked), self.host);
                connection.get_mut().write_all(request.as_bytes())?;
                asked += 1;
            }
            for connection in &mut connections {
                answer_of(connection)?;
                answered += 1;
            }
        }
        Ok(f64::from(answered) / Duration::from_nanos(monotonic_ns() - begun).as_secs_f64())
    }

    /// From the first to the last of all streams that hears that an experiment has ended.
    fn streams(&self) -> Result<Duration> {
        let request =
            r#"{"lab": "adsl", "knobs": ["rwin"], "levels": {"rwin": "4x"}, "trial": "300ms", "budget": "4 trials"}"#;
        let started = self.ask("POST", "/api/v1/experiments", request)?;
        let path = format!("/api/v1/experiments/{}/events", started["id"].as_str().ok_or("it doesn't start")?);
        let listen = |_| -> Result<_> {
            let stream = self.send("GET", &path, "")?;
            Ok(std::thread::spawn(move || -> Result<(Vec<String>, u64)> {
                let lines = BufReader::new(stream).lines();
                let numbered = |line: &String| line.starts_with("id: ");
                let heard = lines.map_while(std::io::Result::ok).filter(numbered).collect();
                Ok((heard, monotonic_ns()))
            }))
        };
        let listening = (0..STREAMS).map(listen).collect::<Result<Vec<_>>>()?;
        let mut heard = Vec::new();
        for listener in listening {
            heard.push(listener.join().map_err(|_| "a listener broke")??);
        }
        if heard[0].0.len() < 5 || heard.iter().any(|(events, _)| *events != heard[0].0) {
            return Err("a stream missed an event".into());
        }
        let ends = heard.iter().map(|(_, end)| *end);
        Ok(Duration::from_nanos(ends.clone().max().unwrap_or(0) - ends.min().unwrap_or(0)))
    }

    /// How long the model takes to answer for a position of the sliders.
    fn answer(&self, rwin: u32) -> Result<Duration> {
        let begun = monotonic_ns();
        let path = format!("/api/v1/predict?rate=100mbit&rtt=80ms&size=3MB&samples=true&seeds=1&set=rwin%3D{rwin}");
        let arms = self.ask("GET", &path, "")?["arms"].as_array().map_or(0, Vec::len);
        if arms == 2 { Ok(Duration::from_nanos(monotonic_ns() - begun)) } else { Err("no prediction".into()) }
    }
}

/// Reads one answer to its end.
fn answer_of(connection: &mut BufReader<TcpStream>) -> Result<()> {
    let (mut line, mut length) = (String::new(), 0);
    connection.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200") {
        return Err(format!("a request failed: {line}").into());
    }
    while line != "\r\n" {
        line.clear();
        connection.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    Ok(connection.read_exact(&mut body)?)
}

/// Answers a second where each is a process, as many at once as there are processors.
fn processes(args: impl Fn(u64) -> Vec<String>) -> Result<f64> {
    let at_once = std::thread::available_parallelism()?.get();
    let (begun, mut started, mut running) = (monotonic_ns(), 0, std::collections::VecDeque::new());
    let mut answered = 0_u32;
    while monotonic_ns() - begun < RUN.as_nanos() as u64 {
        while running.len() < at_once {
            let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
            running.push_back(command.args(args(started)).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
            started += 1;
        }
        let mut first: Child = running.pop_front().ok_or("nothing runs")?;
        if !first.wait()?.success() {
            return Err("a process failed".into());
        }
        answered += 1;
    }
    let rate = f64::from(answered) / Duration::from_nanos(monotonic_ns() - begun).as_secs_f64();
    for mut left in running {
        left.wait()?;
    }
    Ok(rate)
}

/// A question of `overhead`, over HTTP and as arguments.
fn overhead(n: u64) -> (String, Vec<String>) {
    let payload = 1 + n % 1_000_000_000;
    let args = ["overhead", "--encap", "pppoe-llcsnap", "--payload", &payload.to_string(), "--json"];
    (format!("/api/v1/overhead?encap=pppoe-llcsnap&payload={payload}"), args.map(str::to_owned).to_vec())
}

/// A position of a slider, over HTTP and as arguments.
fn prediction(n: u64) -> (String, Vec<String>) {
    let set = format!("rwin={}", 65_536 + 8 * n);
    let query = format!("rate=100mbit&rtt=80ms&size=1MB&seeds=1&set={}", set.replace('=', "%3D"));
    let args = [
        "predict",
        "--link-rate",
        "100mbit",
        "--rtt",
        "80ms",
        "--size",
        "1MB",
        "--seeds",
        "1",
        "--set",
        &set,
        "--json",
    ];
    (format!("/api/v1/predict?{query}"), args.map(str::to_owned).to_vec())
}

/// Prints by how much a kept connection beats processes; whether that is enough.
fn beats(server: &Server, what: &str, least: f64, ask: impl Fn(u64) -> (String, Vec<String>)) -> Result<bool> {
    let kept = server.requests(FEW, |n| ask(n).0)?;
    let each = processes(|n| ask(n).1)?;
    let ratio = kept / each;
    println!("{what}: {kept:.0} requests/s, {each:.0} with a process for each: {ratio:.1} times as many");
    if least > 0.0 {
        println!("{}", Goal::AtLeast(least).line(what, ratio, "times"));
    }
    Ok(ratio >= least)
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() -> Result<()> {
    let server = Server::start()?;
    let mut rates =
        (0..RUNS).map(|_| server.requests(CONNECTIONS, |_| "/api/v1/health".to_owned())).collect::<Result<Vec<_>>>()?;
    rates.sort_by(f64::total_cmp);
    let rate = rates[RUNS / 2];
    let what = format!("/api/v1/health over {CONNECTIONS} connections");
    println!(
        "{}  ({:.0} to {:.0})",
        Goal::AtLeast(LEAST_REQUESTS).line(&what, rate, "requests/s"),
        rates[0],
        rates[RUNS - 1]
    );
    let mut answers = (0..21).map(|n| server.answer(65_536 + 8_192 * n)).collect::<Result<Vec<_>>>()?;
    answers.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let line = Goal::AtMost(ms(MOST_ANSWER)).line("/api/v1/predict of 3 MB, two settings", ms(answers[10]), "ms");
    println!("{line}  (worst {:.1} ms)", ms(answers[20]));
    let mut enough = beats(&server, "/api/v1/overhead", LEAST_RATIO, overhead)?;
    enough &= beats(&server, "/api/v1/predict, a slider to and fro", LEAST_RATIO, |n| prediction(n % POSITIONS))?;
    beats(&server, "/api/v1/predict, every question new", 0.0, |n| prediction(1_000 + n))?;
    let spread = server.streams()?;
    println!("{STREAMS} event streams of one experiment: each event on each, the end within {:.1} ms", ms(spread));
    if enough && rate >= LEAST_REQUESTS && answers[10] <= MOST_ANSWER {
        Ok(())
    } else {
        Err("slower than promised".into())
    }
}
