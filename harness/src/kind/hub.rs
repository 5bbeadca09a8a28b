//! The hub as a container on the pair's network, where pods reach it by name.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use testcontainers::bollard::models::{HostConfig, PortBinding};
use testcontainers::core::{ContainerPort, IntoContainerPort as _, Mount, WaitFor};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};

use super::docker::Docker;
use super::error::KindError;
use super::image::Archive;
use super::names::{Names, OWNER_LABEL};
use crate::failure::BoxError;
use crate::garage::hub::Hub;
use crate::pair::hub::secret;
use crate::pair::secret_file;
use crate::process::{Child, Launch};
use crate::supervisor::{Context, address};

/// How long the hub may take to say that it is ready.
const READY: Duration = Duration::from_secs(30);
/// How long it may take to end by itself, in seconds.
const GRACE: i32 = 3;

/// Where the pair's folder for the hub is in the container.
const FOLDER: &str = "/hub";
/// The port of west's proxy in the container; east's has the usual one.
const WEST_PROXY: u16 = address::PROXY_PORT + 1;
/// Addresses of nodes that no pod plays, in the container.
const NODES: &str = "127.20.1.1+1000";

/// A hub that runs in a container.
#[derive(Debug)]
pub struct HubContainer {
    container: Mutex<Option<ContainerAsync<GenericImage>>>,
    /// Its name, on the network, too.
    pub name: String,
    /// A client of its control API.
    pub client: Hub,
    /// URL of its control API on this machine.
    pub control: String,
    /// URL of the same for pods.
    pub for_pods: String,
    /// File with the control token.
    pub token_file: PathBuf,
    /// Its journal.
    pub journal: PathBuf,
    /// Its log.
    pub log: PathBuf,
    /// Whoever writes the log.
    pub follower: Child,
}

/// What the hub and its pods have to agree on before there is a hub.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// The control token.
    pub token: String,
    /// URL of the control API for pods.
    pub url: String,
}

impl Agreement {
    /// For the pair with `names`.
    #[must_use]
    pub fn new(names: &Names) -> Self {
        // With a dot at its end the name is whole, and no domain of a pod's is tried after it.
        Self { token: secret(), url: format!("http://{}.:{}", names.hub(), address::HUB_PORT) }
    }
}

/// Starts the hub from the image in `archive`, and waits until it says that it is ready.
pub async fn start(
    docker: &Docker,
    names: &Names,
    archive: &Archive,
    agreement: &Agreement,
    context: &Context,
    seed: u64,
) -> Result<HubContainer, KindError> {
    let rootless = docker.daemon().await?.rootless;
    docker.run_from(&["load", "--quiet"], &archive.path).await?;
    context.progress.report("hub", "starting");
    let started = run(docker, names, agreement, context, seed, rootless).await;
    started.map_err(KindError::Hub)
}

async fn run(
    docker: &Docker,
    names: &Names,
    agreement: &Agreement,
    context: &Context,
    seed: u64,
    rootless: bool,
) -> Result<HubContainer, BoxError> {
    let folder = context.folder.join("hub");
    secret_file::create_folder(&folder)?;
    let token_file = folder.join("control-token");
    secret_file::write(&token_file, agreement.token.as_bytes())?;
    let log = folder.join("hub.log");
    let published = ports(context);
    let request = GenericImage::new(Names::image("hub"), names.id().to_owned())
        .with_wait_for(WaitFor::message_on_stdout("\"ready\":true"))
        .with_cmd(arguments(names, seed))
        .with_container_name(names.hub())
        .with_network(names.network())
        .with_label(OWNER_LABEL, names.id())
        .with_mount(Mount::bind_mount(folder.display().to_string(), FOLDER))
        .with_user(user(rootless))
        .with_env_var("RUST_LOG", "info")
        .with_startup_timeout(READY)
        .with_host_config_modifier(move |config: &mut HostConfig| {
            config.port_bindings = Some(published.clone());
        });
    let container = request.start().await?;
    let follow = Launch {
        name: "hub-log".to_owned(),
        program: "docker".into(),
        args: ["logs".into(), "--follow".into(), names.hub().into()].to_vec(),
        env: docker.environment().collect(),
        log: log.clone(),
    };
    let follower = context.launcher.launch(follow).await?;
    let control = format!("http://{}", context.addresses.hub());
    Ok(HubContainer {
        container: Mutex::new(Some(container)),
        name: names.hub(),
        client: Hub::new(&control, &agreement.token)?,
        control,
        for_pods: agreement.url.clone(),
        token_file,
        journal: folder.join("journal.jsonl"),
        log,
        follower,
    })
}

fn arguments(names: &Names, seed: u64) -> Vec<String> {
    let everywhere = |port: u16| format!("0.0.0.0:{port}");
    [
        "serve".to_owned(),
        format!("--listen={}", everywhere(address::HUB_PORT)),
        format!("--control-token-file={FOLDER}/control-token"),
        format!("--journal={FOLDER}/journal.jsonl"),
        format!("--run={}", names.id()),
        format!("--node-network={NODES}"),
        format!("--proxy=east={}", everywhere(address::PROXY_PORT)),
        format!("--proxy=west={}", everywhere(WEST_PROXY)),
        format!("--seed={seed}"),
    ]
    .to_vec()
}

/// The hub is on the same addresses of this machine as one without a container, and on no others.
fn ports(context: &Context) -> std::collections::HashMap<String, Option<Vec<PortBinding>>> {
    let own = &context.addresses;
    let published = [
        (address::HUB_PORT.tcp(), own.hub()),
        (address::PROXY_PORT.tcp(), own.east_proxy()),
        (WEST_PROXY.tcp(), own.west_proxy()),
    ];
    let binding = |(port, at): (ContainerPort, std::net::SocketAddr)| {
        let binding =
            PortBinding { host_ip: Some(at.ip().to_string()), host_port: Some(at.port().to_string()) };
        (port.to_string(), Some(vec![binding]))
    };
    published.into_iter().map(binding).collect()
}

/// Whoever may write into the pair's folder: this user, whom a daemon without root's rights calls root.
fn user(rootless: bool) -> String {
    if rootless {
        return "0:0".to_owned();
    }
    format!("{}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

impl HubContainer {
    /// Ends it in order, so that its journal is whole.
    pub async fn stop(&self) -> Result<(), BoxError> {
        let container = self.container.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(container) = container {
            container.stop_with_timeout(Some(GRACE)).await?;
            self.follower.exited().await;
            container.rm().await?;
        }
        Ok(())
    }
}
