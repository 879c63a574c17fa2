//! Far ends that lie, drip, loop, reset or never end: every one gets a clear answer, in bounded time and memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, ran, windtunnel};
use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a server does with a connection: its number, and the stream.
type Act = dyn Fn(usize, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// A server on the loopback that does to each connection what it is told. Its threads end with the test's process.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Reads a request, then acts.
    fn start(act: impl Fn(usize, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server =
            Self { address: listener.local_addr().unwrap(), requests: Arc::default(), connections: Arc::default() };
        let (requests, connections) = (Arc::clone(&server.requests), Arc::clone(&server.connections));
        let act: Arc<Act> = Arc::new(act);
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let (requests, connections, act) = (Arc::clone(&requests), Arc::clone(&connections), Arc::clone(&act));
                std::thread::spawn(move || {
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") {
                        if !matches!(stream.read(&mut byte), Ok(1)) {
                            return;
                        }
                        head.push(byte[0]);
                    }
                    requests.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                    // Those that only look whether somebody listens send no request and don't count.
                    let number = connections.fetch_add(1, Ordering::SeqCst);
                    // A client that leaves is no error of the server's.
                    let _ = act(number, &mut stream);
                });
            }
        });
        server
    }

    fn requests(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Acts without waiting for a request.
    fn that_speaks_first(act: impl Fn(usize, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server =
            Self { address: listener.local_addr().unwrap(), requests: Arc::default(), connections: Arc::default() };
        let act: Arc<Act> = Arc::new(act);
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let act = Arc::clone(&act);
                std::thread::spawn(move || drop(act(0, &mut stream)));
            }
        });
        server
    }

    /// Tunes with short trials.
    fn tune(&self, more: &[&str]) -> RunOutput {
        self.tune_as("http://", "/file", more)
    }

    /// The same by another protocol, and another path.
    fn tune_as(&self, scheme: &str, path: &str, more: &[&str]) -> RunOutput {
        let home = tempfile::tempdir().unwrap();
        let url = format!("{scheme}{}{path}", self.address);
        let mut command = windtunnel(home.path());
        command.args(["tune", &url, "--levels", "mss=1000", "--trial", "200ms", "--pause", "10ms", "--json"]);
        command.args(["--budget", "6 trials"]).args(more);
        ran(command.output().unwrap())
    }
}

fn head(stream: &mut TcpStream, lines: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {lines}\r\n\r\n")
}

/// Sends until the client has had enough.
fn pour(stream: &mut TcpStream) -> std::io::Result<()> {
    let block = vec![b'x'; 65_536];
    loop {
        stream.write_all(&block)?;
    }
}

/// Ends a connection with a reset: the client's request was read, and something unread makes the kernel reset.
fn reset(stream: &TcpStream) {
    wt_sys::tcp::reset_on_close(stream).unwrap();
}

fn told(ran: &RunOutput, code: i32, wanted: &str) {
    assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(wanted) || ran.out.contains(wanted), "{wanted}: {}{}", ran.out, ran.err);
}

#[test]
fn a_body_without_end_is_cut_when_the_time_is_up() {
    let server = Server::start(|_, stream| {
        head(stream, "200 OK")?;
        pour(stream)
    });
    let ran = server.tune(&[]);
    told(&ran, 1, "\"rounds\":3");
}

#[test]
fn chunks_without_end_are_cut_too_and_broken_ones_are_named() {
    let endless = Server::start(|_, stream| {
        head(stream, "200 OK\r\nTransfer-Encoding: chunked")?;
        loop {
            stream.write_all(format!("1000\r\n{}\r\n", "y".repeat(4096)).as_bytes())?;
        }
    });
    told(&endless.tune(&[]), 1, "\"rounds\":3");
    let broken = Server::start(|_, stream| {
        head(stream, "200 OK\r\nTransfer-Encoding: chunked")?;
        stream.write_all(b"zzz\r\nhello")
    });
    told(&broken.tune(&[]), 4, "chunks of the answer are broken");
}

#[test]
fn a_server_that_drips_is_told_from_a_slow_path() {
    let server = Server::start(|_, stream| {
        head(stream, "200 OK\r\nContent-Length: 1000000")?;
        stream.set_read_timeout(Some(std::time::Duration::from_millis(500)))?;
        loop {
            stream.write_all(b"x")?;
            // Waits for nothing but time: the client sends no more.
            let _ = stream.read(&mut [0]);
        }
    });
    told(&server.tune(&[]), 4, "nothing could be measured");
}

