//! The command line of `onewriter`.
//!
//! One file for each command; what they share is [`args`] (flags), `output` (how things are shown) and the pair
//! they work on.

pub mod args;
mod check;
mod collect;
mod doctor;
mod document;
mod down;
mod image;
mod interrupt;
mod list;
mod logs;
mod output;
mod progress;
mod provider;
mod repeat;
mod replay;
mod report;
mod run;
mod schema;
mod start;
mod status;
mod teeth;
mod up;

use clap::{CommandFactory as _, Parser as _};
use harness::report::Exit;

use args::{Cli, Command};

/// Parses the command line, runs the command, and says how the program ends.
#[must_use]
pub fn run() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    output::start_logging(&cli.global);
    match cli.command {
        Command::Up(args) => in_runtime(up::up(&cli.global, args)),
        Command::Run(args) => in_runtime(run::run(&cli.global, args)),
        Command::List(args) => list::list(&cli.global, &args),
        Command::Check(args) => check::check(&cli.global, &args),
        Command::Replay(args) => in_runtime(replay::replay(&cli.global, args)),
        Command::Report(args) => report::report(&cli.global, &args),
        Command::Logs(args) => in_runtime(logs::logs(&cli.global, args)),
        Command::Collect(args) => in_runtime(collect::collect(&cli.global, args)),
        Command::Teeth(args) => in_runtime(teeth::teeth(&cli.global, args)),
        Command::Status => in_runtime(status::status(&cli.global)),
        Command::Down(args) => in_runtime(down::down(&cli.global, args)),
        Command::Doctor => in_runtime(doctor::doctor(&cli.global)),
        Command::Image(args) => in_runtime(image::image(&args)),
        Command::Schema(args) => schema::schema(&args),
        Command::Document(args) => document::document(&args),
        Command::Completions { shell } => completions(shell),
        Command::Version => version(&cli.global),
    }
}

/// Help and version go to stdout with success, everything else to stderr as wrong usage.
fn usage(error: &clap::Error) -> Exit {
    let exit = if error.use_stderr() { Exit::Usage } else { Exit::Pass };
    match error.print() {
        Ok(()) => exit,
        Err(_) => Exit::Internal,
    }
}

fn in_runtime(command: impl Future<Output = Exit>) -> Exit {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => output::fail(Exit::Internal, &format!("the runtime cannot be started: {error}")),
    }
}

fn completions(shell: clap_complete::Shell) -> Exit {
    clap_complete::generate(shell, &mut Cli::command(), "onewriter", &mut std::io::stdout());
    Exit::Pass
}

fn version(global: &args::Global) -> Exit {
    let version = env!("CARGO_PKG_VERSION");
    output::show(
        global,
        &serde_json::json!({
            "version": version,
            "historySchema": onewriter_history::SCHEMA,
            "verdictSchema": harness::report::verdict::SCHEMA,
        }),
        || format!("onewriter {version}\n"),
    )
}
