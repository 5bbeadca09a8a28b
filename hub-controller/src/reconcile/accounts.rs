//! Accounts of users and workers (hub contract, section 2, "Account helper"; design record, decision 6).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ObjectReference, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde_json::json;

use super::error::ReconcileError;
use super::pass::Pass;
use crate::api::access::Access;
use crate::api::naming::{ACCESS_ANNOTATION, TOKEN_ACCOUNT_ANNOTATION, TOKEN_SECRET_TYPE};
use crate::mutant::{self, Mutant};

/// An account that somebody is to have.
#[derive(Clone, Debug)]
pub struct Account {
    /// Project namespace.
    pub namespace: String,
    /// Name of the account, its RoleBinding and its token Secret.
    pub name: String,
    /// What it may do.
    pub access: Access,
    /// Labels of its owner.
    pub labels: BTreeMap<String, String>,
}

impl Account {
    fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            labels: Some(self.labels.clone()),
            annotations: Some([(ACCESS_ANNOTATION.to_owned(), self.access.annotation().to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    fn service_account(&self) -> ServiceAccount {
        let reference = ObjectReference { name: Some(self.name.clone()), ..ObjectReference::default() };
        ServiceAccount {
            metadata: self.metadata(),
            secrets: Some(vec![reference]),
            ..ServiceAccount::default()
        }
    }

    fn token(&self) -> Secret {
        let mut metadata = self.metadata();
        metadata
            .annotations
            .get_or_insert_default()
            .insert(TOKEN_ACCOUNT_ANNOTATION.to_owned(), self.name.clone());
        Secret { metadata, type_: Some(TOKEN_SECRET_TYPE.to_owned()), ..Secret::default() }
    }

    fn binding(&self) -> RoleBinding {
        RoleBinding {
            metadata: self.metadata(),
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "Role".to_owned(),
                name: self.access.role().to_owned(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name: self.name.clone(),
                namespace: Some(self.namespace.clone()),
                ..Subject::default()
            }]),
        }
    }
}

/// Makes what is missing of the account. The Secret is looked for whether or not the account is there: a mirror brings
/// the account, and a crash between the two would leave it without for ever.
pub async fn ensure(pass: &Pass, account: &Account) -> Result<(), ReconcileError> {
    let absent = pass.get::<ServiceAccount>(&account.namespace, &account.name).await?.is_none();
    if absent {
        pass.create(&account.service_account()).await?;
    }
    let looks = absent || !mutant::is(Mutant::SecretOnlyWithAccount);
    if looks && pass.get::<Secret>(&account.namespace, &account.name).await?.is_none() {
        pass.create(&account.token()).await?;
    }
    let wanted = account.binding();
    match pass.get::<RoleBinding>(&account.namespace, &account.name).await? {
        None => pass.create(&wanted).await.map(drop),
        Some(live) if live.role_ref != wanted.role_ref => {
            // What a RoleBinding refers to cannot be changed.
            pass.delete(&live).await?;
            pass.create(&wanted).await.map(drop)
        }
        Some(live) if live.subjects != wanted.subjects => {
            pass.merge(&live, &json!({"subjects": wanted.subjects})).await.map(drop)
        }
        Some(_) => Ok(()),
    }
}

/// Removes an account. Its Secret disappears through the token controller.
pub async fn remove(pass: &Pass, namespace: &str, name: &str) -> Result<(), ReconcileError> {
    pass.delete_named::<RoleBinding>(namespace, name).await?;
    pass.delete_named::<ServiceAccount>(namespace, name).await
}

/// Removes accounts of this owner and access that nobody is to have any more.
pub async fn remove_obsolete(
    pass: &Pass,
    namespace: &str,
    owner: &BTreeMap<String, String>,
    access: Access,
    wanted: &BTreeSet<String>,
) -> Result<(), ReconcileError> {
    for account in pass.list::<ServiceAccount>(namespace, owner).await? {
        let same =
            account.annotations().get(ACCESS_ANNOTATION).map(String::as_str) == Some(access.annotation());
        if same && !wanted.contains(&account.name_any()) {
            remove(pass, namespace, &account.name_any()).await?;
        }
    }
    Ok(())
}
