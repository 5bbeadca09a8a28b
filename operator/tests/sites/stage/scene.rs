//! The namespace and the mesh of one test.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use harness::failure::chain;
use harness::garage::hub::Hub;
use harness::garage::mesh::Mesh;
use harness::garage::objects;
use harness::process::{Launcher, Marker};
use harness::site::{PerSite, Site};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::hub::Control;
use super::manifest::{self, ADMIN, REMOTE, RPC, Role};
use super::operator::{Launching, Operator};
use super::pair::Description;

/// One test's own part of the pair. Clones are the same scene.
#[derive(Clone, Debug)]
pub struct Scene {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    mesh: Mesh,
    description: Description,
    clients: PerSite<DebugClient>,
    hub: Hub,
    control: Control,
    launcher: Launcher,
    folder: tempfile::TempDir,
    operators: Mutex<Vec<Operator>>,
    /// Where the hub's journal ended when the scene was set.
    journal_begin: u64,
}

#[derive(Clone)]
struct DebugClient(Client);

impl std::fmt::Debug for DebugClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Scene {
    /// A fresh scene: namespaces and Secrets at both sites, a mesh, no operator.
    pub async fn set(description: Description) -> Result<Self, Failed> {
        let name = format!("t-{:08x}", rand::random::<u32>());
        let folder = tempfile::tempdir()?;
        let marker = Marker { id: name.clone(), folder: folder.path().into() };
        let launcher = Launcher::new(folder.path().join("processes"), marker)?;
        let token = std::fs::read_to_string(&description.token_file)?;
        let hub = Hub::new(&description.control, token.trim())?;
        let control = Control::new(&description.control, token.trim());
        let clients = PerSite {
            east: DebugClient(client(&description.sites.east.admin).await?),
            west: DebugClient(client(&description.sites.west.admin).await?),
        };
        let mesh = Mesh::new(name.clone());
        hub.put_mesh(&mesh.name, &mesh.rpc_secret_digest(), mesh.tokens()).await.map_err(|e| chain(&e))?;
        let operators = Mutex::default();
        let journal_begin = std::fs::metadata(&description.journal)?.len();
        let shared = Shared {
            name,
            mesh,
            description,
            clients,
            hub,
            control,
            launcher,
            folder,
            operators,
            journal_begin,
        };
        let scene = Self { shared: Arc::new(shared) };
        for site in Site::ALL {
            scene.furnish(site).await?;
        }
        Ok(scene)
    }

    /// Another scene on the same pair.
    pub async fn another(&self) -> Self {
        Self::set(self.description().clone()).await.unwrap_or_else(|failed| panic!("{:?}", failed.message()))
    }

