//! The identity of a Garage node.

use std::fmt;

use hex::FromHexError;
use serde::{Serialize, Serializer};

/// Identity of a node: an Ed25519 public key, 32 bytes, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId([u8; 32]);

/// A text that is no node identity. The message is the one Garage sends (Garage admin reference §6).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NodeIdError {
    /// Not hexadecimal, or an odd number of digits.
    #[error("Invalid node identifier: {0}")]
    Digits(FromHexError),
    /// Hexadecimal, but not 64 digits.
    #[error("Invalid node identifier")]
    Length,
}

impl NodeId {
    /// The identity with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The identity that `text` spells: 64 hex digits in either case.
    pub fn parse(text: &str) -> Result<Self, NodeIdError> {
        let bytes = hex::decode(text).map_err(NodeIdError::Digits)?;
        bytes.try_into().map(Self).map_err(|_| NodeIdError::Length)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its 64 hex digits, written into `room`.
    #[must_use]
    pub fn spell<'a>(&self, room: &'a mut [u8; 64]) -> &'a str {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for (pair, byte) in room.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]];
        }
        std::str::from_utf8(room).unwrap_or_default()
    }

    /// The first 16 hex digits, as Garage writes identities in messages and logs.
    #[must_use]
    pub fn short(&self) -> String {
        hex::encode(&self.0[..8])
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spell(&mut [0; 64]))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn upper_case_digits_are_read_and_written_in_lower_case() {
        assert_eq!(NodeId::parse(&"AB".repeat(32)).unwrap().to_string(), "ab".repeat(32));
    }

    #[rstest]
    #[case::empty("", "Invalid node identifier")]
    #[case::short("a2a2172bb2466342", "Invalid node identifier")]
    #[case::no_digits("zz", "Invalid node identifier: Invalid character 'z' at position 0")]
    #[case::odd("abc", "Invalid node identifier: Odd number of digits")]
    fn what_is_no_identity_is_refused_in_garages_words(#[case] text: &str, #[case] message: &str) {
        assert_eq!(NodeId::parse(text).unwrap_err().to_string(), message);
    }
}
