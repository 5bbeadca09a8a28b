//! `worker.kubeslice.io/v1alpha1`: what the hub makes for workers.

mod worker_service_import;
mod worker_slice_config;
mod worker_slice_gateway;

pub use worker_service_import::{WorkerServiceImport, WorkerServiceImportSpec, WorkerServiceImportStatus};
pub use worker_slice_config::{WorkerSliceConfig, WorkerSliceConfigSpec, WorkerSliceConfigStatus};
pub use worker_slice_gateway::{
    GatewayConfig, GatewayCredentials, GatewayHostType, WorkerSliceGateway, WorkerSliceGatewaySpec,
    WorkerSliceGatewayStatus,
};
