//! A mesh of nodes, fake or real: what is done to it goes through the admin API alone.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Call, Connection, Failure};
use crate::load::{Load, closed_loop};

/// Port of the admin API.
const ADMIN_PORT: u16 = 3903;
/// Port of the RPC protocol.
const RPC_PORT: u16 = 3901;
/// How long a mesh may take for anything.
const PATIENCE: Duration = Duration::from_mins(2);
const GIGABYTE: u64 = 1_000_000_000;

/// The admin token of every node.
pub(crate) const TOKEN: &str = "benchmark-admin-token";

/// A mesh whose nodes answer.
pub(crate) struct Mesh {
    /// Where its nodes are.
    pub(crate) addresses: Vec<IpAddr>,
    ids: Vec<String>,
}

impl Mesh {
    /// Connects the nodes at `addresses` and waits until each sees all others.
    pub(crate) async fn connect(addresses: Vec<IpAddr>) -> Result<Self, Failure> {
        let mut ids = Vec::new();
        for address in &addresses {
            ids.push(identity(*address).await?);
        }
        let mesh = Self { addresses, ids };
        let entries = mesh.ids.iter().zip(&mesh.addresses).skip(1);
        let entries: Vec<_> = entries.map(|(id, address)| format!("{id}@{address}:{RPC_PORT}")).collect();
        let call = Call::with_body("POST", "/v2/ConnectClusterNodes", TOKEN, &json!(entries))?;
        mesh.first().await?.succeed(&call).await?;
        let health = Call::get("/v2/GetClusterHealth", TOKEN);
        for address in &mesh.addresses {
            let mut node = Connection::open(admin(*address)).await?;
            wait(async || Ok(node.ask(&health).await?["connectedNodes"] == json!(mesh.ids.len()))).await?;
        }
        Ok(mesh)
    }

    /// A connection to the first node.
    pub(crate) async fn first(&self) -> Result<Connection, Failure> {
        Connection::open(admin(self.addresses[0])).await
    }

    /// Gives every node a role, in `zones` zones, and waits until the first layout is settled.
    pub(crate) async fn first_layout(&self, zones: usize) -> Result<(), Failure> {
        let role = |(place, id): (usize, &String)| json!({"id": id, "zone": format!("site-{}", place % zones), "capacity": 100 * GIGABYTE, "tags": [format!("n{place}")]});
        let roles: Vec<_> = self.ids.iter().enumerate().map(role).collect();
        let mut node = self.first().await?;
        node.succeed(&update(&json!({ "roles": roles }))?).await?;
        node.succeed(&apply(1)?).await?;
        self.settled(1).await
    }

    /// Stages another capacity of the first node, applies it and gives the time that the apply took.
    pub(crate) async fn apply_change(&self) -> Result<Duration, Failure> {
        let mut node = self.first().await?;
        let layout = node.ask(&read_layout()).await?;
        let version = layout["version"].as_u64().ok_or("a layout without a version")? + 1;
        node.succeed(&self.stage_call(version)?).await?;
        let call = apply(version)?;
        let sent = Instant::now();
        node.succeed(&call).await?;
        let took = sent.elapsed();
        self.settled(version).await?;
        Ok(took)
    }

    /// Waits until `version` is the only live one on every node.
    async fn settled(&self, version: u64) -> Result<(), Failure> {
        let call = Call::get("/v2/GetClusterLayoutHistory", TOKEN);
        for address in &self.addresses {
            let mut node = Connection::open(admin(*address)).await?;
            wait(async || {
                let history = node.ask(&call).await?;
                Ok(history["currentVersion"] == json!(version) && history["updateTrackers"] == Value::Null)
            })
            .await?;
        }
        Ok(())
    }

    fn stage_call(&self, turn: u64) -> Result<Call, Failure> {
        stage(&self.ids[0], turn)
    }

    /// Reads of the layout on that many connections to the first node.
    pub(crate) async fn reads(&self, connections: usize, duration: Duration) -> Result<Load, Failure> {
        self.load(connections, duration, read_layout()).await
    }

    /// Calls of `/health`, which needs no token, on that many connections to the first node.
    pub(crate) async fn probes(&self, connections: usize, duration: Duration) -> Result<Load, Failure> {
        self.load(connections, duration, Call::open("/health")).await
    }

    async fn load(&self, connections: usize, duration: Duration, call: Call) -> Result<Load, Failure> {
        let addresses = vec![admin(self.addresses[0]); connections];
        closed_loop(&addresses, duration, move |_| Ok(call.clone())).await
    }

    /// Stages changes of one role, another one each time, on one connection; then discards them.
    pub(crate) async fn stages(&self, duration: Duration) -> Result<Load, Failure> {
        let id = self.ids[0].clone();
        let load = closed_loop(&[admin(self.addresses[0])], duration, move |turn| stage(&id, turn)).await?;
        let revert = Call::with_body("POST", "/v2/RevertClusterLayout", TOKEN, &Value::Null)?;
        self.first().await?.succeed(&revert).await?;
        Ok(load)
    }
}

/// The admin port of a node.
pub(crate) const fn admin(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, ADMIN_PORT)
}

/// A read of the layout.
pub(crate) fn read_layout() -> Call {
    Call::get("/v2/GetClusterLayout", TOKEN)
}

fn stage(id: &str, turn: u64) -> Result<Call, Failure> {
    let capacity = 100 * GIGABYTE + (turn % 1000 + 1) * GIGABYTE / 1000;
    update(&json!({"roles": [{"id": id, "zone": "site-0", "capacity": capacity, "tags": ["n0"]}]}))
}

fn update(body: &Value) -> Result<Call, Failure> {
    Call::with_body("POST", "/v2/UpdateClusterLayout", TOKEN, body)
}

fn apply(version: u64) -> Result<Call, Failure> {
    Call::with_body("POST", "/v2/ApplyClusterLayout", TOKEN, &json!({ "version": version }))
}

/// The identity of the node at `address`, once it answers.
async fn identity(address: IpAddr) -> Result<String, Failure> {
    let began = Instant::now();
    let mut node = loop {
        match Connection::open(admin(address)).await {
            Ok(node) => break node,
            Err(error) if began.elapsed() > PATIENCE => return Err(error),
            // Nothing listens yet.
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    let info = node.ask(&Call::get("/v2/GetNodeInfo?node=self", TOKEN)).await?;
    let id = info["success"].as_object().and_then(|nodes| nodes.keys().next().cloned());
    id.ok_or_else(|| format!("the node at {address} does not say who it is: {info}").into())
}

async fn wait(mut good: impl AsyncFnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let began = Instant::now();
    while !good().await? {
        if began.elapsed() > PATIENCE {
            return Err("a mesh did not settle".into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