#[test]
fn a_length_that_lies_is_named() {
    let short = Server::start(|_, stream| {
        head(stream, "200 OK\r\nContent-Length: 1000000")?;
        stream.write_all(&[b'x'; 1000])
    });
    told(&short.tune(&[]), 4, "closed the connection after 1000 bytes");
    let contradiction = Server::start(|_, stream| {
        head(stream, "200 OK\r\nContent-Length: 5\r\nContent-Length: 6")?;
        stream.write_all(b"hello")
    });
    told(&contradiction.tune(&[]), 4, "Content-Length is invalid");
    let empty = Server::start(|_, stream| head(stream, "200 OK\r\nContent-Length: 0"));
    told(&empty.tune(&[]), 4, "is empty");
}

#[test]
fn garbage_and_endless_heads_are_named() {
    let garbage = Server::start(|_, stream| stream.write_all(&[0xFF; 4096]));
    told(&garbage.tune(&[]), 4, "no HTTP answer");
    let endless = Server::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nX: ")?;
        pour(stream)
    });
    told(&endless.tune(&[]), 4, "longer than 65536 bytes");
    let interim = Server::start(|_, stream| {
        loop {
            stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n")?;
        }
    });
    told(&interim.tune(&[]), 4, "never comes to its answer");
}

#[test]
fn a_server_that_refuses_is_left_alone_for_longer_each_time_and_then_for_good() {
    let server = Server::start(|_, stream| head(stream, "429 Too Many Requests\r\nContent-Length: 0"));
    let ran = server.tune(&[]);
    told(&ran, 4, "refused 3 times in a row");
    // One second, two, four.
    assert!(ran.err.contains("429 Too Many Requests; it is left alone for 4 s"), "{}", ran.err);
    assert_eq!(server.requests(), 3);
    let request = server.requests.lock().unwrap()[0].clone();
    assert!(request.contains("User-Agent: windtunnel/"), "{request}");
}

#[test]
fn what_a_server_asks_for_is_obeyed_and_once_it_serves_again_the_experiment_goes_on() {
    // The third request is refused for two seconds; nothing may come in that time.
    let refused = Arc::new(Mutex::new(None));
    let early = Arc::new(AtomicUsize::new(0));
    let (at, too_early) = (Arc::clone(&refused), Arc::clone(&early));
    let server = Server::start(move |number, stream| {
        let now = wt_sys::clock::monotonic_ns();
        if number == 3 {
            *at.lock().unwrap() = Some(now);
            return head(stream, "503 Busy\r\nRetry-After: 2\r\nContent-Length: 0");
        }
        if at.lock().unwrap().is_some_and(|at: u64| now < at + 2_000_000_000) {
            too_early.fetch_add(1, Ordering::SeqCst);
        }
        head(stream, "200 OK\r\nContent-Length: 100000")?;
        stream.write_all(&[b'x'; 100_000])
    });
    let ran = server.tune(&[]);
    told(&ran, 1, "\"rounds\":3");
    assert!(refused.lock().unwrap().is_some());
    assert_eq!(early.load(Ordering::SeqCst), 0);
    told(&ran, 1, "don't count: the server refused them");
}

#[test]
fn a_server_that_starts_to_refuse_ends_the_experiment_cleanly_and_what_was_measured_is_kept() {
    let server = Server::start(|number, stream| {
        if number >= 6 {
            return head(stream, "503 Busy\r\nRetry-After: 100000\r\nContent-Length: 0");
        }
        head(stream, "200 OK\r\nContent-Length: 100000")?;
        stream.write_all(&[b'x'; 100_000])
    });
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://{}/file", server.address);
    let mut command = windtunnel(home.path());
    command.args(["tune", &url, "--levels", "mss=1000", "--trial", "200ms", "--pause", "10ms", "--json"]);
    let ran = ran(command.args(["--budget", "40 trials"]).output().unwrap());
    // It is told to come back in a day.
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["verdict"]["kind"], &report["rounds"]), (&"stopped".into(), &2.into()), "{report:#}");
    assert_eq!(server.requests(), 7, "it was left alone");
    assert!(ran.err.contains("to be left alone for") && ran.err.contains("503"), "{}", ran.err);
}

