//! Environment and files of a container, as a kubelet would give them (Kubernetes documentation, "Define dependent
//! environment variables" and "Configure a Pod to use a ConfigMap").

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, EnvFromSource, EnvVar, EnvVarSource, KeyToPath, Pod, Volume, VolumeMount,
};

use super::{
    references::{Content, Contents, Missing, Reference},
    runtime::{PodName, PodStart},
};
use crate::site::Site;

/// Everything that the process of `pod` may know, or what is missing for it.
pub fn resolve(site: Site, pod: &Pod, contents: &Contents) -> Result<PodStart, Missing> {
    let spec = pod.spec.clone().unwrap_or_default();
    let container = spec.containers.first().cloned().unwrap_or_default();
    let init_commands = spec.init_containers.into_iter().flatten().map(command_line).collect();
    let volumes: BTreeMap<String, Volume> =
        spec.volumes.into_iter().flatten().map(|volume| (volume.name.clone(), volume)).collect();
    Ok(PodStart {
        name: PodName::of(site, pod),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        labels: pod.metadata.labels.clone().unwrap_or_default(),
        env: environment(pod, &container, contents)?,
        init_commands,
        files: files(&container, &volumes, contents)?,
    })
}

fn command_line(container: Container) -> (String, Vec<String>) {
    let command = container.command.into_iter().flatten().chain(container.args.into_iter().flatten());
    (container.name, command.collect())
}

fn environment(
    pod: &Pod,
    container: &Container,
    contents: &Contents,
) -> Result<BTreeMap<String, String>, Missing> {
    let mut environment = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        environment.extend(whole(source, contents)?);
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value(pod, variable, &environment, contents)? {
            environment.insert(variable.name.clone(), value);
        }
    }
    Ok(environment)
}

/// All keys of an object as variables.
fn whole(source: &EnvFromSource, contents: &Contents) -> Result<Vec<(String, String)>, Missing> {
    let secret = source.secret_ref.as_ref().map(|object| (Reference::secret(&object.name), object.optional));
    let config_map =
        source.config_map_ref.as_ref().map(|object| (Reference::config_map(&object.name), object.optional));
    let Some((object, optional)) = secret.or(config_map) else { return Ok(Vec::new()) };
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let content = content(&object, optional, contents)?;
    let variables = content.into_iter().flatten().map(|(key, value)| (format!("{prefix}{key}"), text(value)));
    Ok(variables.collect())
}

/// The value of one variable; `None` where it stays unset.
fn value(
    pod: &Pod,
    variable: &EnvVar,
    so_far: &BTreeMap<String, String>,
    contents: &Contents,
) -> Result<Option<String>, Missing> {
    let Some(source) = &variable.value_from else {
        return Ok(Some(expand(variable.value.as_deref().unwrap_or_default(), so_far)));
    };
    if let Some(key) = &source.secret_key_ref {
        return one_key(&Reference::secret(&key.name), &key.key, key.optional, contents);
    }
    if let Some(key) = &source.config_map_key_ref {
        return one_key(&Reference::config_map(&key.name), &key.key, key.optional, contents);
    }
    Ok(field(pod, source))
}

fn one_key(
    object: &Reference,
    key: &str,
    optional: Option<bool>,
    contents: &Contents,
) -> Result<Option<String>, Missing> {
    let Some(content) = content(object, optional, contents)? else { return Ok(None) };
    match content.get(key) {
        Some(value) => Ok(Some(text(value))),
        None if optional == Some(true) => Ok(None),
        None => Err(Missing::Key { object: object.clone(), key: key.to_owned() }),
    }
}

/// Fields of the pod that are known before it has an address.
fn field(pod: &Pod, source: &EnvVarSource) -> Option<String> {
    let metadata = &pod.metadata;
    match source.field_ref.as_ref()?.field_path.as_str() {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "spec.nodeName" => pod.spec.as_ref()?.node_name.clone(),
        "spec.serviceAccountName" => pod.spec.as_ref()?.service_account_name.clone(),
        path => keyed(path, "metadata.labels", metadata.labels.as_ref())
            .or_else(|| keyed(path, "metadata.annotations", metadata.annotations.as_ref())),
    }
}

