//! `onewriter report`.

use std::path::{Path, PathBuf};

use harness::failure::chain;
use harness::report::html::{Page, render};
use harness::report::{Exit, Recording, Verdict};
use harness::run::{directory, execute::coverage};
use onewriter_history::History;
use serde_json::json;

use super::args::{Global, ReportArgs};
use super::{check, output};

/// Writes a page about a run: 2 where there is no such run, 1 where the page cannot be written.
pub(super) fn report(global: &Global, args: &ReportArgs) -> Exit {
    let recording = match Recording::open(&args.run, &args.artifacts.artifacts_dir) {
        Ok(recording) => recording,
        Err(error) => return output::fail(Exit::Usage, &chain(&error)),
    };
    let verdict = match (&recording.verdict, &recording.history) {
        (Some(verdict), _) => verdict.clone(),
        (None, Ok(history)) => judged(history),
        (None, Err(error)) => {
            let message = format!("{}: {}", recording.place.display(), chain(error));
            return output::fail(error.exit(), &message);
        }
    };
    let path = args.output.clone().unwrap_or_else(|| recording.page.clone());
    match write(&recording, &verdict, &path) {
        Ok(bytes) => {
            let value = json!({"run": verdict.run, "report": path, "bytes": bytes});
            output::show(global, &value, || format!("{}\n", path.display()))
        }
        Err(message) => output::fail(Exit::Internal, &message),
    }
}

fn write(recording: &Recording, verdict: &Verdict, path: &PathBuf) -> Result<usize, String> {
    let why = recording.history.as_ref().map_err(|error| chain(error));
    let history = why.as_ref().map(|history| *history).map_err(String::as_str);
    let page = render(&Page { verdict, history }).map_err(|error| chain(&error))?;
    // A bare file name has an empty parent, which is no folder.
    let path = if path.parent() == Some(Path::new("")) { &Path::new(".").join(path) } else { path };
    directory::write(path, page.as_bytes()).map_err(|error| chain(&error))?;
    Ok(page.len())
}

/// The verdict on a history alone, by the checks of today.
fn judged(history: &History) -> Verdict {
    let judgements = check::Judged::of(history).judgements;
    let mut verdict = Verdict::new(&history.header.run, vec![], judgements, vec![]);
    verdict.coverage = coverage(history);
    verdict.versions.clone_from(&history.header.versions);
    verdict
}
