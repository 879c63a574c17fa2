use crate::table::{ALGORITHMS, Algorithm, algorithm};
use std::fmt;

/// The longest name that the kernel takes.
const KERNEL_NAME: usize = 15;

/// An algorithm with all its parameters.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Which.
    pub algorithm: &'static Algorithm,
    /// The named variant that it began with.
    pub variant: &'static str,
    /// All parameters in the algorithm's order, in the source's units.
    pub values: Vec<u32>,
}

/// Why there is no such choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// No such algorithm.
    #[error("there is no congestion control {name} of ours: there are {}", names())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// No such variant or parameter.
    #[error("{algorithm} has no variant or parameter {part}: it has {known}")]
    Part {
        /// The algorithm.
        algorithm: &'static str,
        /// What was asked for.
        part: String,
        /// What there is.
        known: String,
    },
    /// The parameter can't have this value, or not beside the others.
    #[error("{algorithm}: {why}")]
    Value {
        /// The algorithm.
        algorithm: &'static str,
        /// What is allowed.
        why: String,
    },
}

fn names() -> String {
    ALGORITHMS.map(|algorithm| algorithm.name).join(", ")
}

impl std::str::FromStr for Choice {
    type Err = ChoiceError;
    /// Reads `NAME`, `NAME@VARIANT` and `NAME@PARAMETER=VALUE+…`.
    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let (name, rest) = text.split_once('@').unwrap_or((text, ""));
        let mut choice = Self::new(name)?;
        for part in rest.split('+').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((name, value)) => choice.set(name, value)?,
                None => choice.vary(part)?,
            }
        }
        choice.check()?;
        Ok(choice)
    }
}

impl Choice {
    /// An algorithm with its defaults.
    ///
    /// # Errors
    /// [`ChoiceError::Unknown`].
    pub fn new(name: &str) -> Result<Self, ChoiceError> {
        let algorithm = algorithm(name).ok_or_else(|| ChoiceError::Unknown { name: name.to_owned() })?;
        let values = algorithm.parameters.iter().map(|parameter| parameter.default).collect();
        Ok(Self { algorithm, variant: algorithm.variants[0].name, values })
    }

    /// Takes the parameters of a named variant.
    ///
    /// # Errors
    /// [`ChoiceError::Part`].
    pub fn vary(&mut self, name: &str) -> Result<(), ChoiceError> {
        let found = self.algorithm.variants.iter().find(|variant| variant.name == name || variant.short == name);
        let variant = found.filter(|_| !name.is_empty()).ok_or_else(|| self.no_part(name))?;
        self.variant = variant.name;
        for (index, parameter) in self.algorithm.parameters.iter().enumerate() {
            let own = variant.values.iter().find(|(name, _)| *name == parameter.name);
            self.values[index] = own.map_or(parameter.default, |(_, value)| *value);
        }
        Ok(())
    }

    /// Sets one parameter.
    ///
    /// # Errors
    /// [`ChoiceError`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ChoiceError> {
        let (index, parameter) = self.algorithm.parameter(name).ok_or_else(|| self.no_part(name))?;
        self.values[index] =
            parameter.parse(value).map_err(|why| ChoiceError::Value { algorithm: self.algorithm.name, why })?;
        Ok(())
    }

    /// Whether the parameters make sense together.
    ///
    /// # Errors
    /// [`ChoiceError::Value`].
    pub fn check(&self) -> Result<(), ChoiceError> {
        for (low, high) in [("queue-min", "queue-threshold"), ("alpha", "beta")] {
            let (Some((a, low)), Some((b, high))) = (self.algorithm.parameter(low), self.algorithm.parameter(high))
            else {
                continue;
            };
            let less =
                if low.name == "alpha" { self.values[a] <= self.values[b] } else { self.values[a] < self.values[b] };
            if !less {
                let why = format!(
                    "{}={} isn't below {}={}",
                    low.name,
                    low.format(self.values[a]),
                    high.name,
                    high.format(self.values[b])
                );
                return Err(ChoiceError::Value { algorithm: self.algorithm.name, why });
            }
        }
        Ok(())
    }

    fn no_part(&self, part: &str) -> ChoiceError {
        let variants = self.algorithm.variants.iter().map(|variant| variant.name);
        let known: Vec<_> = variants.chain(self.algorithm.parameters.iter().map(|parameter| parameter.name)).collect();
        ChoiceError::Part { algorithm: self.algorithm.name, part: part.to_owned(), known: known.join(", ") }
    }

    /// The named variant with exactly these parameters.
    fn named(&self) -> Option<&'static crate::Variant> {
        self.algorithm.variants.iter().find(|variant| {
            self.algorithm.parameters.iter().zip(&self.values).all(|(parameter, value)| {
                let own = variant.values.iter().find(|(name, _)| *name == parameter.name);
                *value == own.map_or(parameter.default, |(_, value)| *value)
            })
        })
    }

    /// The variant as people write it: a name, or every parameter.
    #[must_use]
    pub fn variant_text(&self) -> String {
        let all = self.algorithm.parameters.iter().zip(&self.values);
        let explicit = || all.map(|(parameter, value)| format!("{}={}", parameter.name, parameter.format(*value)));
        self.named().map_or_else(|| explicit().collect::<Vec<_>>().join("+"), |variant| variant.name.to_owned())
    }

    /// What the kernel calls it: `wt_`, the algorithm, and the variant or, for parameters of one's own, a hash of them.
    #[must_use]
    pub fn kernel_name(&self) -> String {
        let mut name = format!("wt_{}", self.algorithm.name);
        match self.named() {
            Some(variant) if variant.short.is_empty() => {}
            Some(variant) => name.push_str(&format!("_{}", variant.short)),
            None => name.push_str(&format!("_{:08x}", hash(&self.values))),
        }
        name.truncate(KERNEL_NAME);
        name
    }

    /// A name in the kernel for somebody who needs one of their own, from a number.
    #[must_use]
    pub fn private_name(&self, salt: u32) -> String {
        let mut name = format!("wt_{}_{:08x}", self.algorithm.name, hash(&[salt]));
        name.truncate(KERNEL_NAME);
        name
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alone = self.named().is_some() && self.algorithm.variants.len() == 1;
        if alone {
            f.write_str(self.algorithm.name)
        } else {
            write!(f, "{}@{}", self.algorithm.name, self.variant_text())
        }
    }
}

