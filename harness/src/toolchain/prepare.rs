//! Finding or building everything that a control plane needs.

use std::path::PathBuf;

use super::{
    build::Builder,
    cache,
    disk::{self, Folders},
    error::ToolchainError,
    go::{self, Go},
    lookup::{Environment, Reason, Skipped, Survey, lookup},
    program::{Module, Program},
};
use crate::{
    process::Launcher,
    progress::{Event, Progress},
};

/// The programs of a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The store.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// The controllers.
    pub kube_controller_manager: PathBuf,
    /// The client, for people. A run does not need it.
    pub kubectl: Option<PathBuf>,
}

/// Finds every program, and builds with Go what is found nowhere.
///
/// # Flow
///
/// 1. Look everywhere. If all is there, that was it: nothing is written. What was found and is not used is told
///    only when it would have helped.
/// 2. Take the lock of the cache; look again, for another run may have built meanwhile.
/// 3. Find Go, check it, check the free space.
/// 4. Build what is missing, and give each program its name in the cache as soon as it is whole.
///
/// # Guarantees
///
/// Two runs that start at once build once. What has a name in the cache is whole. Go ends with this process, and
/// when the returned future is dropped. Without Go, a missing kubectl is no error.
///
/// # Errors
///
/// [`ToolchainError`]; none is cured by trying again.
pub async fn prepare(
    environment: &Environment,
    launcher: &Launcher,
    progress: &dyn Progress,
) -> Result<Binaries, ToolchainError> {
    let mut survey = lookup(environment).await;
    let missing = survey.missing();
    let worth_a_word =
        |skipped: &&Skipped| missing.contains(&skipped.program) || skipped.reason == Reason::Absent;
    for skipped in survey.skipped.iter().filter(worth_a_word) {
        progress.report(Event::Note { text: &format!("not used: {skipped}") });
    }
    // What is there for people only is built beside what is needed, but never waited for alone.
    if missing.iter().any(|program| program.needed()) {
        let go = go_for(environment, &survey).await?;
        survey = build(environment, &go, launcher, progress).await?;
    }
    binaries(&survey)
}

/// A Go that can build, or an error that says what is missing without it.
async fn go_for(environment: &Environment, survey: &Survey) -> Result<Go, ToolchainError> {
    let (missing, skipped) = (survey.missing(), survey.skipped.clone());
    let Some(path) = go::locate(environment) else {
        return Err(ToolchainError::NoGo { missing, skipped });
    };
    let go = go::ask(path.clone()).await;
    let go = go.map_err(|source| ToolchainError::GoBroken { go: path, source })?;
    if go.is_new_enough() {
        return Ok(go);
    }
    Err(ToolchainError::GoTooOld { go: go.path, version: go.version, missing, skipped })
}

async fn build(
    environment: &Environment,
    go: &Go,
    launcher: &Launcher,
    progress: &dyn Progress,
) -> Result<Survey, ToolchainError> {
    let lock = cache::lock(&environment.cache, progress).await?;
    let survey = lookup(environment).await;
    let missing = survey.missing();
    if missing.is_empty() {
        return Ok(survey);
    }
    let mut modules: Vec<Module> = missing.iter().map(|program| program.module()).collect();
    modules.dedup();
    let folders = Folders {
        modules: go.modules.clone(),
        objects: go.objects.clone(),
        programs: environment.cache.clone(),
    };
    if environment.needs_room {
        disk::check(&folders, &modules)?;
    }
    progress.report(Event::Note {
        text: "The control plane is built from source, once: 6 to 12 minutes on two cores.",
    });
    let work = cache::work_folder(&environment.cache, &lock)?;
    let builder = Builder { go, launcher, cache: &environment.cache, work: work.path() };
    builder.build_all(&missing, progress).await?;
    let path = work.path().to_owned();
    work.close().map_err(ToolchainError::cache("remove", path))?;
    Ok(lookup(environment).await)
}

fn binaries(survey: &Survey) -> Result<Binaries, ToolchainError> {
    let path = |program| survey.found.get(&program).map(|found| found.path.clone());
    let all = (path(Program::Etcd), path(Program::KubeApiserver), path(Program::KubeControllerManager));
    let (Some(etcd), Some(kube_apiserver), Some(kube_controller_manager)) = all else {
        return Err(ToolchainError::NoGo { missing: survey.missing(), skipped: survey.skipped.clone() });
    };
    Ok(Binaries { etcd, kube_apiserver, kube_controller_manager, kubectl: path(Program::Kubectl) })
}
