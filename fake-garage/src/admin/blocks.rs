//! Blocks and repairs of a node. Nothing is stored, so there are no blocks (Garage admin reference §10b).

use serde::{Deserialize, Serialize};

use super::error::ApiError;

/// Body of `LaunchRepairOperation`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepairRequest {
    repair_type: RepairType,
}

impl RepairRequest {
    /// Whether the blocks are to be repaired. Nothing else leaves a trace.
    #[must_use]
    pub fn repairs_blocks(self) -> bool {
        matches!(self.repair_type, RepairType::Blocks)
    }
}

/// What can be repaired. The order of the names is on the wire in error messages.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RepairType {
    Tables,
    Blocks,
    Versions,
    MultipartUploads,
    BlockRefs,
    BlockRc,
    Rebalance,
    Scrub(#[expect(dead_code, reason = "all commands have the same effect: none")] ScrubCommand),
    Aliases,
    ClearResyncQueue,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ScrubCommand {
    Start,
    Pause,
    Resume,
    Cancel,
}

/// Body of `GetBlockInfo`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockRequest {
    block_hash: String,
}

/// Body of `RetryBlockResync`. The name is on the wire in error messages.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum LocalRetryBlockResyncRequest {
    /// All blocks in error.
    All {
        /// Must be true.
        all: bool,
    },
    /// These blocks.
    Blocks {
        /// Their hashes.
        block_hashes: Vec<String>,
    },
}

/// Answer of `RetryBlockResync`.
#[derive(Debug, Serialize)]
pub struct Retried {
    count: u64,
}

/// Answer of `PurgeBlocks`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PurgeReport {
    blocks_purged: usize,
    objects_deleted: u64,
    uploads_deleted: u64,
    versions_deleted: u64,
    block_refs_purged: u64,
}

/// `GetBlockInfo`: there is no block.
#[must_use]
pub fn info(request: &BlockRequest) -> ApiError {
    let hash = &request.block_hash;
    if hash.len() < 4 {
        return ApiError::bad_request("Please specify at least 4 characters of the block hash");
    }
    ApiError::new(404, "NoSuchBlock", format!("Block not found: {hash}"))
}

/// `RetryBlockResync`: no block is in error.
pub fn retry(request: &LocalRetryBlockResyncRequest) -> Result<Retried, ApiError> {
    match request {
        LocalRetryBlockResyncRequest::All { all: true } => Ok(Retried { count: 0 }),
        LocalRetryBlockResyncRequest::All { all: false } => Err(ApiError::bad_request("nonsense")),
        LocalRetryBlockResyncRequest::Blocks { block_hashes } => {
            check_hashes(block_hashes)?;
            match block_hashes.first() {
                None => Ok(Retried { count: 0 }),
                Some(hash) => {
                    Err(ApiError::internal(format_args!("Block {} was not in an errored state", &hash[..16])))
                }
            }
        }
    }
}

/// `PurgeBlocks`: a block that does not exist counts as purged.
pub fn purge(hashes: &[String]) -> Result<PurgeReport, ApiError> {
    check_hashes(hashes)?;
    Ok(PurgeReport {
        blocks_purged: hashes.len(),
        objects_deleted: 0,
        uploads_deleted: 0,
        versions_deleted: 0,
        block_refs_purged: 0,
    })
}

fn check_hashes(hashes: &[String]) -> Result<(), ApiError> {
    for hash in hashes {
        match hex::decode(hash) {
            Ok(bytes) if bytes.len() == 32 => {}
            Ok(_) => return Err(ApiError::bad_request("invalid hash")),
            Err(error) => return Err(ApiError::bad_request(format_args!("invalid hash: {error}"))),
        }
    }
    Ok(())
}
