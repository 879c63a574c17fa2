use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The generator of one stage: ChaCha with the seed of the path as key and the place of the stage as stream, so that a
/// draw more in one stage shifts no other.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    rng: ChaCha8Rng,
    /// The second of the two normal deviates that one computation gives.
    spare: Option<f64>,
}

impl Dice {
    pub(crate) fn new(seed: u64, place: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(place);
        Self { rng, spare: None }
    }

    /// A generator of its own for a part of the stage.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.bits(), 0)
    }

    /// Whether something of this chance happens; what never happens draws nothing.
    pub(crate) fn happens(&mut self, chance: Chance) -> bool {
        match chance {
            Chance::Never => false,
            Chance::Always => true,
            Chance::Below(limit) => self.rng.next_u64() < limit,
        }
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Uniform in the open interval (0, 1), of 53 bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Uniform in 0 … below − 1; `below` at most 2³².
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        ((self.rng.next_u64() >> 32) * below) >> 32
    }

    /// Standard normal, by the transformation of Box and Muller (Ann. Math. Statist. 29, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }
}

/// A probability, made ready to be compared with a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chance {
    Never,
    Always,
    /// A draw of 64 bits lies below this.
    Below(u64),
}

impl From<f64> for Chance {
    fn from(probability: f64) -> Self {
        if probability >= 1.0 {
            Self::Always
        } else {
            // A float converts with saturation, so that NaN and everything below zero never happen.
            match (probability * 2f64.powi(64)) as u64 {
                0 => Self::Never,
                limit => Self::Below(limit),
            }
        }
    }
}

impl From<wt_units::Ratio> for Chance {
    fn from(ratio: wt_units::Ratio) -> Self {
        Self::from(ratio.get())
    }
}

/// A well-mixed 64-bit hash of a number under a seed: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub(crate) const fn mix(seed: u64, number: u64) -> u64 {
    let mut z = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
