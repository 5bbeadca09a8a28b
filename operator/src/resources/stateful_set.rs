//! The StatefulSet of one node (operator contract §3.1, §3.2).

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource,
    ObjectFieldSelector, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodSpec, PodTemplateSpec, Probe,
    SecretKeySelector, TCPSocketAction, Volume as PodVolume, VolumeMount, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::config;
use super::labels::{node_selector, of_pod, owner};
use crate::api::naming;
use crate::api::network::WEB_PORT;
use crate::api::secret::{ADMIN_TOKEN_KEY, RPC_SECRET_KEY};
use crate::api::storage::{Volume, VolumeKind};
use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;

/// Names that the operator sets itself; a user cannot.
const RESERVED_ENV: [&str; 5] = [
    "GARAGE_RPC_SECRET",
    "GARAGE_ADMIN_TOKEN",
    "GARAGE_METRICS_TOKEN",
    "GARAGE_CONFIG_FILE",
    "GARAGE_LAYOUT_PURGE",
];

/// The init container of a factor migration, and the variable that names its purge to a Garage without files.
const PURGE_CONTAINER: &str = "purge-cluster-layout";
const PURGE_VARIABLE: &str = "GARAGE_LAYOUT_PURGE";
/// Where Garage keeps its metadata.
const METADATA: &str = "/data/metadata";
/// The volumes of a node with their mount points.
const VOLUMES: [(&str, &str); 2] = [("metadata", METADATA), ("data", "/data/data")];

/// What the specs leave open.
#[derive(Clone, Copy, Debug)]
pub struct Defaults<'a> {
    /// Garage image where no spec names one.
    pub image: &'a str,
    /// Image whose entry point understands `purge-layout`; that of the node when empty.
    pub purge_image: &'a str,
    /// The node stops although its spec does not say so.
    pub stopped: bool,
}

/// The StatefulSet of `node`.
pub fn stateful_set(cluster: &GarageCluster, node: &GarageNode, defaults: Defaults<'_>) -> StatefulSet {
    let name = node.name_any();
    let suspended = node.spec.maintenance.as_ref().is_some_and(|maintenance| maintenance.suspended);
    let stopped = suspended || defaults.stopped;
    let labels = of_pod(&cluster.name_any(), node);
    StatefulSet {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: node.namespace(),
            labels: Some(labels.clone()),
            owner_references: owner(node),
            ..ObjectMeta::default()
        },
        spec: Some(StatefulSetSpec {
            replicas: Some(i32::from(!stopped)),
            service_name: Some(naming::headless_service(&cluster.name_any())),
            pod_management_policy: Some("Parallel".to_owned()),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("OnDelete".to_owned()),
                ..StatefulSetUpdateStrategy::default()
            }),
            selector: LabelSelector { match_labels: Some(node_selector(&name)), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod_spec(cluster, node, defaults)),
            },
            volume_claim_templates: claims(cluster, node),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

fn pod_spec(cluster: &GarageCluster, node: &GarageNode, defaults: Defaults<'_>) -> PodSpec {
    let mut volumes = vec![PodVolume {
        name: "config".to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: config::name(cluster),
            ..ConfigMapVolumeSource::default()
        }),
        ..PodVolume::default()
    }];
    volumes.extend(VOLUMES.iter().filter(|(name, _)| !is_claim(&volume(cluster, node, name))).map(
        |(name, _)| PodVolume {
            name: (*name).to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                size_limit: volume(cluster, node, name).size.map(|size| Quantity(size.as_str().to_owned())),
                ..EmptyDirVolumeSource::default()
            }),
            ..PodVolume::default()
        },
    ));
    let garage = container(cluster, node, defaults.image);
    PodSpec {
        init_containers: purge(cluster).map(|purge| vec![purging(&garage, purge, defaults.purge_image)]),
        containers: vec![garage],
        volumes: Some(volumes),
        automount_service_account_token: Some(false),
        ..PodSpec::default()
    }
}

fn container(cluster: &GarageCluster, node: &GarageNode, default_image: &str) -> Container {
    let spec = &cluster.spec;
    let image = node.spec.image.as_deref().or(spec.image.as_deref()).unwrap_or(default_image);
    let port = |name: &str, number: u16| ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    Container {
        name: "garage".to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(vec!["/garage".to_owned(), "server".to_owned()]),
        env: Some(environment(cluster, node)),
        ports: Some(vec![
            port("rpc", spec.network.rpc_port()),
            port("s3", spec.s3_api.port()),
            port("admin", spec.admin.port()),
            port("web", WEB_PORT),
        ]),
        readiness_probe: node.spec.gateway.then(serves_s3),
        resources: spec.storage.as_ref().and_then(|tier| tier.resources.clone()),
        volume_mounts: Some(mounts()),
        ..Container::default()
    }
}

