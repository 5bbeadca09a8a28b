//! Command-line options. Each has an environment variable.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::controller::context::Settings;
use crate::decision::cadence::Cadence;
use crate::decision::factor_migration::Patience;
use crate::garage::Deadlines;

/// Where a listener binds: an address, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// Listen here.
    At(SocketAddr),
    /// Do not listen.
    Off,
}

/// Reads `host:port`, `:port` (all interfaces) or `0` (off), as controller-runtime does.
fn bind(text: &str) -> Result<Bind, String> {
    if text == "0" || text.is_empty() {
        return Ok(Bind::Off);
    }
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    full.parse()
        .map(Bind::At)
        .map_err(|_| format!("{text:?} is not an address; write HOST:PORT, :PORT or 0 for off"))
}

fn duration(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}

/// Format of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The reference operator for Garage federations with one layout writer.
#[derive(Debug, Parser)]
#[command(name = "garage-operator", version, about)]
pub struct Options {
    /// What to do instead of running.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to run.
    #[command(flatten)]
    pub run: RunOptions,
}

/// What to do instead of running.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Remove the layout file of a Garage node that does not run: the init container of a factor migration.
    PurgeLayout {
        /// Folder of Garage's metadata.
        #[arg(long, value_name = "DIR")]
        metadata_dir: PathBuf,
        /// Name of the purge: one that was carried out is not carried out again.
        #[arg(long, value_name = "NAME")]
        once: String,
    },
    /// Print the CustomResourceDefinitions, or write them as files.
    Crds {
        /// Serve v1beta1, too, and convert it by the webhook.
        #[arg(long)]
        webhooks: bool,
        /// Write one file per definition into this folder.
        #[arg(long, value_name = "DIR")]
        output_dir: Option<PathBuf>,
    },
}

