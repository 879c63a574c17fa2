//! Pages over loopback: from our own server, from one that isn't ours, and from servers that lie, drip or leave.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wt_load::page::{HttpPage, PageLoad, PageMemory, load_page, load_page_http2};
use wt_load::{Fetch, FetchError, Finish, SenderOptions, Server, ServerConfig, ServerTls, Tls, Url, work_at};
use wt_sys::clock::monotonic_ns;
use wt_trial::{Amount, Cancel, Page, Workload};
use wt_units::{Bytes, Settings};

const PATIENCE: Duration = Duration::from_secs(10);

/// Loads a page; `memory` for servers that aren't ours.
fn load(
    address: SocketAddr,
    page: &Page,
    memory: Option<&PageMemory>,
    patience: Duration,
) -> Result<PageLoad, FetchError> {
    load_as(&format!("http://{address}/file"), Tls::nobody().unwrap(), page, memory, patience)
}

/// The same by this address, believing these.
fn load_as(
    url: &str,
    tls: Tls,
    page: &Page,
    memory: Option<&PageMemory>,
    patience: Duration,
) -> Result<PageLoad, FetchError> {
    let url: Url = url.parse().unwrap();
    let address = format!("{}:{}", url.host, url.port).parse().unwrap();
    let (settings, tls, cancel) = (Settings::new(), tls.afresh(page.http2), Cancel::new());
    let fetch = Fetch {
        url: &url,
        peer: address,
        settings: &settings,
        amount: Amount::Size(Bytes(1)),
        deadline: patience,
        tls: &tls,
    };
    let token = memory.is_none().then_some(100);
    let http = HttpPage { fetch: &fetch, memory, token, sender: SenderOptions::default(), close_each: page.close_each };
    if page.http2 {
        return load_page_http2(page, &http, &cancel);
    }
    load_page(page, &|number| http.open(number, &cancel), &cancel)
}

/// A server on the loopback that does this to each request: its number, and the stream. It lives as long as the test.
fn server(act: impl Fn(usize, &str, &mut TcpStream) -> std::io::Result<bool> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let act = std::sync::Arc::new((act, AtomicUsize::new(0)));
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let act = std::sync::Arc::clone(&act);
            std::thread::spawn(move || {
                loop {
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") {
                        if !matches!(stream.read(&mut byte), Ok(1)) {
                            return;
                        }
                        head.push(byte[0]);
                    }
                    let number = act.1.fetch_add(1, Ordering::SeqCst);
                    let head = String::from_utf8_lossy(&head).into_owned();
                    if !(act.0)(number, &head, &mut stream).unwrap_or(false) {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// How many bytes a request wants: `Range: bytes=0-N`.
fn wanted(head: &str) -> usize {
    let range = head.lines().find_map(|line| line.strip_prefix("Range: bytes=0-")).unwrap();
    range.trim().parse::<usize>().unwrap() + 1
}

/// Answers a range of a file of this byte.
fn part(stream: &mut TcpStream, size: usize, byte: u8) -> std::io::Result<bool> {
    write!(
        stream,
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {size}\r\nContent-Range: bytes 0-{}/9999999\r\n\r\n",
        size - 1
    )?;
    stream.write_all(&vec![byte; size])?;
    Ok(true)
}

#[test]
fn the_built_in_page_comes_whole_over_six_connections_and_both_ends_agree() {
    let server = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), ServerConfig::default()).unwrap();
    let page = Page::built_in();
    let loaded = load(server.address(), &page, None, PATIENCE).unwrap();
    assert_eq!((&loaded.finish, loaded.bytes, loaded.objects.len()), (&Finish::Done, 265_100, 44));
    assert!(loaded.connections.len() <= 6 && !loaded.connections.is_empty());
    // The first object alone, and nothing is asked for before it is there.
    let first = loaded.objects[0];
    assert!(loaded.objects.iter().skip(1).all(|object| object.asked_us >= first.done_us), "{:?}", loaded.objects);
    assert!(loaded.objects.iter().all(|o| o.asked_us <= o.first_byte_us && o.first_byte_us <= o.done_us));
    let sent: u64 =
        (0..6).filter_map(|n| server.take_report(100 + n, Duration::from_millis(500))).map(|r| r.bytes).sum();
    assert_eq!(sent, 265_100);
}

#[test]
fn a_page_of_parts_of_one_file_works_with_any_server_and_is_compared_with_what_came_before() {
    let address = server(|number, head, stream| part(stream, wanted(head), if number < 44 { b'a' } else { b'b' }));
    let (page, memory) = (Page::built_in(), PageMemory::default());
    let loaded = load(address, &page, Some(&memory), PATIENCE).unwrap();
    assert_eq!((loaded.finish, loaded.bytes), (Finish::Done, 265_100));
    // The same file has other bytes now.
    let again = load(address, &page, Some(&memory), PATIENCE).unwrap();
    assert_eq!(again.finish, Finish::Corrupt(0));
}

#[test]
fn a_server_that_closes_after_each_answer_is_called_again() {
    let address = server(|_, head, stream| {
        let size = wanted(head);
        write!(stream, "HTTP/1.1 206 P\r\nContent-Length: {size}\r\nContent-Range: bytes 0-{}/*\r\n", size - 1)?;
        stream.write_all(b"Connection: close\r\n\r\n")?;
        stream.write_all(&vec![1; size])?;
        Ok(false)
    });
    let loaded = load(address, &Page::built_in(), Some(&PageMemory::default()), PATIENCE).unwrap();
    assert_eq!((loaded.finish, loaded.connections.len()), (Finish::Done, 44));
}

#[test]
fn without_keep_alive_each_object_has_a_connection_of_its_own_and_both_ends_agree() {
    let server = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), ServerConfig::default()).unwrap();
    let page = Page { close_each: true, ..Page::built_in() };
    let loaded = load(server.address(), &page, None, PATIENCE).unwrap();
    assert_eq!((&loaded.finish, loaded.bytes, loaded.connections.len()), (&Finish::Done, 265_100, 44));
    let numbers: std::collections::BTreeSet<u32> = loaded.objects.iter().map(|object| object.connection).collect();
    assert_eq!(numbers, (0..44).collect());
    // Never more at once than the page says.
    for object in &loaded.objects {
        let at = object.asked_us;
        let open = loaded.objects.iter().filter(|other| (other.asked_us..other.done_us).contains(&at)).count();
        assert!(open <= 6, "{open} at {at}");
    }
    // The server asks its kernel only once all has arrived.
    for (number, object) in (0..).zip(&page.objects) {
        let of = loaded.objects[number].connection;
        let report = server.take_report(100 + u64::from(of), Duration::from_secs(5)).unwrap();
        assert_eq!((report.finish, report.bytes), (Finish::Done, object.size.get()));
        assert!(report.info.bytes_acked >= object.size.get(), "{:?}", report.info);
    }
    // A server that isn't ours is told, too.
    let told = server_that_closes();
    let loaded = load(told, &page, Some(&PageMemory::default()), PATIENCE).unwrap();
    assert_eq!((loaded.finish, loaded.connections.len()), (Finish::Done, 44));
}

