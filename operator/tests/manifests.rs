//! The checked-in manifests say what the types say.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser};
use garage_operator::api::crd::{self, Conversion};
use garage_operator::api::v1beta2::GarageCluster;
use garage_operator::decision::spec_rules::objections;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rstest::rstest;
use serde_json::Value;

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

#[rstest]
#[case("crd", Conversion::Off, "")]
#[case("webhook/crd", Conversion::Webhook, "--webhooks ")]
fn the_definitions_are_those_of_the_types(
    #[case] folder: &str,
    #[case] conversion: Conversion,
    #[case] flag: &str,
) {
    for file in crd::files(conversion).unwrap() {
        let path = config().join(folder).join(&file.name);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == file.yaml,
            "{} differs from the types; run `cargo run -p garage-operator -- crds {flag}--output-dir \
             operator/deploy/{folder}`",
            path.display()
        );
    }
}

#[rstest]
fn no_definition_is_left_over(#[values("crd", "webhook/crd")] folder: &str) {
    let generated: BTreeSet<String> =
        crd::files(Conversion::Off).unwrap().into_iter().map(|file| file.name).collect();
    let checked_in: BTreeSet<String> = std::fs::read_dir(config().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(checked_in, generated);
}

/// A field that the types do not know would be lost on the way.
#[rstest]
fn the_examples_say_only_what_the_types_know(#[values("east", "west")] site: &str) {
    let text = std::fs::read_to_string(config().join(format!("examples/{site}.yaml"))).unwrap();
    let written: Value = serde_saphyr::from_str(text.rsplit("\n---\n").next().unwrap()).unwrap();
    let cluster: GarageCluster = serde_json::from_value(written.clone()).unwrap();
    let read = serde_json::to_value(&cluster.spec).unwrap();
    assert!(holds(&read, &written["spec"]), "{read:#} lacks something of {:#}", written["spec"]);
    assert_eq!(objections(&cluster.spec), Vec::<String>::new());
}

/// Whether `read` says all that was `written`, beside defaults.
fn holds(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            written.iter().all(|(name, written)| read.get(name).is_some_and(|read| holds(read, written)))
        }
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len()
                && read.iter().zip(written).all(|(read, written)| holds(read, written))
        }
        _ => read == written,
    }
}

fn definition(name: &str) -> CustomResourceDefinition {
    let text = std::fs::read_to_string(config().join("crd").join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// The schema of every served version, as JSON.
fn schemas(definition: &CustomResourceDefinition) -> Vec<Value> {
    let versions = definition.spec.versions.iter();
    assert_eq!(definition.spec.versions.len(), 2);
    versions.map(|version| serde_json::to_value(version.schema.as_ref().unwrap()).unwrap()).collect()
}

#[test]
fn site_role_is_an_enum_without_default_on_every_version() {
    for schema in schemas(&definition("garage.rajsingh.info_garageclusters.yaml")) {
        let pointer = "/openAPIV3Schema/properties/spec/properties/layoutManagement/properties/siteRole";
        let role = schema.pointer(pointer).expect("siteRole is in the schema");
        assert_eq!(role["enum"], serde_json::json!(["Writer", "Follower"]));
        assert_eq!(role.get("default"), None);
        assert_eq!(role.get("nullable"), None);
    }
}

#[test]
fn both_rules_of_the_design_record_are_there_word_for_word() {
    const FOLLOWER: &str = "!has(self.layoutManagement) || !has(self.layoutManagement.siteRole) || \
                            self.layoutManagement.siteRole != 'Follower' || ";
    let expected = [
        (
            "(has(self.remoteClusters) && size(self.remoteClusters) > 0)",
            "layoutManagement.siteRole: Follower requires at least one remoteClusters entry (a Follower with nothing \
             to follow is a cluster nobody can assign roles to)",
        ),
        (
            "!has(self.connectTo)",
            "layoutManagement.siteRole: Follower is not supported with connectTo; edge gateways and management \
             handles act on their layout owner",
        ),
    ];
    for schema in schemas(&definition("garage.rajsingh.info_garageclusters.yaml")) {
        let rules = schema.pointer("/openAPIV3Schema/properties/spec/x-kubernetes-validations").unwrap();
        for (rule, message) in expected {
            let wanted = serde_json::json!({ "rule": format!("{FOLLOWER}{rule}"), "message": message });
            assert!(rules.as_array().unwrap().contains(&wanted), "{wanted} is not among {rules}");
        }
    }
}

#[test]
fn nothing_is_nullable_so_that_an_explicit_null_is_pruned() {
    for file in crd::files(Conversion::Webhook).unwrap() {
        assert!(!file.yaml.contains("nullable"), "{} has nullable fields", file.name);
    }
}

#[test]
fn the_roles_grant_no_wildcards_and_no_listing_of_secrets() {
    for entry in std::fs::read_dir(config().join("rbac")).unwrap() {
        let path = entry.unwrap().path();
        let manifest: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for rule in manifest["rules"].as_array().unwrap_or(&Vec::new()) {
            let text = rule.to_string();
            assert!(!text.contains('*'), "{} grants a wildcard: {text}", path.display());
            if text.contains("secrets") {
                assert_eq!(rule["verbs"], serde_json::json!(["get", "create", "patch", "delete"]));
            }
        }
    }
}

#[rstest]
fn a_kustomization_names_every_manifest_of_its_parts(#[values("", "webhook")] folder: &str) {
    let base = config().join(folder);
    let text = std::fs::read_to_string(base.join("kustomization.yaml")).unwrap();
    let kustomization: Value = serde_saphyr::from_str(&text).unwrap();
    let resources: Vec<&str> =
        kustomization["resources"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for resource in &resources {
        assert!(base.join(resource).is_file(), "{resource} does not exist");
    }
    for manifest in std::fs::read_dir(config().join("rbac")).unwrap() {
        let name = manifest.unwrap().file_name().into_string().unwrap();
        assert!(
            resources.iter().any(|resource| resource.ends_with(&format!("rbac/{name}"))),
            "{name} is missing"
        );
    }
}

#[test]
fn the_deployment_is_started_with_options_that_exist() {
    let text = std::fs::read_to_string(config().join("manager/deployment.yaml")).unwrap();
    let deployment: Value = serde_saphyr::from_str(&text).unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].as_array().unwrap().iter().filter_map(Value::as_str);
    let webhook = ["--webhook-bind-address=:9443", "--pod-namespace=ns"];
    let line = ["garage-operator"].into_iter().chain(arguments).chain(webhook);
    let options = garage_operator::program::options::Options::try_parse_from(line).unwrap();
    assert_eq!(options.run.objection(), None);
}

#[test]
fn the_documentation_names_every_option_with_its_variable() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operator.md");
    let page = std::fs::read_to_string(page).unwrap();
    let command = garage_operator::program::options::Options::command();
    let options: Vec<_> = command
        .get_arguments()
        .filter(|option| option.get_long().is_some_and(|long| long != "help"))
        .collect();
    assert!(options.len() > 30, "{} options", options.len());
    for option in options {
        let Some(variable) = option.get_env() else { continue };
        let (long, variable) = (option.get_long().unwrap(), variable.to_string_lossy());
        // Test builds have more options than any shipped one.
        let row = format!("| `--{long}` | `{variable}` |");
        let known = ["crash-after-write", "mutant"].contains(&long) || page.contains(&row);
        assert!(known, "docs/operator.md has no row {row}");
    }
}
