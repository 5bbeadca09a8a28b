//! Kubernetes quantities as numbers of bytes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// An amount of bytes as a user writes it: `10Gi`, `500M`, `1073741824`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ByteQuantity(String);

/// A quantity that is not a whole number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a quantity of bytes; write a number with an optional suffix such as 10Gi or 500M")]
pub struct InvalidQuantity {
    text: String,
}

/// Suffixes of a Kubernetes quantity with their factors, the longer ones first.
const SUFFIXES: [(&str, u64); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

impl ByteQuantity {
    /// Takes the text of a quantity as it stands; [`ByteQuantity::bytes`] judges it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number of bytes.
    ///
    /// ```
    /// use garage_operator::api::quantity::ByteQuantity;
    /// assert_eq!(ByteQuantity::new("10Gi").bytes(), Ok(10_737_418_240));
    /// assert_eq!(ByteQuantity::new("1.5k").bytes(), Ok(1_500));
    /// assert!(ByteQuantity::new("ten").bytes().is_err());
    /// ```
    pub fn bytes(&self) -> Result<u64, InvalidQuantity> {
        self.parse().ok_or_else(|| InvalidQuantity { text: self.0.clone() })
    }

    fn parse(&self) -> Option<u64> {
        let text = self.0.trim();
        let (number, factor) = SUFFIXES
            .iter()
            .find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|number| (number, *factor)))
            .unwrap_or((text, 1));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole = digits(whole)?.checked_mul(factor)?;
        whole.checked_add(fraction_of(fraction, factor)?)
    }
}

fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// What the digits after the point are worth, rounded up as Kubernetes does.
fn fraction_of(text: &str, factor: u64) -> Option<u64> {
    if text.is_empty() {
        return Some(0);
    }
    let scale = 10_u128.checked_pow(u32::try_from(text.len()).ok()?)?;
    let scaled = u128::from(digits(text)?).checked_mul(u128::from(factor))?;
    u64::try_from(scaled.div_ceil(scale)).ok()
}

impl<'de> Deserialize<'de> for ByteQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Number(number) => Self(number.to_string()),
            Written::Text(text) => Self(text),
        })
    }
}

impl JsonSchema for ByteQuantity {
    fn schema_name() -> Cow<'static, str> {
        "ByteQuantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ByteQuantity;
    use rstest::rstest;

    #[rstest]
    #[case("1024", 1024)]
    #[case("1Ki", 1024)]
    #[case("10Gi", 10 << 30)]
    #[case("5G", 5_000_000_000)]
    #[case("0.5Gi", 1 << 29)]
    #[case("1.0001k", 1001)]
    fn a_quantity_is_a_number_of_bytes(#[case] text: &str, #[case] bytes: u64) {
        assert_eq!(ByteQuantity::new(text).bytes(), Ok(bytes));
    }

    #[rstest]
    #[case("")]
    #[case("Gi")]
    #[case("-1")]
    #[case("1e3")]
    #[case("17E9")]
    #[case("99999999Ei")]
    fn nonsense_is_refused_with_the_text(#[case] text: &str) {
        let error = ByteQuantity::new(text).bytes().unwrap_err();
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }

    #[test]
    fn a_bare_number_is_read_like_its_text() {
        let quantity: ByteQuantity = serde_json::from_str("2048").unwrap();
        assert_eq!(quantity.bytes(), Ok(2048));
    }
}
