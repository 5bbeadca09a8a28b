//! Maps that are looked up far more often than they grow.

use std::cell::Cell;
use std::collections::BTreeMap;

/// The value of `key` in `map`, made if it is not there. The key is copied only then, as it is not by `entry`.
pub fn slot<'a, V: Default>(map: &'a mut BTreeMap<String, V>, key: &str) -> Option<&'a mut V> {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), V::default());
    }
    map.get_mut(key)
}

/// Values by mesh. Events come in runs of the same mesh, and names of meshes begin alike: so the one that was asked for
/// last is looked at first, and only then the others.
#[derive(Debug, Clone)]
pub struct ByMesh<V> {
    /// Sorted by their names.
    entries: Vec<(String, V)>,
    last: Cell<usize>,
}

impl<V> Default for ByMesh<V> {
    fn default() -> Self {
        Self { entries: Vec::new(), last: Cell::new(0) }
    }
}

impl<V> ByMesh<V> {
    fn find(&self, mesh: &str) -> Result<usize, usize> {
        let last = self.last.get();
        if self.entries.get(last).is_some_and(|(name, _)| name == mesh) {
            return Ok(last);
        }
        let found = self.entries.binary_search_by(|(name, _)| name.as_str().cmp(mesh));
        self.last.set(found.unwrap_or(last));
        found
    }

    /// The value of `mesh`.
    pub fn get(&self, mesh: &str) -> Option<&V> {
        self.find(mesh).ok().map(|at| &self.entries[at].1)
    }

    /// The value of `mesh`, to change it.
    pub fn get_mut(&mut self, mesh: &str) -> Option<&mut V> {
        self.find(mesh).ok().map(|at| &mut self.entries[at].1)
    }

    /// The value of `mesh`, made by `make` if there is none.
    pub fn slot_or(&mut self, mesh: &str, make: impl FnOnce() -> V) -> &mut V {
        let at = self.find(mesh).unwrap_or_else(|at| {
            self.entries.insert(at, (mesh.to_owned(), make()));
            self.last.set(at);
            at
        });
        &mut self.entries[at].1
    }

    /// The value of `mesh`, made if there is none.
    pub fn slot(&mut self, mesh: &str) -> &mut V
    where
        V: Default,
    {
        self.slot_or(mesh, V::default)
    }

    /// Gives `mesh` another value.
    pub fn insert(&mut self, mesh: &str, value: V) {
        match self.find(mesh) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (mesh.to_owned(), value)),
        }
    }

    /// Forgets `mesh`.
    pub fn remove(&mut self, mesh: &str) -> Option<V> {
        self.find(mesh).ok().map(|at| self.entries.remove(at).1)
    }

    /// The meshes, by name.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().map(|(mesh, _)| mesh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_found_as_in_any_other_map(
            steps in proptest::collection::vec((0_u8..4, "[a-c]{1,2}", any::<u8>()), 0..60)
        ) {
            let (mut by_mesh, mut map) = (ByMesh::default(), BTreeMap::new());
            for (what, mesh, value) in steps {
                match what {
                    0 => prop_assert_eq!(by_mesh.remove(&mesh), map.remove(&mesh)),
                    1 => prop_assert_eq!(*by_mesh.slot(&mesh), *map.entry(mesh).or_default()),
                    2 => prop_assert_eq!(by_mesh.get(&mesh), map.get(&mesh)),
                    _ => {
                        by_mesh.insert(&mesh, value);
                        map.insert(mesh, value);
                    }
                }
                prop_assert!(by_mesh.keys().eq(map.keys()));
            }
        }
    }
}
