//! What the copies look like that are there: their version, and a print of what was written.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;

use crate::api::kind::MirroredKind;
use crate::decision::copy::{Key, Print, original_of, print_of};
use crate::decision::prune::Copied;

/// A copy as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Version that the next write rests on.
    pub(super) version: String,
    /// Uid of the copy.
    pub(super) uid: String,
    /// Uid of the original that it copies.
    pub(super) original: String,
    /// What it looks like.
    pub(super) print: Print,
}

impl Seen {
    /// This copy; `None` if the mirror did not make it.
    pub(super) fn of(kind: MirroredKind, live: &DynamicObject) -> Option<Self> {
        Some(Self {
            version: live.resource_version().unwrap_or_default(),
            uid: live.uid().unwrap_or_default(),
            original: original_of(live)?.to_owned(),
            print: print_of(kind, live),
        })
    }
}

/// All copies that the mirror made.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<BTreeMap<Key, Seen>>);

impl Known {
    pub(super) fn get(&self, key: &Key) -> Option<Seen> {
        self.lock().get(key).cloned()
    }

    pub(super) fn set(&self, key: &Key, seen: Option<Seen>) {
        match seen {
            Some(seen) => drop(self.lock().insert(key.clone(), seen)),
            None => drop(self.lock().remove(key)),
        }
    }

    /// Replaces what is known of a kind by what a list has shown.
    pub(super) fn learn(&self, kind: MirroredKind, listed: BTreeMap<Key, Seen>) {
        let mut known = self.lock();
        known.retain(|key, _| key.kind != kind);
        known.extend(listed);
    }

    /// The copies of a kind, for pruning.
    pub(super) fn copies(&self, kind: MirroredKind) -> Vec<Copied> {
        let of_kind = |key: &&Key| key.kind == kind;
        self.lock().keys().filter(of_kind).map(|key| Copied { key: key.clone(), marked: true }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
