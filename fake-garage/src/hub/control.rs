//! The control API of the hub: on its own address, with its own token, never on a node's port.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post, put};
use http::StatusCode;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::fault::{FaultRequest, LossName, Why, heal, inject};
use super::life;
use super::options::ControlToken;
use super::refusal::refuse;
use super::registry::{ControlError, MeshRequest, NodeRequest, Registry};
use super::request::check_name;
use super::rule::{Effect, RuleRequest};
use super::state::{self, HubState, NodeLayout};
use super::tunnel;

/// The routes of the control API.
pub fn router(registry: Arc<Registry>, token: ControlToken) -> Router {
    let api = Router::new()
        .route("/state", get(state))
        .route("/meshes/{mesh}", put(put_mesh).delete(delete_mesh))
        .route("/meshes/{mesh}/nodes/{site}/{namespace}/{pod}/layout", get(node_layout))
        .route("/nodes/{site}/{namespace}/{pod}", put(put_node).delete(delete_node))
        .route("/nodes/{site}/{namespace}/{pod}/connection", get(node_connection))
        .route("/nodes/{site}/{namespace}/{pod}/process", get(node_process))
        .route("/routes/{site}", put(put_routes))
        .route("/history", get(history))
        .route("/table", get(table))
        .route("/faults", get(list_faults).post(post_fault))
        .route("/faults/{id}", axum::routing::delete(delete_fault))
        .route("/rules", get(list_rules).post(post_rule))
        .route("/rules/{id}", axum::routing::delete(delete_rule))
        .route("/rules/{id}/release", post(release_rule))
        .with_state(registry);
    Router::new()
        .nest("/control/v1", api)
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "the control API has no such path") })
        .method_not_allowed_fallback(|| async {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "this path takes other methods, see the header Allow")
        })
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(middleware::map_response(in_json))
        .layer(middleware::from_fn_with_state(Arc::new(token), authenticate))
}

/// The longest body that the control API takes: a table of tokens or names is far below it.
const LONGEST_BODY: usize = 2 << 20;

/// What the framework refuses (a path or a body that cannot be read) is told as everything else is.
async fn in_json(response: Response) -> Response {
    let status = response.status();
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let reason = match axum::body::to_bytes(response.into_body(), LONGEST_BODY).await {
        Ok(text) if !text.is_empty() => String::from_utf8_lossy(&text).into_owned(),
        _ => status.canonical_reason().unwrap_or("refused").to_owned(),
    };
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        return refuse(
            status,
            format_args!("the body is longer than the {LONGEST_BODY} bytes that are taken"),
        );
    }
    refuse(status, reason)
}

async fn authenticate(State(token): State<Arc<ControlToken>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|header| header.to_str().ok());
    let presented = header.and_then(|header| header.strip_prefix("Bearer "));
    if presented.is_some_and(|presented| token.admits(presented.trim())) {
        next.run(request).await
    } else {
        refuse(StatusCode::UNAUTHORIZED, "the control API needs its token: Authorization: Bearer TOKEN")
    }
}

/// Reads a JSON body; what is wrong with it is told.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ControlError> {
    serde_json::from_slice(body)
        .map_err(|error| ControlError::Malformed(format!("the body is not what is expected: {error}")))
}

type Answer = Result<Response, ControlError>;

fn done(result: Result<(), ControlError>) -> Answer {
    result.map(|()| Json(json!({})).into_response())
}

async fn state(State(registry): State<Arc<Registry>>) -> Response {
    Json(HubState::of(&registry)).into_response()
}

async fn put_mesh(State(registry): State<Arc<Registry>>, Path(mesh): Path<String>, body: Bytes) -> Answer {
    let request: MeshRequest = read(&body)?;
    done(registry.register(&mesh, request))
}

async fn delete_mesh(State(registry): State<Arc<Registry>>, Path(mesh): Path<String>) -> Answer {
    done(registry.forget(&mesh))
}

type NodePath = Path<(String, String, String)>;

