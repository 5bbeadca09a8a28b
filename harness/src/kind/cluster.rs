//! One cluster.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use kube::Client;

use super::config::{self, Networks};
use super::docker::Docker;
use super::error::KindError;
use super::image::Archive;
use super::names::{CLUSTER_LABEL, Names};
use super::node_image::NodeImage;
use crate::pair::secret_file;
use crate::process::{Launch, Launcher, log_tail::log_tail};
use crate::run::execute::client;
use crate::site::Site;
use crate::supervisor::Context;

/// How many lines of the kind CLI's log are shown when it fails.
const TAIL: usize = 30;

/// What all clusters of a pair are made with.
#[derive(Debug, Clone)]
pub struct Workshop {
    /// The daemon.
    pub docker: Docker,
    /// The kind CLI.
    pub kind: PathBuf,
    /// The names of the pair.
    pub names: Names,
    /// The image of the nodes.
    pub image: NodeImage,
    /// The pair's folder, launcher and progress.
    pub context: Context,
}

/// A cluster that runs.
#[derive(Clone)]
pub struct Cluster {
    /// Its site.
    pub site: Site,
    /// The container that is its node.
    pub node: String,
    /// Its networks.
    pub networks: Networks,
    /// An administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// Its API server's audit log.
    pub audit_log: PathBuf,
    /// The log of its creation.
    pub log: PathBuf,
    /// An administrator's client.
    pub client: Client,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The files of a site.
struct Files {
    folder: PathBuf,
    config: PathBuf,
    kubeconfig: PathBuf,
    audit_log: PathBuf,
    log: PathBuf,
}

impl Workshop {
    /// Creates the cluster of `site`, with the pair's names on the pair's network.
    pub async fn create(&self, site: Site) -> Result<Cluster, KindError> {
        let networks =
            config::networks(site).map_err(|source| KindError::at(site, "read its configuration", source))?;
        let files = self.files(site, &networks)?;
        self.refuse_foreign(site).await?;
        self.context.progress.report(site.name(), "creating the cluster");
        let name = self.names.cluster(site);
        let arguments = [
            "create".into(),
            "cluster".into(),
            "--name".into(),
            name.clone().into(),
            "--image".into(),
            self.image.name.clone().into(),
            "--config".into(),
            files.config.clone().into_os_string(),
            "--kubeconfig".into(),
            files.kubeconfig.clone().into_os_string(),
            "--retain".into(),
            "--verbosity=1".into(),
        ];
        if !self.kind(&format!("{site}-create"), arguments.to_vec(), &files.log).await? {
            self.export_logs(site, &files).await;
            return Err(KindError::Create { site, tail: log_tail(&files.log, TAIL), log: files.log });
        }
        let connected = client(&files.kubeconfig).await;
        let client = connected.map_err(|source| KindError::at(site, "connect to the API server", source))?;
        self.context.progress.report(site.name(), "the API server answers");
        Ok(Cluster {
            site,
            node: self.names.node(site),
            networks,
            kubeconfig: files.kubeconfig,
            audit_log: files.audit_log,
            log: files.log,
            client,
        })
    }

    /// Puts an image onto the node of `site`, and makes sure that it is there as it was made.
    pub async fn load(&self, site: Site, archive: &Archive) -> Result<(), KindError> {
        let log = self.context.folder.join("sites").join(site.name()).join("load.log");
        let part = archive.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let arguments = [
            "load".into(),
            "image-archive".into(),
            archive.path.clone().into_os_string(),
            "--name".into(),
            self.names.cluster(site).into(),
        ];
        if !self.kind(&format!("{site}-load-{part}"), arguments.to_vec(), &log).await? {
            let tail = log_tail(&log, TAIL);
            return Err(KindError::at(site, format!("load {}", archive.reference), tail));
        }
        self.verify(site, archive).await
    }

