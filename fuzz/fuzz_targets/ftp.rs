//! What a server of FTP says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_load::fuzzing::ftp(bytes));
