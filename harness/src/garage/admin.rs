//! What a person would see: the harness's own reads of a node's admin API.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::facts::{LAYOUT_SEEN, LayoutSeen, SeenRole};
use super::mesh::Mesh;
use crate::failure::{BoxError, Failure};
use crate::history::Recorder;
use crate::site::Site;

/// How long one read may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A node's layout, as far as scenarios look at it (Garage admin reference §6).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    /// Version; 0 before the first apply.
    pub version: u64,
    /// Roles, sorted by node.
    pub roles: Vec<LayoutRole>,
    /// Role changes that are staged.
    #[serde(default)]
    pub staged_role_changes: Vec<serde_json::Value>,
    /// The parameters in force.
    #[serde(default)]
    pub parameters: serde_json::Value,
}

/// A role in a layout.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LayoutRole {
    /// Node.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Bytes; none for a gateway.
    pub capacity: Option<u64>,
    /// Tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

impl Layout {
    /// Tells the history that the node at `address` holds this layout.
    pub fn record(&self, recorder: &Recorder, address: &str) {
        let role = |role: &LayoutRole| SeenRole {
            id: role.id.clone(),
            zone: role.zone.clone(),
            capacity: role.capacity,
        };
        let roles = self.roles.iter().map(role).collect();
        let seen = LayoutSeen { node: address.to_owned(), version: self.version, roles };
        recorder.state(LAYOUT_SEEN, json!(seen));
    }
}

/// Reads the layout that the node at `address` holds, with the harness's token.
pub async fn layout(site: Site, mesh: &Mesh, address: &str) -> Result<Layout, Failure> {
    read(mesh, address)
        .await
        .map_err(|error| Failure::harness(site, format!("read the layout of the node at {address}"), error))
}

/// What the node at `address` says of the nodes it knows, read with the harness's token.
pub async fn status(site: Site, mesh: &Mesh, address: &str) -> Result<serde_json::Value, Failure> {
    get(mesh, address, "GetClusterStatus")
        .await
        .map_err(|error| Failure::harness(site, format!("read the status of the node at {address}"), error))
}

/// Whether the node at `address` knows of no older layout version that is still draining, read with the harness's token.
pub async fn is_settled(site: Site, mesh: &Mesh, address: &str) -> Result<bool, Failure> {
    let history: serde_json::Value =
        get(mesh, address, "GetClusterLayoutHistory").await.map_err(|error| {
            Failure::harness(site, format!("read the layout history of the node at {address}"), error)
        })?;
    let mut versions = history["versions"].as_array().into_iter().flatten();
    Ok(versions.all(|version| version["status"] != "Draining"))
}

async fn read(mesh: &Mesh, address: &str) -> Result<Layout, reqwest::Error> {
    get(mesh, address, "GetClusterLayout").await
}

async fn get<T: serde::de::DeserializeOwned>(
    mesh: &Mesh,
    address: &str,
    path: &str,
) -> Result<T, reqwest::Error> {
    let http = mesh.http(LIMIT)?;
    let url = format!("http://{address}:3903/v2/{path}");
    http.get(url).bearer_auth(mesh.harness_token()).send().await?.error_for_status()?.json().await
}

/// The layout that a person sees at the node at `address`.
pub async fn seen_by_hand(mesh: &Mesh, address: &str) -> Result<Layout, BoxError> {
    let http = mesh.http(LIMIT)?;
    let url = format!("http://{address}:3903/v2/GetClusterLayout");
    let answer = http.get(url).bearer_auth(mesh.human_token()).send().await?;
    Ok(answer.error_for_status()?.json().await?)
}

/// A person calls the admin API of the node at `address`: `path` without its version, a JSON body. The answer is
/// returned; one that is no JSON as null.
pub async fn by_hand(
    mesh: &Mesh,
    address: &str,
    path: &str,
    body: &serde_json::Value,
) -> Result<serde_json::Value, BoxError> {
    let http = mesh.http(LIMIT)?;
    let url = format!("http://{address}:3903/v2/{path}");
    let answer = http.post(url).bearer_auth(mesh.human_token()).json(body).send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    if !status.is_success() {
        return Err(format!("answered {status}: {text}").into());
    }
    Ok(serde_json::from_str(&text).unwrap_or_default())
}
