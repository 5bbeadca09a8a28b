//! A hub process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use harness::local::Identity;
use harness::pair::probe;
use harness::process::{Child, Launch};
use harness::site::Site;
use rustix::process::{Pid, Signal, kill_process_group};

use super::decisions::Decisions;
use super::world::World;

/// What a hub is started as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Active,
    Standby,
    Standalone,
}

/// Periods that suit tests; every one is an option of the hub. A lease under three seconds lets a busy machine promote
/// falsely.
const PACE: [&str; 11] = [
    "--ha-lease-duration=3s",
    "--ha-renew-deadline=2s",
    "--ha-retry-period=400ms",
    "--ha-padding-seconds=1",
    "--ha-poll-interval=300ms",
    "--ha-dial-timeout=1s",
    "--ha-grace-period=2s",
    "--ha-credential-interval=500ms",
    "--ha-publish-interval=500ms",
    "--ha-resync-interval=4s",
    "--graceful-shutdown-timeout=2s",
];

/// After so long without a renewal the Active counts as dead: lease duration and padding.
pub const WINDOW: Duration = Duration::from_secs(4);

/// What a hub is started with.
pub struct Launching {
    world: World,
    name: String,
    site: Site,
    role: Role,
    flags: Vec<String>,
}

/// A hub that runs, or ran.
#[derive(Clone, Debug)]
pub struct Hub {
    pub child: Child,
    pub decisions: Decisions,
    metrics: String,
    ready: String,
}

impl Launching {
    /// A hub at `site`; its name tells its log from others.
    pub fn new(world: &World, name: &str, site: Site, role: Role) -> Self {
        Self { world: world.clone(), name: name.to_owned(), site, role, flags: Vec::new() }
    }

    /// More options; each replaces one of the same name that the tests usually use.
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Starts it and does not wait for it.
    pub async fn launch(self) -> Hub {
        let address = self.world.address();
        let [metrics, health] = [8080, 8081].map(|port| SocketAddr::from((address, port)));
        let decisions = self.world.folder().join(format!("{}.decisions.jsonl", self.name));
        let kubeconfig = self.world.plane(self.site).kubeconfig(Identity::Operator).to_owned();
        let env = [
            ("KUBECONFIG", kubeconfig.into_os_string()),
            ("KUBESLICE_CONTROLLER_MANAGER_NAMESPACE", super::world::HUB_NAMESPACE.into()),
            ("RUST_LOG", "info".into()),
        ];
        let launch = Launch {
            name: self.name.clone(),
            program: env!("CARGO_BIN_EXE_hub-controller").into(),
            args: self.arguments(metrics, health, &decisions),
            env: env.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            log: self.world.folder().join(format!("{}.log", self.name)),
        };
        Hub {
            child: self.world.launcher().launch(launch).await.unwrap(),
            decisions: Decisions::new(decisions),
            metrics: format!("http://{metrics}/metrics"),
            ready: format!("http://{health}/readyz"),
        }
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self) -> Hub {
        let hub = self.launch().await;
        probe::until_success(&hub.child, &hub.ready, None, super::LIMIT).await.unwrap();
        hub
    }

    fn arguments(&self, metrics: SocketAddr, health: SocketAddr, decisions: &Path) -> Vec<OsString> {
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let mode = match self.role {
            Role::Active => "active",
            Role::Standby => "standby",
            Role::Standalone => "standalone",
        };
        let mut usual: Vec<String> = PACE.iter().map(ToString::to_string).collect();
        usual.extend([
            format!("--ha-mode={mode}"),
            format!("--ha-identity=hub-{}", self.site),
            format!("--controller-end-point=https://hub-{}.example:6443", self.site),
            "--impersonate-roles=true".to_owned(),
            format!("--decision-log={}", decisions.display()),
            format!("--metrics-bind-address={metrics}"),
            format!("--health-probe-bind-address={health}"),
        ]);
        let replaced: Vec<String> = self.flags.iter().map(|flag| name(flag)).collect();
        usual.retain(|flag| !replaced.contains(&name(flag)));
        usual.into_iter().chain(self.flags.clone()).map(OsString::from).collect()
    }
}

impl Hub {
    /// Ends it as Kubernetes would.
    pub async fn stop(&self) {
        let status = self.child.stop(Duration::from_secs(6)).await;
        assert_eq!(status.code(), Some(0), "{}", self.child.log_tail(20));
    }

    /// Ends it at once, without a chance to finish anything.
    pub async fn kill(&self) {
        self.child.stop(Duration::ZERO).await;
    }

    /// It does nothing from now on, and does not know.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// It goes on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process_group(Pid::from_raw(self.child.pid()).unwrap(), signal).unwrap();
    }

    /// The value of a metric, by its name and labels as they stand on the page. 0 if absent.
    pub async fn metric(&self, name: &str) -> f64 {
        let page = self.page(&self.metrics).await.1;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// What the readiness probe says: status and text.
    pub async fn readiness(&self) -> (u16, String) {
        self.page(&self.ready).await
    }

    async fn page(&self, url: &str) -> (u16, String) {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = http.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.child.log()).unwrap_or_default()
    }
}