#[test]
fn resets_before_and_within_the_payload_are_no_answer_and_a_short_one() {
    let before = Server::start(|_, stream| {
        reset(stream);
        Ok(())
    });
    told(&before.tune(&[]), 4, "refused 3 times in a row");
    let within = Server::start(|_, stream| {
        head(stream, "200 OK\r\nContent-Length: 1000000")?;
        stream.write_all(&[b'x'; 200_000])?;
        // All of it has arrived before the reset throws away what hasn't.
        while wt_sys::tcp::TcpInfo::read(stream).unwrap().unacked > 0 {}
        reset(stream);
        Ok(())
    });
    let ran = within.tune(&[]);
    told(&ran, 1, "\"status\":\"incomplete\"");
}

#[test]
fn content_that_changes_under_the_same_name_is_a_fault_and_under_a_new_one_is_told() {
    let corrupt = Server::start(|number, stream| {
        head(stream, "200 OK\r\nContent-Length: 200000\r\nETag: \"same\"")?;
        let mut body = vec![b'x'; 200_000];
        if number == 3 {
            body[150_000] ^= 1;
        }
        stream.write_all(&body)
    });
    told(&corrupt.tune(&[]), 1, "the bytes from 131072 on aren't those");
    let never_twice = Server::start(|number, stream| {
        head(stream, "200 OK\r\nContent-Length: 200000")?;
        stream.write_all(&vec![number as u8; 200_000])
    });
    let ran = never_twice.tune(&[]);
    told(&ran, 1, "Nothing could be compared: every trial failed.");
    told(&ran, 1, "All trials failed; 6 of 6 say: the bytes from 0 on aren't those that the server sent before.");
    let renewed = Server::start(|number, stream| {
        head(stream, &format!("200 OK\r\nContent-Length: 200000\r\nETag: \"{}\"", number / 4))?;
        stream.write_all(&vec![number as u8 / 4; 200_000])
    });
    told(&renewed.tune(&[]), 1, "has changed");
}

#[test]
fn a_receiver_with_a_closed_window_ends_an_upload_in_time() {
    let server = Server::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        // Never reads: its window closes. The client's leaving is what ends this.
        stream.set_nonblocking(false)?;
        loop {
            match stream.peek(&mut [0]) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => drop(wt_sys::poll::wait_readable(&[], Some(std::time::Duration::from_millis(100)))),
            }
            if wt_sys::tcp::TcpInfo::read(stream).is_ok_and(|info| info.state != 1) {
                return Ok(());
            }
        }
    });
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://{}/file", server.address);
    let mut command = windtunnel(home.path());
    command.args(["tune", &url, "--direction", "up", "--levels", "mss=1000", "--trial", "200ms", "--json"]);
    let ran = ran(command.args(["--budget", "6 trials", "--pause", "10ms"]).output().unwrap());
    told(&ran, 4, "its receive window was closed for 5 s");
}

#[test]
fn a_download_that_stops_in_the_middle_of_its_time_isnt_counted_as_completed() {
    let server = Server::start(|_, stream| {
        head(stream, "200 OK\r\nContent-Length: 900000000")?;
        stream.write_all(&[b'x'; 400_000])?;
        // Holds the connection until the client leaves.
        while wt_sys::tcp::TcpInfo::read(stream).is_ok_and(|info| info.state == 1) {
            drop(wt_sys::poll::wait_readable(&[], Some(std::time::Duration::from_millis(20))));
        }
        Ok(())
    });
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://{}/file", server.address);
    let mut command = windtunnel(home.path());
    command.args(["tune", &url, "--levels", "mss=1000", "--trial", "1500ms", "--pause", "10ms", "--json"]);
    let ran = ran(command.args(["--budget", "4 trials"]).output().unwrap());
    told(&ran, 1, "4 of 4 trials weren't completed; the last of them says: nothing came in the last ");
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let trials = report["trial_table"].as_array().unwrap();
    let rounds: Vec<_> = trials.iter().filter(|trial| trial["phase"] == "round").collect();
    for trial in &rounds {
        assert_eq!(trial["status"], "incomplete", "{trial:#}");
        let note = trial["notes"][0].as_str().unwrap();
        assert!(note.starts_with("nothing came in the last ") && note.contains(" of 1.5 s"), "{note}");
    }
    assert_eq!(rounds.len(), 4, "{report:#}");
}

