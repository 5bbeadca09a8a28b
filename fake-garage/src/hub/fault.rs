//! Faults on purpose.

use serde::Deserialize;
use serde_json::json;

use super::journal::fault_event;
use super::registry::{ControlError, Place, Registry};
use crate::mesh::{Cut, Loss, NodeIndex};

/// Body of `POST /faults`.
#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultRequest {
    /// Ends a process as SIGKILL does.
    Kill {
        /// The node, `site/namespace/pod`.
        node: String,
    },
    /// Ends a process as SIGKILL does and starts it anew.
    Restart {
        /// The node, `site/namespace/pod`.
        node: String,
        /// What it loses meanwhile.
        #[serde(default)]
        lose: LossName,
    },
    /// Stops a process in its tracks.
    Freeze {
        /// The node, `site/namespace/pod`.
        node: String,
    },
    /// Lets a frozen process go on.
    Resume {
        /// The node, `site/namespace/pod`.
        node: String,
    },
    /// Takes all metadata from a node and starts it anew under another identity.
    Wipe {
        /// The node, `site/namespace/pod`.
        node: String,
    },
    /// Takes the layout file from every node of a mesh, all of them being down at that moment.
    Purge {
        /// The mesh.
        mesh: String,
    },
    /// Separates two groups: sites or nodes.
    Partition {
        /// The mesh.
        mesh: String,
        /// The groups; an entry is a site or a node.
        between: [Vec<String>; 2],
        /// How.
        kind: CutName,
    },
    /// Mends all partitions of a mesh.
    Heal {
        /// The mesh.
        mesh: String,
    },
}

/// What a node loses.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// Nothing.
    #[default]
    Nothing,
    /// The file that holds the layout.
    LayoutFile,
    /// Everything.
    AllMetadata,
}

impl From<LossName> for Loss {
    fn from(name: LossName) -> Self {
        match name {
            LossName::Nothing => Self::Nothing,
            LossName::LayoutFile => Self::LayoutFile,
            LossName::AllMetadata => Self::AllMetadata,
        }
    }
}

/// How nodes are separated.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutName {
    /// Packets vanish.
    Silent,
    /// Connections are refused and torn.
    Reset,
}

impl From<CutName> for Cut {
    fn from(name: CutName) -> Self {
        match name {
            CutName::Silent => Self::Silent,
            CutName::Reset => Self::Reset,
        }
    }
}

/// Does what is asked for, and records it.
pub async fn inject(registry: &Registry, fault: FaultRequest) -> Result<(), ControlError> {
    match fault {
        FaultRequest::Kill { node } => {
            on_node(registry, &node, "kill", |place| place.actor.alter(|mesh| mesh.kill(place.node)))?;
            let place = registry.node(&node)?;
            place.actor.port_closed(place.node).await;
            Ok(())
        }
        FaultRequest::Freeze { node } => on_node(registry, &node, "freeze", |place| {
            place.actor.alter(|mesh| mesh.freeze(place.node));
        }),
        FaultRequest::Resume { node } => on_node(registry, &node, "resume", |place| {
            place.actor.alter(|mesh| mesh.resume(place.node));
        }),
        FaultRequest::Restart { node, lose } => restart(registry, &node, "restart", lose.into()).await,
        FaultRequest::Wipe { node } => restart(registry, &node, "wipe", Loss::AllMetadata).await,
        FaultRequest::Purge { mesh } => purge(registry, &mesh).await,
        FaultRequest::Partition { mesh, between, kind } => partition(registry, &mesh, &between, kind),
        FaultRequest::Heal { mesh } => {
            let actor = registry.mesh(&mesh)?;
            registry.shared().recorder.record(fault_event(&mesh, "heal", &mesh, None));
            actor.alter(crate::mesh::Mesh::heal);
            Ok(())
        }
    }
}

fn on_node(
    registry: &Registry,
    name: &str,
    action: &str,
    act: impl FnOnce(&Place),
) -> Result<(), ControlError> {
    let place = registry.node(name)?;
    registry.shared().recorder.record(fault_event(&place.actor.name, action, name, None));
    act(&place);
    Ok(())
}

async fn restart(registry: &Registry, name: &str, action: &str, loss: Loss) -> Result<(), ControlError> {
    on_node(registry, name, action, |_| {})?;
    registry.restart_node(name, loss).await
}

async fn purge(registry: &Registry, mesh: &str) -> Result<(), ControlError> {
    let actor = registry.mesh(mesh)?;
    registry.shared().recorder.record(fault_event(mesh, "purge", mesh, None));
    let nodes: Vec<_> = actor.read(|cluster| {
        let nodes = cluster.mesh().nodes();
        nodes.map(|(index, node)| (index, node.config().name.clone(), node.is_running())).collect()
    });
    actor.alter(|mesh| {
        for (node, _, _) in &nodes {
            mesh.kill(*node);
            mesh.lose_files(*node, Loss::LayoutFile);
        }
    });
    for (_, name, _) in nodes.iter().filter(|(_, _, ran)| *ran) {
        registry.restart_node(name, Loss::Nothing).await?;
    }
    Ok(())
}

fn partition(
    registry: &Registry,
    mesh: &str,
    between: &[Vec<String>; 2],
    kind: CutName,
) -> Result<(), ControlError> {
    let actor = registry.mesh(mesh)?;
    let [one, other] = between.each_ref().map(|names| {
        actor.read(|cluster| {
            let nodes = cluster.mesh().nodes();
            let meant = nodes.filter(|(_, node)| {
                names.contains(&node.config().site) || names.contains(&node.config().name)
            });
            meant.map(|(index, _)| index).collect::<Vec<NodeIndex>>()
        })
    });
    if one.is_empty() || other.is_empty() {
        let text =
            format!("a side of the partition of `{mesh}` has no node; name sites or nodes of that mesh");
        return Err(ControlError::Invalid(text));
    }
    let detail = json!({"between": between, "kind": format!("{kind:?}").to_ascii_lowercase()});
    registry.shared().recorder.record(fault_event(mesh, "partition", mesh, Some(detail)));
    actor.alter(|mesh| mesh.partition(&one, &other, kind.into()));
    Ok(())
}
