//! The pair that a supervisor owns, from whichever provider; two local sites with a hub, an agent and the operator under
//! test.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join};
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::equipment::Equipment;
use super::hub::{self, RunningHub};
use super::manifests::{self, Manifest};
use super::operator::{self, OperatorLaunch, RunningOperator};
use super::{HubDescription, OperatorDescription, PairDescription, SiteDescription};
use crate::agent::Agent;
use crate::garage::runtime::GarageRuntime;
use crate::kind::federation::{self as clusters, Programs};
use crate::local::{Identity, LocalPair, ServiceAccountName, Settings};
use crate::process::Child;
use crate::scenario::Disturbance;
use crate::site::{PerSite, Site};
use crate::supervisor::{AnyError, Context, LogTail, Pair, PartDeath, ProgressSink, Running, StartError};
use crate::toolchain;

/// How long an API server may take to answer what it has begun, before it is ended on purpose.
const API_SERVER_GRACE: Duration = Duration::from_secs(2);
/// How long the hub may take to stop by itself.
const HUB_GRACE: Duration = Duration::from_secs(3);

/// Where the sites of a pair come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Real control planes as local processes.
    #[default]
    Local,
    /// Two kind clusters.
    Kind,
}

impl Provider {
    /// Its name, as it is given to `--provider`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Kind => "kind",
        }
    }
}

/// What a client asks a pair to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairOptions {
    /// Where its sites come from.
    #[serde(default)]
    pub provider: Provider,
    /// The image of kind's nodes; none for the one that is at hand, or can be built.
    #[serde(default)]
    pub node_image: Option<String>,
    /// The operator to run; none for the reference operator.
    #[serde(default)]
    pub operator_bin: Option<PathBuf>,
    /// An image of the operator to run: the name of one that the Docker daemon has, or an archive. Only in clusters.
    #[serde(default)]
    pub operator_image: Option<String>,
    /// Manifests to run the operator by, in place of the reference operator's: a file, or a folder of files. Only in
    /// clusters.
    #[serde(default)]
    pub operator_manifests: Option<PathBuf>,
    /// Further arguments for it.
    #[serde(default)]
    pub operator_args: Vec<String>,
    /// Whether the operator has webhooks, and they are to be installed.
    #[serde(default)]
    pub webhooks: bool,
    /// Where the random choices of the meshes come from.
    #[serde(default)]
    pub seed: u64,
}

/// Finds, or builds, a program to run.
pub type Resolve = fn(PairOptions, Context) -> BoxFuture<'static, Result<PathBuf, AnyError>>;

/// Two sites with a hub and the operator under test, from whichever provider.
#[derive(Debug, Clone)]
pub struct Federation {
    /// The operator's definitions and permissions, without webhooks.
    pub manifests: Vec<Manifest>,
    /// The same with webhooks.
    pub webhook_manifests: Vec<Manifest>,
    /// What runs the operator in a cluster.
    pub workload: Vec<Manifest>,
    /// The same, and what its webhooks need, with webhooks.
    pub webhook_workload: Vec<Manifest>,
    /// Finds the operator.
    pub resolve_operator: Resolve,
    /// Finds the fake Garage that pods run.
    pub resolve_garage: Resolve,
}

impl Pair for Federation {
    fn start(&self, context: Context) -> BoxFuture<'static, Result<Arc<dyn Running>, StartError>> {
        let federation = self.clone();
        async move { Box::pin(federation.start_from(context)).await.map_err(StartError::new) }.boxed()
    }
}

impl Federation {
    async fn start_from(self, context: Context) -> Result<Arc<dyn Running>, AnyError> {
        let options: PairOptions = serde_json::from_value(context.options.clone())?;
        let (mut manifests, workload) = if options.webhooks {
            (self.webhook_manifests, self.webhook_workload)
        } else {
            (self.manifests, self.workload)
        };
        if options.provider == Provider::Local {
            return Ok(Arc::new(start(manifests, options, self.resolve_operator, context).await?));
        }
        manifests.extend(workload);
        if let Some(given) = &options.operator_manifests {
            manifests = manifests::read(given)?;
        }
        let objects = manifests::parse(&manifests)?;
        let operator = match &options.operator_image {
            Some(image) => PathBuf::from(image),
            None => (self.resolve_operator)(options.clone(), context.clone()).await?,
        };
        let programs =
            Programs { operator, garage: (self.resolve_garage)(options.clone(), context.clone()).await? };
        Ok(Arc::new(Box::pin(clusters::start(&objects, &options, programs, context)).await?))
    }
}

/// Measures phases of a start.
pub(crate) struct Phases {
    started: Instant,
    durations_ms: BTreeMap<String, u64>,
}

impl Phases {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), durations_ms: BTreeMap::new() }
    }

    /// Milliseconds that each took.
    pub(crate) fn durations_ms(self) -> BTreeMap<String, u64> {
        self.durations_ms
    }

    /// The phase that began when the last one ended is over.
    pub(crate) fn ended(&mut self, name: &str) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.durations_ms.insert(name.to_owned(), elapsed);
        self.started = Instant::now();
    }
}

