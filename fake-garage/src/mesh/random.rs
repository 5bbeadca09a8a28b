//! The mesh's own source of chance, so that one seed gives one history.

use std::ops::Range;
use std::time::Duration;

/// A small generator of pseudo-random numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A duration from `range`; its start where the range is empty.
    pub fn duration(&mut self, range: &Range<Duration>) -> Duration {
        let width = u64::try_from(range.end.saturating_sub(range.start).as_nanos()).unwrap_or(u64::MAX);
        range.start + Duration::from_nanos(if width == 0 { 0 } else { self.number() % width })
    }

    /// Whether a chance of `per_mille` in a thousand comes true.
    pub const fn chance(&mut self, per_mille: u64) -> bool {
        self.number() % 1000 < per_mille
    }

    /// 32 bytes.
    pub fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.number(), random.number()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn an_empty_range_gives_its_start() {
        let moment = Duration::from_millis(3);
        assert_eq!(Random::new(1).duration(&(moment..moment)), moment);
    }
}
