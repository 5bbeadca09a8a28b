//! Whether somebody else writes the layout (design record D8): a detective control, never a lock.
//!
//! A Writer knows every version since it became one: it recorded what it was about to apply. A Follower cannot know what
//! its writer applied; it only sees when two sites hold different contents for one version.

use sha2::{Digest, Sha256};

use crate::api::condition::{FOREIGN_LAYOUT_WRITER, Verdict};
use crate::api::layout::LayoutSiteRole;
use crate::api::observed::{ForeignWriterStatus, LayoutIntent, LayoutWriterStatus};
use crate::garage::{ClusterLayout, LayoutRole};
use crate::mutant::{self, Mutant};

/// A version that this Writer did not apply.
pub const UNKNOWN_VERSION: &str = "UnknownLayoutVersion";
/// Another site holds other content for the same version.
pub const OTHER_CONTENT: &str = "LayoutContentDiffers";

/// A version with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Number of the version.
    pub version: i64,
    /// Digest of roles and parameters.
    pub digest: String,
}

impl Content {
    /// What a layout holds.
    pub fn of(layout: &ClusterLayout) -> Self {
        Self { version: layout.version, digest: digest(layout) }
    }

    /// What a layout will hold once its staged changes are applied as the next version.
    pub fn after_apply(layout: &ClusterLayout) -> Self {
        let mut next = ClusterLayout { version: layout.version + 1, ..layout.clone() };
        for change in &layout.staged_role_changes {
            next.roles.retain(|role| !role.id.eq_ignore_ascii_case(&change.id));
            if !change.remove {
                next.roles.push(LayoutRole {
                    id: change.id.clone(),
                    zone: change.zone.clone().unwrap_or_default(),
                    tags: change.tags.clone(),
                    capacity: change.capacity,
                });
            }
        }
        next.parameters = layout.staged_parameters.or(layout.parameters);
        Self::of(&next)
    }

    fn intent(&self) -> LayoutIntent {
        LayoutIntent { version: self.version, digest: self.digest.clone() }
    }

    fn is(&self, intent: &LayoutIntent) -> bool {
        (self.version, &self.digest) == (intent.version, &intent.digest)
    }
}

fn digest(layout: &ClusterLayout) -> String {
    let mut lines: Vec<String> = layout
        .roles
        .iter()
        .map(|role| {
            let mut tags = role.tags.clone();
            tags.sort_unstable();
            format!("{} {:?} {:?} {tags:?}", role.id.to_ascii_lowercase(), role.zone, role.capacity)
        })
        .collect();
    lines.sort_unstable();
    let text = format!("{lines:?} {:?}", layout.parameters);
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

/// The layout of another site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its name in `remoteClusters`.
    pub site: String,
    /// What it holds.
    pub content: Content,
}

/// The record after a pass that saw these layouts; `live` is this site's own.
pub fn observe(
    record: Option<&LayoutWriterStatus>,
    role: LayoutSiteRole,
    live: Option<&Content>,
    elsewhere: &[Elsewhere],
) -> LayoutWriterStatus {
    let mut next = record.filter(|record| record.role == role).cloned().unwrap_or_else(|| begin(role));
    let Some(live) = live else { return next };
    if mutant::is(Mutant::ForeignWriterSilent) {
        return next;
    }
    if role == LayoutSiteRole::Writer {
        count(&mut next, live, elsewhere);
    }
    let other = elsewhere.iter().find(|other| {
        let content = &other.content;
        live.version > 0 && content.version == live.version && content.digest != live.digest
    });
    if let Some(other) = other.filter(|_| next.foreign.is_none()) {
        let (version, site) = (live.version, &other.site);
        next.foreign = Some(ForeignWriterStatus {
            reason: OTHER_CONTENT.to_owned(),
            message: format!("site {site:?} holds another layout version {version} than this site"),
            version,
        });
    }
    next
}

/// The record before an apply: what is about to be applied on top of `live`.
pub fn intend(record: Option<&LayoutWriterStatus>, live: &Content, next: &Content) -> LayoutWriterStatus {
    let mut record = observe(record, LayoutSiteRole::Writer, Some(live), &[]);
    record.intended = Some(next.intent());
    record
}

/// The record once all nodes of the site have lost their layout on purpose: versions are counted anew.
pub fn forget_versions(record: &LayoutWriterStatus) -> LayoutWriterStatus {
    LayoutWriterStatus { foreign: record.foreign.clone(), ..begin(record.role) }
}

/// The record once a person has seen the evidence.
pub fn acknowledge(record: &LayoutWriterStatus) -> LayoutWriterStatus {
    LayoutWriterStatus { foreign: None, ..record.clone() }
}

fn begin(role: LayoutSiteRole) -> LayoutWriterStatus {
    LayoutWriterStatus {
        role,
        last_applied_version: None,
        baseline_version: None,
        intended: None,
        foreign: None,
    }
}

/// Counts the live version among those this Writer knows, or takes it for evidence.
fn count(record: &mut LayoutWriterStatus, live: &Content, elsewhere: &[Elsewhere]) {
    if record.intended.as_ref().is_some_and(|intent| live.is(intent)) {
        record.intended = None;
        record.last_applied_version = Some(live.version);
        record.baseline_version = Some(live.version);
        return;
    }
    let mut known = record.last_applied_version.max(record.baseline_version);
    // Without any layout yet, one that arrives was there before these nodes joined it.
    known = known.filter(|known| *known > 0 || record.last_applied_version.is_some());
    if mutant::is(Mutant::ForeignWriterFalseAlarm) {
        known = known.or(Some(-1));
    }
    match known {
        // A version that another site holds already was applied before this one became the Writer.
        None => {
            let there = elsewhere.iter().map(|other| other.content.version).max().unwrap_or(0);
            record.baseline_version = Some(live.version.max(there));
        }
        Some(known) if live.version > known => {
            let version = live.version;
            record.baseline_version = Some(version);
            record.foreign = Some(ForeignWriterStatus {
                reason: UNKNOWN_VERSION.to_owned(),
                message: format!(
                    "layout version {version} was not applied by this Writer, which knew version {known}"
                ),
                version,
            });
        }
        Some(_) => {}
    }
}

/// The condition, stated only while there is evidence.
pub fn verdict(record: &LayoutWriterStatus) -> Option<Verdict> {
    let foreign = record.foreign.as_ref()?;
    let reason = if foreign.reason == OTHER_CONTENT { OTHER_CONTENT } else { UNKNOWN_VERSION };
    Some(Verdict::new(FOREIGN_LAYOUT_WRITER, true, reason, foreign.message.as_str()))
}

#[cfg(test)]
#[path = "foreign_writer_tests.rs"]
mod tests;