/// A server that keeps every connection for as long as it may, and answers only those who want it closed.
fn server_that_closes() -> SocketAddr {
    server(|_, head, stream| {
        assert!(head.contains("Connection: close\r\n"), "{head}");
        part(stream, wanted(head), 1)
    })
}

#[test]
fn wrong_lengths_are_named() {
    let short = server(|_, head, stream| part(stream, wanted(head) - 1, 1));
    let loaded = load(short, &Page::built_in(), Some(&PageMemory::default()), PATIENCE).unwrap();
    assert!(matches!(&loaded.finish, Finish::Garbage(why) if why.contains("32399 bytes, not 32400")), "{loaded:?}");
    let long = server(|_, head, stream| {
        part(stream, wanted(head), 1)?;
        stream.write_all(b"and more")?;
        Ok(true)
    });
    let loaded = load(long, &Page::built_in(), Some(&PageMemory::default()), PATIENCE).unwrap();
    assert!(matches!(&loaded.finish, Finish::Garbage(_)), "{:?}", loaded.finish);
}

#[test]
fn a_file_without_parts_is_refused_with_the_reason() {
    let address = server(|_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")?;
        Ok(true)
    });
    let error = load(address, &Page::built_in(), Some(&PageMemory::default()), PATIENCE).unwrap_err();
    assert!(matches!(&error, FetchError::Never(why) if why.contains("ranges")), "{error}");
}

#[test]
fn dripping_resetting_and_silent_servers_cost_no_more_than_the_deadline() {
    let page = Page::built_in();
    let drip = server(|_, head, stream| {
        let size = wanted(head);
        write!(stream, "HTTP/1.1 206 P\r\nContent-Length: {size}\r\nContent-Range: bytes 0-{}/*\r\n\r\n", size - 1)?;
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        loop {
            stream.write_all(b"x")?;
            // Waits for nothing but time, or until the client leaves.
            if matches!(stream.read(&mut [0]), Ok(0)) {
                return Ok(false);
            }
        }
    });
    let loaded = load(drip, &page, Some(&PageMemory::default()), Duration::from_millis(300)).unwrap();
    assert_eq!((loaded.finish, loaded.bytes), (Finish::Deadline, 0));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let loaded = load(silent.local_addr().unwrap(), &page, None, Duration::from_millis(300)).unwrap();
    assert_eq!((loaded.finish, loaded.bytes), (Finish::Deadline, 0));
    let reset = server(|number, head, stream| {
        if number < 3 {
            return part(stream, wanted(head), 1);
        }
        wt_sys::tcp::reset_on_close(stream).unwrap();
        Ok(false)
    });
    match load(reset, &page, Some(&PageMemory::default()), PATIENCE) {
        Ok(loaded) => assert!(matches!(loaded.finish, Finish::PeerLeft(_)), "{:?}", loaded.finish),
        Err(error) => assert!(matches!(error, FetchError::Refused { .. } | FetchError::Load(_)), "{error}"),
    }
}

