//! Command-line options. Each has an environment variable.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::api::naming;

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

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|it| (0.0..=86_400.0).contains(it));
    number
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{text:?} is not a number of seconds from 0 to 86400"))
}

/// Format of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// What a hub starts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// It holds its own Lease and writes.
    Active,
    /// It mirrors the Active, watches its Lease, and takes over.
    Standby,
    /// There is one hub only, as before high availability.
    Standalone,
}

/// The reference hub: one Active writes, one Standby mirrors and takes over.
#[derive(Debug, Parser)]
#[command(name = "hub-controller", version, about)]
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
    /// Print the CustomResourceDefinitions, or write them as files.
    Crds {
        /// Write one file per definition into this folder.
        #[arg(long, value_name = "DIR")]
        output_dir: Option<PathBuf>,
    },
}

/// How to run.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct RunOptions {
    /// Print which process runs in which role, and end.
    #[arg(long, env = "PRINT_ROLES")]
    pub print_roles: bool,
    /// Kubeconfig of this hub's own cluster; otherwise KUBECONFIG, the ServiceAccount of the pod, or the user's own.
    #[arg(long, env = "HUB_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace that the hub is in, with its Projects.
    #[arg(long, env = "KUBESLICE_CONTROLLER_MANAGER_NAMESPACE", default_value = naming::DEFAULT_HUB_NAMESPACE, value_name = "NAMESPACE")]
    pub namespace: String,
    /// Act as a ServiceAccount of its own in each role (renewal, election, reconcile, mirror, publisher), by
    /// impersonation: each has only the rights of its role, and the audit log tells them apart.
    #[arg(long, env = "IMPERSONATE_ROLES", default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub impersonate_roles: bool,

    /// What the hub starts as.
    #[arg(long, env = "HA_MODE", value_enum, default_value_t = Mode::Standalone)]
    pub ha_mode: Mode,
    /// Name of this hub, the holder of its Lease: the same after a restart, and not that of the other hub.
    #[arg(long, env = "HA_IDENTITY", value_name = "NAME")]
    pub ha_identity: Option<String>,
    /// Namespace of the Lease on both hubs; that of the hub when absent.
    #[arg(long, env = "HA_LEASE_NAMESPACE", value_name = "NAMESPACE")]
    pub ha_lease_namespace: Option<String>,
    /// Name of the Lease on both hubs.
    #[arg(long, env = "HA_LEASE_NAME", default_value = naming::LEASE_NAME, value_name = "NAME")]
    pub ha_lease_name: String,
    /// How long the Active's Lease lasts without a renewal; whole seconds.
    #[arg(long, env = "HA_LEASE_DURATION", default_value = "15s", value_parser = duration)]
    pub ha_lease_duration: Duration,
    /// How long the Active tries to renew before it stops writing.
    #[arg(long, env = "HA_RENEW_DEADLINE", default_value = "10s", value_parser = duration)]
    pub ha_renew_deadline: Duration,
    /// How often the Active renews.
    #[arg(long, env = "HA_RETRY_PERIOD", default_value = "2s", value_parser = duration)]
    pub ha_retry_period: Duration,
    /// Seconds beyond the lease duration after which an Active that was not seen to renew counts as dead.
    #[arg(long, env = "HA_PADDING_SECONDS", default_value = "10", value_parser = seconds)]
    pub ha_padding_seconds: Duration,
    /// How often the Standby reads the Active's Lease.
    #[arg(long, env = "HA_POLL_INTERVAL", default_value = "2s", value_parser = duration)]
    pub ha_poll_interval: Duration,
    /// Longest that any read of the Active's Lease may take, and the check of the own API server before a promotion.
    #[arg(long, env = "HA_DIAL_TIMEOUT", default_value = "5s", value_parser = duration)]
    pub ha_dial_timeout: Duration,
    /// Longest that each waiting step of a promotion may take: the stop of the mirror, the own Lease, the reconcile of
    /// everything, the declaration, the Event.
    #[arg(long, env = "HA_GRACE_PERIOD", default_value = "10s", value_parser = duration)]
    pub ha_grace_period: Duration,
    /// Kubeconfig of the Active; otherwise the Secret active-hub-kubeconfig in the hub's namespace.
    #[arg(long, env = "HA_ACTIVE_KUBECONFIG", value_name = "FILE")]
    pub ha_active_kubeconfig: Option<PathBuf>,
    /// How often the kubeconfig of the Active is looked at for a change.
    #[arg(long, env = "HA_CREDENTIAL_INTERVAL", default_value = "10s", value_parser = duration)]
    pub ha_credential_interval: Duration,
    /// PEM bundle that workers verify this hub's endpoint with; declared on every Cluster.
    #[arg(long, env = "HA_SELF_CA_BUNDLE_PATH", value_name = "FILE")]
    pub ha_self_ca_bundle_path: Option<PathBuf>,
    /// How often the leader looks whether every Cluster still declares it.
    #[arg(long, env = "HA_PUBLISH_INTERVAL", default_value = "10s", value_parser = duration)]
    pub ha_publish_interval: Duration,
    /// How often the mirror lists the Active's state anew, repairs copies and deletes those whose original is gone.
    #[arg(long, env = "HA_RESYNC_INTERVAL", default_value = "5m", value_parser = duration)]
    pub ha_resync_interval: Duration,
    /// Writes of the mirror at the same time.
    #[arg(long, env = "HA_MIRROR_WRITERS", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub ha_mirror_writers: u16,
    /// File to which every decision about leadership is appended, as JSON lines.
    #[arg(long, env = "DECISION_LOG", value_name = "FILE")]
    pub decision_log: Option<PathBuf>,

    /// URL under which workers reach this hub's API server.
    #[arg(long, env = "CONTROLLER_END_POINT", default_value = naming::PLACEHOLDER_ENDPOINT, value_name = "URL")]
    pub controller_end_point: String,
    /// A loopback address is an endpoint that workers reach (tests).
    #[arg(long, env = "ALLOW_LOOPBACK_ENDPOINT", default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub allow_loopback_endpoint: bool,
    /// Prefix of project namespaces.
    #[arg(long, env = "PROJECT_NAMESPACE_PREFIX", default_value = "kubeslice")]
    pub project_namespace_prefix: String,
    /// Prefix of accounts, RoleBindings and token Secrets.
    #[arg(long, env = "RBAC_RESOURCE_PREFIX", default_value = "kubeslice")]
    pub rbac_resource_prefix: String,
    /// How long a Cluster that is deleted waits for its worker to leave.
    #[arg(long, env = "DEREGISTER_TIMEOUT", default_value = "10m", value_parser = duration)]
    pub deregister_timeout: Duration,
    /// How long a worker object that is deleted waits for finalizers of others.
    #[arg(long, env = "WORKER_FINALIZER_TIMEOUT", default_value = "3m", value_parser = duration)]
    pub worker_finalizer_timeout: Duration,
    /// How long a day of a rotation interval lasts (tests shorten it).
    #[arg(long, env = "ROTATION_DAY", default_value = "24h", value_parser = duration)]
    pub rotation_day: Duration,

    /// Only one of several replicas of this hub acts. This is not the mechanism between hubs.
    #[arg(long, env = "LEADER_ELECT", default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,
    /// Reconciles of one kind at the same time.
    #[arg(long, env = "MAX_CONCURRENT_RECONCILES", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_concurrent_reconciles: u16,
    /// Longest that one reconcile may take.
    #[arg(long, env = "RECONCILE_DEADLINE", default_value = "1m", value_parser = duration)]
    pub reconcile_deadline: Duration,
    /// How long reconciles under way may take to end after SIGTERM.
    #[arg(long, env = "GRACEFUL_SHUTDOWN_TIMEOUT", default_value = "2s", value_parser = duration)]
    pub graceful_shutdown_timeout: Duration,
    /// Where /metrics listens; 0 turns it off.
    #[arg(long, env = "METRICS_BIND_ADDRESS", default_value = ":8080", value_parser = bind)]
    pub metrics_bind_address: Bind,
    /// Where /healthz and /readyz listen; 0 turns them off.
    #[arg(long, env = "HEALTH_PROBE_BIND_ADDRESS", default_value = ":8081", value_parser = bind)]
    pub health_probe_bind_address: Bind,
    /// Serve the validating webhook of SliceConfigs. Never on a Standby.
    #[arg(long, env = "ENABLE_WEBHOOKS", default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub enable_webhooks: bool,
    /// Where the webhook listens.
    #[arg(long, env = "WEBHOOK_BIND_ADDRESS", default_value = ":9443", value_parser = bind)]
    pub webhook_bind_address: Bind,
    /// Folder with tls.crt and tls.key of the webhook.
    #[arg(long, env = "WEBHOOK_CERT_PATH", value_name = "DIR")]
    pub webhook_cert_path: Option<PathBuf>,
    /// Format of the logs.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Die at this point of the promotion, counted from 1 (test builds only).
    #[cfg(feature = "crash-at-step")]
    #[arg(long, env = "CRASH_AT_STEP", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub crash_at_step: Option<u64>,
    /// Have this defect (test builds only).
    #[cfg(feature = "mutants")]
    #[arg(long, env = "MUTANT", value_enum, value_name = "NAME")]
    pub mutant: Option<crate::mutant::Mutant>,
}

