//! Who may write the layout, moment by moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use onewriter_history::{Event, Record};

use super::roles::{Roles, Unreadable};
use super::slot::ByMesh;
use crate::checks::Seen;
use crate::garage::facts::{self, ClusterFact, Fact};
use crate::garage::role::Role;

/// What a site may do at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nobody said.
    Undeclared,
    /// Write the layout.
    Writes,
    /// No write any more; but its operator has not yet said that it enforces this. `committed` tells whether the API
    /// server already has the demotion.
    Demoting {
        /// Whether the API server has the demotion.
        committed: bool,
    },
    /// No write.
    Follows,
}

/// The standing of every site in every mesh.
///
/// A site may write if both the cell's declaration and the GarageCluster's spec allow it. A demotion takes effect with
/// the first status that enforces it and whose observed generation covers it (design record, "Status"); where a
/// history has no facts of GarageClusters, the cell's declaration counts at once.
#[derive(Debug, Default)]
pub struct Standings {
    roles: Roles,
    meshes: ByMesh<OfMesh>,
}

#[derive(Debug, Default)]
struct OfMesh {
    sites: BTreeMap<String, OfSite>,
    term: u64,
}

#[derive(Debug, Default)]
struct OfSite {
    declared: Option<Role>,
    spec: Option<Role>,
    demotion: Option<Demotion>,
}

/// A demotion that the operator has not confirmed yet.
#[derive(Debug, Clone, Default)]
pub struct Demotion {
    /// The write by which the API server got it, with the generation of the spec.
    pub committed: Option<(u64, Arc<Record>)>,
}

/// A demotion that the operator has confirmed.
#[derive(Debug, Clone)]
pub struct Confirmed {
    /// The mesh.
    pub mesh: String,
    /// The site.
    pub site: String,
    /// The write by which the API server got the demotion.
    pub committed: Arc<Record>,
}

impl OfSite {
    fn may_write(&self) -> bool {
        self.declared.is_none_or(Role::may_write) && self.spec.is_none_or(Role::may_write)
    }

    /// Changes something and opens or ends a demotion with it; tells whether who may write has changed.
    fn change(&mut self, change: impl FnOnce(&mut Self)) -> bool {
        let known = self.declared.is_some() || self.spec.is_some();
        let before = self.may_write();
        change(self);
        let now = self.may_write();
        if now {
            self.demotion = None;
        } else if known && before && self.spec.is_some() {
            self.demotion = Some(Demotion::default());
        }
        before != now
    }
}

impl Standings {
    /// Takes the next event. A demotion that it confirms is returned.
    pub fn take(&mut self, seen: &Seen<'_>) -> Result<Option<Confirmed>, Unreadable> {
        let Event::State(state) = &seen.record.event else { return Ok(None) };
        if let Some(mesh) = self.roles.take(seen.record)? {
            let of_mesh = self.meshes.slot(mesh);
            for (site, role) in self.roles.in_mesh(mesh) {
                let of_site = of_mesh.sites.entry(site.to_owned()).or_default();
                of_mesh.term += u64::from(of_site.change(|site| site.declared = Some(role)));
            }
            return Ok(None);
        }
        if state.subject != facts::CLUSTER {
            return Ok(None);
        }
        let Some((mesh, Fact::Cluster(fact))) = Fact::seen(seen) else { return Err(Unreadable) };
        Ok(if fact.connected { None } else { self.learn(mesh, fact, seen.record) })
    }

    /// Takes the next event where unreadable ones are another check's matter.
    pub fn follow(&mut self, seen: &Seen<'_>) {
        self.take(seen).unwrap_or_default();
    }

    /// Forgets `mesh`.
    pub fn forget(&mut self, mesh: &str) {
        self.roles.forget(mesh);
        self.meshes.remove(mesh);
    }

    fn learn(&mut self, mesh: &str, fact: &ClusterFact, record: &Arc<Record>) -> Option<Confirmed> {
        if fact.written.gone {
            return None;
        }
        let of_mesh = self.meshes.slot(mesh);
        let site = &fact.written.site;
        let of_site = of_mesh.sites.entry(site.clone()).or_default();
        of_mesh.term += u64::from(of_site.change(|site| site.spec = Some(fact.role())));
        let demotion = of_site.demotion.as_mut()?;
        if demotion.committed.is_none() && !fact.role().may_write() {
            demotion.committed = Some((fact.written.generation, record.clone()));
        }
        let (generation, committed) = demotion.committed.clone()?;
        if !fact.follows_since(generation) {
            return None;
        }
        of_site.demotion = None;
        Some(Confirmed { mesh: mesh.to_owned(), site: site.clone(), committed })
    }

    /// What `site` may do in `mesh` now.
    #[must_use]
    pub fn of(&self, mesh: &str, site: &str) -> Standing {
        let of_site = self.meshes.get(mesh).and_then(|mesh| mesh.sites.get(site));
        let Some(of_site) = of_site.filter(|site| site.declared.is_some()) else {
            return Standing::Undeclared;
        };
        match &of_site.demotion {
            _ if of_site.may_write() => Standing::Writes,
            Some(demotion) => Standing::Demoting { committed: demotion.committed.is_some() },
            None => Standing::Follows,
        }
    }

    /// Number of the term of `mesh`: it grows whenever who may write changes.
    #[must_use]
    pub fn term(&self, mesh: &str) -> u64 {
        self.meshes.get(mesh).map_or(0, |mesh| mesh.term)
    }

    /// Whether the roles of `mesh` were declared.
    #[must_use]
    pub fn is_declared(&self, mesh: &str) -> bool {
        self.roles.in_mesh(mesh).next().is_some()
    }

    /// The cell that declared the roles of `mesh`.
    #[must_use]
    pub fn cell(&self, mesh: &str) -> Option<&str> {
        self.roles.cell(mesh)
    }
}
