//! The Secrets and ConfigMaps that a pod needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

/// A kind of object that holds keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A `Secret`.
    Secret,
    /// A `ConfigMap`.
    ConfigMap,
}

/// An object that a pod refers to, in the pod's own namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

/// What an object holds, by key.
pub type Content = BTreeMap<String, Vec<u8>>;

/// What the objects that a pod refers to hold; those that do not exist are not in it.
pub type Contents = BTreeMap<Reference, Content>;

/// Something that a pod needs and that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// An object.
    #[error("{0} not found")]
    Object(Reference),
    /// A key of an object.
    #[error("couldn't find key {key} in {object}")]
    Key {
        /// The object.
        object: Reference,
        /// The key.
        key: String,
    },
}

impl Reference {
    /// A Secret.
    pub fn secret(name: &str) -> Self {
        Self { kind: Kind::Secret, name: name.to_owned() }
    }

    /// A `ConfigMap`.
    pub fn config_map(name: &str) -> Self {
        Self { kind: Kind::ConfigMap, name: name.to_owned() }
    }
}

/// As a kubelet puts it: `secret "garage-rpc"`.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Secret => "secret",
            Kind::ConfigMap => "configmap",
        };
        write!(f, "{kind} {:?}", self.name)
    }
}

/// Every object that the first container or a volume of `pod` refers to, needed or not.
pub fn of(pod: &Pod) -> BTreeSet<Reference> {
    let Some(spec) = &pod.spec else { return BTreeSet::new() };
    let environment = spec.containers.first().map(of_environment).unwrap_or_default();
    let volumes = spec.volumes.iter().flatten().flat_map(of_volume);
    environment.into_iter().chain(volumes).collect()
}

fn of_environment(container: &Container) -> Vec<Reference> {
    let whole = container.env_from.iter().flatten().flat_map(|source| {
        let secret = source.secret_ref.as_ref().map(|object| Reference::secret(&object.name));
        let config_map = source.config_map_ref.as_ref().map(|object| Reference::config_map(&object.name));
        [secret, config_map].into_iter().flatten()
    });
    let single = container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref());
    let single = single.flat_map(|source| {
        let secret = source.secret_key_ref.as_ref().map(|key| Reference::secret(&key.name));
        let config_map = source.config_map_key_ref.as_ref().map(|key| Reference::config_map(&key.name));
        [secret, config_map].into_iter().flatten()
    });
    whole.chain(single).collect()
}

fn of_volume(volume: &Volume) -> Vec<Reference> {
    let secret = volume.secret.as_ref().and_then(|source| source.secret_name.as_deref());
    let config_map = volume.config_map.as_ref().map(|source| source.name.as_str());
    let projected = volume.projected.iter().flat_map(|source| source.sources.iter().flatten());
    let projected = projected.flat_map(|source| {
        let secret = source.secret.as_ref().map(|object| Reference::secret(&object.name));
        let config_map = source.config_map.as_ref().map(|object| Reference::config_map(&object.name));
        [secret, config_map].into_iter().flatten()
    });
    let plain = [secret.map(Reference::secret), config_map.map(Reference::config_map)];
    plain.into_iter().flatten().chain(projected).collect()
}
