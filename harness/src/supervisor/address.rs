//! The addresses that a pair owns: one 127.X.0.0/16.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    os::linux::net::SocketAddrExt as _,
    os::unix::net::{SocketAddr as UnixAddr, UnixListener},
};

/// The least second octet of a pair; the ones below are left to other programs.
pub const FIRST_OCTET: u8 = 16;
/// The greatest second octet of a pair.
pub const LAST_OCTET: u8 = 250;

/// The port of the hub's control API.
pub const HUB_PORT: u16 = 7070;
/// The port of every node's admin API.
pub const ADMIN_PORT: u16 = 3903;
/// The port of the hub's HTTP proxies.
pub const PROXY_PORT: u16 = 3128;

/// The addresses of one pair. Two pairs never share any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairAddresses {
    octet: u8,
}

impl PairAddresses {
    /// The addresses below 127.`octet`; `None` outside of 16 to 250.
    pub fn new(octet: u8) -> Option<Self> {
        (FIRST_OCTET..=LAST_OCTET).contains(&octet).then_some(Self { octet })
    }

    /// The second octet, which also numbers the pair.
    pub fn octet(self) -> u8 {
        self.octet
    }

    /// Where east's control plane and operator listen.
    pub fn east(self) -> Ipv4Addr {
        self.host(0, 1)
    }

    /// Where west's control plane and operator listen.
    pub fn west(self) -> Ipv4Addr {
        self.host(0, 2)
    }

    /// The hub's control API.
    pub fn hub(self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.host(0, 3)), HUB_PORT)
    }

    /// The hub's HTTP proxy for east.
    pub fn east_proxy(self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.host(0, 4)), PROXY_PORT)
    }

    /// The hub's HTTP proxy for west.
    pub fn west_proxy(self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.host(0, 5)), PROXY_PORT)
    }

    /// The first address of a node; further nodes have the addresses after it.
    pub fn first_node(self) -> Ipv4Addr {
        self.host(1, 1)
    }

    fn host(self, third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.octet, third, fourth)
    }

    /// All pairs' addresses, in the order in which they are tried.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (FIRST_OCTET..=LAST_OCTET).map(|octet| Self { octet })
    }

    /// Whether nobody listens where this pair's hub and its first node will.
    pub(super) fn are_free(self) -> io::Result<bool> {
        let node = SocketAddr::new(IpAddr::V4(self.first_node()), ADMIN_PORT);
        for address in [self.hub(), node] {
            match TcpListener::bind(address) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Takes these addresses for as long as the returned beacon lives; `None` if somebody has them.
    ///
    /// An abstract Unix address is shared by exactly those processes that share the loopback addresses (one
    /// network namespace), whatever their user and state root, and vanishes with its last holder.
    pub(super) fn reserve(self) -> io::Result<Option<UnixListener>> {
        let address = UnixAddr::from_abstract_name(format!("onewriter/{self}"))?;
        match UnixListener::bind_addr(&address) {
            Ok(beacon) => Ok(Some(beacon)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for PairAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "127.{}.0.0/16", self.octet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_listens_where_the_other_parts_expect_it() {
        let pair = PairAddresses::new(16).unwrap();
        assert_eq!(pair.east().to_string(), "127.16.0.1");
        assert_eq!(pair.west().to_string(), "127.16.0.2");
        assert_eq!(pair.hub().to_string(), "127.16.0.3:7070");
        assert_eq!(pair.east_proxy().to_string(), "127.16.0.4:3128");
        assert_eq!(pair.west_proxy().to_string(), "127.16.0.5:3128");
        assert_eq!(pair.first_node().to_string(), "127.16.1.1");
    }

    #[test]
    fn octets_of_other_programs_are_no_pair() {
        assert_eq!(PairAddresses::new(0), None);
        assert_eq!(PairAddresses::new(15), None);
        assert_eq!(PairAddresses::new(251), None);
        assert_eq!(PairAddresses::all().count(), 235);
    }

    #[test]
    fn addresses_are_reserved_once_and_free_again_afterwards() {
        let pair = PairAddresses::new(249).unwrap();
        let beacon = pair.reserve().unwrap();
        assert!(beacon.is_some());
        assert!(pair.reserve().unwrap().is_none());
        drop(beacon);
        assert!(pair.reserve().unwrap().is_some());
    }

    #[test]
    fn a_stranger_on_the_hubs_address_is_seen() {
        let pair = PairAddresses::new(250).unwrap();
        assert!(pair.are_free().unwrap());
        let _stranger = TcpListener::bind(pair.hub()).unwrap();
        assert!(!pair.are_free().unwrap());
    }
}