async fn put_node(
    State(registry): State<Arc<Registry>>,
    Path((site, namespace, pod)): NodePath,
    body: Bytes,
) -> Answer {
    let request: NodeRequest = read(&body)?;
    let name = format!("{site}/{namespace}/{pod}");
    let started = registry.start_node(&name, &site, request).await;
    started.map(|node| Json(node).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteNode {
    #[serde(default)]
    lose: LossName,
}

async fn delete_node(
    State(registry): State<Arc<Registry>>,
    Path((site, namespace, pod)): NodePath,
    query: Result<Query<DeleteNode>, axum::extract::rejection::QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|error| ControlError::Malformed(error.to_string()))?;
    done(registry.stop_node(&format!("{site}/{namespace}/{pod}"), query.lose.into()).await)
}

/// A connection to the node's admin API through this one.
async fn node_connection(
    State(registry): State<Arc<Registry>>,
    Path((site, namespace, pod)): NodePath,
    request: Request,
) -> Answer {
    tunnel::open(registry.node(&format!("{site}/{namespace}/{pod}"))?, request)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowedProcess {
    boot: u64,
}

/// Answers once the process has ended, with how; the process ends if the caller goes away before.
async fn node_process(
    State(registry): State<Arc<Registry>>,
    Path((site, namespace, pod)): NodePath,
    query: Result<Query<FollowedProcess>, axum::extract::rejection::QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|error| ControlError::Malformed(error.to_string()))?;
    life::follow(registry.node(&format!("{site}/{namespace}/{pod}"))?, query.boot)
}

async fn node_layout(
    State(registry): State<Arc<Registry>>,
    Path((mesh, site, namespace, pod)): Path<(String, String, String, String)>,
) -> Answer {
    let name = format!("{site}/{namespace}/{pod}");
    let actor = registry.mesh(&mesh)?;
    let layout = actor.read(|cluster| {
        cluster.mesh().find(&name).map(|node| Json(NodeLayout::of(cluster, node)).into_response())
    });
    layout.ok_or(ControlError::NoNode(name))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutesRequest {
    names: BTreeMap<String, Vec<IpAddr>>,
}

async fn put_routes(State(registry): State<Arc<Registry>>, Path(site): Path<String>, body: Bytes) -> Answer {
    check_name("site", &site)?;
    let request: RoutesRequest = read(&body)?;
    registry.shared().directory.set_routes(&site, request.names);
    done(Ok(()))
}

async fn post_fault(State(registry): State<Arc<Registry>>, body: Bytes) -> Answer {
    let fault: FaultRequest = read(&body)?;
    let body = match inject(&registry, fault).await? {
        Some(id) => json!({ "id": id }),
        None => json!({}),
    };
    Ok(Json(body).into_response())
}

async fn list_faults(State(registry): State<Arc<Registry>>) -> Response {
    Json(registry.faults().list()).into_response()
}

async fn delete_fault(State(registry): State<Arc<Registry>>, Path(id): Path<u64>) -> Answer {
    done(heal(&registry, id, Why::Asked).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableQuery {
    #[serde(default)]
    mesh: Option<String>,
}

async fn table(
    State(registry): State<Arc<Registry>>,
    query: Result<Query<TableQuery>, axum::extract::rejection::QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|error| ControlError::Malformed(error.to_string()))?;
    Ok(state::table(&registry, query.mesh.as_deref())?.into_response())
}

async fn list_rules(State(registry): State<Arc<Registry>>) -> Response {
    Json(registry.shared().rules.list()).into_response()
}

async fn post_rule(State(registry): State<Arc<Registry>>, body: Bytes) -> Answer {
    let rule: RuleRequest = read(&body)?;
    rule.check().map_err(ControlError::Malformed)?;
    let id = registry.shared().add_rule(&rule);
    Ok(Json(json!({ "id": id })).into_response())
}

async fn delete_rule(State(registry): State<Arc<Registry>>, Path(id): Path<u64>) -> Answer {
    let removed = registry.shared().remove_rule(id, Why::Asked);
    done(if removed { Ok(()) } else { Err(ControlError::NoRule(id)) })
}

async fn release_rule(State(registry): State<Arc<Registry>>, Path(id): Path<u64>) -> Answer {
    let rule = registry.shared().rules.get(id);
    if rule.is_some_and(|rule| !matches!(rule.effect, Effect::Hold { .. })) {
        return Err(ControlError::Invalid(format!(
            "rule {id} holds no calls; remove it with DELETE /rules/{id}"
        )));
    }
    let released = registry.shared().release_rule(id);
    done(if released { Ok(()) } else { Err(ControlError::NoRule(id)) })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryQuery {
    #[serde(default)]
    from: usize,
}

/// What has been recorded so far, from event `from` on, as it stands in the file. Event 0 is the header.
async fn history(
    State(registry): State<Arc<Registry>>,
    query: Result<Query<HistoryQuery>, axum::extract::rejection::QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|error| ControlError::Malformed(error.to_string()))?;
    let recorder = &registry.shared().recorder;
    recorder.flush();
    let path = recorder.path();
    let text = tokio::fs::read_to_string(path)
        .await
        .map_err(|error| ControlError::Unreadable(format!("cannot read {}: {error}", path.display())))?;
    // The last line may be on its way to the file.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let lines: String = whole.split_inclusive('\n').skip(query.from).collect();
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], lines).into_response())
}
