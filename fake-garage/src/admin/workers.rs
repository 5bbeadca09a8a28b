//! The background workers of a node, all of them idle or done, and their variables (Garage admin reference §10b).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::store::written;

/// Names of the replicated tables, in the order in which a node sets them up.
pub const TABLES: [&str; 12] = [
    "admin_token",
    "bucket_v2",
    "bucket_alias",
    "key",
    "object",
    "bucket_object_counter",
    "multipart_upload",
    "bucket_mpu_counter",
    "version",
    "block_ref",
    "k2v_item",
    "k2v_index_counter_v2",
];

/// A worker. It never has anything to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    id: u64,
    name: String,
    state: &'static str,
    errors: u64,
    consecutive_errors: u64,
    last_error: Option<()>,
    tranquility: Option<u64>,
    progress: Option<String>,
    queue_length: Option<u64>,
    persistent_errors: Option<u64>,
    freeform: Vec<String>,
}

/// Body of `ListWorkers`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListWorkersRequest {
    #[serde(default)]
    busy_only: bool,
    #[serde(default)]
    error_only: bool,
}

/// Body of `GetWorkerInfo`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct WorkerRequest {
    id: u64,
}

/// Body of `GetWorkerVariable`.
#[derive(Debug, Clone, Deserialize)]
pub struct GetVariableRequest {
    #[serde(default)]
    variable: Option<String>,
}

/// Body and answer of `SetWorkerVariable`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetVariableRequest {
    variable: String,
    value: String,
}

/// The variables of a node's workers that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variables {
    resync_tranquility: u64,
    resync_worker_count: u64,
    scrub_tranquility: u64,
    /// Block repairs that were launched. Each is over at once, for there are no blocks, and stays listed.
    block_repairs: u64,
}

impl Default for Variables {
    fn default() -> Self {
        Self { resync_tranquility: 2, resync_worker_count: 1, scrub_tranquility: 4, block_repairs: 0 }
    }
}

/// Most block resync workers of a node.
const MAX_RESYNC_WORKERS: u64 = 8;

impl Variables {
    /// A block repair is launched.
    pub fn launch_block_repair(&mut self) {
        self.block_repairs += 1;
    }

    /// One variable, or all.
    pub fn get(
        &self,
        request: &GetVariableRequest,
        now: Timestamp,
    ) -> Result<BTreeMap<String, String>, ApiError> {
        let all = self.all(now);
        match &request.variable {
            None => Ok(all),
            Some(name) => {
                let value = all.get(name).ok_or_else(unknown)?;
                Ok([(name.clone(), value.clone())].into())
            }
        }
    }

    /// Sets a variable.
    pub fn set(
        &mut self,
        request: &SetVariableRequest,
        now: Timestamp,
    ) -> Result<SetVariableRequest, ApiError> {
        if !self.all(now).contains_key(&request.variable) {
            return Err(unknown());
        }
        let invalid = || ApiError::internal(format_args!("invalid value: {}", request.value));
        let value: u64 = request.value.parse().map_err(|_| invalid())?;
        match request.variable.as_str() {
            "resync-tranquility" => self.resync_tranquility = value,
            "resync-worker-count" if (1..=MAX_RESYNC_WORKERS).contains(&value) => {
                self.resync_worker_count = value;
            }
            "scrub-tranquility" => self.scrub_tranquility = value,
            _ => return Err(invalid()),
        }
        Ok(request.clone())
    }

