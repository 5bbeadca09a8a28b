//! Conversion of `GarageClusters` between their versions.
//!
//! v1beta1 has the same fields, so that a conversion only renames the version: everything survives a round trip, and
//! what is absent stays absent.

use serde_json::Value;
use thiserror::Error;

use crate::api::GROUP;
use crate::mutant::{self, Mutant};

/// The versions of `GarageCluster`.
pub const VERSIONS: [&str; 2] = ["v1beta1", "v1beta2"];

/// An object that cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConversionError {
    /// It is of another group or kind.
    #[error("an object with apiVersion {0:?} and kind {1:?} is not a GarageCluster")]
    NotACluster(String, String),
    /// The wanted version does not exist.
    #[error("GarageCluster has no version {0:?}; there are v1beta1 and v1beta2")]
    UnknownVersion(String),
}

/// The object in the wanted `apiVersion`.
pub fn convert(mut object: Value, wanted: &str) -> Result<Value, ConversionError> {
    if !is_served(wanted) {
        return Err(ConversionError::UnknownVersion(wanted.to_owned()));
    }
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if !is_served(&version) || kind != "GarageCluster" {
        return Err(ConversionError::NotACluster(version, kind));
    }
    object["apiVersion"] = wanted.into();
    if mutant::is(Mutant::ConversionDropsRole)
        && let Some(management) = object.pointer_mut("/spec/layoutManagement").and_then(Value::as_object_mut)
    {
        management.remove("siteRole");
    }
    Ok(object)
}

fn is_served(api_version: &str) -> bool {
    api_version.split_once('/').is_some_and(|(group, version)| group == GROUP && VERSIONS.contains(&version))
}

/// The layout role that a v1beta1 write left out although the stored object has one.
///
/// Clients of the older version may not know the field: leaving it out must not hand a Follower the right to write.
pub fn forgotten_role(old: &Value, new: &Value) -> Option<Value> {
    const ROLE: &str = "/spec/layoutManagement/siteRole";
    if new.pointer(ROLE).is_some_and(|role| !role.is_null()) {
        return None;
    }
    old.pointer(ROLE).filter(|role| !role.is_null()).cloned()
}

#[cfg(test)]
mod tests {
    use super::{ConversionError, convert, forgotten_role};
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use rstest::rstest;
    use serde_json::{Value, json};

    const OLD: &str = "garage.rajsingh.info/v1beta1";
    const NEW: &str = "garage.rajsingh.info/v1beta2";

    fn object() -> impl Strategy<Value = Value> {
        let role = prop_oneof![Just(None), Just(Some("Writer")), Just(Some("Follower"))];
        let phase = prop::option::of("[A-Z][a-z]{0,8}");
        (role.clone(), role, any::<Option<bool>>(), phase, any::<u8>()).prop_map(
            |(role, in_force, auto_apply, phase, replicas)| {
                let mut object = json!({
                    "apiVersion": NEW, "kind": "GarageCluster", "metadata": { "name": "garage" },
                    "spec": { "storage": { "replicas": replicas } },
                });
                if let Some(role) = role {
                    object["spec"]["layoutManagement"]["siteRole"] = role.into();
                }
                if let Some(auto_apply) = auto_apply {
                    object["spec"]["layoutManagement"]["autoApply"] = auto_apply.into();
                }
                if let Some(role) = in_force {
                    object["status"]["layoutWriter"]["role"] = role.into();
                }
                if let Some(phase) = phase {
                    object["status"]["phase"] = phase.into();
                }
                object
            },
        )
    }

    proptest! {
        #[test]
        fn a_round_trip_changes_nothing(object in object()) {
            let down = convert(object.clone(), OLD).unwrap();
            prop_assert_eq!(down["spec"].clone(), object["spec"].clone());
            prop_assert_eq!(down.get("status"), object.get("status"));
            prop_assert_eq!(convert(down, NEW).unwrap(), object);
        }
    }

    #[rstest]
    #[case(json!({"apiVersion": "v1", "kind": "Pod"}), NEW)]
    #[case(json!({"apiVersion": NEW, "kind": "GarageNode"}), OLD)]
    #[case(json!({}), OLD)]
    fn what_is_no_cluster_is_refused(#[case] object: Value, #[case] wanted: &str) {
        assert!(matches!(convert(object, wanted), Err(ConversionError::NotACluster(..))));
    }

    #[test]
    fn a_version_that_does_not_exist_is_refused() {
        let object = json!({"apiVersion": NEW, "kind": "GarageCluster"});
        let wanted = "garage.rajsingh.info/v1";
        assert_eq!(convert(object, wanted), Err(ConversionError::UnknownVersion(wanted.into())));
    }

    fn with_role(role: impl Into<Value>) -> Value {
        let role: Value = role.into();
        json!({ "spec": { "layoutManagement": { "siteRole": role } } })
    }

    #[rstest]
    #[case(with_role("Follower"), json!({"spec": {}}), Some("Follower"))]
    #[case(with_role("Follower"), with_role(Value::Null), Some("Follower"))]
    #[case(with_role("Follower"), with_role("Writer"), None)]
    #[case(json!({"spec": {}}), json!({"spec": {}}), None)]
    fn a_role_that_an_older_client_left_out_is_remembered(
        #[case] old: Value,
        #[case] new: Value,
        #[case] role: Option<&str>,
    ) {
        assert_eq!(forgotten_role(&old, &new), role.map(Value::from));
    }
}
