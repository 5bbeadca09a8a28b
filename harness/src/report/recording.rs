//! Finding and reading what a run left behind: its folder, its history, or its bundle.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onewriter_history::{History, ReadError};

use super::bundle::{self, BundleError};
use super::{Exit, Verdict};

/// The name under which the newest run is found.
pub const LATEST: &str = "latest";

/// Something that a run left behind cannot be found or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// There is nothing of that name.
    #[error(
        "there is no run, history or bundle {}, nor a run of that name in {}; `{LATEST}` is the newest run there",
        .named.display(), .artifacts.display()
    )]
    NotFound {
        /// What was asked for.
        named: PathBuf,
        /// Where runs were looked for.
        artifacts: PathBuf,
    },
    /// The folder is no run's.
    #[error("{} is no folder of a run: it has neither verdict.json nor history.jsonl", .folder.display())]
    NoRun {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The verdict is none of this schema.
    #[error("{} is no verdict that this program reads", .path.display())]
    Verdict {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The bundle cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// The run has no history that could be judged.
#[derive(Debug, thiserror::Error)]
pub enum NoHistory {
    /// It left none.
    #[error("the run left no history")]
    Missing,
    /// It cannot be read as a whole.
    #[error("the history cannot be read")]
    Unreadable(#[from] ReadError),
}

impl NoHistory {
    /// How a program ends that was to judge it: a history that lost something leaves the verdict open.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreadable(error) if error.is_broken() => Exit::Unknown,
            Self::Missing | Self::Unreadable(_) => Exit::Usage,
        }
    }
}

/// What a run left behind.
#[derive(Debug)]
pub struct Recording {
    /// Where it was found: a folder, a history or a bundle.
    pub place: PathBuf,
    /// Where a page about it goes unless somebody says otherwise.
    pub page: PathBuf,
    /// Its verdict, if it left one.
    pub verdict: Option<Verdict>,
    /// Its history.
    pub history: Result<History, NoHistory>,
}

impl Recording {
    /// Finds and reads `named`: a run's folder, a history, a bundle, or the name of a run below `artifacts`.
    pub fn open(named: &Path, artifacts: &Path) -> Result<Self, RecordingError> {
        let place = find(named, artifacts)?;
        if place.is_dir() {
            return Self::of_folder(place);
        }
        if bundle::is_bundle(&place).map_err(|source| RecordingError::Read { path: place.clone(), source })? {
            return Self::of_bundle(place);
        }
        Ok(Self::of_history(place))
    }

    fn of_folder(folder: PathBuf) -> Result<Self, RecordingError> {
        let path = folder.join("history.jsonl");
        let verdict = read_verdict(&folder.join("verdict.json"))?;
        if verdict.is_none() && !path.exists() {
            return Err(RecordingError::NoRun { folder });
        }
        let history = if path.exists() {
            History::read(&path).map_err(NoHistory::from)
        } else {
            Err(NoHistory::Missing)
        };
        Ok(Self { page: folder.join("report.html"), place: folder, verdict, history })
    }

    fn of_history(path: PathBuf) -> Self {
        let history = History::read(&path).map_err(NoHistory::from);
        let folder = path.parent().unwrap_or(Path::new("."));
        // The verdict beside it may be that of another run, or be no verdict at all.
        let beside = read_verdict(&folder.join("verdict.json")).ok().flatten();
        let verdict = beside.filter(|verdict| history.as_ref().is_ok_and(|h| h.header.run == verdict.run));
        Self { page: path.with_extension("html"), place: path, verdict, history }
    }

    fn of_bundle(path: PathBuf) -> Result<Self, RecordingError> {
        let contents = bundle::read(&path)?;
        let verdict = contents.verdict.map(|text| parse_verdict(&path, &text)).transpose()?;
        let history = match contents.history {
            Some(text) => History::parse(&text).map_err(NoHistory::from),
            None => Err(NoHistory::Missing),
        };
        // Both endings go: bundle.tar.gz becomes bundle.html.
        let page = path.with_extension("").with_extension("html");
        Ok(Self { place: path, page, verdict, history })
    }
}

fn find(named: &Path, artifacts: &Path) -> Result<PathBuf, RecordingError> {
    let below = artifacts.join(named);
    // `latest` is a name before it is a path: a run's folder is where people are when they ask for it.
    let candidates =
        if named == Path::new(LATEST) { [below, named.to_owned()] } else { [named.to_owned(), below] };
    let found = candidates.into_iter().find(|path| path.exists());
    found.ok_or_else(|| RecordingError::NotFound { named: named.to_owned(), artifacts: artifacts.to_owned() })
}

fn read_verdict(path: &Path) -> Result<Option<Verdict>, RecordingError> {
    match fs::read_to_string(path) {
        Ok(text) => parse_verdict(path, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordingError::Read { path: path.to_owned(), source }),
    }
}

fn parse_verdict(path: &Path, text: &str) -> Result<Verdict, RecordingError> {
    serde_json::from_str(text).map_err(|source| RecordingError::Verdict { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onewriter_history::{Event, Header, Journal, Source, Step};

    fn run(artifacts: &Path, name: &str) -> PathBuf {
        let folder = artifacts.join(name);
        fs::create_dir(&folder).unwrap();
        let journal = Journal::create(folder.join("history.jsonl"), &Header::new(name), Source::hub());
        let step = Step { cell: None, mesh: None, title: "begin".into(), detail: None };
        journal.unwrap().append(Event::Step(step)).unwrap();
        let verdict = Verdict::new(name, vec![], vec![], vec![]);
        fs::write(folder.join("verdict.json"), serde_json::to_string(&verdict).unwrap()).unwrap();
        folder
    }

    #[test]
    fn a_run_is_found_by_its_name_its_folder_and_its_history() {
        let artifacts = tempfile::tempdir().unwrap();
        let folder = run(artifacts.path(), "r1");
        for named in [Path::new("r1"), &folder, &folder.join("history.jsonl")] {
            let found = Recording::open(named, artifacts.path()).unwrap();
            assert_eq!(found.verdict.unwrap().run, "r1", "{}", named.display());
            assert!(found.history.is_ok());
        }
    }

    #[test]
    fn a_verdict_of_another_run_is_not_taken_for_the_historys() {
        let artifacts = tempfile::tempdir().unwrap();
        let (one, two) = (run(artifacts.path(), "r1"), run(artifacts.path(), "r2"));
        fs::copy(one.join("verdict.json"), two.join("verdict.json")).unwrap();
        assert_eq!(Recording::open(&two.join("history.jsonl"), artifacts.path()).unwrap().verdict, None);
    }

    #[test]
    fn a_torn_history_leaves_the_verdict_open_and_a_missing_one_is_wrong_usage() {
        let artifacts = tempfile::tempdir().unwrap();
        let folder = run(artifacts.path(), "r1");
        let history = folder.join("history.jsonl");
        fs::write(&history, fs::read_to_string(&history).unwrap().trim_end()).unwrap();
        let exit =
            |folder: &Path| Recording::open(folder, artifacts.path()).unwrap().history.unwrap_err().exit();
        assert_eq!(exit(&folder), Exit::Unknown);
        fs::remove_file(&history).unwrap();
        assert_eq!(exit(&folder), Exit::Usage);
    }

    #[test]
    fn what_is_not_there_is_named_with_where_it_was_looked_for() {
        let artifacts = tempfile::tempdir().unwrap();
        let error = Recording::open(Path::new("r9"), artifacts.path()).unwrap_err().to_string();
        assert!(error.contains("r9") && error.contains(&artifacts.path().display().to_string()), "{error}");
        let error = Recording::open(artifacts.path(), artifacts.path()).unwrap_err().to_string();
        assert!(error.contains("neither verdict.json nor history.jsonl"), "{error}");
    }
}
