//! The flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Proves that only the layout writer writes.
///
/// onewriter starts two Kubernetes sites and a recording fake of the Garage admin API, runs the operator under test on
/// both, applies the scenario matrix, and judges the recorded history: a site that is not the writer never issues a
/// layout write.
#[derive(Debug, Parser)]
#[command(name = "onewriter", version, about, after_help = EXIT_CODES, propagate_version = false)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 pass · 1 internal error · 2 usage or unreadable input · 4 nothing selected · 96 set-up failed ·
97 history check violated · 98 unknown · 100 scenario failed · 130/143 interrupted, after clean-up";

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// How results are shown on stdout.
    #[arg(long, global = true, value_enum, default_value_t = Format::Human, env = "ONEWRITER_FORMAT")]
    pub format: Format,
    /// Say more (twice: everything); logs go to stderr.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say only what went wrong.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Human,
    /// One JSON document.
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a pair and keep it until `down`.
    Up(UpArgs),
    /// Start a pair, run scenarios, judge the history, and take everything down.
    Run(RunArgs),
    /// List the cells of the scenario matrix: rows, roles, claims, and the statements that those come from.
    List(SelectArgs),
    /// Judge a recorded history again, without any cluster.
    Check(CheckArgs),
    /// Prove that the matrix bites: run operators with deliberate defects, each of which somebody must notice.
    Teeth(TeethArgs),
    /// Judge what a run left behind again, and run its failed cells again with `--run`.
    Replay(ReplayArgs),
    /// Write a page about a run: verdict, matrix, failures, and a timeline of its whole history.
    Report(ReportArgs),
    /// Show the ends of the logs of running pairs.
    Logs(LogsArgs),
    /// Save what is to be seen of running pairs: objects, logs, journal; never secrets.
    Collect(CollectArgs),
    /// Show what runs.
    Status,
    /// Take down kept pairs, and clean up after killed runs.
    Down(DownArgs),
    /// Check what this machine has and lacks.
    Doctor,
    /// Build an image that is needed, from pinned sources and without an image registry.
    Image(ImageArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Print a page of the documentation that is generated from the matrix.
    #[command(hide = true)]
    Document(DocumentArgs),
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the versions of the program and of its formats.
    Version,
}

/// Which cells are taken.
#[derive(Debug, Clone, Default, Args)]
pub struct SelectArgs {
    /// Beginnings of cell paths, such as `bootstrap` or `scale_down/follower`; all cells without one.
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// Leave out the cells whose path begins so.
    #[arg(long, value_name = "FILTER")]
    pub skip: Vec<String>,
    /// A filter must be a whole cell path or scenario name.
    #[arg(long)]
    pub exact: bool,
    /// Of these rows of the matrix only, such as `7` or `1-10`.
    #[arg(long, value_name = "ROWS", value_parser = rows)]
    pub rows: Option<Rows>,
}

/// Rows of the matrix that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// The first one.
    pub first: u8,
    /// The last one.
    pub last: u8,
}

fn rows(text: &str) -> Result<Rows, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let row = |text: &str| text.trim().parse::<u8>().ok();
    match (row(first), row(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Rows { first, last }),
        _ => Err("rows are given as a number, or as the first and the last one: `7`, `1-10`".to_owned()),
    }
}

/// Where the sites come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Provider {
    /// Kind clusters where a Docker daemon with a node image answers, else local.
    Auto,
    /// Two kind clusters, in containers.
    Kind,
    /// Real control planes as local processes.
    Local,
}

