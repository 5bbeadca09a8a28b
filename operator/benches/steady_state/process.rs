//! What a process costs, as the kernel counts it.

use std::time::Duration;

use crate::stage::operator::Operator;

/// Clock ticks per second of `/proc` (proc(5); 100 on every Linux that Rust runs on).
const TICKS: u64 = 100;

/// CPU time that it used so far, user and system.
pub fn cpu(operator: &Operator) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", operator.child.pid())).unwrap();
    // The name may hold blanks; what follows its parenthesis does not.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// Memory that it holds, in bytes.
pub fn resident(operator: &Operator) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", operator.child.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}
