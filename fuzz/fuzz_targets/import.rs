#![no_main]

#[path = "../files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| files::import(bytes));
