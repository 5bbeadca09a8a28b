//! The Docker client.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::error::KindError;
use crate::toolchain::pins;

/// The oldest daemon that runs nodes with a control group namespace of their own.
const OLDEST: &str = "20.10";

/// Variables that the client reads.
const VARIABLES: [&str; 6] = [
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "XDG_RUNTIME_DIR",
];

/// A Docker daemon as this user reaches it. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Docker {
    environment: Vec<(String, String)>,
}

/// What a daemon says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// Its version.
    pub version: String,
    /// Whether it runs without root's rights.
    pub rootless: bool,
}

impl Docker {
    /// The daemon that this process' environment names.
    #[must_use]
    pub fn of_process() -> Self {
        let set =
            |name: &str| Some((name.to_owned(), std::env::var(name).ok().filter(|value| !value.is_empty())?));
        Self { environment: VARIABLES.iter().filter_map(|name| set(name)).collect() }
    }

    /// The variables by which a child finds the same daemon.
    pub fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        self.environment.iter().map(|(name, value)| (name.into(), value.into()))
    }

    /// Asks the daemon who it is; an error if it does not answer or is too old.
    pub async fn daemon(&self) -> Result<Daemon, KindError> {
        let answer = self.run(&["info", "--format", "{{.ServerVersion}} {{.SecurityOptions}}"]).await?;
        let (version, options) = answer.split_once(' ').unwrap_or((answer.as_str(), ""));
        // Without a daemon some clients print nothing and succeed.
        if version.is_empty() {
            return Err(KindError::NoDaemon { said: "it says no version".to_owned() });
        }
        if pins::ordered(version) < pins::ordered(OLDEST) {
            return Err(KindError::TooOld { version: version.to_owned(), needed: OLDEST });
        }
        Ok(Daemon { version: version.to_owned(), rootless: options.contains("rootless") })
    }

    /// Runs a command and returns what it printed, without the last newline.
    pub async fn run(&self, args: &[&str]) -> Result<String, KindError> {
        self.run_with(args, Stdio::null()).await
    }

    /// The same with a file as its input.
    pub async fn run_from(&self, args: &[&str], input: &Path) -> Result<String, KindError> {
        let file = File::open(input).map_err(|source| KindError::File { path: input.to_owned(), source })?;
        self.run_with(args, file.into()).await
    }

    async fn run_with(&self, args: &[&str], input: Stdio) -> Result<String, KindError> {
        let mut command = self.command();
        command.args(args).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Names only: long scripts and formats would hide what was said.
        let shown: Vec<&str> = args.iter().copied().filter(|arg| arg.len() < 60).take(6).collect();
        let shown = shown.join(" ");
        let output = command.output().await.map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => KindError::NoClient,
            _ => KindError::Run { command: shown.clone(), source },
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        Err(KindError::of_docker(&shown, &String::from_utf8_lossy(&output.stderr)))
    }

    /// A command of the client, which ends with whoever waits for it.
    fn command(&self) -> Command {
        let mut command = Command::new("docker");
        command.envs(self.environment()).kill_on_drop(true);
        command
    }

    /// Waits until a container ends, and says with which code; at once if it has ended already.
    pub async fn ended(&self, container: &str) -> Result<String, KindError> {
        self.run(&["wait", container]).await
    }

    /// The names of the containers that fit `filters`, running or not.
    pub async fn containers(&self, filters: &[&str]) -> Result<Vec<String>, KindError> {
        self.list(&["ps", "--all", "--format", "{{.Names}}"], filters).await
    }

    /// The names of the networks that fit `filters`.
    pub async fn networks(&self, filters: &[&str]) -> Result<Vec<String>, KindError> {
        self.list(&["network", "ls", "--format", "{{.Name}}"], filters).await
    }

    async fn list(&self, command: &[&str], filters: &[&str]) -> Result<Vec<String>, KindError> {
        let filters = filters.iter().flat_map(|filter| ["--filter", filter]);
        let args: Vec<&str> = command.iter().copied().chain(filters).collect();
        Ok(self.run(&args).await?.lines().map(str::to_owned).collect())
    }

    /// Whether the daemon has the image.
    pub async fn has_image(&self, image: &str) -> Result<bool, KindError> {
        match self.run(&["image", "inspect", "--format", "{{.Id}}", image]).await {
            Ok(_) => Ok(true),
            Err(KindError::Docker { said, .. }) if said.to_ascii_lowercase().contains("no such image") => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Where the client lies.
    #[must_use]
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("docker")).find(|file| file.is_file())
    }
}
