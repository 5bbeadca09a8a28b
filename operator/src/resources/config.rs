//! `garage.toml`, in an immutable ConfigMap named by its content (operator contract §3.1, §3.3).

use std::collections::BTreeMap;
use std::fmt::Write;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use sha2::{Digest, Sha256};

use super::labels::meta;
use crate::api::network::WEB_PORT;
use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
use crate::decision::factor_migration::factor;

/// File name in the ConfigMap and below [`MOUNT`].
pub const FILE: &str = "garage.toml";
/// Where the ConfigMap is mounted.
pub const MOUNT: &str = "/etc/garage";

/// The text of `garage.toml` with this replication factor. Secrets reach Garage through its environment, never through this file.
pub fn garage_toml(spec: &GarageClusterSpec, factor: u32) -> String {
    let mut text = String::new();
    for line in [
        "metadata_dir = \"/data/metadata\"".to_owned(),
        "data_dir = \"/data/data\"".to_owned(),
        "db_engine = \"lmdb\"".to_owned(),
        format!("replication_factor = {factor}"),
        format!("consistency_mode = \"{}\"", spec.replication.consistency_mode.as_str()),
        format!("rpc_bind_addr = \"[::]:{}\"", spec.network.rpc_port()),
        "\n[s3_api]".to_owned(),
        format!("s3_region = {}", toml_text(spec.s3_api.region.as_deref().unwrap_or("garage"))),
        format!("api_bind_addr = \"[::]:{}\"", spec.s3_api.port()),
        "\n[s3_web]".to_owned(),
        format!("bind_addr = \"[::]:{WEB_PORT}\""),
        "root_domain = \".web.garage\"".to_owned(),
        "\n[admin]".to_owned(),
        format!("api_bind_addr = \"[::]:{}\"", spec.admin.port()),
    ] {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// A TOML basic string: the same escapes as JSON.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The name that the ConfigMap of this cluster has now.
pub fn name(cluster: &GarageCluster) -> String {
    let digest = Sha256::digest(garage_toml(&cluster.spec, factor(cluster)).as_bytes());
    let mut short = String::new();
    for byte in digest.iter().take(4) {
        // Writing to a String cannot fail.
        let _written = write!(short, "{byte:02x}");
    }
    format!("{}-config-{short}", cluster.name_any())
}

/// The ConfigMap of this cluster.
pub fn config_map(cluster: &GarageCluster) -> ConfigMap {
    ConfigMap {
        metadata: meta(cluster, name(cluster)),
        data: Some(BTreeMap::from([(FILE.to_owned(), garage_toml(&cluster.spec, factor(cluster)))])),
        immutable: Some(true),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{garage_toml, name};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};

    #[test]
    fn the_configuration_says_what_the_spec_says() {
        let mut spec = GarageClusterSpec::default();
        spec.s3_api.region = Some("a\"b".into());
        insta::assert_snapshot!(garage_toml(&spec, 2), @r#"
        metadata_dir = "/data/metadata"
        data_dir = "/data/data"
        db_engine = "lmdb"
        replication_factor = 2
        consistency_mode = "consistent"
        rpc_bind_addr = "[::]:3901"

        [s3_api]
        s3_region = "a\"b"
        api_bind_addr = "[::]:3900"

        [s3_web]
        bind_addr = "[::]:3902"
        root_domain = ".web.garage"

        [admin]
        api_bind_addr = "[::]:3903"
        "#);
    }

    #[test]
    fn another_configuration_has_another_name() {
        let mut cluster = GarageCluster::new("garage", GarageClusterSpec::default());
        let before = name(&cluster);
        cluster.spec.replication.factor = 2;
        assert_ne!(before, name(&cluster));
    }
}
