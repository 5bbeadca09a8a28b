//! Free ports.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, TcpListener},
};

/// The three ports of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The API server's.
    pub api: u16,
    /// etcd's for its client, the API server.
    pub store: u16,
    /// etcd's for other members, of which there are none.
    pub peers: u16,
}

impl Ports {
    /// Three different ports that are free on `address` at this moment.
    ///
    /// They are given back before the programs take them, so another program can come between; the start then
    /// fails with "address already in use" and is repeated with other ports.
    pub fn free_on(address: Ipv4Addr) -> io::Result<Self> {
        let held = [bind(address)?, bind(address)?, bind(address)?];
        let mut ports = BTreeSet::new();
        for listener in &held {
            ports.insert(listener.local_addr()?.port());
        }
        match ports.into_iter().collect::<Vec<_>>()[..] {
            [api, store, peers] => Ok(Self { api, store, peers }),
            _ => Err(io::Error::other("the kernel gave one port twice")),
        }
    }
}

fn bind(address: Ipv4Addr) -> io::Result<TcpListener> {
    TcpListener::bind((address, 0))
}

/// Whether a program's log says that somebody else has its port.
pub fn taken_in(log: &str) -> bool {
    log.contains("address already in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_are_free_and_differ() {
        let address = Ipv4Addr::new(127, 19, 0, 1);
        let ports = Ports::free_on(address).unwrap();
        let all =
            [ports.api, ports.store, ports.peers].map(|port| TcpListener::bind((address, port)).unwrap());
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn a_taken_port_is_recognised_in_the_words_of_go() {
        assert!(taken_in("listen tcp 127.19.0.1:2379: bind: address already in use"));
        assert!(!taken_in("listen tcp 127.19.0.1:2379: bind: permission denied"));
    }
}
