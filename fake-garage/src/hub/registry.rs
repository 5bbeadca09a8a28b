//! Meshes and nodes of a hub.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::actor::MeshActor;
use super::attribution::{NodeTokens, TokenTable};
use super::fault::{Faults, end_kills};
use super::listener::{self, Port};
use super::options::NodeNetwork;
use super::request::check_name;
use super::shared::Shared;
use crate::admin::Profile;
use crate::layout::NodeId;
use crate::mesh::{Loss, Mesh, NodeConfig, NodeIndex, Process};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

pub use super::refusal::ControlError;
pub use super::request::{MeshRequest, NodeAddress, NodeRequest};

/// Meshes and nodes of a hub.
#[derive(Debug)]
pub struct Registry {
    shared: Arc<Shared>,
    network: NodeNetwork,
    seed: u64,
    faults: Faults,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    meshes: BTreeMap<String, Registered>,
    next_address: u32,
    taken: BTreeSet<IpAddr>,
}

#[derive(Debug, Clone)]
struct Registered {
    secret: String,
    profile: Profile,
    actor: Arc<MeshActor>,
}

/// A node with its mesh.
#[derive(Debug, Clone)]
pub struct Place {
    /// The mesh.
    pub actor: Arc<MeshActor>,
    /// The node in it.
    pub node: NodeIndex,
}

impl Place {
    /// The node's port, if its process runs.
    pub fn port(&self) -> Result<Port, ControlError> {
        self.actor.port(self.node).ok_or_else(|| {
            let name = self.actor.read(|cluster| cluster.mesh().node(self.node).config().name.clone());
            ControlError::Ended(name)
        })
    }
}

impl Registry {
    /// A registry without meshes.
    #[must_use]
    pub fn new(shared: Arc<Shared>, network: NodeNetwork, seed: u64) -> Self {
        Self { shared, network, seed, faults: Faults::default(), inner: Mutex::new(Inner::default()) }
    }

    /// What the meshes share.
    #[must_use]
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Faults that last.
    #[must_use]
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All meshes.
    #[must_use]
    pub fn meshes(&self) -> Vec<Arc<MeshActor>> {
        self.lock().meshes.values().map(|mesh| Arc::clone(&mesh.actor)).collect()
    }

    /// The mesh of that name.
    pub fn mesh(&self, name: &str) -> Result<Arc<MeshActor>, ControlError> {
        let found = self.lock().meshes.get(name).map(|mesh| Arc::clone(&mesh.actor));
        found.ok_or_else(|| ControlError::NoMesh(name.to_owned()))
    }

    /// Registers a mesh, or replaces the tokens of one that is registered.
    pub fn register(&self, name: &str, request: MeshRequest) -> Result<(), ControlError> {
        check_name("mesh", name)?;
        let secret = request.rpc_secret_sha256.to_ascii_lowercase();
        if !hex::decode(&secret).is_ok_and(|bytes| bytes.len() == 32) {
            return Err(ControlError::Invalid("rpcSecretSha256 must be 64 hex digits".to_owned()));
        }
        let tokens = TokenTable::new(request.tokens);
        if let Some(problem) = tokens.problem() {
            return Err(ControlError::Invalid(problem));
        }
        let mut inner = self.lock();
        if let Some((other, _)) =
            inner.meshes.iter().find(|(other, mesh)| *other != name && mesh.secret == secret)
        {
            return Err(ControlError::SecretTaken(other.clone()));
        }
        match inner.meshes.get(name) {
            Some(mesh) if mesh.secret != secret => return Err(ControlError::SecretChanged(name.to_owned())),
            Some(mesh) if mesh.profile != request.garage_version => {
                return Err(ControlError::Invalid(format!(
                    "mesh `{name}` has another Garage version; delete it first"
                )));
            }
            Some(mesh) => mesh.actor.set_tokens(tokens),
            None => {
                let profile = request.garage_version;
                let seed = self.seed_of(name);
                let actor = MeshActor::begin(name, profile, tokens, seed, Arc::clone(&self.shared));
                inner.meshes.insert(name.to_owned(), Registered { secret, profile, actor });
            }
        }
        Ok(())
    }

    /// Stops and forgets the nodes of a mesh.
    pub fn forget(&self, name: &str) -> Result<(), ControlError> {
        let mut inner = self.lock();
        let mesh = inner.meshes.remove(name).ok_or_else(|| ControlError::NoMesh(name.to_owned()))?;
        mesh.actor.end();
        self.faults.forget(&mesh.actor);
        let addresses: Vec<_> = mesh
            .actor
            .read(|cluster| cluster.mesh().nodes().map(|(_, node)| node.config().address).collect());
        for address in addresses {
            inner.taken.remove(&address);
        }
        Ok(())
    }

