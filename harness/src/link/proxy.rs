//! The proxy.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::fault::{Arrival, LinkFault};
use super::pump::{Direction, pump};

/// A link that could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the link cannot listen at {address}")]
pub struct LinkError {
    /// Where.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// What has gone over a link so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Connections that were accepted.
    pub connections: u64,
    /// Bytes from callers to the server.
    pub towards: u64,
    /// Bytes from the server to callers.
    pub back: u64,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    towards: Arc<AtomicU64>,
    back: Arc<AtomicU64>,
}

/// A link: callers reach `address`, and with it the server behind. Dropping it ends it and all its connections.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    faults: watch::Sender<LinkFault>,
    resets: watch::Sender<CancellationToken>,
    counters: Arc<Counters>,
    end: CancellationToken,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Link {
    /// Listens at `address` (port 0 for any) on behalf of `server`. Needs a Tokio runtime.
    ///
    /// # Errors
    /// [`LinkError`] when nobody can listen there.
    pub async fn start(address: SocketAddr, server: SocketAddr) -> Result<Self, LinkError> {
        let failed = |source| LinkError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let link = Self {
            address,
            faults: watch::Sender::new(LinkFault::NONE),
            resets: watch::Sender::new(CancellationToken::new()),
            counters: Arc::default(),
            end: CancellationToken::new(),
        };
        let carrier = Carrier {
            server,
            faults: link.faults.subscribe(),
            resets: link.resets.subscribe(),
            counters: Arc::clone(&link.counters),
        };
        let end = link.end.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = end.cancelled() => {}
                () = carrier.run(listener, address, &end) => {}
            }
        });
        Ok(link)
    }

    /// Where callers reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the link does this. Connections that are open stay open; what was held passes when it may.
    pub fn set(&self, fault: LinkFault) {
        self.faults.send_replace(fault);
    }

    /// Everything passes.
    pub fn mend(&self) {
        self.set(LinkFault::NONE);
    }

    /// Resets the connections that are open now; both ends see it.
    pub fn reset(&self) {
        self.resets.send_replace(CancellationToken::new()).cancel();
    }

    /// What has gone over it.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            connections: read(&self.counters.connections),
            towards: read(&self.counters.towards),
            back: read(&self.counters.back),
        }
    }
}

struct Carrier {
    server: SocketAddr,
    faults: watch::Receiver<LinkFault>,
    resets: watch::Receiver<CancellationToken>,
    counters: Arc<Counters>,
}

impl Carrier {
    /// Accepts while there is somebody to be reached; listens no more while callers are to be refused.
    async fn run(mut self, listener: TcpListener, address: SocketAddr, end: &CancellationToken) {
        let mut listening = Some(listener);
        loop {
            let refuses = self.faults.borrow_and_update().arrival == Arrival::Refuse;
            if refuses {
                listening = None;
            } else if listening.is_none() {
                listening = TcpListener::bind(address).await.ok();
            }
            let accepted = async {
                match &listening {
                    Some(listener) => listener.accept().await,
                    None if refuses => std::future::pending().await,
                    // Somebody else has the port for a moment.
                    None => {
                        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                        Err(io::Error::other("the port is taken"))
                    }
                }
            };
            tokio::select! {
                accepted = accepted => if let Ok((caller, _)) = accepted { self.accept(caller, end) },
                changed = self.faults.changed() => if changed.is_err() { return },
            }
        }
    }

    fn accept(&self, caller: TcpStream, end: &CancellationToken) {
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        let (end, reset) = (end.clone(), self.resets.borrow().clone());
        let connection = Connection {
            server: self.server,
            faults: self.faults.clone(),
            counters: Arc::clone(&self.counters),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = end.cancelled() => {}
                () = connection.carry(caller, reset) => {}
            }
        });
    }
}

struct Connection {
    server: SocketAddr,
    faults: watch::Receiver<LinkFault>,
    counters: Arc<Counters>,
}

