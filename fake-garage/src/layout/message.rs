//! The lines for people that Apply and Preview answer.

use super::Statistics;
use super::statistics::{NodeStatistics, ZoneStatistics};

/// The lines about a computed version; the last one is a table of several lines (Garage admin reference §6).
#[must_use]
pub fn lines(statistics: &Statistics) -> Vec<String> {
    let mut lines = vec![
        "==== COMPUTATION OF A NEW PARTITION ASSIGNATION ====".to_owned(),
        String::new(),
        format!(
            "Partitions are replicated {} times on at least {} distinct zones.",
            statistics.replication_factor, statistics.effective_zone_redundancy
        ),
        String::new(),
    ];
    lines.extend(sizes(statistics));
    lines.push(String::new());
    if let Some(moved) = statistics.total_moved_partitions {
        lines.push(format!("A total of {moved} new copies of partitions need to be transferred."));
        lines.push(String::new());
    }
    lines.push(table(statistics));
    lines
}

fn sizes(statistics: &Statistics) -> Vec<String> {
    let previous = statistics
        .previous_partition_size
        .map_or_else(String::new, |size| format!(" ({} in previous layout)", binary_size(size)));
    let mut lines = vec![format!(
        "Optimal partition size:                     {}{previous}",
        binary_size(statistics.partition_size)
    )];
    if statistics.low_partition_size {
        lines.push(
            "WARNING: The partition size is low (< 100), make sure the capacities of your nodes are correct and are \
             of at least a few MB"
                .to_owned(),
        );
    }
    lines.push(format!(
        "Usable capacity / total cluster capacity:   {} / {} ({:.1} %)",
        binary_size(statistics.usable_capacity),
        binary_size(statistics.total_capacity),
        percent(statistics.usable_capacity, statistics.total_capacity),
    ));
    lines.push(format!(
        "Effective capacity (replication factor {}):  {}",
        statistics.replication_factor,
        binary_size(statistics.effective_capacity)
    ));
    if statistics.low_usable_capacity {
        lines.push(String::new());
        lines.extend(LOW_USABLE_CAPACITY.map(str::to_owned));
    }
    lines
}

const LOW_USABLE_CAPACITY: [&str; 3] = [
    "If the percentage is too low, it might be that the cluster topology and redundancy constraints are forcing the \
     use of nodes/zones with small storage capacities.",
    "You might want to move storage capacity between zones or relax the redundancy constraint.",
    "See the detailed statistics below and look for saturated nodes/zones.",
];

fn table(statistics: &Statistics) -> String {
    let mut rows = Vec::new();
    for zone in &statistics.zones {
        rows.push(
            [zone.name.as_str(), "Tags", "Partitions", "Capacity", "Usable capacity"].map(str::to_owned),
        );
        rows.extend(zone.nodes.iter().map(node_row));
        rows.push(total_row(zone));
        rows.push([const { String::new() }; 5]);
    }
    aligned(&rows)
}

fn node_row(node: &NodeStatistics) -> [String; 5] {
    [
        format!("  {}", node.id.short()),
        format!("[{}]", node.tags.join(",")),
        format!("{} ({} new)", node.stored_partitions, node.new_partitions),
        binary_size(node.total_capacity),
        usable(node.usable_capacity, node.total_capacity),
    ]
}

fn total_row(zone: &ZoneStatistics) -> [String; 5] {
    [
        "  TOTAL".to_owned(),
        String::new(),
        format!("{} ({} unique)", zone.total_replicated_partitions, zone.unique_partitions),
        binary_size(zone.total_capacity),
        usable(zone.usable_capacity, zone.total_capacity),
    ]
}

fn usable(usable: u64, total: u64) -> String {
    format!("{} ({:.1}%)", binary_size(usable), percent(usable, total))
}

/// Columns of one width each, two spaces apart, no spaces at the end of a line.
fn aligned(rows: &[[String; 5]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..5).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  ", width = *width));
        let cells = cells.collect::<Vec<_>>().concat();
        text.push_str(cells.trim_end());
        text.push('\n');
    }
    text
}

/// Garage calculates this with single precision, which shows where the exact value lies between two (capture 06).
#[expect(clippy::cast_precision_loss, reason = "a percentage with one decimal")]
fn percent(part: u64, whole: u64) -> f32 {
    100.0 * part as f32 / whole as f32
}

/// A size in bytes as people read it: powers of 1024, one decimal.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "printed with one decimal")]
pub fn binary_size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(4, "4 B")]
    #[case(1024, "1.0 KiB")]
    #[case(781_250_000, "745.1 MiB")]
    #[case(100_000_000_000, "93.1 GiB")]
    fn sizes_are_written_in_powers_of_1024(#[case] bytes: u64, #[case] text: &str) {
        assert_eq!(binary_size(bytes), text);
    }

    #[test]
    fn capture_06_percentages_have_single_precision() {
        assert_eq!(format!("{:.1}", percent(300_000_000_000, 320_000_000_000)), "93.7");
    }
}
