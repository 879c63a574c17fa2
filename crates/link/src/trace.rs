use std::sync::Arc;

/// Moments at which a link may send, in mahimahi's format: one line each, a whole number of milliseconds, in order. The
/// last one is also the length of the trace, after which it begins anew.
///
/// # Source
/// mahimahi(1), `mm-link`, and its `link_queue.cc`: an opportunity carries 1504 bytes of a TUN packet with its 4-byte
/// header.
///
/// # Example
/// ```
/// use wt_link::Trace;
/// let trace = Trace::parse(b"0\n5\n5\n10\n")?;
/// assert_eq!(trace.len(), 4);
/// assert_eq!(Trace::parse(b"5\n3\n").unwrap_err().to_string(), "line 2: 3 ms comes after 5 ms: the lines must be in order");
/// # Ok::<(), wt_link::TraceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace(Arc<[u32]>);

/// The longest trace file, bytes.
pub const MAX_TRACE_BYTES: usize = 64 << 20;
/// The longest trace, milliseconds: a day.
const MAX_MS: u32 = 86_400_000;

/// What is wrong with a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line isn't a number of milliseconds.
    #[error("line {line}: \"{text}\" is not a whole number of milliseconds from 0 to {MAX_MS} (a day)")]
    NotANumber {
        /// The line, from 1 on.
        line: usize,
        /// What it says, cut short.
        text: String,
    },
    /// Times go back.
    #[error("line {line}: {ms} ms comes after {before} ms: the lines must be in order")]
    OutOfOrder {
        /// The line, from 1 on.
        line: usize,
        /// What it says.
        ms: u32,
        /// What the line before says.
        before: u32,
    },
    /// There is nothing in it, or it ends at zero.
    #[error("the trace has no line above 0 ms: it must last for some time")]
    NoLength,
    /// It is too large.
    #[error("the trace has {bytes} bytes: at most {MAX_TRACE_BYTES} are read")]
    TooLarge {
        /// Its length, bytes.
        bytes: usize,
    },
}

impl Trace {
    /// Reads a trace; spaces around the numbers and one empty line at the end are allowed.
    ///
    /// # Errors
    /// [`TraceError`] with the line.
    pub fn parse(text: &[u8]) -> Result<Self, TraceError> {
        if text.len() > MAX_TRACE_BYTES {
            return Err(TraceError::TooLarge { bytes: text.len() });
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let mut at_ms: Vec<u32> = Vec::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let (line_number, before) = (index + 1, at_ms.last().copied().unwrap_or(0));
            let ms = number(line.trim_ascii()).ok_or_else(|| TraceError::NotANumber {
                line: line_number,
                text: String::from_utf8_lossy(&line[..line.len().min(40)]).into_owned(),
            })?;
            if ms < before {
                return Err(TraceError::OutOfOrder { line: line_number, ms, before });
            }
            at_ms.push(ms);
        }
        if at_ms.last().is_none_or(|last| *last == 0) {
            return Err(TraceError::NoLength);
        }
        Ok(Self(at_ms.into()))
    }

    /// How many opportunities it has; never zero.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a trace is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How long it lasts.
    #[must_use]
    pub fn period(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.last().copied().unwrap_or(0).into())
    }

    /// The moments of its opportunities, milliseconds: its lines.
    pub fn moments_ms(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn at_ms(&self) -> Arc<[u32]> {
        Arc::clone(&self.0)
    }
}

/// Decimal digits only, at most a day.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 10 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    u32::try_from(value).ok().filter(|ms| *ms <= MAX_MS)
}
