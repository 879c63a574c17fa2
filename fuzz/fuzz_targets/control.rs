//! What speaks with our own server: requests, records, questions, answers, reports, addresses.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_load::fuzzing::control(bytes));
