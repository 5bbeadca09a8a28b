//! stub
use crate::site::Site;
use std::sync::Arc;
/// x
#[derive(Debug)]
pub struct Agent;
/// x
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct AgentError(#[from] crate::local::LocalError);
impl Agent {
    /// x
    pub async fn start(
        _: Site,
        _: kube::Client,
        _: Arc<crate::garage::runtime::GarageRuntime>,
    ) -> Result<Self, AgentError> {
        std::future::ready(()).await;
        Ok(Self)
    }
    /// x
    pub async fn stop(&self) {
        std::future::ready(()).await;
    }
}
