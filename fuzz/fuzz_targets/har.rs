//! A HAR file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_setup::fuzzing::har(bytes));
