//! The bundle: one archive with everything that a maintainer needs to see what went wrong, and to see it again.
//!
//! A gzipped tar archive with one folder named after the run. It holds what the run's folder holds, but only files of
//! known kinds, redacted, and a `repro.md` that says how to judge it and how to run it again.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::Verdict;
use super::again::{affected_cells, command};
use super::redaction::Redaction;
use super::summary::Summary;

/// Name of the bundle in the run's folder.
pub const NAME: &str = "bundle.tar.gz";

/// Endings of files that are bundled: texts that we wrote, or logs. Keys and kubeconfigs have others.
const ENDINGS: [&str; 8] = ["html", "json", "jsonl", "log", "md", "txt", "xml", "yaml"];
/// How deep a run's folder is.
const DEPTH: usize = 8;
/// The most that is read out of one file of a bundle: what comes from elsewhere must not exhaust the memory.
const LARGEST: u64 = 8 << 30;

/// A bundle could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It could not be written.
    #[error("cannot write the bundle {}", .path.display())]
    Write {
        /// The bundle.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It could not be read.
    #[error("cannot read the bundle {}", .path.display())]
    Read {
        /// The bundle.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is an archive, but not of a run.
    #[error("{} is no bundle of a run: it has neither verdict.json nor history.jsonl", .path.display())]
    NoRun {
        /// The archive.
        path: PathBuf,
    },
}

/// Writes the bundle of the run whose folder is `folder` beside its artifacts, whole or not at all.
pub fn write(folder: &Path, verdict: &Verdict) -> Result<PathBuf, BundleError> {
    let path = folder.join(NAME);
    let failed = |source| BundleError::Write { path: path.clone(), source };
    let file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    archive(folder, verdict, file.as_file()).map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(path)
}

fn archive(folder: &Path, verdict: &Verdict, to: &File) -> io::Result<()> {
    let gzip = GzEncoder::new(BufWriter::new(to), Compression::default());
    let mut archive = tar::Builder::new(gzip);
    let top = Path::new(if verdict.run.is_empty() { "run" } else { &verdict.run });
    let repro = repro(verdict);
    append(&mut archive, &top.join("repro.md"), repro.len() as u64, repro.as_bytes())?;
    for relative in files(folder, Path::new(""), DEPTH)? {
        let mut clean = redacted(&folder.join(&relative))?;
        let size = clean.metadata()?.len();
        clean.rewind()?;
        append(&mut archive, &top.join(&relative), size, clean)?;
    }
    archive.into_inner()?.finish()?.flush()
}

fn append(archive: &mut tar::Builder<impl Write>, path: &Path, size: u64, from: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append_data(&mut header, path, from)
}

/// The files that are bundled, in order. Links are not followed.
fn files(folder: &Path, below: &Path, depth: usize) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder.join(below))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries {
        let (kind, relative) = (entry.file_type()?, below.join(entry.file_name()));
        if kind.is_dir() && depth > 0 {
            found.extend(files(folder, &relative, depth - 1)?);
        } else if kind.is_file() && is_bundled(&relative) {
            found.push(relative);
        }
    }
    Ok(found)
}

fn is_bundled(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    // What the report shows is in the archive already, and its packed blocks could not be redacted.
    ENDINGS.contains(&ending) && file != Path::new("report.html")
}

/// A copy of a file without its secrets, in a file that has no name.
fn redacted(path: &Path) -> io::Result<File> {
    let mut from = BufReader::new(File::open(path)?);
    let mut to = BufWriter::new(tempfile::tempfile()?);
    let (mut redaction, mut line) = (Redaction::default(), Vec::new());
    while from.read_until(b'\n', &mut line)? > 0 {
        let ended = line.last() == Some(&b'\n');
        let text = String::from_utf8_lossy(&line[..line.len() - usize::from(ended)]);
        to.write_all(redaction.line(&text).as_bytes())?;
        to.write_all(if ended { b"\n" } else { b"" })?;
        line.clear();
    }
    to.into_inner().map_err(io::IntoInnerError::into_error)
}

/// What to do with the bundle, for people.
fn repro(verdict: &Verdict) -> String {
    let mut text = format!("# Run {}\n\n```text\n{}```\n\n", verdict.run, Summary::of(verdict));
    text += "Judge the recorded history again; this needs no cluster:\n\n";
    text += &format!("```sh\nonewriter replay {NAME}\n```\n\n");
    let cells = affected_cells(verdict);
    if !cells.is_empty() {
        let again = command(&verdict.invocation.clone().unwrap_or_default().arguments_for(&cells));
        text += "Run the same cells again, once or to see how often it reproduces:\n\n";
        text += &format!("```sh\n{again}\nonewriter replay {NAME} --run --tries 5\n```\n\n");
    }
    text += "Look at it in a browser (writes bundle.html):\n\n";
    text += &format!("```sh\nonewriter report {NAME}\n```\n\n## Versions\n\n");
    text + &verdict.versions.iter().map(|(name, version)| format!("* {name} {version}\n")).collect::<String>()
}

