//! What is saved of a cell before it is taken down.

use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Service};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::objects;
use crate::failure::{BoxError, chain};
use crate::run::directory;
use crate::scenario::Scope;
use crate::site::Site;

/// How long saving may take for one site. A site that does not answer must not hold up the teardown.
const LIMIT: Duration = Duration::from_secs(10);

/// Saves the objects and Events of the cell in `scope` below its evidence folder, for both sites. Secrets are never among them.
///
/// Of a cell that passed only the operator's objects and the Events are kept. What could not be saved is told in a
/// file `missing.txt` in its place.
pub async fn save(scope: &Scope, passed: bool) {
    join_all(Site::ALL.map(|site| save_site(scope, site, passed))).await;
}

async fn save_site(scope: &Scope, site: Site, passed: bool) {
    let dir = scope.evidence.join("sites").join(site.name());
    let saving = async {
        let client = scope.client(site);
        let namespace = &scope.namespace;
        save_all::<DynamicObject>(&dir, "garageclusters", objects::clusters(client.clone(), namespace))
            .await?;
        save_all::<DynamicObject>(&dir, "garagenodes", objects::nodes(client.clone(), namespace)).await?;
        save_all::<Event>(&dir, "events", Api::namespaced(client.clone(), namespace)).await?;
        if !passed {
            save_all::<StatefulSet>(&dir, "statefulsets", Api::namespaced(client.clone(), namespace)).await?;
            save_all::<Pod>(&dir, "pods", Api::namespaced(client.clone(), namespace)).await?;
            save_all::<Service>(&dir, "services", Api::namespaced(client.clone(), namespace)).await?;
            save_all::<ConfigMap>(&dir, "configmaps", Api::namespaced(client, namespace)).await?;
        }
        Ok::<(), BoxError>(())
    };
    let missing = match tokio::time::timeout(LIMIT, saving).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => chain(error.as_ref()),
        Err(_elapsed) => {
            format!("the API server did not answer within {}", humantime::format_duration(LIMIT))
        }
    };
    tracing::warn!(%site, cell = scope.cell, "evidence is incomplete: {missing}");
    if let Err(error) = directory::write(&dir.join("missing.txt"), missing.as_bytes()) {
        tracing::warn!("{}", chain(&error));
    }
}

async fn save_all<K>(dir: &Path, plural: &str, api: Api<K>) -> Result<(), BoxError>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    for mut object in api.list(&ListParams::default()).await?.items {
        object.managed_fields_mut().clear();
        let text = serde_saphyr::to_string(&object)?;
        directory::write(&dir.join(plural).join(format!("{}.yaml", object.name_any())), text.as_bytes())?;
    }
    Ok(())
}
