//! What the adapter of a stack says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_stacks::fuzzing::adapter(bytes));