/// The value that `map['key']` names.
fn keyed(path: &str, map: &str, values: Option<&BTreeMap<String, String>>) -> Option<String> {
    let key = path.strip_prefix(map)?.strip_prefix("['")?.strip_suffix("']")?;
    values?.get(key).cloned()
}

/// Replaces `$(NAME)` by earlier variables; `$$` stands for `$`, and an unknown name stays as it is.
fn expand(value: &str, variables: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = value;
    while let Some(start) = rest.find('$') {
        expanded.push_str(&rest[..start]);
        rest = &rest[start..];
        let name = rest.strip_prefix("$(").and_then(|after| after.split_once(')'));
        if let Some(after) = rest.strip_prefix("$$") {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = name {
            match variables.get(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.push_str(&rest[..name.len() + 3]),
            }
            rest = after;
        } else {
            expanded.push('$');
            rest = &rest[1..];
        }
    }
    expanded.push_str(rest);
    expanded
}

fn files(
    container: &Container,
    volumes: &BTreeMap<String, Volume>,
    contents: &Contents,
) -> Result<BTreeMap<String, Vec<u8>>, Missing> {
    let mut files = BTreeMap::new();
    for mount in container.volume_mounts.iter().flatten() {
        if let Some(volume) = volumes.get(&mount.name) {
            let inside = volume_files(volume, contents)?;
            files.extend(inside.into_iter().filter_map(|(path, data)| Some((mounted(mount, &path)?, data))));
        }
    }
    Ok(files)
}

/// Where a file of a volume appears; `None` if the mount shows another part of the volume.
fn mounted(mount: &VolumeMount, path: &str) -> Option<String> {
    let at = mount.mount_path.trim_end_matches('/');
    match mount.sub_path.as_deref().filter(|part| !part.is_empty()) {
        None => Some(format!("{at}/{path}")),
        Some(part) if part == path => Some(at.to_owned()),
        Some(part) => path.strip_prefix(part)?.strip_prefix('/').map(|path| format!("{at}/{path}")),
    }
}

/// Files of a volume by their paths in it. Volumes of other kinds have none that anybody knows.
fn volume_files(volume: &Volume, contents: &Contents) -> Result<Vec<(String, Vec<u8>)>, Missing> {
    let mut sources = Vec::new();
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        sources.push((Reference::secret(name), source.items.as_ref(), source.optional));
    }
    if let Some(source) = &volume.config_map {
        sources.push((Reference::config_map(&source.name), source.items.as_ref(), source.optional));
    }
    for source in volume.projected.iter().flat_map(|source| source.sources.iter().flatten()) {
        if let Some(source) = &source.secret {
            sources.push((Reference::secret(&source.name), source.items.as_ref(), source.optional));
        }
        if let Some(source) = &source.config_map {
            sources.push((Reference::config_map(&source.name), source.items.as_ref(), source.optional));
        }
    }
    let mut files = Vec::new();
    for (object, items, optional) in sources {
        if let Some(content) = content(&object, optional, contents)? {
            files.extend(selected(&object, content, items, optional)?);
        }
    }
    Ok(files)
}

/// All keys of an object as files, or only those that `items` names.
fn selected(
    object: &Reference,
    content: &Content,
    items: Option<&Vec<KeyToPath>>,
    optional: Option<bool>,
) -> Result<Vec<(String, Vec<u8>)>, Missing> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return Ok(content.clone().into_iter().collect());
    };
    let mut files = Vec::new();
    for item in items {
        match content.get(&item.key) {
            Some(data) => files.push((item.path.clone(), data.clone())),
            None if optional == Some(true) => {}
            None => return Err(Missing::Key { object: object.clone(), key: item.key.clone() }),
        }
    }
    Ok(files)
}

