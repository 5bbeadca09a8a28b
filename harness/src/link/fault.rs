//! What a link does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What becomes of a new connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arrival {
    /// It is carried on.
    #[default]
    Accept,
    /// Nobody listens: the caller is refused at once.
    Refuse,
    /// It is accepted and leads nowhere: the caller waits.
    Hang,
}

/// What becomes of bytes in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Flow {
    /// They pass.
    #[default]
    Pass,
    /// They are held back, in order, until the fault is over. Nobody learns of it: a broken path looks like that.
    Hold,
    /// Each piece is passed so much later.
    Delay(Duration),
    /// No more than so many bytes pass in a second.
    Throttle {
        /// Bytes.
        bytes_per_second: u32,
    },
}

/// What a link does to everything that goes over it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkFault {
    /// What becomes of new connections.
    pub arrival: Arrival,
    /// From the caller to the server.
    pub towards: Flow,
    /// From the server to the caller.
    pub back: Flow,
}

impl LinkFault {
    /// None: everything passes.
    pub const NONE: Self = Self { arrival: Arrival::Accept, towards: Flow::Pass, back: Flow::Pass };

    /// A broken path: new connections lead nowhere, bytes of old ones do not arrive.
    pub const PARTITION: Self = Self { arrival: Arrival::Hang, towards: Flow::Hold, back: Flow::Hold };

    /// A server that accepts and never answers.
    pub const SILENT: Self = Self { arrival: Arrival::Accept, towards: Flow::Pass, back: Flow::Hold };

    /// No server.
    pub const REFUSED: Self = Self { arrival: Arrival::Refuse, towards: Flow::Hold, back: Flow::Hold };

    /// A server whose answers come so much later.
    #[must_use]
    pub fn slow(delay: Duration) -> Self {
        Self { back: Flow::Delay(delay), ..Self::NONE }
    }
}
