//! A hub process, pods' processes, and what they say.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use onewriter_history::{Event, History};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use crate::network::network;

/// Secret of the mesh.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// No process here takes longer for anything.
const DEADLINE: Duration = Duration::from_secs(20);

/// Addresses, files and a client for one test.
pub(crate) struct World {
    pub(crate) http: reqwest::Client,
    folder: TempDir,
    high: u8,
    low: u8,
}

/// A hub process.
pub(crate) struct HubProcess {
    process: Child,
}

/// A pod's process.
pub(crate) struct PodProcess {
    process: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) said: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let [high, low] = network();
        let folder = TempDir::new().unwrap();
        let token_file = folder.path().join("token");
        fs::write(&token_file, "control\n").unwrap();
        fs::set_permissions(&token_file, fs::Permissions::from_mode(0o600)).unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, folder, high, low }
    }

    fn at(&self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.high, self.low, last)
    }

    pub(crate) fn hub_address(&self) -> SocketAddr {
        SocketAddr::new(self.at(3).into(), 7070)
    }

    pub(crate) fn pod_address(&self) -> SocketAddr {
        SocketAddr::new(self.at(100).into(), 3903)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a hub and registers a mesh.
    pub(crate) async fn hub(&self) -> HubProcess {
        let hub = self.bare_hub().await;
        self.mesh().await;
        hub
    }

    /// Starts a hub that knows no mesh.
    pub(crate) async fn bare_hub(&self) -> HubProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-garage"));
        command.args(["serve", "--run", "test", "--listen", &self.hub_address().to_string()]);
        command.arg("--control-token-file").arg(self.path("token"));
        command.arg("--journal").arg(self.path("journal.jsonl"));
        command.args(["--node-network", &format!("{}+50", self.at(10))]);
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut ready).await.unwrap();
        assert!(ready.contains("\"ready\":true"), "{ready}");
        HubProcess { process }
    }

    pub(crate) async fn mesh(&self) {
        let token = json!({"token": "t", "caller": "east", "target": "*", "label": "east@east"});
        let mesh = json!({"rpcSecretSha256": fake_garage::hub::registry::digest(SECRET), "tokens": [token]});
        assert_eq!(self.control("PUT", "/meshes/mesh", mesh).await.0, 200);
    }

    /// A call of the control API.
    pub(crate) async fn control(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let url = format!("http://{}/control/v1{path}", self.hub_address());
        let request = self.http.request(method.parse().unwrap(), url).bearer_auth("control").json(&body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// The node as the hub sees it.
    pub(crate) async fn node(&self) -> Value {
        self.control("GET", "/state", json!({})).await.1["meshes"]["mesh"]["nodes"][0].clone()
    }

    /// A call of the admin API at the pod's port.
    pub(crate) async fn admin(&self, path: &str) -> Result<(u16, Value), reqwest::Error> {
        let url = format!("http://{}{path}", self.pod_address());
        let answer = self.http.get(url).bearer_auth("t").send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    /// A call of the admin API with a body, and its status.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> u16 {
        let url = format!("http://{}{path}", self.pod_address());
        self.http.post(url).bearer_auth("t").json(body).send().await.unwrap().status().as_u16()
    }

    /// A configuration file as the operator writes it.
    pub(crate) fn configuration(&self, factor: u8) -> String {
        let text = format!(
            "metadata_dir = \"/data/metadata\"\ndata_dir = \"/data/data\"\nreplication_factor = {factor}\n\
             rpc_bind_addr = \"{0}:3901\"\n[s3_api]\ns3_region = \"garage\"\napi_bind_addr = \"{0}:3900\"\n\
             [admin]\napi_bind_addr = \"{0}:3903\"\n",
            self.at(100)
        );
        let path = self.path("garage.toml");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The environment of a pod.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let token_file = self.path("token");
        [
            ("GARAGE_CONFIG_FILE", self.configuration(1)),
            ("GARAGE_RPC_SECRET", SECRET.to_owned()),
            ("GARAGE_NODE_HOST", self.at(100).to_string()),
            ("ONEWRITER_HUB", format!("http://{}", self.hub_address())),
            ("ONEWRITER_HUB_TOKEN_FILE", token_file.to_str().unwrap().to_owned()),
            ("ONEWRITER_SITE", "east".to_owned()),
            ("POD_NAMESPACE", "ns".to_owned()),
            ("HOSTNAME", "garage-0".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Starts a pod's process, by the name under which the operator's pods call it.
    pub(crate) fn pod(&self) -> PodProcess {
        PodProcess::spawn(&["server"], &self.environment())
    }

    /// Starts a pod's process and waits until its node runs.
    pub(crate) async fn running_pod(&self) -> PodProcess {
        let mut pod = self.pod();
        pod.until_it_says("node started").await;
        pod
    }

    pub(crate) fn history(&self) -> History {
        History::read_live(&self.path("journal.jsonl")).unwrap()
    }

    /// Waits until the hub has recorded an event of a node's process.
    pub(crate) async fn process_event(&self, name: &str) {
        let recorded = async {
            while !self.history().records.iter().any(|record| match &record.event {
                Event::State(state) => state.subject == "node" && state.value["event"] == name,
                _ => false,
            }) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, recorded).await.expect("the hub records the event");
    }
}

impl HubProcess {
    pub(crate) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }
}

impl PodProcess {
    pub(crate) fn spawn(arguments: &[&str], environment: &BTreeMap<String, String>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-garage"));
        command.arg0("/garage").args(arguments).env_clear().envs(environment);
        let mut process = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        Self { process, stderr, said: String::new() }
    }

    /// Waits until the process has said something on standard error.
    pub(crate) async fn until_it_says(&mut self, text: &str) {
        let read = async {
            while !self.said.contains(text) {
                let read = self.stderr.read_line(&mut self.said).await.unwrap();
                assert!(read > 0, "it ended and never said {text:?}: {}", self.said);
            }
        };
        tokio::time::timeout(DEADLINE, read).await.expect("it says so in time");
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.process.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits until the process has ended.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let status = tokio::time::timeout(DEADLINE, self.process.wait()).await.expect("it ends").unwrap();
        self.stderr.read_to_string(&mut self.said).await.unwrap();
        status
    }
}
