//! What the API server takes, and what an operator does when nobody kept it from taking anything.
//!
//! Stimulus: specs that the schema refuses or warns about, on both served versions; and a definition that has lost its
//! rules. Ends on: the refusals and warnings, or on a Follower that writes nothing and says why.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::objects;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Disturbs, Scenario, Scope};
use serde_json::{Value, json};

use crate::fixture::cluster::Cluster;
use crate::fixture::version::Version;
use crate::fixture::{CLUSTER, secret};
use crate::world::{EAST, WEST, World};

const NAME: &str = "admission";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario {
        name: NAME,
        row: 9,
        about: "what the schema and the webhook refuse or warn about, and what happens without them",
        cells,
        run,
    }
}

fn cells() -> Vec<Cell> {
    all().into_iter().map(Cell::needs_webhooks).collect()
}

fn all() -> Vec<Cell> {
    vec![
        Cell::control(NAME, "rules")
            .with(EAST, "Writer")
            .claims(
                "a Follower without remoteClusters is refused with the rule's message, on both versions",
                &["cel-remote-clusters", "d7-cel", "split-remote-clusters"],
            )
            .claims(
                "a Follower with connectTo is refused with the rule's message, on both versions",
                &["cel-connect-to", "d7-cel", "split-connect-to"],
            )
            .claims("an unknown role is refused by the enum, on both versions", &["api-enum", "split-enum"])
            .claims(
                "a Follower with remoteClusters, a Writer without, and no role at all are taken",
                &["cel-verified"],
            ),
        Cell::subject(NAME, "warnings")
            .with(EAST, "Follower")
            .with(WEST, "Writer")
            .claims(
                "a changed spec.replication at a Follower is admitted with a warning, on both versions",
                &["transition-replication", "split-replication", "deviation-v1beta1-webhook"],
            )
            .claims(
                "a promotion is admitted with a warning, on both versions",
                &["transition-promotion", "d6-no-ack"],
            ),
        Cell::subject(NAME, "without-remotes").with(EAST, "Follower").disturbs(Disturbs::Cluster).claims(
            "with the rules stripped a Follower without remoteClusters writes nothing and says why",
            &["split-controller", "split-remote-clusters"],
        ),
        Cell::subject(NAME, "with-connect-to").with(EAST, "Follower").disturbs(Disturbs::Cluster).claims(
            "with the rules stripped a Follower with connectTo writes nothing and says why",
            &["split-controller", "split-connect-to"],
        ),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        match cell.name {
            "rules" => rules(&world).await,
            "warnings" => warnings(&world).await,
            _ => stripped(&world).await,
        }
    }
    .boxed()
}

async fn rules(world: &World<'_>) -> Result<(), Failure> {
    let follower = json!({"layoutManagement": {"siteRole": "Follower"}});
    let connected = json!({"connectTo": {"clusterRef": {"name": "other"}}, "storage": null});
    let table = [
        (
            vec![follower.clone(), json!({"remoteClusters": null})],
            Some("Follower requires at least one remoteClusters entry"),
        ),
        (
            vec![follower.clone(), json!({"remoteClusters": []})],
            Some("Follower requires at least one remoteClusters entry"),
        ),
        (vec![follower.clone(), connected], Some("Follower is not supported with connectTo")),
        (vec![json!({"layoutManagement": {"siteRole": "Leader"}})], Some("Unsupported value")),
        (vec![follower.clone()], None),
        (vec![json!({"layoutManagement": {"siteRole": "Writer"}, "remoteClusters": null})], None),
        (vec![json!({"layoutManagement": {"autoApply": true}})], None),
        (vec![], None),
    ];
    for (patches, refusal) in &table {
        let spec = json!(patches);
        for version in Version::ALL {
            let answer = patched(patches).try_create(world.scope, EAST, version, true).await?;
            let as_expected = match (refusal, &answer) {
                (Some(word), Some(message)) => message.contains(word),
                (None, None) => true,
                _ => false,
            };
            let claim = match refusal {
                Some(word) => format!("{version}: {spec} is refused with `{word}`"),
                None => format!("{version}: {spec} is taken"),
            };
            world.claim(EAST, &claim, as_expected, || answer.unwrap_or_else(|| "it was taken".to_owned()))?;
        }
    }
    // The control of the cell: a Writer that is taken writes.
    world.settled(&Cluster::auto(Role::Writer, 1), 0).await.map(drop)
}

/// A cluster without a role, as it is after `patches`.
fn patched(patches: &[Value]) -> Cluster {
    Cluster { patches: patches.to_vec(), ..Cluster::auto(Role::Absent, 1) }
}

async fn warnings(world: &World<'_>) -> Result<(), Failure> {
    let nodes = world.settled(&Cluster::auto(Role::Follower, 1), 0).await?;
    let zones = json!({"replication": {"zoneRedundancyMode": "AtLeast", "zoneRedundancyMinZones": 1}});
    let promotion = json!({"layoutManagement": {"siteRole": "Writer"}});
    for (spec, word) in [(zones, "replication"), (promotion, "demote the previous writer")] {
        for version in Version::ALL {
            let told = world.warnings(EAST, version, &spec).await?;
            let warned = told.iter().any(|warning| warning.contains(word));
            let claim = format!("{version}: {spec} is admitted with a warning about `{word}`");
            world.claim(EAST, &claim, warned, || format!("{told:?}"))?;
        }
    }
    world.stays_quiet(EAST, &nodes).await
}

/// Without the schema's rules and without the webhook the controller is the last who can say no.
async fn stripped(world: &World<'_>) -> Result<(), Failure> {
    let definition = world.definition(EAST).await?;
    let before = json!(definition.spec.versions);
    let mut versions = before.clone();
    for version in versions.as_array_mut().into_iter().flatten() {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec.as_object_mut().and_then(|spec| spec.remove("x-kubernetes-validations"));
    }
    let webhooks = world.remove_webhooks(EAST).await?;
    world.redefine(EAST, &versions).await?;
    let ended = objectionable(world).await;
    world.redefine(EAST, &before).await?;
    world.restore_webhooks(EAST, webhooks).await?;
    ended
}

async fn objectionable(world: &World<'_>) -> Result<(), Failure> {
    let (spec, word) = if world.cell.name == "without-remotes" {
        (json!({"remoteClusters": null}), "remoteClusters")
    } else {
        (json!({"connectTo": {"clusterRef": {"name": CLUSTER}}}), "connectTo")
    };
    secret::create_all(world.scope, &world.stage.mesh, EAST).await?;
    let patches = [json!({"layoutManagement": {"siteRole": "Follower"}}), spec];
    // The definition takes effect a moment after it is changed.
    let taken = async {
        let cluster = patched(&patches);
        while let Some(refusal) = cluster.try_create(world.scope, EAST, Version::V1beta2, false).await? {
            world.step(format!("not taken yet: {refusal}"));
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        Ok::<(), Failure>(())
    };
    tokio::time::timeout(world.scope.limits.step, taken)
        .await
        .map_err(|_| world.not_so(EAST, "the stripped definition takes the spec", "it is still refused"))??;
    let says_why = |cluster: Option<&kube::api::DynamicObject>| {
        let words = objects::conditions_in_words(cluster.ok_or("it does not exist")?);
        if words.contains(word) && words.contains("Ready=False") { Ok(()) } else { Err(words) }
    };
    world.cluster_until(EAST, format!("GarageCluster {CLUSTER} that says why"), says_why).await?;
    world.reconciles_at_all(EAST).await?;
    let writes = world.writes_of(EAST)?;
    world.claim(EAST, "nothing is written", writes == 0, || format!("{writes} layout writes"))
}
