//! The clock of a hub: the machine's, or a virtual one for tests.

use jiff::{SignedDuration, Timestamp};
use onewriter_history::Moment;
use tokio::time::Instant;

/// What time a hub goes by.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's clocks.
    Machine,
    /// The time of a runtime whose clock is paused: it stands still while anything runs, and leaps to whatever is due
    /// next once nothing does.
    Virtual {
        /// What wall clocks show when it begins.
        origin: Timestamp,
        /// When it began.
        began: Instant,
    },
}

impl Clock {
    /// A virtual clock that begins now, at `origin` on wall clocks. It belongs into a runtime whose time is paused.
    #[must_use]
    pub fn virtual_from(origin: Timestamp) -> Self {
        Self::Virtual { origin, began: Instant::now() }
    }

    /// This moment, for the history.
    #[must_use]
    pub fn moment(&self) -> Moment {
        match self {
            Self::Machine => Moment::now(),
            Self::Virtual { origin, began } => {
                let elapsed = began.elapsed();
                let at = SignedDuration::try_from(elapsed)
                    .ok()
                    .and_then(|elapsed| origin.checked_add(elapsed).ok());
                let mono_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
                Moment { at: at.unwrap_or(Timestamp::MAX), mono_ns }
            }
        }
    }

    /// What wall clocks show, in milliseconds since 1970.
    #[must_use]
    pub fn wall_ms(&self) -> u64 {
        u64::try_from(self.moment().at.as_millisecond()).unwrap_or(0)
    }
}