    /// Starts a node, or restarts it with its files. A running one is answered as it is.
    pub async fn start_node(
        &self,
        name: &str,
        site: &str,
        request: NodeRequest,
    ) -> Result<NodeAddress, ControlError> {
        check_node_name(name)?;
        request.check()?;
        let actor = self.mesh_of_secret(&request.rpc_secret)?;
        let found = actor.read(|cluster| {
            cluster.mesh().find(name).map(|node| (node, cluster.mesh().node(node).config().address))
        });
        let running = found.filter(|(node, _)| actor.has_port(*node));
        if let Some((node, at)) = running {
            if request.address.is_none_or(|address| address == at) {
                return Ok(describe(&actor, node));
            }
            // Its pod has another address now, so that process is gone.
            actor.alter(|mesh| mesh.kill(node));
        }
        if let Some((node, _)) = found {
            actor.port_closed(node).await;
        }
        let address = match request.address.or(found.map(|(_, address)| address)) {
            Some(address) => address,
            None => self.take_address()?,
        };
        let door = match self.door(address, name).await {
            Ok(door) => door,
            Err(error) => {
                if found.is_none() {
                    self.lock().taken.remove(&address);
                }
                return Err(error);
            }
        };
        let config = config_of(name, site, address, &request);
        let (id, purge) = (self.identity(&actor.name, name), request.purge_layout.as_deref());
        let node = actor.alter(|mesh| place(mesh, found.map(|(node, _)| node), id, config, purge));
        let tokens = NodeTokens { admin: request.admin_token, metrics: request.metrics_token };
        actor.set_own_tokens(node, tokens);
        end_kills(self, &actor, node);
        open_port(&actor, node, door);
        Ok(describe(&actor, node))
    }

    /// The node of that name, in whichever mesh it is.
    pub fn node(&self, name: &str) -> Result<Place, ControlError> {
        let find = |actor: Arc<MeshActor>| {
            let node = actor.read(|cluster| cluster.mesh().find(name))?;
            Some(Place { actor, node })
        };
        let mut found: Vec<_> = self.meshes().into_iter().filter_map(find).collect();
        // A pod may have changed its mesh: the one that runs counts.
        found.sort_by_key(|place| !place.actor.has_port(place.node));
        found.into_iter().next().ok_or_else(|| ControlError::NoNode(name.to_owned()))
    }

    /// The running node that others reach at `address`, if it has an address of its own: nothing of the hub listens there.
    #[must_use]
    pub fn at_own_address(&self, address: IpAddr) -> Option<Place> {
        if self.network.contains(address) {
            return None;
        }
        let of_mesh = |actor: Arc<MeshActor>| {
            // A pod's address is given to another pod after it.
            let had: Vec<NodeIndex> = actor.read(|cluster| {
                let nodes = cluster.mesh().nodes();
                nodes.filter(|(_, node)| node.config().address == address).map(|(index, _)| index).collect()
            });
            let node = had.into_iter().find(|node| actor.has_port(*node))?;
            Some(Place { actor, node })
        };
        self.meshes().into_iter().find_map(of_mesh)
    }

    /// Stops a node as SIGTERM does, and takes files from it.
    pub async fn stop_node(&self, name: &str, loss: Loss) -> Result<(), ControlError> {
        let Place { actor, node } = self.node(name)?;
        actor.alter(|mesh| {
            mesh.stop(node);
            mesh.lose_files(node, loss);
        });
        actor.port_closed(node).await;
        Ok(())
    }

    /// Starts a node anew with its files, under the configuration it had.
    pub async fn restart_node(&self, name: &str, loss: Loss) -> Result<(), ControlError> {
        let Place { actor, node } = self.node(name)?;
        actor.alter(|mesh| {
            mesh.kill(node);
            mesh.lose_files(node, loss);
        });
        let address = actor.read(|cluster| cluster.mesh().node(node).config().address);
        actor.port_closed(node).await;
        let door = self.door(address, name).await?;
        actor.alter(|mesh| mesh.start(node));
        end_kills(self, &actor, node);
        open_port(&actor, node, door);
        Ok(())
    }

