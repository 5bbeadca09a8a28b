//! What the meshes of a hub share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::directory::Directory;
use super::journal::Recorder;
use super::rule::Rules;
use crate::mesh::Pacing;

/// What the meshes of a hub share.
#[derive(Debug)]
pub struct Shared {
    /// The history.
    pub recorder: Recorder,
    /// Names and addresses.
    pub directory: Directory,
    /// How fast things happen.
    pub pacing: Pacing,
    /// Faults on single calls.
    pub rules: Arc<Rules>,
    calls: AtomicU64,
    routed: AtomicUsize,
}

impl Shared {
    /// What the meshes of a hub share that records with `recorder`.
    #[must_use]
    pub fn new(recorder: Recorder, pacing: Pacing) -> Self {
        Self {
            recorder,
            directory: Directory::default(),
            pacing,
            rules: Arc::default(),
            calls: AtomicU64::new(0),
            routed: AtomicUsize::new(0),
        }
    }

    /// The number of the next call.
    pub(super) fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A number that is another one each time, for taking turns.
    pub(super) fn next_route(&self) -> usize {
        self.routed.fetch_add(1, Ordering::Relaxed)
    }
}
