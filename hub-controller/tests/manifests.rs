//! The checked-in manifests say what the program says.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser;
use hub_controller::api::access::Access;
use hub_controller::api::crd;
use hub_controller::program::clients::ClientRole;
use hub_controller::program::options::Options;
use rstest::rstest;
use serde_json::Value;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn documents(path: &Path) -> Vec<Value> {
    serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(deploy().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn the_definitions_are_those_of_the_types() {
    for file in crd::files().unwrap() {
        let path = deploy().join("crd").join(&file.name);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == file.yaml,
            "{} differs from the types; run `cargo run -p hub-controller -- crds --output-dir \
             hub-controller/deploy/crd`",
            path.display()
        );
    }
}

#[test]
fn no_definition_is_left_over() {
    let generated: BTreeSet<String> = crd::files().unwrap().into_iter().map(|file| file.name).collect();
    let checked_in: BTreeSet<String> =
        files("crd").iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(checked_in, generated);
}

#[test]
fn every_kind_has_a_status_of_its_own_and_clusters_know_the_active_controller() {
    for definition in crd::definitions() {
        let version = serde_json::to_value(&definition.spec.versions[0]).unwrap();
        let kind = &definition.spec.names.kind;
        assert!(version.pointer("/subresources/status").is_some(), "{kind}");
        let field = version.pointer(
            "/schema/openAPIV3Schema/properties/status/properties/activeController/properties/endpoint",
        );
        assert_eq!(field.is_some(), kind == "Cluster", "{kind}");
    }
}

#[test]
fn the_roles_grant_no_wildcards_and_name_the_leases_and_secrets_that_are_changed_by_name() {
    for path in files("rbac").into_iter().chain(files("reader")) {
        for manifest in documents(&path) {
            for rule in manifest["rules"].as_array().unwrap_or(&Vec::new()) {
                let text = rule.to_string();
                assert!(!text.contains('*'), "{} grants a wildcard: {text}", path.display());
                let creates = rule["verbs"] == serde_json::json!(["create"]);
                if text.contains("leases") && !creates {
                    assert!(rule["resourceNames"].is_array(), "{}: {text}", path.display());
                }
            }
        }
    }
}

#[test]
fn the_standbys_credential_for_the_active_reads_only() {
    for manifest in documents(&deploy().join("reader/standby_reader.yaml")) {
        for rule in manifest["rules"].as_array().unwrap_or(&Vec::new()) {
            for verb in texts(&rule["verbs"]) {
                assert!(["get", "list", "watch"].contains(&verb.as_str()), "{rule}");
            }
        }
    }
}

#[test]
fn every_role_that_the_program_acts_in_has_its_account_and_may_be_acted_as() {
    let accounts: Vec<String> = documents(&deploy().join("rbac/service_accounts.yaml"))
        .iter()
        .map(|account| account["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    let impersonated = documents(&deploy().join("rbac/impersonation.yaml"))[0]["rules"][0].clone();
    for role in ClientRole::ALL {
        let Some(account) = role.account("kubeslice-controller") else { continue };
        let name = account.rsplit(':').next().unwrap().to_owned();
        assert!(accounts.contains(&name), "{name} has no ServiceAccount");
        assert!(texts(&impersonated["resourceNames"]).contains(&name), "{name} may not be acted as");
    }
}

/// The API server lets nobody make a Role that grants more than its maker has.
#[test]
fn reconcilers_and_mirror_have_what_the_roles_of_projects_grant() {
    let granted = documents(&deploy().join("rbac/project_roles.yaml"));
    let rules = granted[0]["rules"].as_array().unwrap();
    for rule in Access::ALL.iter().flat_map(|access| access.rules()) {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                let covered = rules.iter().any(|granted| {
                    texts(&granted["apiGroups"]) == rule.api_groups.clone().unwrap()
                        && texts(&granted["resources"]).contains(resource)
                        && texts(&granted["verbs"]).contains(verb)
                });
                assert!(covered, "{verb} {resource} is granted by a Role and not had");
            }
        }
    }
    let bound: Vec<&str> =
        granted[1]["subjects"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(bound, ["hub-controller-reconcile", "hub-controller-mirror"]);
}

#[rstest]
fn a_kustomization_names_files_that_are_there(#[values("", "active", "standby", "webhook")] folder: &str) {
    let base = deploy().join(folder);
    let kustomization = documents(&base.join("kustomization.yaml")).remove(0);
    for resource in texts(&kustomization["resources"]) {
        assert!(base.join(&resource).exists(), "{resource} does not exist");
    }
    for patch in kustomization["patches"].as_array().unwrap_or(&Vec::new()) {
        assert!(base.join(patch["path"].as_str().unwrap()).is_file(), "{patch}");
    }
}

#[test]
fn the_base_names_every_manifest_of_its_folders() {
    let kustomization = documents(&deploy().join("kustomization.yaml")).remove(0);
    let named = texts(&kustomization["resources"]);
    for path in files("rbac").into_iter().chain(files("crd")) {
        let relative = path.strip_prefix(deploy()).unwrap().to_str().unwrap().to_owned();
        assert!(named.contains(&relative), "{relative} is missing");
    }
}

#[rstest]
#[case(&["active"])]
#[case(&["standby"])]
#[case(&["active", "webhook"])]
fn the_deployment_is_started_with_options_that_exist(#[case] overlays: &[&str]) {
    let deployment = documents(&deploy().join("manager/deployment.yaml")).remove(0);
    let mut arguments = texts(&deployment["spec"]["template"]["spec"]["containers"][0]["args"]);
    for overlay in overlays {
        for patch in documents(&deploy().join(overlay).join("hub.yaml"))[0].as_array().unwrap() {
            if patch["path"].as_str().unwrap().ends_with("/args/-") {
                arguments.push(patch["value"].as_str().unwrap().to_owned());
            }
        }
    }
    let line = std::iter::once("hub-controller".to_owned()).chain(arguments);
    assert_eq!(Options::try_parse_from(line).unwrap().run.objection(), None);
}

#[test]
fn the_webhook_is_no_part_of_a_hub_that_does_not_serve_it() {
    for folder in ["", "active", "standby"] {
        let kustomization = documents(&deploy().join(folder).join("kustomization.yaml")).remove(0);
        assert!(!kustomization.to_string().contains("validating"), "{folder}");
    }
}
