//! What goes through a pod's admin port.

use onewriter_history::{CallBegin, CallEnd, Event};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::World;

fn begins(world: &World) -> Vec<CallBegin> {
    let begin = |event| if let Event::CallBegin(begin) = event { Some(begin) } else { None };
    world.history().records.into_iter().filter_map(|record| begin(record.event)).collect()
}

fn ends(world: &World) -> Vec<CallEnd> {
    let end = |event| if let Event::CallEnd(end) = event { Some(end) } else { None };
    world.history().records.into_iter().filter_map(|record| end(record.event)).collect()
}

#[tokio::test]
async fn a_call_at_the_pods_port_is_the_nodes_with_its_caller_and_its_way() {
    let world = World::new();
    let _hub = world.hub().await;
    let _pod = world.running_pod().await;
    let (status, body) = world.admin("/v2/GetClusterStatus").await.unwrap();
    assert_eq!((status, &body["nodes"][0]["id"]), (200, &world.node().await["nodeId"]));
    let address = world.pod_address();
    assert_eq!(
        body["nodes"][0]["addr"],
        format!("{}:3901", address.ip()),
        "others reach it at the pod's address"
    );
    let calls = begins(&world);
    let call = &calls[0];
    assert_eq!((call.node.as_str(), call.caller.as_deref()), ("east/ns/garage-0", Some("east")));
    assert_eq!(call.host, Some(address.to_string()), "the way that the caller took");
}

#[tokio::test]
async fn requests_one_after_the_other_and_at_once_share_a_connection() {
    let world = World::new();
    let _hub = world.hub().await;
    let _pod = world.running_pod().await;
    let mut stream = TcpStream::connect(world.pod_address()).await.unwrap();
    let request = "GET /check?domain=d HTTP/1.1\r\nhost: way\r\n\r\n";
    stream.write_all(request.repeat(3).as_bytes()).await.unwrap();
    stream.write_all(b"GET /check?domain=d HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 400 Bad Request").count(), 3, "{answers}");
    assert_eq!(answers.matches("HTTP/1.0 400 Bad Request").count(), 1, "{answers}");
    assert_eq!(begins(&world).len(), 4);
}

#[tokio::test]
async fn a_connection_that_a_fault_drops_closes_for_the_caller() {
    let world = World::new();
    let _hub = world.hub().await;
    let _pod = world.running_pod().await;
    let rule = json!({"match": {"path": "/v2/GetClusterHealth"}, "effect": {"kind": "drop"}});
    assert_eq!(world.control("POST", "/rules", rule).await.0, 200);
    let mut stream = TcpStream::connect(world.pod_address()).await.unwrap();
    stream.write_all(b"GET /v2/GetClusterHealth HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(world.admin("/v2/GetClusterHealth").await.unwrap().0, 200, "the next call is answered");
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_its_call() {
    let world = World::new();
    let _hub = world.hub().await;
    let _pod = world.running_pod().await;
    let rule = json!({"match": {"path": "/v2/GetClusterHealth"}, "effect": {"kind": "hold"}});
    assert_eq!(world.control("POST", "/rules", rule).await.0, 200);
    let mut stream = TcpStream::connect(world.pod_address()).await.unwrap();
    stream.write_all(b"GET /v2/GetClusterHealth HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    while begins(&world).is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(ends(&world).is_empty(), "it is held");
    rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).unwrap();
    drop(stream);
    while ends(&world).is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(ends(&world)[0].status, None);
}

#[tokio::test]
async fn probes_find_the_other_ports_open_and_s3_says_that_there_is_none() {
    let world = World::new();
    let _hub = world.hub().await;
    let _pod = world.running_pod().await;
    let address = world.pod_address().ip();
    drop(TcpStream::connect((address, 3901)).await.unwrap());
    let answer = world.http.get(format!("http://{address}:3900/bucket")).send().await.unwrap();
    assert_eq!(answer.status(), 501);
    assert!(answer.text().await.unwrap().contains("only the admin API"));
}
