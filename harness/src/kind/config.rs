//! The clusters' configurations, as the kind CLI takes them.

use std::path::Path;

use serde_json::{Map, Value};

use super::node_image::Flavour;
use crate::failure::BoxError;
use crate::site::Site;

/// The cluster of each site, whatever its node image.
const EAST: &str = include_str!("../../../kind-configs/east.yaml");
const WEST: &str = include_str!("../../../kind-configs/west.yaml");
/// What the image that is built here needs on top.
const BUILT: &str = include_str!("../../../kind-configs/node-image/cluster.yaml");
/// What the API servers record.
pub const AUDIT_POLICY: &str = include_str!("../local/audit-policy.yaml");

/// The networks of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Networks {
    /// Addresses of pods.
    pub pods: String,
    /// Addresses of Services.
    pub services: String,
}

impl Networks {
    /// Address of the cluster's DNS, the tenth of the Services' (kubeadm).
    #[must_use]
    pub fn dns(&self) -> String {
        let network = self.services.split('/').next().unwrap_or_default();
        network.rsplit_once('.').map_or_else(String::new, |(prefix, _)| format!("{prefix}.10"))
    }

    /// Assignments for a shell: what a node is told.
    #[must_use]
    pub fn assignments(&self) -> String {
        format!("POD_SUBNET={}\nSERVICE_SUBNET={}\n", self.pods, self.services)
    }
}

/// The networks that the configuration of `site` gives it.
pub fn networks(site: Site) -> Result<Networks, BoxError> {
    let config: Value = serde_saphyr::from_str(text(site))?;
    let network =
        |name: &str| config["networking"][name].as_str().map(str::to_owned).ok_or_else(|| missing(name));
    Ok(Networks { pods: network("podSubnet")?, services: network("serviceSubnet")? })
}

/// The configuration of the cluster of `site`: `node` is the folder that its node sees, `audit` the one of its audit log.
pub fn cluster(site: Site, flavour: Flavour, node: &Path, audit: &Path) -> Result<String, BoxError> {
    let mut config: Value = serde_saphyr::from_str(text(site))?;
    if flavour == Flavour::Built {
        add(&mut config, serde_saphyr::from_str(BUILT)?);
    }
    replace(&mut config, "@NODE@", &node.display().to_string());
    replace(&mut config, "@AUDIT@", &audit.display().to_string());
    // JSON is YAML, too.
    Ok(serde_json::to_string_pretty(&config)?)
}

fn text(site: Site) -> &'static str {
    match site {
        Site::East => EAST,
        Site::West => WEST,
    }
}

fn missing(name: &str) -> BoxError {
    format!("the cluster's configuration has no networking.{name}").into()
}

/// Adds `more` to `config`: objects are merged, lists joined.
fn add(config: &mut Value, more: Value) {
    match (config, more) {
        (Value::Object(fields), Value::Object(more)) => add_fields(fields, more),
        (Value::Array(items), Value::Array(more)) => items.extend(more),
        (config, more) => *config = more,
    }
}

fn add_fields(fields: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match fields.get_mut(&key) {
            Some(known) => add(known, value),
            None => {
                fields.insert(key, value);
            }
        }
    }
}

fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => *text = text.replace(from, to),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, from, to)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, from, to)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sites_have_no_address_in_common() {
        let (east, west) = (networks(Site::East).unwrap(), networks(Site::West).unwrap());
        assert_ne!(east.pods, west.pods);
        assert_ne!(east.services, west.services);
        assert_eq!((east.dns().as_str(), west.dns().as_str()), ("10.96.0.10", "10.97.0.10"));
    }

    #[test]
    fn apart_from_their_networks_the_sites_are_alike() {
        let without = |text: &str| {
            let mut config: Value = serde_saphyr::from_str(text).unwrap();
            config.as_object_mut().unwrap().remove("networking").unwrap();
            config
        };
        assert_eq!(without(EAST), without(WEST));
    }

    #[test]
    fn an_image_of_ones_own_adds_to_the_configuration_and_takes_nothing_away() {
        let config = cluster(Site::West, Flavour::Built, Path::new("/n"), Path::new("/a")).unwrap();
        let config: Value = serde_json::from_str(&config).unwrap();
        assert_eq!(config["networking"]["podSubnet"], "10.245.0.0/16");
        assert_eq!(config["networking"]["disableDefaultCNI"], true);
        assert_eq!(config["kubeadmConfigPatches"].as_array().unwrap().len(), 2);
        assert_eq!(config["nodes"][0]["extraMounts"][0]["hostPath"], "/n");
        assert_eq!(config["nodes"][0]["extraMounts"][1]["hostPath"], "/a");
    }

    #[test]
    fn the_published_image_keeps_kinds_own_network() {
        let config = cluster(Site::East, Flavour::Published, Path::new("/n"), Path::new("/a")).unwrap();
        assert!(!config.contains("disableDefaultCNI") && !config.contains('@'), "{config}");
    }
}