/// How to run.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct RunOptions {
    /// Kubeconfig; otherwise KUBECONFIG, the ServiceAccount of the pod, or the user's own.
    #[arg(long, env = "OPERATOR_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Only one of several replicas acts.
    #[arg(long, env = "LEADER_ELECT", default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,
    /// Namespace of the Lease; POD_NAMESPACE when absent.
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,
    /// How long a Lease that is not renewed keeps others out.
    #[arg(long, env = "LEADER_ELECT_LEASE_DURATION", default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    #[arg(long, env = "LEADER_ELECT_RENEW_DEADLINE", default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// How often the leader renews; candidates look twice as often.
    #[arg(long, env = "LEADER_ELECT_RETRY_PERIOD", default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,
    /// The namespace the operator runs in.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE", hide = true)]
    pub pod_namespace: Option<String>,
    /// Namespaces to watch, separated by commas; all when empty.
    #[arg(
        long,
        visible_alias = "namespace",
        env = "WATCH_NAMESPACE",
        value_delimiter = ',',
        value_name = "NAMESPACE,…"
    )]
    pub watch_namespaces: Vec<String>,
    /// DNS domain of Services.
    #[arg(long, env = "CLUSTER_DOMAIN", default_value = "cluster.local")]
    pub cluster_domain: String,
    /// Garage image where no spec names one.
    #[arg(long, env = "DEFAULT_GARAGE_IMAGE", default_value = "dxflrs/garage:v2.3.0", value_name = "IMAGE")]
    pub default_garage_image: String,
    /// Image of the init container that purges layout files in a factor migration, with an entry point that
    /// understands purge-layout, as that of this operator does; the node's own when empty.
    #[arg(long, env = "LAYOUT_PURGE_IMAGE", default_value = "", value_name = "IMAGE")]
    pub layout_purge_image: String,
    /// How long a factor migration waits for a healthy, settled cluster before it is given up.
    #[arg(long, env = "FACTOR_MIGRATION_GRACE", default_value = "2m", value_parser = duration)]
    pub factor_migration_grace: Duration,
    /// How long any later phase of a factor migration may take before it is given up.
    #[arg(long, env = "FACTOR_MIGRATION_TIMEOUT", default_value = "15m", value_parser = duration)]
    pub factor_migration_timeout: Duration,
    /// Die right after the answer to this write, counted from 1 (test builds only).
    #[cfg(feature = "crash-after-write")]
    #[arg(long, env = "CRASH_AFTER_WRITE", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub crash_after_write: Option<u64>,
    /// Have this defect (test builds only).
    #[cfg(feature = "mutants")]
    #[arg(long, env = "MUTANT", value_enum, value_name = "NAME")]
    pub mutant: Option<crate::mutant::Mutant>,
    /// Where /metrics listens; 0 turns it off.
    #[arg(long, visible_alias = "metrics-bind", env = "METRICS_BIND_ADDRESS", default_value = ":8080", value_parser = bind)]
    pub metrics_bind_address: Bind,
    /// Serve /metrics over HTTPS with token review. Not supported: the port belongs behind a NetworkPolicy.
    #[arg(long, env = "METRICS_SECURE", default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub metrics_secure: bool,
    /// Where /healthz and /readyz listen; 0 turns them off.
    #[arg(long, visible_alias = "health-probe-bind", env = "HEALTH_PROBE_BIND_ADDRESS", default_value = ":8081", value_parser = bind)]
    pub health_probe_bind_address: Bind,
    /// Where the admission and conversion webhooks listen; 0 turns them off.
    #[arg(long, visible_alias = "webhook-bind", env = "WEBHOOK_BIND_ADDRESS", default_value = "0", value_parser = bind)]
    pub webhook_bind_address: Bind,
    /// Base URL under which the API server reaches the webhooks; the Service garage-operator-webhook when absent.
    #[arg(long, env = "WEBHOOK_URL", value_name = "URL")]
    pub webhook_url: Option<String>,
    /// Folder with tls.crt and tls.key for the webhooks; empty: the operator makes, injects and renews its own.
    #[arg(long, env = "WEBHOOK_CERT_PATH", default_value = "", value_name = "DIR")]
    pub webhook_cert_path: String,
    /// Reconciles of one kind at the same time.
    #[arg(long, env = "MAX_CONCURRENT_RECONCILES", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_concurrent_reconciles: u16,
    /// How long reconciles under way may take to end after SIGTERM.
    #[arg(long, env = "GRACEFUL_SHUTDOWN_TIMEOUT", default_value = "2s", value_parser = duration)]
    pub graceful_shutdown_timeout: Duration,
    /// Format of the logs.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Deadline of a read of the admin API.
    #[arg(long, env = "ADMIN_READ_DEADLINE", default_value = "5s", value_parser = duration)]
    pub admin_read_deadline: Duration,
    /// Deadline of a read of another site's admin API.
    #[arg(long, env = "ADMIN_REMOTE_DEADLINE", default_value = "3s", value_parser = duration)]
    pub admin_remote_deadline: Duration,
    /// Deadline of a write to the admin API.
    #[arg(long, env = "ADMIN_WRITE_DEADLINE", default_value = "90s", value_parser = duration)]
    pub admin_write_deadline: Duration,
    /// Longest that one reconcile may take.
    #[arg(long, env = "RECONCILE_DEADLINE", default_value = "3m", value_parser = duration)]
    pub reconcile_deadline: Duration,
    /// Whether each cluster gets a dynamic admin token for the calls through its Service, once its nodes have their roles.
    #[arg(long, env = "OPERATOR_ADMIN_TOKEN", default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub operator_admin_token: bool,
    /// Whether the blocks of a drained storage node have to be proved elsewhere before it goes.
    #[arg(long, env = "DRAIN_BLOCK_PROOF", default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub drain_block_proof: bool,
    /// How long nothing may move before a drain is complete.
    #[arg(long, env = "DRAIN_QUIET_PERIOD", default_value = "670s", value_parser = duration)]
    pub drain_quiet_period: Duration,
    /// How long a gateway must be down for its role to be stale.
    #[arg(long, env = "TOMBSTONE_AGE", default_value = "10m", value_parser = duration)]
    pub tombstone_age: Duration,
    /// How long a node may be without a role before an event tells it.
    #[arg(long, env = "ROLELESS_WARNING", default_value = "10m", value_parser = duration)]
    pub roleless_warning: Duration,
    /// Requeue while something is pending that others finish in seconds.
    #[arg(long, env = "REQUEUE_PENDING", default_value = "1s", value_parser = duration)]
    pub requeue_pending: Duration,
    /// Longest requeue after errors in a row.
    #[arg(long, env = "REQUEUE_ERROR", default_value = "30s", value_parser = duration)]
    pub requeue_error: Duration,
    /// Requeue of what has been pending for minutes.
    #[arg(long, env = "REQUEUE_UNHEALTHY", default_value = "10s", value_parser = duration)]
    pub requeue_unhealthy: Duration,
    /// Requeue of what has been pending for long.
    #[arg(long, env = "REQUEUE_SHORT", default_value = "1m", value_parser = duration)]
    pub requeue_short: Duration,
    /// Requeue when everything is settled.
    #[arg(long, env = "REQUEUE_LONG", default_value = "5m", value_parser = duration)]
    pub requeue_long: Duration,
}

impl RunOptions {
    /// What speaks against running like this.
    pub fn objection(&self) -> Option<String> {
        if self.metrics_secure {
            let hint = "run with --metrics-secure=false and keep the port behind a NetworkPolicy";
            return Some(format!("--metrics-secure=true is not supported; {hint}"));
        }
        if self.leader_elect && self.lease_namespace().is_none() {
            let hint = "set POD_NAMESPACE or --leader-election-namespace, or run with --leader-elect=false";
            return Some(format!("leader election needs a namespace for its Lease: {hint}"));
        }
        if self.leader_elect_renew_deadline >= self.leader_elect_lease_duration {
            return Some("--leader-elect-renew-deadline must be shorter than the lease duration".to_owned());
        }
        if self.leader_elect_retry_period >= self.leader_elect_renew_deadline {
            return Some("--leader-elect-retry-period must be shorter than the renew deadline".to_owned());
        }
        None
    }

