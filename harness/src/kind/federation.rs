//! Two kind clusters with a hub and the operator under test: a pair that a supervisor owns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all, try_join, try_join_all};
use serde_json::Value;

use super::belongings::Belongings;
use super::cluster::{Cluster, Workshop};
use super::docker::Docker;
use super::error::KindError;
use super::follow::LogFollower;
use super::hub::{self, Agreement, HubContainer};
use super::image::{self, Archive, ImageSpec, Layer};
use super::names::Names;
use super::operator::{self, Changes, DeployedOperator, Place};
use super::{given, network, node_image, tool};
use crate::failure::chain;
use crate::local::bootstrap;
use crate::pair::federation::{PairOptions, Phases, told_once};
use crate::pair::{HubDescription, OperatorDescription, PairDescription, SiteDescription, secret_file};
use crate::scenario::Disturbance;
use crate::site::{PerSite, Site};
use crate::supervisor::{AnyError, Context, LogTail, PartDeath, Running};
use crate::toolchain;

/// How long an API server may take to be back.
const API_SERVER: Duration = Duration::from_mins(2);

/// Static pods of a node: the kubelet runs what lies there.
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";
/// Where the manifest of an API server waits that was ended on purpose.
const HELD: &str = "/etc/kubernetes/kube-apiserver.held";

/// The programs that pods run.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The operator under test.
    pub operator: PathBuf,
    /// The fake Garage.
    pub garage: PathBuf,
}

/// A pair of kind clusters that is there.
#[derive(Debug)]
pub struct RunningClusters {
    belongings: Belongings,
    hub: HubContainer,
    clusters: PerSite<Cluster>,
    operators: PerSite<(DeployedOperator, LogFollower)>,
    description: PairDescription,
    /// The part whose end was told.
    told: Mutex<Option<String>>,
}

/// Images of the pair, in archives.
struct Images {
    hub: Archive,
    operator: Archive,
    garage: PerSite<Archive>,
}

/// Starts a pair: `objects` are the operator's manifests with its Deployment.
pub async fn start(
    objects: &[Value],
    options: &PairOptions,
    programs: Programs,
    context: Context,
) -> Result<RunningClusters, AnyError> {
    let mut phases = Phases::new();
    let docker = Docker::of_process();
    docker.daemon().await?;
    let workspace = node_image::workspace();
    let wanted = options.node_image.as_deref();
    let (kind, node) = try_join(
        tool::prepare(&context.launcher, &context.progress),
        node_image::prepare(
            &docker,
            workspace.as_deref(),
            wanted,
            &context.launcher,
            &context.folder,
            &context.progress,
        ),
    )
    .await?;
    phases.ended("prepare");
    let names = Names::new();
    let belongings = Belongings { docker: docker.clone(), names: names.clone() };
    // Before there is anything: whatever happens, somebody will know what to look for.
    belongings.write(&context.folder)?;
    docker.run(&["network", "create", "--label", &names.label(), &names.network()]).await?;
    let workshop = Workshop { docker, kind, names, image: node, context };
    let building = Building { workshop: &workshop, objects, options, programs: &programs };
    let (hub, clusters, place) = building.sites().await?;
    phases.ended("sites");
    let operators = building.operators(&clusters, &place).await?;
    phases.ended("operators");
    let mut description = describe(&workshop, &programs, &hub, &clusters, &operators);
    description.durations_ms = phases.durations_ms();
    Ok(RunningClusters { belongings, hub, clusters, operators, description, told: Mutex::default() })
}

/// A pair that is being built.
struct Building<'a> {
    workshop: &'a Workshop,
    objects: &'a [Value],
    options: &'a PairOptions,
    programs: &'a Programs,
}

