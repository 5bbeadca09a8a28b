//! Whether a live object already is what is wanted of it.

use serde_json::Value;

/// Whether `live` holds everything that `wanted` states. What `wanted` does not mention is somebody else's.
///
/// Server-side apply would find nothing to change either, but it would still be a write.
///
/// ```
/// use garage_operator::decision::drift::covers;
/// use serde_json::json;
/// let live = json!({"spec": {"replicas": 1, "revisionHistoryLimit": 10}});
/// assert!(covers(&live, &json!({"spec": {"replicas": 1}})));
/// assert!(!covers(&live, &json!({"spec": {"replicas": 2}})));
/// ```
pub fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (_, wanted) if is_empty(wanted) => is_empty(live) || !wanted.is_array(),
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| live.get(key).map_or_else(|| is_empty(value), |found| covers(found, value))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::covers;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case(json!({"a": 1, "b": 2}), json!({"a": 1}), true)]
    #[case(json!({"a": 1}), json!({"a": 1, "b": {}}), true)]
    #[case(json!({"a": 1}), json!({"b": 1}), false)]
    #[case(json!([1, 2]), json!([1]), false)]
    #[case(json!([{"name": "x", "default": true}]), json!([{"name": "x"}]), true)]
    #[case(json!({"a": [1]}), json!({"a": []}), false)]
    #[case(json!("x"), json!("y"), false)]
    fn a_live_object_covers_what_is_wanted_or_not(
        #[case] live: Value,
        #[case] wanted: Value,
        #[case] covered: bool,
    ) {
        assert_eq!(covers(&live, &wanted), covered);
    }
}
