//! The pods of both sites, played by a runtime.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, sync::Arc, time::Duration};

use harness::{
    agent::Agent,
    local::{Identity, LocalPair},
    process::Launch,
    progress::Silent,
    site::{PerSite, Site},
};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Namespace, Pod, Secret, Service},
};
use kube::{
    Api, Client,
    api::{DeleteParams, PropagationPolicy},
    runtime::wait::await_condition,
};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::{
    stand_in::{StandIn, until},
    trial,
    working::{create, object},
    world::{DEADLINE, World},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_pod_waits_for_its_secret_and_then_runs_at_its_address", pod_waits_for_its_secret),
        trial("a_deleted_pod_ends_gracefully_and_its_successor_starts", deleted_pod_has_a_successor),
        trial("the_agent_goes_on_after_its_api_server_was_restarted", api_server_restarts),
        trial("pods_that_vanish_without_grace_lose_their_process", vanished_pods_lose_their_process),
    ]
}

/// A running pair with an agent.
struct Stage {
    pair: LocalPair,
    agent: Agent,
    stand_in: Arc<StandIn>,
    east: Client,
}

impl Stage {
    /// With a namespace `work`, and in it everything that the pods need but the Secret `key`.
    async fn set(world: &World) -> Self {
        let pair =
            LocalPair::start(&world.launcher, &world.binaries, &world.settings(), &Silent).await.unwrap();
        let client = async |site, identity| pair.at(site).client(identity).await.unwrap();
        let clients = PerSite {
            east: client(Site::East, Identity::Agent).await,
            west: client(Site::West, Identity::Agent).await,
        };
        let east = client(Site::East, Identity::Admin).await;
        let stand_in = Arc::new(StandIn::default());
        let agent = Agent::start(clients, stand_in.clone(), stand_in.clone()).await.unwrap();
        create(Api::all(east.clone()), &object::<Namespace>(json!({"metadata": {"name": "work"}}))).await;
        let config = json!({"metadata": {"name": "config"}, "data": {"web.toml": "answer = 42"}});
        create(Api::namespaced(east.clone(), "work"), &object::<ConfigMap>(config)).await;
        let service = json!({
            "metadata": {"name": "web"},
            "spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]},
        });
        create(Api::namespaced(east.clone(), "work"), &object::<Service>(service)).await;
        create(Api::namespaced(east.clone(), "work"), &object::<StatefulSet>(stateful_set())).await;
        Self { pair, agent, stand_in, east }
    }

    async fn create_secret(&self) {
        let secret = json!({"metadata": {"name": "key"}, "stringData": {"key": "value"}});
        create(Api::namespaced(self.east.clone(), "work"), &object::<Secret>(secret)).await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.east.clone(), "work")
    }

    async fn until_pod(&self, what: &str, condition: impl Fn(&Pod) -> bool) -> Pod {
        let met = |pod: Option<&Pod>| pod.is_some_and(&condition);
        let waited = tokio::time::timeout(DEADLINE, await_condition(self.pods(), "web-0", met)).await;
        let Ok(pod) = waited else {
            panic!("not in time: {what}; last seen: {:?}", self.pods().get_opt("web-0").await);
        };
        pod.unwrap().unwrap()
    }

    async fn close(self) {
        self.agent.stop().await;
        self.pair.stop().await;
    }
}

fn stateful_set() -> Value {
    let labels = json!({"app": "web"});
    let env = json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "key"}}}]);
    let mounts = json!([{"name": "config", "mountPath": "/etc/web"}]);
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "serviceName": "web",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "web", "image": "none", "env": env, "volumeMounts": mounts}],
                    "volumes": [{"name": "config", "configMap": {"name": "config"}}],
                },
            },
        },
    })
}

fn waiting_message(pod: &Pod) -> Option<&str> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.first()?.state.as_ref()?.waiting.as_ref()?.message.as_deref()
}

fn is_ready(pod: &Pod) -> bool {
    harness::agent::status::is_ready(pod)
}

fn address(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap()
}