/// Whether `path` is a bundle: whether it begins as gzip does.
pub fn is_bundle(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut magic)?;
    Ok(magic == [0x1f, 0x8b])
}

/// What a bundle holds for judging it again.
#[derive(Debug, Default)]
pub struct Contents {
    /// The text of `verdict.json`.
    pub verdict: Option<String>,
    /// The text of `history.jsonl`.
    pub history: Option<String>,
}

/// Reads a bundle. Nothing is unpacked to disk, whatever names its files have.
pub fn read(path: &Path) -> Result<Contents, BundleError> {
    let failed = |source| BundleError::Read { path: path.to_owned(), source };
    let contents = read_archive(File::open(path).map_err(failed)?).map_err(failed)?;
    if contents.verdict.is_none() && contents.history.is_none() {
        return Err(BundleError::NoRun { path: path.to_owned() });
    }
    Ok(contents)
}

fn read_archive(file: File) -> io::Result<Contents> {
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    let mut contents = Contents::default();
    for entry in archive.entries()? {
        let entry = entry?;
        let path = entry.path()?.into_owned();
        // Directly in the one folder of the archive: cells have verdicts of their own.
        let place = match (path.components().count(), path.file_name().and_then(|name| name.to_str())) {
            (2, Some("verdict.json")) => &mut contents.verdict,
            (2, Some("history.jsonl")) => &mut contents.history,
            _ => continue,
        };
        if entry.size() > LARGEST {
            let text = format!("{} in it has {} bytes, {LARGEST} are read", path.display(), entry.size());
            return Err(io::Error::other(text));
        }
        let mut text = String::new();
        entry.take(LARGEST).read_to_string(&mut text)?;
        *place = Some(text);
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn run_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("verdict.json", r#"{"run":"r1"}"#);
        write("history.jsonl", "{}\n{}\n");
        write("sites/east/logs/operator.log", &format!("admin_token={SECRET}\nend"));
        write("scenarios/a__b/verdict.json", "not this one");
        write("sites/east/admin.key", "secret");
        write("kubeconfig", "secret");
        std::os::unix::fs::symlink("sites/east/admin.key", folder.path().join("link.log")).unwrap();
        folder
    }

    fn names_and_texts(bundle: &Path) -> Vec<(String, String)> {
        let mut archive = tar::Archive::new(GzDecoder::new(File::open(bundle).unwrap()));
        let read = |entry: io::Result<tar::Entry<'_, _>>| {
            let mut entry: tar::Entry<'_, GzDecoder<File>> = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn a_bundle_holds_the_run_without_its_secrets() {
        let folder = run_folder();
        let bundle = write(folder.path(), &Verdict::new("r1", vec![], vec![], vec![])).unwrap();
        let files = names_and_texts(&bundle);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "r1/repro.md",
                "r1/history.jsonl",
                "r1/scenarios/a__b/verdict.json",
                "r1/sites/east/logs/operator.log",
                "r1/verdict.json"
            ]
        );
        assert_eq!(files[3].1, "admin_token=[redacted]\nend");
    }

    #[test]
    fn a_bundle_gives_back_what_judging_needs() {
        let folder = run_folder();
        let bundle = write(folder.path(), &Verdict::new("r1", vec![], vec![], vec![])).unwrap();
        assert!(is_bundle(&bundle).unwrap());
        let contents = read(&bundle).unwrap();
        assert_eq!(contents.verdict.as_deref(), Some(r#"{"run":"r1"}"#));
        assert_eq!(contents.history.as_deref(), Some("{}\n{}\n"));
    }

    #[test]
    fn a_second_bundle_does_not_hold_the_first() {
        let folder = run_folder();
        let verdict = Verdict::new("r1", vec![], vec![], vec![]);
        let first = names_and_texts(&write(folder.path(), &verdict).unwrap());
        assert_eq!(names_and_texts(&write(folder.path(), &verdict).unwrap()), first);
    }

    #[test]
    fn what_is_no_bundle_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (cut, foreign) = (folder.path().join("cut"), folder.path().join("foreign"));
        fs::write(&cut, [0x1f, 0x8b, 8]).unwrap();
        assert!(matches!(read(&cut), Err(BundleError::Read { .. })));
        let archive = tar::Builder::new(GzEncoder::new(File::create(&foreign).unwrap(), Compression::fast()));
        archive.into_inner().unwrap().finish().unwrap();
        assert!(matches!(read(&foreign), Err(BundleError::NoRun { .. })));
    }
}
