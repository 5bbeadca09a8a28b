//! Recorded calls of the admin API.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};

use harness::site::Site;
use serde_json::Value;

use super::cases::{FIRST, SECOND};
use super::scene::Scene;

/// A call that reached a node of the scene's mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Who called: a site, or `harness`.
    pub caller: String,
    /// Label of the token.
    pub token: String,
    /// The node that was called: `site/namespace/pod`.
    pub node: String,
    /// The path without `/v2/`.
    pub path: String,
    /// The body of a layout write.
    pub body: Value,
    /// Whether it is one of the four layout writes.
    pub is_layout_write: bool,
    /// HTTP status of the answer; none while it is not answered.
    pub status: Option<u64>,
    /// Layout version of the node before and after.
    pub versions: (u64, u64),
}

impl Scene {
    /// All calls of the scene's mesh, in their order.
    pub fn calls(&self) -> Vec<Call> {
        let text = self.journal();
        let mesh = format!("\"mesh\":\"{}\"", self.mesh().name);
        let (mut calls, mut order) = (BTreeMap::new(), Vec::new());
        for line in text.lines() {
            let begins = line.contains("\"kind\":\"call.begin\"") && line.contains(&mesh);
            if !begins && !line.contains("\"kind\":\"call.end\"") {
                continue;
            }
            // The last line may be on its way to the file.
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            let number = event["call"].as_u64().unwrap_or_default();
            if begins {
                calls.insert(number, begun(&event));
                order.push(number);
            } else if let Some(call) = calls.get_mut(&number) {
                call.status = event["status"].as_u64();
                call.versions.1 = event["layoutVersion"].as_u64().unwrap_or_default();
            }
        }
        order.iter().filter_map(|number| calls.remove(number)).collect()
    }

    /// What the hub recorded since the scene was set. The first line may begin in the middle.
    fn journal(&self) -> String {
        let mut file = std::fs::File::open(&self.description().journal).unwrap();
        file.seek(SeekFrom::Start(self.journal_begin())).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The layout writes of the operator of a site.
    pub fn writes(&self, site: Site) -> Vec<Call> {
        let calls = self.calls().into_iter();
        calls.filter(|call| call.is_layout_write && call.caller == site.name()).collect()
    }

    /// The layout writes of everybody.
    pub fn calls_of_all(&self) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.is_layout_write).collect()
    }

    /// Paths of the layout writes of a site, in their order.
    pub fn written(&self, site: Site) -> Vec<String> {
        self.writes(site).into_iter().map(|call| call.path).collect()
    }

    /// Asserts that a site applied once, and staged exactly these nodes before, each once and in one go or one after the
    /// other: how many looks it takes depends on when their pods start.
    pub fn assert_applied_once(&self, site: Site, before: usize, ids: &[String]) {
        let own = self.writes(site).split_off(before);
        let [updates @ .., apply] = own.as_slice() else { panic!("{site} wrote nothing") };
        assert_eq!(apply.path, "ApplyClusterLayout", "{own:#?}");
        assert!(updates.iter().all(|call| call.path == "UpdateClusterLayout"), "{own:#?}");
        let mut staged: Vec<String> = updates.iter().flat_map(staged_ids).collect();
        staged.sort_unstable();
        let mut wanted = ids.to_vec();
        wanted.sort_unstable();
        assert_eq!(staged, wanted, "each once: {own:#?}");
    }

    /// Asserts that the first layout was made of all nodes of the usual cluster, and nothing was written twice.
    pub async fn assert_first_layout(&self, site: Site) {
        let ids = [self.node_id(site, FIRST).await, self.node_id(site, SECOND).await];
        self.assert_applied_once(site, 0, &ids);
    }

    /// Asserts that a site never wrote the layout.
    pub fn assert_never_wrote(&self, site: Site) {
        let writes = self.writes(site);
        assert!(writes.is_empty(), "{site} is a follower and wrote the layout: {writes:#?}");
    }
}

/// The nodes whose roles a call stages.
pub fn staged_ids(call: &Call) -> Vec<String> {
    let roles = call.body["roles"].as_array().into_iter().flatten();
    roles.map(|role| role["id"].as_str().unwrap_or_default().to_owned()).collect()
}

fn begun(event: &Value) -> Call {
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    Call {
        caller: text("caller"),
        token: text("token"),
        node: text("node"),
        path: text("path").trim_start_matches("/v2/").to_owned(),
        body: event["body"].clone(),
        is_layout_write: event["layoutWrite"] == true,
        status: None,
        versions: (event["layoutVersion"].as_u64().unwrap_or_default(), 0),
    }
}
