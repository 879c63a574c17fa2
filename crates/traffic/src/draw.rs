use crate::{ClientPrefix, TrafficUnit};

/// The secret of the coins: 128 bits, in memory only. It isn't serialised, and its `Debug` doesn't show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DrawKey(pub [u64; 2]);

impl std::fmt::Debug for DrawKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DrawKey(secret)")
    }
}

/// The shares of the arms in one epoch as a program in the kernel compares them: arm `i` has the draws below `cumulative[i]`
/// that no arm before it has, out of 2³². What lies above the last is outside the experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmThresholds {
    /// Cumulative shares, 0 to 2³², never falling.
    pub cumulative: Vec<u64>,
}

impl ArmThresholds {
    /// The thresholds of shares that are each 0 to 1 and together at most 1; what is more is cut off.
    #[must_use]
    pub fn new(shares: &[f64]) -> Self {
        let mut sum = 0.0;
        let cumulative = shares.iter().map(|share| {
            sum += share.max(0.0);
            (sum.min(1.0) * 4_294_967_296.0).round() as u64
        });
        Self { cumulative: cumulative.collect() }
    }

    /// The arm of a draw.
    #[must_use]
    pub fn arm(&self, draw: u32) -> Option<usize> {
        self.cumulative.iter().position(|below| u64::from(draw) < *below)
    }
}

impl DrawKey {
    /// The draw of a connection: the high 32 bits of the hash of prefix, epoch and, by connection only, `rest`
    /// ([`ClientPrefix::rest`]). A program in the kernel computes the same.
    #[must_use]
    pub fn draw(self, prefix: ClientPrefix, epoch: u64, unit: TrafficUnit, rest: u64) -> u32 {
        let third = if unit == TrafficUnit::Connection { rest } else { 0 };
        (sip13(self.0, [prefix.0, epoch, third]) >> 32) as u32
    }

    /// The arm of a connection, none if it is outside the experiment.
    ///
    /// In slots the thresholds give one arm everything, so whoever connects has it.
    ///
    /// # Example
    /// ```
    /// use wt_traffic::{ArmThresholds, ClientPrefix, DrawKey, TrafficUnit};
    /// let (key, half) = (DrawKey([1, 2]), ArmThresholds::new(&[0.5, 0.5]));
    /// let arm = |client: &str, epoch| {
    ///     key.arm(ClientPrefix::of(client.parse().unwrap()), epoch, TrafficUnit::Prefix, 0, &half)
    /// };
    /// assert_eq!(arm("192.0.2.1", 7), arm("192.0.2.200", 7));
    /// assert!((0..64).any(|epoch| arm("192.0.2.1", epoch) != arm("192.0.2.1", 0)));
    /// ```
    #[must_use]
    pub fn arm(
        self,
        prefix: ClientPrefix,
        epoch: u64,
        unit: TrafficUnit,
        rest: u64,
        thresholds: &ArmThresholds,
    ) -> Option<usize> {
        thresholds.arm(self.draw(prefix, epoch, unit, rest))
    }

    /// What an outcome calls its client's prefix: the hash of `[prefix, 0, 0]` under a key that isn't the draw's. It is the
    /// same in all epochs of a run, since a prefix's past predicts its next outcome; it is in memory only.
    #[must_use]
    pub fn tag(self, prefix: ClientPrefix) -> u64 {
        sip13(self.0, [prefix.0, 0, 0])
    }

    /// A number below `bound` from the coins of whole epochs (their order); `what` keeps purposes apart.
    #[must_use]
    pub(crate) fn below(self, bound: u64, what: u64, block: u64) -> u64 {
        let hash = sip13(self.0, [u64::MAX, what, block]);
        ((u128::from(hash) * u128::from(bound)) >> 64) as u64
    }
}

