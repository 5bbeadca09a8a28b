//! Demotion while a multi-step layout transaction is under way.
//!
//! Stimulus: the spec says Follower. Ends on: the refusal of the webhook, with its message; or where the webhooks are
//! off, on a Follower that writes nothing all the same.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Disturbs, Scenario, Scope};
use harness::site::Site;
use serde_json::{Value, json};

use crate::fixture::cluster::{Cluster, remote};
use crate::fixture::version::Version;
use crate::world::{EAST, World};

const NAME: &str = "demotion_guard";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 8,
        about: "a demotion is refused while a drain, rollout or factor migration is under way",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    all().into_iter().map(Cell::needs_webhooks).collect()
}

fn all() -> Vec<Cell> {
    const GUARD: &[&str] = &["transition-demotion", "d5-demotion", "split-demotion"];
    let cell = |name| Cell::control(NAME, name).with(EAST, "Writer");
    vec![
        cell("drain")
            .claims("a demotion is refused while a drain is recorded, on both versions", GUARD)
            .claims("the role guard's message comes before the drain freeze's", &["deviation-freeze"])
            .claims("any other edit of the spec is refused by the drain freeze", &["deviation-freeze"]),
        cell("rollout").claims("a demotion is refused while a rollout is recorded, on both versions", GUARD),
        cell("migration")
            .claims("a demotion is refused while a factor migration is in flight, on both versions", GUARD)
            .claims("one edit that adds remoteClusters and Follower is no way around that", GUARD),
        cell("after-migration")
            .claims("a finished or failed migration does not keep a site from being demoted", &["deviation-in-flight"]),
        cell("webhooks-off")
            .disturbs(Disturbs::Cluster)
            .claims("with the webhooks off a demotion during a drain is admitted, and the guard still blocks every write", &["split-demotion", "split-controller", "enforce-guard"])
            .claims("a promotion while that drain is still recorded is refused by the freeze, on both versions", &["deviation-freeze"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        let alone = json!({"remoteClusters": null});
        let cluster = Cluster::auto(Role::Writer, 2);
        let migrates = cell.name.contains("migration");
        let cluster = if migrates { cluster.spec(&alone) } else { cluster };
        let nodes = world.settled(&cluster, 0).await?;
        match cell.name {
            "drain" => drain(&world, &nodes).await,
            "rollout" => rollout(&world, &nodes).await,
            "migration" => migration(&world).await,
            "after-migration" => after_migration(&world).await,
            _ => webhooks_off(&world, &nodes).await,
        }
    }
    .boxed()
}

/// Nobody may ask the workers: a drain that has begun does not end.
const WORKERS: &str = "/v2/ListWorkers";

async fn begin_drain(world: &World<'_>, node: &str) -> Result<(), Failure> {
    world.rule(&json!({"path": WORKERS}), 0, &json!({"kind": "answer", "status": 503})).await?;
    world.annotate_node(EAST, node, &[("drain", "true")]).await?;
    world
        .cluster_field(EAST, "/status/storageDrain", "a recorded drain", |drain| drain.is_some())
        .await
        .map(drop)
}

async fn drain(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    begin_drain(world, &nodes[1]).await?;
    refused_on_both(world, &follower(), &["Writer to Follower is refused", "storageDrain"]).await?;
    refused_on_both(world, &json!({"zone": "elsewhere"}), &["is refused while status.storageDrain"]).await
}

async fn rollout(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    // The other node is not well, as Garage tells it: the rollout has begun and is held.
    let address = world.address(EAST, &nodes[0]).await?;
    let mut status = harness::garage::admin::status(EAST, &world.stage.mesh, &address).await?;
    let ill = world.identity(EAST, &nodes[1]).await?;
    for node in status["nodes"].as_array_mut().into_iter().flatten().filter(|node| node["id"] == ill.as_str())
    {
        node["isUp"] = json!(false);
        node["lastSeenSecsAgo"] = json!(5);
    }
    let answer = json!({"kind": "answer", "status": 200, "body": status});
    let asks = json!({"path": "/v2/GetClusterStatus", "caller": "east"});
    world.rule(&asks, 0, &answer).await?;
    world.change(EAST, &json!({"image": "dxflrs/garage:v2.5.0"})).await?;
    world
        .cluster_field(EAST, "/status/storageRollout", "a recorded rollout", |rollout| rollout.is_some())
        .await?;
    refused_on_both(world, &follower(), &["Writer to Follower is refused", "storageRollout"]).await
}

async fn migration(world: &World<'_>) -> Result<(), Failure> {
    world.patch_status(EAST, &json!({"factorMigration": {"phase": "Purging"}})).await?;
    let mut edit = follower();
    edit["remoteClusters"] = json!([remote(&world.scope.namespace, Site::West)]);
    refused_on_both(world, &edit, &["Writer to Follower is refused", "factorMigration", "Purging"]).await
}

async fn after_migration(world: &World<'_>) -> Result<(), Failure> {
    let mut edit = follower();
    edit["remoteClusters"] = json!([remote(&world.scope.namespace, Site::West)]);
    for phase in ["Failed", "Completed"] {
        world.patch_status(EAST, &json!({"factorMigration": {"phase": phase}})).await?;
        world.declare(Some(Role::Follower), None);
        world.change(EAST, &edit).await?;
        world.condition(EAST, "LayoutWriter", "False", "FollowerSite").await?;
        world.declare(Some(Role::Writer), None);
        world.set_role(EAST, "Writer").await?;
        world.condition(EAST, "LayoutWriter", "True", "WriterSite").await?;
    }
    Ok(())
}

async fn webhooks_off(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    begin_drain(world, &nodes[1]).await?;
    let webhooks = world.remove_webhooks(EAST).await?;
    world.webhooks_are_off(EAST, &follower()).await?;
    world.change(EAST, &follower()).await?;
    world.declare(Some(Role::Follower), None);
    world.condition(EAST, "LayoutWriter", "False", "FollowerSite").await?;
    // Something that a Writer would write: a further node.
    world.change(EAST, &json!({"storage": {"replicas": 3}})).await?;
    world.condition(EAST, "AwaitingLayoutWriter", "True", "NodesWithoutRole").await?;
    world.stays_quiet(EAST, nodes).await?;
    world.restore_webhooks(EAST, webhooks).await?;
    let promotion = json!({"layoutManagement": {"siteRole": "Writer"}});
    world.webhooks_act(EAST, &promotion, "storageDrain").await?;
    let words = ["the promotion is refused while status.storageDrain"];
    refused_on_both(world, &promotion, &words).await
}

fn follower() -> Value {
    json!({"layoutManagement": {"siteRole": "Follower"}})
}

/// The change is refused whichever version the client speaks, with every one of `words`.
async fn refused_on_both(world: &World<'_>, spec: &Value, words: &[&str]) -> Result<(), Failure> {
    for version in Version::ALL {
        says(world, &world.refused(EAST, version, spec).await?, words)?;
    }
    Ok(())
}

fn says(world: &World<'_>, message: &str, words: &[&str]) -> Result<(), Failure> {
    let missing: Vec<_> = words.iter().filter(|word| !message.contains(**word)).collect();
    world.claim(EAST, &format!("the refusal speaks of {words:?}"), missing.is_empty(), || message.to_owned())
}
