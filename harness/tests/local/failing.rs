//! Control planes that do not come up, or end by themselves.

use harness::{
    local::{LocalError, LocalPair},
    progress::Silent,
    site::Site,
};
use libtest_mimic::Trial;

use crate::{trial, world::World};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_server_that_dies_at_start_is_named_with_its_log", server_dies_at_start),
        trial("a_program_that_ends_later_is_named", program_ends_later),
    ]
}

/// The stand-in says something and fails; the error must show what it said, and etcd must not be left running.
async fn server_dies_at_start(mut world: World) {
    world.binaries.kube_apiserver = "/bin/ls".into();

    let error =
        LocalPair::start(&world.launcher, &world.binaries, &world.settings(), &Silent).await.unwrap_err();

    let LocalError::Ended { program, status, log, tail, .. } = &error else { panic!("{error}") };
    assert_eq!(program, "kube-apiserver");
    assert!(!status.success());
    assert!(tail.contains("unrecognized option"), "{tail}");
    assert!(log.is_file(), "the log stays");
    assert!(world.launcher.children().is_empty(), "nothing is left running");
}

/// etcd is killed under a running pair: whoever watches the pair learns which program of which site it was.
async fn program_ends_later(world: World) {
    let pair = LocalPair::start(&world.launcher, &world.binaries, &world.settings(), &Silent).await.unwrap();
    let etcd = pair.at(Site::West).programs()[0].clone();

    let (error, _) = tokio::join!(pair.ended(), etcd.stop(std::time::Duration::ZERO));

    let LocalError::Ended { site, program, .. } = &error else { panic!("{error}") };
    assert_eq!((*site, program.as_str()), (Site::West, "etcd"));
    pair.stop().await;
}
