//! A run: cells on a pair, their history, its verdict, and what is left for people to read.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@execute`] | the run itself; start here |
//! | [`directory`] | the folder with everything that a run leaves behind |
//! | [`sources`] | the run's history out of its sources |
//! | [`logs`] | the logs of the pair's programs |
//! | [`observer`] | who is told how a run goes |

pub mod directory;
pub mod execute;
pub mod logs;
pub mod observer;
pub mod sources;

pub use directory::RunDirectory;
pub use execute::{RunOptions, execute};
pub use observer::Observer;

use std::path::Path;

use crate::failure::BoxError;
use crate::report::{Verdict, junit};

/// Writes the verdict in its forms: `verdict.json`, `junit.xml`, and the latter also to `junit_too`.
pub fn write_verdict(
    directory: &RunDirectory,
    verdict: &Verdict,
    junit_too: Option<&Path>,
) -> Result<(), BoxError> {
    directory.write_json("verdict.json", verdict)?;
    let xml = junit::render(verdict)?;
    directory.write("junit.xml", xml.as_bytes())?;
    if let Some(path) = junit_too {
        directory::write(path, xml.as_bytes())?;
    }
    Ok(())
}
