//! The end of a log file.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

/// No tail is longer than this, however long its lines are.
const LIMIT: u64 = 64 * 1024;

/// The last `lines` lines of a log, at most 64 KiB; a log that cannot be read says so in its place.
pub fn log_tail(log: &Path, lines: usize) -> String {
    match last_bytes(log) {
        Ok(bytes) => last_lines(&String::from_utf8_lossy(&bytes), lines),
        Err(error) => format!("(cannot read {}: {error})", log.display()),
    }
}

fn last_bytes(log: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LIMIT)))?;
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_holds_the_last_lines_only() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a\n", 5), "a");
        assert_eq!(last_lines("", 5), "");
    }

    #[test]
    fn a_missing_log_says_so() {
        assert!(log_tail(Path::new("/nonexistent/log"), 5).contains("cannot read /nonexistent/log"));
    }
}
