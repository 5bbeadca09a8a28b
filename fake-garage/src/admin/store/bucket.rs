//! Buckets, their aliases and who may use them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::super::error::ApiError;
use super::bucket_body::{AliasEnum, BucketKeyBody, LocalAlias, Quotas, WebsiteConfig};
pub use super::bucket_body::{
    AliasRequest, BucketBody, BucketPermissions, BucketSummary, CreateBucketRequest, KeyBucketBody,
    PermissionRequest, UpdateBucketRequest,
};
use super::key::Keys;
use super::{Circumstances, bucket_name, page, written};

/// Buckets by identity.
#[derive(Debug, Default)]
pub struct Buckets(BTreeMap<String, Bucket>);

#[derive(Debug, Default)]
struct Bucket {
    created: Timestamp,
    aliases: BTreeSet<String>,
    website: Option<WebsiteConfig>,
    cors_rules: Option<Value>,
    lifecycle_rules: Option<Value>,
    quotas: Quotas,
    permissions: BTreeMap<String, BucketPermissions>,
    /// Names that keys have for the bucket.
    local_aliases: BTreeSet<(String, String)>,
}

fn missing(name: &str) -> ApiError {
    ApiError::new(404, "NoSuchBucket", format!("Bucket not found: {name}"))
}

fn check_name(name: &str) -> Result<(), ApiError> {
    if bucket_name::is_valid(name) {
        return Ok(());
    }
    Err(ApiError::bad_request(format_args!(
        "{name}: Invalid bucket name. See AWS documentation for constraints on S3 bucket names:\n\
         https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html"
    )))
}

fn check_id(id: &str) -> Result<(), ApiError> {
    match hex::decode(id) {
        Ok(bytes) if bytes.len() == 32 => Ok(()),
        Ok(_) => Err(ApiError::bad_request("Invalid bucket id")),
        Err(error) => Err(ApiError::bad_request(format_args!("Invalid bucket id: {error}"))),
    }
}

impl CreateBucketRequest {
    /// Checks what needs no table.
    pub fn check(&self) -> Result<(), ApiError> {
        self.global_alias.as_deref().map_or(Ok(()), check_name)
    }
}

impl Buckets {
    /// Makes a bucket.
    pub fn create(
        &mut self,
        request: CreateBucketRequest,
        keys: &Keys,
        at: Circumstances,
    ) -> Result<BucketBody, ApiError> {
        let exists = || ApiError::new(409, "BucketAlreadyExists", "Bucket already exists");
        let mut bucket = Bucket { created: at.now, ..Bucket::default() };
        if let Some(alias) = request.global_alias {
            if self.by_alias(&alias).is_some() {
                return Err(exists());
            }
            bucket.aliases.insert(alias);
        }
        if let Some(local) = request.local_alias {
            keys.name(&local.access_key_id)?;
            check_name(&local.alias)?;
            let alias = (local.access_key_id.clone(), local.alias);
            if self.0.values().any(|bucket| bucket.local_aliases.contains(&alias)) {
                return Err(exists());
            }
            bucket.permissions.insert(local.access_key_id, local.allow);
            bucket.local_aliases.insert(alias);
        }
        let id = hex::encode(at.random);
        self.0.insert(id.clone(), bucket);
        self.body(&id, keys)
    }

    /// Changes a bucket.
    pub fn update(
        &mut self,
        id: &str,
        request: UpdateBucketRequest,
        keys: &Keys,
    ) -> Result<BucketBody, ApiError> {
        let bucket = self.get_mut(id)?;
        if let Some(website) = request.website_access {
            bucket.website = website.config()?;
        }
        bucket.quotas = request.quotas.unwrap_or(bucket.quotas);
        bucket.cors_rules = request.cors_rules.or_else(|| bucket.cors_rules.take());
        bucket.lifecycle_rules = request.lifecycle_rules.or_else(|| bucket.lifecycle_rules.take());
        self.body(id, keys)
    }

    /// Deletes a bucket.
    pub fn delete(&mut self, id: &str) -> Result<(), ApiError> {
        check_id(id)?;
        self.0.remove(id).map(|_| ()).ok_or_else(|| missing(id))
    }

