//! The tunnels of a slice: one between every two clusters.

/// A tunnel: the end that is dialled, the end that dials, and its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tunnel {
    /// Cluster of the server.
    pub server: String,
    /// Cluster of the client.
    pub client: String,
}

/// Every two of `clusters`, the one that comes first in the spec as server.
pub fn tunnels(clusters: &[String]) -> Vec<Tunnel> {
    let pairs = clusters.iter().enumerate().flat_map(|(place, server)| {
        clusters[place + 1..]
            .iter()
            .map(move |client| Tunnel { server: server.clone(), client: client.clone() })
    });
    pairs.collect()
}

/// The first `count` numbers that are not `taken`.
pub fn free_numbers(taken: &[u32], count: usize) -> Vec<u32> {
    (1..).filter(|number| !taken.contains(number)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::{free_numbers, tunnels};

    #[test]
    fn there_is_one_tunnel_between_every_two_clusters() {
        let clusters = ["a", "b", "c"].map(str::to_owned);
        let ends: Vec<String> =
            tunnels(&clusters).iter().map(|it| format!("{}>{}", it.client, it.server)).collect();
        assert_eq!(ends, ["b>a", "c>a", "c>b"]);
    }

    #[test]
    fn numbers_in_use_are_not_given_again() {
        assert_eq!(free_numbers(&[1, 3], 3), [2, 4, 5]);
    }
}
