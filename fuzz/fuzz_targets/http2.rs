//! What a server of HTTP/2 says to whoever loads a page.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wt_load::fuzzing::http2(bytes);
});