#[test]
fn our_server_keeps_a_connection_only_for_those_who_ask() {
    let server = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), ServerConfig::default()).unwrap();
    for (line, kept) in [("Connection: keep-alive\r\n", true), ("", false)] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "GET /bytes/10 HTTP/1.1\r\nHost: x\r\n{line}\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        stream.read_exact(&mut [0; 10]).unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(text.contains("Connection: keep-alive"), kept, "{text}");
        assert_eq!(text.contains("Connection: close"), !kept, "{text}");
        if !kept {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
    }
}

/// Our own server, which speaks TLS, too; and what believes it.
fn tls_server() -> (Server, ServerTls) {
    let tls = ServerTls::of("127.0.0.1").unwrap();
    let config = ServerConfig { tls: Some(tls.clone()), patience: Duration::from_secs(2), ..ServerConfig::default() };
    (Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), config).unwrap(), tls)
}

#[test]
fn our_own_server_brings_pages_through_tls_and_over_http_2_and_tells_of_each_connection() {
    let (server, tls) = tls_server();
    let (address, plain) = (server.address(), Page::built_in());
    let second = Page { http2: true, connections: 1, ..plain.clone() };
    for (scheme, page, connections) in [
        ("https", plain.clone(), 6),
        ("https", Page { close_each: true, ..plain }, 44),
        ("https", second.clone(), 1),
        // Known beforehand, without TLS.
        ("http", second, 1),
    ] {
        let url = format!("{scheme}://{address}/file");
        let loaded = load_as(&url, tls.client().unwrap(), &page, None, PATIENCE).unwrap();
        assert_eq!((&loaded.finish, loaded.bytes, loaded.objects.len()), (&Finish::Done, 265_100, 44), "{url} {page}");
        assert!(loaded.connections.len() <= connections, "{url} {page}: {}", loaded.connections.len());
        let first = loaded.objects[0];
        assert!(loaded.objects.iter().skip(1).all(|object| object.asked_us >= first.done_us), "{:?}", loaded.objects);
        if page.http2 {
            // All others are asked for at once.
            assert!(loaded.objects[43].asked_us <= loaded.objects[1].done_us, "{:?}", loaded.objects);
        }
        let numbers: std::collections::BTreeSet<u32> = loaded.objects.iter().map(|object| object.connection).collect();
        let reports: Vec<_> = numbers
            .into_iter()
            .filter_map(|number| server.take_report(100 + u64::from(number), Duration::from_secs(5)))
            .collect();
        assert_eq!(reports.len(), loaded.connections.len());
        assert_eq!(reports.iter().map(|report| report.bytes).sum::<u64>(), 265_100);
        for report in reports {
            assert_eq!(report.finish, Finish::Done, "{url} {page}");
            assert!(report.info.bytes_acked >= report.bytes, "{:?}", report.info);
            // Before the handshake of TLS let it grow.
            assert_eq!(report.start.unwrap().snd_cwnd, 10, "{url} {page}");
        }
    }
    // Somebody else's certificate isn't believed, and a server without one isn't spoken to.
    let other = ServerTls::of("127.0.0.1").unwrap().client().unwrap();
    let refused = load_as(&format!("https://{address}/"), other, &Page::built_in(), None, PATIENCE);
    assert!(matches!(refused, Err(FetchError::Never(_))), "{refused:?}");
    let bare = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), ServerConfig::default()).unwrap();
    let url = format!("https://{}/", bare.address());
    assert!(load_as(&url, tls.client().unwrap(), &Page::built_in(), None, PATIENCE).is_err());
}

