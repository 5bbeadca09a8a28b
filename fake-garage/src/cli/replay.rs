//! `fake-garage replay`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use clap::{Args, ValueEnum};
use fake_garage::replay::{FileReport, Script, Totals, rename_nodes, run};

use super::CliError;

/// Play recorded sessions with real Garage to the fake, and compare every answer.
///
/// All files run in parallel, under virtual time. Each difference is shown with file, step and request; the last line
/// has the sums.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Replay {
    /// Recorded sessions, format garage-conformance/1.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Replay under other node identities, drawn from this seed; their order stays.
    #[arg(long, value_name = "SEED")]
    rename_nodes: Option<u64>,
    /// Seed of everything that is left to chance.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people.
    Human,
    /// One JSON object per file, and a last one with the sums.
    Json,
}

const EXIT_CODES: &str = "Exit codes: 0 everything is as recorded · 2 a file is no session, or the command line has a \
                          mistake · 3 something is not as recorded";

/// Exit code for sessions that are not as recorded.
const MISMATCHED: u8 = 3;

impl Replay {
    /// Replays all files, in parallel.
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let scripts = self.files.iter().map(|path| self.read(path)).collect::<Result<Vec<_>, _>>()?;
        let reports: Vec<FileReport> = thread::scope(|scope| {
            let replays: Vec<_> =
                scripts.iter().map(|script| scope.spawn(|| run(script, self.seed))).collect();
            replays.into_iter().filter_map(|replay| replay.join().ok()).collect()
        });
        let totals: Totals = reports.iter().map(FileReport::totals).sum();
        if self.print(&reports, &totals).is_err() {
            // Whoever read the report has seen enough, or its place is full: there is nobody to tell.
            return Ok(ExitCode::FAILURE);
        }
        if reports.len() < scripts.len() {
            return Ok(ExitCode::FAILURE);
        }
        Ok(if totals.mismatched == 0 { ExitCode::SUCCESS } else { ExitCode::from(MISMATCHED) })
    }

    fn print(&self, reports: &[FileReport], totals: &Totals) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for report in reports {
            match self.format {
                Format::Human => writeln!(out, "{report}")?,
                Format::Json => writeln!(out, "{}", serde_json::to_string(report)?)?,
            }
        }
        match self.format {
            Format::Human => writeln!(out, "{totals}")?,
            Format::Json => writeln!(out, "{}", serde_json::to_string(totals)?)?,
        }
        out.flush()
    }

    fn read(&self, path: &Path) -> Result<Script, CliError> {
        let mut text =
            fs::read_to_string(path).map_err(|source| CliError::Read { path: path.to_owned(), source })?;
        if let Some(seed) = self.rename_nodes {
            text = rename_nodes(&text, seed);
        }
        Script::parse(&text).map_err(|source| CliError::Script { path: path.to_owned(), source })
    }
}
