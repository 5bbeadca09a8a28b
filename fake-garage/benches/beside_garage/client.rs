//! A client of the admin API that costs little: one connection, one request at a time.

use std::error::Error;
use std::net::SocketAddr;

use http::header::{AUTHORIZATION, HOST};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Whatever can go wrong in a benchmark.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// A request that can be sent again and again.
#[derive(Clone)]
pub(crate) struct Call {
    method: http::Method,
    path: String,
    token: Option<String>,
    body: Bytes,
}

impl Call {
    /// A GET without a token.
    pub(crate) fn open(path: &str) -> Self {
        Self { method: http::Method::GET, path: path.to_owned(), token: None, body: Bytes::new() }
    }

    /// A GET.
    pub(crate) fn get(path: &str, token: &str) -> Self {
        Self { token: Some(format!("Bearer {token}")), ..Self::open(path) }
    }

    /// A call with a body.
    pub(crate) fn with_body(method: &str, path: &str, token: &str, body: &Value) -> Result<Self, Failure> {
        Ok(Self { method: method.parse()?, body: body.to_string().into(), ..Self::get(path, token) })
    }
}

/// A connection that is kept open.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Connection {
    /// Connects to `address`.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender; what went wrong is told to whoever sends.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, host: address.to_string() })
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&mut self, call: &Call) -> Result<(u16, Bytes), Failure> {
        let mut request = http::Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.path.parse()?;
        request.headers_mut().insert(HOST, self.host.parse()?);
        if let Some(token) = &call.token {
            request.headers_mut().insert(AUTHORIZATION, token.parse()?);
        }
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status().as_u16();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// As [`Connection::send`], for calls whose answer must be 200.
    pub(crate) async fn succeed(&mut self, call: &Call) -> Result<Bytes, Failure> {
        let (status, body) = self.send(call).await?;
        if status == 200 {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body);
        Err(format!("{} {} at {}: {status} {text}", call.method, call.path, self.host).into())
    }

    /// As [`Connection::succeed`], with the JSON of the answer.
    pub(crate) async fn ask(&mut self, call: &Call) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&self.succeed(call).await?)?)
    }
}
