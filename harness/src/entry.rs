//! The hidden subcommands: how an executable serves as its own helper.
//!
//! Helpers (the trampoline of a child, the supervisor of a pair, the hub) are the same executable again, so that
//! there is nothing to install, to find or to mismatch. Every `main` that uses the engine calls [`intercept`] first.

use std::{
    collections::BTreeMap,
    ffi::{CString, OsString},
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::{
    process::trampoline,
    supervisor::{MakePair, server},
};

/// A helper: gets the arguments after its name, returns the exit code.
pub type Helper = fn(&[OsString]) -> u8;

/// This process' executable as the kernel knows it, even after the file was replaced or removed.
pub(crate) const OWN_EXECUTABLE: &str = "/proc/self/exe";

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
    let helper = name.to_str().and_then(|name| helpers.named.get(name).copied());
    if helper.is_none() && name != server::COMMAND {
        return;
    }
    take_short_name();
    let args: Vec<OsString> = args.collect();
    let code = helper.map_or_else(|| server::run(&args, helpers.pair), |helper| helper(&args));
    std::process::exit(code.into());
}

/// The path under which this very executable can be run again, by children of this process.
///
/// It is the kernel's link to the running file, not the file's path: a build may replace or remove the file at any
/// moment, and a helper must never be another build than the one that needs it.
pub fn executable() -> Result<PathBuf, ExecutableError> {
    match fs::metadata(OWN_EXECUTABLE) {
        Ok(_) => Ok(OWN_EXECUTABLE.into()),
        Err(source) => Err(ExecutableError { source }),
    }
}

/// What a child that runs this executable again is shown as in lists of processes.
pub(crate) fn shown_name() -> OsString {
    std::env::current_exe().map_or_else(|_| OWN_EXECUTABLE.into(), PathBuf::into_os_string)
}

/// Gives this process the short name of its executable; it was run by the kernel's link, which is named `exe`.
fn take_short_name() {
    let name = shown_name();
    let name = Path::new(&name).file_name().and_then(|name| CString::new(name.as_bytes()).ok());
    if let Some(name) = name {
        // The name is for people only.
        rustix::thread::set_name(&name).unwrap_or_default();
    }
}