    /// Listens at the admin port of `address`, if it is the hub's.
    async fn door(&self, address: IpAddr, name: &str) -> Result<Option<TcpListener>, ControlError> {
        if !self.network.contains(address) {
            return Ok(None);
        }
        let listener = listener::bind(address).await.map_err(|error| {
            let port = listener::ADMIN_PORT;
            ControlError::Address(format!("cannot listen on {address}:{port} for {name}: {error}"))
        })?;
        Ok(Some(listener))
    }

    fn mesh_of_secret(&self, secret: &str) -> Result<Arc<MeshActor>, ControlError> {
        let digest = digest(secret);
        let inner = self.lock();
        let found = inner.meshes.values().find(|mesh| mesh.secret == digest);
        found
            .map(|mesh| Arc::clone(&mesh.actor))
            .ok_or_else(|| ControlError::UnknownSecret(digest[..12].to_owned()))
    }

    fn take_address(&self) -> Result<IpAddr, ControlError> {
        let mut inner = self.lock();
        for _ in 0..self.network.count {
            let address = IpAddr::from(self.network.address(inner.next_address));
            inner.next_address = inner.next_address.wrapping_add(1);
            if inner.taken.insert(address) {
                return Ok(address);
            }
        }
        let (first, count) = (self.network.first, self.network.count);
        Err(ControlError::Address(format!(
            "all {count} addresses from {first} are taken; delete meshes or widen --node-network"
        )))
    }

    /// Identities are the same in every run of the same names and seed.
    fn identity(&self, mesh: &str, node: &str) -> NodeId {
        let text = format!("node identity\0{mesh}\0{node}\0{}", self.seed);
        NodeId::new(Sha256::digest(text).into())
    }

    fn seed_of(&self, mesh: &str) -> u64 {
        let digest = Sha256::digest(format!("mesh seed\0{mesh}\0{}", self.seed));
        digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }
}

fn config_of(name: &str, site: &str, address: IpAddr, request: &NodeRequest) -> NodeConfig {
    NodeConfig {
        name: name.to_owned(),
        site: site.to_owned(),
        address,
        hostname: request.hostname.clone(),
        region: request.region.clone(),
        factor: request.replication_factor,
        mode: request.consistency_mode,
        rpc_secret: digest(&request.rpc_secret),
        clock_offset: request.clock_offset_ms,
    }
}

/// Starts a node of a mesh: the one that was `found`, or a new one of identity `id`.
fn place(
    mesh: &mut Mesh,
    found: Option<NodeIndex>,
    id: NodeId,
    config: NodeConfig,
    purge: Option<&str>,
) -> NodeIndex {
    let Some(node) = found else {
        let node = mesh.add(id, config);
        // There is nothing to take from a node without files, but the purge's name is known from now on.
        if let Some(purge) = purge {
            mesh.purge_layout_once(node, purge);
        }
        return node;
    };
    mesh.configure(node, config);
    if let Some(purge) = purge {
        mesh.purge_layout_once(node, purge);
    }
    mesh.start(node);
    node
}

/// Checks the three parts of `site/namespace/pod`.
fn check_node_name(name: &str) -> Result<(), ControlError> {
    let parts: Vec<_> = name.split('/').collect();
    let [site, namespace, pod] = parts[..] else {
        return Err(ControlError::Malformed(format!("the node {name:?} is not SITE/NAMESPACE/POD")));
    };
    [("site", site), ("namespace", namespace), ("pod", pod)]
        .into_iter()
        .try_for_each(|(kind, part)| check_name(kind, part))
}

fn open_port(actor: &Arc<MeshActor>, node: NodeIndex, door: Option<TcpListener>) {
    let ended = |cluster: &crate::admin::Cluster| {
        matches!(cluster.mesh().node(node).process(), Process::Ended { .. })
    };
    // A process may exit right at its start; then nothing listens.
    if actor.read(ended) {
        return;
    }
    let port = Port::default();
    actor.set_port(node, port.clone());
    match door {
        Some(listener) => tokio::spawn(listener::serve(listener, Arc::clone(actor), node, port)),
        None => tokio::spawn(port.serve_tunnels()),
    };
}

fn describe(actor: &MeshActor, node: NodeIndex) -> NodeAddress {
    actor.read(|cluster| {
        let place = cluster.mesh().node(node);
        NodeAddress {
            address: place.config().address,
            node_id: place.id().to_string(),
            mesh: actor.name.clone(),
            boot: place.boot(),
        }
    })
}

/// The digest by which a mesh's secret is known: SHA-256 of its text, without surrounding white space.
#[must_use]
pub fn digest(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.trim()))
}
