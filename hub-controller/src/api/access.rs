//! Accounts of a project: who gets one, and what it may do (hub contract, section 2, "Account helper").

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::naming::{CONTROLLER_GROUP, WORKER_GROUP};

/// A kind of account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The operator of a worker cluster.
    Worker,
    /// A user who reads.
    ReadOnly,
    /// A user who reads and writes.
    ReadWrite,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Worker, Self::ReadOnly, Self::ReadWrite];

    /// Value of the annotation that tells accounts apart.
    pub fn annotation(self) -> &'static str {
        match self {
            Self::Worker => "cluster-read-write",
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        }
    }

    /// Name of the Role in each project namespace.
    pub fn role(self) -> &'static str {
        match self {
            Self::Worker => "kubeslice-worker-cluster",
            Self::ReadOnly => "kubeslice-read-only",
            Self::ReadWrite => "kubeslice-read-write",
        }
    }

    /// Name of the account, its RoleBinding and its token Secret.
    pub fn account(self, prefix: &str, holder: &str) -> String {
        let middle = match self {
            Self::Worker => "worker",
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
        };
        format!("{prefix}-{middle}-{}", holder.to_lowercase())
    }

    /// Rules of the Role.
    pub fn rules(self) -> Vec<PolicyRule> {
        match self {
            Self::Worker => worker_rules(),
            Self::ReadOnly => vec![
                rule(CONTROLLER_GROUP, &CONTROLLER_PLURALS, &READ),
                rule(WORKER_GROUP, &WORKER_PLURALS, &READ),
            ],
            Self::ReadWrite => vec![
                rule(CONTROLLER_GROUP, &CONTROLLER_PLURALS, &ALL_VERBS),
                rule(WORKER_GROUP, &WORKER_PLURALS, &READ),
            ],
        }
    }
}

const READ: [&str; 3] = ["get", "list", "watch"];
const ALL_VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];
const CONTROLLER_PLURALS: [&str; 5] =
    ["clusters", "serviceexportconfigs", "sliceconfigs", "sliceqosconfigs", "vpnkeyrotations"];
const WORKER_PLURALS: [&str; 3] = ["workerserviceimports", "workersliceconfigs", "workerslicegateways"];

/// What the operator of a worker cluster does on the hub (hub contract, section 2, "Worker side").
fn worker_rules() -> Vec<PolicyRule> {
    let update = ["get", "list", "watch", "update", "patch"];
    vec![
        rule(CONTROLLER_GROUP, &["serviceexportconfigs"], &ALL_VERBS),
        rule(
            CONTROLLER_GROUP,
            &["clusters", "clusters/status", "vpnkeyrotations", "vpnkeyrotations/status"],
            &update,
        ),
        rule(
            WORKER_GROUP,
            &[
                "workerserviceimports",
                "workerserviceimports/status",
                "workersliceconfigs",
                "workersliceconfigs/status",
                "workerslicegateways",
                "workerslicegateways/status",
            ],
            &update,
        ),
        rule("", &["secrets"], &["get", "list", "watch", "create", "update", "patch"]),
        rule("", &["events"], &["create", "patch"]),
    ]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::Access;

    #[test]
    fn accounts_are_named_by_prefix_kind_and_holder_in_lower_case() {
        let names = Access::ALL.map(|access| access.account("kubeslice-rbac", "Anna"));
        assert_eq!(names, ["kubeslice-rbac-worker-anna", "kubeslice-rbac-ro-anna", "kubeslice-rbac-rw-anna"]);
    }
}
