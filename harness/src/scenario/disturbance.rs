//! Breaking what several namespaces share, on purpose, and mending it.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::failure::BoxError;
use crate::site::Site;
use crate::supervisor::Client;

/// The action under which a disturbance stands in the history, as a fault of the site it concerns.
pub const DISTURBANCE: &str = "disturbance";

/// Something that is done to a part of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "disturbance", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Disturbance {
    /// The operator of a site is killed.
    EndOperator {
        /// The site.
        site: Site,
    },
    /// The operator of a site is started again, if it does not run, and is ready.
    ReviveOperator {
        /// The site.
        site: Site,
    },
    /// The API server of a site ends. Its operator may end as well, when it loses its Lease.
    EndApiServer {
        /// The site.
        site: Site,
    },
    /// The API server of a site is started again, and its operator if that has ended; both are ready.
    ReviveApiServer {
        /// The site.
        site: Site,
    },
    /// Everything runs again.
    ReviveAll,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOperator { site } => write!(f, "end the operator of {site}"),
            Self::ReviveOperator { site } => write!(f, "start the operator of {site} again"),
            Self::EndApiServer { site } => write!(f, "end the API server of {site}"),
            Self::ReviveApiServer { site } => write!(f, "start the API server of {site} again"),
            Self::ReviveAll => f.write_str("start whatever is down again"),
        }
    }
}

/// Who carries disturbances out.
pub trait Disturber: Send + Sync + fmt::Debug {
    /// Does it, and returns when it is done.
    fn disturb(&self, what: Disturbance) -> BoxFuture<'_, Result<(), BoxError>>;
}

/// A pair is disturbed through its supervisor.
impl Disturber for Client {
    fn disturb(&self, what: Disturbance) -> BoxFuture<'_, Result<(), BoxError>> {
        async move {
            self.request(serde_json::to_value(what)?).await?;
            Ok(())
        }
        .boxed()
    }
}

impl<T: Disturber> Disturber for Arc<T> {
    fn disturb(&self, what: Disturbance) -> BoxFuture<'_, Result<(), BoxError>> {
        self.as_ref().disturb(what)
    }
}
