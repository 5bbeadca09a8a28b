//! The logs of the pair's programs.

use std::fs;
use std::path::Path;

use super::RunDirectory;
use super::directory::ArtifactError;
use crate::pair::PairDescription;

/// Copies logs of `pair` below the run's folder: of a run that passed the operators' and the hub's, else all of them
/// and the audit logs. They hold no secrets: no program of ours logs any, and the audit policy keeps Secrets out.
pub fn save(pair: &PairDescription, directory: &RunDirectory, passed: bool) -> Result<(), ArtifactError> {
    copy(&pair.hub.log, directory, "hub.log")?;
    for (site, description) in pair.sites.iter() {
        let folder = format!("sites/{site}/logs");
        copy(&description.operator.log, directory, &format!("{folder}/operator.log"))?;
        if passed {
            continue;
        }
        copy(&description.audit_log, directory, &format!("{folder}/audit.log"))?;
        for (program, path) in &description.logs {
            copy(path, directory, &format!("{folder}/{program}.log"))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, directory: &RunDirectory, relative: &str) -> Result<(), ArtifactError> {
    match fs::read(from) {
        Ok(contents) => directory.write(relative, &contents),
        Err(source) => Err(ArtifactError { path: from.to_owned(), source }),
    }
}
