//! Which address is called with which token (operator contract §2.1).

use kube::ResourceExt;

use super::context::Context;
use super::error::ReconcileError;
use super::roles::{decide, neighbours};
use super::secrets::{MissingToken, token};
use super::{operator_token, scope};
use crate::api::federation::RemoteCluster;
use crate::api::secret::{ADMIN_TOKEN_KEY, REMOTE_TOKEN_KEY, SecretKeyRef};
use crate::api::v1beta2::GarageCluster;
use crate::decision::ownership::next_owner;
use crate::garage::{AdminClient, Token};

/// The admin clients of one cluster.
#[derive(Clone, Debug)]
pub struct Endpoints {
    http: crate::garage::Http,
    deadlines: crate::garage::Deadlines,
    service: String,
    service_token: Token,
    /// The cluster whose dynamic token is used.
    proved: Option<GarageCluster>,
    port: u16,
    token: Token,
    owns_layout: bool,
}

/// The way to a layout.
#[derive(Clone, Debug)]
pub struct LayoutAccess {
    /// Through this client it is read and changed.
    pub admin: AdminClient,
    /// Other nodes of the site, which may know of changes that have not reached it yet.
    pub others: Vec<AdminClient>,
}

impl LayoutAccess {
    /// Through this client alone.
    pub fn through(admin: AdminClient) -> Self {
        Self { admin, others: Vec::new() }
    }
}

impl Endpoints {
    /// The endpoints of `cluster`, or why there are none.
    pub async fn of(
        context: &Context,
        cluster: &GarageCluster,
    ) -> Result<Result<Self, MissingToken>, ReconcileError> {
        let owner = owner_of(context, cluster);
        let connect = owner.spec.connect_to.as_ref().filter(|connect| connect.admin_api_endpoint.is_some());
        let owner_token = owner.spec.admin.admin_token_secret_ref.as_ref();
        let reference = connect.and_then(|connect| connect.admin_token_secret_ref.as_ref()).or(owner_token);
        let own_token = cluster.spec.admin.admin_token_secret_ref.as_ref();
        let namespace = cluster.namespace().unwrap_or_default();
        let read = async |reference: Option<&SecretKeyRef>| match reference {
            Some(reference) => token(&context.client, &namespace, reference, ADMIN_TOKEN_KEY).await,
            None => Ok(Err(MissingToken::NoReference)),
        };
        let service_token = match read(reference.or(own_token)).await? {
            Ok(token) => token,
            Err(missing) => return Ok(Err(missing)),
        };
        let token = match own_token {
            Some(_) if own_token != reference => match read(own_token).await? {
                Ok(token) => token,
                Err(missing) => return Ok(Err(missing)),
            },
            _ => service_token.clone(),
        };
        let service = connect
            .and_then(|connect| connect.admin_api_endpoint.clone())
            .unwrap_or_else(|| service_endpoint(&owner, &context.settings.cluster_domain));
        let own = match connect {
            None => OwnToken::of(context, &owner).await?,
            Some(_) => OwnToken::None,
        };
        let (service, service_token, proved) = match own {
            OwnToken::None | OwnToken::Unproved(None) => (service, service_token, None),
            OwnToken::Proved(token) => (service, token, Some(owner)),
            OwnToken::Unproved(Some(address)) => {
                (pod_endpoint(&address, owner.spec.admin.port()), service_token, None)
            }
        };
        Ok(Ok(Self {
            http: context.http.clone(),
            deadlines: context.settings.deadlines,
            service,
            service_token,
            proved,
            port: cluster.spec.admin.port(),
            token,
            owns_layout: cluster.spec.connect_to.is_none(),
        }))
    }

    /// The cluster-level client: the Service of the layout owner, or the URL that `connectTo` names.
    pub fn service(&self) -> AdminClient {
        self.client(&self.service, self.service_token.clone())
    }

