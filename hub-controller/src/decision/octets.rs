//! The place of each cluster in the network of a slice: given once, kept for ever.

use std::collections::{BTreeMap, BTreeSet};

/// Gives an octet to each of `clusters` that has none yet. What is taken stays with whom it was given to; a freed octet
/// is given again. `None` where all 256 are taken.
pub fn allocate(clusters: &[String], taken: &BTreeMap<String, u8>) -> Option<BTreeMap<String, u8>> {
    let mut used: BTreeSet<u8> = taken.values().copied().collect();
    let mut given = BTreeMap::new();
    for cluster in clusters {
        let octet = match taken.get(cluster) {
            Some(octet) => *octet,
            None => (0..=u8::MAX).find(|octet| !used.contains(octet))?,
        };
        used.insert(octet);
        given.insert(cluster.clone(), octet);
    }
    Some(given)
}

/// The part of the slice's network, `a.b.0.0/16`, that belongs to the cluster with this octet.
pub fn subnet(slice_subnet: &str, octet: u8) -> Option<String> {
    let mut parts = slice_subnet.split('.');
    let (first, second) = (parts.next()?, parts.next()?);
    let number = |part: &str| part.parse::<u8>().is_ok();
    (number(first) && number(second)).then(|| format!("{first}.{second}.{octet}.0/24"))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::{allocate, subnet};

    proptest! {
        #[test]
        fn octets_are_unique_and_stay(
            clusters in prop::collection::btree_set("[a-f]", 1..6),
            more in prop::collection::btree_set("[a-k]", 1..10),
        ) {
            let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>();
            let first = allocate(&list(clusters), &BTreeMap::new()).unwrap();
            let second = allocate(&list(more), &first).unwrap();
            let distinct: BTreeSet<u8> = second.values().copied().collect();
            prop_assert_eq!(distinct.len(), second.len());
            for (cluster, octet) in &second {
                prop_assert!(first.get(cluster).is_none_or(|before| before == octet));
            }
        }
    }

    #[test]
    fn each_cluster_has_a_part_of_the_slices_network() {
        assert_eq!(subnet("10.7.0.0/16", 3).as_deref(), Some("10.7.3.0/24"));
        assert_eq!(subnet("", 3), None);
    }
}
