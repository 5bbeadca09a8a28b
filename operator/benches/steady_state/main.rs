//! What the operator costs: `just bench-operator [CLUSTERS…]`, by default 10, 50 and 200 of three nodes each.
//!
//! For each number a pair of its own is set up, all clusters are created at once, each in a namespace of its own, and
//! the operator watches all of them. Measured are the way to the steady state, a minute of idling, and edits of a tag.
//! The result is a table on standard output. Leases are not renewed: leader election is off.

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark; it shares the stage of the tests"
)]

#[path = "../../tests/sites/stage/mod.rs"]
mod stage;

mod audit;
mod process;

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use harness::failure::chain;
use harness::garage::objects;
use harness::site::Site::East;
use harness::supervisor::{Client, StateRoot, Wanted};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stage::operator::Operator;
use stage::{Role, Scene};

/// How long the steady state may take to come.
const PATIENCE: Duration = Duration::from_mins(20);

/// How long idling is watched.
const IDLE: Duration = Duration::from_mins(1);

/// Edits of a tag, each of another cluster where there are so many.
const EDITS: usize = 20;

/// What was measured with one number of clusters.
struct Measured {
    clusters: usize,
    steady: Duration,
    steady_cpu: Duration,
    steady_writes: usize,
    idle_writes: usize,
    idle_cpu: Duration,
    resident: u64,
    edits: Vec<Duration>,
}

fn main() {
    stage::intercept();
    let mut sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![10, 50, 200];
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!(
        "| clusters | steady after | CPU until then | writes until then | idle writes/min | idle CPU | RSS | tag edit, median | worst |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for clusters in sizes {
        println!("{}", row(&runtime.block_on(measure(clusters))));
    }
}

fn row(measured: &Measured) -> String {
    let Measured { clusters, steady, steady_cpu, steady_writes, idle_writes, idle_cpu, resident, edits } =
        measured;
    let share = 100.0 * idle_cpu.as_secs_f64() / IDLE.as_secs_f64();
    let (median, worst) = (edits[edits.len() / 2], edits[edits.len() - 1]);
    format!(
        "| {clusters} | {:.1} s | {:.1} s | {steady_writes} | {idle_writes} | {share:.2} % | {} MB | {} ms | {} ms |",
        steady.as_secs_f64(),
        steady_cpu.as_secs_f64(),
        resident / 1_000_000,
        median.as_millis(),
        worst.as_millis(),
    )
}

async fn measure(clusters: usize) -> Measured {
    let root = StateRoot::from_env().unwrap();
    let wanted = Wanted::private("benchmark of the operator", Value::Null);
    let pair = Client::start_or_attach(&root, wanted, |_| {})
        .await
        .unwrap_or_else(|error| panic!("{}", chain(&error)));
    let description: stage::pair::Description = serde_json::from_value(pair.description().clone()).unwrap();
    let mut scenes = Vec::new();
    for _ in 0..clusters {
        scenes.push(Scene::set(description.clone()).await.unwrap_or_else(|failed| panic!("{failed:?}")));
    }
    let audit = audit::Log::new(&description.sites.east.audit_log);
    let began = Instant::now();
    let operator = scenes[0].operator_of_everything(East).await;
    create_all(&scenes).await;
    until_steady(&scenes).await;
    let steady = began.elapsed();
    let (steady_cpu, steady_writes) = (process::cpu(&operator), audit.new_writes());
    until_quiet(&audit).await;
    let idle_from = process::cpu(&operator);
    tokio::time::sleep(IDLE).await;
    let (idle_cpu, idle_writes) = (process::cpu(&operator).saturating_sub(idle_from), audit.new_writes());
    let resident = process::resident(&operator);
    let edits = edits(&scenes).await;
    operator.stop().await;
    pair.release(false).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    Measured { clusters, steady, steady_cpu, steady_writes, idle_writes, idle_cpu, resident, edits }
}

async fn create_all(scenes: &[Scene]) {
    let created =
        stream::iter(scenes).map(|scene| scene.create_cluster(East, cluster(scene))).buffer_unordered(8);
    created.for_each(|_| async {}).await;
}

fn cluster(scene: &Scene) -> Value {
    let mut cluster = scene.three_nodes(East, Role::Writer);
    // One site: no remote that could not be reached, and would be tried again and again.
    cluster["spec"].as_object_mut().unwrap().remove("remoteClusters");
    cluster
}

async fn until_steady(scenes: &[Scene]) {
    let client = scenes[0].client(East);
    let resource = |version: &str, kind: &str, plural: &str| {
        let group = objects::GROUP;
        kube::api::ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: format!("{group}/{version}"),
            kind: kind.into(),
            plural: plural.into(),
        }
    };
    let clusters: Api<DynamicObject> =
        Api::all_with(client.clone(), &resource("v1beta2", "GarageCluster", "garageclusters"));
    let nodes: Api<DynamicObject> = Api::all_with(client, &resource("v1beta1", "GarageNode", "garagenodes"));
    let began = Instant::now();
    loop {
        let ready = ready(&clusters, ("True", "ClusterReady")).await;
        if ready == scenes.len() && self::ready(&nodes, ("True", "NodeReady")).await == 3 * scenes.len() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "only {ready} of {} clusters are ready", scenes.len());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn ready(api: &Api<DynamicObject>, wanted: (&str, &str)) -> usize {
    let all = api.list(&ListParams::default()).await.unwrap();
    all.items.iter().filter(|object| objects::condition(object, "Ready") == Some(wanted)).count()
}

/// The last status writes follow shortly after the last node is ready.
async fn until_quiet(audit: &audit::Log) {
    let mut quiet = 0;
    while quiet < 5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        quiet = if audit.new_writes() == 0 { quiet + 1 } else { 0 };
    }
}

/// Times from an edit of a tag to the layout that has it, sorted.
async fn edits(scenes: &[Scene]) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 0..EDITS {
        times.push(edit(&scenes[number * scenes.len() / EDITS], &format!("edit-{number}")).await);
    }
    times.sort();
    times
}

async fn edit(scene: &Scene, tag: &str) -> Duration {
    let patch = json!({"spec": {"storage": {"tags": [tag]}}});
    let node = stage::cases::FIRST;
    let address = scene.address(East, node).await;
    let began = Instant::now();
    scene.clusters(East).patch("garage", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    loop {
        let layout = scene.layout_at(&address).await;
        let tagged = |role: &Value| role["tags"].as_array().is_some_and(|tags| tags.contains(&json!(tag)));
        if layout["roles"].as_array().unwrap().iter().all(tagged) {
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(30), "the tag never came: {layout}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl Scene {
    /// An operator that watches every namespace, with the waiting periods of the program itself.
    async fn operator_of_everything(&self, site: harness::site::Site) -> Operator {
        self.operator_with(site, stage::operator::Launching::everything).await
    }
}
