//! A run: cells on a pair, their history, its verdict, and what is left for people to read.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@execute`] | the run itself; start here |
//! | [`directory`] | the folder with everything that a run leaves behind |
//! | [`sources`] | the run's history out of its sources |
//! | [`latency`] | how long waits take after what they wait for |
//! | [`logs`] | the logs of the pair's programs |
//! | [`observer`] | who is told how a run goes |

pub mod directory;
pub mod execute;
pub mod latency;
pub mod logs;
pub mod observer;
pub mod sources;

pub use directory::{RunDirectory, stamp};
pub use execute::{RunOptions, Tenancy, execute};
pub use observer::Observer;

use std::path::Path;

use onewriter_history::{History, ReadError};

use crate::failure::{BoxError, chain};
use crate::report::{Verdict, VerdictKind, bundle, html, junit};

/// Writes the verdict in its forms: `verdict.json`, `report.html`, `junit.xml`. A run that did not pass leaves a bundle as
/// well, of all that is in its folder by then.
pub fn write_verdict(directory: &RunDirectory, verdict: &Verdict) -> Result<(), BoxError> {
    directory.write_json("verdict.json", verdict)?;
    directory.write("junit.xml", junit::render(std::slice::from_ref(verdict))?.as_bytes())?;
    write_report(directory, verdict)?;
    if verdict.verdict != VerdictKind::Pass {
        bundle::write(directory.path(), verdict)?;
    }
    Ok(())
}

/// Writes the JUnit report of several runs to `path`.
pub fn write_junit(path: &Path, verdicts: &[Verdict]) -> Result<(), BoxError> {
    Ok(directory::write(path, junit::render(verdicts)?.as_bytes())?)
}

/// Histories of more bytes are not drawn on the page that a run writes: it would have to hold them in memory.
const LARGEST_DRAWN: u64 = 256 << 20;

fn write_report(directory: &RunDirectory, verdict: &Verdict) -> Result<(), BoxError> {
    let path = directory.history();
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    let history = if bytes > LARGEST_DRAWN {
        Err(format!("the history has {} MiB: too much for a page", bytes >> 20))
    } else {
        History::read(&path).map_err(|error| match error {
            ReadError::Io { .. } => "the run has no history".to_owned(),
            other => chain(&other),
        })
    };
    let history = history.as_ref().map_err(String::as_str);
    let page = html::render(&html::Page { verdict, history })?;
    Ok(directory.write("report.html", page.as_bytes())?)
}
