//! The hidden subcommands: how an executable serves as its own helper.
//!
//! Helpers (the trampoline of a child, the supervisor of a pair, the hub) are the same executable again, so that
//! there is nothing to install, to find or to mismatch. Every `main` that uses the engine calls [`intercept`] first.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::{
    process::trampoline,
    supervisor::{MakePair, server},
};

/// A helper: gets the arguments after its name, returns the exit code.
pub type Helper = fn(&[OsString]) -> u8;

/// This process' executable as the kernel knows it, even after the file was replaced or removed.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// The helpers that an executable offers beside the engine's own.
///
/// ```
/// use harness::entry::{Helpers, intercept};
///
/// fn hub(_args: &[std::ffi::OsString]) -> u8 {
///     0
/// }
///
/// // First thing in `main`:
/// intercept(&Helpers::new().with("__hub", hub));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Helpers {
    named: BTreeMap<&'static str, Helper>,
    pair: Option<MakePair>,
}

/// Why this process' executable cannot be run again.
#[derive(Debug, thiserror::Error)]
#[error("cannot find the executable of this process to run it as a helper; is /proc mounted?")]
pub struct ExecutableError {
    source: io::Error,
}

impl Helpers {
    /// The engine's own helpers only.
    pub fn new() -> Self {
        Self::default().with(trampoline::COMMAND, trampoline::run)
    }

    /// Says which pair the supervisors of this executable own.
    #[must_use]
    pub fn supervising(mut self, make: MakePair) -> Self {
        self.pair = Some(make);
        self
    }

    /// Adds a helper under a hidden name, by custom one that begins with `__`.
    #[must_use]
    pub fn with(mut self, name: &'static str, helper: Helper) -> Self {
        self.named.insert(name, helper);
        self
    }
}

/// Runs the helper that the first argument names, and never returns then; else returns at once.
pub fn intercept(helpers: &Helpers) {
    let mut args = std::env::args_os().skip(1);
    let Some(name) = args.next() else { return };
    let args: Vec<OsString> = args.collect();
    let code = if name == server::COMMAND {
        server::run(&args, helpers.pair)
    } else if let Some(helper) = name.to_str().and_then(|name| helpers.named.get(name)) {
        helper(&args)
    } else {
        return;
    };
    std::process::exit(code.into());
}

/// The path under which this very executable can be run again.
///
/// That is its own path as long as the file there is still this one. A build may have replaced or removed it
/// since; then it is the kernel's link to the running file, which a child of this process can still execute, so
/// that a helper never is another build than the one that needs it.
pub fn executable() -> Result<PathBuf, ExecutableError> {
    let running = fs::metadata(OWN_EXECUTABLE).map_err(|source| ExecutableError { source })?;
    let path = std::env::current_exe().map_err(|source| ExecutableError { source })?;
    let same = |file: fs::Metadata| (file.dev(), file.ino()) == (running.dev(), running.ino());
    if fs::metadata(&path).is_ok_and(same) { Ok(path) } else { Ok(Path::new(OWN_EXECUTABLE).into()) }
}