    /// One bucket, by exactly one of its identity, an alias and a pattern.
    pub fn get(
        &self,
        id: Option<&str>,
        alias: Option<&str>,
        search: Option<&str>,
        keys: &Keys,
    ) -> Result<BucketBody, ApiError> {
        match (id, alias, search) {
            (Some(id), None, None) => self.body(id, keys),
            (None, Some(alias), None) => self.body(self.by_alias(alias).ok_or_else(|| missing(alias))?, keys),
            (None, None, Some(pattern)) => {
                let found: Vec<_> = self
                    .0
                    .iter()
                    .filter(|(id, bucket)| id.starts_with(pattern) || bucket.aliases.contains(pattern))
                    .collect();
                match found.as_slice() {
                    [(id, _)] => self.body(id, keys),
                    _ => Err(missing(pattern)),
                }
            }
            _ => Err(ApiError::bad_request(
                "Either id, globalAlias or search must be provided (but not several of them)",
            )),
        }
    }

    /// Gives a key permissions, or with `allow` false takes them.
    pub fn permit(
        &mut self,
        request: &PermissionRequest,
        allow: bool,
        keys: &Keys,
    ) -> Result<BucketBody, ApiError> {
        check_id(&request.bucket_id)?;
        let bucket = self.get_mut(&request.bucket_id)?;
        keys.name(&request.access_key_id)?;
        let held = bucket.permissions.entry(request.access_key_id.clone()).or_default();
        let change = |held: bool, named: bool| if named { allow } else { held };
        let named = request.permissions;
        *held = BucketPermissions {
            read: change(held.read, named.read),
            write: change(held.write, named.write),
            owner: change(held.owner, named.owner),
        };
        self.body(&request.bucket_id, keys)
    }

    /// Adds an alias.
    pub fn add_alias(&mut self, request: AliasRequest, keys: &Keys) -> Result<BucketBody, ApiError> {
        let id = request.bucket_id;
        check_id(&id)?;
        self.get_mut(&id)?;
        match request.alias {
            AliasEnum::Global { global_alias } => {
                check_name(&global_alias)?;
                if let Some(other) = self.by_alias(&global_alias).filter(|other| *other != id) {
                    return Err(taken(&global_alias, other));
                }
                self.get_mut(&id)?.aliases.insert(global_alias);
            }
            AliasEnum::Local { local_alias, access_key_id } => {
                keys.name(&access_key_id)?;
                check_name(&local_alias)?;
                let alias = (access_key_id, local_alias);
                let other = self
                    .0
                    .iter()
                    .find(|(other, bucket)| **other != id && bucket.local_aliases.contains(&alias));
                if let Some((other, _)) = other {
                    return Err(taken(&alias.1, other));
                }
                self.get_mut(&id)?.local_aliases.insert(alias);
            }
        }
        self.body(&id, keys)
    }

    /// Removes an alias; the last one stays.
    pub fn remove_alias(&mut self, request: AliasRequest, keys: &Keys) -> Result<BucketBody, ApiError> {
        let id = request.bucket_id;
        check_id(&id)?;
        let bucket = self.get_mut(&id)?;
        let present = match &request.alias {
            AliasEnum::Global { global_alias } => bucket.aliases.contains(global_alias),
            AliasEnum::Local { local_alias, access_key_id } => {
                bucket.local_aliases.contains(&(access_key_id.clone(), local_alias.clone()))
            }
        };
        if !present {
            return Err(ApiError::bad_request("The bucket does not have that alias"));
        }
        if bucket.aliases.len() + bucket.local_aliases.len() == 1 {
            return Err(ApiError::bad_request(format_args!(
                "Bucket {id} doesn't have other aliases, please delete it instead of just unaliasing."
            )));
        }
        match request.alias {
            AliasEnum::Global { global_alias } => bucket.aliases.remove(&global_alias),
            AliasEnum::Local { local_alias, access_key_id } => {
                bucket.local_aliases.remove(&(access_key_id, local_alias))
            }
        };
        self.body(&id, keys)
    }

    /// Takes everything a key had in any bucket.
    pub fn forget_key(&mut self, key: &str) {
        for bucket in self.0.values_mut() {
            bucket.permissions.remove(key);
            bucket.local_aliases.retain(|(owner, _)| owner != key);
        }
    }

