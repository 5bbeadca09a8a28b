//! Fields whose inside is nobody's business here: kept as they are.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An object that is stored and copied, and never looked into.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Open(pub Map<String, Value>);

impl schemars::JsonSchema for Open {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Open".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }

    fn inline_schema() -> bool {
        true
    }
}
