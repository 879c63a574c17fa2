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
}
