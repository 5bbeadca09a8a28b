//! Digests of layout state: stable, so that two nodes with the same state have the same digest.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a piece of layout state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..8]))
    }
}

/// Collects fields into a [`Digest`]. Every field is framed by its length, so that no two sequences coincide.
#[derive(Default)]
pub(crate) struct Digester(Sha256);

impl Digester {
    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.0.update(value.to_be_bytes());
        self
    }

    pub(crate) fn count(&mut self, value: usize) -> &mut Self {
        self.number(u64::try_from(value).unwrap_or(u64::MAX))
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.count(value.len());
        self.0.update(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn digest(&mut self, value: Digest) -> &mut Self {
        self.bytes(&value.0)
    }

    pub(crate) fn finish(&mut self) -> Digest {
        Digest(self.0.finalize_reset().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_border_between_two_fields_counts() {
        let ab_c = Digester::default().text("ab").text("c").finish();
        let a_bc = Digester::default().text("a").text("bc").finish();
        assert_ne!(ab_c, a_bc);
    }
}
