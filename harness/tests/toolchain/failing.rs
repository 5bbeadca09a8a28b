//! Builds that do not come to a good end.

use harness::toolchain::{Program, ToolchainError, prepare};
use libtest_mimic::Trial;

use crate::{
    pretence::{Kept, MAKE, Pretence},
    trial,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_failed_build_shows_its_log", "echo 'syntax error in x.go'; exit 1", failed_build),
        trial(
            "a_full_disk_is_told_from_other_failures",
            "echo 'link: no space left on device'; exit 1",
            full_disk,
        ),
        trial("a_killed_build_leaves_nothing_that_looks_whole", "echo half > \"$out\"; kill -9 $$", killed),
        trial("a_build_that_nobody_waits_for_is_stopped", "exec sleep 600", dropped),
        trial("without_go_the_three_ways_out_are_told", MAKE, no_go),
        trial("an_old_go_is_told_apart", MAKE, old_go),
    ]
}

async fn failed_build(pretence: Pretence) {
    let error = pretence.prepare().await.unwrap_err();
    let ToolchainError::Build { step, log, tail, .. } = &error else { panic!("{error}") };
    assert_eq!(step, "build etcd 3.6.16");
    assert_eq!(tail, "syntax error in x.go");
    assert!(log.is_file(), "the log stays");
    assert_eq!(pretence.cached(), [""; 0]);
}

async fn full_disk(pretence: Pretence) {
    let error = pretence.prepare().await.unwrap_err();
    assert!(matches!(error, ToolchainError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains("ONEWRITER_CACHE_DIR"), "{error}");
}

async fn killed(pretence: Pretence) {
    let error = pretence.prepare().await.unwrap_err();
    assert!(matches!(error, ToolchainError::Build { .. }), "{error}");
    assert_eq!(pretence.cached(), [""; 0], "neither a program nor a work folder");

    pretence.install_go("go1.26.0", MAKE);
    pretence.prepare().await.unwrap();
}

/// As when Ctrl-C ends a run: the wait is dropped in the middle, and Go must not go on behind its back.
async fn dropped(pretence: Pretence) {
    let kept = Kept::default();
    let environment = pretence.environment();
    let running = || pretence.launcher.children().into_iter().find(|child| child.name() == "go-build-etcd");
    let child = {
        let building = prepare(&environment, &pretence.launcher, &kept);
        tokio::pin!(building);
        loop {
            tokio::select! {
                result = &mut building => panic!("ended by itself: {result:?}"),
                () = tokio::task::yield_now() => {}
            }
            if let Some(child) = running() {
                break child;
            }
        }
    };
    let status = tokio::time::timeout(std::time::Duration::from_secs(20), child.exited()).await;
    assert!(!status.expect("Go ends in time").success());
}

async fn no_go(pretence: Pretence) {
    pretence.remove_go();
    let error = pretence.prepare().await.unwrap_err();
    let ToolchainError::NoGo { missing, .. } = &error else { panic!("{error}") };
    assert_eq!(*missing, Program::ALL);
    for way in ["install Go 1.26.0", "KUBEBUILDER_ASSETS", "PATH"] {
        assert!(error.to_string().contains(way), "{error}");
    }
}

async fn old_go(pretence: Pretence) {
    pretence.install_go("go1.25.9", MAKE);
    let error = pretence.prepare().await.unwrap_err();
    let ToolchainError::GoTooOld { version, .. } = &error else { panic!("{error}") };
    assert_eq!(version, "1.25.9");
}
