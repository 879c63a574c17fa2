use std::io::{Error, ErrorKind, Read, Result};

/// The longest line of a table, bytes.
const LONGEST_LINE: usize = 1 << 20;
/// The largest table, bytes: some 10⁸ rows.
const LARGEST: u64 = 8 << 30;

/// What is read of a table, as long as it can be one: without a zero byte, with lines, and with an end. Endless or binary input ends
/// with an error before it has filled a memory or a disk.
#[derive(Debug)]
pub struct TableText<R> {
    inner: R,
    line: usize,
    all: u64,
}

impl<R: Read> TableText<R> {
    /// All that is read from here.
    pub fn new(inner: R) -> Self {
        Self { inner, line: 0, all: 0 }
    }
}

impl<R: Read> Read for TableText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.inner.read(buffer)?;
        let read = buffer.get(..count).unwrap_or_default();
        let wrong = |what: &str| Err(Error::new(ErrorKind::InvalidData, what.to_owned()));
        if read.contains(&0) {
            return wrong("it isn't a table: it has a zero byte");
        }
        for line in read.split_inclusive(|byte| *byte == b'\n') {
            self.line += line.len();
            if self.line > LONGEST_LINE {
                return wrong("it isn't a table: a line is longer than 1 MiB");
            }
            if line.ends_with(b"\n") {
                self.line = 0;
            }
        }
        self.all += count as u64;
        if self.all > LARGEST {
            return wrong("it is too large: a table has at most 8 GiB");
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: impl Read) -> std::result::Result<u64, String> {
        std::io::copy(&mut TableText::new(table), &mut std::io::sink()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_is_read_whole_and_what_has_no_lines_or_no_text_ends_soon() {
        let rows = "link_rate,rtt\n8mbit,40ms\n".repeat(100_000);
        assert_eq!(read(rows.as_bytes()), Ok(rows.len() as u64));
        assert_eq!(read(&[b'x'; LONGEST_LINE][..]), Ok(LONGEST_LINE as u64));
        assert!(read(std::io::repeat(0)).unwrap_err().contains("a zero byte"));
        assert!(read(std::io::repeat(b'x')).unwrap_err().contains("longer than 1 MiB"));
    }
}
