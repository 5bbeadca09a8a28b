//! Defects that users of the existing operator met (operator contract, regression catalogue; ecosystem reference §2).
//!
//! Each cell provokes one of them; the record's statement of the cell names its source. Ends on: the operator doing what
//! it did not do then. Changes by hand appear in the history with the caller `human`.

use std::slice::from_ref;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use harness::failure::Failure;
use harness::garage::role::Role;
use harness::garage::stage::Stage;
use harness::garage::system::Garage;
use harness::scenario::{Cell, Scenario, Scope};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::fixture;
use crate::fixture::cluster::Cluster;
use crate::world::{EAST, WEST, World, auto_nodes, manual_nodes};

const NAME: &str = "field_bugs";
const UPDATE: &str = "/v2/UpdateClusterLayout";
const APPLY: &str = "/v2/ApplyClusterLayout";

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario<Garage> {
    Scenario { name: NAME, row: 12, about: "defects that users met do not come back", cells, run }
}

fn cells() -> Vec<Cell> {
    let cell = |name| Cell::control(NAME, name).with(EAST, "Writer");
    let two = |name| cell(name).with(WEST, "Follower");
    vec![
        cell("single-node").claims("a cluster of one node gets its layout", &["bug-single-node"]),
        cell("staged-once").claims(
            "what was staged before a failure is applied without staging it again",
            &["bug-staged-once"],
        ),
        cell("early-apply")
            .claims("no layout is applied before there are as many nodes as copies", &["bug-early-apply"]),
        two("hanging-remote").claims(
            "a remote site that never answers does not keep local nodes from their roles",
            &["bug-hanging-remote"],
        ),
        cell("read-error")
            .claims("a node that cannot be asked is not taken for one that is gone", &["bug-read-error"]),
        cell("connect-failure").claims(
            "a connection that fails inside a successful answer is tried again",
            &["bug-connect-failure"],
        ),
        cell("restarted-node").claims(
            "a restarted node keeps its identity, and the layout its version",
            &["bug-restarted-node"],
        ),
        cell("overtaken-apply").claims(
            "a version that somebody else applied in between is read again, not applied over",
            &["bug-overtaken-apply"],
        ),
        cell("slow-write").claims("a slow layout write never makes the cluster Failed", &["bug-slow-write"]),
        cell("transient-read")
            .claims("one failed read does not begin a drain's proof anew", &["bug-transient-read"]),
        two("foreign-gateway")
            .claims("a stale gateway role of the other site is left to that site", &["bug-foreign-gateway"]),
        two("imported-tags").expects("followers-roles-declared").claims(
            "a role that is imported from the other site keeps its tags and its capacity",
            &["bug-imported-tags"],
        ),
        cell("hand-removed")
            .claims("a role that a person removed is not staged again", &["bug-hand-removed"]),
        cell("oscillation")
            .claims("a stale gateway role is removed once and stays away", &["bug-oscillation"]),
        cell("wrong-version").claims(
            "a wrong version is answered 500, and the change is made all the same",
            &["bug-wrong-version"],
        ),
        cell("gateway-capacity").claims("a gateway's role has no capacity", &["bug-gateway-capacity"]),
    ]
}

fn run<'a>(scope: &'a Scope, stage: &'a Stage, cell: &'a Cell) -> BoxFuture<'a, Result<(), Failure>> {
    async move {
        let world = World::new(scope, stage, cell);
        match cell.name {
            "early-apply" => return early_apply(&world).await,
            "connect-failure" => return connect_failure(&world).await,
            _ => {}
        }
        let drains = cell.name == "transient-read";
        let applies = json!({"layoutManagement": {"autoApply": true}});
        let cluster = Cluster::auto(Role::Writer, if drains { 2 } else { 1 }).spec(&applies);
        let nodes = world.settled(&cluster, 0).await?;
        let first = &nodes[0];
        match cell.name {
            "single-node" => world.holds_roles(EAST, &nodes, 1).await,
            "staged-once" => staged_once(&world).await,
            "hanging-remote" => hanging_remote(&world).await,
            "read-error" => read_error(&world, &nodes).await,
            "restarted-node" => restarted_node(&world, &nodes).await,
            "overtaken-apply" => overtaken_apply(&world, first).await,
            "slow-write" => slow_write(&world).await,
            "transient-read" => transient_read(&world, &nodes).await,
            "foreign-gateway" => foreign_gateway(&world, &nodes).await,
            "imported-tags" => imported_tags(&world, &nodes).await,
            "hand-removed" => hand_removed(&world, &nodes).await,
            "oscillation" => oscillation(&world, &nodes).await,
            "wrong-version" => wrong_version(&world).await,
            _ => gateway_capacity(&world, first).await,
        }
    }
    .boxed()
}

/// One replica more, and its role.
async fn grow(world: &World<'_>) -> Result<(), Failure> {
    world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
    world.in_layout(EAST, &auto_nodes(2)).await
}

fn writes(path: &str) -> Value {
    json!({"caller": "east", "method": "POST", "path": path})
}

