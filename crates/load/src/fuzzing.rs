//! Every parser of what strangers say, as a function of bytes: for fuzzing (`fuzz/`), and for a test with random bytes.

/// What speaks with our own server: requests, records, questions, answers, reports, addresses.
pub fn control(bytes: &[u8]) {
    if let Some(Ok(request)) = bytes.first_chunk().map(crate::Request::from_bytes)
        && let Ok(again) = request.to_bytes()
    {
        assert!(crate::Request::from_bytes(&again).is_ok_and(|read| read == request));
    }
    crate::serve::read_all(bytes);
    crate::work::read_all(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let url: Result<crate::Url, _> = text.parse();
        if let Ok(url) = url {
            let _ = (url.to_string(), url.authority(), url.ftp_path(), url.join(text));
        }
    }
}

/// What a server of iperf3 says.
pub fn iperf3(bytes: &[u8]) {
    crate::iperf3::read_all(bytes);
}

/// What a server of FTP says.
pub fn ftp(bytes: &[u8]) {
    crate::ftp::read_all(bytes);
}

/// What a web server says: the head, and chunks.
pub fn http(bytes: &[u8]) {
    crate::fetch::read_all(bytes);
}

/// What a server of HTTP/2 says to whoever loads a page of three objects, from its first byte until it hangs up; how many
/// of them came.
///
/// # Panics
/// Where a load takes longer than it may, or brings more than there was; and without a loopback.
pub fn http2(bytes: &[u8]) -> usize {
    use crate::page::{HttpPage, load_page_http2};
    use std::io::{Read as _, Write as _};
    use std::time::Duration;
    use wt_trial::{Amount, Cancel, Page, PageObject};
    use wt_units::{Bytes, Settings};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback");
    let peer = listener.local_addr().expect("its address");
    let url: crate::Url = format!("http://{peer}/x").parse().expect("an address");
    let (settings, tls, cancel) = (Settings::new(), crate::Tls::nobody().expect("no anchors"), Cancel::new());
    let tls = tls.afresh(true);
    let fetch = crate::Fetch {
        url: &url,
        peer,
        settings: &settings,
        amount: Amount::Size(Bytes(1)),
        deadline: Duration::from_secs(10),
        tls: &tls,
    };
    let memory = crate::page::PageMemory::default();
    let sender = crate::SenderOptions::default();
    let http = HttpPage { fetch: &fetch, memory: Some(&memory), token: None, sender, close_each: false };
    let object = |size| PageObject { path: Some("/x".to_owned()), size: Bytes(size) };
    let objects = [1, 10, 100].map(object).to_vec();
    let page = Page { name: "p".to_owned(), objects, connections: 1, http2: true, close_each: false, tls: false };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let Ok((mut stream, _)) = listener.accept() else { return };
            // What comes before the first request answers nothing: the preface, then frames until one of headers.
            let mut head = [0; 24];
            let _ = stream.read_exact(&mut head);
            while head[3] != 1 && stream.read_exact(&mut head[..9]).is_ok() {
                let length = u64::from(u32::from_be_bytes([0, head[0], head[1], head[2]]));
                let _ = std::io::copy(&mut (&mut stream).take(length), &mut std::io::sink());
            }
            // It may leave before it has heard all.
            let _ = stream.write_all(bytes);
            // Whoever says something has read what came; the end of the connection would hide it.
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let _ = stream.read(&mut head);
            let _ = stream.set_read_timeout(None);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let Ok(load) = load_page_http2(&page, &http, &cancel) else { return 0 };
        assert!(load.elapsed < Duration::from_secs(10), "a server that has hung up isn't waited for");
        assert!(load.bytes <= bytes.len() as u64 && load.objects.len() <= 3);
        load.objects.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_bytes_make_a_parser_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), like in 0usize..8) {
            let heads: [&[u8]; 8] = [b"", b"220-", b"HTTP/1.1 200 OK\r\n", b"{\"streams\":[{", b"wt://", b"227 (1,2,3,4,5,6)", b"ftp://a@b/", b"{}"];
            let n = heads[like].len().min(bytes.len());
            bytes[..n].copy_from_slice(&heads[like][..n]);
            control(&bytes);
            iperf3(&bytes);
            ftp(&bytes);
            http(&bytes);
        }
    }

    /// A frame: its kind, its flags, the stream's number, and what it holds.
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    #[test]
    fn a_page_over_http2_is_what_the_fuzzed_function_loads() {
        let whole = [frame(4, 0, 0, &[]), frame(1, 4, 1, &[0x88]), frame(0, 1, 1, b"x")].concat();
        assert_eq!(http2(&whole), 1, "the first of three");
        assert_eq!(http2(&whole[..whole.len() - 10]), 0, "without its body");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_server_of_http2_makes_us_panic_or_wait(
            frames in proptest::collection::vec((0u8..12, any::<u8>(), 0u32..8, proptest::collection::vec(any::<u8>(), 0..40)), 0..12),
            settings: bool, cut in 0usize..2000, at in 0usize..2000, value: u8
        ) {
            let mut bytes = if settings { frame(4, 0, 0, &[]) } else { Vec::new() };
            for (kind, flags, stream, payload) in frames {
                // Statuses and blocks that can be read, as often as others.
                let payload = if kind == 1 && flags % 2 == 0 { vec![0x88] } else { payload };
                bytes.extend(frame(kind, flags, stream, &payload));
            }
            bytes.truncate(cut);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            http2(&bytes);
        }
    }
}
