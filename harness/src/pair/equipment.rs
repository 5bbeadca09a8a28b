//! Which operator runs on a pair.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A request to a pair: its operators end, and the program `operator_bin` is started in their place at both sites, with
/// the arguments that operators share and `operator_args`. It is answered once both are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Equipment {
    /// The program.
    pub operator_bin: PathBuf,
    /// Its own arguments.
    pub operator_args: Vec<String>,
}
