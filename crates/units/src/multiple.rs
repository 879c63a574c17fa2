use crate::Level;

/// A size that is counted in full segments or full packets.
///
/// # Example
/// ```
/// # use wt_units::Multiple;
/// assert_eq!(Multiple::read("4x"), Some(Ok(Multiple::OfMss(4))));
/// assert_eq!(Multiple::read("33xmtu"), Some(Ok(Multiple::OfMtu(33))));
/// assert_eq!(Multiple::read("64KiB"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiple {
    /// So many times the payload of a full segment: `4x`.
    OfMss(u32),
    /// So many times the largest IP packet: `33xmtu`.
    OfMtu(u32),
}

impl Multiple {
    /// The largest factor.
    const MOST: u32 = 100_000;

    /// Reads `4x`, `4xmss` or `33xmtu`, with `×` as well; `None` for what is written otherwise, an error for a factor that
    /// is no number of 1 to 100,000.
    #[must_use]
    pub fn read(text: &str) -> Option<Result<Self, ()>> {
        let lower = text.trim().to_ascii_lowercase();
        let of_mtu = lower.strip_suffix("mtu");
        let rest = of_mtu.or_else(|| lower.strip_suffix("mss")).unwrap_or(&lower);
        let times = rest.trim_end().strip_suffix(['x', '×'])?;
        let times = times.trim().parse().ok().filter(|times| (1..=Self::MOST).contains(times)).ok_or(());
        Some(times.map(if of_mtu.is_some() { Self::OfMtu } else { Self::OfMss }))
    }
}

impl std::fmt::Display for Multiple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OfMss(times) => write!(f, "{times}x"),
            Self::OfMtu(times) => write!(f, "{times}xmtu"),
        }
    }
}

impl From<Multiple> for Level {
    fn from(multiple: Multiple) -> Self {
        match multiple {
            Multiple::OfMss(times) => Self::TimesMss(times),
            Multiple::OfMtu(times) => Self::TimesMtu(times),
        }
    }
}

/// What multiples are multiplied with: the sizes of a packet that fills the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullPacket {
    /// Its length at IP, bytes.
    pub mtu: u64,
    /// Its TCP payload, bytes.
    pub mss: u64,
}

impl FullPacket {
    /// The same path with a smaller MTU or MSS; larger ones don't get through.
    #[must_use]
    pub fn within(self, mtu: Option<u64>, mss: Option<u64>) -> Self {
        let header = self.mtu.saturating_sub(self.mss);
        let mtu = mtu.map_or(self.mtu, |own| own.min(self.mtu));
        let left = self.mss.min(mtu.saturating_sub(header)).max(1);
        Self { mtu, mss: mss.map_or(left, |own| own.min(left)).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_written_as_they_are_read() {
        for text in ["4x", "33xmtu", "1x", "100000xmtu"] {
            assert_eq!(Multiple::read(text).unwrap().unwrap().to_string(), text);
        }
        for (text, as_read) in [("33×MTU", "33xmtu"), ("33 x mtu", "33xmtu"), ("4xmss", "4x"), ("4 ×", "4x")] {
            assert_eq!(Multiple::read(text).unwrap().unwrap().to_string(), as_read, "{text}");
        }
        for text in ["0x", "0xmtu", "100001x", "x", "xmtu", "-1xmtu", "1.5xmtu", "4xx"] {
            assert_eq!(Multiple::read(text), Some(Err(())), "{text}");
        }
        for text in ["mtu", "33mtu", "64KiB", "1500", ""] {
            assert_eq!(Multiple::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_smaller_packet_makes_both_multiples_smaller() {
        let full = FullPacket { mtu: 1_456, mss: 1_404 };
        assert_eq!(full.within(None, None), full);
        assert_eq!(full.within(Some(576), None), FullPacket { mtu: 576, mss: 524 });
        assert_eq!(full.within(None, Some(536)), FullPacket { mtu: 1_456, mss: 536 });
        assert_eq!(full.within(Some(9_000), Some(8_960)), full, "what is larger doesn't get through");
        assert_eq!(full.within(Some(20), None).mss, 1);
    }
}
