//! What adapters say, as a function of bytes: for fuzzing (`fuzz/`), and for a test with random bytes.

use crate::protocol::{AdapterDone, Arguments, Description, Ready};
use crate::talk::Lines;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

/// So much a pipe takes at once.
const MOST: usize = 60_000;

/// The lines of an adapter, and the command line of one.
pub fn adapter(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MOST)];
    let (answers, mut theirs) = std::io::pipe().expect("a pipe");
    theirs.write_all(bytes).expect("a pipe takes so much");
    drop(theirs);
    let mut lines = Lines::of(answers);
    let mut length = 0;
    // It has ended, so that nothing is waited for.
    while let Ok(line) = lines.next(Duration::from_secs(5)) {
        length += line.len();
        let _ = serde_json::from_str::<Description>(&line);
        if let Ok(ready) = serde_json::from_str::<Ready>(&line) {
            let again = serde_json::to_string(&ready).expect("what was read can be written");
            assert_eq!(serde_json::from_str::<Ready>(&again).expect("and read again"), ready);
        }
        let _ = serde_json::from_str::<AdapterDone>(&line);
    }
    assert!(length <= bytes.len());
    let words = bytes.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    if let Ok(arguments) = Arguments::parse(words) {
        assert_eq!(Arguments::parse(arguments.to_args().into_iter()), Ok(arguments));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    const READY: &[u8] =
        b"{\"ready\":true,\"stack\":\"lwip\",\"version\":\"2.2\",\"granted\":{\"mss\":1460},\"refused\":[\"sack\"]}\n";
    const WHAT: &[u8] = b"{\"protocol\":1,\"name\":\"x\",\"version\":\"1\",\"options\":[\"cc\"],\"far_end\":true}\n";
    const DONE: &[u8] = b"{\"done\":true,\"connections\":3,\"bytes_in\":99,\"bytes_out\":7}\n";
    const WORDS: &[u8] =
        b"--device\0t0\0--address\x00192.0.2.1\0--server\x00192.0.2.2:80\0--mtu\x001500\0--listen\0/s\0--set\0cc=reno";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn no_lines_of_an_adapter_make_us_panic(
            like in 0usize..5, cut in 0usize..200, at in 0usize..200, value: u8, more in proptest::collection::vec(any::<u8>(), 0..200)
        ) {
            let mut bytes = [b"", READY, WHAT, DONE, WORDS][like].to_vec();
            bytes.truncate(cut);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.extend(more);
            super::adapter(&bytes);
        }
    }
}
