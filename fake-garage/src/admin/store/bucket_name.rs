//! What a bucket may be called.

use std::net::Ipv4Addr;

/// Whether `name` is a valid name for a bucket by the rules of S3.
#[must_use]
pub fn is_valid(name: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = name.bytes().next().zip(name.bytes().last());
    (3..=63).contains(&name.len())
        && ends.is_some_and(|(first, last)| alphanumeric(first) && alphanumeric(last))
        && name.bytes().all(|byte| alphanumeric(byte) || matches!(byte, b'.' | b'-'))
        && name.parse::<Ipv4Addr>().is_err()
        && !name.starts_with("xn--")
        && !name.ends_with("-s3alias")
        && !name.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("bucket-one", true)]
    #[case("a.b", true)]
    #[case::capture_01_too_short("b1", false)]
    #[case::capture_16_capital_and_underscore("Bad_Name", false)]
    #[case::address("192.168.0.1", false)]
    #[case::dash_at_the_end("bucket-", false)]
    fn names_follow_the_rules_of_s3(#[case] name: &str, #[case] valid: bool) {
        assert_eq!(is_valid(name), valid);
    }
}
