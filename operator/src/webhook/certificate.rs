//! The certificate of the webhook server: made by the operator, renewed before it expires.

use k8s_openapi::jiff::{Span, Timestamp, Zoned, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use thiserror::Error;

/// How long a certificate is valid, in days.
const VALID_DAYS: i64 = 365;
/// With fewer days left it is renewed.
const RENEW_DAYS: i64 = 90;

/// A certificate that could not be made.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The generator refused.
    #[error("the webhook's certificate could not be made")]
    Generate(#[from] rcgen::Error),
    /// The clock is beyond all dates.
    #[error("the webhook's certificate has no valid period")]
    Clock(#[source] k8s_openapi::jiff::Error),
}

/// A serving certificate with the authority that clients trust.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The authority, as PEM: the bundle that is injected.
    pub authority: String,
    /// The serving certificate, as PEM.
    pub certificate: String,
    /// Its private key, as PEM.
    pub key: String,
    /// When it expires.
    pub not_after: Timestamp,
    /// The names it is for, separated by commas.
    pub names: String,
}

impl Certificate {
    /// Makes an authority and a serving certificate for these names. The authority's key is thrown away: a renewal
    /// makes both anew.
    pub fn generate(names: &[String], now: Timestamp) -> Result<Self, CertificateError> {
        let (today, last) = (day(now, -1)?, day(now, VALID_DAYS)?);
        let midnight = |day: &Zoned| {
            let (year, month, date) = civil(day);
            date_time_ymd(year, month, date)
        };
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name.push(DnType::CommonName, "garage-operator webhook authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        (authority.not_before, authority.not_after) = (midnight(&today), midnight(&last));
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate()?;
        let mut serving = CertificateParams::new(names.to_vec())?;
        serving.distinguished_name.push(DnType::CommonName, "garage-operator webhook");
        (serving.not_before, serving.not_after) = (midnight(&today), midnight(&last));
        let certificate = serving.signed_by(&key, &issuer)?;
        Ok(Self {
            authority: authority_certificate.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            not_after: last.timestamp(),
            names: names.join(","),
        })
    }

    /// Whether it is for these names and stays valid for long enough.
    pub fn serves(&self, names: &[String], now: Timestamp) -> bool {
        let left = self.not_after.duration_since(now).as_hours() / 24;
        self.names == names.join(",") && left >= RENEW_DAYS
    }
}

fn day(now: Timestamp, days: i64) -> Result<Zoned, CertificateError> {
    let day =
        now.to_zoned(TimeZone::UTC).checked_add(Span::new().days(days)).map_err(CertificateError::Clock)?;
    day.start_of_day().map_err(CertificateError::Clock)
}

fn civil(day: &Zoned) -> (i32, u8, u8) {
    let date = |number: i8| u8::try_from(number).unwrap_or(1);
    (i32::from(day.year()), date(day.month()), date(day.day()))
}

#[cfg(test)]
mod tests {
    use super::Certificate;
    use k8s_openapi::jiff::{SignedDuration, Timestamp};
    use rstest::rstest;

    fn names() -> Vec<String> {
        vec!["garage-operator-webhook.ns.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    #[test]
    fn a_certificate_comes_with_its_authority_and_its_key() {
        let certificate = Certificate::generate(&names(), Timestamp::now()).unwrap();
        assert!(certificate.authority.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(certificate.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(certificate.key.starts_with("-----BEGIN PRIVATE KEY-----"));
        assert_ne!(certificate.authority, certificate.certificate);
    }

    #[rstest]
    #[case(0, true)]
    #[case(270, true)]
    #[case(280, false)]
    #[case(400, false)]
    fn a_certificate_is_renewed_long_before_it_expires(#[case] days: i64, #[case] serves: bool) {
        let now = Timestamp::UNIX_EPOCH;
        let certificate = Certificate::generate(&names(), now).unwrap();
        let later = now + SignedDuration::from_hours(24 * days);
        assert_eq!(certificate.serves(&names(), later), serves);
    }

    #[test]
    fn a_certificate_for_other_names_does_not_serve() {
        let certificate = Certificate::generate(&names(), Timestamp::now()).unwrap();
        assert!(!certificate.serves(&names()[..1], Timestamp::now()));
    }
}
