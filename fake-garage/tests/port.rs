//! Anything at all on a node's port: the answers are those that Garage 2.5.0 was seen to give to the same bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "this test needs a part of what it shares with others")]

mod support;

use onewriter_history::Event;
use rstest::rstest;
use support::{SECRET, TestHub, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends `bytes` to a node and reads until it has said something; then ends the stream and reads the rest. Gives the
/// first line of the answer and all of it.
///
/// A caller that ends its stream while it is being answered may lose the answer, here and at Garage.
async fn answer_of(hub: &TestHub, bytes: &[u8]) -> (String, String) {
    talk(hub, bytes, false).await
}

/// The same for input that only its end makes wrong: the stream ends first.
async fn answer_to_cut(hub: &TestHub, bytes: &[u8]) -> (String, String) {
    talk(hub, bytes, true).await
}

async fn talk(hub: &TestHub, bytes: &[u8], cut: bool) -> (String, String) {
    assert_eq!(hub.mesh("mesh", SECRET).await.0, 200);
    let node = hub.node("east", "garage-0", SECRET).await;
    let mut stream = TcpStream::connect((node.address.as_str(), 3903)).await.unwrap();
    // The node may close while it is still being talked to.
    stream.write_all(bytes).await.ok();
    let mut answer = Vec::new();
    if !cut {
        stream.read_buf(&mut answer).await.ok();
    }
    stream.shutdown().await.ok();
    stream.read_to_end(&mut answer).await.ok();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.lines().next().unwrap_or_default().to_owned(), answer)
}

/// How many calls were recorded, once all of them have ended.
async fn recorded(hub: TestHub) -> usize {
    let count = |history: &onewriter_history::History| {
        let begun =
            history.records.iter().filter(|record| matches!(record.event, Event::CallBegin(_))).count();
        let ended = history.records.iter().filter(|record| matches!(record.event, Event::CallEnd(_))).count();
        (begun, ended)
    };
    let journal = hub.journal();
    let read = || async { count(&onewriter_history::History::read_live(&journal).unwrap()) };
    eventually(read, |(begun, ended)| begun == ended).await.0
}

const BARE_400: &str = "HTTP/1.1 400 Bad Request";

#[rstest]
#[case::control_bytes(b"\x00\x01\x02\r\n\r\n", BARE_400)]
#[case::no_version(b"GET /health\r\n\r\n", BARE_400)]
#[case::http_1_2(b"GET /health HTTP/1.2\r\nhost: h\r\n\r\n", BARE_400)]
#[case::tls_hello(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefgh", BARE_400)]
#[case::http_2_preface(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "")]
#[case::cut_head(b"GET /health HTTP/1.1\r\nhost: h\r\n", "")]
#[case::nothing(b"", "")]
#[case::bad_header_name(b"GET /health HTTP/1.1\r\nho st: h\r\n\r\n", BARE_400)]
#[case::odd_method(b"F@O /health HTTP/1.1\r\nhost: h\r\n\r\n", BARE_400)]
#[case::path_of_no_text(b"GET /v2/\xff\xfe HTTP/1.1\r\nhost: h\r\n\r\n", BARE_400)]
#[case::absurd_length(
    b"POST /v2/ApplyClusterLayout HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n",
    BARE_400
)]
#[case::negative_length(b"POST /v2/ApplyClusterLayout HTTP/1.1\r\ncontent-length: -1\r\n\r\n", BARE_400)]
#[case::two_lengths(
    b"POST /v2/ApplyClusterLayout HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
    BARE_400
)]
#[case::unknown_encoding(
    b"POST /v2/ApplyClusterLayout HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n{}",
    BARE_400
)]
#[tokio::test]
async fn what_is_no_request_is_refused_without_a_word_and_is_no_call(
    #[case] bytes: &[u8],
    #[case] first: &str,
) {
    let hub = TestHub::start().await;
    let (line, answer) = answer_to_cut(&hub, bytes).await;
    assert_eq!(line, first);
    assert!(answer.is_empty() || answer.contains("connection: close\r\ncontent-length: 0\r\n"), "{answer}");
    assert_eq!(recorded(hub).await, 0);
}

#[rstest]
#[case::uri("/check?domain=", 70_000, "", 1, "HTTP/1.1 414 URI Too Long")]
#[case::header("/check?domain=d", 0, "a", 600_000, "HTTP/1.1 431 Request Header Fields Too Large")]
#[tokio::test]
async fn a_head_that_is_too_large_is_refused(
    #[case] path: &str,
    #[case] longer: usize,
    #[case] header: &str,
    #[case] times: usize,
    #[case] first: &str,
) {
    let hub = TestHub::start().await;
    let (query, header) = ("q".repeat(longer), header.repeat(times));
    let request = format!("GET {path}{query} HTTP/1.1\r\nhost: h\r\nx-a: {header}\r\n\r\n");
    assert_eq!(answer_of(&hub, request.as_bytes()).await.0, first);
    assert_eq!(recorded(hub).await, 0);
}

