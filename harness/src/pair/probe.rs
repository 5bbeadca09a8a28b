//! Asking a child over HTTP whether it is ready.

use std::time::Duration;

use crate::process::Child;

/// How often a starting child is asked. It cannot tell by itself when it is ready.
const INTERVAL: Duration = Duration::from_millis(20);

/// How many lines of its log an unready child is shown with.
const TAIL: usize = 20;

/// A child did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It ended.
    #[error("{name} ended with {status} before it was ready; the end of {log}:\n{tail}")]
    Ended {
        /// Name of the child.
        name: String,
        /// How it ended.
        status: String,
        /// Its log.
        log: String,
        /// The last lines of it.
        tail: String,
    },
    /// It did not answer in time.
    #[error("{name} was not ready within {}: {url} {answer}; the end of {log}:\n{tail}", humantime::format_duration(*.limit))]
    NotReady {
        /// Name of the child.
        name: String,
        /// What it was asked.
        url: String,
        /// What it said last.
        answer: String,
        /// How long it was asked.
        limit: Duration,
        /// Its log.
        log: String,
        /// The last lines of it.
        tail: String,
    },
    /// No HTTP client could be made.
    #[error("no HTTP client can be made")]
    Client(#[from] reqwest::Error),
}

/// Asks `url` until it answers with success, the child ends, or `limit` has passed.
pub async fn until_success(
    child: &Child,
    url: &str,
    token: Option<&str>,
    limit: Duration,
) -> Result<(), ProbeError> {
    let http = reqwest::Client::builder().no_proxy().timeout(limit).build()?;
    let mut answer = "was not asked yet".to_owned();
    let asking = async {
        loop {
            let mut request = http.get(url);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            match request.send().await {
                Ok(response) if response.status().is_success() => return,
                Ok(response) => answer = format!("answered {}", response.status()),
                Err(error) => answer = format!("failed: {}", crate::failure::chain(&error)),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    };
    let timed = tokio::time::timeout(limit, asking);
    let (log, name) = (child.log().display().to_string(), child.name().to_owned());
    tokio::select! {
        status = child.exited() => {
            let status = status.to_string();
            Err(ProbeError::Ended { name, status, log, tail: tail(child) })
        }
        asked = timed => asked.map_err(|_elapsed| {
            ProbeError::NotReady { name, url: url.to_owned(), answer, limit, log, tail: tail(child) }
        }),
    }
}

fn tail(child: &Child) -> String {
    let tail = child.log_tail(TAIL);
    if tail.trim().is_empty() { "(it is empty)".to_owned() } else { tail }
}
