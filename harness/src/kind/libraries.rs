//! The shared objects that a program needs.

use std::path::{Path, PathBuf};

use crate::failure::BoxError;

/// The files that `program` needs beside itself to run, as the dynamic linker of this machine finds them; none for a
/// static program.
pub async fn of(program: &Path) -> Result<Vec<PathBuf>, BoxError> {
    let output = tokio::process::Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .kill_on_drop(true)
        .output()
        .await?;
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        // What `ldd` says of a static program.
        if format!("{said}{complaint}").contains("not a dynamic executable") {
            return Ok(Vec::new());
        }
        return Err(format!("ldd ended with {}: {}", output.status, complaint.trim()).into());
    }
    parse(&said)
}

/// Reads lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn parse(text: &str) -> Result<Vec<PathBuf>, BoxError> {
    let mut files = Vec::new();
    for line in text.lines().map(str::trim) {
        let found = line.split_once("=> ").map_or(line, |(_, found)| found);
        if found == "not found" {
            return Err(format!("a shared object is missing: {line}").into());
        }
        if found.starts_with('/') {
            files.push(PathBuf::from(found.split(" (").next().unwrap_or(found)));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_and_the_libraries_are_files_and_the_kernels_own_is_not() {
        let text = "\tlinux-vdso.so.1 (0x00007ffc)\n\
                    \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f2b)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f2c)\n";
        let expected =
            ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = parse("\tlibgone.so.1 => not found\n").unwrap_err().to_string();
        assert!(error.contains("libgone.so.1"), "{error}");
    }

    #[tokio::test]
    async fn this_test_needs_a_c_library() {
        let files = of(&std::env::current_exe().unwrap()).await.unwrap();
        assert!(files.iter().any(|file| file.to_string_lossy().contains("libc.so")), "{files:?}");
    }
}
