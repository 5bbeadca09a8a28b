//! The `hub-controller` program. Exit codes: 0 after a graceful stop, 1 for a failure, 2 for wrong usage.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use hub_controller::api::crd;
use hub_controller::decision::processes::Table;
use hub_controller::error::chain;
use hub_controller::program::options::{Command, Options, RunOptions};
use hub_controller::program::{logs, start};

fn main() -> ExitCode {
    let options = Options::parse();
    match options.command {
        Some(Command::Crds { output_dir }) => print_definitions(output_dir.as_deref()),
        None if options.run.print_roles => {
            print!("{Table}");
            ExitCode::SUCCESS
        }
        None => match options.run.objection() {
            Some(objection) => {
                eprintln!("hub-controller: {objection}");
                ExitCode::from(2)
            }
            None => operate(options.run),
        },
    }
}

fn operate(options: RunOptions) -> ExitCode {
    #[cfg(feature = "crash-at-step")]
    if let Some(last) = options.crash_at_step {
        hub_controller::crash::arm(last);
    }
    #[cfg(feature = "mutants")]
    if let Some(mutant) = options.mutant {
        hub_controller::mutant::choose(mutant);
    }
    logs::start(options.log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime could not be started: {error}")),
    };
    match runtime.block_on(start::run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&chain(&failure)),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("hub-controller: {why}");
    ExitCode::FAILURE
}

fn print_definitions(folder: Option<&Path>) -> ExitCode {
    let files = match crd::files() {
        Ok(files) => files,
        Err(error) => return failed(&error.to_string()),
    };
    for file in files {
        let Some(folder) = folder else {
            println!("---\n{}", file.yaml.trim_end());
            continue;
        };
        let path = folder.join(&file.name);
        if let Err(error) = std::fs::write(&path, &file.yaml) {
            return failed(&format!("{} cannot be written: {error}", path.display()));
        }
    }
    ExitCode::SUCCESS
}
