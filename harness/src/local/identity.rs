//! Who a client of an API server is.

use std::fmt;

/// A client of an API server. Each has a certificate and a kubeconfig of its own, so that the audit log tells them
/// apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// The harness and people: may do everything.
    Admin,
    /// The controllers.
    Controllers,
    /// The pod agent.
    Agent,
    /// The operator under test, as its ServiceAccount.
    Operator,
}

/// A ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccountName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What a client certificate says: the common name is the user, organizations are its groups (Kubernetes
/// documentation, "X509 client certificates").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The user.
    pub user: String,
    /// Its groups, two at most.
    pub groups: Vec<String>,
}

/// The user that the pod agent is.
pub const AGENT_USER: &str = "onewriter:agent";

/// A common name may be no longer than this (RFC 5280, `ub-common-name`).
pub(super) const LONGEST_USER: usize = 64;

impl Identity {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Controllers, Self::Agent, Self::Operator];

    /// Its name in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Controllers => "controllers",
            Self::Agent => "agent",
            Self::Operator => "operator",
        }
    }

    /// What its certificate says, where the operator is `operator`.
    pub fn subject(self, operator: &ServiceAccountName) -> Subject {
        let (user, groups) = match self {
            Self::Admin => ("onewriter:admin".to_owned(), vec!["system:masters".to_owned()]),
            Self::Controllers => ("system:kube-controller-manager".to_owned(), Vec::new()),
            Self::Agent => (AGENT_USER.to_owned(), Vec::new()),
            Self::Operator => (operator.user(), operator.groups()),
        };
        Subject { user, groups }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl ServiceAccountName {
    /// The user that its tokens would authenticate as.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn groups(&self) -> Vec<String> {
        vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{}", self.namespace)]
    }
}
