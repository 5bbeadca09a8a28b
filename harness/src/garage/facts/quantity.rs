//! Kubernetes quantities of bytes.

use serde_json::Value;

/// The suffixes of a quantity with their factors (Kubernetes API conventions, "Quantities").
const SUFFIXES: [(&str, u128); 12] = [
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

/// The bytes of a quantity: `10Gi`, `1.5T`, `4096`, or a plain number. None for what is no whole number of bytes.
#[must_use]
pub fn bytes(value: &Value) -> Option<u64> {
    let Some(text) = value.as_str() else { return value.as_u64() };
    let suffix = SUFFIXES.into_iter().find(|(suffix, _)| text.ends_with(suffix));
    let (suffix, factor) = suffix.unwrap_or(("", 1));
    let number = text.strip_suffix(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let total = digits.checked_mul(factor)?;
    if total % scale == 0 { u64::try_from(total / scale).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!("10Gi"), Some(10_737_418_240))]
    #[case(json!("1.5k"), Some(1500))]
    #[case(json!("10737418240"), Some(10_737_418_240))]
    #[case(json!(4096), Some(4096))]
    #[case(json!("1.0001k"), None)]
    #[case(json!("much"), None)]
    #[case(json!(null), None)]
    fn a_quantity_is_so_many_bytes(#[case] value: Value, #[case] wanted: Option<u64>) {
        assert_eq!(bytes(&value), wanted);
    }
}
