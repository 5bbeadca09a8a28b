//! Any paths, queries and bodies at the admin API, without a transport, under virtual time.
//!
//! The input is cut at line ends; each line is a call: `METHOD PATH[?QUERY] BODY`, or the number of an endpoint (one
//! byte below 0x20 or above 0x7e) and a body. Every call is answered with a status of Garage's, with JSON where the
//! headers say so, and no version goes back.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_garage::admin::{Cluster, Credentials, Happening, Profile, Request, Response};
use fake_garage::layout::{ConsistencyMode, NodeId};
use fake_garage::mesh::connect::Nowhere;
use fake_garage::mesh::{Mesh, NodeConfig, NodeIndex, Pacing};

const ENDPOINTS: [(&str, &str); 20] = [
    ("POST", "/v2/UpdateClusterLayout"),
    ("POST", "/v2/ApplyClusterLayout"),
    ("POST", "/v2/PreviewClusterLayoutChanges"),
    ("POST", "/v2/RevertClusterLayout"),
    ("POST", "/v2/ClusterLayoutSkipDeadNodes"),
    ("POST", "/v2/ConnectClusterNodes"),
    ("GET", "/v2/GetClusterLayout"),
    ("GET", "/v2/GetClusterLayoutHistory"),
    ("GET", "/v2/GetClusterStatus"),
    ("GET", "/v2/GetClusterStatistics"),
    ("POST", "/v2/CreateBucket"),
    ("POST", "/v2/CreateKey"),
    ("POST", "/v2/ImportKey"),
    ("POST", "/v2/CreateAdminToken"),
    ("POST", "/v2/LaunchRepairOperation?node=*"),
    ("POST", "/v2/ListWorkers?node=*"),
    ("POST", "/v2/SetWorkerVariable?node=self"),
    ("POST", "/v2/RetryBlockResync?node=self"),
    ("POST", "/v2/PurgeBlocks?node=self"),
    ("GET", "/metrics"),
];

/// No input takes more calls than this.
const CALLS: usize = 24;

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let (mut cluster, nodes) = cluster();
    for (number, line) in data.split(|byte| *byte == b'\n').take(CALLS).enumerate() {
        let Some(request) = request(line) else { continue };
        let (call, node) = (number as u64, nodes[number % nodes.len()]);
        let before = cluster.layout_mark(node).version;
        cluster.handle(call, node, request, &Nowhere);
        let response = answered(&mut cluster, call);
        check_response(&response);
        let after = cluster.layout_mark(node).version;
        assert!(after >= before, "version {before} became {after}");
    }
}

fn cluster() -> (Cluster, Vec<NodeIndex>) {
    let mut cluster = Cluster::new(Mesh::new(Pacing::fast(), 1_790_000_000_000, 7), Profile::V2_5);
    let nodes: Vec<_> = [("a", 0xa1), ("b", 0xb1)]
        .into_iter()
        .map(|(site, id)| {
            let config = NodeConfig {
                name: format!("{site}/n/p-0"),
                site: site.to_owned(),
                address: std::net::Ipv4Addr::new(10, 0, 0, id).into(),
                hostname: site.to_owned(),
                region: "garage".to_owned(),
                factor: 1,
                mode: ConsistencyMode::Consistent,
                rpc_secret: String::new(),
                clock_offset: 0,
            };
            cluster.alter(|mesh| mesh.add(NodeId::new([id; 32]), config))
        })
        .collect();
    for node in &nodes {
        let admin = ["t".to_owned()].into();
        cluster.set_credentials(*node, Credentials { admin, ..Credentials::default() });
    }
    (cluster, nodes)
}

fn request(line: &[u8]) -> Option<Request> {
    let (first, rest) = line.split_first()?;
    let text;
    let (method, target, body) = if first.is_ascii_graphic() {
        text = String::from_utf8_lossy(line).into_owned();
        let mut words = text.splitn(3, ' ');
        let (method, target) = (words.next()?, words.next()?);
        (method, target, words.next().unwrap_or_default().as_bytes().to_vec())
    } else {
        let (method, target) = ENDPOINTS[usize::from(*first) % ENDPOINTS.len()];
        (method, target, rest.to_vec())
    };
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.map(str::to_owned),
        authorization: Some(b"Bearer t".to_vec()),
        body,
        ..Request::default()
    })
}

/// The answer; the two nodes are not frozen, so there is one within a minute.
fn answered(cluster: &mut Cluster, call: u64) -> Response {
    let until = cluster.mesh().now() + Duration::from_mins(1);
    loop {
        let answers: BTreeMap<_, _> = cluster
            .take_happenings()
            .into_iter()
            .filter_map(|happening| match happening {
                Happening::Answered { call, response, .. } => Some((call, response)),
                _ => None,
            })
            .collect();
        if let Some(response) = answers.into_iter().find(|(number, _)| *number == call) {
            return response.1.expect("nobody ended the process");
        }
        let next = cluster.mesh().next_event().filter(|next| *next <= until);
        cluster.advance(next.expect("the call is answered within a minute"));
    }
}

fn check_response(response: &Response) {
    assert!([200, 400, 403, 404, 409, 500, 503].contains(&response.status), "status {}", response.status);
    let json = response.headers.contains(&("content-type", "application/json"));
    let parsed = serde_json::from_slice::<serde_json::Value>(&response.body);
    assert!(!json || parsed.is_ok(), "not JSON: {:?}", String::from_utf8_lossy(&response.body));
    assert!(response.status != 200 || response.error.is_none(), "{:?}", response.error);
}
