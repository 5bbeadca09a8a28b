//! Names and addresses: what resolves to what at which site, and which mesh listens where.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::RwLock;

use crate::mesh::Surroundings;

/// Names and addresses of all sites.
#[derive(Debug, Default)]
pub struct Directory {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Per site: name to addresses.
    routes: BTreeMap<String, BTreeMap<String, Vec<IpAddr>>>,
    /// Which mesh has a running node at an address.
    occupied: BTreeMap<IpAddr, String>,
}

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// These addresses, at least one.
    Addresses(Vec<IpAddr>),
    /// The name is known and nothing is behind it.
    Empty,
    /// There is no such name.
    Unknown,
}

impl Directory {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Replaces the names of a site.
    pub fn set_routes(&self, site: &str, names: BTreeMap<String, Vec<IpAddr>>) {
        let names = names.into_iter().map(|(name, addresses)| (canonical(&name), addresses)).collect();
        self.write().routes.insert(site.to_owned(), names);
    }

    /// The names of every site.
    #[must_use]
    pub fn routes(&self) -> BTreeMap<String, BTreeMap<String, Vec<IpAddr>>> {
        self.read().routes.clone()
    }

    /// What `name` leads to at `site`.
    #[must_use]
    pub fn resolve(&self, site: &str, name: &str) -> Resolved {
        let inner = self.read();
        match inner.routes.get(site).and_then(|names| names.get(&canonical(name))) {
            None => Resolved::Unknown,
            Some(addresses) if addresses.is_empty() => Resolved::Empty,
            Some(addresses) => Resolved::Addresses(addresses.clone()),
        }
    }

    /// Notes that a node of `mesh` runs at `address`.
    pub fn occupy(&self, address: IpAddr, mesh: &str) {
        self.write().occupied.insert(address, mesh.to_owned());
    }

    /// Notes that nothing runs at `address` any more.
    pub fn vacate(&self, address: IpAddr) {
        self.write().occupied.remove(&address);
    }
}

/// Names are the same in any case and with or without the final dot.
fn canonical(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// What a node of a mesh at a site finds around it.
#[derive(Debug)]
pub struct SiteView<'a> {
    /// All names and addresses.
    pub directory: &'a Directory,
    /// The node's site.
    pub site: &'a str,
    /// The node's mesh.
    pub mesh: &'a str,
}

impl Surroundings for SiteView<'_> {
    fn resolve(&self, host: &str) -> Option<IpAddr> {
        match self.directory.resolve(self.site, host) {
            Resolved::Addresses(addresses) => addresses.first().copied(),
            Resolved::Empty | Resolved::Unknown => None,
        }
    }

    fn stranger_at(&self, address: SocketAddr) -> bool {
        let inner = self.directory.read();
        address.port() == crate::mesh::RPC_PORT
            && inner.occupied.get(&address.ip()).is_some_and(|mesh| mesh != self.mesh)
    }
}
