//! The Services of a cluster (operator contract §3.1).

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::labels::{gateway_selector, meta, storage_selector};
use crate::api::naming;
use crate::api::network::WEB_PORT;
use crate::api::v1beta2::GarageCluster;

fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String(name.to_owned())),
        ..ServicePort::default()
    }
}

/// The Service through which S3 clients and the operator reach the cluster. It publishes pods that are not ready:
/// a node is only ready for S3 after the operator reached it.
pub fn api(cluster: &GarageCluster) -> Service {
    let spec = &cluster.spec;
    let name = cluster.name_any();
    Service {
        metadata: meta(cluster, name.clone()),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(storage_selector(&name)),
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![
                port("s3", spec.s3_api.port()),
                port("admin", spec.admin.port()),
                port("web", WEB_PORT),
            ]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The Service of the gateway tier. It publishes ready gateways only.
pub fn gateway(cluster: &GarageCluster) -> Service {
    let (spec, name) = (&cluster.spec, cluster.name_any());
    Service {
        metadata: meta(cluster, naming::gateway_service(&name)),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(gateway_selector(&name)),
            ports: Some(vec![port("s3", spec.s3_api.port()), port("web", WEB_PORT)]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The headless Service that names the pods for RPC.
pub fn headless(cluster: &GarageCluster) -> Service {
    let name = cluster.name_any();
    Service {
        metadata: meta(cluster, naming::headless_service(&name)),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(storage_selector(&name)),
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![port("rpc", cluster.spec.network.rpc_port())]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
