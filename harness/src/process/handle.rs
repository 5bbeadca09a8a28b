//! A handle on a process: the kernel's, so that it never comes to mean another process of the same number.

use std::{fs::File, io, os::fd::OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::net::unix::pipe;

/// A handle on whoever had a number when it was opened (`pidfd_open(2)`).
#[derive(Debug)]
pub(super) struct ProcessHandle {
    handle: OwnedFd,
}

impl ProcessHandle {
    /// Opens a handle; `None` if no process has that number.
    pub(super) fn open(pid: Pid) -> io::Result<Option<Self>> {
        match rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(handle) => Ok(Some(Self { handle })),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Signals the process; `false` if it has ended and been reaped.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<bool> {
        match rustix::process::pidfd_send_signal(&self.handle, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Prepares to wait for the process' end. Must be called within a Tokio runtime.
    pub(super) fn watch(self) -> io::Result<ProcessEnd> {
        // A pipe's reading end is the one type of Tokio that takes any pollable descriptor into its care without
        // unsafe code. Nothing is ever read: only its becoming readable counts.
        Ok(ProcessEnd { readable: pipe::Receiver::from_file_unchecked(File::from(self.handle))? })
    }
}

/// Waits for a process to end.
#[derive(Debug)]
pub(super) struct ProcessEnd {
    readable: pipe::Receiver,
}

impl ProcessEnd {
    /// Returns when the process has ended; it may still be a zombie. May be dropped and repeated.
    pub(super) async fn ended(&self) -> io::Result<()> {
        self.readable.readable().await
    }
}
