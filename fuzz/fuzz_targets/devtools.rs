//! What a browser says while it loads a page.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wt_compare::fuzzing::devtools(bytes));