    async fn verify(&self, site: Site, archive: &Archive) -> Result<(), KindError> {
        let node = self.names.node(site);
        let filter = format!("name=={}", archive.reference);
        let listed =
            self.docker.run(&["exec", &node, "ctr", "-n", "k8s.io", "images", "ls", &filter]).await?;
        // Old archives have no manifest, so a node makes one: all that can be asked then is whether it is there.
        let wanted = if archive.digest.is_empty() { &archive.reference } else { &archive.digest };
        if listed.split_whitespace().any(|word| word == wanted || word.ends_with(&format!("/{wanted}"))) {
            return Ok(());
        }
        let found = listed
            .split_whitespace()
            .find(|word| word.starts_with("sha256:"))
            .unwrap_or("nothing")
            .to_owned();
        Err(KindError::ImageDiffers {
            node,
            image: archive.reference.clone(),
            found,
            wanted: archive.digest.clone(),
        })
    }

    /// A cluster of that name cannot be ours: it has not been made yet.
    async fn refuse_foreign(&self, site: Site) -> Result<(), KindError> {
        let name = self.names.cluster(site);
        let known = self.docker.containers(&[&format!("label={CLUSTER_LABEL}={name}")]).await?;
        if known.is_empty() { Ok(()) } else { Err(KindError::Foreign { what: "the kind cluster", name }) }
    }

    /// Runs the kind CLI as a child that cannot outlive this process, and says whether it succeeded.
    async fn kind(&self, name: &str, args: Vec<OsString>, log: &Path) -> Result<bool, KindError> {
        let launcher: &Launcher = &self.context.launcher;
        let own = [
            ("KIND_EXPERIMENTAL_PROVIDER", "docker".to_owned()),
            ("KIND_EXPERIMENTAL_DOCKER_NETWORK", self.names.network()),
        ];
        let launch = Launch {
            name: name.to_owned(),
            program: self.kind.clone(),
            args,
            env: self
                .docker
                .environment()
                .chain(own.map(|(name, value)| (name.into(), value.into())))
                .collect(),
            log: log.to_owned(),
        };
        let started = launcher.launch(launch).await;
        let child = started.map_err(|error| KindError::NoTool { problem: crate::failure::chain(&error) })?;
        Ok(child.exited().await.success())
    }

    /// Saves what the node of a cluster that did not start has to say. It is looked at beside the error.
    async fn export_logs(&self, site: Site, files: &Files) {
        self.context.progress.report(site.name(), "saving the logs of the cluster that did not start");
        let arguments = [
            "export".into(),
            "logs".into(),
            files.folder.join("export").into_os_string(),
            "--name".into(),
            self.names.cluster(site).into(),
        ];
        let log = files.folder.join("export.log");
        if !matches!(self.kind(&format!("{site}-export"), arguments.to_vec(), &log).await, Ok(true)) {
            tracing::warn!(%site, log = %log.display(), "the logs of the cluster could not be saved");
        }
    }

    fn files(&self, site: Site, networks: &Networks) -> Result<Files, KindError> {
        let folder = self.context.folder.join("sites").join(site.name());
        let (node, audit) = (folder.join("node"), folder.join("audit"));
        for folder in [&node, &audit] {
            let made = secret_file::create_folder(folder);
            made.map_err(|error| KindError::File { path: error.path, source: error.source })?;
        }
        let files = Files {
            config: folder.join("cluster.json"),
            kubeconfig: folder.join("admin.kubeconfig"),
            audit_log: audit.join("audit.jsonl"),
            log: folder.join("create.log"),
            folder,
        };
        let config = config::cluster(site, self.image.flavour, &node, &audit);
        let config = config.map_err(|source| KindError::at(site, "write its configuration", source))?;
        put(&node.join("networks"), &networks.assignments())?;
        put(&node.join("audit-policy.yaml"), config::AUDIT_POLICY)?;
        put(&files.config, &config)?;
        // It is there before the API server is, so that it stays this user's and is not root's.
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&files.audit_log);
        log.map_err(|source| KindError::File { path: files.audit_log.clone(), source })?;
        Ok(files)
    }
}

fn put(path: &Path, text: &str) -> Result<(), KindError> {
    fs::write(path, text).map_err(|source| KindError::File { path: path.to_owned(), source })
}
