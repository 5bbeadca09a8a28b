//! What two running control planes do.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    time::Instant,
};

use harness::{
    local::{Identity, LocalPair, audit},
    progress::Silent,
    site::Site,
};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Namespace, Pod, Secret},
};
use kube::{Api, Client, api::PostParams, runtime::wait::await_condition};
use libtest_mimic::Trial;
use onewriter_history::{Event, Moment};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    listening, trial,
    world::{DEADLINE, World},
};

/// Content of a Secret, once plain and once as the API carries it.
const CONTENT: [&str; 2] = ["do-not-tell-anybody", "ZG8tbm90LXRlbGwtYW55Ym9keQ=="];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("both_sites_run_stateful_sets_and_keep_secrets_to_themselves", both_sites_work),
        trial("a_site_does_not_let_the_other_sites_clients_in", sites_do_not_trust_each_other),
    ]
}

async fn both_sites_work(world: World) {
    let begun = Instant::now();
    let pair = LocalPair::start(&world.launcher, &world.binaries, &world.settings(), &Silent).await.unwrap();
    eprintln!("pair ready after {:.2} s; memory {} MB", begun.elapsed().as_secs_f64(), memory(&pair));

    listening::only_on_own_addresses(&pair);

    for site in Site::ALL {
        let client = pair.at(site).client(Identity::Admin).await.unwrap();
        create_workload(&client).await;
        let pod = await_condition(Api::<Pod>::namespaced(client, "work"), "web-0", |pod: Option<&Pod>| {
            pod.is_some()
        });
        tokio::time::timeout(DEADLINE, pod).await.expect("the StatefulSet's pod in time").unwrap();
    }

    let urls = Site::ALL.map(|site| pair.at(site).url().trim_start_matches("https://").to_owned());
    let begun = Instant::now();
    pair.stop().await;
    eprintln!("pair stopped after {:.2} s", begun.elapsed().as_secs_f64());
    assert!(world.launcher.children().is_empty(), "nothing is left running");
    for url in urls {
        assert!(TcpStream::connect(&url).is_err(), "nobody listens on {url} any more");
    }
    for site in Site::ALL {
        audit_tells_who_created_the_pod(&pair, site);
    }
    no_log_tells_the_secret(&world.pair_folder());
}

/// The same user name at both sites, and yet the certificate of one means nothing to the other.
async fn sites_do_not_trust_each_other(world: World) {
    let pair = LocalPair::start(&world.launcher, &world.binaries, &world.settings(), &Silent).await.unwrap();
    let own = fs::read_to_string(pair.at(Site::East).kubeconfig(Identity::Admin)).unwrap();
    let crossed = own.replace(pair.at(Site::East).url(), pair.at(Site::West).url());
    let path = world.folder.path().join("crossed.yaml");
    fs::write(&path, crossed).unwrap();

    let client = harness::local::kubeconfig::client(&path).await.unwrap();
    let answer = Api::<Namespace>::all(client).list(&kube::api::ListParams::default()).await;

    assert!(answer.is_err(), "{answer:?}");
    pair.stop().await;
}

async fn create_workload(client: &Client) {
    let namespace: Namespace = object(json!({"metadata": {"name": "work"}}));
    create(Api::all(client.clone()), &namespace).await;
    let secret: Secret = object(json!({"metadata": {"name": "key"}, "stringData": {"key": CONTENT[0]}}));
    create(Api::namespaced(client.clone(), "work"), &secret).await;
    let labels = json!({"app": "web"});
    let set: StatefulSet = object(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "serviceName": "web",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "none"}]},
            },
        },
    }));
    create(Api::namespaced(client.clone(), "work"), &set).await;
}

pub(crate) fn object<K: DeserializeOwned>(value: serde_json::Value) -> K {
    serde_json::from_value(value).unwrap()
}

pub(crate) async fn create<K>(api: Api<K>, object: &K)
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    api.create(&PostParams::default(), object).await.unwrap();
}

/// An entry is written before its own client is answered, but others may see the object sooner. Once the server has
/// ended, its log is complete.
fn audit_tells_who_created_the_pod(pair: &LocalPair, site: Site) {
    let log = audit::read(pair.at(site).audit_log(), site, &Moment::now()).unwrap();
    let creators: Vec<_> = log
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Audit(audit) if audit.verb == "create" && audit.resource.as_deref() == Some("pods") => {
                Some((audit.user.as_str(), audit.status))
            }
            _ => None,
        })
        .collect();
    assert_eq!(creators, [("system:serviceaccount:kube-system:statefulset-controller", Some(201))]);
}

fn no_log_tells_the_secret(pair: &Path) {
    let mut seen = 0;
    for site in Site::ALL {
        for folder in ["logs", "audit"] {
            for file in files(&pair.join(site.name()).join(folder)) {
                let text = fs::read_to_string(&file).unwrap();
                seen += usize::from(text.contains("web-0"));
                for content in CONTENT {
                    assert!(!text.contains(content), "{} tells {content:?}", file.display());
                }
            }
        }
    }
    assert!(seen >= 2, "the audit logs were read: they name the pods");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Resident memory of all programs, in megabytes.
fn memory(pair: &LocalPair) -> u64 {
    let programs = Site::ALL.into_iter().flat_map(|site| pair.at(site).programs());
    let resident = programs.map(|program| {
        let status = fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    });
    resident.sum::<u64>() / 1024
}
