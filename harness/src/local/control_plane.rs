//! One site's three programs.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{FutureExt as _, future::select_all};
use kube::Client;
use serde_json::Value;

use super::{
    arguments::{self, Layout},
    bootstrap,
    error::LocalError,
    folder,
    identity::{Identity, ServiceAccountName},
    kubeconfig,
    pki::{self, Authority},
    ports::{self, Ports},
    readiness,
};
use crate::{
    process::{Child, Launch, LaunchError, Launcher, Revivable},
    site::Site,
    toolchain::Binaries,
};

/// How many lines of a log an error shows.
pub(super) const TAIL: usize = 20;

/// How often a start is tried again because somebody else took a port.
const ATTEMPTS: usize = 3;

/// How long the API server may take to answer what it has begun, when it is stopped.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// What one site is started from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) site: Site,
    pub(super) address: Ipv4Addr,
    pub(super) folder: &'a Path,
    pub(super) launcher: &'a Launcher,
    pub(super) binaries: &'a Binaries,
    pub(super) operator: &'a ServiceAccountName,
    pub(super) objects: &'a [Value],
}

/// A site's running control plane. Dropping it stops nothing.
#[derive(Debug)]
pub struct ControlPlane {
    site: Site,
    address: Ipv4Addr,
    url: String,
    kubeconfigs: BTreeMap<Identity, PathBuf>,
    audit_log: PathBuf,
    etcd: Child,
    kube_apiserver: Revivable,
    kube_controller_manager: Revivable,
}

/// What is written before anything is started.
struct Prepared {
    layout: Layout,
    kubeconfigs: BTreeMap<Identity, PathBuf>,
    logs: PathBuf,
}

impl ControlPlane {
    /// Starts the site's programs; returns when the API server is ready and the controllers do their work.
    pub(super) async fn start(plan: Plan<'_>) -> Result<Self, LocalError> {
        for _ in 0..ATTEMPTS {
            folder::remove(plan.folder)?;
            match Self::attempt(plan).await {
                Err(LocalError::Ended { tail, .. }) if ports::taken_in(&tail) => {
                    plan.stop_what_runs().await;
                }
                result => return result,
            }
        }
        Err(LocalError::PortsTaken { site: plan.site, address: plan.address, attempts: ATTEMPTS })
    }

    async fn attempt(plan: Plan<'_>) -> Result<Self, LocalError> {
        let prepared = plan.prepare()?;
        let layout = &prepared.layout;
        let program = &plan.binaries.etcd;
        let etcd = plan.launch("etcd", program, arguments::etcd(layout), 200, &prepared.logs).await?;
        readiness::listening(plan.site, layout.store(), &etcd).await?;
        let program = &plan.binaries.kube_apiserver;
        let flags = arguments::kube_apiserver(layout);
        let kube_apiserver = plan.revivable("kube-apiserver", program, flags, 600, &prepared.logs).await?;
        let server = kube_apiserver.child();
        let running = [&etcd, &server];
        let admin = kubeconfig::client(&prepared.kubeconfigs[&Identity::Admin]).await?;
        readiness::api_server(plan.site, &admin, &running).await?;
        let mut objects = bootstrap::agent_access().to_vec();
        objects.extend_from_slice(plan.objects);
        readiness::unless_ended(plan.site, &running, bootstrap::create(&admin, plan.site, &objects))
            .await??;
        let arguments =
            arguments::kube_controller_manager(layout, &prepared.kubeconfigs[&Identity::Controllers]);
        let program = &plan.binaries.kube_controller_manager;
        let kube_controller_manager =
            plan.revivable("kube-controller-manager", program, arguments, 300, &prepared.logs).await?;
        let running = [&etcd, &server, &kube_controller_manager.child()];
        readiness::controllers(plan.site, &admin, &running).await?;
        Ok(Self {
            site: plan.site,
            address: plan.address,
            url: layout.server_url(),
            audit_log: layout.audit_log.clone(),
            kubeconfigs: prepared.kubeconfigs,
            etcd,
            kube_apiserver,
            kube_controller_manager,
        })
    }

    /// The site.
    pub fn site(&self) -> Site {
        self.site
    }

    /// Its loopback address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Where the API server is reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The private kubeconfig of a client.
    pub fn kubeconfig(&self, identity: Identity) -> &Path {
        &self.kubeconfigs[&identity]
    }

    /// A client.
    pub async fn client(&self, identity: Identity) -> Result<Client, LocalError> {
        kubeconfig::client(self.kubeconfig(identity)).await
    }

    /// The API server's audit log; see [`super::audit`].
    pub fn audit_log(&self) -> &Path {
        &self.audit_log
    }

    /// Its programs.
    pub fn programs(&self) -> [Child; 3] {
        [self.etcd.clone(), self.kube_apiserver.child(), self.kube_controller_manager.child()]
    }

    /// Whether the API server was ended on purpose and is not there.
    pub fn is_api_server_down(&self) -> bool {
        self.kube_apiserver.is_down()
    }

    /// Ends the API server on purpose, with `grace` to answer what it has begun: clients lose their watches with it.
    ///
    /// The controllers end with it. They could not do anything, and would come back up to half a minute after it: that is
    /// the delay between attempts of a watch in their library, which no flag shortens.
    pub async fn end_api_server(&self, grace: Duration) {
        self.kube_controller_manager.end(Duration::ZERO).await;
        self.kube_apiserver.end(grace).await;
    }

