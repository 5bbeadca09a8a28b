//! Names and labels of everything that a pair has outside of its folder.

use serde::{Deserialize, Serialize};

use crate::site::Site;

/// Label of containers and networks: the pair that they belong to.
pub const OWNER_LABEL: &str = "dev.onewriter.pair";

/// Label that the kind CLI gives to a node: its cluster.
pub const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";

/// The names of a pair, all made of an identifier that is never used twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    id: String,
}

impl Names {
    /// Names for a new pair.
    #[must_use]
    pub fn new() -> Self {
        Self { id: format!("{:08x}", rand::random::<u32>()) }
    }

    /// The identifier of the pair.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The network that all its containers are on.
    #[must_use]
    pub fn network(&self) -> String {
        format!("onewriter-{}", self.id)
    }

    /// The cluster of `site`.
    #[must_use]
    pub fn cluster(&self, site: Site) -> String {
        format!("onewriter-{}-{site}", self.id)
    }

    /// The container that is the node of `site`.
    #[must_use]
    pub fn node(&self, site: Site) -> String {
        format!("{}-control-plane", self.cluster(site))
    }

    /// The container of the hub, which is its name on the network.
    #[must_use]
    pub fn hub(&self) -> String {
        format!("onewriter-{}-hub", self.id)
    }

    /// The name of an image of this pair, without its tag.
    #[must_use]
    pub fn image(part: &str) -> String {
        format!("onewriter.local/{part}")
    }

    /// The name of an image of this pair.
    #[must_use]
    pub fn tagged(&self, part: &str) -> String {
        format!("{}:{}", Self::image(part), self.id)
    }

    /// `LABEL=ID`, as Docker takes and filters it.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{OWNER_LABEL}={}", self.id)
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_pair_holds_its_identifier() {
        let names = Names::new();
        let all = [
            names.network(),
            names.cluster(Site::East),
            names.node(Site::West),
            names.hub(),
            names.tagged("garage"),
            names.label(),
        ];
        assert!(all.iter().all(|name| name.contains(names.id())), "{all:?}");
        // The kind CLI refuses longer ones, and a container's name is a host name.
        assert!(all.iter().all(|name| name.len() <= 50), "{all:?}");
    }

    #[test]
    fn two_pairs_have_no_name_in_common() {
        assert_ne!(Names::new().cluster(Site::East), Names::new().cluster(Site::East));
    }
}
