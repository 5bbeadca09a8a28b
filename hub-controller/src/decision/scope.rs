//! Which objects are mirrored (design record, decision 6).
//!
//! Project namespaces by their label; inside them the nine kinds, Secrets, ServiceAccounts, Roles and RoleBindings;
//! Projects, which are in the hub's own namespace.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;

use crate::api::kind::{HubKind, MirroredKind};
use crate::api::naming::is_project_namespace;

/// Types of Secrets that belong to the cluster they are in.
const LOCAL_SECRETS: [&str; 2] = ["bootstrap.kubernetes.io/token", "helm.sh/release.v1"];

/// What is known about the namespaces of the Active.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    hub_namespace: String,
    namespaces: BTreeMap<String, bool>,
}

/// Whether an object is mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It is.
    Inside,
    /// It is not.
    Outside,
    /// Its namespace has not been seen yet.
    Unknown,
}

/// What the sight of a namespace tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing new.
    Nothing,
    /// It is a project's, and was not known.
    Discovered,
    /// It is no project's, and was not known.
    Foreign,
    /// It has become a project's: what is in it was passed over so far.
    Converted,
}

impl Scope {
    /// Nothing is known yet.
    pub fn new(hub_namespace: &str) -> Self {
        Self { hub_namespace: hub_namespace.to_owned(), namespaces: BTreeMap::new() }
    }

    /// A namespace was seen.
    pub fn saw(&mut self, namespace: &DynamicObject) -> News {
        let name = namespace.name_any();
        let inside = is_project_namespace(&name, namespace.labels());
        match (self.namespaces.insert(name, inside), inside) {
            (None, true) => News::Discovered,
            (None, false) => News::Foreign,
            (Some(false), true) => News::Converted,
            _ => News::Nothing,
        }
    }

    /// A namespace is gone.
    pub fn lost(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// Whether this object is mirrored.
    pub fn membership(&self, kind: MirroredKind, object: &DynamicObject) -> Membership {
        let namespace = object.namespace().unwrap_or_default();
        match kind {
            MirroredKind::Namespace => inside(is_project_namespace(&object.name_any(), object.labels())),
            MirroredKind::Hub(HubKind::Project) => inside(namespace == self.hub_namespace),
            _ => match self.namespaces.get(&namespace) {
                None => Membership::Unknown,
                Some(project) => inside(*project && !belongs_to_its_cluster(kind, object)),
            },
        }
    }
}

fn inside(it_is: bool) -> Membership {
    if it_is { Membership::Inside } else { Membership::Outside }
}

/// What every cluster has by itself, in every namespace.
fn belongs_to_its_cluster(kind: MirroredKind, object: &DynamicObject) -> bool {
    match kind {
        MirroredKind::ServiceAccount => object.name_any() == "default",
        MirroredKind::Secret => object.data["type"].as_str().is_some_and(|it| LOCAL_SECRETS.contains(&it)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{Membership, News, Scope};
    use crate::api::kind::{HubKind, MirroredKind};
    use crate::api::naming::owned_by;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn scope() -> Scope {
        let mut scope = Scope::new("kubeslice-controller");
        let project =
            json!({"metadata": {"name": "kubeslice-a", "labels": owned_by("Project", "kubeslice-a")}});
        assert_eq!(scope.saw(&object(project.clone())), News::Discovered);
        assert_eq!(scope.saw(&object(project)), News::Nothing);
        assert_eq!(scope.saw(&object(json!({"metadata": {"name": "kube-system"}}))), News::Foreign);
        scope
    }

    #[rstest]
    #[case(MirroredKind::Hub(HubKind::Cluster), json!({"metadata": {"name": "c", "namespace": "kubeslice-a"}}), Membership::Inside)]
    #[case(MirroredKind::Hub(HubKind::Cluster), json!({"metadata": {"name": "c", "namespace": "kube-system"}}), Membership::Outside)]
    #[case(MirroredKind::Hub(HubKind::Cluster), json!({"metadata": {"name": "c", "namespace": "kubeslice-b"}}), Membership::Unknown)]
    #[case(MirroredKind::Hub(HubKind::Project), json!({"metadata": {"name": "a", "namespace": "kubeslice-controller"}}), Membership::Inside)]
    #[case(MirroredKind::Hub(HubKind::Project), json!({"metadata": {"name": "a", "namespace": "kubeslice-a"}}), Membership::Outside)]
    #[case(MirroredKind::ServiceAccount, json!({"metadata": {"name": "default", "namespace": "kubeslice-a"}}), Membership::Outside)]
    #[case(MirroredKind::Secret, json!({"metadata": {"name": "s", "namespace": "kubeslice-a"}, "type": "Opaque"}), Membership::Inside)]
    #[case(MirroredKind::Secret, json!({"metadata": {"name": "s", "namespace": "kubeslice-a"}, "type": "helm.sh/release.v1"}), Membership::Outside)]
    #[case(MirroredKind::Secret, json!({"metadata": {"name": "active-hub-kubeconfig", "namespace": "kubeslice-controller"}}), Membership::Unknown)]
    fn project_namespaces_are_mirrored_and_what_is_in_them(
        #[case] kind: MirroredKind,
        #[case] value: Value,
        #[case] expected: Membership,
    ) {
        assert_eq!(scope().membership(kind, &object(value)), expected);
    }

    #[test]
    fn a_namespace_that_becomes_a_projects_is_told_apart_from_a_new_one() {
        let mut scope = Scope::new("kubeslice-controller");
        assert_eq!(scope.saw(&object(json!({"metadata": {"name": "kubeslice-a"}}))), News::Foreign);
        let project =
            json!({"metadata": {"name": "kubeslice-a", "labels": owned_by("Project", "kubeslice-a")}});
        assert_eq!(scope.saw(&object(project)), News::Converted);
    }
}