impl Building<'_> {
    /// The hub, and both clusters with their images, their DNS and the operator's manifests.
    async fn sites(&self) -> Result<(HubContainer, PerSite<Cluster>, Place), AnyError> {
        let (workshop, agreement) = (self.workshop, Agreement::new(&self.workshop.names));
        let images = async {
            let images = self.images(&agreement).await?;
            let (docker, names) = (&workshop.docker, &workshop.names);
            let hub =
                hub::start(docker, names, &images.hub, &agreement, &workshop.context, self.options.seed)
                    .await?;
            Ok::<_, KindError>((images, hub))
        };
        let clusters = try_join(workshop.create(Site::East), workshop.create(Site::West));
        let ((images, hub), (east, west)) = try_join(images, clusters).await?;
        network::connect(&workshop.docker, &workshop.names, &east, &west).await?;
        let clusters = PerSite { east, west };
        let furnished = Site::ALL.map(|site| self.furnish(&clusters, site, &images));
        let place = try_join_all(furnished).await?.into_iter().next().ok_or("there is no site")?;
        Ok((hub, clusters, place))
    }

    async fn furnish(
        &self,
        clusters: &PerSite<Cluster>,
        site: Site,
        images: &Images,
    ) -> Result<Place, AnyError> {
        let cluster = clusters.at(site);
        network::name(cluster, &clusters.at(site.other()).networks).await?;
        self.workshop.context.progress.report(site.name(), "loading images");
        self.workshop.load(site, &images.operator).await?;
        self.workshop.load(site, images.garage.at(site)).await?;
        let changes = Changes {
            image: Some(images.operator.reference.clone()),
            garage: images.garage.at(site).reference.clone(),
            arguments: self.options.operator_args.clone(),
            webhooks: self.options.webhooks && self.options.operator_manifests.is_none(),
        };
        let (objects, place) = operator::prepare(self.objects, &changes)?;
        self.workshop.context.progress.report(site.name(), "applying the operator's manifests");
        bootstrap::create(&cluster.client, site, &objects).await?;
        Ok(place)
    }

    /// Waits for the operators, whose logs are followed from their first line on.
    async fn operators(
        &self,
        clusters: &PerSite<Cluster>,
        place: &Place,
    ) -> Result<PerSite<(DeployedOperator, LogFollower)>, AnyError> {
        let start = async |site: Site| {
            let operator = DeployedOperator::of(clusters.at(site), place).await?;
            let folder = self.workshop.context.folder.join("operators/sites").join(site.name());
            secret_file::create_folder(&folder)?;
            let follower = LogFollower::start(&operator, &folder.join("operator.log"))?;
            self.workshop.context.progress.report(site.name(), "waiting for the operator");
            try_join(operator.ready(), network::answers(clusters.at(site))).await?;
            Ok::<_, AnyError>((operator, follower))
        };
        let (east, west) = try_join(start(Site::East).boxed(), start(Site::West).boxed()).await?;
        Ok(PerSite { east, west })
    }

    /// Images of the operator, and of the fake Garage: as the hub, and as a node of each site.
    async fn images(&self, agreement: &Agreement) -> Result<Images, KindError> {
        let names = &self.workshop.names;
        self.workshop.context.progress.report("images", "making them of local programs");
        let operator = if let Some(given) = &self.options.operator_image {
            given::archive(&self.workshop.docker, given, &self.folder()).await?
        } else {
            let (spec, layer) = self.image("operator", &self.programs.operator, "garage-operator").await?;
            self.archive(&spec, &layer)?
        };
        let (garage, layer) = self.image("garage", &self.programs.garage, "garage").await?;
        let of_site = |site: Site| {
            let variables = [
                ("ONEWRITER_HUB", agreement.url.clone()),
                ("ONEWRITER_HUB_TOKEN", agreement.token.clone()),
                ("ONEWRITER_SITE", site.name().to_owned()),
            ];
            let environment = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let spec = ImageSpec {
                reference: names.tagged(&format!("garage-{site}")),
                environment,
                ..garage.clone()
            };
            self.archive(&spec, &layer)
        };
        let hub = ImageSpec {
            reference: names.tagged("hub"),
            entrypoint: vec!["/fake-garage".to_owned()],
            ..garage.clone()
        };
        Ok(Images {
            hub: self.archive(&hub, &layer)?,
            operator,
            garage: PerSite { east: of_site(Site::East)?, west: of_site(Site::West)? },
        })
    }

    /// Where archives of images are put.
    fn folder(&self) -> PathBuf {
        self.workshop.context.folder.join("images")
    }

    /// What an image of `program` is made of, with its layer.
    async fn image(&self, part: &str, program: &Path, name: &str) -> Result<(ImageSpec, Layer), KindError> {
        let failed = |source: AnyError| KindError::Image { program: program.to_owned(), source };
        let stripped = self.stripped(program, name).await;
        let mut spec = ImageSpec {
            reference: self.workshop.names.tagged(part),
            files: image::program(name, &stripped).await.map_err(failed)?,
            entrypoint: vec![format!("/{name}")],
            ..ImageSpec::default()
        };
        if part == "garage" {
            spec.links.insert("/fake-garage".into(), "garage".into());
        }
        let layer = Layer::of(&spec).map_err(|error| failed(error.into()))?;
        Ok((spec, layer))
    }

    /// The program without what only a debugger wants, if there is a tool for that: it is copied to every node.
    async fn stripped(&self, program: &Path, name: &str) -> PathBuf {
        let folder = self.folder();
        let copy = folder.join(format!("{name}.program"));
        let strip = async {
            tokio::fs::create_dir_all(&folder).await?;
            let mut command = tokio::process::Command::new("strip");
            command.arg("-o").arg(&copy).arg(program).kill_on_drop(true).output().await
        };
        match strip.await {
            Ok(output) if output.status.success() => copy,
            _ => program.to_owned(),
        }
    }

    fn archive(&self, spec: &ImageSpec, layer: &Layer) -> Result<Archive, KindError> {
        let name =
            spec.reference.rsplit('/').next().unwrap_or_default().split(':').next().unwrap_or_default();
        let path = self.folder().join(format!("{name}.tar"));
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = written.and_then(|()| image::write(spec, layer, &path));
        written.map_err(|source| KindError::File { path, source })
    }
}

