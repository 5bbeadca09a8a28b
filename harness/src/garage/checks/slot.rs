//! Maps that are looked up far more often than they grow.

use std::collections::BTreeMap;

/// The value of `key` in `map`, made if it is not there. The key is copied only then, as it is not by `entry`.
pub fn slot<'a, V: Default>(map: &'a mut BTreeMap<String, V>, key: &str) -> Option<&'a mut V> {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), V::default());
    }
    map.get_mut(key)
}
