//! Keeping the logs of a pair whose folder is about to be removed.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

/// A pair's folders do not nest deeper than this; neither does what is kept of them.
const DEPTH: usize = 4;

/// Copies every `*.log` below `folder` to the same place below `target`. Links are not followed, and nothing but
/// logs is copied: keys and tokens lie in the same folders.
pub(super) fn copy_logs(folder: &Path, target: &Path) -> io::Result<()> {
    copy_below(folder, target, DEPTH)
}

fn copy_below(folder: &Path, target: &Path, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        let copy = target.join(entry.file_name());
        if kind.is_dir() && depth > 0 {
            copy_below(&path, &copy, depth - 1)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "log") {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(target)?;
            copy_file(&path, &copy)?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = fs::File::open(from)?;
    let mut to = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_kept_and_secrets_are_not() {
        let (pair, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(pair.path().join("east")).unwrap();
        fs::write(pair.path().join("east/etcd.log"), "log").unwrap();
        fs::write(pair.path().join("east/admin.key"), "secret").unwrap();
        std::os::unix::fs::symlink("admin.key", pair.path().join("east/linked.log")).unwrap();
        let target = kept.path().join("logs");
        copy_logs(pair.path(), &target).unwrap();
        assert_eq!(fs::read_to_string(target.join("east/etcd.log")).unwrap(), "log");
        assert_eq!(fs::read_dir(target.join("east")).unwrap().count(), 1);
    }
}
