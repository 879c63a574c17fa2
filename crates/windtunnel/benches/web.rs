//! How much `windtunnel web` answers: `cargo bench -p windtunnel --bench web`.
//!
//! Fails below 10 000 requests of `/api/v1/health` a second on two cores, the load generator's own work included; if one of
//! 200 event streams of one experiment misses an event; and if what the model says of a slider's position takes longer than
//! 50 ms (median).
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const LEAST_REQUESTS: f64 = 10_000.0;
const MOST_ANSWER: Duration = Duration::from_millis(50);
const STREAMS: usize = 200;
/// Connections of the load generator, asked in turn by one thread: the server never waits for it.
const CONNECTIONS: usize = 64;
const RUN: Duration = Duration::from_secs(2);
const RUNS: usize = 5;

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

    /// Requests of `/api/v1/health` a second.
    fn requests(&self) -> Result<f64> {
        let request = format!("GET /api/v1/health HTTP/1.1\r\nhost: {}\r\n\r\n", self.host).into_bytes();
        let mut connections =
            (0..CONNECTIONS).map(|_| TcpStream::connect(&self.host)).collect::<std::io::Result<Vec<_>>>()?;
        // All answers are of one length: the date in them is, too (RFC 9110 section 5.6.7).
        let mut answer = vec![0; 16_384];
        connections[0].write_all(&request)?;
        let length = connections[0].read(&mut answer)?;
        if !answer.starts_with(b"HTTP/1.1 200") || !answer[..length].ends_with(b"}") {
            return Err("this is no answer".into());
        }
        answer.truncate(length);
        let (begun, mut answered) = (monotonic_ns(), 0_u32);
        while monotonic_ns() - begun < RUN.as_nanos() as u64 {
            for connection in &mut connections {
                connection.write_all(&request)?;
            }
            for connection in &mut connections {
                connection.read_exact(&mut answer)?;
                if !answer.starts_with(b"HTTP/1.1 200") {
                    return Err("a request failed".into());
                }
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

fn main() -> Result<()> {
    let server = Server::start()?;
    let mut rates = (0..RUNS).map(|_| server.requests()).collect::<Result<Vec<_>>>()?;
    rates.sort_by(f64::total_cmp);
    let rate = rates[RUNS / 2];
    println!(
        "/api/v1/health over {CONNECTIONS} connections: median {rate:.0} requests/s, {:.0} to {:.0}; at least {LEAST_REQUESTS:.0}",
        rates[0],
        rates[RUNS - 1]
    );
    let mut answers = (0..21).map(|n| server.answer(65_536 + 8_192 * n)).collect::<Result<Vec<_>>>()?;
    answers.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "/api/v1/predict of 3 MB, two settings: median {:.1} ms, worst {:.1} ms; at most {:.0} ms",
        ms(answers[10]),
        ms(answers[20]),
        ms(MOST_ANSWER)
    );
    let spread = server.streams()?;
    println!("{STREAMS} event streams of one experiment: each event on each, the end within {:.1} ms", ms(spread));
    if rate >= LEAST_REQUESTS && answers[10] <= MOST_ANSWER { Ok(()) } else { Err("slower than promised".into()) }
}
