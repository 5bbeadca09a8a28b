//! A GarageNode after a write.

use onewriter_history::Audit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Written, quantity};

/// A GarageNode after a write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeFact {
    /// The write. Read apart from the rest: reading flattened fields would copy all of them first.
    #[serde(flatten, skip_deserializing)]
    pub written: Written,
    /// Garage's identity of the node: declared for an external one, else what the operator found.
    pub node_id: Option<String>,
    /// Whether another site runs it.
    pub external: bool,
    /// Declared zone.
    pub zone: Option<String>,
    /// Declared capacity, bytes.
    pub capacity: Option<u64>,
    /// Whether it is declared to hold no data.
    pub gateway: bool,
}

impl NodeFact {
    pub(super) fn of(audit: &Audit, object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let node_id = spec["nodeId"].as_str().or_else(|| status["nodeId"].as_str());
        Self {
            written: Written::of(audit, object),
            node_id: node_id.map(str::to_ascii_lowercase),
            external: spec["external"].is_object(),
            zone: spec["zone"].as_str().map(str::to_owned),
            capacity: quantity::bytes(&spec["capacity"]),
            gateway: spec["gateway"].as_bool().unwrap_or_default(),
        }
    }
}
