//! Keys and certificates of one site.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use jiff::{ToSpan as _, Zoned, civil::Date};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

use super::{
    error::LocalError,
    folder,
    identity::{LONGEST_USER, Subject},
};
use crate::site::Site;

/// A certificate with its private key, both PEM.
#[derive(Clone)]
pub struct Credential {
    /// The certificate.
    pub certificate: String,
    /// The private key (PKCS #8).
    pub key: String,
}

/// The authority of one site. Its key never leaves this process.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    valid: (Date, Date),
}

/// Files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Files of the key that signs ServiceAccount tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningFiles {
    /// The public key.
    pub public: PathBuf,
    /// The private key.
    pub private: PathBuf,
}

impl Authority {
    /// A new authority for `site`: valid from yesterday, for clocks differ, for a year.
    pub fn new(site: Site) -> Result<Self, LocalError> {
        let failed = certificates(site);
        let today = Zoned::now().date();
        let valid = (today.saturating_sub(1.day()), today.saturating_add(1.year()));
        let mut params = params(&format!("onewriter {site}"), &[], valid);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(&failed)?;
        let certificate = params.self_signed(&key).map_err(&failed)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key), valid })
    }

    /// The authority's certificate, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// For a server at `address`, which may also be a client of its own kind, as etcd's members are.
    pub fn server(&self, site: Site, name: &str, address: Ipv4Addr) -> Result<Credential, LocalError> {
        let mut params = params(name, &[], self.valid);
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(address))];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(site, params)
    }

    /// For a client.
    pub fn client(&self, site: Site, subject: &Subject) -> Result<Credential, LocalError> {
        if subject.user.len() > LONGEST_USER {
            return Err(LocalError::UserTooLong { user: subject.user.clone() });
        }
        let mut params = params(&subject.user, &subject.groups, self.valid);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(site, params)
    }

    fn issue(&self, site: Site, mut params: CertificateParams) -> Result<Credential, LocalError> {
        let failed = certificates(site);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(&failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(&failed)?.pem();
        Ok(Credential { certificate, key: key.serialize_pem() })
    }
}

impl Credential {
    /// Writes `NAME.crt` and `NAME.key`, for programs that take files.
    pub fn write(&self, folder: &Path, name: &str) -> Result<CredentialFiles, LocalError> {
        Ok(CredentialFiles {
            certificate: folder::write(folder.join(format!("{name}.crt")), &self.certificate)?,
            key: folder::write(folder.join(format!("{name}.key")), &self.key)?,
        })
    }
}

/// Makes and writes the key that signs ServiceAccount tokens.
pub fn signing_key(site: Site, folder: &Path) -> Result<SigningFiles, LocalError> {
    let key = KeyPair::generate().map_err(certificates(site))?;
    Ok(SigningFiles {
        public: folder::write(folder.join("service-accounts.pub"), &key.public_key_pem())?,
        private: folder::write(folder.join("service-accounts.key"), &key.serialize_pem())?,
    })
}

fn certificates(site: Site) -> impl Fn(rcgen::Error) -> LocalError {
    move |source| LocalError::Certificates { site, source }
}

fn params(user: &str, groups: &[String], valid: (Date, Date)) -> CertificateParams {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, user);
    for (kind, group) in [DnType::OrganizationName, second_organization()].into_iter().zip(groups) {
        name.push(kind, group.as_str());
    }
    let midnight = |date: Date| {
        rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.not_before = midnight(valid.0);
    params.not_after = midnight(valid.1);
    params
}

/// rcgen holds each kind of attribute once; an organization given by its number is a second kind to it, and the
/// same to everybody who reads the certificate.
fn second_organization() -> DnType {
    DnType::CustomDnType(vec![2, 5, 4, 10])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn subject(user: &str) -> Subject {
        Subject { user: user.to_owned(), groups: vec!["first".to_owned(), "second".to_owned()] }
    }

    #[test]
    fn keys_are_readable_by_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(Site::East).unwrap();
        let credential = authority.client(Site::East, &subject("somebody")).unwrap();
        let files = credential.write(folder.path(), "somebody").unwrap();
        let mode = files.key.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_user_that_no_certificate_can_name_is_refused() {
        let authority = Authority::new(Site::East).unwrap();
        let result = authority.client(Site::East, &subject(&"x".repeat(65)));
        assert!(matches!(result, Err(LocalError::UserTooLong { .. })));
    }

    #[test]
    fn both_groups_stand_in_the_name() {
        let params =
            params("somebody", &subject("").groups, (Date::constant(2026, 1, 1), Date::constant(2027, 1, 1)));
        assert_eq!(params.distinguished_name.iter().count(), 3);
    }
}
