//! No secret leaves its file: not into logs, histories or artifacts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness::run::execute::client;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;

use super::run::{Run, has_files, onewriter};

/// Every file below `folder`.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            files.extend(files_below(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files
}

/// What the Secrets of both sites hold.
async fn secrets(pair: &Path) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    for site in ["east", "west"] {
        let kubeconfig = pair.join(format!("sites/{site}/kubeconfig/admin.yaml"));
        let api: Api<Secret> = Api::all(client(&kubeconfig).await.unwrap());
        for secret in api.list(&ListParams::default()).await.unwrap() {
            values.extend(secret.data.unwrap_or_default().into_values().map(|value| value.0));
        }
    }
    values
}

fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    String::from_utf8_lossy(haystack).contains(String::from_utf8_lossy(needle).trim())
}

/// The files that hold one of `secrets`, or a private key.
fn leaks<'a>(files: impl IntoIterator<Item = &'a PathBuf>, secrets: &[Vec<u8>]) -> Vec<&'a Path> {
    let leaks = |file: &&PathBuf| {
        let text = fs::read(file).unwrap();
        holds(&text, b"PRIVATE KEY") || secrets.iter().any(|secret| holds(&text, secret))
    };
    files.into_iter().filter(leaks).map(PathBuf::as_path).collect()
}

/// Without this, a search that finds nothing anywhere would pass.
fn assert_that_the_search_finds_each_of(secrets: &[Vec<u8>]) {
    let folder = tempfile::tempdir().unwrap();
    for secret in secrets {
        let file = folder.path().join("planted.log");
        fs::write(&file, [b"token=", secret.as_slice(), b" sent"].concat()).unwrap();
        assert_eq!(leaks([&file], secrets), [file.as_path()], "a planted secret is found");
    }
}

/// Whether a file of a pair is one that secrets are kept in, or the API server's own store.
fn keeps_secrets(pair: &Path, file: &Path) -> bool {
    let path = file.strip_prefix(pair).unwrap().to_string_lossy().into_owned();
    ["/pki/", "/kubeconfig/", "/etcd/", "hub/control-token"].iter().any(|part| path.contains(part))
}

#[test]
fn tokens_and_keys_stay_in_their_files_and_these_are_private() {
    let run = Run::start(&["--keep", "always"], &[]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    let pair = ended.pair.clone().unwrap();

    let mut secrets = tokio::runtime::Runtime::new().unwrap().block_on(secrets(&pair));
    secrets.push(fs::read(pair.join("hub/control-token")).unwrap());
    assert!(secrets.len() >= 6, "the cells' Secrets are still there to be looked for");

    let private = |file: &PathBuf| keeps_secrets(&pair, file);
    let (kept, open): (Vec<_>, Vec<_>) = files_below(&pair).into_iter().partition(private);
    for file in kept.iter().filter(|file| !file.to_string_lossy().contains("/etcd/")) {
        let mode = fs::metadata(file).unwrap().permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{} is private", file.display());
    }
    assert_that_the_search_finds_each_of(&secrets);
    let artifacts = files_below(&ended.artifacts());
    assert_eq!(
        leaks(open.iter().chain(&artifacts), &secrets),
        [] as [&Path; 0],
        "no open file holds a secret"
    );

    let down = onewriter(&ended.state).arg("down").output().unwrap();
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    assert!(!has_files(&ended.state), "no folder is left");
}
