//! Who listens where, by the kernel's word.

use std::{collections::BTreeSet, fs, net::Ipv4Addr};

use harness::{local::LocalPair, site::Site};

/// State of a listening socket in `/proc/net/tcp` (`TCP_LISTEN`).
const LISTENING: &str = "0A";

/// Every listening socket of a site's programs must be bound to the site's own address.
pub(crate) fn only_on_own_addresses(pair: &LocalPair) {
    for site in Site::ALL {
        let own = pair.at(site).address();
        let sockets: BTreeSet<String> =
            pair.at(site).programs().iter().flat_map(|program| sockets(program.pid())).collect();
        let listening = addresses("/proc/net/tcp", &sockets);
        assert_eq!(listening.len(), 3, "etcd for clients and for peers, and the API server: {listening:?}");
        for address in listening {
            assert_eq!(parse(&address), own, "a program of {site} listens elsewhere");
        }
        assert_eq!(addresses("/proc/net/tcp6", &sockets), [""; 0], "a program of {site} listens on IPv6");
    }
}

/// Inodes of a process' sockets.
fn sockets(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let inode = |target: String| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    targets.filter_map(|target| inode(target.to_string_lossy().into_owned())).collect()
}

/// Local addresses, as the kernel writes them, of those `sockets` that listen.
fn addresses(table: &str, sockets: &BTreeSet<String>) -> Vec<String> {
    let table = fs::read_to_string(table).unwrap();
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let ours = rows.filter(|row| row[3] == LISTENING && sockets.contains(row[9]));
    ours.map(|row| row[1].to_owned()).collect()
}

/// `0100147F:1F90`: the address in the machine's byte order, and the port.
fn parse(address: &str) -> Ipv4Addr {
    let host = address.split_once(':').unwrap().0;
    Ipv4Addr::from(u32::from_str_radix(host, 16).unwrap().to_ne_bytes())
}