    /// The way to the layout: the first of these pods for a cluster that owns its layout, else the cluster-level client.
    pub fn layout<A: AsRef<str>>(&self, steady: &[A]) -> LayoutAccess {
        match steady {
            [first, others @ ..] if self.owns_layout => LayoutAccess {
                admin: self.pod(first.as_ref()),
                others: others.iter().map(|address| self.pod(address.as_ref())).collect(),
            },
            _ => LayoutAccess::through(self.service()),
        }
    }

    /// The client of one pod.
    pub fn pod(&self, address: &str) -> AdminClient {
        self.pod_with(address, self.token.clone())
    }

    /// The client of one pod, with another token.
    pub fn pod_with(&self, address: &str, token: Token) -> AdminClient {
        self.client(&pod_endpoint(address, self.port), token)
    }

    /// The Service did not accept the token: if it was the dynamic one, it has to be proved again before it is used.
    pub async fn doubt(&self, context: &Context) -> Result<(), ReconcileError> {
        match &self.proved {
            Some(owner) => operator_token::mark(&context.client, owner, None).await,
            None => Ok(()),
        }
    }

    /// The client of another site: its own token, else the local one.
    pub async fn remote(
        &self,
        context: &Context,
        namespace: &str,
        remote: &RemoteCluster,
    ) -> Result<Result<AdminClient, MissingToken>, ReconcileError> {
        let connection = &remote.connection;
        let token = match &connection.admin_token_secret_ref {
            Some(reference) => match token(&context.client, namespace, reference, REMOTE_TOKEN_KEY).await? {
                Ok(token) => token,
                Err(missing) => return Ok(Err(missing)),
            },
            None => self.token.clone(),
        };
        let mut client = self.client(&connection.admin_api_endpoint, token);
        client.hurry();
        Ok(Ok(client))
    }

    fn client(&self, endpoint: &str, token: Token) -> AdminClient {
        AdminClient::new(self.http.clone(), endpoint, token, self.deadlines)
    }
}

/// What there is of the dynamic token of a cluster.
enum OwnToken {
    /// Nothing: the configured token is used.
    None,
    /// Every pod accepts it.
    Proved(Token),
    /// Some pods have not proved it: until they have, one pod is asked directly with the configured token, and the Service
    /// is not asked with it.
    Unproved(Option<String>),
}

impl OwnToken {
    async fn of(context: &Context, owner: &GarageCluster) -> Result<Self, ReconcileError> {
        if !context.settings.operator_admin_token || !operator_token::has_own(owner) {
            return Ok(Self::None);
        }
        let Some(stored) = operator_token::read(&context.client, owner).await? else {
            return Ok(Self::None);
        };
        let pods = scope::pods(&context.client, owner).await?;
        if stored.proved == Some(operator_token::pod_set(&pods)) {
            return Ok(Self::Proved(stored.token));
        }
        let ready = pods.values().filter(|pod| scope::is_ready(pod)).find_map(scope::address);
        Ok(Self::Unproved(ready.map(str::to_owned)))
    }
}

fn pod_endpoint(address: &str, port: u16) -> String {
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    format!("http://{host}:{port}")
}

/// The cluster whose layout this one acts on. One that cannot be told is answered by the cluster itself: its permits
/// are refused, and reads do no harm.
fn owner_of(context: &Context, cluster: &GarageCluster) -> GarageCluster {
    if next_owner(&cluster.spec).is_none() {
        return cluster.clone();
    }
    let mut neighbours = neighbours(&context.clusters, cluster);
    let decision = decide(cluster, &neighbours);
    let position = neighbours.iter().position(|neighbour| neighbour.name_any() == decision.owner().name);
    position.map_or_else(|| cluster.clone(), |position| neighbours.swap_remove(position))
}

/// The admin endpoint of the Service of a cluster.
pub fn service_endpoint(cluster: &GarageCluster, domain: &str) -> String {
    let namespace = cluster.namespace().unwrap_or_default();
    format!("http://{}.{namespace}.svc.{domain}:{}", cluster.name_any(), cluster.spec.admin.port())
}
