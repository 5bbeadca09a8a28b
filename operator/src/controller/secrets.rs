//! Tokens out of Secrets.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use thiserror::Error;

use super::error::ReconcileError;
use crate::api::secret::SecretKeyRef;
use crate::garage::Token;

/// A token that is not there; says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingToken {
    /// The spec names none.
    #[error("spec.admin.adminTokenSecretRef is not set, so the operator cannot call the admin API of Garage")]
    NoReference,
    /// The Secret does not exist.
    #[error("Secret {secret} does not exist; create it with the key {key}")]
    NoSecret {
        /// Name of the Secret.
        secret: String,
        /// Key that is looked for.
        key: String,
    },
    /// The Secret has no such key.
    #[error("Secret {secret} has no key {key}")]
    NoKey {
        /// Name of the Secret.
        secret: String,
        /// Key that is looked for.
        key: String,
    },
    /// The value is not a token.
    #[error("key {key} of Secret {secret} is empty or not text")]
    NoText {
        /// Name of the Secret.
        secret: String,
        /// Key that is looked for.
        key: String,
    },
    /// A dotted token can never be a configured one.
    #[error(
        "key {key} of Secret {secret} contains a dot: Garage takes it for a dynamic token; choose another one"
    )]
    Dotted {
        /// Name of the Secret.
        secret: String,
        /// Key that is looked for.
        key: String,
    },
}

/// Reads the token behind a reference.
pub async fn token(
    client: &Client,
    namespace: &str,
    reference: &SecretKeyRef,
    default_key: &str,
) -> Result<Result<Token, MissingToken>, ReconcileError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let name = &reference.name;
    let what = || format!("read Secret {namespace}/{name}");
    let found = secrets.get_opt(name).await.map_err(|error| ReconcileError::kube(what())(error))?;
    Ok(token_in(found.as_ref(), name, reference.key_or(default_key)))
}

fn token_in(secret: Option<&Secret>, name: &str, key: &str) -> Result<Token, MissingToken> {
    let (secret_name, key_name) = (name.to_owned(), key.to_owned());
    let Some(secret) = secret else {
        return Err(MissingToken::NoSecret { secret: secret_name, key: key_name });
    };
    let Some(bytes) = secret.data.as_ref().and_then(|data| data.get(key)) else {
        return Err(MissingToken::NoKey { secret: secret_name, key: key_name });
    };
    match std::str::from_utf8(&bytes.0).map(Token::new) {
        Ok(token) if token.is_dynamic() => Err(MissingToken::Dotted { secret: secret_name, key: key_name }),
        Ok(token) if !token.is_empty() => Ok(token),
        _ => Err(MissingToken::NoText { secret: secret_name, key: key_name }),
    }
}

#[cfg(test)]
mod tests {
    use super::token_in;
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;
    use rstest::rstest;
    use std::collections::BTreeMap;

    fn secret(key: &str, value: &[u8]) -> Secret {
        let data = BTreeMap::from([(key.to_owned(), ByteString(value.to_vec()))]);
        Secret { data: Some(data), ..Secret::default() }
    }

    #[test]
    fn a_token_is_read_without_its_final_newline() {
        let token = token_in(Some(&secret("k", b"abc\n")), "s", "k").unwrap();
        assert_eq!(token, crate::garage::Token::new("abc"));
    }

    #[rstest]
    #[case(None, "does not exist")]
    #[case(Some(secret("other", b"abc")), "has no key k")]
    #[case(Some(secret("k", b" \n")), "empty")]
    #[case(Some(secret("k", &[0xff])), "not text")]
    #[case(Some(secret("k", b"id.secret")), "contains a dot")]
    fn what_is_no_token_is_named_without_its_value(#[case] secret: Option<Secret>, #[case] says: &str) {
        let error = token_in(secret.as_ref(), "s", "k").unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("id.secret"), "{error}");
    }
}
