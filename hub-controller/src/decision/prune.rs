//! Which copies go at the end of a resync (design record, decision 6: prune what is gone, never by a failed list).

use std::collections::BTreeSet;

use super::copy::Key;

/// A copy on the Standby, as far as pruning is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Which object it is.
    pub key: Key,
    /// Whether the mirror made it.
    pub marked: bool,
}

/// How a list of the Active ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Whole: these are all objects of the kind, mirrored or not.
    Whole(BTreeSet<Key>),
    /// It failed, or ended early. What it does not show may exist.
    Broken,
}

/// The copies whose original is gone. A broken list prunes nothing, and nothing prunes what the mirror did not make.
pub fn gone(listed: &Listed, copies: &[Copied]) -> Vec<Key> {
    let Listed::Whole(originals) = listed else { return Vec::new() };
    copies
        .iter()
        .filter(|copy| copy.marked && !originals.contains(&copy.key))
        .map(|copy| copy.key.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{Copied, Listed, gone};
    use crate::api::kind::{HubKind, MirroredKind};
    use crate::decision::copy::Key;

    fn key(number: u8) -> Key {
        Key::new(MirroredKind::Hub(HubKind::Cluster), "ns", &format!("c{number}"))
    }

    fn copies() -> impl Strategy<Value = Vec<Copied>> {
        prop::collection::vec((0_u8..20, any::<bool>()), 0..20).prop_map(|found| {
            found.into_iter().map(|(number, marked)| Copied { key: key(number), marked }).collect()
        })
    }

    proptest! {
        #[test]
        fn exactly_the_marked_copies_without_original_go(copies in copies(), originals in prop::collection::btree_set(0_u8..20, 0..20)) {
            let originals: BTreeSet<Key> = originals.into_iter().map(key).collect();
            let gone = gone(&Listed::Whole(originals.clone()), &copies);
            for copy in &copies {
                prop_assert_eq!(gone.contains(&copy.key), copies.iter().any(|it| it.marked && it.key == copy.key) && !originals.contains(&copy.key));
            }
        }

        #[test]
        fn a_broken_list_prunes_nothing(copies in copies()) {
            prop_assert!(gone(&Listed::Broken, &copies).is_empty());
        }
    }
}
