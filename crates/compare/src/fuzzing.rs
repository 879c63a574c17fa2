//! What browsers say, as a function of bytes: for fuzzing (`fuzz/`), and for a test with random bytes.

/// Messages of the DevTools protocol while a page is loaded.
pub fn devtools(bytes: &[u8]) {
    crate::page_load::read_all(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    const MESSAGES: [&str; 8] = [
        r#"{"method":"Page.screencastFrame","params":{"data":"aaaa","metadata":{"timestamp":@},"sessionId":1}}"#,
        r#"{"method":"Network.requestWillBeSent","params":{"requestId":"1","timestamp":@,"wallTime":@,"request":{"url":"http://x/"}}}"#,
        r#"{"method":"Network.responseReceived","params":{"requestId":"1","timestamp":@,"response":{"status":200,"protocol":"h2","timing":{"requestTime":@,"receiveHeadersEnd":25.0}}}}"#,
        r#"{"method":"Network.loadingFinished","params":{"requestId":"1","timestamp":@,"encodedDataLength":@}}"#,
        r#"{"method":"Page.domContentEventFired","params":{"timestamp":@}}"#,
        r#"{"method":"Page.loadEventFired","params":{"timestamp":@}}"#,
        r#"{"id":@,"result":{"errorText":""}}"#,
        r#"{"method":7,"params":[@]}"#,
    ];
    const NUMBERS: [&str; 8] = ["100.0", "0", "-1", "1e308", "-1e308", "1e-320", "18446744073709551615", "null"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_browser_makes_us_panic(
            said in proptest::collection::vec((0usize..7, 0usize..8), 0..30), cut in 0usize..4000, at in 0usize..4000, value: u8
        ) {
            let messages = said.iter().map(|(message, number)| MESSAGES[*message].replace('@', NUMBERS[*number]));
            let mut bytes = messages.collect::<Vec<_>>().join("\0").into_bytes();
            super::devtools(&bytes);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(cut);
            super::devtools(&bytes);
        }
    }
}