fn describe(
    workshop: &Workshop,
    programs: &Programs,
    hub: &HubContainer,
    clusters: &PerSite<Cluster>,
    operators: &PerSite<(DeployedOperator, LogFollower)>,
) -> PairDescription {
    let site = |site: Site| {
        let (cluster, (operator, follower)) = (clusters.at(site), operators.at(site));
        SiteDescription {
            api_server: server(&cluster.kubeconfig),
            kubeconfig: cluster.kubeconfig.clone(),
            audit_log: cluster.audit_log.clone(),
            logs: [("kind".to_owned(), cluster.log.clone())].into(),
            operator: OperatorDescription {
                program: programs.operator.clone(),
                metrics: operator.metrics(),
                log: follower.path.clone(),
            },
        }
    };
    let own = [
        ("onewriter", env!("CARGO_PKG_VERSION")),
        ("kubernetes", toolchain::pins::kubernetes_version()),
        ("kind", tool::version()),
    ];
    let mut versions: BTreeMap<String, String> =
        own.into_iter().map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
    versions.insert("nodeImage".to_owned(), workshop.image.name.clone());
    PairDescription {
        name: workshop.context.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        provider: "kind".to_owned(),
        dir: workshop.context.folder.clone(),
        sites: PerSite::from_fn(site),
        hub: HubDescription {
            control: hub.control.clone(),
            token_file: hub.token_file.clone(),
            journal: hub.journal.clone(),
            log: hub.log.clone(),
            nodes: Some(format!("http://{}", workshop.context.addresses.east_proxy())),
        },
        versions,
        durations_ms: BTreeMap::new(),
    }
}

