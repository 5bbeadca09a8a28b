//! The one thread that forks.

use std::{
    io,
    sync::{OnceLock, mpsc},
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

/// Runs `job` on the thread that starts all children.
///
/// A parent-death signal is bound to the *thread* that forked, not to its process (prctl(2), `PR_SET_PDEATHSIG`):
/// a child that was forked by a worker of an asynchronous runtime would be killed as soon as that worker retires.
/// This thread lives exactly as long as the process.
pub(super) fn run(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    static JOBS: OnceLock<Result<mpsc::Sender<Job>, io::ErrorKind>> = OnceLock::new();
    let jobs = JOBS.get_or_init(start).as_ref().map_err(|kind| io::Error::from(*kind))?;
    jobs.send(Box::new(job)).map_err(|_| io::Error::other("the thread that starts children has ended"))
}

fn start() -> Result<mpsc::Sender<Job>, io::ErrorKind> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let work = move || queue.iter().for_each(|job| job());
    thread::Builder::new().name("spawner".into()).spawn(work).map_err(|error| error.kind())?;
    Ok(jobs)
}
