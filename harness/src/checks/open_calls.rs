//! Calls that have begun and not ended.

use std::collections::BTreeMap;

/// How many calls may be open at once. A run has some hundreds; more than this means that their ends were lost.
const OPEN: usize = 1 << 16;

/// What a check remembers of each call that has begun and not ended.
#[derive(Debug)]
pub struct OpenCalls<T> {
    calls: BTreeMap<u64, T>,
}

impl<T> Default for OpenCalls<T> {
    fn default() -> Self {
        Self { calls: BTreeMap::new() }
    }
}

impl<T> OpenCalls<T> {
    /// Call `call` has begun. Returns what was remembered of the call that is given up to make room: of another one
    /// of that number, or of the oldest of too many.
    pub fn begin(&mut self, call: u64, what: T) -> Option<T> {
        let replaced = self.calls.insert(call, what);
        if replaced.is_some() || self.calls.len() <= OPEN {
            return replaced;
        }
        self.calls.pop_first().map(|(_, oldest)| oldest)
    }

    /// Call `call` has ended.
    pub fn end(&mut self, call: u64) -> Option<T> {
        self.calls.remove(&call)
    }

    /// What is remembered of call `call`, if it is open.
    #[must_use]
    pub fn get(&self, call: u64) -> Option<&T> {
        self.calls.get(&call)
    }

    /// What is remembered of the open calls, by number.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.calls.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_open_calls_the_oldest_is_given_up() {
        let mut open = OpenCalls::default();
        for call in 0..OPEN as u64 {
            assert_eq!(open.begin(call, call), None);
        }
        assert_eq!(open.begin(OPEN as u64, 7), Some(0));
        assert_eq!((open.end(0), open.end(1)), (None, Some(1)));
    }
}
