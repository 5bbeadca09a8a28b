//! Roles that another site gave its nodes and this site does not know yet (operator contract §5.3, steps 5 and 6).

use super::assignment::WantedRole;
use crate::garage::{ClusterLayout, ClusterStatus};

/// The roles to import from a site: of nodes that are up in its view and in this site's own, have a role there and none
/// here, and are not declared by this site. A site that cannot be connected to shares no layout, whatever its admin API
/// says. Capacity and tags are taken over as they are, the zone is the configured one.
pub fn imports(
    zone: &str,
    (local_status, local): (&ClusterStatus, &ClusterLayout),
    (remote_status, remote): (&ClusterStatus, &ClusterLayout),
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
            local.role(&role.id).is_none()
                && remote_status.is_up(&role.id)
                && local_status.is_up(&role.id)
                && !is_declared(&role.id)
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
    #[case::all(&[], &["aa", "bb"], &["aa", "bb"], &["aa", "bb"], "", &["aa", "bb"])]
    #[case::known(&["aa"], &["aa", "bb"], &["aa", "bb"], &["aa", "bb"], "", &["bb"])]
    #[case::down_there(&[], &["aa", "bb"], &["bb"], &["aa", "bb"], "", &["bb"])]
    #[case::not_seen_here(&[], &["aa", "bb"], &["aa", "bb"], &["aa"], "", &["aa"])]
    #[case::declared(&[], &["aa", "bb"], &["aa", "bb"], &["aa", "bb"], "aa", &["bb"])]
    #[case::all_known(&["aa", "bb"], &["aa", "bb"], &["aa", "bb"], &["aa", "bb"], "", &[])]
    fn only_unknown_living_connected_undeclared_nodes_are_imported(
        #[case] local: &[&str],
        #[case] remote: &[&str],
        #[case] living: &[&str],
        #[case] seen: &[&str],
        #[case] declared: &str,
        #[case] imported: &[&str],
    ) {
        let (here, there) = (layout(local), layout(remote));
        let found = imports("west", (&up(seen), &here), (&up(living), &there), |id| id == declared);
        assert_eq!(found.iter().map(|role| role.id.as_str()).collect::<Vec<_>>(), imported);
        assert!(
            found.iter().all(|role| role.zone == "west" && role.capacity == Some(7) && role.tags == ["t"])
        );
    }
}
