//! Ports on which Garage listens and the fake only answers that there is nothing: RPC, S3, K2V, web.
//!
//! Probes find them open. Nodes of the hub talk to each other inside of it.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long a caller may take to say something.
const PATIENCE: Duration = Duration::from_secs(5);

const REFUSAL: &str = "This is a fake Garage: it offers only the admin API\n";

/// Accepts connections; with `http` it answers that nothing is offered, else it closes them. Never returns.
pub async fn serve(listener: TcpListener, http: bool) {
    loop {
        match listener.accept().await {
            Ok((caller, _)) => {
                tokio::spawn(async move { tokio::time::timeout(PATIENCE, refuse(caller, http)).await });
            }
            Err(error) => {
                tracing::warn!(target: "garage", %error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn refuse(mut caller: TcpStream, http: bool) -> std::io::Result<()> {
    let read = caller.read(&mut [0; 4096]).await?;
    if http && read > 0 {
        let length = REFUSAL.len();
        let head = "HTTP/1.1 501 Not Implemented\r\ncontent-type: text/plain\r\nconnection: close\r\n";
        caller.write_all(format!("{head}content-length: {length}\r\n\r\n{REFUSAL}").as_bytes()).await?;
    }
    caller.shutdown().await
}
