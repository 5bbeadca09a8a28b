//! The first line of a history.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the schema that this crate reads and writes.
pub const SCHEMA: &str = "onewriter.history/1";

/// The first line of a history: which schema, which run, what took part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Always [`SCHEMA`] in files that this crate writes.
    pub schema: String,
    /// Name of the run, unique on its machine.
    pub run: String,
    /// When the file was begun.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// The sites that take part, in a fixed order.
    #[serde(default)]
    pub sites: Vec<String>,
    /// Versions of what took part: program name to version.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
}

impl Header {
    /// A header of the current schema, begun now.
    #[must_use]
    pub fn new(run: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            run: run.into(),
            started_at: Timestamp::now(),
            sites: Vec::new(),
            versions: BTreeMap::new(),
        }
    }
}
