//! What a state event about a layout holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of a `state` event whose subject is `layout`: something happened to the layout copy of
/// one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayoutState {
    /// Name of the node: `site/namespace/pod`.
    pub node: String,
    /// Garage's identity of that node, 64 lower-case hex digits.
    pub node_id: String,
    /// How often the node's layout began anew (0 at first; a wipe or purge adds one).
    pub incarnation: u64,
    /// What happened.
    pub event: LayoutEventName,
    /// The node's current version before; for an event about one version, that one.
    pub from: u64,
    /// The node's current version after; for an event about one version, that one.
    pub to: u64,
    /// Digest of the content that the node holds of version `to` since: roles with the times at which they were
    /// staged, parameters, assignment. The same content has the same digest on every node, so two digests of one
    /// number in one mesh are a divergence.
    pub content: String,
    /// For a conflict and a drop: the digest of the content that the node did not take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_content: Option<String>,
    /// Digest of the node's whole layout since, staging and trackers included: comparable with the `layoutDigest` of
    /// calls.
    pub layout_digest: String,
}

/// What happened to a node's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutEventName {
    /// A version that an apply on this node computed became current.
    Applied,
    /// Newer versions came from another node.
    Merged,
    /// The whole layout, staging included, was replaced by that of a node far ahead.
    Replaced,
    /// Another content of a version that this node has came from another node; its own stays.
    Conflict,
    /// A version that an apply on this node computed was dropped, although the apply is answered 200: another content
    /// of its number had come first.
    Dropped,
    /// A version stopped being live.
    Retired,
    /// What was staged was discarded on this node's request.
    Reverted,
    /// The layout began anew at version 0.
    Reset,
}