#[test]
fn clients_that_speak_tls_or_http_2_badly_end_their_own_connection_only() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let (server, tls) = tls_server();
    let settings = frame(4, 0, 0, &[]);
    let begun = [PREFACE, &settings].concat();
    // A request for /bytes/1TiB by the static table of HPACK, and literals.
    let path = b"/bytes/1TiB";
    let ask = |stream: u32| {
        frame(1, 5, stream, &[&[0x82, 0x86, 0x04, path.len() as u8], &path[..], &[0x41, 1, b'x']].concat())
    };
    // A client that asks, and takes it back at once, without end.
    let reset: Vec<u8> =
        (0..3000u32).flat_map(|n| [ask(2 * n + 1), frame(3, 0, 2 * n + 1, &[0, 0, 0, 8])].concat()).collect();
    let many: Vec<u8> = (0..400u32).flat_map(|n| ask(2 * n + 1)).collect();
    for (name, bytes) in [
        ("a hello that is invalid", vec![22, 3, 1, 0, 5, 1, 0, 0, 1, 9]),
        ("a record that never ends", vec![22, 3, 1, 0x40, 0, 1]),
        ("a preface that is none", b"PRI * HTTP/9.9\r\n\r\nSM\r\n\r\n".to_vec()),
        ("a frame that is too long", [&begun[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat()),
        ("headers that make no sense", [&begun[..], &frame(1, 5, 1, &[0xff; 60])].concat()),
        ("a window of nothing", [&begun[..], &frame(8, 0, 0, &[0; 4])].concat()),
        ("requests taken back", [&begun[..], &reset].concat()),
        ("more requests than allowed", [&begun[..], &many].concat()),
        ("a huge answer that nobody reads", [&begun[..], &ask(1)].concat()),
    ] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // It may have closed before all was said.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut heard = 0;
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n) = stream.read(&mut buffer) {
            heard += n;
            if n == 0 {
                break;
            }
            // Never more than the windows that HTTP/2 begins with, and what it says of each stream.
            assert!(heard < 1 << 20, "{name}: {heard}");
        }
    }
    // Others are still served.
    let page = Page { http2: true, connections: 1, ..Page::built_in() };
    let url = format!("https://{}/", server.address());
    let loaded = load_as(&url, tls.client().unwrap(), &page, None, PATIENCE).unwrap();
    assert_eq!((loaded.finish, loaded.bytes), (Finish::Done, 265_100));
}

/// Frames of HTTP/2 (RFC 9113 section 4.1): length, type, flags, stream, payload.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[test]
fn servers_that_speak_http_2_badly_end_a_load_and_take_nothing_with_them() {
    let settings = frame(4, 0, 0, &[]);
    let range = b"bytes 0-9999/10000000";
    let begun = frame(1, 4, 1, &[&[0x8a, 0x0f, 15, range.len() as u8], &range[..]].concat());
    let more = frame(0, 0, 1, &[b'x'; 16_384]).repeat(20);
    // Each says what the load must come to.
    let cases: [(&str, Vec<u8>, bool); 8] = [
        ("more than was asked for", [&settings[..], &begun, &more].concat(), true),
        ("pongs without end", settings.clone(), false),
        ("HTTP/1.1", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), true),
        ("a frame longer than allowed", [&settings[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(), true),
        ("data of a stream that nobody opened", [&settings[..], &frame(0, 0, 9, b"xx")].concat(), true),
        ("headers that make no sense", [&settings[..], &frame(1, 4, 1, &[0xff; 40])].concat(), true),
        ("a refusal", [&settings[..], &frame(1, 5, 1, &[0x8d])].concat(), true),
        ("nothing more", settings.clone(), false),
    ];
    for (name, bytes, at_once) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The preface and the client's settings.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&bytes);
            let (pongs, end) = (frame(6, 1, 0, &[0; 8]).repeat(4000), monotonic_ns() + 5_000_000_000);
            while name == "pongs without end" && monotonic_ns() < end && stream.write_all(&pongs).is_ok() {}
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        });
        let url: Url = format!("http://{address}/file").parse().unwrap();
        let (own, tls, cancel) = (Settings::new(), Tls::nobody().unwrap(), Cancel::new());
        let deadline = if at_once { PATIENCE } else { Duration::from_millis(300) };
        let amount = Amount::Size(Bytes(1));
        let fetch = Fetch { url: &url, peer: address, settings: &own, amount, deadline, tls: &tls };
        let page = Page { http2: true, connections: 1, ..Page::built_in() };
        let done = work_at(&fetch, &Workload::Page { page }, &PageMemory::default(), &cancel);
        match (name, done) {
            ("nothing more" | "pongs without end", Ok(done)) => assert_eq!(done.report.finish, Finish::Deadline),
            ("a refusal", Err(FetchError::Never(why))) => assert!(why.contains("404"), "{why}"),
            (_, Ok(done)) => {
                let finish = done.report.finish;
                assert!(matches!(finish, Finish::Garbage(_) | Finish::PeerLeft(_)), "{name}: {finish:?}");
            }
            (_, Err(error)) => panic!("{name}: {error}"),
        }
        serving.join().unwrap();
    }
}