impl RunOptions {
    /// What speaks against running like this.
    pub fn objection(&self) -> Option<String> {
        self.lease_objection().or_else(|| self.pace_objection()).or_else(|| self.webhook_objection())
    }

    fn lease_objection(&self) -> Option<String> {
        if self.ha_mode == Mode::Standalone {
            return None;
        }
        if self.ha_identity.as_deref().unwrap_or_default().is_empty() {
            let hint = "name this hub with --ha-identity: the same after every restart, another one than the other hub's";
            return Some(format!("--ha-mode={} needs an identity; {hint}", self.mode_name()));
        }
        if self.lease_namespace() == naming::WORKER_NAMESPACE {
            let hint =
                "that namespace is for workers; use the hub's own, as --ha-lease-namespace does by default";
            return Some(format!("the Lease cannot be in {}: {hint}", naming::WORKER_NAMESPACE));
        }
        let lease = self.ha_lease_duration;
        if lease.subsec_nanos() != 0 || lease.is_zero() {
            return Some(
                "--ha-lease-duration must be whole seconds, at least one: a Lease holds no others".to_owned(),
            );
        }
        None
    }

    fn pace_objection(&self) -> Option<String> {
        if self.ha_mode == Mode::Standalone {
            return None;
        }
        let too_long = [
            (self.ha_renew_deadline >= self.ha_lease_duration, "--ha-renew-deadline", "--ha-lease-duration"),
            (self.ha_retry_period >= self.ha_renew_deadline, "--ha-retry-period", "--ha-renew-deadline"),
        ];
        if let Some((_, longer, shorter)) = too_long.into_iter().find(|(wrong, ..)| *wrong) {
            return Some(format!("{longer} must be shorter than {shorter}"));
        }
        let zero = [
            (self.ha_poll_interval, "--ha-poll-interval"),
            (self.ha_dial_timeout, "--ha-dial-timeout"),
            (self.ha_grace_period, "--ha-grace-period"),
            (self.ha_retry_period, "--ha-retry-period"),
            (self.ha_publish_interval, "--ha-publish-interval"),
            (self.ha_resync_interval, "--ha-resync-interval"),
            (self.ha_credential_interval, "--ha-credential-interval"),
        ];
        let zero = zero.into_iter().find(|(value, _)| value.is_zero());
        zero.map(|(_, name)| format!("{name} must be longer than 0"))
    }

