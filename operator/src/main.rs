//! The `garage-operator` program. Exit codes: 0 after a graceful stop, 1 for a failure, 2 for wrong usage.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use garage_operator::api::crd::{self, Conversion};
use garage_operator::program::options::{Command, Options};
use garage_operator::program::{logs, purge, start};

fn main() -> ExitCode {
    let options = Options::parse();
    match options.command {
        Some(Command::Crds { webhooks, output_dir }) => {
            let conversion = if webhooks { Conversion::Webhook } else { Conversion::Off };
            print_definitions(conversion, output_dir.as_deref())
        }
        Some(Command::PurgeLayout { metadata_dir, once }) => {
            match purge::purge_layout(&metadata_dir, &once) {
                Ok(what) => {
                    println!("{what}");
                    ExitCode::SUCCESS
                }
                Err(error) => failed(&format!("{}: {error}", metadata_dir.display())),
            }
        }
        None => match options.run.objection() {
            Some(objection) => {
                eprintln!("garage-operator: {objection}");
                ExitCode::from(2)
            }
            None => operate(options.run),
        },
    }
}

fn operate(options: garage_operator::program::options::RunOptions) -> ExitCode {
    #[cfg(feature = "crash-after-write")]
    if let Some(last) = options.crash_after_write {
        garage_operator::crash::arm(last);
    }
    #[cfg(feature = "mutants")]
    if let Some(mutant) = options.mutant {
        garage_operator::mutant::choose(mutant);
    }
    logs::start(options.log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime could not be started: {error}")),
    };
    match runtime.block_on(start::run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&start::explain(&failure)),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("garage-operator: {why}");
    ExitCode::FAILURE
}

fn print_definitions(conversion: Conversion, folder: Option<&Path>) -> ExitCode {
    let files = match crd::files(conversion) {
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
