//! What a supervisor inherits from the client that claimed its pair.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{fs::OpenOptionsExt as _, net::UnixListener},
    },
};

use rustix::{fs::Mode, stdio};

use super::{
    super::{folder::PairFolder, root::same_file},
    folder_argument,
};

/// Why the inheritance was refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum InheritError {
    #[error("it takes the folder of a pair")]
    Usage,
    #[error("standard input is not the pair's socket")]
    Socket,
    #[error("standard output is not the pair's lock")]
    Lock,
    #[error("cannot {action}")]
    Io { action: &'static str, source: io::Error },
}

/// The claim, as file descriptors: the socket as standard input, the lock as standard output, the beacon as
/// standard error. Only those three can be handed over without unsafe code, and handing them over is what leaves
/// no moment at which the pair is nobody's.
pub(super) struct Inherited {
    pub(super) folder: PairFolder,
    socket: OwnedFd,
    _lock: File,
    _beacon: OwnedFd,
}

impl Inherited {
    /// Takes the claim out of the three standard streams, which become the null device and the log.
    pub(super) fn take(args: &[OsString]) -> Result<Self, InheritError> {
        let folder = folder_argument(args).ok_or(InheritError::Usage)?;
        let copy = |stream: io::Result<OwnedFd>| stream.map_err(|source| failed("copy a stream", source));
        let socket = copy(io::stdin().as_fd().try_clone_to_owned())?;
        let lock = File::from(copy(io::stdout().as_fd().try_clone_to_owned())?);
        let beacon = copy(io::stderr().as_fd().try_clone_to_owned())?;
        let address = UnixListener::from(copy(socket.try_clone())?).local_addr();
        let is_ours = address.is_ok_and(|address| address.as_pathname() == Some(&folder.socket()));
        if !is_ours {
            return Err(InheritError::Socket);
        }
        if !same_file(&lock, &folder.lock_file()) {
            return Err(InheritError::Lock);
        }
        let inherited = Self { folder, socket, _lock: lock, _beacon: beacon };
        inherited.redirect().map_err(|source| failed("open the log", source))?;
        Ok(inherited)
    }

    fn redirect(&self) -> io::Result<()> {
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(self.folder.log())?;
        stdio::dup2_stderr(&log)?;
        stdio::dup2_stdout(&log)?;
        stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(())
    }

    /// Leaves the client's session, folder and habits behind.
    pub(super) fn detach() -> Result<(), InheritError> {
        rustix::process::setsid().map_err(|errno| failed("start a session", errno.into()))?;
        std::env::set_current_dir("/").map_err(|source| failed("leave the client's folder", source))?;
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        Ok(())
    }

    /// The socket, for the runtime. Must be called within it.
    pub(super) fn listener(&self) -> io::Result<tokio::net::UnixListener> {
        let listener = UnixListener::from(self.socket.try_clone()?);
        listener.set_nonblocking(true)?;
        tokio::net::UnixListener::from_std(listener)
    }
}

fn failed(action: &'static str, source: io::Error) -> InheritError {
    InheritError::Io { action, source }
}
