//! The six layout writes against a server that records every request.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Json;
use garage_operator::api::layout::LayoutSiteRole::{self, Follower, Writer};
use garage_operator::garage::{
    AdminClient, AdminError, Deadlines, Http, LayoutParameters, Token, ZoneRedundancy,
};
use garage_operator::guard::{
    ClusterKey, LayoutAuthority, LayoutGuard, LayoutOperation, LayoutWritePermit, RoleDecision, RoleSource,
};
use garage_operator::metrics::Metrics;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Method and path of every request.
type Requests = Arc<Mutex<Vec<String>>>;

/// A server that answers every call as a layout with one staged change would be.
async fn recorder() -> (AdminClient, Requests) {
    async fn record(State(requests): State<Requests>, request: Request) -> Json<Value> {
        requests.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
        Json(json!({
            "version": 4, "roles": [], "stagedRoleChanges": [{ "id": "aa", "remove": true }],
            "ackUpdated": ["aa"], "syncUpdated": [],
        }))
    }
    let requests = Requests::default();
    let routes = Router::new().fallback(record).with_state(Arc::clone(&requests));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let client = AdminClient::new(Http::new().unwrap(), &endpoint, Token::new("t"), Deadlines::default());
    (client, requests)
}

/// The roles that a permit is checked against at the call.
#[derive(Default)]
struct Roles(Mutex<BTreeMap<ClusterKey, LayoutSiteRole>>);

impl RoleSource for Roles {
    fn declared(&self, cluster: &ClusterKey) -> Option<Option<LayoutSiteRole>> {
        Some(self.0.lock().unwrap().get(cluster).copied())
    }
}

struct Site {
    metrics: Arc<Metrics>,
    roles: Arc<Roles>,
    guard: LayoutGuard,
}

impl Site {
    fn new() -> Self {
        let (metrics, roles) = (Arc::new(Metrics::new()), Arc::new(Roles::default()));
        let guard = LayoutGuard::new(Arc::<Roles>::clone(&roles), Arc::clone(&metrics));
        Self { metrics, roles, guard }
    }

    fn authority(&self, own: Option<LayoutSiteRole>, owner: Option<LayoutSiteRole>) -> LayoutAuthority {
        let owner = owner.map(|role| (key("owner"), Some(role)));
        self.guard.authority(RoleDecision::new(key("garage"), own, owner))
    }

    fn demote(&self, cluster: &str) {
        self.roles.0.lock().unwrap().insert(key(cluster), Follower);
    }
}

fn key(name: &str) -> ClusterKey {
    ClusterKey::new("ns", name)
}

async fn write(
    client: &AdminClient,
    permit: &LayoutWritePermit,
    operation: LayoutOperation,
) -> Result<(), AdminError> {
    let parameters = LayoutParameters { zone_redundancy: ZoneRedundancy::Maximum };
    match operation {
        LayoutOperation::UpdateClusterLayout => client.update_cluster_layout(permit, &[]).await,
        LayoutOperation::UpdateClusterLayoutWithParams => {
            client.update_cluster_layout_with_params(permit, &[], parameters).await
        }
        LayoutOperation::ApplyClusterLayout => client.apply_cluster_layout(permit, 5).await,
        LayoutOperation::ApplyStagedLayoutChanges => {
            client.apply_staged_layout_changes(permit).await.map(drop)
        }
        LayoutOperation::RevertClusterLayout => client.revert_cluster_layout(permit).await,
        LayoutOperation::ClusterLayoutSkipDeadNodes => {
            client.cluster_layout_skip_dead_nodes(permit, 5, false).await.map(drop)
        }
    }
}

#[rstest]
#[case(Some(Writer), None)]
#[case(None, None)]
#[case(None, Some(Writer))]
#[tokio::test]
async fn a_writer_writes_where_it_always_did(
    #[case] own: Option<LayoutSiteRole>,
    #[case] owner: Option<LayoutSiteRole>,
) {
    let (site, (client, requests)) = (Site::new(), recorder().await);
    let authority = site.authority(own, owner);
    for operation in LayoutOperation::ALL {
        write(&client, &authority.permit(operation).unwrap(), operation).await.unwrap();
    }
    let posts: Vec<String> =
        requests.lock().unwrap().iter().filter(|request| request.starts_with("POST")).cloned().collect();
    let expected = [
        "POST /v2/UpdateClusterLayout",
        "POST /v2/UpdateClusterLayout",
        "POST /v2/ApplyClusterLayout",
        "POST /v2/ApplyClusterLayout",
        "POST /v2/RevertClusterLayout",
        "POST /v2/ClusterLayoutSkipDeadNodes",
    ];
    assert_eq!(posts, expected);
}

#[cfg(not(feature = "defect-follower-stages"))]
#[rstest]
#[case(Some(Follower), None)]
#[case(None, Some(Follower))]
#[case(Some(Writer), Some(Follower))]
fn asking_as_a_follower_is_the_refusal(
    #[case] own: Option<LayoutSiteRole>,
    #[case] owner: Option<LayoutSiteRole>,
    #[values(0, 1, 2, 3, 4, 5)] index: usize,
) {
    let (site, operation) = (Site::new(), LayoutOperation::ALL[index]);
    let refusal = site.authority(own, owner).permit(operation).unwrap_err();
    assert_eq!(refusal.operation, operation);
    assert_eq!(refusal.cluster, key("garage"));
    assert_eq!(site.metrics.layout_writes_blocked("ns/garage", operation.name()), 1);
}

#[cfg(not(feature = "defect-follower-stages"))]
#[rstest]
#[tokio::test]
async fn a_permit_of_a_site_that_was_demoted_since_sends_nothing(
    #[values(0, 1, 2, 3, 4, 5)] index: usize,
    #[values("garage", "owner")] demoted: &str,
) {
    let (site, (client, requests)) = (Site::new(), recorder().await);
    let operation = LayoutOperation::ALL[index];
    let permit = site.authority(Some(Writer), Some(Writer)).permit(operation).unwrap();
    site.demote(demoted);
    let error = write(&client, &permit, operation).await.unwrap_err();
    assert!(error.is_refused(), "{error:?}");
    assert_eq!(requests.lock().unwrap().as_slice(), [] as [String; 0]);
    assert_eq!(site.metrics.layout_writes_blocked("ns/garage", operation.name()), 1);
}

#[test]
fn an_unknown_layout_owner_forbids_every_write() {
    let site = Site::new();
    let authority = site.guard.authority(RoleDecision::unresolved(key("garage"), Some(Writer), "a circle"));
    let refusal = authority.permit(LayoutOperation::ApplyClusterLayout).unwrap_err();
    assert!(refusal.reason.contains("a circle"), "{refusal}");
}

#[cfg(feature = "defect-follower-stages")]
#[tokio::test]
async fn the_defect_lets_a_follower_stage_and_nothing_else() {
    let (site, (client, requests)) = (Site::new(), recorder().await);
    let authority = site.authority(Some(Follower), None);
    let permit = authority.permit(LayoutOperation::UpdateClusterLayout).unwrap();
    site.demote("garage");
    write(&client, &permit, LayoutOperation::UpdateClusterLayout).await.unwrap();
    assert!(authority.permit(LayoutOperation::ApplyClusterLayout).is_err());
    assert_eq!(site.metrics.layout_writes_blocked("ns/garage", "ApplyClusterLayout"), 1);
    assert_eq!(requests.lock().unwrap().as_slice(), ["POST /v2/UpdateClusterLayout"]);
}