    /// Starts the API server and the controllers again if they do not run, and waits until both do their work.
    pub async fn revive_api_server(&self) -> Result<(), LocalError> {
        let failed = |source: LaunchError| LocalError::Launch { site: self.site, source };
        let server = self.kube_apiserver.revive().await.map_err(failed)?;
        let admin = self.client(Identity::Admin).await?;
        readiness::api_server(self.site, &admin, &[&self.etcd, &server]).await?;
        readiness::without_account(self.site, &admin).await?;
        let controllers = self.kube_controller_manager.revive().await.map_err(failed)?;
        readiness::controllers(self.site, &admin, &[&self.etcd, &server, &controllers]).await
    }

    /// Waits until one of the programs ends by itself. Cancel safe.
    pub async fn died(&self) -> Child {
        let ended = |child: Child| async move {
            child.exited().await;
            child
        };
        tokio::select! {
            child = ended(self.etcd.clone()) => child,
            child = self.kube_controller_manager.died() => child,
            child = self.kube_apiserver.died() => child,
        }
    }

    /// Waits until one of the programs ends by itself, and says which and how. Cancel safe.
    pub async fn ended(&self) -> LocalError {
        first_end(self.site, &self.programs().each_ref()).await
    }

    /// Stops the programs. The API server answers what it has begun, so that its audit log is complete; the others
    /// keep nothing that anybody wants.
    pub async fn stop(&self) {
        futures::join!(self.kube_controller_manager.end(Duration::ZERO), self.kube_apiserver.end(STOP_GRACE),);
        self.etcd.stop(Duration::ZERO).await;
    }
}

/// Waits until one of `programs` ends, and makes an error of it.
pub(super) async fn first_end(site: Site, programs: &[&Child]) -> LocalError {
    let ends = programs.iter().map(|program| program.exited().boxed());
    let (status, index, _) = select_all(ends).await;
    let program = programs[index];
    let name = program.name();
    LocalError::Ended {
        site,
        program: name.strip_suffix(&format!("-{site}")).unwrap_or(name).to_owned(),
        status,
        log: program.log().to_owned(),
        tail: program.log_tail(TAIL),
    }
}

impl Plan<'_> {
    fn prepare(&self) -> Result<Prepared, LocalError> {
        let root = folder::make(self.folder.to_owned())?;
        let pki = folder::make(root.join("pki"))?;
        let ports = Ports::free_on(self.address).map_err(|source| LocalError::Ports {
            site: self.site,
            address: self.address,
            source,
        })?;
        let authority = Authority::new(self.site)?;
        let server = |name: &str| authority.server(self.site, name, self.address)?.write(&pki, name);
        let layout = Layout {
            address: self.address,
            ports,
            authority: folder::write(pki.join("authority.crt"), authority.certificate())?,
            server: server("kube-apiserver")?,
            store: server("etcd")?,
            signing: pki::signing_key(self.site, &pki)?,
            data: folder::make(root.join("etcd"))?,
            audit_policy: folder::write(root.join("audit-policy.yaml"), arguments::AUDIT_POLICY)?,
            audit_log: folder::make(root.join("audit"))?.join("audit.jsonl"),
        };
        let kubeconfigs = self.write_kubeconfigs(&authority, &layout)?;
        Ok(Prepared { layout, kubeconfigs, logs: folder::make(root.join("logs"))? })
    }

    fn write_kubeconfigs(
        &self,
        authority: &Authority,
        layout: &Layout,
    ) -> Result<BTreeMap<Identity, PathBuf>, LocalError> {
        let folder = folder::make(self.folder.join("kubeconfig"))?;
        let context = format!("onewriter-{}", self.site);
        let write = |identity: Identity| {
            let credential = authority.client(self.site, &identity.subject(self.operator))?;
            let path = folder.join(format!("{identity}.yaml"));
            let (url, ca) = (layout.server_url(), authority.certificate());
            Ok((identity, kubeconfig::write(path, &context, &url, ca, &credential)?))
        };
        Identity::ALL.into_iter().map(write).collect()
    }

    async fn launch(
        &self,
        name: &str,
        program: &Path,
        args: Vec<std::ffi::OsString>,
        memory_megabytes: u32,
        logs: &Path,
    ) -> Result<Child, LocalError> {
        let launch = self.launch_of(name, program, args, memory_megabytes, logs);
        let child = self.launcher.launch(launch).await;
        child.map_err(|source| LocalError::Launch { site: self.site, source })
    }

    async fn revivable(
        &self,
        name: &str,
        program: &Path,
        args: Vec<std::ffi::OsString>,
        memory_megabytes: u32,
        logs: &Path,
    ) -> Result<Revivable, LocalError> {
        let launch = self.launch_of(name, program, args, memory_megabytes, logs);
        let started = Revivable::start(self.launcher, launch).await;
        started.map_err(|source| LocalError::Launch { site: self.site, source })
    }

    fn launch_of(
        &self,
        name: &str,
        program: &Path,
        args: Vec<std::ffi::OsString>,
        memory_megabytes: u32,
        logs: &Path,
    ) -> Launch {
        Launch {
            name: self.process_name(name),
            program: program.to_owned(),
            args,
            env: arguments::memory(memory_megabytes),
            log: logs.join(format!("{name}.log")),
        }
    }

    /// Stops what a failed start has left running.
    pub(super) async fn stop_what_runs(&self) {
        let names = ["etcd", "kube-apiserver", "kube-controller-manager"].map(|name| self.process_name(name));
        let children = self.launcher.children();
        let ours = children.iter().filter(|child| names.iter().any(|name| name == child.name()));
        futures::future::join_all(ours.map(|child| child.stop(Duration::ZERO))).await;
    }

    fn process_name(&self, program: &str) -> String {
        format!("{program}-{}", self.site)
    }
}
