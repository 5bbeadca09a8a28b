//! The JSON Schema of a history, for other tools.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

use crate::{Header, Record};

/// A line of a history: the first is a header, every further one a record.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "exists for its schema only")]
enum Line {
    /// The first line.
    Header(Header),
    /// Every further line.
    Record(Box<Record>),
}

/// The schema that each line of a history satisfies.
#[must_use]
pub fn line_schema() -> Schema {
    let mut schema = schema_for!(Line);
    schema.insert("title".to_owned(), "A line of an onewriter history".into());
    schema.insert("$id".to_owned(), crate::SCHEMA.into());
    schema
}
