//! What is wrong with a pod is told, with what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rstest::rstest;
use serde_json::json;

use crate::world::{PodProcess, World};

#[rstest]
#[case::no_file(
    "GARAGE_CONFIG_FILE",
    "/nowhere/garage.toml",
    1,
    "Failed to read config file /nowhere/garage.toml"
)]
#[case::no_secret_file(
    "GARAGE_ADMIN_TOKEN_FILE",
    "/nowhere/token",
    1,
    "Failed to read secret file /nowhere/token"
)]
#[case::two_secrets(
    "GARAGE_RPC_SECRET_FILE",
    "/secret",
    1,
    "only one of `rpc_secret` and `rpc_secret_file` can be set"
)]
#[case::no_secret(
    "GARAGE_RPC_SECRET",
    "abcd",
    1,
    "Invalid RPC secret key: expected 32 bytes of random hex, please check the documentation for requirements"
)]
#[case::no_hub("ONEWRITER_HUB", "", 2, "ONEWRITER_HUB is not set")]
#[case::no_site("ONEWRITER_SITE", "", 2, "ONEWRITER_SITE is not set")]
#[case::no_token_file(
    "ONEWRITER_HUB_TOKEN_FILE",
    "/nowhere/token",
    2,
    "cannot read the file /nowhere/token that ONEWRITER_HUB_TOKEN_FILE names"
)]
#[tokio::test]
async fn a_bad_environment_ends_the_pod(
    #[case] variable: &str,
    #[case] value: &str,
    #[case] code: i32,
    #[case] message: &str,
) {
    let world = World::new();
    let mut environment = world.environment();
    environment.insert(variable.to_owned(), value.to_owned());
    let mut pod = PodProcess::spawn(&["server"], &environment);
    assert_eq!(pod.end().await.code(), Some(code), "{}", pod.said);
    assert!(pod.said.contains(message), "{}", pod.said);
}

#[rstest]
#[case::nothing("", "TOML decode error: TOML parse error at line 1, column 1: missing field `metadata_dir`")]
#[case::no_toml("replication_factor = 1\n[admin\n", "TOML parse error at line 2, column ")]
#[case::no_address(
    "metadata_dir = '/m'\ndata_dir = '/d'\nreplication_factor = 1\nrpc_bind_addr = '[::]:3901'\n\
     s3_api.s3_region = 'r'\n[admin]\napi_bind_addr = '3903'\n",
    "invalid admin.api_bind_addr: `3903`"
)]
#[tokio::test]
async fn a_bad_configuration_ends_the_pod_with_1(#[case] text: &str, #[case] message: &str) {
    let world = World::new();
    let environment = world.environment();
    fs::write(world.path("garage.toml"), text).unwrap();
    let mut pod = PodProcess::spawn(&["server"], &environment);
    assert_eq!(pod.end().await.code(), Some(1), "{}", pod.said);
    assert!(pod.said.contains(message), "{}", pod.said);
}

#[tokio::test]
async fn a_secret_that_others_may_read_ends_the_pod_with_1_unless_it_is_allowed() {
    let world = World::new();
    let _hub = world.hub().await;
    let secret = world.path("secret");
    fs::write(&secret, "t2").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let environment = world.environment();
    let file = ["--admin-token-file", secret.to_str().unwrap()];
    let mut pod = PodProcess::spawn(&["server", file[0], file[1]], &environment);
    assert_eq!(pod.end().await.code(), Some(1));
    assert!(pod.said.contains("is world-readable! (mode: 0100644, expected 0600)"), "{}", pod.said);
    let allowed = "--allow-world-readable-secrets";
    let mut pod = PodProcess::spawn(&["server", file[0], file[1], allowed], &environment);
    pod.until_it_says("node started").await;
}

#[tokio::test]
async fn a_port_that_is_taken_ends_the_pod_with_1_and_stops_its_node() {
    let world = World::new();
    let _hub = world.hub().await;
    let _other = tokio::net::TcpListener::bind(world.pod_address()).await.unwrap();
    let mut pod = world.pod();
    assert_eq!(pod.end().await.code(), Some(1));
    let expected = format!("cannot listen on {} (admin.api_bind_addr)", world.pod_address());
    assert!(pod.said.contains(&expected), "{}", pod.said);
    world.process_event("stopped").await;
}

#[tokio::test]
async fn garage_has_no_other_commands_here() {
    let mut pod = PodProcess::spawn(&["status"], &World::new().environment());
    assert_eq!(pod.end().await.code(), Some(2));
    assert!(pod.said.contains("unrecognized subcommand 'status'"), "{}", pod.said);
}

#[tokio::test]
async fn what_is_no_tunnel_is_refused() {
    let world = World::new();
    let _hub = world.hub().await;
    let _pod = world.running_pod().await;
    let node = "/nodes/east/ns/garage-0";
    let (status, body) = world.control("GET", &format!("{node}/connection"), json!({})).await;
    assert_eq!(
        (status, body["error"].as_str()),
        (400, Some("a tunnel needs the headers Connection: upgrade and Upgrade: garage-admin"))
    );
    assert_eq!(world.control("GET", &format!("{node}/process"), json!({})).await.0, 400);
    assert_eq!(world.control("GET", "/nodes/east/ns/none/connection", json!({})).await.0, 404);
}
