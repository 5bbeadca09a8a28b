//! Connections to the pod's admin port, passed on to the hub byte by byte.
//!
//! What one side does to its connection is done to the other: an end of stream, a close, a reset.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::control::{HubClient, Tunnel};

/// Bytes that are passed on at once.
const BUFFER: usize = 1 << 14;

/// Accepts connections and passes them on. Never returns.
pub async fn serve(listener: TcpListener, hub: Arc<HubClient>) {
    loop {
        match listener.accept().await {
            Ok((caller, _)) => {
                tokio::spawn(pass_on(caller, Arc::clone(&hub)));
            }
            // Out of file descriptors: others may still come, once some are free again.
            Err(error) => {
                tracing::warn!(target: "garage", %error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn pass_on(caller: TcpStream, hub: Arc<HubClient>) {
    match hub.tunnel().await {
        Ok(tunnel) => {
            if let Err(error) = exchange(caller, tunnel).await {
                tracing::debug!(target: "garage", %error, "a connection broke");
            }
        }
        Err(error) => {
            tracing::warn!(target: "garage", error = &error as &dyn std::error::Error, "cannot pass a connection on");
            reset(&caller);
        }
    }
}

/// How an exchange ended.
enum End {
    /// The node closed: the caller's connection closes, too.
    Closed,
    /// The node's side was torn.
    NodeTore,
    /// The caller's side was torn.
    CallerTore,
}

async fn exchange(mut caller: TcpStream, (mut node, early): Tunnel) -> io::Result<()> {
    caller.set_nodelay(true)?;
    let (from_caller, mut to_caller) = caller.split();
    let (from_node, to_node) = node.split();
    to_caller.write_all(&early).await?;
    let end = tokio::select! {
        end = answers(from_node, to_caller) => end,
        end = requests(from_caller, to_node) => end,
    };
    match end {
        End::Closed => {}
        End::NodeTore => reset(&caller),
        End::CallerTore => reset(&node),
    }
    Ok(())
}

/// Passes on what the node says, until it closes.
async fn answers(mut node: ReadHalf<'_>, mut caller: WriteHalf<'_>) -> End {
    let mut buffer = vec![0; BUFFER];
    loop {
        match node.read(&mut buffer).await {
            Ok(0) => return End::Closed,
            Err(_) => return End::NodeTore,
            Ok(read) => {
                if caller.write_all(&buffer[..read]).await.is_err() {
                    return End::CallerTore;
                }
            }
        }
    }
}

/// Passes on what the caller says. Returns only if its side is torn: all else ends with the node's close.
async fn requests(mut caller: ReadHalf<'_>, mut node: WriteHalf<'_>) -> End {
    let mut buffer = vec![0; BUFFER];
    loop {
        let Ok(read) = caller.read(&mut buffer).await else { return End::CallerTore };
        let passed = if read == 0 { node.shutdown().await } else { node.write_all(&buffer[..read]).await };
        if read == 0 || passed.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Makes the connection end with a reset when it is dropped.
fn reset(stream: &TcpStream) {
    if let Err(error) = sockopt::set_socket_linger(stream, Some(Duration::ZERO)) {
        tracing::debug!(target: "garage", %error, "cannot reset a connection");
    }
}
