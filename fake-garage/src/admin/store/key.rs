//! Access keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::error::ApiError;
use super::bucket::{Buckets, KeyBucketBody};
use super::expiration::{self, Moment, is_over};
use super::{Circumstances, Selector, page, written};

/// Access keys by identity.
#[derive(Debug, Default)]
pub struct Keys {
    present: BTreeMap<String, Key>,
    /// Identities that may never be used again.
    deleted: BTreeSet<String>,
}

struct Key {
    secret: String,
    created: Timestamp,
    name: String,
    expiration: Option<Timestamp>,
    create_bucket: bool,
}

impl fmt::Debug for Key {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What a key may do beside its buckets.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyPermissions {
    #[serde(default)]
    create_bucket: bool,
}

/// A key as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyBody {
    access_key_id: String,
    created: String,
    name: String,
    expiration: Option<String>,
    expired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_access_key: Option<String>,
    permissions: KeyPermissions,
    buckets: Vec<KeyBucketBody>,
}

/// A key in `ListKeys`.
#[derive(Debug, Serialize)]
pub struct KeySummary {
    id: String,
    name: String,
    created: String,
    expiration: Option<String>,
    expired: bool,
}

/// Body of `CreateKey` and `UpdateKey`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRequest {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    expiration: Option<Moment>,
    #[serde(default)]
    never_expires: bool,
    #[serde(default)]
    allow: Option<KeyPermissions>,
    #[serde(default)]
    deny: Option<KeyPermissions>,
}

/// Body of `ImportKey`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportKeyRequest {
    access_key_id: String,
    secret_access_key: String,
    #[serde(default)]
    name: Option<String>,
}

impl fmt::Debug for ImportKeyRequest {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.access_key_id)
    }
}

fn missing(id: &str) -> ApiError {
    ApiError::new(404, "NoSuchAccessKey", format!("Access key not found: {id}"))
}

impl KeyRequest {
    fn apply(self, key: &mut Key) -> Result<(), ApiError> {
        if let Some(expiration) = expiration::change(self.expiration, self.never_expires)? {
            key.expiration = expiration;
        }
        if let Some(name) = self.name {
            key.name = name;
        }
        key.create_bucket |= self.allow.is_some_and(|allow| allow.create_bucket);
        key.create_bucket &= !self.deny.is_some_and(|deny| deny.create_bucket);
        Ok(())
    }
}

impl Keys {
    /// Makes a key.
    pub fn create(&mut self, request: KeyRequest, at: Circumstances) -> Result<KeyBody, ApiError> {
        let id = format!("GK{}", hex::encode(&at.random[..12]));
        let mut key = Key {
            // Half of it fresh, half of it the same bytes again in another order: nobody signs with it.
            secret: hex::encode(at.random.iter().rev().copied().collect::<Vec<_>>()),
            created: at.now,
            name: "Unnamed key".to_owned(),
            expiration: None,
            create_bucket: false,
        };
        request.apply(&mut key)?;
        self.present.insert(id.clone(), key);
        self.body(&id, true, &Buckets::default(), at.now)
    }

    /// Takes over a key that was made elsewhere.
    pub fn import(&mut self, request: ImportKeyRequest, now: Timestamp) -> Result<KeyBody, ApiError> {
        let ImportKeyRequest { access_key_id: id, secret_access_key: secret, name } = request;
        let is_hex = |text: &str, bytes: usize| hex::decode(text).is_ok_and(|decoded| decoded.len() == bytes);
        if !id.strip_prefix("GK").is_some_and(|digits| is_hex(digits, 12)) {
            return Err(ApiError::bad_request(
                "The specified key ID is not a valid Garage key ID (starts with `GK`, followed by 12 hex-encoded bytes)",
            ));
        }
        if !is_hex(&secret, 32) {
            return Err(ApiError::bad_request(
                "The specified secret key is not a valid Garage secret key (composed of 32 hex-encoded bytes)",
            ));
        }
        if self.present.contains_key(&id) || self.deleted.contains(&id) {
            return Err(ApiError::new(
                409,
                "KeyAlreadyExists",
                format!(
                    "Key {id} already exists in data store. Even if it is deleted, we can't let you create a new key \
                     with the same ID. Sorry."
                ),
            ));
        }
        let name = name.unwrap_or_else(|| "Imported key".to_owned());
        let key = Key { secret, created: now, name, expiration: None, create_bucket: false };
        self.present.insert(id.clone(), key);
        self.body(&id, false, &Buckets::default(), now)
    }

