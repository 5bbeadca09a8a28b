//! Garage as a system under test: the stage of a cell is a mesh of its own.

use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join, try_join_all};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use onewriter_history::{Audit, State};
use serde_json::{Value, json};

use super::checks::roles::{EXPECTATION, Expectation, ROLES};
use super::facts;
use super::hub::Hub;
use super::mesh::Mesh;
use super::objects;
use super::role::Role;
use super::stage::Stage;
use crate::checks::Check;
use crate::failure::Failure;
use crate::scenario::{Cell, Scope, System};
use crate::site::{PerSite, Site};
use crate::wait;

/// The Garage federation of a running pair.
#[derive(Debug, Clone)]
pub struct Garage {
    hub: Hub,
    proxy: Option<String>,
}

impl Garage {
    /// The system behind `hub`.
    #[must_use]
    pub fn new(hub: Hub) -> Self {
        Self { hub, proxy: None }
    }

    /// The same system, whose nodes the harness reaches through the HTTP proxy at `proxy`.
    #[must_use]
    pub fn behind(self, proxy: Option<String>) -> Self {
        Self { proxy, ..self }
    }

    /// Name of the mesh of the cell in `scope`.
    #[must_use]
    pub fn mesh_name(namespace: &str) -> String {
        namespace.to_owned()
    }
}

impl System for Garage {
    type Stage = Stage;

    fn open<'a>(&'a self, scope: &'a Scope, cell: &'a Cell) -> BoxFuture<'a, Result<Stage, Failure>> {
        async move {
            let mesh = Mesh::new(Self::mesh_name(&scope.namespace)).behind(self.proxy.clone());
            declare_roles(scope, &roles_of(cell));
            let registered = self.hub.put_mesh(&mesh.name, &mesh.rpc_secret_digest(), mesh.tokens()).await;
            registered
                .map_err(|error| Failure::harness(Site::East, "register the mesh at the hub", error))?;
            Ok(Stage { mesh, hub: self.hub.clone() })
        }
        .boxed()
    }

    fn save_evidence<'a>(&'a self, scope: &'a Scope, passed: bool) -> BoxFuture<'a, ()> {
        super::evidence::save(scope, passed).boxed()
    }

    fn close<'a>(
        &'a self,
        scope: &'a Scope,
        _stage: Option<&'a Stage>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            super::metrics::record(scope).await;
            try_join(remove_objects(scope, Site::East), remove_objects(scope, Site::West)).await?;
            super::metrics::record(scope).await;
            let forgotten = self.hub.delete_mesh(&Self::mesh_name(&scope.namespace)).await;
            forgotten.map_err(|error| Failure::harness(Site::East, "end the mesh", error))
        }
        .boxed()
    }

    fn checks(&self) -> Vec<Box<dyn Check>> {
        super::checks::of_run()
    }

    fn facts(&self, audit: &Audit, object: &Value) -> Vec<State> {
        facts::of_audit(audit, object)
    }

    fn records(&self) -> Vec<String> {
        facts::ALL.map(str::to_owned).to_vec()
    }
}

/// The roles that a cell gives to its sites.
#[must_use]
pub fn roles_of(cell: &Cell) -> PerSite<Option<Role>> {
    let parse = |name: &'static str| match name {
        "Writer" => Role::Writer,
        "Follower" => Role::Follower,
        _ => Role::Absent,
    };
    PerSite::from_fn(|site| cell.roles.at(site).map(parse))
}

/// Records which role each site has from now on, and what follows from it: who may write must, who may not must at
/// least have looked.
pub fn declare_roles(scope: &Scope, roles: &PerSite<Option<Role>>) {
    change_roles(scope, roles);
    let sites = |writes: bool| {
        let of_kind = roles.iter().filter(|(_, role)| role.is_some_and(|role| role.may_write() == writes));
        of_kind.map(|(site, _)| site.name().to_owned()).collect()
    };
    let expectation = Expectation { writes: sites(true), reads: sites(false) };
    scope.recorder.state(EXPECTATION, json!(expectation));
}

/// Records which role each site has from now on, and expects nothing of it.
pub fn change_roles(scope: &Scope, roles: &PerSite<Option<Role>>) {
    let declared: serde_json::Map<_, _> =
        roles.iter().filter_map(|(site, role)| Some((site.name().to_owned(), json!((*role)?)))).collect();
    scope.recorder.state(ROLES, declared.into());
}

/// Asks for the end of every GarageCluster and then of every GarageNode of the cell at `site`, and waits until the
/// operator let go of all of them.
///
/// The clusters go first: a node whose cluster is being destroyed leaves without a layout write, one that is deleted
/// alone asks for the removal of its role.
async fn remove_objects(scope: &Scope, site: Site) -> Result<(), Failure> {
    scope.recorder.step(format!("delete GarageClusters and GarageNodes on {site}"));
    let clusters = objects::clusters(scope.client(site), &scope.namespace);
    let nodes = objects::nodes(scope.client(site), &scope.namespace);
    let mut leaving = delete_all(site, &clusters, "GarageCluster").await?;
    leaving.extend(delete_all(site, &nodes, "GarageNode").await?);
    try_join_all(leaving.iter().map(|object| gone(scope, site, object))).await.map(drop)
}

/// An object that was asked to go.
struct Leaving {
    api: Api<DynamicObject>,
    kind: &'static str,
    name: String,
}

async fn delete_all(
    site: Site,
    api: &Api<DynamicObject>,
    kind: &'static str,
) -> Result<Vec<Leaving>, Failure> {
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(|error| Failure::harness(site, format!("list the {kind}s"), error))?;
    let mut leaving = Vec::new();
    for object in listed.items {
        let name = object.name_any();
        match api.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(Failure::harness(site, format!("delete {kind} {name}"), error)),
            Ok(_) => leaving.push(Leaving { api: api.clone(), kind, name }),
        }
    }
    Ok(leaving)
}

async fn gone(scope: &Scope, site: Site, leaving: &Leaving) -> Result<(), Failure> {
    let what = format!("{} {}", leaving.kind, leaving.name);
    wait::until_gone(site, leaving.api.clone(), &leaving.name, &what, scope.limits.teardown).await?;
    Ok(())
}
