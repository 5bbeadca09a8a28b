//! `SliceQoSConfig`: a change makes those who use the profile take it up.

use kube::ResourceExt;
use kube::runtime::controller::Action;

use super::adoption::let_go;
use super::error::ReconcileError;
use super::pass::Pass;
use super::run::Reconciled;
use crate::api::controller::SliceQoSConfig;
use crate::api::kind::HubKind;
use crate::api::naming::QOS_LABEL;
use crate::api::worker::WorkerSliceConfig;

impl Reconciled for SliceQoSConfig {
    const KIND: HubKind = HubKind::SliceQoSConfig;

    async fn reconcile(&self, pass: &Pass) -> Result<Action, ReconcileError> {
        if self.metadata.deletion_timestamp.is_some() {
            return let_go(pass, HubKind::SliceQoSConfig, self).await;
        }
        let label = [(QOS_LABEL.to_owned(), self.name_any())].into();
        let reason = format!("{} {}", self.uid().unwrap_or_default(), self.metadata.generation.unwrap_or(0));
        for user in pass.list::<WorkerSliceConfig>(&self.namespace().unwrap_or_default(), &label).await? {
            pass.poke(&user, &reason).await?;
        }
        Ok(Action::await_change())
    }
}