    /// Changes a key.
    pub fn update(
        &mut self,
        id: &str,
        request: KeyRequest,
        buckets: &Buckets,
        now: Timestamp,
    ) -> Result<KeyBody, ApiError> {
        request.apply(self.present.get_mut(id).ok_or_else(|| missing(id))?)?;
        self.body(id, false, buckets, now)
    }

    /// Deletes a key.
    pub fn delete(&mut self, id: &str) -> Result<(), ApiError> {
        self.present.remove(id).ok_or_else(|| missing(id))?;
        self.deleted.insert(id.to_owned());
        Ok(())
    }

    /// One key.
    pub fn get(
        &self,
        id: Option<&str>,
        search: Option<&str>,
        with_secret: bool,
        buckets: &Buckets,
        now: Timestamp,
    ) -> Result<KeyBody, ApiError> {
        match Selector::of(id, search)? {
            Selector::Id(id) => self.body(id, with_secret, buckets, now),
            Selector::Search(pattern) => {
                let matching: Vec<_> = self
                    .present
                    .iter()
                    .filter(|(id, key)| id.starts_with(pattern) || key.name == pattern)
                    .collect();
                match matching.as_slice() {
                    [(id, _)] => self.body(id, with_secret, buckets, now),
                    _ => Err(missing(pattern)),
                }
            }
        }
    }

    /// The key's name, if there is such a key.
    pub fn name(&self, id: &str) -> Result<&str, ApiError> {
        self.present.get(id).map(|key| key.name.as_str()).ok_or_else(|| missing(id))
    }

    /// All keys, by identity.
    #[must_use]
    pub fn list(&self, offset: Option<&str>, limit: Option<usize>, now: Timestamp) -> Vec<KeySummary> {
        let summary = |(id, key): (&String, &Key)| {
            let summary = KeySummary {
                id: id.clone(),
                name: key.name.clone(),
                created: written(key.created),
                expiration: key.expiration.map(|moment| moment.to_string()),
                expired: is_over(key.expiration, now),
            };
            (id.clone(), summary)
        };
        page(self.present.iter().map(summary).collect(), offset, limit)
    }

    /// All keys in full, by identity.
    pub fn list_info(
        &self,
        offset: Option<&str>,
        limit: Option<usize>,
        buckets: &Buckets,
        now: Timestamp,
    ) -> Result<Vec<KeyBody>, ApiError> {
        let body = |id: &String| Ok((id.clone(), self.body(id, false, buckets, now)?));
        Ok(page(self.present.keys().map(body).collect::<Result<_, ApiError>>()?, offset, limit))
    }

    fn body(
        &self,
        id: &str,
        with_secret: bool,
        buckets: &Buckets,
        now: Timestamp,
    ) -> Result<KeyBody, ApiError> {
        let key = self.present.get(id).ok_or_else(|| missing(id))?;
        Ok(KeyBody {
            access_key_id: id.to_owned(),
            created: written(key.created),
            name: key.name.clone(),
            expiration: key.expiration.map(|moment| moment.to_string()),
            expired: is_over(key.expiration, now),
            secret_access_key: with_secret.then(|| key.secret.clone()),
            permissions: KeyPermissions { create_bucket: key.create_bucket },
            buckets: buckets.of_key(id),
        })
    }
}
