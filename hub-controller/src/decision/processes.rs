//! Which process runs in which role: one table (design record, decision 4: every process that `main` starts is classed).

use std::fmt;

/// What a hub is at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It may write.
    Active,
    /// It mirrors, watches, and writes nothing else.
    Standby,
}

/// When a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// In both roles.
    Always,
    /// While the hub may write.
    ActiveOnly,
    /// Until the hub is promoted.
    StandbyOnly,
}

impl Runs {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::ActiveOnly => "active-only",
            Self::StandbyOnly => "standby-only",
        }
    }

    /// Whether a process of this class runs in this role.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Always => true,
            Self::ActiveOnly => role == Role::Active,
            Self::StandbyOnly => role == Role::Standby,
        }
    }
}

/// A process of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Process {
    /// `/metrics`.
    Metrics,
    /// `/healthz` and `/readyz`.
    Probes,
    /// Watches and caches of the nine kinds.
    Caches,
    /// The queues of the nine kinds; what they run is fenced.
    Controllers,
    /// The bodies of reconciles.
    Reconciles,
    /// The rotation of keys when they expire.
    RotationTimer,
    /// Renewing the own Lease.
    Renewal,
    /// Declaring the hub on every `Cluster`.
    Publisher,
    /// The validating webhook, where it is switched on.
    Webhook,
    /// One of several replicas of this hub acts, where it is switched on. Not the mechanism between hubs.
    InClusterElection,
    /// Reading the kubeconfig of the Active from its Secret.
    Credential,
    /// Reading the Active's Lease.
    LeaseWatcher,
    /// Copying the Active's state.
    Mirror,
}

impl Process {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Metrics,
        Self::Probes,
        Self::Caches,
        Self::Controllers,
        Self::InClusterElection,
        Self::Renewal,
        Self::Reconciles,
        Self::RotationTimer,
        Self::Publisher,
        Self::Webhook,
        Self::Credential,
        Self::LeaseWatcher,
        Self::Mirror,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics-server",
            Self::Probes => "probe-server",
            Self::Caches => "caches",
            Self::Controllers => "controllers",
            Self::Reconciles => "reconcile-bodies",
            Self::RotationTimer => "rotation-timer",
            Self::Renewal => "lease-renewal",
            Self::Publisher => "active-controller-publisher",
            Self::Webhook => "webhook-server",
            Self::InClusterElection => "in-cluster-election",
            Self::Credential => "active-hub-credential",
            Self::LeaseWatcher => "remote-lease-watcher",
            Self::Mirror => "state-mirror",
        }
    }

    /// When it runs.
    pub fn runs(self) -> Runs {
        match self {
            Self::Metrics | Self::Probes | Self::Caches | Self::Controllers | Self::InClusterElection => {
                Runs::Always
            }
            Self::Reconciles | Self::RotationTimer | Self::Renewal | Self::Publisher | Self::Webhook => {
                Runs::ActiveOnly
            }
            Self::Credential | Self::LeaseWatcher | Self::Mirror => Runs::StandbyOnly,
        }
    }

    /// What keeps it from running in the other role.
    pub fn kept_by(self) -> &'static str {
        match self.runs() {
            Runs::Always => "-",
            Runs::ActiveOnly if self == Self::Webhook => "ENABLE_WEBHOOKS, refused with --ha-mode=standby",
            Runs::ActiveOnly if self == Self::Renewal => "started by leadership",
            Runs::ActiveOnly => "write fence",
            Runs::StandbyOnly => "started by --ha-mode=standby, ended by promotion",
        }
    }
}

/// The table that `--print-roles` prints.
#[derive(Clone, Copy, Debug)]
pub struct Table;

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28} {:<13} KEPT BY", "PROCESS", "RUNS")?;
        for process in Process::ALL {
            writeln!(f, "{:<28} {:<13} {}", process.name(), process.runs().name(), process.kept_by())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Process, Role, Table};

    #[test]
    fn the_table_is_that_of_the_design_record() {
        insta::assert_snapshot!(Table.to_string());
    }

    #[test]
    fn nothing_that_writes_reconciled_state_runs_on_a_standby() {
        let on_standby: Vec<&str> = Process::ALL
            .into_iter()
            .filter(|process| process.runs().allows(Role::Standby))
            .map(Process::name)
            .collect();
        for writer in [Process::Reconciles, Process::RotationTimer, Process::Publisher, Process::Renewal] {
            assert!(!on_standby.contains(&writer.name()));
        }
        assert!(!Process::Mirror.runs().allows(Role::Active));
    }
}
