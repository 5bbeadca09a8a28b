//! What all tests share: two control planes, a hub of Garage nodes, the agent that runs pods, and one operator that
//! serves the webhooks of west. East has no webhooks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _, try_join};
use harness::agent::Agent;
use harness::garage::runtime::GarageRuntime;
use harness::local::{Identity, LocalPair, ServiceAccountName, Settings};
use harness::pair::hub::{self, RunningHub};
use harness::pair::manifests::{self, Manifest};
use harness::process::Child;
use harness::progress::Silent;
use harness::site::{PerSite, Site};
use harness::supervisor::{AnyError, Context, LogTail, Pair, PartDeath, Running, StartError};
use harness::toolchain;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::operator::{Launching, NAMESPACE};

/// Where clients of the pair find its parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    pub sites: PerSite<SiteParts>,
    /// URL of the hub's control API.
    pub control: String,
    /// File with the hub's control token.
    pub token_file: PathBuf,
    /// What the hub records.
    pub journal: PathBuf,
}

/// Every run draws the same node ids and delays; what a test claims must not hang on them.
const MESH_SEED: u64 = 1;

/// One site's parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteParts {
    pub address: Ipv4Addr,
    pub admin: PathBuf,
    pub operator: PathBuf,
    pub audit_log: PathBuf,
    pub proxy: SocketAddr,
}

/// Starts the pair.
#[derive(Debug)]
pub struct Stage;

impl Pair for Stage {
    fn start(&self, context: Context) -> BoxFuture<'static, Result<Arc<dyn Running>, StartError>> {
        async move {
            let running = start(context).await.map_err(StartError::new)?;
            Ok(Arc::new(running) as Arc<dyn Running>)
        }
        .boxed()
    }
}

#[derive(Debug)]
struct RunningStage {
    hub: RunningHub,
    sites: LocalPair,
    agent: Agent,
    webhooks: Child,
    description: Description,
}

async fn start(context: Context) -> Result<RunningStage, AnyError> {
    let environment = toolchain::Environment::of_process()?;
    let binaries = toolchain::prepare(&environment, &context.launcher, &Silent).await?;
    let addresses = context.addresses;
    let settings = Settings {
        folder: context.folder.join("sites"),
        addresses: PerSite { east: addresses.east(), west: addresses.west() },
        operator: ServiceAccountName { namespace: NAMESPACE.into(), name: "garage-operator".into() },
        objects: manifests::parse(&config(&["crd", "rbac"])?)?,
    };
    let run = addresses.to_string();
    let hub = hub::start(&context.launcher, &context.folder, addresses, &run, MESH_SEED);
    let sites = async {
        LocalPair::start(&context.launcher, &binaries, &settings, &Silent).await.map_err(AnyError::from)
    };
    let (hub, sites) = try_join(hub, sites).await?;
    let client = async |site: Site| sites.at(site).client(Identity::Agent).await;
    let clients = PerSite { east: client(Site::East).await?, west: client(Site::West).await? };
    let runtime = Arc::new(GarageRuntime::new(hub.client.clone()));
    let agent = Agent::start(clients, runtime.clone(), runtime).await?;
    let description = describe(&context, &hub, &sites);
    let webhooks = serve_webhooks(&context, &sites, &description).await?;
    Ok(RunningStage { hub, sites, agent, webhooks, description })
}

fn describe(context: &Context, hub: &RunningHub, sites: &LocalPair) -> Description {
    let parts = |site: Site| {
        let control_plane = sites.at(site);
        SiteParts {
            address: control_plane.address(),
            admin: control_plane.kubeconfig(Identity::Admin).to_owned(),
            operator: control_plane.kubeconfig(Identity::Operator).to_owned(),
            audit_log: control_plane.audit_log().to_owned(),
            proxy: match site {
                Site::East => context.addresses.east_proxy(),
                Site::West => context.addresses.west_proxy(),
            },
        }
    };
    Description {
        sites: PerSite::from_fn(parts),
        control: hub.control.clone(),
        token_file: hub.token_file.clone(),
        journal: hub.journal.clone(),
    }
}

/// Installs the webhooks at west and starts an operator that serves them; it watches no test's namespace.
async fn serve_webhooks(
    context: &Context,
    sites: &LocalPair,
    description: &Description,
) -> Result<Child, AnyError> {
    let admin = sites.at(Site::West).client(Identity::Admin).await?;
    for object in manifests::parse(&config(&["webhook/crd", "webhook"])?)? {
        install(&admin, &object).await?;
    }
    let address = TcpListener::bind((description.sites.west.address, 0))?.local_addr()?;
    let mut launching = Launching::new("webhooks", &description.sites.west, &context.folder);
    launching.watch(NAMESPACE);
    launching
        .flags(&[&format!("--webhook-bind-address={address}"), &format!("--webhook-url=https://{address}")]);
    let operator = launching.start(&context.launcher).await?;
    Ok(operator.child)
}

async fn install(client: &kube::Client, object: &Value) -> Result<(), AnyError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &text(&object["kind"])));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply("tests").force();
    api.patch(&text(&object["metadata"]["name"]), &parameters, &Patch::Apply(object)).await?;
    Ok(())
}

/// The objects in folders of the operator's manifests.
fn config(folders: &[&str]) -> Result<Vec<Manifest>, AnyError> {
    let mut manifests = BTreeMap::new();
    for folder in folders {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(folder);
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.extension().is_some_and(|extension| extension == "yaml") && name != "kustomization.yaml" {
                manifests.insert(path.clone(), Manifest { name, text: std::fs::read_to_string(&path)? });
            }
        }
    }
    Ok(manifests.into_values().collect())
}

impl Running for RunningStage {
    fn description(&self) -> Value {
        serde_json::to_value(&self.description).unwrap_or_default()
    }

    fn died(&self) -> BoxFuture<'_, PartDeath> {
        async move {
            let ended = |child: Child| async move {
                child.exited().await;
                child
            };
            let child = tokio::select! {
                child = ended(self.hub.child.clone()) => child,
                child = ended(self.webhooks.clone()) => child,
                child = self.sites.at(Site::East).died() => child,
                child = self.sites.at(Site::West).died() => child,
            };
            let status = child.status().map(|status| status.to_string()).unwrap_or_default();
            PartDeath { status, log: LogTail::read(child.name(), child.log()), part: child.name().to_owned() }
        }
        .boxed()
    }

    fn request(&self, body: Value) -> BoxFuture<'_, Result<Value, AnyError>> {
        async move {
            if body != serde_json::json!({"restart": "east"}) {
                return Err(format!("this pair knows no request `{body}`").into());
            }
            let east = self.sites.at(Site::East);
            east.end_api_server(std::time::Duration::ZERO).await;
            east.revive_api_server().await?;
            Ok(Value::Null)
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async move {
            self.webhooks.stop(std::time::Duration::from_secs(3)).await;
            self.agent.stop().await;
            futures::join!(self.hub.child.stop(std::time::Duration::from_secs(3)), self.sites.stop());
        }
        .boxed()
    }
}