/// A gateway is ready once it takes S3 connections (operator contract §3.2).
fn serves_s3() -> Probe {
    Probe {
        tcp_socket: Some(TCPSocketAction { port: IntOrString::String("s3".to_owned()), host: None }),
        initial_delay_seconds: Some(2),
        period_seconds: Some(5),
        ..Probe::default()
    }
}

/// The purge of the layout file that the pods of this cluster carry out once.
fn purge(cluster: &GarageCluster) -> Option<&str> {
    cluster.status.as_ref()?.factor_migration.as_ref()?.purge.as_deref()
}

/// Removes the layout file before Garage starts, once for each name (operator contract §5.9). Its image is the
/// operator's, or one that the node itself runs: none is foreign. The entry point of either understands the command.
fn purging(garage: &Container, purge: &str, image: &str) -> Container {
    Container {
        name: PURGE_CONTAINER.to_owned(),
        image: if image.is_empty() { garage.image.clone() } else { Some(image.to_owned()) },
        image_pull_policy: garage.image_pull_policy.clone(),
        args: Some(vec![
            "purge-layout".to_owned(),
            format!("--metadata-dir={METADATA}"),
            format!("--once={purge}"),
        ]),
        volume_mounts: garage.volume_mounts.clone(),
        ..Container::default()
    }
}

fn mounts() -> Vec<VolumeMount> {
    let mount = |name: &str, path: &str, read_only: bool| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    };
    let mut mounts = vec![mount("config", config::MOUNT, true)];
    mounts.extend(VOLUMES.iter().map(|(name, path)| mount(name, path, false)));
    mounts
}

fn environment(cluster: &GarageCluster, node: &GarageNode) -> Vec<EnvVar> {
    let name = cluster.name_any();
    let mut environment = vec![EnvVar {
        name: "GARAGE_NODE_HOST".to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: "status.podIP".to_owned(),
                api_version: Some("v1".to_owned()),
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }];
    environment.extend(user_environment(cluster, node));
    let connect = cluster.spec.connect_to.as_ref().and_then(|connect| connect.rpc_secret_ref.as_ref());
    let (rpc_secret, rpc_key) = match cluster.spec.network.rpc_secret_ref.as_ref().or(connect) {
        Some(reference) => (reference.name.clone(), reference.key_or(RPC_SECRET_KEY).to_owned()),
        None => (naming::generated_rpc_secret(&name), RPC_SECRET_KEY.to_owned()),
    };
    environment.push(from_secret("GARAGE_RPC_SECRET", rpc_secret, rpc_key));
    if let Some(reference) = &cluster.spec.admin.admin_token_secret_ref {
        let key = reference.key_or(ADMIN_TOKEN_KEY).to_owned();
        environment.push(from_secret("GARAGE_ADMIN_TOKEN", reference.name.clone(), key));
    }
    if let Some(purge) = purge(cluster) {
        environment.push(EnvVar {
            name: PURGE_VARIABLE.to_owned(),
            value: Some(purge.to_owned()),
            ..EnvVar::default()
        });
    }
    environment.push(EnvVar {
        name: "GARAGE_CONFIG_FILE".to_owned(),
        value: Some(format!("{}/{}", config::MOUNT, config::FILE)),
        ..EnvVar::default()
    });
    environment
}

/// The user's variables: those of the node win over those of the cluster, reserved names are left out.
fn user_environment(cluster: &GarageCluster, node: &GarageNode) -> Vec<EnvVar> {
    let tier = match (&cluster.spec.storage, &cluster.spec.gateway) {
        (_, Some(gateway)) if node.spec.gateway => gateway.env.as_slice(),
        (Some(storage), _) => storage.env.as_slice(),
        _ => &[],
    };
    let merged: BTreeMap<&str, &EnvVar> =
        tier.iter().chain(&node.spec.env).map(|variable| (variable.name.as_str(), variable)).collect();
    merged
        .into_iter()
        .filter(|(name, _)| !RESERVED_ENV.contains(name))
        .map(|(_, variable)| variable.clone())
        .collect()
}

