//! A profile of servers.
#![no_main]

#[path = "../../crates/tune/src/profile.rs"]
#[expect(dead_code, reason = "the program uses the rest")]
mod profile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = profile::parse(text);
    }
});
