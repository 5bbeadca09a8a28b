//! Which `GarageNodes` belong to which cluster, from the watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::ResourceExt;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::api::v1beta1::GarageNode;
use crate::api::v1beta2::GarageCluster;

/// All `GarageNodes` of a scope as they are watched. The cache says which there are; what they are like is read anew.
#[derive(Clone)]
pub struct WatchedNodes {
    store: Store<GarageNode>,
    filled: Arc<AtomicBool>,
}

impl WatchedNodes {
    /// The nodes of this cache, which may still be filling.
    pub fn new(store: Store<GarageNode>) -> Self {
        Self { store, filled: Arc::default() }
    }

    /// Waits until the cache was filled once. Only one may wait: the cache wakes no other.
    pub async fn fill(&self) {
        if self.store.wait_until_ready().await.is_ok() {
            self.filled.store(true, Ordering::Release);
        }
    }

    /// The nodes of a cluster.
    pub fn of(&self, cluster: &GarageCluster) -> Vec<ObjectRef<GarageNode>> {
        let (namespace, name) = (cluster.namespace(), cluster.name_any());
        let own = self.store.state_filter(|node| is_of(node, namespace.as_ref(), &name));
        own.iter().map(|node| ObjectRef::from_obj(node.as_ref())).collect()
    }

    /// The names of the nodes of a cluster, where reading them one by one costs less than listing the namespace: so that
    /// many clusters in one namespace cost no more than in many. `None` while the cache is filling.
    pub fn sparse(&self, cluster: &GarageCluster) -> Option<Vec<String>> {
        if !self.filled.load(Ordering::Acquire) {
            return None;
        }
        let (namespace, name) = (cluster.namespace(), cluster.name_any());
        let all = self.store.state_filter(|node| node.namespace() == namespace);
        let own = all.iter().filter(|node| is_of(node, namespace.as_ref(), &name));
        let own: Vec<String> = own.map(|node| node.name_any()).collect();
        is_sparse(own.len(), all.len()).then_some(own)
    }
}

/// One list of a namespace costs about as much as reading every fourth of its objects alone.
fn is_sparse(own: usize, all: usize) -> bool {
    own * 4 < all
}

fn is_of(node: &GarageNode, namespace: Option<&String>, cluster: &str) -> bool {
    node.metadata.namespace.as_ref() == namespace && node.spec.cluster_ref.name == cluster
}

#[cfg(test)]
mod tests {
    use super::WatchedNodes;
    use crate::api::federation::ClusterRef;
    use crate::api::v1beta1::{GarageNode, GarageNodeSpec};
    use crate::api::v1beta2::{GarageCluster, GarageClusterSpec};
    use kube::runtime::reflector::store;
    use kube::runtime::watcher::Event;

    fn node(cluster: usize, ordinal: usize) -> GarageNode {
        let cluster_ref = ClusterRef { name: format!("c{cluster}") };
        let spec = GarageNodeSpec { cluster_ref, ..GarageNodeSpec::default() };
        let mut node = GarageNode::new(&format!("c{cluster}-storage-{ordinal}"), spec);
        node.metadata.namespace = Some("ns".into());
        node
    }

    fn cluster(name: &str) -> GarageCluster {
        let mut cluster = GarageCluster::new(name, GarageClusterSpec::default());
        cluster.metadata.namespace = Some("ns".into());
        cluster
    }

    async fn watched(clusters: usize) -> WatchedNodes {
        let (reader, mut writer) = store();
        writer.apply_watcher_event(&Event::Init);
        for number in 0..clusters {
            for ordinal in 0..3 {
                writer.apply_watcher_event(&Event::InitApply(node(number, ordinal)));
            }
        }
        writer.apply_watcher_event(&Event::InitDone);
        let nodes = WatchedNodes::new(reader);
        nodes.fill().await;
        nodes
    }

    #[tokio::test]
    async fn of_many_clusters_in_one_namespace_each_reads_only_its_own_nodes() {
        let nodes = watched(200).await;
        let mut names = nodes.sparse(&cluster("c7")).unwrap();
        names.sort();
        assert_eq!(names, ["c7-storage-0", "c7-storage-1", "c7-storage-2"]);
        assert_eq!(nodes.of(&cluster("c7")).len(), 3);
    }

    #[tokio::test]
    async fn a_cluster_alone_in_its_namespace_is_listed() {
        assert_eq!(watched(1).await.sparse(&cluster("c0")), None);
    }

    #[tokio::test]
    async fn a_cache_that_is_filling_is_not_asked() {
        let (reader, _writer) = store();
        assert_eq!(WatchedNodes::new(reader).sparse(&cluster("c0")), None);
    }
}
