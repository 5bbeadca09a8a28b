//! An operator process.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::pair::probe;
use harness::process::{Child, Launch, Launcher};
use harness::supervisor::AnyError;

use super::pair::SiteParts;

/// Namespace of the operator's ServiceAccount and of the webhook's Secret.
pub const NAMESPACE: &str = "garage-operator-system";

/// Ports of an operator, below those that the system gives away. Its address is its own among those of this process; the
/// pair's supervisor and other test programs have other ports.
fn own_ports() -> (u16, u16) {
    let place = u16::try_from(std::process::id() % 10_000).unwrap();
    (10_000 + 2 * place, 10_001 + 2 * place)
}

/// How long an operator may take until it is ready.
const READY: Duration = Duration::from_secs(30);

/// Waiting periods that suit tests; every one is an option of the operator.
const PACE: [&str; 6] = [
    "--requeue-pending=200ms",
    "--requeue-unhealthy=500ms",
    "--requeue-short=1s",
    "--requeue-error=1s",
    "--drain-quiet-period=500ms",
    "--cluster-domain=cluster.local",
];

/// What an operator is started with.
#[derive(Debug)]
pub struct Launching {
    name: String,
    site: SiteParts,
    log: PathBuf,
    namespaces: Vec<String>,
    flags: Vec<String>,
    paced: bool,
}

/// An operator that runs, or ran.
#[derive(Clone, Debug)]
pub struct Operator {
    pub child: Child,
    metrics: String,
}

impl Launching {
    /// Process `name` at a site; its log goes to `folder`.
    pub fn new(name: &str, site: &SiteParts, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        let (name, site) = (name.to_owned(), site.clone());
        Self { name, site, log, namespaces: Vec::new(), flags: Vec::new(), paced: true }
    }

    /// Watches this namespace, and no others than those that are named.
    pub fn watch(&mut self, namespace: &str) {
        self.namespaces.push(namespace.to_owned());
    }

    /// Watches all namespaces, with the program's own waiting periods.
    pub fn everything(&mut self) {
        self.namespaces.clear();
        self.paced = false;
    }

    /// More options; each replaces one of the same name that the tests usually use.
    pub fn flags(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
    }

    /// Starts it and does not wait for it.
    pub async fn launch(self, launcher: &Launcher) -> Result<(Operator, String), AnyError> {
        let address = own_address(self.site.address);
        let (metrics, health) = own_ports();
        let [metrics, health] = [metrics, health].map(|port| SocketAddr::from((address, port)));
        let child = launcher
            .launch(Launch {
                name: self.name.clone(),
                program: env!("CARGO_BIN_EXE_garage-operator").into(),
                args: self.arguments(metrics, health),
                env: environment(&self.site),
                log: self.log.clone(),
            })
            .await?;
        let operator = Operator { child, metrics: format!("http://{metrics}/metrics") };
        Ok((operator, format!("http://{health}/readyz")))
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self, launcher: &Launcher) -> Result<Operator, AnyError> {
        let (operator, ready) = self.launch(launcher).await?;
        probe::until_success(&operator.child, &ready, None, READY).await?;
        Ok(operator)
    }

    fn arguments(&self, metrics: SocketAddr, health: SocketAddr) -> Vec<OsString> {
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let replaced: Vec<String> = self.flags.iter().map(|flag| name(flag)).collect();
        let pace = PACE.iter().filter(|_| self.paced);
        let usual = pace.map(|flag| (*flag).to_owned()).chain(["--leader-elect=false".to_owned()]);
        let mut flags: Vec<String> = usual.filter(|flag| !replaced.contains(&name(flag))).collect();
        flags.extend(self.flags.iter().cloned());
        flags.push(format!("--watch-namespaces={}", self.namespaces.join(",")));
        flags.push(format!("--metrics-bind-address={metrics}"));
        flags.push(format!("--health-probe-bind-address={health}"));
        flags.into_iter().map(OsString::from).collect()
    }
}

impl Operator {
    /// Ends it as Kubernetes would.
    pub async fn stop(&self) {
        self.child.stop(Duration::from_secs(5)).await;
    }

    /// Ends it at once, without a chance to finish anything.
    pub async fn kill(&self) {
        self.child.stop(Duration::ZERO).await;
    }

    /// The value of a metric, by its name and labels as they stand on the page: `name{label="value"}`. 0 if absent.
    pub async fn metric(&self, name: &str) -> f64 {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let page = http.get(&self.metrics).send().await.unwrap().text().await.unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

/// Service names go through the hub's proxy; pod addresses and the API server are loopback and go direct.
fn environment(site: &SiteParts) -> Vec<(OsString, OsString)> {
    let proxy = format!("http://{}", site.proxy);
    let variables = [
        ("KUBECONFIG", site.operator.as_os_str()),
        ("POD_NAMESPACE", NAMESPACE.as_ref()),
        ("HTTP_PROXY", proxy.as_ref()),
        ("http_proxy", proxy.as_ref()),
        ("NO_PROXY", "127.0.0.0/8,localhost".as_ref()),
        ("no_proxy", "127.0.0.0/8,localhost".as_ref()),
        ("RUST_LOG", "info".as_ref()),
    ];
    variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// An address of one process alone, of those that the pair gives to nobody: 127.X.250.1 to 127.X.254.254. Test programs
/// that share the pair begin anywhere among them.
fn own_address(site: Ipv4Addr) -> Ipv4Addr {
    static FIRST: LazyLock<u32> = LazyLock::new(rand::random);
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let pair = site.octets()[1];
    let place = FIRST.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % (5 * 254);
    let [high, low] = [place / 254, place % 254].map(|part| u8::try_from(part).unwrap());
    Ipv4Addr::new(127, pair, 250 + high, 1 + low)
}
