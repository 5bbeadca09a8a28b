//! `onewriter doctor`.

use std::net::TcpListener;
use std::path::Path;

use harness::failure::chain;
use harness::kind::{Docker, node_image};
use harness::report::Exit;
use harness::supervisor::StateRoot;
use harness::supervisor::status::{PairState, status};
use harness::toolchain::{self, Environment, Program, disk};
use serde::Serialize;

use super::args::Global;
use super::output;

/// Memory that a run needs, in MiB: two sites, the operators, the hub.
const MEMORY_MIB: u64 = 1024;

/// Disk that kind clusters need with their images, in GiB.
const DISK_GIB: u64 = 8;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// Looks at everything that a run needs; 96 if something is missing.
pub(super) async fn doctor(global: &Global) -> Exit {
    let mut checks = programs().await;
    checks.push(addresses());
    checks.push(memory());
    checks.extend(docker().await);
    checks.extend(state().await);
    let all_ok = checks.iter().all(|check| check.ok);
    let shown = output::show(global, &checks, || checks.iter().map(in_words).collect());
    if all_ok { shown } else { Exit::SetupFailed }
}

fn in_words(check: &Check) -> String {
    let mark = if check.ok { "✓" } else { "✗" };
    let advice = check.advice.as_ref().map(|advice| format!("\n      {advice}")).unwrap_or_default();
    format!("  {mark} {:24} {}{advice}\n", check.name, check.found)
}

async fn programs() -> Vec<Check> {
    let environment = match Environment::of_process() {
        Ok(environment) => environment,
        Err(error) => {
            return vec![Check { name: "cache folder", ok: false, found: chain(&error), advice: None }];
        }
    };
    let survey = toolchain::lookup(&environment).await;
    let go = toolchain::go::locate(&environment);
    let of = |program: Program| {
        match survey.found.get(&program) {
        Some(found) => {
            let at = format!("{} at {}", found.version, found.path.display());
            Check { name: program.name(), ok: true, found: at, advice: None }
        }
        None => Check {
            name: program.name(),
            ok: go.is_some() || !program.needed(),
            found: match &go {
                Some(go) => format!("not there; will be built once with {}", go.display()),
                None => "not there, and no Go to build it with".to_owned(),
            },
            advice: go.is_none().then(|| {
                format!(
                    "install Go {} or newer, or set KUBEBUILDER_ASSETS to a folder with {}, or put it on PATH",
                    toolchain::pins::go_version(),
                    program.accepted()
                )
            }),
        },
    }
    };
    let lacking = survey.skipped.iter().filter(|skipped| skipped.reason == toolchain::lookup::Reason::Absent);
    let lacking = lacking.map(|skipped| Check {
        name: "KUBEBUILDER_ASSETS",
        ok: false,
        found: skipped.to_string(),
        advice: Some("put it there, or unset KUBEBUILDER_ASSETS".to_owned()),
    });
    Program::ALL.into_iter().map(of).chain(lacking).collect()
}

/// All of 127.0.0.0/8 belongs to this machine on Linux; containers sometimes restrict it.
fn addresses() -> Check {
    let bound = TcpListener::bind(("127.16.0.1", 0));
    Check {
        name: "loopback addresses",
        ok: bound.is_ok(),
        found: match &bound {
            Ok(_) => "127.16.0.1 can be bound".to_owned(),
            Err(error) => format!("127.16.0.1 cannot be bound: {error}"),
        },
        advice: bound
            .is_err()
            .then(|| "onewriter needs all of 127.0.0.0/8 on the loopback device".to_owned()),
    }
}

/// What kind clusters need. A run needs none of it, so nothing of it is missing.
async fn docker() -> Vec<Check> {
    let there = |name, found| Check { name, ok: true, found, advice: None };
    let docker = Docker::of_process();
    let daemon = match docker.daemon().await {
        Ok(daemon) => daemon,
        Err(error) => {
            return vec![Check {
                advice: None,
                ..there("Docker", format!("not for kind clusters: {}", chain(&error)))
            }];
        }
    };
    let image = match node_image::at_hand(&docker, node_image::workspace().as_deref()).await {
        Ok(Some(image)) => image.name,
        Ok(None) => {
            "not there; `onewriter image node` builds it, else the first run with --provider kind".to_owned()
        }
        Err(error) => chain(&error),
    };
    let rootless = if daemon.rootless { ", rootless" } else { "" };
    vec![
        there("Docker", format!("{}{rootless}", daemon.version)),
        there("node image", image),
        room(&docker).await,
    ]
}

/// Free disk where images and containers are kept, if the daemon is on this machine.
async fn room(docker: &Docker) -> Check {
    let folder = docker.run(&["info", "--format", "{{.DockerRootDir}}"]).await.unwrap_or_default();
    let free = disk::free(Path::new(&folder)).map(|bytes| bytes >> 30);
    Check {
        name: "Docker's disk",
        // Local control planes do not mind.
        ok: true,
        found: match free {
            Some(free) => format!("{free} GiB free below {folder}, kind clusters need about {DISK_GIB} GiB"),
            None => format!("{folder} is not on this machine"),
        },
        advice: free.is_some_and(|free| free < DISK_GIB).then(|| "docker system prune".to_owned()),
    }
}

fn memory() -> Check {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let available = kib.map_or(0, |kib| kib / 1024);
    Check {
        name: "memory",
        ok: available >= MEMORY_MIB,
        found: format!("{available} MiB available, a run needs about {MEMORY_MIB} MiB"),
        advice: None,
    }
}

async fn state() -> Vec<Check> {
    let pairs = match StateRoot::from_env() {
        Ok(root) => {
            let place = root.path().display().to_string();
            status(&root).await.map(|pairs| (place, pairs))
        }
        Err(error) => Err(error),
    };
    match pairs {
        Err(error) => vec![Check { name: "state folder", ok: false, found: chain(&error), advice: None }],
        Ok((place, pairs)) => {
            let dead = pairs.iter().filter(|pair| pair.state == PairState::Dead).count();
            vec![
                Check { name: "state folder", ok: true, found: place, advice: None },
                Check {
                    name: "leftovers",
                    ok: dead == 0,
                    found: format!("{} pairs, {dead} of them dead", pairs.len()),
                    advice: (dead > 0).then(|| "`onewriter down` removes them".to_owned()),
                },
            ]
        }
    }
}
