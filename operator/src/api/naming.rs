//! Labels, annotations, finalizers and object names (operator contract §3.1, §4.3, §4.4).

/// Label and annotation: the `GarageCluster` an object belongs to.
pub const CLUSTER_LABEL: &str = "garage.rajsingh.info/cluster";
/// Label: the `GarageNode` a pod runs.
pub const NODE_LABEL: &str = "garage.rajsingh.info/node";
/// Label: `storage` or `gateway`.
pub const TIER_LABEL: &str = "garage.rajsingh.info/tier";
/// Label: which storage Service selects the pod.
pub const STORAGE_GROUP_LABEL: &str = "garage.rajsingh.info/storage-group";
/// Label of everything this operator makes.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`] on workloads.
pub const MANAGED_BY: &str = "garage-operator";
/// Value of [`MANAGED_BY_LABEL`] on the `GarageNodes` of an Auto cluster.
pub const AUTO_NODE_MANAGED_BY: &str = "operator";

/// Annotation: revert the staged layout (value `true`).
pub const REVERT_LAYOUT: &str = "garage.rajsingh.info/revert-layout";
/// Annotation: its presence asks for `ClusterLayoutSkipDeadNodes`.
pub const SKIP_DEAD_NODES: &str = "garage.rajsingh.info/skip-dead-nodes";
/// Annotation: passes `allowMissingData` along with [`SKIP_DEAD_NODES`].
pub const ALLOW_MISSING_DATA: &str = "garage.rajsingh.info/allow-missing-data";
/// Annotation: `factor=N[,force]` asks for a factor migration.
pub const PURGE_CLUSTER_LAYOUT: &str = "garage.rajsingh.info/purge-cluster-layout";
/// Annotation: its presence stops a factor migration before anything is purged.
pub const PURGE_CLUSTER_LAYOUT_ABORT: &str = "garage.rajsingh.info/purge-cluster-layout-abort";
/// Annotation: its presence says that the evidence of a second writer was seen.
pub const ACKNOWLEDGE_FOREIGN_WRITER: &str = "garage.rajsingh.info/acknowledge-foreign-layout-writer";
/// Annotation: prepare a node or a cluster for its deletion (value `true`).
pub const DRAIN: &str = "garage.rajsingh.info/drain";

/// Annotation of a `GarageNode`: the identity that is lost and whose role may go.
pub const ACKNOWLEDGE_LOST_SOURCE: &str = "garage.rajsingh.info/acknowledge-lost-source";
/// Annotation of the Secret with the operator's admin token: the pods that accept it.
pub const OPERATOR_TOKEN_READY: &str = "garage.rajsingh.info/operator-admin-token-ready";

/// Finalizer of a `GarageCluster`.
pub const CLUSTER_FINALIZER: &str = "garagecluster.garage.rajsingh.info/finalizer";
/// Finalizer of a `GarageNode`.
pub const NODE_FINALIZER: &str = "garagenode.garage.rajsingh.info/finalizer";

/// Field manager of every server-side apply.
pub const FIELD_MANAGER: &str = "garage-operator";

/// The name of the storage node with this ordinal of an Auto cluster.
///
/// ```
/// assert_eq!(garage_operator::api::naming::storage_node("garage", 1), "garage-storage-1");
/// ```
pub fn storage_node(cluster: &str, ordinal: usize) -> String {
    format!("{cluster}-storage-{ordinal}")
}

/// The ordinal in the name of an Auto storage node; `None` for any other name.
///
/// ```
/// use garage_operator::api::naming::storage_ordinal;
/// assert_eq!(storage_ordinal("garage", "garage-storage-12"), Some(12));
/// assert_eq!(storage_ordinal("garage", "garage-gateway-0"), None);
/// ```
pub fn storage_ordinal(cluster: &str, node: &str) -> Option<usize> {
    node.strip_prefix(cluster)?.strip_prefix("-storage-")?.parse().ok()
}

/// The name of the gateway node with this ordinal of a gateway tier.
///
/// ```
/// assert_eq!(garage_operator::api::naming::gateway_node("garage", 0), "garage-gateway-0");
/// ```
pub fn gateway_node(cluster: &str, ordinal: usize) -> String {
    format!("{cluster}-gateway-{ordinal}")
}

/// The ordinal in the name of an Auto gateway node; `None` for any other name.
pub fn gateway_ordinal(cluster: &str, node: &str) -> Option<usize> {
    node.strip_prefix(cluster)?.strip_prefix("-gateway-")?.parse().ok()
}

/// The Service of the gateway tier of a cluster.
pub fn gateway_service(cluster: &str) -> String {
    format!("{cluster}-gateway")
}

/// The `PodDisruptionBudget` of the gateway tier of a cluster.
pub fn gateway_budget(cluster: &str) -> String {
    format!("{cluster}-gateway")
}

/// The headless Service that gives the pods of a cluster their names.
pub fn headless_service(cluster: &str) -> String {
    format!("{cluster}-headless")
}

/// The only pod of the StatefulSet of a node.
pub fn pod(node: &str) -> String {
    format!("{node}-0")
}

/// The Secret that the operator generates when no RPC secret is referenced.
pub fn generated_rpc_secret(cluster: &str) -> String {
    format!("{cluster}-rpc-secret")
}
