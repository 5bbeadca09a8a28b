//! Two control planes, and who may do what on them.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use harness::failure::BoxError;
use harness::local::{ControlPlane, Identity, LocalPair, ServiceAccountName, Settings};
use harness::pair::manifests::{self, Manifest};
use harness::process::{Launcher, Marker};
use harness::progress::Silent;
use harness::site::{PerSite, Site};
use harness::toolchain::{Environment, prepare};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::objects::Side;

/// Namespace of both hubs.
pub const HUB_NAMESPACE: &str = "kubeslice-controller";

/// Two control planes, with definitions and roles, and no hub yet.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    folder: tempfile::TempDir,
    launcher: Launcher,
    pair: LocalPair,
    sides: PerSite<Side>,
    block: u8,
    next: AtomicU8,
}

/// Stops everything, and shows what was logged.
pub struct Keeper(Arc<Inner>);

impl Keeper {
    pub async fn stop(&self) {
        self.0.launcher.stop_all(Duration::ZERO).await;
    }

    /// The ends of all logs of hubs.
    pub fn logs(&self) -> String {
        let mut logs: Vec<PathBuf> = std::fs::read_dir(self.0.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        logs.sort();
        let tail = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let from = lines.len().saturating_sub(60);
            format!("--- {}\n{}\n", path.display(), lines[from..].join("\n"))
        };
        logs.iter().map(tail).collect()
    }
}

impl World {
    pub async fn new() -> Result<Self, BoxError> {
        let folder = tempfile::tempdir()?;
        let marker = Marker { id: "hub-test".into(), folder: folder.path().into() };
        let launcher = Launcher::new(folder.path().join("processes"), marker)?;
        let binaries = prepare(&Environment::of_process()?, &launcher, &Silent).await?;
        let block = u8::try_from(200 + std::process::id() % 50)?;
        let address = |host| Ipv4Addr::new(127, block, 0, host);
        let settings = Settings {
            folder: folder.path().join("pair"),
            addresses: PerSite { east: address(1), west: address(2) },
            operator: ServiceAccountName { namespace: HUB_NAMESPACE.into(), name: "hub-controller".into() },
            objects: manifests::parse(&deploy(&["crd", "rbac", "reader"]))?,
        };
        let pair = LocalPair::start(&launcher, &binaries, &settings, &Silent).await?;
        let client = async |site: Site| pair.at(site).client(Identity::Admin).await;
        let sides = PerSite {
            east: Side::new(Site::East, client(Site::East).await?),
            west: Side::new(Site::West, client(Site::West).await?),
        };
        let world = Self(Arc::new(Inner { folder, launcher, pair, sides, block, next: AtomicU8::new(1) }));
        Ok(world)
    }

    pub fn keeper(&self) -> Keeper {
        Keeper(Arc::clone(&self.0))
    }

    pub fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    pub fn launcher(&self) -> &Launcher {
        &self.0.launcher
    }

    pub fn plane(&self, site: Site) -> &ControlPlane {
        self.0.pair.at(site)
    }

    pub fn east(&self) -> &Side {
        &self.0.sides.east
    }

    pub fn west(&self) -> &Side {
        &self.0.sides.west
    }

    pub fn side(&self, site: Site) -> &Side {
        self.0.sides.at(site)
    }

    /// An address that nobody else of this world listens at.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, self.0.block, 1, self.0.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A kubeconfig with which a Standby reads the Active at `site`.
    pub async fn reader_of(&self, site: Site) -> Value {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.side(site).client.clone(), HUB_NAMESPACE);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() }),
            ..TokenRequest::default()
        };
        let name = "hub-controller-standby-reader";
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
        self.kubeconfig(site, &answer.status.unwrap().token.unwrap())
    }

    /// A kubeconfig for `site` with this token.
    pub fn kubeconfig(&self, site: Site, token: &str) -> Value {
        let text = std::fs::read_to_string(self.plane(site).kubeconfig(Identity::Admin)).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        document["users"][0]["user"] = json!({ "token": token });
        document
    }

    /// Puts the way to the Active into the Standby's Secret.
    pub async fn give_way(&self, standby: Site, kubeconfig: &Value) {
        let secrets: Api<Secret> = Api::namespaced(self.side(standby).client.clone(), HUB_NAMESPACE);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "active-hub-kubeconfig"},
            "stringData": {"kubeconfig": kubeconfig.to_string()},
        });
        let params = PatchParams::apply("tests").force();
        secrets.patch("active-hub-kubeconfig", &params, &Patch::Apply(&secret)).await.unwrap();
    }
}

/// The objects in folders of the hub's manifests.
fn deploy(folders: &[&str]) -> Vec<Manifest> {
    let mut files = Vec::new();
    for folder in folders {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(folder);
        files.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.sort();
    let manifest = |path: PathBuf| Manifest {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        text: std::fs::read_to_string(path).unwrap(),
    };
    files.into_iter().map(manifest).collect()
}
