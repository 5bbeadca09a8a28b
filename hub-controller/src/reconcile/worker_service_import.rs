//! `WorkerServiceImport`: an offered service as one cluster of the slice sees it.

use kube::ResourceExt;
use kube::runtime::controller::Action;

use super::error::ReconcileError;
use super::pass::Pass;
use super::run::Reconciled;
use super::service_export_config::{ensure_imports, service_labels};
use super::worker_slice_config::delete;
use crate::api::controller::{ServiceExportConfig, ServiceExportConfigSpec, SliceConfig};
use crate::api::kind::HubKind;
use crate::api::naming;
use crate::api::worker::WorkerServiceImport;

impl Reconciled for WorkerServiceImport {
    const KIND: HubKind = HubKind::WorkerServiceImport;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        let namespace = self.namespace().unwrap_or_default();
        let cluster = self.labels().get(naming::WORKER_CLUSTER_LABEL).cloned().unwrap_or_default();
        let slice = pass.get::<SliceConfig>(&namespace, &self.spec.slice_name).await?;
        let slice = slice.filter(|slice| {
            slice.metadata.deletion_timestamp.is_none() && slice.spec.clusters.contains(&cluster)
        });
        let service = service_labels(&ServiceExportConfigSpec {
            service_name: self.spec.service_name.clone(),
            service_namespace: self.spec.service_namespace.clone(),
            slice_name: self.spec.slice_name.clone(),
            ..ServiceExportConfigSpec::default()
        });
        let mut exports = pass.list::<ServiceExportConfig>(&namespace, &service).await?;
        exports.retain(|export| export.metadata.deletion_timestamp.is_none());
        if self.metadata.deletion_timestamp.is_some() {
            let wanted_by = slice.filter(|_| !exports.is_empty());
            return delete(self, pass, HubKind::WorkerServiceImport, wanted_by.as_ref()).await;
        }
        if let Some(slice) = slice {
            ensure_imports(pass, &slice, &exports).await?;
        }
        Ok(Action::await_change())
    }
}