/// What an object holds; `None` if it may be missing and is.
fn content<'a>(
    object: &Reference,
    optional: Option<bool>,
    contents: &'a Contents,
) -> Result<Option<&'a Content>, Missing> {
    match contents.get(object) {
        None if optional != Some(true) => Err(Missing::Object(object.clone())),
        content => Ok(content),
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::agent::references;

    fn pod(spec: &Value) -> Pod {
        let metadata =
            json!({"name": "garage-0", "namespace": "cell", "uid": "u", "labels": {"app": "garage"}});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn contents() -> Contents {
        let secret = Content::from([("rpc-secret".to_owned(), b"abc".to_vec())]);
        let config = Content::from([("garage.toml".to_owned(), b"replication_factor = 2".to_vec())]);
        Contents::from([(Reference::secret("rpc"), secret), (Reference::config_map("config"), config)])
    }

    fn container(env: &Value) -> Value {
        json!({"containers": [{"name": "garage", "env": env}]})
    }

    #[test]
    fn variables_come_from_literals_secrets_config_maps_and_fields() {
        let pod = pod(&container(&json!([
            {"name": "PLAIN", "value": "x"},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "rpc", "key": "rpc-secret"}}},
            {"name": "CONFIG", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "garage.toml"}}},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "BOTH", "value": "$(PLAIN)-$(POD)"},
        ])));
        let env = resolve(Site::East, &pod, &contents()).unwrap().env;
        let expected = [
            ("APP", "garage"),
            ("BOTH", "x-garage-0"),
            ("CONFIG", "replication_factor = 2"),
            ("PLAIN", "x"),
            ("POD", "garage-0"),
            ("SECRET", "abc"),
        ];
        assert_eq!(env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case("$(A) and $(B)", "1 and $(B)")]
    #[case("$$(A)", "$(A)")]
    #[case("costs $5", "costs $5")]
    #[case("open $(A", "open $(A")]
    fn references_in_values_are_expanded_as_kubernetes_does(#[case] value: &str, #[case] expanded: &str) {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        assert_eq!(expand(value, &variables), expanded);
    }

    #[rstest]
    #[case("absent", "key", r#"secret "absent" not found"#)]
    #[case("rpc", "other", r#"couldn't find key other in secret "rpc""#)]
    fn what_is_missing_is_named_as_a_kubelet_does(
        #[case] name: &str,
        #[case] key: &str,
        #[case] message: &str,
    ) {
        let pod = pod(&container(&json!([
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": name, "key": key}}},
        ])));
        assert_eq!(resolve(Site::East, &pod, &contents()).unwrap_err().to_string(), message);
    }

    #[test]
    fn what_is_optional_may_be_missing() {
        let pod = pod(&container(&json!([
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "k", "optional": true}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "rpc", "key": "k", "optional": true}}},
        ])));
        assert!(resolve(Site::East, &pod, &contents()).unwrap().env.is_empty());
    }

    #[test]
    fn volumes_become_files_below_their_mounts() {
        let pod = pod(&json!({
            "containers": [{"name": "garage", "volumeMounts": [
                {"name": "config", "mountPath": "/etc/garage/"},
                {"name": "config", "mountPath": "/single.toml", "subPath": "garage.toml"},
                {"name": "keys", "mountPath": "/secrets"},
                {"name": "data", "mountPath": "/data"},
            ]}],
            "volumes": [
                {"name": "config", "configMap": {"name": "config"}},
                {"name": "keys", "projected": {"sources": [
                    {"secret": {"name": "rpc", "items": [{"key": "rpc-secret", "path": "rpc/key"}]}},
                    {"serviceAccountToken": {"path": "token"}},
                ]}},
                {"name": "data", "emptyDir": {}},
            ],
        }));
        let files = resolve(Site::East, &pod, &contents()).unwrap().files;
        let paths: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["/etc/garage/garage.toml", "/secrets/rpc/key", "/single.toml"]);
        assert_eq!(files["/secrets/rpc/key"], b"abc");
        let expected = [Reference::secret("rpc"), Reference::config_map("config")];
        assert_eq!(references::of(&pod), expected.into());
    }

    #[test]
    fn nothing_secret_is_ever_printed() {
        let pod = pod(&container(&json!([
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "rpc", "key": "rpc-secret"}}},
        ])));
        let printed = format!("{:?}", resolve(Site::East, &pod, &contents()).unwrap());
        assert!(printed.contains("SECRET") && !printed.contains("abc"), "{printed}");
    }
}