    fn webhook_objection(&self) -> Option<String> {
        if !self.enable_webhooks {
            return None;
        }
        if self.ha_mode == Mode::Standby {
            let why = "the mirror's copies must not be validated, and a Standby decides nothing";
            return Some(format!("ENABLE_WEBHOOKS=true is refused with --ha-mode=standby: {why}"));
        }
        let missing = self.webhook_cert_path.is_none();
        missing.then(|| {
            "ENABLE_WEBHOOKS=true needs --webhook-cert-path, a folder with tls.crt and tls.key".to_owned()
        })
    }

    fn mode_name(&self) -> &'static str {
        match self.ha_mode {
            Mode::Active => "active",
            Mode::Standby => "standby",
            Mode::Standalone => "standalone",
        }
    }

    /// Namespace of the Lease: the flag, else that of the hub.
    pub fn lease_namespace(&self) -> &str {
        self.ha_lease_namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.namespace)
    }

    /// Name of the hub; empty in standalone mode.
    pub fn identity(&self) -> &str {
        self.ha_identity.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use clap::error::ErrorKind;
    use rstest::rstest;

    use super::{Bind, Mode, Options, bind};

    fn parse(arguments: &[&str]) -> super::RunOptions {
        Options::try_parse_from(["hub-controller"].iter().chain(arguments)).unwrap().run
    }

    #[test]
    fn a_hub_is_standalone_unless_told_otherwise_and_knows_no_other_mode() {
        assert_eq!((parse(&[]).ha_mode, parse(&[]).objection()), (Mode::Standalone, None));
        let error = Options::try_parse_from(["hub-controller", "--ha-mode=passive"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidValue);
    }

    #[test]
    fn dead_threshold_and_grace_period_are_two_settings_and_the_third_name_does_not_exist() {
        let options = parse(&["--ha-padding-seconds=3", "--ha-grace-period=7s"]);
        assert_eq!(options.ha_padding_seconds, Duration::from_secs(3));
        assert_eq!(options.ha_grace_period, Duration::from_secs(7));
        for flag in ["--ha-promotion-grace=5s", "--ha-promotion-grace"] {
            let error = Options::try_parse_from(["hub-controller", flag]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownArgument);
        }
    }

    #[test]
    fn the_lease_is_in_the_hubs_own_namespace_unless_a_flag_says_otherwise() {
        assert_eq!(parse(&[]).lease_namespace(), "kubeslice-controller");
        assert_eq!(parse(&["--namespace=hub"]).lease_namespace(), "hub");
        assert_eq!(parse(&["--namespace=hub", "--ha-lease-namespace=ha"]).lease_namespace(), "ha");
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
        let namespace = command.get_arguments().find(|argument| argument.get_id() == "namespace").unwrap();
        assert_eq!(namespace.get_env().unwrap(), "KUBESLICE_CONTROLLER_MANAGER_NAMESPACE");
    }

    #[rstest]
    #[case(&["--ha-mode=active"], "--ha-identity")]
    #[case(&["--ha-mode=active", "--ha-identity=a", "--ha-lease-namespace=kubeslice-system"], "kubeslice-system")]
    #[case(&["--ha-mode=active", "--ha-identity=a", "--ha-lease-duration=1500ms"], "whole seconds")]
    #[case(&["--ha-mode=active", "--ha-identity=a", "--ha-renew-deadline=20s"], "--ha-renew-deadline")]
    #[case(&["--ha-mode=active", "--ha-identity=a", "--ha-retry-period=12s"], "--ha-retry-period")]
    #[case(&["--ha-mode=standby", "--ha-identity=a", "--ha-dial-timeout=0s"], "--ha-dial-timeout")]
    #[case(&["--ha-mode=standby", "--ha-identity=a", "--enable-webhooks", "--webhook-cert-path=/c"], "ENABLE_WEBHOOKS")]
    #[case(&["--enable-webhooks"], "--webhook-cert-path")]
    fn what_cannot_work_is_refused_at_start(#[case] arguments: &[&str], #[case] says: &str) {
        assert!(parse(arguments).objection().unwrap().contains(says));
    }

    #[rstest]
    #[case("--ha-padding-seconds=-1")]
    #[case("--ha-padding-seconds=10s")]
    #[case("--ha-lease-duration=soon")]
    #[case("--metrics-bind-address=localhost")]
    fn what_is_no_value_is_refused(#[case] argument: &str) {
        assert!(Options::try_parse_from(["hub-controller", argument]).is_err());
    }

    #[cfg(not(any(feature = "crash-at-step", feature = "mutants")))]
    #[rstest]
    #[case("--crash-at-step=1")]
    #[case("--mutant=no-fence")]
    fn a_shipped_build_neither_dies_on_demand_nor_has_defects(#[case] flag: &str) {
        let error = Options::try_parse_from(["hub-controller", flag]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownArgument);
    }

    #[rstest]
    #[case("0", Some(Bind::Off))]
    #[case(":8081", Some(Bind::At("[::]:8081".parse().unwrap())))]
    #[case("127.0.0.1:1", Some(Bind::At("127.0.0.1:1".parse().unwrap())))]
    #[case("localhost", None)]
    fn an_address_is_read_as_controller_runtime_does(#[case] text: &str, #[case] expected: Option<Bind>) {
        assert_eq!(bind(text).ok(), expected);
    }
}