    /// Checks that the bucket exists.
    pub fn check(&self, id: &str) -> Result<(), ApiError> {
        check_id(id)?;
        self.0.get(id).map(|_| ()).ok_or_else(|| missing(id))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether `domain` is the name of a bucket that is a website.
    #[must_use]
    pub fn is_website(&self, domain: &str) -> bool {
        self.by_alias(domain).and_then(|id| self.0.get(id)).is_some_and(|bucket| bucket.website.is_some())
    }

    /// All buckets, by identity.
    #[must_use]
    pub fn list(&self, offset: Option<&str>, limit: Option<usize>) -> Vec<BucketSummary> {
        let summary = |(id, bucket): (&String, &Bucket)| {
            let local = bucket.local_aliases.iter().cloned();
            let summary = BucketSummary {
                id: id.clone(),
                created: written(bucket.created),
                global_aliases: bucket.aliases.iter().cloned().collect(),
                local_aliases: local
                    .map(|(access_key_id, alias)| LocalAlias { access_key_id, alias })
                    .collect(),
            };
            (id.clone(), summary)
        };
        page(self.0.iter().map(summary).collect(), offset, limit)
    }

    /// All buckets in full, by identity.
    pub fn list_info(
        &self,
        offset: Option<&str>,
        limit: Option<usize>,
        keys: &Keys,
    ) -> Result<Vec<BucketBody>, ApiError> {
        let body = |id: &String| Ok((id.clone(), self.body(id, keys)?));
        Ok(page(self.0.keys().map(body).collect::<Result<_, ApiError>>()?, offset, limit))
    }

    /// The buckets that a key can use or has a name for.
    #[must_use]
    pub fn of_key(&self, key: &str) -> Vec<KeyBucketBody> {
        let used = self.0.iter().filter(|(_, bucket)| bucket.users().contains(key));
        let body = |(id, bucket): (&String, &Bucket)| KeyBucketBody {
            id: id.clone(),
            global_aliases: bucket.aliases.iter().cloned().collect(),
            local_aliases: bucket.names_of(key),
            permissions: bucket.permissions.get(key).copied().unwrap_or_default(),
        };
        used.map(body).collect()
    }

    fn by_alias(&self, alias: &str) -> Option<&str> {
        self.0.iter().find(|(_, bucket)| bucket.aliases.contains(alias)).map(|(id, _)| id.as_str())
    }

    fn get_mut(&mut self, id: &str) -> Result<&mut Bucket, ApiError> {
        self.0.get_mut(id).ok_or_else(|| missing(id))
    }

    fn body(&self, id: &str, keys: &Keys) -> Result<BucketBody, ApiError> {
        check_id(id)?;
        let bucket = self.0.get(id).ok_or_else(|| missing(id))?;
        let key = |key: &str| BucketKeyBody {
            access_key_id: key.to_owned(),
            name: keys.name(key).unwrap_or_default().to_owned(),
            permissions: bucket.permissions.get(key).copied().unwrap_or_default(),
            bucket_local_aliases: bucket.names_of(key),
        };
        Ok(BucketBody {
            id: id.to_owned(),
            created: written(bucket.created),
            global_aliases: bucket.aliases.iter().cloned().collect(),
            website_access: bucket.website.is_some(),
            website_config: bucket.website.clone(),
            cors_rules: bucket.cors_rules.clone(),
            lifecycle_rules: bucket.lifecycle_rules.clone(),
            keys: bucket.users().into_iter().map(key).collect(),
            objects: 0,
            bytes: 0,
            unfinished_uploads: 0,
            unfinished_multipart_uploads: 0,
            unfinished_multipart_upload_parts: 0,
            unfinished_multipart_upload_bytes: 0,
            quotas: bucket.quotas,
        })
    }
}

fn taken(alias: &str, other: &str) -> ApiError {
    let short = &other[..16];
    ApiError::bad_request(format_args!(
        "Alias {alias} already exists and points to different bucket: {short}"
    ))
}

impl Bucket {
    fn users(&self) -> BTreeSet<&str> {
        let permitted = self.permissions.iter().filter(|(_, held)| **held != BucketPermissions::default());
        let named = self.local_aliases.iter().map(|(key, _)| key.as_str());
        permitted.map(|(key, _)| key.as_str()).chain(named).collect()
    }

    fn names_of(&self, key: &str) -> Vec<String> {
        self.local_aliases.iter().filter(|(owner, _)| owner == key).map(|(_, alias)| alias.clone()).collect()
    }
}