async fn staged_once(world: &World<'_>) -> Result<(), Failure> {
    let before = world.count_of(EAST, UPDATE)?;
    world.rule(&writes(APPLY), 2, &json!({"kind": "answer", "status": 503})).await?;
    grow(world).await?;
    let staged = world.count_of(EAST, UPDATE)? - before;
    world.claim(EAST, "the role is staged once", staged == 1, || format!("staged {staged} times"))
}

async fn early_apply(world: &World<'_>) -> Result<(), Failure> {
    let nodes = world.start(EAST, &Cluster::auto(Role::Writer, 2).factor(3), 0).await?;
    world.condition(EAST, "Ready", "False", "LayoutNotReady").await?;
    world.reconciles(EAST, &nodes).await?;
    for layout in world.layouts(EAST, &nodes).await? {
        world.claim(EAST, "no layout is there yet", layout.version == 0, || format!("{layout:?}"))?;
    }
    world.change(EAST, &json!({"storage": {"replicas": 3}})).await?;
    world.in_layout(EAST, &auto_nodes(3)).await
}

async fn hanging_remote(world: &World<'_>) -> Result<(), Failure> {
    let remote = json!({"caller": "east", "node": "west"});
    let held = world.rule(&remote, 0, &json!({"kind": "hold"})).await?;
    grow(world).await?;
    world.end_rule(held).await
}

async fn read_error(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let before = world.writes_of(EAST)?;
    let reads = json!({"caller": "east", "path": "/v2/GetClusterStatus"});
    let rule = world.rule(&reads, 6, &json!({"kind": "answer", "status": 500})).await?;
    world.annotate_cluster(EAST, &[("look", "again")]).await?;
    world.looks_again(EAST).await?;
    let met = world.acted(rule).await?;
    world.claim(EAST, "the operator met the errors", met > 0, || "no call met the rule".to_owned())?;
    world.reconciles(EAST, nodes).await?;
    let after = world.writes_of(EAST)?;
    world.claim(EAST, "nothing is written", after == before, || format!("{} writes", after - before))
}

async fn connect_failure(world: &World<'_>) -> Result<(), Failure> {
    let connect = writes("/v2/ConnectClusterNodes");
    let failed = json!([{"success": false, "error": "Connection refused"}]);
    let answer = json!({"kind": "answer", "status": 200, "body": failed});
    let rule = world.rule(&connect, 3, &answer).await?;
    let nodes = world.start(EAST, &Cluster::auto(Role::Writer, 2), 0).await?;
    world.in_layout(EAST, &nodes).await?;
    let met = world.acted(rule).await?;
    world.claim(EAST, "the operator met the failures", met == 3, || format!("{met} of 3"))
}

async fn restarted_node(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let (id, before) = (world.identity(EAST, &nodes[0]).await?, world.layout(EAST, &nodes[0]).await?);
    let node = world.hub_name(EAST, &nodes[0]);
    world.fault(&json!({"action": "restart", "node": node})).await?;
    world.stays_quiet(EAST, nodes).await?;
    let (same, after) = (world.identity(EAST, &nodes[0]).await?, world.layout(EAST, &nodes[0]).await?);
    world.claim(EAST, "identity and layout are the same", id == same && before == after, || {
        format!("{after:?}")
    })
}

/// A role that no operator wants, staged and applied by a person.
async fn role_by_hand(world: &World<'_>, peer: &str, pod: &str, role: Value) -> Result<String, Failure> {
    let stray = world.stray(pod, 1, peer).await?;
    let mut role = role;
    role["id"] = json!(stray.id);
    world.stage_by_hand(peer, &json!([role])).await?;
    world.apply_by_hand(peer).await?;
    Ok(stray.id)
}

async fn overtaken_apply(world: &World<'_>, first: &str) -> Result<(), Failure> {
    let peer = world.address(EAST, first).await?;
    let held = world.rule(&writes(APPLY), 1, &json!({"kind": "hold"})).await?;
    world.change(EAST, &json!({"storage": {"replicas": 2}})).await?;
    world.met(held, 1).await?;
    // Applies what the operator has staged, too: its own apply then has a wrong version.
    world.apply_by_hand(&peer).await?;
    world.end_rule(held).await?;
    world.in_layout(EAST, &auto_nodes(2)).await?;
    world.stays_quiet(EAST, &auto_nodes(2)).await?;
    let layout = world.layout(EAST, first).await?;
    world.claim(EAST, "no version was applied over the other one", layout.version == 2, || {
        format!("{layout:?}")
    })
}

async fn slow_write(world: &World<'_>) -> Result<(), Failure> {
    world.rule(&writes(UPDATE), 1, &json!({"kind": "delay", "ms": 1500})).await?;
    let failed = world.watch_phase(EAST, "Failed");
    world.change(EAST, &json!({"storage": {"replicas": 3}})).await?;
    world.in_layout(EAST, &auto_nodes(3)).await?;
    world.never_was(&failed)
}