/// The pod says what it waits for; the Secret alone makes it go on; then it is ready, its process knows what the
/// kubelet would have told it, and both sites know its Service by the names that are right for them.
async fn pod_waits_for_its_secret(world: World) {
    let stage = Stage::set(&world).await;
    stage
        .until_pod("the pod says what it lacks", |pod| {
            waiting_message(pod) == Some(r#"secret "key" not found"#)
        })
        .await;
    assert!(stage.stand_in.started.borrow().is_empty(), "nothing starts without its Secret");

    stage.create_secret().await;

    let address = address(&stage.until_pod("the pod is ready", is_ready).await);
    let start = stage.stand_in.started.borrow()[0].clone();
    assert_eq!(start.env["KEY"], "value");
    assert_eq!(start.files["/etc/web/web.toml"], b"answer = 42");
    until(&stage.stand_in.names, "both sites know the Service", |names| {
        names.east.get("web.work.svc.cluster.local") == Some(&vec![address.clone()])
            && names.west.get("web.work.svc.east.onewriter.test") == Some(&vec![address.clone()])
            && names.east.get("web-0.web.work.svc") == Some(&vec![address.clone()])
    })
    .await;
    stage.close().await;
}

/// Deletion waits for the process to end, though nobody asked for haste; the controller's next pod of the same name
/// is another one, with an address of its own.
async fn deleted_pod_has_a_successor(world: World) {
    let stage = Stage::set(&world).await;
    stage.create_secret().await;
    let first = stage.until_pod("the pod is ready", is_ready).await;

    stage.pods().delete("web-0", &DeleteParams::default()).await.unwrap();

    let second = stage
        .until_pod("a successor is ready", |pod| pod.metadata.uid != first.metadata.uid && is_ready(pod))
        .await;
    assert_ne!(address(&first), address(&second));
    assert_eq!(stage.stand_in.stopped.borrow().len(), 1, "the first process was ended once");
    let uids: Vec<_> = stage.stand_in.started.borrow().iter().map(|start| Some(start.uid.clone())).collect();
    assert_eq!(uids, [first.metadata.uid, second.metadata.uid]);
    stage.close().await;
}

/// A pod that is deleted with grace 0 is gone at once, without a chance to be ended in order.
async fn vanished_pods_lose_their_process(world: World) {
    let stage = Stage::set(&world).await;
    stage.create_secret().await;
    stage.until_pod("the pod is ready", is_ready).await;
    let sets: Api<StatefulSet> = Api::namespaced(stage.east.clone(), "work");
    let orphaning =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    sets.delete("web", &orphaning).await.unwrap();
    tokio::time::timeout(DEADLINE, await_condition(sets, "web", |set: Option<&StatefulSet>| set.is_none()))
        .await
        .expect("the StatefulSet is gone in time")
        .unwrap();

    stage.pods().delete("web-0", &DeleteParams::default().grace_period(0)).await.unwrap();

    until(&stage.stand_in.stopped, "the process is ended", |stopped| stopped.len() == 1).await;
    until(&stage.stand_in.names, "the Service has no address", |names| {
        names.east.get("web.work.svc").is_some_and(Vec::is_empty)
    })
    .await;
    stage.close().await;
}

/// The same server with the same arguments, killed and started again: the agent's watches find it, and what happens
/// from then on is handled.
async fn api_server_restarts(world: World) {
    let stage = Stage::set(&world).await;
    stage.create_secret().await;
    let first = stage.until_pod("the pod is ready", is_ready).await;
    let server = stage.pair.at(Site::East).programs()[1].clone();
    let command_line = fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    let arguments = command_line.split(|byte| *byte == 0).filter(|argument| !argument.is_empty()).skip(1);
    let again = Launch {
        name: "kube-apiserver-again".into(),
        program: world.binaries.kube_apiserver.clone(),
        args: arguments.map(|argument| OsStr::from_bytes(argument).to_owned()).collect(),
        env: Vec::new(),
        log: world.folder.path().join("kube-apiserver-again.log"),
    };
    server.stop(Duration::ZERO).await;
    let again = world.launcher.launch(again).await.unwrap();
    until_answers(&stage.east).await;

    stage.pods().delete("web-0", &DeleteParams::default()).await.unwrap();

    let is_next = |pod: &Pod| pod.metadata.uid != first.metadata.uid && is_ready(pod);
    stage.until_pod("a successor is ready", is_next).await;
    again.stop(Duration::ZERO).await;
    stage.close().await;
}

/// A server that has only just been started has no way to call.
async fn until_answers(client: &Client) {
    let answered = async {
        while client.apiserver_version().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(DEADLINE, answered).await.expect("the API server answers again in time");
}