fn from_secret(variable: &str, secret: String, key: String) -> EnvVar {
    EnvVar {
        name: variable.to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector { name: secret, key, optional: None }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn volume(cluster: &GarageCluster, node: &GarageNode, name: &str) -> Volume {
    let own = node.spec.storage.as_ref().and_then(|storage| match name {
        "metadata" => storage.metadata.clone(),
        _ => storage.data.clone(),
    });
    let inherited = || {
        cluster.spec.storage.as_ref().and_then(|tier| match name {
            "metadata" => tier.metadata.clone(),
            _ => tier.data.clone(),
        })
    };
    own.or_else(inherited).unwrap_or(Volume { kind: VolumeKind::EmptyDir, ..Volume::default() })
}

fn is_claim(volume: &Volume) -> bool {
    volume.kind == VolumeKind::PersistentVolumeClaim
}

fn claims(cluster: &GarageCluster, node: &GarageNode) -> Option<Vec<PersistentVolumeClaim>> {
    let claims: Vec<PersistentVolumeClaim> = VOLUMES
        .iter()
        .map(|(name, _)| (name, volume(cluster, node, name)))
        .filter(|(_, volume)| is_claim(volume))
        .map(|(name, volume)| claim(name, &volume))
        .collect();
    (!claims.is_empty()).then_some(claims)
}

fn claim(name: &str, volume: &Volume) -> PersistentVolumeClaim {
    let size = volume.size.as_ref().map_or("10Gi", |size| size.as_str());
    PersistentVolumeClaim {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: volume.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(size.to_owned()))])),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Defaults, stateful_set};
    use crate::api::observed::FactorMigrationStatus;
    use crate::api::secret::SecretKeyRef;
    use crate::api::storage::{StorageTier, Volume, VolumeKind};
    use crate::api::v1beta1::{GarageNode, GarageNodeSpec};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use k8s_openapi::api::core::v1::EnvVar;
    use rstest::rstest;

    fn cluster() -> GarageCluster {
        let volume = Some(Volume { kind: VolumeKind::EmptyDir, ..Volume::default() });
        let env = |name: &str| EnvVar { name: name.into(), value: Some("x".into()), ..EnvVar::default() };
        let mut spec = GarageClusterSpec {
            storage: Some(StorageTier {
                replicas: 2,
                metadata: volume.clone(),
                data: volume,
                env: vec![env("FAKE_SITE"), env("GARAGE_RPC_SECRET")],
                ..StorageTier::default()
            }),
            ..GarageClusterSpec::default()
        };
        spec.network.rpc_secret_ref = Some(SecretKeyRef { name: "garage-rpc".into(), key: None });
        spec.admin.admin_token_secret_ref = Some(SecretKeyRef { name: "garage-admin".into(), key: None });
        let mut cluster = GarageCluster::new("garage", spec);
        cluster.metadata.namespace = Some("ns".into());
        cluster
    }

    #[test]
    fn the_workload_of_a_node_is_as_the_contract_says() {
        let mut node = GarageNode::new("garage-0", GarageNodeSpec::default());
        node.metadata.namespace = Some("ns".into());
        insta::assert_json_snapshot!(stateful_set(&cluster(), &node, DEFAULTS));
    }

    const DEFAULTS: Defaults<'_> = Defaults { image: "garage:test", purge_image: "", stopped: false };

    #[rstest]
    #[case("", "garage:test")]
    #[case("operator:test", "operator:test")]
    fn a_recorded_purge_is_in_the_workload(#[case] purge_image: &str, #[case] image: &str) {
        let mut cluster = cluster();
        let migration =
            FactorMigrationStatus { purge: Some("factor-2-7".into()), ..FactorMigrationStatus::default() };
        cluster.status.get_or_insert_default().factor_migration = Some(migration);
        let node = GarageNode::new("garage-0", GarageNodeSpec::default());
        let set = stateful_set(&cluster, &node, Defaults { purge_image, ..DEFAULTS });
        let pod = set.spec.unwrap().template.spec.unwrap();
        let purge = &pod.init_containers.unwrap()[0];
        assert_eq!((purge.name.as_str(), purge.image.as_deref()), ("purge-cluster-layout", Some(image)));
        let args = ["purge-layout", "--metadata-dir=/data/metadata", "--once=factor-2-7"];
        assert_eq!(purge.args.as_ref().unwrap(), &args);
        let env = pod.containers[0].env.clone().unwrap();
        assert!(env.iter().any(|variable| variable.value.as_deref() == Some("factor-2-7")));
    }

    #[test]
    fn a_stopped_node_has_no_pod() {
        let node = GarageNode::new("garage-0", GarageNodeSpec::default());
        let set = stateful_set(&cluster(), &node, Defaults { stopped: true, ..DEFAULTS });
        assert_eq!(set.spec.unwrap().replicas, Some(0));
    }
}
