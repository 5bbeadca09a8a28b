//! What a session does to nodes, or expects of them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::script::LONGEST_MS;
use crate::layout::{ConsistencyMode, LARGEST_FACTOR};

/// Something that is done to nodes, or expected of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Operation {
    /// Starts nodes with empty metadata, not connected to anything.
    Start {
        /// The nodes.
        nodes: Vec<String>,
        /// Their configuration.
        config: ScriptConfig,
        /// How far their wall clocks are ahead.
        #[serde(default)]
        clock_offset_ms: BTreeMap<String, i64>,
    },
    /// Ends every node.
    StopAll,
    /// Ends nodes as SIGKILL does.
    Kill {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Ends nodes and starts them anew with their files.
    Restart {
        /// The nodes.
        nodes: Vec<String>,
        /// By which signal they end.
        #[serde(default)]
        signal: Option<String>,
        /// What they lose.
        #[serde(default)]
        lose: ScriptLoss,
        /// Their configuration, if it changes.
        #[serde(default)]
        config: Option<ScriptConfig>,
    },
    /// Stops nodes in their tracks.
    Pause {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Lets stopped nodes go on.
    Resume {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Separates two groups of nodes.
    Partition {
        /// The groups.
        between: [Vec<String>; 2],
        /// How.
        kind: ScriptCut,
    },
    /// Mends all partitions.
    Heal,
    /// A node must have ended.
    ExpectExit {
        /// The node.
        node: String,
        /// With which code.
        code: i32,
        /// How long it may take.
        within_ms: u64,
    },
    /// A node must run.
    ExpectRunning {
        /// The node.
        node: String,
    },
    /// A remark.
    Note {},
}

/// No clock is off by more: ten years.
const LARGEST_OFFSET_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

impl Operation {
    /// What is wrong with its numbers, if anything.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Start { config, clock_offset_ms, .. } => {
                config.check()?;
                match clock_offset_ms.values().find(|offset| offset.unsigned_abs() > LARGEST_OFFSET_MS) {
                    Some(offset) => Err(format!("clock_offset_ms {offset} is more than ten years")),
                    None => Ok(()),
                }
            }
            Self::Restart { config: Some(config), .. } => config.check(),
            Self::ExpectExit { within_ms, .. } if *within_ms > LONGEST_MS => {
                Err(format!("within_ms {within_ms} is more than a day"))
            }
            _ => Ok(()),
        }
    }
}

impl ScriptConfig {
    fn check(&self) -> Result<(), String> {
        let factor = self.replication_factor;
        let good = (1..=LARGEST_FACTOR).contains(&factor);
        if good {
            Ok(())
        } else {
            Err(format!("replication_factor {factor} is not from 1 to {LARGEST_FACTOR}"))
        }
    }
}

/// Configuration of nodes.
#[derive(Debug, Clone, Deserialize)]
pub struct ScriptConfig {
    /// Copies of each partition.
    pub replication_factor: usize,
    /// `consistency_mode`.
    #[serde(default)]
    pub consistency_mode: ConsistencyMode,
    /// Whether there is an `admin_token`.
    #[serde(default)]
    pub admin_token: bool,
    /// Whether there is a `metrics_token`.
    #[serde(default)]
    pub metrics_token: bool,
    /// `metrics_require_token`.
    #[serde(default)]
    pub metrics_require_token: bool,
    /// `same` or another secret.
    #[serde(default)]
    pub rpc_secret: Option<String>,
}

/// What nodes lose.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptLoss {
    /// Nothing.
    #[default]
    Nothing,
    /// The layout file.
    LayoutFile,
    /// Everything.
    AllMetadata,
}

/// How nodes are separated.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptCut {
    /// Packets vanish.
    Silent,
    /// Connections are refused and torn.
    Reset,
}
