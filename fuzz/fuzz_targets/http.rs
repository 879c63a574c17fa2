//! The head of what a web server says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_load::fuzzing::http(bytes));
