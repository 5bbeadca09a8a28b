//! The init container of a factor migration: removes the layout file of a node that does not run.

use std::io::{self, ErrorKind};
use std::path::Path;

/// The file that holds the layout (Garage admin reference §10).
const LAYOUT: &str = "cluster_layout";
/// Names the last purge that was carried out.
const MARKER: &str = "cluster_layout.purged";

/// Removes the layout file in `folder`, unless the purge of this name was carried out there before. Answers what it did.
///
/// The marker is written after the removal: a crash in between removes a file that is gone already.
pub fn purge_layout(folder: &Path, once: &str) -> io::Result<&'static str> {
    let marker = folder.join(MARKER);
    if std::fs::read_to_string(&marker).is_ok_and(|name| name == once) {
        return Ok("the layout file was purged before");
    }
    let removed = match std::fs::remove_file(folder.join(LAYOUT)) {
        Ok(()) => "the layout file is purged",
        Err(error) if error.kind() == ErrorKind::NotFound => "there was no layout file",
        Err(error) => return Err(error),
    };
    std::fs::write(&marker, once)?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::purge_layout;

    #[test]
    fn a_layout_file_is_purged_once_for_each_name() {
        let folder = tempfile::tempdir().unwrap();
        let layout = folder.path().join("cluster_layout");
        for (name, purged) in [("one", true), ("one", false), ("two", true)] {
            std::fs::write(&layout, "x").unwrap();
            purge_layout(folder.path(), name).unwrap();
            assert_eq!(!layout.exists(), purged, "{name}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(purge_layout(std::path::Path::new("/nowhere/at/all"), "one").is_err());
    }
}