/// How the sites and the operator on them are set up.
#[derive(Debug, Clone, Args)]
pub struct PairArgs {
    /// Where the sites come from.
    #[arg(long, value_enum, default_value_t = Provider::Auto, env = "ONEWRITER_PROVIDER")]
    pub provider: Provider,
    /// Image of the nodes of kind clusters [default: the one that is at hand, else it is built].
    #[arg(long, value_name = "IMAGE", env = "ONEWRITER_NODE_IMAGE")]
    pub node_image: Option<String>,
    /// Run this operator instead of the reference operator.
    #[arg(long, value_name = "PATH", env = "ONEWRITER_OPERATOR_BIN")]
    pub operator_bin: Option<PathBuf>,
    /// Run the operator of this image: the name of one that Docker has, or an archive. Only in clusters.
    #[arg(long, value_name = "REF|TAR", env = "ONEWRITER_OPERATOR_IMAGE", conflicts_with = "operator_bin")]
    pub operator_image: Option<String>,
    /// Run the operator by these manifests, built or plain, in place of the reference operator's. Only in clusters.
    #[arg(long, value_name = "DIR|FILE", env = "ONEWRITER_OPERATOR_MANIFESTS", requires = "operator_image")]
    pub operator_manifests: Option<PathBuf>,
    /// A further argument for the operator; may be given several times.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub operator_arg: Vec<String>,
    /// The operator serves no webhooks: install none, and leave out the cells that need them.
    #[arg(long, env = "ONEWRITER_NO_WEBHOOKS", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    pub no_webhooks: bool,
    /// Where the meshes' random choices come from [default: random; it is printed].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `up`.
#[derive(Debug, Clone, Args)]
pub struct UpArgs {
    /// How the pair is set up.
    #[command(flatten)]
    pub pair: PairArgs,
    /// Where the logs of a pair are left that did not start.
    #[command(flatten)]
    pub artifacts: ArtifactsArgs,
}

/// When a run's pair is kept for a person to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keep {
    /// Never.
    Never,
    /// When the run did not pass.
    Failed,
    /// Always.
    Always,
}

/// `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Which cells run.
    #[command(flatten)]
    pub select: SelectArgs,
    /// How the pair is set up.
    #[command(flatten)]
    pub pair: PairArgs,
    /// Keep the pair afterwards, with what failed cells made in it [default: failed on a terminal, else never].
    #[arg(long, value_enum, env = "ONEWRITER_KEEP")]
    pub keep: Option<Keep>,
    /// Folder below which each run makes a folder of its own.
    #[arg(long, value_name = "DIR", default_value = "artifacts", env = "ONEWRITER_ARTIFACTS_DIR")]
    pub artifacts_dir: PathBuf,
    /// Write the JUnit report here, too.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// How long all cells together may take, once the pair is ready, such as `90s` or `5m`.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "15m")]
    pub timeout: Duration,
    /// How long one cell may take.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "3m")]
    pub scenario_timeout: Duration,
    /// How long one wait of a cell may take.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "1m")]
    pub step_timeout: Duration,
    /// How many cells run at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: u16,
    /// Run everything this many times, each time on a fresh pair.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// End at the first of several runs that does not pass.
    #[arg(long)]
    pub fail_fast: bool,
    /// Run a cell that failed again, up to so many times. One that then passes is reported as flaky; a violated check is
    /// never run away from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retries: u32,
    /// Say what would run, and start nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// `teeth`.
#[derive(Debug, Clone, Args)]
pub struct TeethArgs {
    /// Beginnings of names of defects; all of them without one.
    #[arg(value_name = "MUTANT")]
    pub filters: Vec<String>,
    /// How the pairs are set up. An operator that is named takes `--mutant NAME`.
    #[command(flatten)]
    pub pair: PairArgs,
    /// Folder below which the runs make `teeth` and in it a folder each.
    #[arg(long, value_name = "DIR", default_value = "artifacts", env = "ONEWRITER_ARTIFACTS_DIR")]
    pub artifacts_dir: PathBuf,
    /// How many runs at once, each on a pair of its own [default: one for each core, at most 4].
    #[arg(long, value_name = "N", default_value_t = runs_at_once(), hide_default_value = true,
        value_parser = clap::value_parser!(u16).range(1..=16))]
    pub parallel: u16,
    /// How long one wait of a cell may take: a defect may well be that what is awaited never comes.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "20s")]
    pub step_timeout: Duration,
    /// Say what would run, and start nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// A pair keeps a core busy while it starts.
fn runs_at_once() -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(cores.min(4)).unwrap_or(1)
}

