//! What is built, and what is not.

use std::fs;

use harness::{progress::Silent, toolchain::prepare};
use libtest_mimic::Trial;

use crate::{
    pretence::{Kept, MAKE, Pretence},
    trial,
};

/// Everything that a first run asks of Go.
const ALL: [&str; 5] = [
    "build go.etcd.io/etcd/server/v3",
    "build k8s.io/kubernetes/cmd/kube-apiserver",
    "build k8s.io/kubernetes/cmd/kube-controller-manager",
    "build k8s.io/kubernetes/cmd/kubectl",
    "fetch",
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what_is_missing_is_built_once_and_never_again", MAKE, built_once),
        trial("two_runs_that_start_at_once_build_once", MAKE, two_runs),
        trial("only_what_is_missing_is_built", MAKE, only_missing),
        trial("kubectl_is_not_worth_an_error", MAKE, kubectl_is_optional),
    ]
}

async fn built_once(pretence: Pretence) {
    let first = pretence.prepare().await.unwrap();
    assert_eq!(pretence.calls(), ALL);
    assert_eq!(pretence.cached(), ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]);

    let second = pretence.prepare().await.unwrap();

    assert_eq!(second, first);
    assert_eq!(pretence.calls(), ALL, "the second run asked Go for nothing");
}

/// One of them gets the lock, the other finds everything built when its turn comes.
async fn two_runs(pretence: Pretence) {
    let other = pretence.another_launcher();
    let environment = pretence.environment();
    let (one, two) = tokio::join!(pretence.prepare(), prepare(&environment, &other, &Silent));
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(pretence.calls(), ALL);
}

async fn only_missing(pretence: Pretence) {
    pretence.prepare().await.unwrap();
    fs::remove_file(pretence.cache().join("kube-controller-manager")).unwrap();
    let kept = Kept::default();

    prepare(&pretence.environment(), &pretence.launcher, &kept).await.unwrap();

    let steps = kept.0.into_inner().unwrap();
    assert_eq!(steps, ["fetch the modules of Kubernetes 1.36.3", "build kube-controller-manager 1.36.3"]);
}

async fn kubectl_is_optional(pretence: Pretence) {
    pretence.prepare().await.unwrap();
    fs::remove_file(pretence.cache().join("kubectl")).unwrap();
    pretence.remove_go();

    let binaries = pretence.prepare().await.unwrap();

    assert_eq!(binaries.kubectl, None);
    assert!(binaries.etcd.is_file());
}
