//! What a server of iperf3 says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_load::fuzzing::iperf3(bytes));
