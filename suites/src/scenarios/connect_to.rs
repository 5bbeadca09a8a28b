//! Nodes that reach a layout through somebody else's cluster.
//!
//! Stimulus: a gateway node of a cluster without storage that connects to the site's cluster. Ends on: its role in the
//! owner's layout, if the owner may write; else on the node without a role. A cluster that names the admin API by URL is
//! the record's documented gap: nobody can see who owns that layout.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use serde_json::{Value, json};

use crate::fixture::cluster::Cluster;
use crate::fixture::{self, secret};
use crate::world::{EAST, WEST, World};

const NAME: &str = "connect_to";
const GATEWAY: &str = "edge-0";
/// Handles in a row: the last one's owner is the site's cluster.
const HANDLES: [&str; 2] = ["handle-0", "handle-1"];

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 6,
        about: "whoever acts on another cluster's layout may write it only if its owner may",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "node-writer").with(EAST, "Writer").claims(
            "a node of a connected cluster gets its role in the layout of an owner that writes",
            &["enforce-owner"],
        ),
        Cell::subject(NAME, "node-follower").with(EAST, "Follower").with(WEST, "Writer").claims(
            "a node of a connected cluster whose owner is a Follower writes nothing",
            &["enforce-owner", "test-connect-to"],
        ),
        Cell::subject(NAME, "chain-follower").with(EAST, "Follower").with(WEST, "Writer").claims(
            "the owner is found along a chain of connected clusters",
            &["enforce-owner", "test-connect-to"],
        ),
        Cell::subject(NAME, "url-follower")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .expects("follower-never-writes")
            .expects("one-writer-per-term")
            .claims(
                "a cluster that reaches a follower's layout by URL writes it: the documented gap",
                &["compat-edge-gateway"],
            ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let nodes = world.settled(&Cluster::auto(world.role(EAST), 1), 0).await?;
        let peer = world.address(EAST, &nodes[0]).await?;
        let by_url = cell.name.starts_with("url");
        let chain = if cell.name.starts_with("chain") { &HANDLES[..] } else { &HANDLES[..1] };
        let mut owner = json!({"clusterRef": {"name": fixture::CLUSTER}});
        if by_url {
            let token = json!({"name": secret::ADMIN, "key": secret::ADMIN_KEY});
            owner = json!({"adminApiEndpoint": format!("http://{peer}:3903"), "adminTokenSecretRef": token});
        }
        for handle in chain {
            connect(&world, handle, &owner).await?;
            owner = json!({"clusterRef": {"name": handle}});
        }
        let stray = world.stray("edge", 1, &peer).await?;
        let before = world.writes_of(EAST)?;
        let spec = json!({
            "clusterRef": {"name": chain[chain.len() - 1]},
            "zone": "east",
            "gateway": true,
            "nodeId": stray.id,
            "external": {"address": stray.address, "port": 3901},
        });
        fixture::node::create(scope, EAST, GATEWAY, "the edge gateway", spec).await?;
        if world.follows() && !by_url {
            world.node_condition(EAST, GATEWAY, "Ready", "False", "NotInLayout").await?;
            world.stays_quiet(EAST, &nodes).await?;
            world.annotate_node(EAST, GATEWAY, &[("look", "again")]).await?;
            world.looks_again(EAST).await?;
            let writes = world.writes_of(EAST)?;
            world.claim(EAST, "nothing is written", writes == before, || format!("{writes} writes"))?;
            return world.has_role(EAST, &nodes[0], &stray.id, false).await;
        }
        world.in_layout(EAST, &[GATEWAY.to_owned()]).await?;
        world.has_role(EAST, &nodes[0], &stray.id, true).await?;
        let layout = world.layout(EAST, &nodes[0]).await?;
        let role = layout.roles.iter().find(|role| role.id == stray.id);
        world.claim(
            EAST,
            "a gateway has no capacity",
            role.is_some_and(|role| role.capacity.is_none()),
            || format!("{role:?}"),
        )
    }
    .boxed()
}

/// A cluster without storage that acts on the layout of `owner`.
async fn connect(world: &World<'_>, name: &str, owner: &Value) -> Result<(), Failure> {
    let mut manifest = Cluster::auto(harness::garage::role::Role::Absent, 0).manifest(world.scope, EAST);
    manifest["metadata"]["name"] = json!(name);
    let removed = json!({"storage": null, "remoteClusters": null, "connectTo": owner});
    crate::fixture::cluster::merge(&mut manifest["spec"], &removed);
    let object = fixture::object(EAST, manifest)?;
    let what = format!("GarageCluster {name}, connected to {owner}");
    fixture::create(world.scope, EAST, &what, world.clusters(EAST), &object).await
}