#[test]
fn a_file_that_is_denied_in_the_middle_gives_the_round_up_and_the_experiment_goes_on() {
    // As servers do that ration requests, and tell nobody so.
    let server = Server::start(|number, stream| {
        if (4..7).contains(&number) {
            return head(stream, "403 Forbidden\r\nContent-Length: 0");
        }
        head(stream, "200 OK\r\nContent-Length: 100000")?;
        stream.write_all(&[b'x'; 100_000])
    });
    let ran = server.tune(&[]);
    told(&ran, 1, "it served us before, and now the server answers 403 Forbidden");
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(report["rounds"].as_u64() >= Some(2) && report["verdict"]["kind"] != "stopped", "{report:#}");
    // One that never had the file is told at once.
    let never = Server::start(|_, stream| head(stream, "403 Forbidden\r\nContent-Length: 0"));
    told(&never.tune(&[]), 4, "the server answers 403 Forbidden");
    assert_eq!(never.requests(), 1);
}

#[test]
fn a_profile_whose_first_server_refuses_goes_on_with_the_next() {
    let busy = Server::start(|_, stream| head(stream, "503 Busy\r\nRetry-After: 7200\r\nContent-Length: 0"));
    let other = Server::start(|_, stream| {
        head(stream, "200 OK\r\nContent-Length: 100000")?;
        stream.write_all(&[b'x'; 100_000])
    });
    let home = tempfile::tempdir().unwrap();
    let profile = home.path().join("servers.toml");
    let urls = [busy.address, other.address].map(|address| format!("[[target]]\nurl = \"http://{address}/file\"\n"));
    std::fs::write(&profile, urls.concat()).unwrap();
    let mut command = windtunnel(home.path());
    command.arg("tune").arg(&profile).args(["--levels", "mss=1000", "--trial", "200ms", "--pause", "10ms", "--json"]);
    told(&ran(command.args(["--budget", "6 trials"]).output().unwrap()), 1, "\"rounds\":3");
    assert_eq!(busy.requests(), 1, "it was left alone");
}

#[test]
fn a_silent_server_is_given_up() {
    let server = Server::start(|_, stream| {
        let _ = stream.read(&mut [0]);
        Ok(())
    });
    told(&server.tune(&[]), 4, "nothing came within");
}

#[test]
fn a_page_whose_objects_have_other_lengths_than_were_asked_for_is_named() {
    let server = Server::start(|number, stream| {
        if number == 0 {
            // The pilot, which asks for no part.
            head(stream, "200 OK")?;
            return pour(stream);
        }
        head(stream, "206 Partial Content\r\nContent-Length: 5\r\nContent-Range: bytes 0-4/9999999")?;
        stream.write_all(b"short")
    });
    told(&server.tune(&["--workload", "page"]), 1, "has 5 bytes, not 32400");
}

/// Answers as an FTP server does, with other answers to some commands; its files never end.
fn ftp(stream: &mut TcpStream, others: &[(&str, &str)]) -> std::io::Result<()> {
    let mut passive = None;
    let mut lines = std::io::BufReader::new(stream.try_clone()?).lines();
    stream.write_all(b"220 here\r\n")?;
    while let Some(Ok(line)) = lines.next() {
        let command = line.split(' ').next().unwrap_or_default().to_uppercase();
        if let Some((_, answer)) = others.iter().find(|(name, _)| *name == command) {
            stream.write_all(answer.as_bytes())?;
            continue;
        }
        match command.as_str() {
            "USER" => stream.write_all(b"331 word\r\n")?,
            "PASS" => stream.write_all(b"230 in\r\n")?,
            "TYPE" => stream.write_all(b"200 so\r\n")?,
            "EPSV" => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                write!(stream, "229 passive (|||{}|)\r\n", listener.local_addr()?.port())?;
                passive = Some(listener);
            }
            "RETR" => {
                let Some(listener) = passive.take() else { return Ok(()) };
                stream.write_all(b"150 comes\r\n")?;
                let _ = pour(&mut listener.accept()?.0);
                stream.write_all(b"426 gone\r\n")?;
            }
            _ => stream.write_all(b"502 not here\r\n")?,
        }
    }
    Ok(())
}

