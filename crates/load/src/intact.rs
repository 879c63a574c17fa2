//! Whether the payload of a server that isn't ours is the same each time.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};

/// Bytes that are compared at once.
const BLOCK: usize = 64 * 1024;
/// Blocks that are remembered; beyond, nothing is compared.
const MOST_BLOCKS: usize = 1 << 20;
/// Ends of transfers that are remembered.
const MOST_ENDS: usize = 16;

/// Looks at payload as it comes.
pub(crate) trait Check {
    /// Where the first byte lies that can't be right, if there is one.
    fn take(&mut self, bytes: &[u8]) -> Option<u64>;
    /// That was all.
    fn end(&mut self) -> Option<u64> {
        None
    }
}

/// What a payload was when it came first: a hash of each block. Later transfers must bring the same.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    version: Option<String>,
    length: Option<u64>,
    blocks: Vec<u64>,
    /// Transfers that ended within a block: where, and the hash of its beginning.
    ends: VecDeque<(u64, u64)>,
}

impl Reference {
    /// Nothing has come yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes a later transfer would be compared with.
    #[must_use]
    pub fn known_bytes(&self) -> u64 {
        (self.blocks.len() * BLOCK) as u64
    }

    /// Begins a comparison. A payload of another version or length is another payload: it is learnt anew; the flag says
    /// so.
    pub(crate) fn compare(&mut self, version: Option<String>, length: Option<u64>) -> (Comparison<'_>, bool) {
        let fresh = self.blocks.is_empty() && self.ends.is_empty();
        let changed = !fresh && (version != self.version || (length.is_some() && length != self.length));
        if fresh || changed {
            *self = Self { version, length, ..Self::default() };
        }
        (Comparison { reference: self, block: Vec::with_capacity(BLOCK), number: 0 }, changed)
    }
}

/// A transfer that is compared.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    reference: &'a mut Reference,
    block: Vec<u8>,
    number: usize,
}

impl Comparison<'_> {
    fn block(&mut self) -> Option<u64> {
        let hash = hash(&self.block);
        self.block.clear();
        let number = self.number;
        self.number += 1;
        match self.reference.blocks.get(number) {
            Some(known) if *known != hash => Some((number * BLOCK) as u64),
            Some(_) => None,
            None => {
                if number == self.reference.blocks.len() && number < MOST_BLOCKS {
                    self.reference.blocks.push(hash);
                }
                None
            }
        }
    }
}

impl Check for Comparison<'_> {
    fn take(&mut self, mut bytes: &[u8]) -> Option<u64> {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(piece);
            bytes = rest;
            if self.block.len() == BLOCK
                && let Some(wrong) = self.block()
            {
                return Some(wrong);
            }
        }
        None
    }

    fn end(&mut self) -> Option<u64> {
        if self.block.is_empty() {
            return None;
        }
        let start = (self.number * BLOCK) as u64;
        let end = start + self.block.len() as u64;
        let hash = hash(&self.block);
        let ends = &mut self.reference.ends;
        match ends.iter().find(|(known, _)| *known == end) {
            Some((_, known)) => (*known != hash).then_some(start),
            None => {
                if ends.len() == MOST_ENDS {
                    ends.pop_front();
                }
                ends.push_back((end, hash));
                None
            }
        }
    }
}

/// Not against attackers: against bytes that got lost, doubled or mixed up on the way.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;
    use proptest::prelude::*;

    fn transfer(reference: &mut Reference, bytes: &[u8], piece: usize) -> Option<u64> {
        let (mut comparison, _) = reference.compare(None, None);
        let wrong = bytes.chunks(piece).find_map(|piece| comparison.take(piece));
        wrong.or_else(|| comparison.end())
    }

    #[test]
    fn the_same_payload_is_the_same_however_it_comes() {
        let payload = pattern::at(0, 200_000);
        let mut reference = Reference::new();
        for piece in [1448, 65_536, 100_000, 1, 200_000] {
            assert_eq!(transfer(&mut reference, payload, piece), None, "{piece}");
        }
        // A shorter and a longer one agree as far as they go.
        assert_eq!(transfer(&mut reference, &payload[..100_000], 1448), None);
        assert_eq!(transfer(&mut reference, pattern::at(0, 250_000), 1448), None);
        assert_eq!(reference.known_bytes(), 196_608);
    }

    #[test]
    fn another_version_is_learnt_anew() {
        let mut reference = Reference::new();
        for (version, byte, changed) in [("a", 1, false), ("a", 1, false), ("b", 2, true), ("b", 2, false)] {
            let (mut comparison, is_changed) = reference.compare(Some(version.to_owned()), Some(70_000));
            assert_eq!((comparison.take(&[byte; 70_000]), comparison.end()), (None, None));
            assert_eq!(is_changed, changed);
        }
    }

    proptest! {
        #[test]
        fn a_single_wrong_byte_is_found(at in 0..150_000_usize, piece in 1000..70_000_usize) {
            let mut payload = pattern::at(0, 150_000).to_vec();
            let mut reference = Reference::new();
            prop_assert_eq!(transfer(&mut reference, &payload, piece), None);
            payload[at] ^= 0x10;
            let wrong = transfer(&mut reference, &payload, piece);
            prop_assert_eq!(wrong, Some((at / BLOCK * BLOCK) as u64));
        }
    }
}
