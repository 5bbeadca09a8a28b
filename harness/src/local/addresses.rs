//! Who listens where on the loopback network.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::site::Site;

/// Port of the hub's control API.
const HUB_PORT: u16 = 7070;
/// Port of the hub's HTTP proxies.
const PROXY_PORT: u16 = 3128;

/// The addresses of one pair: 127.X.0.0/16, with X from 16 to 250.
///
/// X.0.1 and X.0.2 are the control planes of east and west, X.0.3 is the hub, X.0.4 and X.0.5 are its proxies for
/// east and west, and nodes of the system under test count upward from X.1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addresses {
    block: u8,
}

/// A block that no pair may own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("127.{block}.0.0/16 is no block for a pair: they reach from 127.16.0.0/16 to 127.250.0.0/16")]
pub struct BlockError {
    block: u8,
}

impl Addresses {
    /// The lowest block that a pair may own.
    pub const FIRST: u8 = 16;
    /// The highest block that a pair may own.
    pub const LAST: u8 = 250;

    /// The addresses in 127.`block`.0.0/16.
    pub fn in_block(block: u8) -> Result<Self, BlockError> {
        if (Self::FIRST..=Self::LAST).contains(&block) {
            Ok(Self { block })
        } else {
            Err(BlockError { block })
        }
    }

    /// The block's number, the X of 127.X.0.0/16.
    pub fn block(self) -> u8 {
        self.block
    }

    /// Where a site's control plane and its operator listen.
    pub fn control_plane(self, site: Site) -> Ipv4Addr {
        match site {
            Site::East => self.host(1),
            Site::West => self.host(2),
        }
    }

    /// The hub's control API.
    pub fn hub(self) -> SocketAddrV4 {
        SocketAddrV4::new(self.host(3), HUB_PORT)
    }

    /// The hub's HTTP proxy for a site, which resolves that site's Service names.
    pub fn proxy(self, site: Site) -> SocketAddrV4 {
        let host = match site {
            Site::East => 4,
            Site::West => 5,
        };
        SocketAddrV4::new(self.host(host), PROXY_PORT)
    }

    /// The first address of a node of the system under test.
    pub fn first_node(self) -> Ipv4Addr {
        Ipv4Addr::new(127, self.block, 1, 1)
    }

    fn host(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.block, 0, host)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(15, false)]
    #[case(16, true)]
    #[case(250, true)]
    #[case(251, false)]
    fn a_pair_owns_a_block_that_other_programs_leave_alone(#[case] block: u8, #[case] allowed: bool) {
        assert_eq!(Addresses::in_block(block).is_ok(), allowed);
    }

    #[test]
    fn no_two_parts_share_an_address() {
        let addresses = Addresses::in_block(20).unwrap();
        let mut all = vec![*addresses.hub().ip(), addresses.first_node()];
        for site in Site::ALL {
            all.push(addresses.control_plane(site));
            all.push(*addresses.proxy(site).ip());
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