impl Connection {
    /// Carries one connection to its end, whatever that is: each end sees what the other one did.
    async fn carry(mut self, mut caller: TcpStream, reset: CancellationToken) {
        if self.faults.wait_for(|fault| fault.arrival != Arrival::Hang).await.is_err() {
            return;
        }
        let Ok(mut server) = TcpStream::connect(self.server).await else { return abandon(&caller) };
        let pumped = {
            let (from_caller, to_caller) = caller.split();
            let (from_server, to_server) = server.split();
            let (counters, faults) = (&self.counters, &self.faults);
            let towards = pump(
                from_caller,
                to_server,
                Direction::Towards,
                faults.clone(),
                Arc::clone(&counters.towards),
            );
            let back =
                pump(from_server, to_caller, Direction::Back, faults.clone(), Arc::clone(&counters.back));
            tokio::select! {
                both = async { tokio::try_join!(towards, back) } => both.map(drop),
                () = reset.cancelled() => Err(io::ErrorKind::ConnectionReset.into()),
            }
        };
        if pumped.is_err() {
            abandon(&caller);
            abandon(&server);
        }
    }
}

/// The stream ends with a reset when it is dropped.
fn abandon(stream: &TcpStream) {
    // A stream that is closed already needs none.
    stream.set_zero_linger().unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::{Link, LinkFault};
    use crate::link::fault::Flow;

    /// Answers every byte with itself.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        address
    }

    async fn link() -> Link {
        Link::start((Ipv4Addr::LOCALHOST, 0).into(), echo().await).await.unwrap()
    }

    async fn ask(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
        stream.write_all(text).await?;
        answer(stream, text.len()).await
    }

    async fn answer(stream: &mut TcpStream, length: usize) -> std::io::Result<Vec<u8>> {
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    /// Whether nothing comes, as far as that can be seen.
    async fn is_silent(stream: &mut TcpStream) -> bool {
        let mut byte = [0];
        tokio::time::timeout(Duration::from_millis(50), stream.peek(&mut byte)).await.is_err()
    }

    #[tokio::test]
    async fn everything_passes_and_is_counted() {
        let link = link().await;
        let mut caller = TcpStream::connect(link.address()).await.unwrap();
        assert_eq!(ask(&mut caller, b"hello").await.unwrap(), b"hello");
        let traffic = link.traffic();
        assert_eq!((traffic.connections, traffic.towards, traffic.back), (1, 5, 5));
    }

    #[tokio::test]
    async fn a_refused_caller_learns_it_at_once_and_is_let_in_again() {
        let link = link().await;
        link.set(LinkFault::REFUSED);
        while TcpStream::connect(link.address()).await.is_ok() {}
        link.mend();
        let mut caller = loop {
            if let Ok(caller) = TcpStream::connect(link.address()).await {
                break caller;
            }
        };
        assert_eq!(ask(&mut caller, b"again").await.unwrap(), b"again");
    }

    #[tokio::test]
    async fn what_a_partition_held_arrives_in_order_once_it_is_mended() {
        let link = link().await;
        let mut caller = TcpStream::connect(link.address()).await.unwrap();
        ask(&mut caller, b"before").await.unwrap();
        link.set(LinkFault::PARTITION);
        caller.write_all(b"during").await.unwrap();
        assert!(is_silent(&mut caller).await);
        let mut late = TcpStream::connect(link.address()).await.unwrap();
        late.write_all(b"late").await.unwrap();
        assert!(is_silent(&mut late).await);
        link.mend();
        assert_eq!(answer(&mut caller, 6).await.unwrap(), b"during");
        assert_eq!(answer(&mut late, 4).await.unwrap(), b"late");
    }

    #[tokio::test]
    async fn a_one_sided_fault_holds_one_direction() {
        let link = link().await;
        let mut caller = TcpStream::connect(link.address()).await.unwrap();
        link.set(LinkFault::SILENT);
        caller.write_all(b"heard").await.unwrap();
        assert!(is_silent(&mut caller).await);
        assert_eq!((link.traffic().towards, link.traffic().back), (5, 0));
    }

    #[tokio::test]
    async fn a_reset_is_seen_and_new_connections_pass() {
        let link = link().await;
        let mut caller = TcpStream::connect(link.address()).await.unwrap();
        ask(&mut caller, b"x").await.unwrap();
        link.reset();
        let error = answer(&mut caller, 1).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        let mut next = TcpStream::connect(link.address()).await.unwrap();
        assert_eq!(ask(&mut next, b"y").await.unwrap(), b"y");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_link_delays_every_piece() {
        let link = link().await;
        link.set(LinkFault { towards: Flow::Delay(Duration::from_secs(3)), ..LinkFault::NONE });
        let mut caller = TcpStream::connect(link.address()).await.unwrap();
        let began = tokio::time::Instant::now();
        ask(&mut caller, b"slow").await.unwrap();
        assert!(began.elapsed() >= Duration::from_secs(3));
    }
}
