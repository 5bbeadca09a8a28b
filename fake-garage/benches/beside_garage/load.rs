//! Two kinds of load: as fast as answers come, and at a rate that does not wait for answers.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Call, Connection, Failure};

/// What a load came to.
pub(crate) struct Load {
    /// Answers, ascending by the time they took.
    took: Vec<Duration>,
    lasted: Duration,
}

impl Load {
    /// How many answers there were.
    pub(crate) fn answers(&self) -> f64 {
        f64::from(u32::try_from(self.took.len()).unwrap_or(u32::MAX))
    }

    /// Answers per second.
    pub(crate) fn rate(&self) -> f64 {
        self.answers() / self.lasted.as_secs_f64()
    }

    /// The time that `percent` of a hundred answers took at most, in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let place = (self.took.len() * percent / 100).min(self.took.len().saturating_sub(1));
        self.took.get(place).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    }

    fn of(mut took: Vec<Duration>, lasted: Duration) -> Self {
        took.sort_unstable();
        Self { took, lasted }
    }
}

/// Sends on as many connections as there are addresses, each the next request once the last is answered.
pub(crate) async fn closed_loop(
    addresses: &[SocketAddr],
    duration: Duration,
    call: impl Fn(u64) -> Result<Call, Failure> + Clone + Send + 'static,
) -> Result<Load, Failure> {
    let mut connections = Vec::new();
    for address in addresses {
        connections.push(Connection::open(*address).await?);
    }
    let began = Instant::now();
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let call = call.clone();
            tokio::spawn(async move {
                let mut took = Vec::new();
                while began.elapsed() < duration {
                    let call = call(u64::try_from(took.len()).unwrap_or(u64::MAX))?;
                    let sent = Instant::now();
                    connection.succeed(&call).await?;
                    took.push(sent.elapsed());
                }
                Ok::<_, Failure>(took)
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await??);
    }
    Ok(Load::of(took, began.elapsed()))
}

/// Sends `rate` requests per second at fixed times, on one connection and one thread per address in turn.
///
/// The time an answer takes counts from the moment its request was due, so that a late answer is not hidden by the
/// requests that wait for it.
pub(crate) fn open_loop(
    addresses: &[SocketAddr],
    rate: u32,
    duration: Duration,
    call: &Call,
) -> Result<Load, Failure> {
    let count = u32::try_from(addresses.len())?;
    let pause = Duration::from_secs(1) * count / rate;
    let began = Instant::now() + Duration::from_millis(200);
    let took = thread::scope(|scope| {
        let senders: Vec<_> = addresses
            .iter()
            .zip(0..)
            .map(|(address, place)| {
                let first = began + pause * place / count;
                scope.spawn(move || send_on_time(*address, first, pause, began + duration, call))
            })
            .collect();
        let mut took = Vec::new();
        for sender in senders {
            took.extend(sender.join().map_err(|_| "a sender panicked")??);
        }
        Ok::<_, Failure>(took)
    })?;
    Ok(Load::of(took, duration))
}

fn send_on_time(
    address: SocketAddr,
    first: Instant,
    pause: Duration,
    end: Instant,
    call: &Call,
) -> Result<Vec<Duration>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut connection = runtime.block_on(Connection::open(address))?;
    let mut took = Vec::new();
    let mut due = first;
    while due < end {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        runtime.block_on(connection.succeed(call))?;
        took.push(due.elapsed());
        due += pause;
    }
    Ok(took)
}