async fn transient_read(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let workers = json!({"caller": "east", "path": "/v2/ListWorkers"});
    world.change(EAST, &json!({"storage": {"replicas": 1}})).await?;
    world.called(EAST, "/v2/LaunchRepairOperation", 1).await?;
    world.rule(&workers, 1, &json!({"kind": "answer", "status": 500})).await?;
    world.node_gone(EAST, &nodes[1]).await?;
    let launched = world.count_of(EAST, "/v2/LaunchRepairOperation")?;
    let claim = "each of both nodes is repaired once";
    world.claim(EAST, claim, launched == 2, || format!("{launched} repairs were launched"))
}

async fn foreign_gateway(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let peer = world.address(EAST, &nodes[0]).await?;
    let uid = world.cluster(WEST).await?.uid().unwrap_or_default();
    let gateway = world.stray("gateway", 1, &peer).await?;
    let tags = json!(["tier:gateway", format!("cluster-uid:{uid}")]);
    let role = json!([{"id": gateway.id, "zone": "west", "capacity": null, "tags": tags}]);
    world.stage_by_hand(&peer, &role).await?;
    world.apply_by_hand(&peer).await?;
    world.seen(&peer, &gateway.id).await?;
    world.taken_over(&peer).await?;
    world.end_stray(&gateway).await?;
    world.unseen_for(&peer, &gateway.id, 2).await?;
    world.stays_quiet(EAST, nodes).await?;
    world.has_role(EAST, &nodes[0], &gateway.id, true).await
}

/// The sites do not see each other while a person gives a node of the other one a role there: this site takes it over
/// from what the other one's admin API says.
async fn imported_tags(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let [peer, guest] = [0, 1].map(|number: usize| manual_nodes(2).remove(number));
    world.partition().await?;
    fixture::node::create_managed(world.scope, WEST, &guest).await?;
    let id = world.identity(WEST, &guest).await?;
    let peer = world.address(WEST, &peer).await?;
    world.seen(&peer, &id).await?;
    let tags = json!(["tier:storage", "rack:7"]);
    let role = json!([{"id": id, "zone": "west", "capacity": 7_u64 << 30, "tags": tags}]);
    world.stage_by_hand(&peer, &role).await?;
    world.apply_by_hand(&peer).await?;
    let version = world.layout(WEST, &guest).await?.version;
    world.reconciles(EAST, nodes).await?;
    world.holds_version(EAST, &nodes[0], version).await?;
    let layout = world.layout(EAST, &nodes[0]).await?;
    let role = layout.roles.iter().find(|role| role.id == id);
    let whole = role.is_some_and(|role| json!(role.tags) == tags && role.capacity == Some(7 << 30));
    world.claim(EAST, "the role is imported as it is", whole, || format!("{role:?}"))?;
    world.heal().await
}

async fn hand_removed(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let peer = world.address(EAST, &nodes[0]).await?;
    let role = json!({"zone": "elsewhere", "capacity": 1_u64 << 30, "tags": []});
    let id = role_by_hand(world, &peer, "guest", role).await?;
    world.reconciles(EAST, nodes).await?;
    world.stage_by_hand(&peer, &json!([{"id": id, "remove": true}])).await?;
    world.apply_by_hand(&peer).await?;
    world.reconciles(EAST, nodes).await?;
    world.stays_quiet(EAST, nodes).await?;
    world.has_role(EAST, &nodes[0], &id, false).await
}

async fn oscillation(world: &World<'_>, nodes: &[String]) -> Result<(), Failure> {
    let stale = super::tombstones::stale_gateway(world, &nodes[0]).await?;
    super::tombstones::gone(world, &nodes[0], &stale).await?;
    let version = world.layout(EAST, &nodes[0]).await?.version;
    world.reconciles(EAST, nodes).await?;
    world.stays_quiet(EAST, nodes).await?;
    let after = world.layout(EAST, &nodes[0]).await?.version;
    world.claim(EAST, "the layout stays as it is", after == version, || {
        format!("version {version}, then {after}")
    })
}

async fn wrong_version(world: &World<'_>) -> Result<(), Failure> {
    let body = json!({"code": "InternalError", "message": "Internal error: Invalid new layout version",
        "region": "garage", "path": APPLY});
    let rule = world.rule(&writes(APPLY), 2, &json!({"kind": "answer", "status": 500, "body": body})).await?;
    grow(world).await?;
    let met = world.acted(rule).await?;
    world.claim(EAST, "the operator met the refusals", met == 2, || format!("{met} of 2"))
}

async fn gateway_capacity(world: &World<'_>, first: &str) -> Result<(), Failure> {
    let peer = world.address(EAST, first).await?;
    let gateway = world.stray("gateway", 1, &peer).await?;
    let spec = json!({
        "clusterRef": {"name": fixture::CLUSTER},
        "zone": "elsewhere",
        "gateway": true,
        "nodeId": gateway.id,
        "external": {"address": gateway.address, "port": 3901},
    });
    fixture::node::create(world.scope, EAST, "gateway", "an external gateway", spec).await?;
    world.in_layout(EAST, from_ref(&"gateway".to_owned())).await?;
    let layout = world.layout(EAST, first).await?;
    let role = layout.roles.iter().find(|role| role.id == gateway.id);
    let bare = role.is_some_and(|role| role.capacity.is_none());
    world.claim(EAST, "the gateway's role has no capacity", bare, || format!("{role:?}"))
}
