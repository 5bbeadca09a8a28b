//! What is awaited of the operator's objects.

use futures::future::try_join_all;
use harness::failure::Failure;
use harness::garage::objects;
use harness::garage::role::Role;
use harness::site::Site;
use harness::wait::{self, Unmet, WatchBackoff};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use kube::runtime::watcher::{self, watcher};
use serde_json::Value;

use super::World;
use crate::fixture::CLUSTER;

impl World<'_> {
    /// Waits until the GarageCluster of `site` has the condition `kind` with `status` and `reason`.
    pub async fn condition(
        &self,
        site: Site,
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
    ) -> Result<DynamicObject, Failure> {
        let awaited = format!("GarageCluster {CLUSTER} with {kind}={status}/{reason}");
        self.cluster_until(site, awaited, objects::has_condition(kind, status, reason)).await
    }

    /// Waits until the GarageNode `name` of `site` has the condition `kind` with `status` and `reason`.
    pub async fn node_condition(
        &self,
        site: Site,
        name: &str,
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
    ) -> Result<DynamicObject, Failure> {
        let awaited = format!("GarageNode {name} with {kind}={status}/{reason}");
        self.node_until(site, name, awaited, objects::has_condition(kind, status, reason)).await
    }

    /// Waits until `holds` accepts the GarageCluster of `site`.
    pub async fn cluster_until(
        &self,
        site: Site,
        awaited: String,
        holds: impl Fn(Option<&DynamicObject>) -> Result<(), Unmet>,
    ) -> Result<DynamicObject, Failure> {
        self.object_until(site, self.clusters(site), CLUSTER, awaited, holds).await
    }

    /// Waits until `holds` accepts the GarageNode `name` of `site`.
    pub async fn node_until(
        &self,
        site: Site,
        name: &str,
        awaited: String,
        holds: impl Fn(Option<&DynamicObject>) -> Result<(), Unmet>,
    ) -> Result<DynamicObject, Failure> {
        self.object_until(site, self.nodes(site), name, awaited, holds).await
    }

    async fn object_until(
        &self,
        site: Site,
        api: Api<DynamicObject>,
        name: &str,
        awaited: String,
        holds: impl Fn(Option<&DynamicObject>) -> Result<(), Unmet>,
    ) -> Result<DynamicObject, Failure> {
        self.step(format!("await {awaited} on {site}"));
        let found = wait::until(site, api, name, awaited.clone(), self.scope.limits.step, holds).await?;
        found.ok_or_else(|| self.not_so(site, awaited, "it is gone"))
    }

    /// Waits until the value at `pointer` of the GarageCluster of `site` satisfies `holds`.
    pub async fn cluster_field(
        &self,
        site: Site,
        pointer: &'static str,
        awaited: &str,
        holds: impl Fn(Option<&Value>) -> bool,
    ) -> Result<DynamicObject, Failure> {
        let accepts = |object: Option<&DynamicObject>| {
            let object = object.ok_or("it does not exist")?;
            let value = objects::field(object, pointer);
            if holds(value) { Ok(()) } else { Err(format!("{pointer} is {value:?}")) }
        };
        self.cluster_until(site, format!("GarageCluster {CLUSTER} with {awaited}"), accepts).await
    }

    /// The GarageCluster of `site` as it is now.
    pub async fn cluster(&self, site: Site) -> Result<DynamicObject, Failure> {
        let read = self.clusters(site).get(CLUSTER).await;
        read.map_err(|error| Failure::harness(site, "read the GarageCluster", error))
    }

    /// The GarageNode `name` of `site` as it is now, if it is there.
    pub async fn node(&self, site: Site, name: &str) -> Result<Option<DynamicObject>, Failure> {
        let read = self.nodes(site).get_opt(name).await;
        read.map_err(|error| Failure::harness(site, format!("read GarageNode {name}"), error))
    }

    /// Waits until each of `names` at `site` reports that it has a role in the layout.
    pub async fn in_layout(&self, site: Site, names: &[String]) -> Result<(), Failure> {
        let in_layout = |node: Option<&DynamicObject>| {
            let node = node.ok_or("it does not exist")?;
            match objects::field(node, "/status/inLayout").and_then(Value::as_bool) {
                Some(true) => Ok(()),
                _ => Err(format!("inLayout is not true; {}", objects::conditions_in_words(node))),
            }
        };
        let one = |name: &String| {
            let (awaited, name) = (format!("GarageNode {name} in the layout"), name.clone());
            async move { self.node_until(site, &name, awaited, in_layout).await }
        };
        try_join_all(names.iter().map(one)).await.map(drop)
    }

    /// Waits until the operator of `site` knows the identity of each of `names`: from then on it could assign roles.
    pub async fn identities(&self, site: Site, names: &[String]) -> Result<Vec<String>, Failure> {
        try_join_all(names.iter().map(|name| self.identity(site, name))).await
    }

    /// Waits until the operator of `site` knows the identity of node `name`, and returns it.
    pub async fn identity(&self, site: Site, name: &str) -> Result<String, Failure> {
        let awaited = format!("identity of GarageNode {name}");
        let known = |node: Option<&DynamicObject>| {
            let node = node.ok_or("it does not exist")?;
            objects::text(node, "/status/nodeId").map(drop).ok_or_else(|| objects::conditions_in_words(node))
        };
        let node = self.node_until(site, name, awaited.clone(), known).await?;
        let id = objects::text(&node, "/status/nodeId").map(str::to_owned);
        id.ok_or_else(|| self.not_so(site, awaited, "it is gone"))
    }

    /// Waits until the pod of node `name` has an address, and returns it.
    pub async fn address(&self, site: Site, name: &str) -> Result<String, Failure> {
        let pod = self
            .pod_until(site, name, "with an address", |pod| match pod.and_then(pod_ip) {
                Some(_) => Ok(()),
                None => Err("it has no address".to_owned()),
            })
            .await?;
        pod.as_ref().and_then(pod_ip).ok_or_else(|| self.not_so(site, "the pod has an address", "it is gone"))
    }

    /// Waits until `holds` accepts the pod of node `name`.
    pub async fn pod_until(
        &self,
        site: Site,
        name: &str,
        awaited: &str,
        holds: impl Fn(Option<&Pod>) -> Result<(), Unmet>,
    ) -> Result<Option<Pod>, Failure> {
        let (pod, awaited) = (format!("{name}-0"), format!("pod {name}-0 {awaited}"));
        self.step(format!("await {awaited} on {site}"));
        let api: Api<Pod> = Api::namespaced(self.scope.client(site), &self.scope.namespace);
        Ok(wait::until(site, api, &pod, awaited, self.scope.limits.step, holds).await?)
    }

    /// The pod of node `name`, which is there.
    pub async fn pod(&self, site: Site, name: &str) -> Result<Pod, Failure> {
        let there = |pod: Option<&Pod>| pod.map(drop).ok_or_else(|| "it is not there".to_owned());
        let pod = self.pod_until(site, name, "that is there", there).await?;
        pod.ok_or_else(|| self.not_so(site, format!("the pod of {name} is there"), "it is gone"))
    }

    /// The pod of node `name` runs and was not asked to go.
    pub async fn pod_runs(&self, site: Site, name: &str) -> Result<(), Failure> {
        let api: Api<Pod> = Api::namespaced(self.scope.client(site), &self.scope.namespace);
        let pod = api.get_opt(&format!("{name}-0")).await;
        let pod = pod.map_err(|error| Failure::harness(site, "read a pod", error))?;
        let runs = pod.as_ref().is_some_and(|pod| pod.metadata.deletion_timestamp.is_none());
        self.claim(site, &format!("the pod of {name} is kept"), runs, || {
            pod.map_or_else(|| "it is gone".to_owned(), |pod| wait::leftover(&pod))
        })
    }

    /// Waits until GarageNode `name` and its pod are gone.
    pub async fn node_gone(&self, site: Site, name: &str) -> Result<(), Failure> {
        let what = format!("GarageNode {name}");
        self.step(format!("await the end of {what} on {site}"));
        wait::until_gone(site, self.nodes(site), name, &what, self.scope.limits.step).await?;
        self.pod_until(site, name, "that is gone", |pod| pod.map_or(Ok(()), |pod| Err(wait::leftover(pod))))
            .await
            .map(drop)
    }

    /// Waits until the GarageCluster of `site` is gone.
    pub async fn cluster_gone(&self, site: Site) -> Result<(), Failure> {
        self.step(format!("await the end of GarageCluster {CLUSTER} on {site}"));
        wait::until_gone(site, self.clusters(site), CLUSTER, "the GarageCluster", self.scope.limits.step)
            .await?;
        Ok(())
    }

    /// The GarageNode `name` was asked to go and is held by its finalizer; its StatefulSet and its pod are kept.
    pub async fn node_is_held(&self, site: Site, name: &str) -> Result<(), Failure> {
        let node = self.node(site, name).await?;
        let held = node.as_ref().is_some_and(|node| {
            node.metadata.deletion_timestamp.is_some()
                && node.finalizers().iter().any(|finalizer| finalizer.starts_with("garagenode."))
        });
        self.claim(site, &format!("GarageNode {name} is held by its finalizer"), held, || {
            node.as_ref().map_or_else(|| "it is gone".to_owned(), wait::leftover)
        })?;
        let sets: Api<k8s_openapi::api::apps::v1::StatefulSet> =
            Api::namespaced(self.scope.client(site), &self.scope.namespace);
        let set = sets.get_opt(name).await.map_err(|e| Failure::harness(site, "read a StatefulSet", e))?;
        let replicas = set.and_then(|set| set.spec?.replicas);
        self.claim(site, &format!("the StatefulSet of {name} is held"), replicas == Some(1), || {
            format!("its replicas are {replicas:?}")
        })?;
        self.pod_runs(site, name).await
    }

    /// The role in force is told where one is declared, and nowhere else.
    pub async fn shows_role(&self, site: Site) -> Result<(), Failure> {
        match self.role(site) {
            Role::Writer => self.condition(site, "LayoutWriter", "True", "WriterSite").await?,
            Role::Follower => self.condition(site, "LayoutWriter", "False", "FollowerSite").await?,
            Role::Absent => return self.shows_no_trace(site).await,
        };
        let role = self.role(site);
        let told = self.cluster(site).await?;
        let told = objects::text(&told, "/status/layoutWriter/role").map(str::to_owned);
        self.claim(
            site,
            "status.layoutWriter.role is the declared role",
            told.as_deref() == role.field(),
            || format!("{told:?}"),
        )
    }

    /// Waits until the status of `site` speaks of layout `version` or a later one: it then tells of no foreign writer.
    pub async fn tells_no_foreign_writer(&self, site: Site, version: u64) -> Result<(), Failure> {
        let reached = |seen: Option<&Value>| seen.and_then(Value::as_u64).is_some_and(|seen| seen >= version);
        let awaited = format!("a status of layout {version}");
        let cluster = self.cluster_field(site, "/status/layoutVersion", &awaited, reached).await?;
        let told = objects::condition(&cluster, "ForeignLayoutWriter");
        self.claim(site, "no foreign writer is told of", told.is_none(), || format!("{told:?}"))
    }

    /// Nothing of the feature is in the object or its status.
    pub async fn shows_no_trace(&self, site: Site) -> Result<(), Failure> {
        let cluster = self.cluster(site).await?;
        let traces = ["/spec/layoutManagement/siteRole", "/status/layoutWriter"];
        let fields = traces.into_iter().filter(|pointer| objects::field(&cluster, pointer).is_some());
        let conditions = ["LayoutWriter", "AwaitingLayoutWriter"].into_iter();
        let conditions = conditions.filter(|kind| objects::condition(&cluster, kind).is_some());
        let found: Vec<_> = fields.chain(conditions).collect();
        self.claim(site, "an absent role leaves no trace", found.is_empty(), || format!("{found:?}"))
    }

    /// Waits until an event about the GarageCluster of `site` has `reason` and a note with `word` in it.
    pub async fn event(&self, site: Site, reason: &str, word: &str) -> Result<(), Failure> {
        use futures::StreamExt as _;
        use kube::runtime::WatchStreamExt as _;
        let awaited = format!("Warning event {reason} about {word}");
        self.step(format!("await a {awaited} on {site}"));
        let api: Api<Event> = Api::namespaced(self.scope.client(site), &self.scope.namespace);
        let is_it = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.type_.as_deref() == Some("Warning")
                && [&event.message, &event.action]
                    .iter()
                    .any(|text| text.as_deref().is_some_and(|text| text.contains(word)))
        };
        let events = watcher(api.clone(), watcher::Config::default()).backoff(WatchBackoff::default());
        // An interrupted watch is started again: its error is no event.
        let events = events.applied_objects().filter_map(|event| std::future::ready(event.ok()));
        let mut found = std::pin::pin!(events.filter(|event| std::future::ready(is_it(event))));
        if let Ok(Some(_)) = tokio::time::timeout(self.scope.limits.step, found.next()).await {
            return Ok(());
        }
        let all = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        let seen: Vec<_> = all.iter().map(|event| (&event.reason, &event.message)).collect();
        Err(self.not_so(site, awaited, format!("{seen:?}")))
    }

    /// Waits until the operator of `site` comes back to its cluster by itself: a full read, without anybody's nudge.
    pub async fn looks_again(&self, site: Site) -> Result<(), Failure> {
        self.step(format!("await a requeue on {site}"));
        harness::garage::progress::looks_again(self.scope, &self.stage.mesh, site).await
    }
}

fn pod_ip(pod: &Pod) -> Option<String> {
    pod.status.as_ref()?.pod_ip.clone()
}
