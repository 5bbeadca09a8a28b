//! Control planes that do not come up, or end by themselves.

use std::{fs, process::Command};

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
        trial("ports_that_are_taken_again_and_again_name_the_address", ports_taken),
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

/// The stand-in says what etcd says when somebody else has its port. Other ports are tried, and then it is told.
async fn ports_taken(mut world: World) {
    let program = world.folder.path().join("etcd");
    let script = "#!/bin/sh\necho x >> \"$0.started\"\necho 'bind: address already in use'\nexit 1\n";
    // Written by another process: a file that is open for writing here when something forks could not be run.
    let write = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
    assert!(Command::new("sh").args(["-c", write]).arg(&program).arg(script).status().unwrap().success());
    world.binaries.etcd.clone_from(&program);

    let error =
        LocalPair::start(&world.launcher, &world.binaries, &world.settings(), &Silent).await.unwrap_err();

    let LocalError::PortsTaken { address, attempts, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let started = fs::read_to_string(program.with_extension("started")).unwrap();
    assert!(started.lines().count() >= *attempts, "{attempts} attempts of one site, at least");
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