#[rstest]
#[case::http_1_0(
    "GET /check?domain=d HTTP/1.0\r\n\r\n",
    "HTTP/1.0 400",
    "Domain 'd' is not managed by Garage"
)]
#[case::line_feeds_only(
    "GET /check?domain=d HTTP/1.1\nhost: h\n\n",
    "HTTP/1.1 400",
    "Domain 'd' is not managed"
)]
#[case::absolute(
    "GET http://o/check?domain=d HTTP/1.1\r\nhost: h\r\n\r\n",
    "HTTP/1.1 400",
    "Domain 'd' is not managed"
)]
#[case::connect("CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n", "HTTP/1.1 400", "Unknown API endpoint: CONNECT ")]
#[case::options("OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n", "HTTP/1.1 200", "allow: OPTIONS,GET,POST")]
#[case::trace(
    "TRACE /health HTTP/1.1\r\nhost: h\r\n\r\n",
    "HTTP/1.1 400",
    "Unknown API endpoint: TRACE /health"
)]
#[case::upgrade(
    "GET /check?domain=d HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "HTTP/1.1 400",
    "Domain 'd'"
)]
#[case::unknown_with_half_a_body(
    "POST /v2/Nope HTTP/1.1\r\ncontent-length: 10\r\n\r\n{}",
    "HTTP/1.1 400",
    "Unknown API endpoint: POST /v2/Nope"
)]
#[case::bad_chunk(
    "POST /v2/ApplyClusterLayout HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "HTTP/1.1 500",
    "(Hyper error): error reading a body"
)]
#[case::huge_chunk(
    "POST /v2/ApplyClusterLayout HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
    "HTTP/1.1 500",
    "(Hyper error): error reading a body"
)]
#[case::length_and_chunks(
    "POST /v2/ApplyClusterLayout HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "HTTP/1.1 400",
    "missing field `version` at line 1 column 2"
)]
#[case::no_body(
    "POST /v2/UpdateClusterLayout HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 400",
    "EOF while parsing a value at line 1 column 0"
)]
#[tokio::test]
async fn an_odd_request_is_answered_as_by_garage_and_is_one_call(
    #[case] request: &str,
    #[case] first: &str,
    #[case] part: &str,
) {
    let hub = TestHub::start().await;
    let (line, answer) = answer_of(&hub, request.as_bytes()).await;
    assert!(line.starts_with(first) && answer.contains(part), "{answer}");
    assert_eq!(recorded(hub).await, 1);
}

#[rstest]
#[case::half_a_body(
    "POST /v2/ApplyClusterLayout HTTP/1.1\r\ncontent-length: 10\r\n\r\n{}",
    "HTTP/1.1 500",
    "Internal error (Hyper error): error reading a body from connection"
)]
#[case::cut_chunk(
    "POST /v2/ApplyClusterLayout HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
    "HTTP/1.1 500",
    "(Hyper error): error reading a body"
)]
#[tokio::test]
async fn a_body_that_is_cut_off_is_one_call_that_had_no_effect(
    #[case] request: &str,
    #[case] first: &str,
    #[case] part: &str,
) {
    let hub = TestHub::start().await;
    let (line, answer) = answer_to_cut(&hub, request.as_bytes()).await;
    assert!(line.starts_with(first) && answer.contains(part), "{answer}");
    assert_eq!(recorded(hub).await, 1);
}

#[tokio::test]
async fn deep_json_is_refused_where_it_stops_to_fit() {
    let hub = TestHub::start().await;
    let body = "[".repeat(100_000);
    let head = format!("POST /v2/UpdateClusterLayout HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    let (line, answer) = answer_of(&hub, format!("{head}{body}").as_bytes()).await;
    assert_eq!(line, BARE_400);
    let reason = "Invalid JSON: invalid type: sequence, expected struct NodeRoleChange at line 1 column 2";
    assert!(answer.contains(reason), "{answer}");
}

#[tokio::test]
async fn a_revert_needs_no_body_so_half_of_one_does_not_matter() {
    let hub = TestHub::start().await;
    let request = "POST /v2/RevertClusterLayout HTTP/1.1\r\nauthorization: Bearer mesh-east-east\r\n\
                   content-length: 10\r\n\r\n{}";
    assert_eq!(answer_of(&hub, request.as_bytes()).await.0, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_order_until_one_is_none() {
    let hub = TestHub::start().await;
    let one = |domain: &str| format!("GET /check?domain={domain} HTTP/1.1\r\nhost: h\r\n\r\n");
    let (_, answer) = answer_of(&hub, format!("{}{}BAD\r\n\r\n", one("a"), one("b")).as_bytes()).await;
    let (first, second) = (answer.find("Domain 'a'").unwrap(), answer.find("Domain 'b'").unwrap());
    assert!(
        first < second && answer.ends_with("\r\n\r\n") && answer.matches(BARE_400).count() == 3,
        "{answer}"
    );
    assert_eq!(recorded(hub).await, 2);
}
