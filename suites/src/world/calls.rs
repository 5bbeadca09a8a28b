//! The calls that were recorded so far.

use std::collections::BTreeSet;

use harness::failure::Failure;
use harness::site::Site;
use onewriter_history::{CallBegin, Event, Record};

use super::World;

impl World<'_> {
    /// The calls of `caller` in this mesh so far, oldest first.
    pub fn calls_of(&self, caller: &str) -> Result<Vec<CallBegin>, Failure> {
        let read = std::fs::read_to_string(&self.scope.journal);
        let text = read.map_err(|error| Failure::harness(Site::East, "read the hub's journal", error))?;
        let mesh = format!("\"mesh\":\"{}\"", self.stage.mesh.name);
        // Most lines are of other cells: they need not be parsed.
        let lines = text.lines().filter(|line| line.contains("\"call.begin\"") && line.contains(&mesh));
        let records = lines.filter_map(|line| serde_json::from_str::<Record>(line).ok());
        Ok(records
            .filter_map(|record| match record.event {
                Event::CallBegin(call) if call.caller.as_deref() == Some(caller) => Some(call),
                _ => None,
            })
            .collect())
    }

    /// How many layout writes `site` has made so far.
    pub fn writes_of(&self, site: Site) -> Result<usize, Failure> {
        Ok(self.calls_of(site.name())?.iter().filter(|call| call.layout_write).count())
    }

    /// How often `site` has called `path` so far.
    pub fn count_of(&self, site: Site, path: &str) -> Result<usize, Failure> {
        Ok(self.calls_of(site.name())?.iter().filter(|call| call.path == path).count())
    }

    /// Waits until `site` has called `path` so many times in all.
    pub async fn called(&self, site: Site, path: &str, times: usize) -> Result<(), Failure> {
        use harness::history::JournalTail;
        self.step(format!("await call {times} of {path} by {site}"));
        let step = "follow the hub's journal";
        let failed = |error| Failure::harness(site, step, error);
        let mut tail = JournalTail::open_at_end(&self.scope.journal).map_err(failed)?;
        // Opened before the calls so far are read: none is missed, and one that is in both counts once.
        let so_far = self.calls_of(site.name())?;
        let mut calls: BTreeSet<u64> =
            so_far.iter().filter(|call| call.path == path).map(|call| call.call).collect();
        let is_it = |call: &CallBegin| {
            call.mesh == self.stage.mesh.name
                && call.caller.as_deref() == Some(site.name())
                && call.path == path
        };
        let following = async {
            while calls.len() < times {
                if let Event::CallBegin(call) = tail.next().await.map_err(failed)?.event
                    && is_it(&call)
                {
                    calls.insert(call.call);
                }
            }
            Ok(())
        };
        let limit = self.scope.limits.step;
        tokio::time::timeout(limit, following).await.unwrap_or_else(|_elapsed| {
            let seen = self.count_of(site, path).unwrap_or_default();
            Err(self.not_so(site, format!("{times} calls of {path}"), format!("{seen} calls")))
        })
    }

    /// The site has called `path` since `before` calls of it.
    pub fn has_called(&self, site: Site, path: &str, before: usize) -> Result<(), Failure> {
        let now = self.count_of(site, path)?;
        self.claim(site, &format!("the site calls {path}"), now > before, || {
            format!("{now} calls in all, {before} of them before")
        })
    }
}

impl World<'_> {
    /// The lines of metric `name` of the operator of `site` that are about this cell.
    pub async fn metric(&self, site: Site, name: &str) -> Result<Vec<String>, Failure> {
        let page = harness::garage::metrics::page(self.scope, site).await;
        let page = page.map_err(|error| Failure::harness(site, "read the operator's metrics", error))?;
        let mine = |line: &&str| line.starts_with(name) && line.contains(&self.scope.namespace);
        Ok(page.lines().filter(mine).map(str::to_owned).collect())
    }
}
