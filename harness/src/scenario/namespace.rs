//! The namespace of a cell, on both sites.

use std::time::Duration;

use futures::future::try_join;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use super::Scope;
use crate::failure::Failure;
use crate::site::Site;
use crate::wait;

/// Label that every namespace of a cell carries: the cell's path, with `/` as `.`.
pub const CELL_LABEL: &str = "onewriter.dev/cell";

/// Creates the namespace of `scope` on both sites. One that exists is an error: it is somebody else's.
pub async fn create(scope: &Scope) -> Result<(), Failure> {
    try_join(create_at(scope, Site::East), create_at(scope, Site::West)).await.map(drop)
}

async fn create_at(scope: &Scope, site: Site) -> Result<(), Failure> {
    let labels = [(CELL_LABEL.to_owned(), scope.cell.replace('/', "."))].into();
    let metadata =
        ObjectMeta { name: Some(scope.namespace.clone()), labels: Some(labels), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let created = api(scope.client(site)).create(&PostParams::default(), &namespace).await;
    let step = || format!("create the namespace {}", scope.namespace);
    created.map(drop).map_err(|error| Failure::harness(site, step(), error))
}

/// Removes the namespace of `scope` on both sites and waits until both are gone.
pub async fn remove(scope: &Scope, limit: Duration) -> Result<(), Failure> {
    try_join(remove_at(scope, Site::East, limit), remove_at(scope, Site::West, limit)).await.map(drop)
}

async fn remove_at(scope: &Scope, site: Site, limit: Duration) -> Result<(), Failure> {
    let api = api(scope.client(site));
    match api.delete(&scope.namespace, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => {
            let step = format!("delete the namespace {}", scope.namespace);
            return Err(Failure::harness(site, step, error));
        }
        Ok(_) => {}
    }
    wait::until_gone(site, api, &scope.namespace, &format!("namespace {}", scope.namespace), limit).await?;
    Ok(())
}

fn api(client: Client) -> Api<Namespace> {
    Api::all(client)
}