    /// Namespace of the Lease.
    pub fn lease_namespace(&self) -> Option<&str> {
        self.leader_election_namespace
            .as_deref()
            .or(self.pod_namespace.as_deref())
            .filter(|name| !name.is_empty())
    }

    /// One entry per watch: `None` watches all namespaces.
    pub fn scopes(&self) -> Vec<Option<String>> {
        let named: Vec<_> = self
            .watch_namespaces
            .iter()
            .map(|name| name.trim())
            .filter(|name| !name.is_empty())
            .map(|name| Some(name.to_owned()))
            .collect();
        if named.is_empty() { vec![None] } else { named }
    }

    /// Settings of the reconcilers.
    pub fn settings(&self) -> Settings {
        Settings {
            cluster_domain: self.cluster_domain.clone(),
            default_garage_image: self.default_garage_image.clone(),
            layout_purge_image: self.layout_purge_image.clone(),
            migration_patience: Patience {
                validating: self.factor_migration_grace,
                stuck: self.factor_migration_timeout,
            },
            cadence: Cadence {
                pending: self.requeue_pending,
                error: self.requeue_error,
                unhealthy: self.requeue_unhealthy,
                short: self.requeue_short,
                long: self.requeue_long,
            },
            deadlines: Deadlines {
                read: self.admin_read_deadline,
                remote: self.admin_remote_deadline,
                write: self.admin_write_deadline,
            },
            concurrency: self.max_concurrent_reconciles,
            reconcile_deadline: self.reconcile_deadline,
            operator_admin_token: self.operator_admin_token,
            drain_block_proof: self.drain_block_proof,
            drain_quiet_period: self.drain_quiet_period,
            tombstone_age: self.tombstone_age,
            roleless_warning: self.roleless_warning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bind, Options, bind};
    use clap::Parser;
    use rstest::rstest;

    fn parse(arguments: &[&str]) -> Options {
        let all = ["garage-operator", "--pod-namespace=ns"].iter().chain(arguments);
        Options::try_parse_from(all).unwrap()
    }

    #[test]
    fn the_command_line_of_the_harness_is_understood() {
        let options = parse(&[
            "--leader-elect=true",
            "--cluster-domain=cluster.local",
            "--metrics-bind-address=127.16.0.1:8080",
            "--metrics-secure=false",
            "--health-probe-bind-address=127.16.0.1:8081",
            "--webhook-cert-path=",
        ]);
        assert_eq!(options.run.objection(), None);
        assert!(options.run.leader_elect);
    }

    #[test]
    fn every_option_has_an_environment_variable() {
        use clap::CommandFactory;
        let command = Options::command();
        let bare: Vec<&str> = command
            .get_arguments()
            .filter(|argument| argument.get_env().is_none())
            .map(|argument| argument.get_id().as_str())
            .collect();
        assert_eq!(bare, [] as [&str; 0]);
    }

    #[test]
    fn the_short_names_of_options_are_understood() {
        let options = parse(&["--namespace=a", "--metrics-bind=0", "--webhook-bind=0"]);
        assert_eq!(options.run.scopes(), [Some("a".to_owned())]);
        assert_eq!(options.run.metrics_bind_address, Bind::Off);
    }

    #[rstest]
    #[case("0", Some(Bind::Off))]
    #[case("", Some(Bind::Off))]
    #[case(":8081", Some(Bind::At("[::]:8081".parse().unwrap())))]
    #[case("127.0.0.1:1", Some(Bind::At("127.0.0.1:1".parse().unwrap())))]
    #[case("localhost", None)]
    fn an_address_is_read_as_controller_runtime_does(#[case] text: &str, #[case] expected: Option<Bind>) {
        assert_eq!(bind(text).ok(), expected);
    }

    #[rstest]
    #[case(&["--metrics-secure"], "--metrics-secure")]
    #[case(&["--pod-namespace="], "namespace")]
    #[case(&["--leader-elect-renew-deadline=20s"], "renew-deadline")]
    #[case(&["--leader-elect-retry-period=12s"], "retry-period")]
    fn what_cannot_work_is_refused_at_start(#[case] arguments: &[&str], #[case] says: &str) {
        let mut all = vec!["garage-operator"];
        if !arguments[0].starts_with("--pod-namespace") {
            all.push("--pod-namespace=ns");
        }
        all.extend(arguments);
        let options = Options::try_parse_from(all).unwrap();
        assert!(options.run.objection().unwrap().contains(says));
    }

    #[cfg(not(any(feature = "crash-after-write", feature = "mutants")))]
    #[rstest]
    #[case("--crash-after-write=1")]
    #[case("--mutant=no-event")]
    fn a_shipped_build_neither_dies_on_demand_nor_has_defects(#[case] flag: &str) {
        let error = Options::try_parse_from(["garage-operator", flag]).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument);
    }

    #[rstest]
    #[case("", &[None])]
    #[case("a, b", &[Some("a"), Some("b")])]
    fn namespaces_are_a_list_or_everything(#[case] text: &str, #[case] scopes: &[Option<&str>]) {
        let options = parse(&[&format!("--watch-namespaces={text}")]);
        let found = options.run.scopes();
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), scopes);
    }
}
