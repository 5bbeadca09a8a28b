//! The Secret that all replicas take their certificate from.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use thiserror::Error;
use tracing::info;

use super::certificate::{Certificate, CertificateError};

/// Name of the Secret.
pub const SECRET: &str = "garage-operator-webhook";
/// Annotation: when the certificate expires.
const NOT_AFTER: &str = "garage.rajsingh.info/not-after";
/// Annotation: the names it is for.
const NAMES: &str = "garage.rajsingh.info/names";

/// The certificate could not be had.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The Kubernetes API refused.
    #[error("the Secret {SECRET} of the webhook could not be read or written")]
    Kube(#[source] Box<kube::Error>),
    /// The certificate could not be made.
    #[error("no certificate for the webhook")]
    Certificate(#[source] CertificateError),
}

impl From<kube::Error> for StoreError {
    fn from(error: kube::Error) -> Self {
        Self::Kube(Box::new(error))
    }
}

/// The certificate of the Secret if it serves these names for long enough, else a new one that is stored there.
///
/// Of two replicas that make one at once, one meets a conflict and takes the other's.
pub async fn obtain(client: &Client, namespace: &str, names: &[String]) -> Result<Certificate, StoreError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    loop {
        let found = secrets.get_opt(SECRET).await?;
        let stored = found.as_ref().and_then(read);
        if let Some(certificate) = stored.filter(|certificate| certificate.serves(names, Timestamp::now())) {
            return Ok(certificate);
        }
        let certificate = Certificate::generate(names, Timestamp::now()).map_err(StoreError::Certificate)?;
        let secret = secret(&certificate, found.and_then(|found| found.metadata.resource_version));
        let written = match secret.metadata.resource_version {
            Some(_) => secrets.replace(SECRET, &PostParams::default(), &secret).await,
            None => secrets.create(&PostParams::default(), &secret).await,
        };
        match written {
            Ok(_) => {
                info!(names = %certificate.names, not_after = %certificate.not_after, "made a certificate for the webhook");
                return Ok(certificate);
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn secret(certificate: &Certificate, resource_version: Option<String>) -> Secret {
    let entry = |key: &str, text: &str| (key.to_owned(), ByteString(text.as_bytes().to_vec()));
    Secret {
        metadata: ObjectMeta {
            name: Some(SECRET.to_owned()),
            resource_version,
            annotations: Some(BTreeMap::from([
                (NOT_AFTER.to_owned(), certificate.not_after.to_string()),
                (NAMES.to_owned(), certificate.names.clone()),
            ])),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(BTreeMap::from([
            entry("ca.crt", &certificate.authority),
            entry("tls.crt", &certificate.certificate),
            entry("tls.key", &certificate.key),
        ])),
        ..Secret::default()
    }
}

/// `None` for a Secret that is not one of ours, or damaged: it is then made anew.
fn read(secret: &Secret) -> Option<Certificate> {
    let (data, annotations) = (secret.data.as_ref()?, secret.metadata.annotations.as_ref()?);
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Certificate {
        authority: text("ca.crt")?,
        certificate: text("tls.crt")?,
        key: text("tls.key")?,
        not_after: annotations.get(NOT_AFTER)?.parse().ok()?,
        names: annotations.get(NAMES)?.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::{read, secret};
    use crate::webhook::certificate::Certificate;
    use k8s_openapi::jiff::Timestamp;

    #[test]
    fn a_certificate_survives_its_secret() {
        let certificate = Certificate::generate(&["x".to_owned()], Timestamp::now()).unwrap();
        assert!(read(&secret(&certificate, None)) == Some(certificate));
    }

    #[test]
    fn a_damaged_secret_is_no_certificate() {
        let certificate = Certificate::generate(&["x".to_owned()], Timestamp::now()).unwrap();
        let mut damaged = secret(&certificate, None);
        damaged.data.as_mut().unwrap().remove("tls.key");
        assert!(read(&damaged).is_none());
    }
}
