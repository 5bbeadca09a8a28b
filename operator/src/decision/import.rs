//! Roles that another site gave its nodes and this site does not know yet (operator contract §5.3, steps 5 and 6).

use super::assignment::WantedRole;
use crate::garage::{ClusterLayout, ClusterStatus};

/// The roles to import from a site: of nodes that are up there, have a role there and none here, and are not
/// declared by this site. Capacity and tags are taken over as they are, the zone is the configured one.
pub fn imports(
    zone: &str,
    local: &ClusterLayout,
    remote: &ClusterLayout,
    remote_status: &ClusterStatus,
    is_declared: impl Fn(&str) -> bool,
) -> Vec<WantedRole> {
    remote
        .roles
        .iter()
        .map(|role| WantedRole {
            id: role.id.to_ascii_lowercase(),
            zone: zone.to_owned(),
            capacity: role.capacity,
            tags: role.tags.clone(),
        })
        .filter(|role| {
            local.role(&role.id).is_none() && remote_status.is_up(&role.id) && !is_declared(&role.id)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::imports;
    use crate::garage::{ClusterLayout, ClusterStatus, LayoutRole, StatusNode};
    use rstest::rstest;

    fn layout(ids: &[&str]) -> ClusterLayout {
        let role = |id: &&str| LayoutRole {
            id: (*id).into(),
            zone: "theirs".into(),
            tags: vec!["t".into()],
            capacity: Some(7),
        };
        ClusterLayout { version: 1, roles: ids.iter().map(role).collect(), ..ClusterLayout::default() }
    }

    fn up(ids: &[&str]) -> ClusterStatus {
        let node = |id: &&str| StatusNode { id: (*id).into(), is_up: true, ..StatusNode::default() };
        ClusterStatus { layout_version: 1, nodes: ids.iter().map(node).collect() }
    }

    #[rstest]
    #[case(&[], &["aa", "bb"], &["aa", "bb"], "", &["aa", "bb"])]
    #[case(&["aa"], &["aa", "bb"], &["aa", "bb"], "", &["bb"])]
    #[case(&[], &["aa", "bb"], &["bb"], "", &["bb"])]
    #[case(&[], &["aa", "bb"], &["aa", "bb"], "aa", &["bb"])]
    #[case(&["aa", "bb"], &["aa", "bb"], &["aa", "bb"], "", &[])]
    fn only_unknown_living_undeclared_nodes_are_imported(
        #[case] local: &[&str],
        #[case] remote: &[&str],
        #[case] living: &[&str],
        #[case] declared: &str,
        #[case] imported: &[&str],
    ) {
        let found = imports("west", &layout(local), &layout(remote), &up(living), |id| id == declared);
        assert_eq!(found.iter().map(|role| role.id.as_str()).collect::<Vec<_>>(), imported);
        assert!(
            found.iter().all(|role| role.zone == "west" && role.capacity == Some(7) && role.tags == ["t"])
        );
    }
}
