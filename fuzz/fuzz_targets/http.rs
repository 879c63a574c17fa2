//! What a web server says: the head, and chunks.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_load::fuzzing::http(bytes));
