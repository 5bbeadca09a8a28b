//! A process that dies right after a write: for test builds with the feature `crash-after-write`, and for nobody else.
//!
//! Every mutation of the Kubernetes API and every POST to Garage is counted here once its answer has arrived. The one
//! with the chosen number is the last thing the process does: nothing is flushed, released or told to anybody.

#[cfg(feature = "crash-after-write")]
pub use armed::{CountWrites, arm};

/// An answered write; does not return from the one after which the process dies.
#[cfg(feature = "crash-after-write")]
pub(crate) fn wrote(what: impl FnOnce() -> String) {
    armed::wrote(what);
}

/// An answered write: nobody counts it in a build without the feature.
#[cfg(not(feature = "crash-after-write"))]
#[inline]
pub(crate) fn wrote(_: impl FnOnce() -> String) {}

#[cfg(feature = "crash-after-write")]
mod armed {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Context, Poll};

    use axum::http::{Method, Request};
    use tower::{Layer, Service};

    /// Exit code of a process that was killed (128 + SIGKILL).
    const KILLED: i32 = 137;

    static LAST: OnceLock<u64> = OnceLock::new();
    static WRITES: AtomicU64 = AtomicU64::new(0);

    /// The process dies after the answer to this write, counted from 1. Only the first call counts.
    pub fn arm(last: u64) {
        let _chosen = LAST.set(last);
    }

    pub(super) fn wrote(what: impl FnOnce() -> String) {
        let Some(last) = LAST.get() else { return };
        let number = WRITES.fetch_add(1, Ordering::SeqCst) + 1;
        if number == *last {
            eprintln!("garage-operator: crash-after-write: died after write {number}: {}", what());
            std::process::exit(KILLED);
        }
    }

    /// Counts the mutations of a Kubernetes client.
    #[derive(Clone, Copy, Debug)]
    pub struct CountWrites;

    impl<S> Layer<S> for CountWrites {
        type Service = Counted<S>;

        fn layer(&self, inner: S) -> Counted<S> {
            Counted(inner)
        }
    }

    /// A client whose mutations are counted.
    #[derive(Clone, Debug)]
    pub struct Counted<S>(S);

    impl<S, B> Service<Request<B>> for Counted<S>
    where
        S: Service<Request<B>>,
        S::Future: Send + 'static,
        S::Response: Send,
        S::Error: Send,
    {
        type Response = S::Response;
        type Error = S::Error;
        type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

        fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(context)
        }

        fn call(&mut self, request: Request<B>) -> Self::Future {
            let write = (request.method() != Method::GET)
                .then(|| format!("{} {}", request.method(), request.uri().path()));
            let answer = self.0.call(request);
            Box::pin(async move {
                let answer = answer.await;
                if let (Some(write), Ok(_)) = (write, &answer) {
                    wrote(|| write);
                }
                answer
            })
        }
    }
}
