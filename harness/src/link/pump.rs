//! One direction of one connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;

use super::fault::{Flow, LinkFault};

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;

/// Which direction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Towards,
    Back,
}

impl Direction {
    fn flow(self, fault: &LinkFault) -> Flow {
        match self {
            Self::Towards => fault.towards,
            Self::Back => fault.back,
        }
    }
}

/// Carries bytes until the sender is done, doing to each piece what the link does at that moment.
pub(super) async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: Direction,
    mut faults: watch::Receiver<LinkFault>,
    carried: Arc<AtomicU64>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = from.read(&mut piece).await?;
        if length == 0 {
            hold(direction, &mut faults).await;
            return to.shutdown().await;
        }
        let flow = hold(direction, &mut faults).await;
        if let Some(pause) = pause(flow, length) {
            tokio::time::sleep(pause).await;
            // The path may have broken meanwhile.
            hold(direction, &mut faults).await;
        }
        to.write_all(&piece[..length]).await?;
        carried.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Waits while bytes of this direction are held back; answers what becomes of them then.
async fn hold(direction: Direction, faults: &mut watch::Receiver<LinkFault>) -> Flow {
    let passes = faults.wait_for(|fault| direction.flow(fault) != Flow::Hold);
    let flow = passes.await.ok().map(|fault| direction.flow(&fault));
    match flow {
        Some(flow) => flow,
        // The link is gone, and with it whoever could mend it.
        None => std::future::pending().await,
    }
}

fn pause(flow: Flow, length: usize) -> Option<Duration> {
    match flow {
        Flow::Pass | Flow::Hold => None,
        Flow::Delay(delay) => Some(delay),
        Flow::Throttle { bytes_per_second } => {
            let rate = f64::from(bytes_per_second.max(1));
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            Some(Duration::from_secs_f64(f64::from(length) / rate))
        }
    }
}
