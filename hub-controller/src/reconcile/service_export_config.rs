//! `ServiceExportConfig`: an offered service becomes an import in every cluster of the slice.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::runtime::controller::Action;
use serde_json::json;

use super::adoption::let_go;
use super::error::ReconcileError;
use super::pass::Pass;
use super::run::Reconciled;
use crate::api::controller::{ServiceExportConfig, ServiceExportConfigSpec, SliceConfig};
use crate::api::kind::HubKind;
use crate::api::naming::{self, owned_by};
use crate::api::worker::{WorkerServiceImport, WorkerServiceImportSpec};

impl Reconciled for ServiceExportConfig {
    const KIND: HubKind = HubKind::ServiceExportConfig;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        let namespace = self.namespace().unwrap_or_default();
        let labels = service_labels(&self.spec);
        let deleting = self.metadata.deletion_timestamp.is_some();
        if !deleting && labels.iter().any(|(key, value)| self.labels().get(key) != Some(value)) {
            pass.merge(self, &json!({"metadata": {"labels": labels}})).await?;
        }
        let mut exports = pass.list::<Self>(&namespace, &labels).await?;
        exports.retain(|export| export.metadata.deletion_timestamp.is_none() && export.uid() != self.uid());
        if !deleting {
            exports.push(self.clone());
        }
        match pass.get::<SliceConfig>(&namespace, &self.spec.slice_name).await? {
            Some(slice) if !exports.is_empty() => ensure_imports(pass, &slice, &exports).await?,
            _ if deleting && exports.is_empty() => {
                for import in pass.list::<WorkerServiceImport>(&namespace, &labels).await? {
                    pass.delete(&import).await?;
                }
            }
            _ => {}
        }
        if deleting {
            let_go(pass, HubKind::ServiceExportConfig, self).await
        } else {
            Ok(Action::await_change())
        }
    }
}

/// Labels by which exports and imports of one service find each other.
pub(super) fn service_labels(spec: &ServiceExportConfigSpec) -> BTreeMap<String, String> {
    [
        (naming::SERVICE_NAME_LABEL, &spec.service_name),
        (naming::SERVICE_NAMESPACE_LABEL, &spec.service_namespace),
        (naming::SLICE_LABEL, &spec.slice_name),
    ]
    .map(|(key, value)| (key.to_owned(), value.clone()))
    .into()
}

/// One import per service and cluster of the slice, of all exports together.
pub(super) async fn ensure_imports(
    pass: &Pass,
    slice: &SliceConfig,
    exports: &[ServiceExportConfig],
) -> Result<(), ReconcileError> {
    let mut services: BTreeMap<BTreeMap<String, String>, Vec<&ServiceExportConfig>> = BTreeMap::new();
    for export in exports.iter().filter(|export| export.metadata.deletion_timestamp.is_none()) {
        services.entry(service_labels(&export.spec)).or_default().push(export);
    }
    let namespace = slice.namespace().unwrap_or_default();
    for (labels, exports) in services {
        for import in pass.list::<WorkerServiceImport>(&namespace, &labels).await? {
            let cluster = import.labels().get(naming::WORKER_CLUSTER_LABEL).cloned().unwrap_or_default();
            if !slice.spec.clusters.contains(&cluster) {
                pass.delete(&import).await?;
            }
        }
        for cluster in &slice.spec.clusters {
            ensure_import(pass, &wanted(slice, cluster, &labels, &exports)).await?;
        }
    }
    Ok(())
}

/// What the exports of one service want in this cluster.
pub(super) fn wanted(
    slice: &SliceConfig,
    cluster: &str,
    labels: &BTreeMap<String, String>,
    exports: &[&ServiceExportConfig],
) -> WorkerServiceImport {
    let mut sources: Vec<String> = exports.iter().map(|export| export.spec.source_cluster.clone()).collect();
    sources.sort();
    sources.dedup();
    let mut aliases: Vec<String> = exports.iter().flat_map(|export| export.spec.aliases.clone()).collect();
    aliases.sort();
    aliases.dedup();
    let mut sorted = exports.to_vec();
    sorted.sort_by_key(|export| export.name_any());
    let spec = WorkerServiceImportSpec {
        service_name: labels[naming::SERVICE_NAME_LABEL].clone(),
        service_namespace: labels[naming::SERVICE_NAMESPACE_LABEL].clone(),
        slice_name: slice.name_any(),
        source_clusters: sources,
        service_discovery_endpoints: sorted
            .iter()
            .flat_map(|export| export.spec.service_discovery_endpoints.clone())
            .collect(),
        service_discovery_ports: sorted
            .first()
            .map(|export| export.spec.service_discovery_ports.clone())
            .unwrap_or_default(),
        aliases,
    };
    let slice_name = slice.name_any();
    let name =
        naming::worker_service_import(&spec.service_name, &spec.service_namespace, &slice_name, cluster);
    let mut import = WorkerServiceImport::new(&name, spec);
    let mut all = owned_by("SliceConfig", &slice_name);
    all.extend(labels.clone());
    all.insert(naming::WORKER_CLUSTER_LABEL.to_owned(), cluster.to_owned());
    import.metadata.namespace = slice.namespace();
    import.metadata.labels = Some(all);
    import
}

async fn ensure_import(pass: &Pass, wanted: &WorkerServiceImport) -> Result<(), ReconcileError> {
    let namespace = wanted.namespace().unwrap_or_default();
    match pass.get::<WorkerServiceImport>(&namespace, &wanted.name_any()).await? {
        None => pass.create(wanted).await.map(drop),
        Some(live) if live.spec == wanted.spec => Ok(()),
        Some(live) => pass
            .merge(&live, &json!({"metadata": {"labels": wanted.labels()}, "spec": wanted.spec}))
            .await
            .map(drop),
    }
}
