//! Calls that have begun and not ended.

use std::collections::VecDeque;

/// How many calls may be open at once. A run has some hundreds; more than this means that their ends were lost.
const OPEN: usize = 1 << 16;

/// What a check remembers of each call that has begun and not ended.
#[derive(Debug)]
pub struct OpenCalls<T> {
    /// By number. Calls begin in the order of their numbers and end soon, so nearly all happens at the end of a short
    /// queue.
    calls: VecDeque<(u64, T)>,
}

impl<T> Default for OpenCalls<T> {
    fn default() -> Self {
        Self { calls: VecDeque::new() }
    }
}

impl<T> OpenCalls<T> {
    /// Call `call` has begun. Returns what was remembered of the call that is given up to make room: of another one
    /// of that number, or of the oldest of too many.
    pub fn begin(&mut self, call: u64, what: T) -> Option<T> {
        if self.calls.back().is_none_or(|(last, _)| *last < call) {
            self.calls.push_back((call, what));
        } else {
            match self.find(call) {
                Ok(at) => return Some(std::mem::replace(&mut self.calls[at].1, what)),
                Err(at) => self.calls.insert(at, (call, what)),
            }
        }
        if self.calls.len() <= OPEN {
            return None;
        }
        self.calls.pop_front().map(|(_, oldest)| oldest)
    }

    /// Call `call` has ended.
    pub fn end(&mut self, call: u64) -> Option<T> {
        let at = self.find(call).ok()?;
        self.calls.remove(at).map(|(_, what)| what)
    }

    /// What is remembered of call `call`, if it is open.
    #[must_use]
    pub fn get(&self, call: u64) -> Option<&T> {
        self.find(call).ok().map(|at| &self.calls[at].1)
    }

    /// What is remembered of the open calls, by number.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.calls.iter().map(|(_, what)| what)
    }

    fn find(&self, call: u64) -> Result<usize, usize> {
        self.calls.binary_search_by_key(&call, |(number, _)| *number)
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