async fn start(
    manifests: Vec<Manifest>,
    options: PairOptions,
    resolve: Resolve,
    context: Context,
) -> Result<RunningFederation, AnyError> {
    let mut phases = Phases::new();
    let objects = manifests::parse(&manifests)?;
    let progress = |part| SinkProgress { part, sink: context.progress.clone() };
    let environment = toolchain::Environment::of_process()?;
    let binaries = toolchain::prepare(&environment, &context.launcher, &progress("programs")).await?;
    let program = resolve(options.clone(), context.clone()).await?;
    phases.ended("prepare");
    let settings = Settings {
        folder: context.folder.join("sites"),
        addresses: PerSite { east: context.addresses.east(), west: context.addresses.west() },
        operator: ServiceAccountName {
            namespace: operator::NAMESPACE.into(),
            name: "garage-operator".into(),
        },
        objects,
    };
    let run = context.addresses.to_string();
    let hub = hub::start(&context.launcher, &context.folder, context.addresses, &run, options.seed);
    let sites = async {
        let progress = progress("sites");
        LocalPair::start(&context.launcher, &binaries, &settings, &progress).await.map_err(AnyError::from)
    };
    let (hub, sites) = try_join(hub, sites).await?;
    phases.ended("sites");
    let running = RunningFederation::furnish(context, program, &options, hub, sites).await?;
    phases.ended("operators");
    Ok(running.timed(phases.durations_ms()))
}

/// Resolves with the first death only: whatever follows, the pair is not whole any more.
pub(crate) async fn told_once(
    told: &Mutex<Option<String>>,
    death: impl Future<Output = PartDeath>,
) -> PartDeath {
    if told.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
        return std::future::pending().await;
    }
    let death = death.await;
    *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(death.part.clone());
    death
}

/// What clients may ask of a pair.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Request {
    Disturb(Disturbance),
    Equip(Equipment),
}

/// A pair that is there.
#[derive(Debug)]
struct RunningFederation {
    hub: RunningHub,
    sites: LocalPair,
    agent: Agent,
    operators: PerSite<RunningOperator>,
    description: PairDescription,
    /// The part whose end was told.
    told: Mutex<Option<String>>,
}

impl RunningFederation {
    /// Puts the agent and the operators onto sites that are there.
    async fn furnish(
        context: Context,
        program: PathBuf,
        options: &PairOptions,
        hub: RunningHub,
        sites: LocalPair,
    ) -> Result<Self, AnyError> {
        context.progress.report("agent", "starting");
        let agent = start_agent(&sites, &hub).await?;
        context.progress.report("operators", "starting");
        let start = |site: Site| start_operator(&context, &program, options, &sites, site);
        let (east, west) = try_join(start(Site::East), start(Site::West)).await?;
        let operators = PerSite { east, west };
        try_join(operators.east.ready(), operators.west.ready()).await?;
        let description = describe(&context, &program, &hub, &sites, &operators);
        Ok(Self { hub, sites, agent, operators, description, told: Mutex::default() })
    }

    fn timed(mut self, durations_ms: BTreeMap<String, u64>) -> Self {
        self.description.durations_ms = durations_ms;
        self
    }

    /// Waits until a program ends that was not told to.
    async fn ended(&self) -> Child {
        let hub = async {
            self.hub.child.exited().await;
            self.hub.child.clone()
        };
        tokio::select! {
            child = hub => child,
            child = self.operators.east.program.died() => child,
            child = self.operators.west.program.died() => child,
            child = self.sites.at(Site::East).died() => child,
            child = self.sites.at(Site::West).died() => child,
        }
    }

