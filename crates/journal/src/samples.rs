//! Samples as columns of deltas.
//!
//! One byte of version (1), the number of samples, then each of the nine columns in turn: the difference to the sample
//! before, zigzag-coded so that small differences of either sign are small numbers. All numbers are little-endian base
//! 128. A second of samples at 10 ms takes about 2 kB; as JSON it would be 20 kB.

use wt_trial::Sample;

const VERSION: u8 = 1;
const COLUMNS: usize = 9;

/// Why bytes aren't samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// A newer program wrote them.
    #[error("unknown encoding {0}")]
    Version(u8),
    /// They end too early.
    #[error("cut short")]
    Short,
    /// There is more than what was announced.
    #[error("{0} bytes too many")]
    TooMany(usize),
    /// A number has more than 64 bits.
    #[error("a number is too large")]
    Overflow,
}

/// Samples in few bytes; [`decode_samples`] gives back exactly the same.
#[must_use]
pub fn encode_samples(samples: &[Sample]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + samples.len() * COLUMNS * 2);
    out.push(VERSION);
    push(&mut out, samples.len() as u64);
    for column in 0..COLUMNS {
        let mut before = 0u64;
        for sample in samples {
            let value = fields(sample)[column];
            push(&mut out, zigzag(value.wrapping_sub(before)));
            before = value;
        }
    }
    out
}

/// The samples that were encoded.
///
/// # Errors
/// [`SampleError`] for any bytes that [`encode_samples`] doesn't write; never takes more memory than 8 times the bytes.
pub fn decode_samples(bytes: &[u8]) -> Result<Vec<Sample>, SampleError> {
    let (version, mut rest) = bytes.split_first().ok_or(SampleError::Short)?;
    if *version != VERSION {
        return Err(SampleError::Version(*version));
    }
    let count = usize::try_from(pull(&mut rest)?).map_err(|_| SampleError::Short)?;
    // Every number takes a byte at least: nothing is reserved for samples that can't be there.
    if count > rest.len() / COLUMNS {
        return Err(SampleError::Short);
    }
    let mut values = vec![[0u64; COLUMNS]; count];
    for column in 0..COLUMNS {
        let mut before = 0u64;
        for row in &mut values {
            before = before.wrapping_add(unzigzag(pull(&mut rest)?));
            row[column] = before;
        }
    }
    if rest.is_empty() { Ok(values.into_iter().map(sample).collect()) } else { Err(SampleError::TooMany(rest.len())) }
}

fn fields(s: &Sample) -> [u64; COLUMNS] {
    [s.t_us, s.bytes, s.snd_cwnd, s.ssthresh, s.rtt, s.min_rtt, s.retransmits, s.snd_wnd, s.delivery_rate_bps]
}

fn sample(row: [u64; COLUMNS]) -> Sample {
    let [t_us, bytes, snd_cwnd, ssthresh, rtt, min_rtt, retransmits, snd_wnd, delivery_rate_bps] = row;
    Sample { t_us, bytes, snd_cwnd, ssthresh, rtt, min_rtt, retransmits, snd_wnd, delivery_rate_bps }
}

/// 0, −1, 1, −2, … to 0, 1, 2, 3, …
fn zigzag(delta: u64) -> u64 {
    let sign = if delta >> 63 == 1 { u64::MAX } else { 0 };
    (delta << 1) ^ sign
}

fn unzigzag(coded: u64) -> u64 {
    (coded >> 1) ^ (coded & 1).wrapping_neg()
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn pull(rest: &mut &[u8]) -> Result<u64, SampleError> {
    let mut number = 0u64;
    for place in 0..10 {
        let (byte, tail) = rest.split_first().ok_or(SampleError::Short)?;
        *rest = tail;
        let bits = u64::from(byte & 0x7f);
        if place == 9 && bits > 1 {
            return Err(SampleError::Overflow);
        }
        number |= bits << (place * 7);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(SampleError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_sample() -> impl Strategy<Value = Sample> {
        any::<[u64; COLUMNS]>().prop_map(sample)
    }

    #[test]
    fn the_encoding_stays_as_it_is() {
        let one = Sample { t_us: 1, bytes: 300, rtt: 2, ..Sample::default() };
        let two = Sample { t_us: 2, bytes: 299, rtt: 2, ..Sample::default() };
        let golden = [1, 2, 2, 2, 0xd8, 4, 1, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(encode_samples(&[one, two]), golden);
    }

    #[test]
    fn a_usual_transfer_takes_a_tenth_of_its_json() {
        let samples: Vec<Sample> = (0..1_000u64)
            .map(|i| Sample {
                t_us: i * 10_000 + i % 7,
                bytes: i * 8_750,
                snd_cwnd: 14_600 + 1_460 * (i % 20),
                ssthresh: 29_200,
                rtt: 30_000 + (i * 37) % 900,
                min_rtt: 30_000,
                retransmits: i / 300,
                snd_wnd: 65_536,
                delivery_rate_bps: 6_800_000 + (i * 7_919) % 20_000,
            })
            .collect();
        let json = serde_json::to_vec(&samples).unwrap().len();
        let ours = encode_samples(&samples).len();
        assert!(ours * 9 < json, "{ours} {json}");
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(samples in proptest::collection::vec(any_sample(), 0..50)) {
            prop_assert_eq!(decode_samples(&encode_samples(&samples)).unwrap(), samples);
        }

        #[test]
        fn garbage_is_an_error_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(samples) = decode_samples(&bytes) {
                prop_assert!(samples.len() * COLUMNS <= bytes.len());
            }
        }

        #[test]
        fn damage_is_never_a_panic(
            samples in proptest::collection::vec(any_sample(), 1..10), at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), bit in 0..8,
        ) {
            let mut bytes = encode_samples(&samples);
            prop_assert!(decode_samples(&bytes[..cut.index(bytes.len())]).is_err());
            let at = at.index(bytes.len());
            bytes[at] ^= 1u8 << bit;
            let _ = decode_samples(&bytes);
        }

        #[test]
        fn a_lie_about_the_count_reserves_nothing(count in any::<u64>()) {
            let mut bytes = vec![VERSION];
            push(&mut bytes, count);
            prop_assert_eq!(decode_samples(&bytes).is_ok(), count == 0);
        }
    }
}