/// `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// The histories, such as `artifacts/latest/history.jsonl`. Each is judged by itself, whatever its size.
    #[arg(value_name = "HISTORY", required = true)]
    pub histories: Vec<PathBuf>,
}

/// Where runs leave their folders.
#[derive(Debug, Clone, Args)]
pub struct ArtifactsArgs {
    /// Folder in which runs, and `latest`, are looked for and left.
    #[arg(long, value_name = "DIR", default_value = "artifacts", env = "ONEWRITER_ARTIFACTS_DIR")]
    pub artifacts_dir: PathBuf,
}

/// `replay`.
#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// A bundle, a run's folder or its name, a history, or `latest`.
    #[arg(value_name = "BUNDLE|RUN")]
    pub recording: PathBuf,
    /// Run the same cells again, too: those that did not come out well, or all of a run that did.
    #[arg(long)]
    pub run: bool,
    /// How often they are run, each time on a fresh pair.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "run", value_parser = clap::value_parser!(u32).range(1..))]
    pub tries: u32,
    /// Run them with this operator instead of the one that was used.
    #[arg(long, value_name = "PATH", requires = "run", env = "ONEWRITER_OPERATOR_BIN")]
    pub operator_bin: Option<PathBuf>,
    /// Where runs are.
    #[command(flatten)]
    pub artifacts: ArtifactsArgs,
}

/// `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// A run's folder or its name, a history, a bundle, or `latest`.
    #[arg(value_name = "RUN", default_value = "latest")]
    pub run: PathBuf,
    /// Where the page goes [default: report.html in the run's folder, else beside the file].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where runs are.
    #[command(flatten)]
    pub artifacts: ArtifactsArgs,
}

/// `logs`.
#[derive(Debug, Clone, Args)]
pub struct LogsArgs {
    /// A part, such as `east/operator` or `hub`; every part whose name has this in it. All parts are listed without.
    #[arg(value_name = "PART")]
    pub part: Option<String>,
    /// Only of this pair, such as `pair-16`.
    #[arg(long, value_name = "PAIR")]
    pub pair: Option<String>,
    /// How many lines of each log, at most 64 KiB.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub lines: usize,
}

/// `collect`.
#[derive(Debug, Clone, Args)]
pub struct CollectArgs {
    /// Folder that is made and filled [default: collected-TIME].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only of this pair, such as `pair-16`.
    #[arg(long, value_name = "PAIR")]
    pub pair: Option<String>,
}

/// `down`.
#[derive(Debug, Clone, Args)]
pub struct DownArgs {
    /// Take down pairs that somebody is using, too.
    #[arg(long)]
    pub force: bool,
}

/// `image`.
#[derive(Debug, Clone, Args)]
pub struct ImageArgs {
    /// Which one.
    #[arg(value_enum)]
    pub name: ImageName,
    /// Build it even if the Docker daemon has it.
    #[arg(long)]
    pub force: bool,
}

/// The images that can be built by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImageName {
    /// The nodes of kind clusters.
    Node,
}

/// `schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    /// Which one.
    #[arg(value_enum, default_value_t = SchemaName::History)]
    pub name: SchemaName,
}

/// The published schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// A line of `history.jsonl`.
    History,
}

/// `document`.
#[derive(Debug, Clone, Args)]
pub struct DocumentArgs {
    /// Which page.
    #[arg(value_enum)]
    pub page: PageName,
}

/// The generated pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PageName {
    /// `docs/scenarios.md`.
    Scenarios,
    /// `docs/record.md`.
    Record,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("7", Some((7, 7)))]
    #[case("1-10", Some((1, 10)))]
    #[case(" 1 - 10 ", Some((1, 10)))]
    #[case("10-1", None)]
    #[case("1-", None)]
    #[case("one", None)]
    #[case("1-300", None)]
    fn rows_are_one_row_or_from_the_first_to_the_last(#[case] text: &str, #[case] taken: Option<(u8, u8)>) {
        let parsed = rows(text).ok();
        assert_eq!(parsed, taken.map(|(first, last)| Rows { first, last }), "{text}");
    }
}
