//! Every test that the list of rules names exists.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).chain(below).collect()
}

#[test]
fn every_rule_names_tests_or_sessions_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src", "tests"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| sources(folder));
    let code: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    let rules = fs::read_to_string(root.join("tests/rules.md")).unwrap();
    let rows: Vec<_> = rules.lines().filter_map(|line| line.strip_prefix("| ")?.rsplit_once(" | ")).collect();
    let rows: Vec<_> = rows.into_iter().filter(|(rule, _)| *rule != "rule").collect();
    assert!(rows.len() > 50, "the list is not read");
    for (rule, held_by) in rows {
        let names: Vec<_> = held_by.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "nothing holds the rule: {rule}");
        for name in names {
            let exists = if name.contains('/') {
                root.join(name).exists()
            } else {
                code.contains(&format!("fn {name}("))
            };
            assert!(exists, "`{name}`, which should hold `{rule}`, does not exist");
        }
    }
}