#[test]
fn ftp_servers_that_never_end_or_lie_are_cut_or_named() {
    let endless = Server::that_speaks_first(|_, stream| ftp(stream, &[]));
    told(&endless.tune_as("ftp://", "/file", &[]), 1, "\"rounds\":3");
    for (command, answer, wanted) in [
        ("SIZE", "213 99999999999999999999\r\n", "99999999999999999999"),
        ("EPSV", "229 passive (|||0|)\r\n", "names no port"),
        ("RETR", "550 no such file\r\n", "550"),
        ("USER", "421 too many\r\n", "refused 3 times in a row"),
    ] {
        let liar = Server::that_speaks_first(move |_, stream| ftp(stream, &[(command, answer)]));
        told(&liar.tune_as("ftp://", "/file", &[]), 4, wanted);
    }
    for reply in [&b"x"[..], b"220-more\r\n"] {
        let server = Server::that_speaks_first(move |_, stream| {
            stream.write_all(b"220-here\r\n")?;
            loop {
                stream.write_all(&reply.repeat(1000))?;
            }
        });
        told(&server.tune_as("ftp://", "/file", &[]), 4, "reply is endless");
    }
}

#[test]
fn whoever_speaks_another_protocol_than_was_named_is_told_from_a_slow_path() {
    let key = "ab".repeat(32);
    let noise = Server::that_speaks_first(|_, stream| {
        stream.write_all(&[0xA5; 100_000])?;
        // Until the client leaves.
        let _ = stream.read(&mut [0; 4096]);
        Ok(())
    });
    for (scheme, path, wanted) in [
        ("iperf3://", "", "means nothing in iperf3"),
        ("https://", "/file", "TLS"),
        ("ftp://", "/file", "ftp://"),
        (&format!("wt://{key}@"), "", "key exchange failed"),
    ] {
        told(&noise.tune_as(scheme, path, &[]), 4, wanted);
    }
    // iperf3's control protocol as far as the results, of which there are four gigabytes.
    let results = Server::that_speaks_first(|_, stream| {
        let mut length = [0; 4];
        stream.read_exact(&mut [0; 37])?;
        stream.write_all(&[9])?;
        stream.read_exact(&mut length)?;
        std::io::copy(&mut stream.try_clone()?.take(u32::from_be_bytes(length).into()), &mut std::io::sink())?;
        stream.write_all(&[13, 0xFF, 0xFF, 0xFF, 0xFF])?;
        pour(stream)
    });
    told(&results.tune_as("iperf3://", "", &[]), 4, "iperf3");
    let busy = Server::that_speaks_first(|_, stream| {
        stream.read_exact(&mut [0; 37])?;
        stream.write_all(&[0xFF])
    });
    told(&busy.tune_as("iperf3://", "", &[]), 4, "refused 3 times in a row");
}

#[test]
fn an_argument_that_is_no_utf_8_is_a_path_like_others_or_an_error_of_usage() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.csv");
    std::fs::write(home.path().join(name), "").unwrap();
    for (command, wanted) in [("analyse", "the file is empty"), ("report", "invalid UTF-8")] {
        let ran = ran(windtunnel(home.path()).current_dir(home.path()).arg(command).arg(name).output().unwrap());
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        assert!(ran.err.contains(wanted), "{command}: {}", ran.err);
    }
}

#[test]
fn mistakes_in_a_profile_name_the_line_or_the_field() {
    let home = tempfile::tempdir().unwrap();
    for (text, wanted) in [
        ("", "no target"),
        ("[[target]]\n", "url"),
        ("[[target]]\nurl = 5\n", "line 2"),
        ("[[target]]\nurl = \"gopher://x\"\n", "write http://"),
        ("[[target]]\nurll = \"http://x/\"\n", "urll"),
        ("[[target]\n", "line 1"),
    ] {
        let file = home.path().join("profile.toml");
        std::fs::write(&file, text).unwrap();
        let ran = ran(windtunnel(home.path()).args(["tune"]).arg(&file).output().unwrap());
        assert_eq!(ran.code, 2, "{text}: {}", ran.err);
        assert!(ran.err.contains(wanted) && ran.err.contains("profile.toml"), "{text}: {}", ran.err);
    }
}