/// The API server that a kubeconfig names.
fn server(kubeconfig: &Path) -> String {
    let text = std::fs::read_to_string(kubeconfig).unwrap_or_default();
    let config: Value = serde_saphyr::from_str(&text).unwrap_or_default();
    config["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default().to_owned()
}

impl RunningClusters {
    /// Waits until a part ends that was not told to.
    async fn ended(&self) -> PartDeath {
        let of_container = async |part: &str, container: &str, log: &Path| {
            let status = match self.belongings.docker.ended(container).await {
                Ok(code) => format!("the container ended with {code}"),
                Err(error) => format!("the container is gone: {}", chain(&error)),
            };
            PartDeath { part: part.to_owned(), status, log: LogTail::read(part, log) }
        };
        let node = |site: Site| {
            let cluster = self.clusters.at(site);
            async move { of_container(site.name(), &cluster.node, &cluster.log).await }
        };
        let operator = |site: Site| async move {
            let part = format!("{site}-operator");
            let follower = &self.operators.at(site).1;
            let status = follower.died().await;
            PartDeath { log: LogTail::read(part.clone(), &follower.path), part, status }
        };
        tokio::select! {
            death = of_container("hub", &self.hub.name, &self.hub.log) => death,
            death = node(Site::East) => death,
            death = node(Site::West) => death,
            death = operator(Site::East) => death,
            death = operator(Site::West) => death,
        }
    }

    /// Breaks or mends what `what` says, and returns when that is done.
    async fn disturb(&self, what: Disturbance) -> Result<(), AnyError> {
        match what {
            Disturbance::EndOperator { site } => {
                let (operator, follower) = self.operators.at(site);
                follower.excuse();
                operator.end().await?;
            }
            Disturbance::ReviveOperator { site } => self.revive_operator(site).await?,
            Disturbance::EndApiServer { site } => {
                // An operator that cannot keep its Lease may end by itself.
                self.operators.at(site).1.excuse();
                self.end_api_server(site).await?;
            }
            Disturbance::ReviveApiServer { site } => self.revive_site(site).await?,
            Disturbance::ReviveAll => {
                for site in Site::ALL {
                    self.revive_site(site).await?;
                }
            }
        }
        Ok(())
    }

    async fn revive_operator(&self, site: Site) -> Result<(), AnyError> {
        let (operator, follower) = self.operators.at(site);
        operator.revive().await?;
        follower.expect();
        Ok(())
    }

    async fn end_api_server(&self, site: Site) -> Result<(), AnyError> {
        // The kubelet lets it end as soon as its manifest is gone; asked at once, it is sooner over.
        let script = format!(
            "mv {MANIFEST} {HELD} && pkill -TERM -x kube-apiserver; \
             for _ in $(seq 600); do pgrep -x kube-apiserver >/dev/null || exit 0; sleep 0.1; done; exit 1"
        );
        self.in_node(site, &script).await
    }

    async fn revive_site(&self, site: Site) -> Result<(), AnyError> {
        self.in_node(site, &format!("[ ! -e {HELD} ] || mv {HELD} {MANIFEST}")).await?;
        let answers = async {
            let client = &self.clusters.at(site).client;
            while client.apiserver_version().await.is_err() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let limit = humantime::format_duration(API_SERVER);
        let told = tokio::time::timeout(API_SERVER, answers).await;
        told.map_err(|_elapsed| format!("the API server of {site} does not answer within {limit}"))?;
        self.revive_operator(site).await
    }

    async fn in_node(&self, site: Site, script: &str) -> Result<(), AnyError> {
        let node = &self.clusters.at(site).node;
        self.belongings.docker.run(&["exec", node, "sh", "-c", script]).await?;
        Ok(())
    }
}

impl Running for RunningClusters {
    fn description(&self) -> Value {
        serde_json::to_value(&self.description).unwrap_or_default()
    }

    fn died(&self) -> BoxFuture<'_, PartDeath> {
        told_once(&self.told, self.ended()).boxed()
    }

    fn request(&self, body: Value) -> BoxFuture<'_, Result<Value, AnyError>> {
        async move {
            let what: Disturbance = serde_json::from_value(body.clone())
                .map_err(|error| format!("this pair knows no request `{body}`: {error}"))?;
            self.disturb(what).await?;
            Ok(Value::Null)
        }
        .boxed()
    }

    /// The hub in order, so that its journal is whole; everything else at once, with all that it holds.
    fn stop(&self) -> BoxFuture<'_, ()> {
        async move {
            join_all(Site::ALL.map(|site| async move { self.operators.at(site).1.excuse() })).await;
            if let Err(error) = self.hub.stop().await {
                tracing::warn!(error = %chain(error.as_ref()), "the hub did not end in order");
            }
            if let Err(error) = self.belongings.remove().await {
                tracing::warn!(error = %chain(&error), "not all containers are removed");
            }
        }
        .boxed()
    }
}