/// SipHash-1-3 of three words, written in little-endian order (24 bytes).
///
/// # Source
/// Aumasson, Bernstein, *SipHash: a fast short-input PRF* (2012), with one round for each word and three at the end.
#[must_use]
pub const fn sip13(key: [u64; 2], words: [u64; 3]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    // The last word holds the length, 24, in its highest byte.
    let blocks = [words[0], words[1], words[2], 24 << 56];
    let mut i = 0;
    while i < blocks.len() {
        v[3] ^= blocks[i];
        v = round(v);
        v[0] ^= blocks[i];
        i += 1;
    }
    v[2] ^= 0xff;
    v = round(round(round(v)));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

const fn round(v: [u64; 4]) -> [u64; 4] {
    let [mut a, mut b, mut c, mut d] = v;
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher as _;

    #[test]
    fn the_hash_is_siphash_1_3() {
        // The standard library's hasher is SipHash-1-3 with the key 0.
        for words in [[0, 0, 0], [1, 2, 3], [u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63]] {
            let mut hasher = std::hash::DefaultHasher::new();
            for word in words {
                hasher.write(&word.to_le_bytes());
            }
            assert_eq!(sip13([0, 0], words), hasher.finish());
        }
    }

    #[test]
    fn every_share_is_met_and_what_no_arm_has_is_outside() {
        let thresholds = ArmThresholds::new(&[0.5, 0.25]);
        assert_eq!(thresholds.cumulative, [1 << 31, 3 << 30]);
        assert_eq!(thresholds.arm(0), Some(0));
        assert_eq!(thresholds.arm((1 << 31) - 1), Some(0));
        assert_eq!(thresholds.arm(1 << 31), Some(1));
        assert_eq!(thresholds.arm(3 << 30), None);
        assert_eq!(ArmThresholds::new(&[0.0, 1.0]).arm(0), Some(1));
        assert_eq!(ArmThresholds::new(&[0.0, 1.0]).arm(u32::MAX), Some(1));
        assert_eq!(ArmThresholds::new(&[]).arm(0), None);
    }

    #[test]
    fn coins_of_keys_prefixes_and_epochs_are_fair_and_independent() {
        let half = ArmThresholds::new(&[0.5, 0.5]);
        let coin = |key, prefix, epoch| DrawKey(key).arm(ClientPrefix(prefix), epoch, TrafficUnit::Prefix, 9, &half);
        let n = 40_000u64;
        let mut heads = 0i64;
        let mut same_as_next_epoch = 0i64;
        let mut same_as_next_prefix = 0i64;
        for i in 0..n {
            let (key, prefix, epoch) = ([3, 5], i % 200, i / 200);
            heads += i64::from(coin(key, prefix, epoch) == Some(1));
            same_as_next_epoch += i64::from(coin(key, prefix, epoch) == coin(key, prefix, epoch + 1));
            same_as_next_prefix += i64::from(coin(key, prefix, epoch) == coin(key, prefix + 1, epoch));
        }
        // Four standard errors; the draws are fixed, so that this either holds for ever or never.
        for count in [heads, same_as_next_epoch, same_as_next_prefix] {
            assert!((count - n as i64 / 2).abs() < 400, "{count}");
        }
    }

    #[test]
    fn the_vectors_that_other_implementations_are_held_against() {
        let key = DrawKey([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let prefix = ClientPrefix::of([192, 0, 2, 1].into());
        let rest = ClientPrefix::rest([192, 0, 2, 1].into(), 50_000);
        let vectors = [
            sip13(key.0, [0, 0, 0]),
            sip13(key.0, [prefix.0, 1, 0]),
            sip13(key.0, [prefix.0, 1, rest]),
            key.tag(prefix),
        ];
        assert_eq!(vectors, VECTORS, "{vectors:#018x?}");
        assert_eq!(u64::from(key.draw(prefix, 1, TrafficUnit::Prefix, rest)), VECTORS[1] >> 32);
        assert_eq!(u64::from(key.draw(prefix, 1, TrafficUnit::Connection, rest)), VECTORS[2] >> 32);
    }

    /// Computed by another implementation, after the paper.
    const VECTORS: [u64; 4] =
        [0xf98d_94f1_d11e_1b56, 0xf31b_d853_0504_072f, 0x87b2_0291_73c9_0fbd, 0x9f20_94af_d9aa_b0eb];

    #[test]
    fn a_key_isnt_shown() {
        assert_eq!(format!("{:?}", DrawKey([77, 88])), "DrawKey(secret)");
    }
}