    async fn furnish(&self, site: Site) -> Result<(), Failed> {
        let metadata = ObjectMeta { name: Some(self.namespace().to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(self.client(site)).create(&PostParams::default(), &namespace).await?;
        let mesh = &self.shared.mesh;
        for (name, key, value) in [
            (RPC, "rpc-secret", mesh.rpc_secret.as_str()),
            (ADMIN, "admin-token", mesh.token(site, site)),
            (REMOTE, "token", mesh.token(site, site.other())),
        ] {
            self.put_secret(site, name, key, value).await;
        }
        Ok(())
    }

    /// The scene's namespace, at both sites.
    pub fn namespace(&self) -> &str {
        &self.shared.name
    }

    /// Its mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.shared.mesh
    }

    /// Where the parts of the pair are.
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// A folder that goes with the scene.
    pub fn folder(&self) -> &Path {
        self.shared.folder.path()
    }

    /// Faults and rules of the hub.
    pub fn control(&self) -> &Control {
        &self.shared.control
    }

    /// Where the hub's journal ended when the scene was set.
    pub fn journal_begin(&self) -> u64 {
        self.shared.journal_begin
    }

    /// A client of a site that may do everything.
    pub fn client(&self, site: Site) -> Client {
        self.shared.clients.at(site).0.clone()
    }

    /// GarageClusters of the scene.
    pub fn clusters(&self, site: Site) -> Api<DynamicObject> {
        objects::clusters(self.client(site), self.namespace())
    }

    /// GarageNodes of the scene.
    pub fn nodes(&self, site: Site) -> Api<DynamicObject> {
        objects::nodes(self.client(site), self.namespace())
    }

    /// The usual GarageCluster of a site.
    pub fn cluster(&self, site: Site, role: Role) -> Value {
        manifest::cluster(self.namespace(), site, role)
    }

    /// Starts an operator for the scene's namespace at `site`, and waits until it is ready.
    pub async fn operator(&self, site: Site, flags: &[&str]) -> Operator {
        self.operator_with(site, |launching| launching.flags(flags)).await
    }

    /// Starts an operator at `site` as `adjust` wants it, and waits until it is ready.
    pub async fn operator_with(&self, site: Site, adjust: impl FnOnce(&mut Launching)) -> Operator {
        let mut launching = self.launching(site, &[]);
        adjust(&mut launching);
        let operator = launching.start(&self.shared.launcher).await;
        self.keep(operator.unwrap())
    }

    /// Starts an operator that may end before it is ready.
    pub async fn doomed_operator(&self, site: Site, flags: &[&str]) -> Operator {
        let (operator, _) = self.launching(site, flags).launch(&self.shared.launcher).await.unwrap();
        self.keep(operator)
    }

    fn launching(&self, site: Site, flags: &[&str]) -> Launching {
        let number = self.operators().len();
        let name = format!("operator-{site}-{number}");
        let mut launching = Launching::new(&name, self.description().sites.at(site), self.folder());
        launching.watch(self.namespace());
        launching.flags(flags);
        launching
    }

    fn keep(&self, operator: Operator) -> Operator {
        self.shared.operators.lock().unwrap_or_else(PoisonError::into_inner).push(operator.clone());
        operator
    }

    fn operators(&self) -> Vec<Operator> {
        self.shared.operators.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates or replaces a Secret of one key.
    pub async fn put_secret(&self, site: Site, name: &str, key: &str, value: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.client(site), self.namespace());
        let secret = Secret {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([(
                key.to_owned(),
                k8s_openapi::ByteString(value.as_bytes().to_vec()),
            )])),
            ..Secret::default()
        };
        drop(secrets.delete(name, &DeleteParams::default()).await);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }

    /// What there is to see after a failure.
    pub async fn epitaph(&self) -> String {
        let mut text = String::new();
        for site in Site::ALL {
            for api in [self.clusters(site), self.nodes(site)] {
                for object in api.list(&kube::api::ListParams::default()).await.into_iter().flatten() {
                    let name = object.metadata.name.clone().unwrap_or_default();
                    let words = objects::conditions_in_words(&object);
                    text.push_str(&format!("\n{site} {name}: {words}"));
                }
            }
        }
        for call in self.calls_of_all() {
            text.push_str(&format!("\nwrite {call:?}"));
        }
        for operator in self.operators() {
            text.push_str(&format!("\n--- {}\n{}", operator.child.name(), operator.child.log_tail(40)));
        }
        text
    }

    /// Ends the scene's processes and removes what it made.
    pub async fn strike(&self) {
        self.shared.launcher.stop_all(Duration::ZERO).await;
        for site in Site::ALL {
            let namespaces: Api<Namespace> = Api::all(self.client(site));
            drop(namespaces.delete(self.namespace(), &DeleteParams::default()).await);
            for api in [self.clusters(site), self.nodes(site)] {
                let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                for object in api.list(&kube::api::ListParams::default()).await.into_iter().flatten() {
                    let name = object.metadata.name.unwrap_or_default();
                    drop(api.patch(&name, &PatchParams::default(), &release).await);
                }
            }
        }
        drop(self.shared.hub.delete_mesh(&self.mesh().name).await);
    }
}

async fn client(kubeconfig: &Path) -> Result<Client, Failed> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