/// FNV-1a of 32 bits.
fn hash(values: &[u32]) -> u32 {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(text: &str) -> Result<Choice, ChoiceError> {
        text.parse()
    }

    #[test]
    fn the_two_clocks_of_freebsd_are_two_sets_of_thresholds() {
        let (fast, slow) = (choose("chd").unwrap(), choose("chd@freebsd-hz100").unwrap());
        assert_eq!(fast.values[..3], [20_000, 5_000, 500_000]);
        assert_eq!(slow.values[..3], [200_000, 50_000, 500_000]);
        assert_eq!(fast.to_string(), "chd@freebsd-hz1000");
        assert_eq!(fast.kernel_name(), "wt_chd_hz1000");
        assert_eq!(slow.kernel_name(), "wt_chd_hz100");
    }

    #[test]
    fn parameters_of_ones_own_are_read_written_and_named_apart() {
        let own = choose("chd@freebsd-hz100+queue-min=5ms+pmax=30%").unwrap();
        assert_eq!(own.values, [200_000, 5_000, 300_000, 1, 1]);
        assert_eq!(own.to_string(), "chd@queue-threshold=200ms+queue-min=5ms+pmax=30%+loss-fair=on+use-max=on");
        assert_eq!(choose(&own.to_string()).unwrap().values, own.values);
        assert_ne!(own.kernel_name(), choose("chd@pmax=31%").unwrap().kernel_name());
        assert_eq!(choose("chd@queue-min=5ms").unwrap().kernel_name(), "wt_chd_hz1000", "those are the defaults");
    }

    #[test]
    fn kernel_names_are_what_the_kernel_takes() {
        for algorithm in &ALGORITHMS {
            for variant in algorithm.variants {
                let mut choice = Choice::new(algorithm.name).unwrap();
                choice.vary(variant.name).unwrap();
                let mut names = vec![choice.kernel_name()];
                for parameter in algorithm.parameters {
                    let mut own = choice.clone();
                    let value = if parameter.range.1 == 1 { 1 - parameter.default } else { parameter.default + 7 };
                    own.set(parameter.name, &parameter.format(value)).unwrap();
                    names.push(own.kernel_name());
                }
                let ok = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(names.iter().all(|name| name.len() <= 15 && name.chars().all(ok)), "{names:?}");
                names.sort();
                names.dedup();
                assert_eq!(names.len(), algorithm.parameters.len() + 1, "{names:?}");
            }
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_is_allowed() {
        for (text, part) in [
            ("bic", "newreno, hd, chd"),
            ("chd@linux", "freebsd-hz1000"),
            ("chd@pmax=200%", "0.0001% to 100%"),
            ("chd@queue-min=30ms", "isn't below queue-threshold=20ms"),
            ("vegas@alpha=4", "isn't below beta=3"),
            ("hd@loss-fair=on", "no variant or parameter"),
            ("chd@use-max=maybe", "on or off"),
        ] {
            let error = choose(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
