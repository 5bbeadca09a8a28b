//! What a hub is started with.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::mesh::Pacing;

/// What a hub is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of the control API.
    pub listen: SocketAddr,
    /// The token that the control API demands.
    pub control_token: ControlToken,
    /// File that the history is written to; it must not exist.
    pub journal: PathBuf,
    /// Name of the run, for the history's header.
    pub run: String,
    /// Addresses that nodes may take.
    pub node_network: NodeNetwork,
    /// Per site: where its HTTP proxy listens.
    pub proxies: BTreeMap<String, SocketAddr>,
    /// How fast things happen in meshes.
    pub pacing: Pacing,
    /// Seed of everything that is left to chance.
    pub seed: u64,
}

/// The token of the control API.
#[derive(Clone, PartialEq, Eq)]
pub struct ControlToken(String);

impl ControlToken {
    /// The token itself, for whoever has to present it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// A token; surrounding white space is not part of it. `None` if nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(crate) fn admits(&self, presented: &str) -> bool {
        self.0 == presented
    }
}

impl fmt::Debug for ControlToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControlToken")
    }
}

/// A range of addresses for nodes, written `FIRST+COUNT`: `127.20.1.1+60000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeNetwork {
    /// The first address.
    pub first: Ipv4Addr,
    /// How many there are.
    pub count: u32,
}

/// A text that is no range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected FIRST+COUNT, such as 127.20.1.1+60000: an IPv4 address and how many addresses there are from it"
)]
pub struct NodeNetworkError;

impl FromStr for NodeNetwork {
    type Err = NodeNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, count) = text.split_once('+').ok_or(NodeNetworkError)?;
        let first: Ipv4Addr = first.parse().map_err(|_| NodeNetworkError)?;
        let count: u32 = count.parse().map_err(|_| NodeNetworkError)?;
        let fits = count > 0 && u32::from(first).checked_add(count - 1).is_some();
        if fits { Ok(Self { first, count }) } else { Err(NodeNetworkError) }
    }
}

impl NodeNetwork {
    /// The address at `place`, counted from 0 and round the range.
    #[must_use]
    pub fn address(&self, place: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.first) + place % self.count)
    }

    /// Whether an address is one of the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        u32::from(address).checked_sub(u32::from(self.first)).is_some_and(|place| place < self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn a_range_is_a_first_address_and_a_count() {
        let network: NodeNetwork = "127.20.1.254+4".parse().unwrap();
        let addresses: Vec<_> = (0..5).map(|place| network.address(place).to_string()).collect();
        assert_eq!(addresses, ["127.20.1.254", "127.20.1.255", "127.20.2.0", "127.20.2.1", "127.20.1.254"]);
    }

    #[rstest]
    #[case("127.20.1.1")]
    #[case("127.20.1.1+0")]
    #[case("255.255.255.255+2")]
    #[case("::1+4")]
    fn what_is_no_range_is_refused(#[case] text: &str) {
        assert_eq!(text.parse::<NodeNetwork>(), Err(NodeNetworkError));
    }
}
