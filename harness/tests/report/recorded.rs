//! Histories to be shown: a follower that writes, and as much noise around it as is wanted.

use harness::checks;
use harness::garage;
use harness::report::Verdict;
use harness::report::html::{Page, render};
use jiff::Timestamp;
use onewriter_history::{Event, Header, History, Record, Source};
use serde_json::{Value, json};

/// Sequence number of the follower's write in [`violating`].
pub(crate) const OFFENCE: u64 = 11;
/// The mesh, and the namespace, of the only cell.
pub(crate) const MESH: &str = "ow-bootstrap-follower-x";

/// The page of a history, with the verdict of the checks on it.
pub(crate) fn page(history: &History) -> String {
    let judgements = checks::judge(&garage::checks::all(), history);
    let verdict = Verdict::new(&history.header.run, vec![], judgements, vec![]);
    render(&Page { verdict: &verdict, history: Ok(history) }).unwrap()
}

/// A history whose follower, west, makes one layout write.
pub(crate) fn violating() -> History {
    let mut events = opening("create GarageCluster on west");
    events.extend(call(1, "east", "POST", "/v2/ApplyClusterLayout"));
    events.extend(call(2, "west", "GET", "/v2/GetClusterLayout"));
    events.push(audit("west", "garageclusters/status"));
    events.push(state("node", &json!({"node": format!("west/{MESH}/garage-0"), "event": "started"})));
    events.push(json!({"kind": "fault", "cell": "bootstrap/follower", "mesh": MESH, "action": "freeze",
        "target": format!("east/{MESH}/garage-0")}));
    events.extend(call(3, "west", "POST", "/v2/UpdateClusterLayout"));
    events.push(json!({"kind": "step", "cell": null, "title": "the run ends"}));
    history(events)
}

/// A history with hostile texts in every place that takes one.
pub(crate) fn hostile() -> History {
    let text =
        "</script><script>window.harmed = 1</script><img src=x onerror=\"window.harmed = 2\">{{script}}";
    let mut events = opening(text);
    events.extend(call(1, "west", "POST", &format!("/v2/{text}")));
    events.push(json!({"kind": "log", "site": "west", "program": text, "line": text}));
    events.push(audit("west", text));
    for event in &mut events {
        if event["kind"] == "call.begin" {
            event["layoutWrite"] = json!(true);
        }
    }
    let mut history = history(events);
    text.clone_into(&mut history.header.run);
    history
}

/// `count` events, nearly all of them calls and audit entries of both sites; the last call is a follower's write.
pub(crate) fn large(count: u64) -> History {
    let mut events = opening("the noise begins");
    let mut number = 0;
    while (events.len() as u64) < count - 2 {
        number += 1;
        let site = if number % 3 == 0 { "west" } else { "east" };
        events.extend(call(number, site, "GET", "/v2/GetClusterStatus"));
        events.push(audit(site, if number % 5 == 0 { "garagenodes/status" } else { "configmaps" }));
    }
    events.truncate(usize::try_from(count).unwrap() - 2);
    events.extend(call(number + 1, "west", "POST", "/v2/UpdateClusterLayout"));
    history(events)
}

fn opening(step: &str) -> Vec<Value> {
    vec![
        state("roles", &json!({"east": "Writer", "west": "Follower"})),
        state("expectation", &json!({"writes": ["east"], "reads": ["west"]})),
        json!({"kind": "step", "cell": "bootstrap/follower", "mesh": MESH, "title": step}),
    ]
}

fn state(subject: &str, value: &Value) -> Value {
    json!({"kind": "state", "cell": "bootstrap/follower", "mesh": MESH, "subject": subject, "value": value})
}

fn audit(site: &str, resource: &str) -> Value {
    json!({"kind": "audit", "site": site, "auditId": "1", "stage": "ResponseComplete", "user": "operator",
        "verb": "patch", "uri": "/apis", "resource": resource, "namespace": MESH, "name": "garage", "status": 200})
}

fn call(number: u64, caller: &str, method: &str, path: &str) -> [Value; 2] {
    let begin = json!({"kind": "call.begin", "call": number, "mesh": MESH, "caller": caller, "target": caller,
        "node": format!("{caller}/{MESH}/garage-0"), "nodeId": "ab", "incarnation": 0,
        "token": format!("{caller}@{caller}"), "method": method, "path": path, "layoutWrite": method == "POST",
        "layoutVersion": 1, "layoutDigest": ""});
    let end = json!({"kind": "call.end", "call": number, "status": 200, "incarnation": 0, "layoutVersion": 1,
        "layoutDigest": ""});
    [begin, end]
}

/// One event each 300 µs.
fn history(events: Vec<Value>) -> History {
    let mut header = Header::new("20260101-000000-test");
    header.sites = vec!["east".to_owned(), "west".to_owned()];
    let record = |(seq, event): (u64, Value)| {
        let event: Event = serde_json::from_value(event).unwrap();
        let mono_ns = 1_000_000_000 + seq * 300_000;
        let at = Timestamp::from_nanosecond(1_767_225_600_000_000_000 + i128::from(mono_ns)).unwrap();
        Record { seq, at, mono_ns, source: Source::hub(), source_seq: seq, event }
    };
    History { header, records: (1..).zip(events).map(record).collect() }
}
