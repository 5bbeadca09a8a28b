//! Saving what is to be seen of a running pair, at any time, without disturbing it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, Client, ResourceExt as _};

use super::PairDescription;
use crate::failure::{BoxError, chain};
use crate::report::redaction::Redaction;
use crate::run::directory::{self, ArtifactError};
use crate::run::execute::client;
use crate::site::Site;

/// How long one site may take. A site that does not answer must not keep the rest from being saved.
const LIMIT: Duration = Duration::from_mins(1);

/// Kinds that are never saved: they hold secrets, or change all the time and tell nothing.
const LEFT_OUT: [&str; 2] = ["secrets", "leases"];

/// What was saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many objects.
    pub objects: usize,
    /// What could not be saved, and why.
    pub missing: Vec<String>,
}

/// Saves the objects in all namespaces of both sites but those of Kubernetes itself, all logs, and the hub's journal of `pair` below `into`.
///
/// Secrets are never asked for, and everything is redacted on its way. What cannot be saved is told in the result; an
/// error is only that `into` cannot be written.
pub async fn collect(pair: &PairDescription, into: &Path) -> Result<Collected, ArtifactError> {
    let mut collected = Collected::default();
    for (name, path) in files(pair) {
        if let Err(source) = copy(&path, &into.join(name)) {
            collected.missing.push(format!("{}: {source}", path.display()));
        }
    }
    for site in join_all(Site::ALL.map(|site| objects(pair, site, into))).await {
        collected.objects += site.objects;
        collected.missing.extend(site.missing);
    }
    let missing: String = collected.missing.iter().map(|line| format!("{line}\n")).collect();
    if !missing.is_empty() {
        directory::write(&into.join("missing.txt"), missing.as_bytes())?;
    }
    Ok(collected)
}

/// The files of a pair that may be read by anybody, and where they go.
fn files(pair: &PairDescription) -> Vec<(String, PathBuf)> {
    let mut files = vec![
        ("hub.log".to_owned(), pair.hub.log.clone()),
        ("journal.jsonl".to_owned(), pair.hub.journal.clone()),
    ];
    for (site, description) in pair.sites.iter() {
        let mut log = |name: &str, path: &Path| {
            files.push((format!("sites/{site}/logs/{name}.log"), path.to_owned()));
        };
        log("operator", &description.operator.log);
        log("audit", &description.audit_log);
        for (program, path) in &description.logs {
            log(program, path);
        }
    }
    files
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let text = fs::read(from)?;
    directory::write(to, redacted(&String::from_utf8_lossy(&text)).as_bytes()).map_err(|error| error.source)
}

fn redacted(text: &str) -> String {
    let mut redaction = Redaction::default();
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => redaction.line(line) + "\n",
            None => redaction.line(line),
        })
        .collect()
}

async fn objects(pair: &PairDescription, site: Site, into: &Path) -> Collected {
    let mut collected = Collected::default();
    let folder = into.join("sites").join(site.name()).join("objects");
    let saving = save_site(&pair.sites.at(site).kubeconfig, &folder, &mut collected);
    let failure = match tokio::time::timeout(LIMIT, saving).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(chain(error.as_ref())),
        Err(_elapsed) => Some(format!("it did not answer within {}", humantime::format_duration(LIMIT))),
    };
    collected.missing.extend(failure.map(|failure| format!("objects of {site}: {failure}")));
    collected
}

async fn save_site(kubeconfig: &Path, folder: &Path, collected: &mut Collected) -> Result<(), BoxError> {
    let client = client(kubeconfig).await?;
    let namespaces = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await?;
    let kinds = kinds(&client).await?;
    for name in namespaces.iter().map(Namespace::name_any).filter(|name| !is_kubernetes(name)) {
        for kind in &kinds {
            let api = Api::<DynamicObject>::namespaced_with(client.clone(), &name, kind);
            match save_kind(&api, &folder.join(&name).join(&kind.plural)).await {
                Ok(saved) => collected.objects += saved,
                Err(error) => {
                    let failure = chain(error.as_ref());
                    collected.missing.push(format!("{} in namespace {name}: {failure}", kind.plural));
                }
            }
        }
    }
    Ok(())
}

/// Namespaces that Kubernetes keeps for itself; what a person made in a pair of their own may be in any other.
fn is_kubernetes(namespace: &str) -> bool {
    namespace.starts_with("kube-")
}

/// Every kind with a namespace that the site knows and that can be listed, each in its preferred version.
async fn kinds(client: &Client) -> Result<Vec<ApiResource>, BoxError> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let all = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let listed = all.filter(|(resource, capabilities)| {
        capabilities.scope == Scope::Namespaced
            && capabilities.supports_operation(verbs::LIST)
            && !LEFT_OUT.contains(&resource.plural.as_str())
    });
    Ok(listed.map(|(resource, _)| resource).collect())
}

async fn save_kind(api: &Api<DynamicObject>, folder: &Path) -> Result<usize, BoxError> {
    let objects = api.list(&ListParams::default()).await?.items;
    let count = objects.len();
    for mut object in objects {
        object.managed_fields_mut().clear();
        let text = redacted(&serde_saphyr::to_string(&object)?);
        directory::write(&folder.join(format!("{}.yaml", object.name_any())), text.as_bytes())?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::pair::{HubDescription, SiteDescription};
    use crate::site::PerSite;

    fn pair(dir: &Path) -> PairDescription {
        let file = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let site = SiteDescription {
            kubeconfig: dir.join("no-kubeconfig"),
            audit_log: file("audit", "audited\n"),
            operator: crate::pair::OperatorDescription {
                log: file("operator", "Bearer 0123456789abcdef0123456789abcdef\n"),
                ..Default::default()
            },
            ..SiteDescription::default()
        };
        PairDescription {
            name: "pair-16".into(),
            provider: "local".into(),
            dir: dir.into(),
            sites: PerSite { east: site.clone(), west: site },
            hub: HubDescription {
                control: String::new(),
                token_file: file("token", "secret"),
                journal: file("journal", "{}\n"),
                log: dir.join("no-log"),
                nodes: None,
            },
            versions: BTreeMap::default(),
            durations_ms: BTreeMap::default(),
        }
    }

    #[tokio::test]
    async fn what_can_be_saved_is_and_what_cannot_is_told() {
        let (dir, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let collected = collect(&pair(dir.path()), into.path()).await.unwrap();
        let read = |name: &str| fs::read_to_string(into.path().join(name)).unwrap();
        assert_eq!(read("journal.jsonl"), "{}\n");
        assert_eq!(read("sites/west/logs/operator.log"), "Bearer [redacted]\n");
        let missing = read("missing.txt");
        for part in ["no-log", "objects of east", "objects of west"] {
            assert!(missing.contains(part), "{missing}");
        }
        assert_eq!((collected.objects, collected.missing.len()), (0, 3));
    }
}