    fn all(&self, now: Timestamp) -> BTreeMap<String, String> {
        let (today, scrub) = (now.strftime("%Y-%m-%d").to_string(), written(next_scrub(now)));
        [
            ("lifecycle-last-completed", today),
            ("resync-tranquility", self.resync_tranquility.to_string()),
            ("resync-worker-count", self.resync_worker_count.to_string()),
            ("scrub-corruptions_detected", "0".to_owned()),
            ("scrub-last-completed", "never".to_owned()),
            ("scrub-next-run", scrub),
            ("scrub-tranquility", self.scrub_tranquility.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

fn unknown() -> ApiError {
    ApiError::internal("variable does not exist")
}

/// Scrubs run about every 25 to 35 days; here it is always 30.
fn next_scrub(now: Timestamp) -> Timestamp {
    now.saturating_add(jiff::SignedDuration::from_hours(30 * 24)).unwrap_or(now)
}

/// The workers of a node that the request means.
#[must_use]
pub fn list(request: ListWorkersRequest, variables: &Variables, now: Timestamp) -> Vec<Worker> {
    // None is busy and none has failed.
    if request.busy_only || request.error_only { Vec::new() } else { all(variables, now) }
}

/// One worker.
pub fn get(request: WorkerRequest, variables: &Variables, now: Timestamp) -> Result<Worker, ApiError> {
    let found = all(variables, now).into_iter().find(|worker| worker.id == request.id);
    found.ok_or_else(|| ApiError::new(404, "NoSuchWorker", format!("Worker not found: {}", request.id)))
}

fn all(variables: &Variables, now: Timestamp) -> Vec<Worker> {
    let mut workers = vec![Worker::idle("Block resync queue deferred worker")];
    workers.extend((1..=MAX_RESYNC_WORKERS).map(|number| Worker::resync(number, variables)));
    workers.push(Worker::scrub(variables, now));
    for table in TABLES {
        workers
            .extend(["Merkle", "sync", "GC", "queue"].map(|part| Worker::idle(&format!("{table} {part}"))));
        if table == "block_ref" {
            workers.push(Worker::lifecycle(now));
        }
    }
    workers.extend((0..variables.block_repairs).map(|_| Worker::block_repair()));
    for (worker, id) in workers.iter_mut().zip(1..) {
        worker.id = id;
    }
    workers
}

impl Worker {
    fn idle(name: &str) -> Self {
        Self {
            id: 0,
            name: name.to_owned(),
            state: "idle",
            errors: 0,
            consecutive_errors: 0,
            last_error: None,
            tranquility: None,
            progress: None,
            queue_length: Some(0),
            persistent_errors: None,
            freeform: Vec::new(),
        }
    }

    fn resync(number: u64, variables: &Variables) -> Self {
        let worker = Self::idle(&format!("Block resync worker #{number}"));
        if number <= variables.resync_worker_count {
            let tranquility = Some(variables.resync_tranquility);
            Self { tranquility, persistent_errors: Some(0), ..worker }
        } else {
            let freeform = vec!["This worker is currently disabled".to_owned()];
            Self { queue_length: None, freeform, ..worker }
        }
    }

    fn block_repair() -> Self {
        Self { state: "done", queue_length: None, ..Self::idle("Block repair worker") }
    }

    fn scrub(variables: &Variables, now: Timestamp) -> Self {
        Self {
            tranquility: Some(variables.scrub_tranquility),
            queue_length: None,
            persistent_errors: Some(0),
            freeform: vec![
                "Last scrub completed at 1970-01-01T00:00:00.000Z".to_owned(),
                format!("Next scrub scheduled for {}", written(next_scrub(now))),
            ],
            ..Self::idle("Block scrub worker")
        }
    }

    fn lifecycle(now: Timestamp) -> Self {
        let freeform = vec![now.strftime("Last completed: %Y-%m-%d").to_string()];
        Self { queue_length: None, freeform, ..Self::idle("object lifecycle worker") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launched_block_repair_is_a_further_worker_that_is_done_and_stays() {
        let (mut variables, now) = (Variables::default(), Timestamp::UNIX_EPOCH);
        let listed = |variables: &Variables| all(variables, now);
        let before = listed(&variables);
        variables.launch_block_repair();
        let after = listed(&variables);
        assert_eq!(after[..before.len()], before[..], "the others keep their numbers");
        let repair = after.last().unwrap();
        assert_eq!((repair.id, repair.state), (before.len() as u64 + 1, "done"));
        assert_eq!(repair.name, "Block repair worker");
    }
}