    /// Breaks or mends what `what` says, and returns when that is done.
    async fn disturb(&self, what: Disturbance) -> Result<(), AnyError> {
        let operator = |site: Site| self.operators.at(site);
        match what {
            Disturbance::EndOperator { site } => operator(site).program.end(Duration::ZERO).await,
            Disturbance::ReviveOperator { site } => self.revive_operator(site).await?,
            Disturbance::EndApiServer { site } => {
                // An operator that cannot keep its Lease may end by itself.
                operator(site).program.excuse();
                self.sites.at(site).end_api_server(API_SERVER_GRACE).await;
            }
            Disturbance::ReviveApiServer { site } => self.revive_site(site).await?,
            Disturbance::ReviveAll => {
                for site in Site::ALL {
                    if self.sites.at(site).is_api_server_down() {
                        self.revive_site(site).await?;
                    } else {
                        self.revive_operator(site).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs other operators from now on.
    async fn equip(&self, with: &Equipment) -> Result<(), AnyError> {
        let at = async |site: Site| {
            let admin = self.sites.at(site).client(Identity::Admin).await?;
            self.operators.at(site).equip(with, admin).await
        };
        try_join(at(Site::East), at(Site::West)).await.map(drop)
    }

    async fn revive_operator(&self, site: Site) -> Result<(), AnyError> {
        let admin = self.sites.at(site).client(Identity::Admin).await?;
        self.operators.at(site).revive(admin).await
    }

    /// Starts the API server of `site` again, and its operator if that has ended or is about to.
    async fn revive_site(&self, site: Site) -> Result<(), AnyError> {
        // Whatever the operator renews from now on it renews at the server that is started.
        let since = Timestamp::now();
        self.sites.at(site).revive_api_server().await?;
        let admin = self.sites.at(site).client(Identity::Admin).await?;
        self.operators.at(site).made_up_its_mind(admin.clone(), since).await?;
        self.operators.at(site).revive(admin).await
    }
}

async fn start_agent(sites: &LocalPair, hub: &RunningHub) -> Result<Agent, AnyError> {
    let client = async |site: Site| sites.at(site).client(Identity::Agent).await;
    let clients = PerSite { east: client(Site::East).await?, west: client(Site::West).await? };
    let runtime = Arc::new(GarageRuntime::new(hub.client.clone()));
    Ok(Agent::start(clients, runtime.clone(), runtime).await?)
}

async fn start_operator(
    context: &Context,
    program: &std::path::Path,
    options: &PairOptions,
    sites: &LocalPair,
    site: Site,
) -> Result<RunningOperator, AnyError> {
    let launch = OperatorLaunch {
        site,
        program: program.to_owned(),
        arguments: options.operator_args.clone(),
        kubeconfig: sites.at(site).kubeconfig(Identity::Operator).to_owned(),
        address: sites.at(site).address(),
        proxy: match site {
            Site::East => context.addresses.east_proxy(),
            Site::West => context.addresses.west_proxy(),
        },
        folder: context.folder.join("operators"),
        webhooks: options.webhooks,
    };
    operator::start(&context.launcher, &launch).await
}

fn describe(
    context: &Context,
    program: &std::path::Path,
    hub: &RunningHub,
    sites: &LocalPair,
    operators: &PerSite<RunningOperator>,
) -> PairDescription {
    let site = |site: Site| {
        let (control_plane, operator) = (sites.at(site), operators.at(site));
        let logs = control_plane.programs().map(|child| (child.name().to_owned(), child.log().to_owned()));
        SiteDescription {
            api_server: control_plane.url().to_owned(),
            kubeconfig: control_plane.kubeconfig(Identity::Admin).to_owned(),
            audit_log: control_plane.audit_log().to_owned(),
            logs: logs.into_iter().collect(),
            operator: OperatorDescription {
                program: program.to_owned(),
                metrics: operator.metrics.clone(),
                log: operator.program.child().log().to_owned(),
            },
        }
    };
    PairDescription {
        name: context.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        provider: Provider::Local.name().to_owned(),
        dir: context.folder.clone(),
        sites: PerSite::from_fn(site),
        hub: HubDescription {
            control: hub.control.clone(),
            token_file: hub.token_file.clone(),
            journal: hub.journal.clone(),
            log: hub.child.log().to_owned(),
            nodes: None,
        },
        versions: versions(),
        durations_ms: BTreeMap::new(),
    }
}

fn versions() -> BTreeMap<String, String> {
    [
        ("onewriter".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("kubernetes".to_owned(), toolchain::pins::kubernetes_version().to_owned()),
        ("etcd".to_owned(), toolchain::pins::etcd_version().to_owned()),
    ]
    .into()
}

impl Running for RunningFederation {
    fn description(&self) -> Value {
        serde_json::to_value(&self.description).unwrap_or_default()
    }

    fn died(&self) -> BoxFuture<'_, PartDeath> {
        let death = async {
            let child = self.ended().await;
            let name = child.name().to_owned();
            let log = LogTail::read(name.clone(), child.log());
            PartDeath { status: child.exited().await.to_string(), log, part: name }
        };
        told_once(&self.told, death).boxed()
    }

    fn request(&self, body: Value) -> BoxFuture<'_, Result<Value, AnyError>> {
        async move {
            let request = serde_json::from_value(body.clone())
                .map_err(|error| format!("this pair knows no request `{body}`: {error}"))?;
            match request {
                Request::Disturb(what) => self.disturb(what).await?,
                Request::Equip(with) => self.equip(&with).await?,
            }
            Ok(Value::Null)
        }
        .boxed()
    }

    /// Operators first, so that nothing is written any more; then the agent and the hub, whose journal is complete
    /// then; the control planes last.
    fn stop(&self) -> BoxFuture<'_, ()> {
        async move {
            futures::join!(
                self.operators.east.program.end(operator::GRACE),
                self.operators.west.program.end(operator::GRACE)
            );
            self.agent.stop().await;
            futures::join!(self.hub.child.stop(HUB_GRACE), self.sites.stop());
        }
        .boxed()
    }
}

/// Passes the progress of the toolchain and the sites on to the pair's clients.
struct SinkProgress {
    part: &'static str,
    sink: ProgressSink,
}

impl crate::progress::Progress for SinkProgress {
    fn report(&self, event: crate::progress::Event<'_>) {
        self.sink.report(self.part, crate::progress::lines::line(event));
    }
}
