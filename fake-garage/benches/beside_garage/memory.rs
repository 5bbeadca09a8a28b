//! Processes from outside: what they hold, and how they end.

use std::fs;
use std::process::Child;

use crate::client::Failure;

/// Resident memory of a process, in megabytes (10^6 bytes).
pub(crate) fn resident(process: u32) -> Result<f64, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kibibytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024.0 / 1e6)
}

/// Processor time that a process has used, in seconds: user and system, of all its threads.
pub(crate) fn processor_seconds(process: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // Behind the name, which is in parentheses: state is the first field, user and system time follow later.
    let fields = stat.rsplit_once(") ").ok_or("no name in stat")?.1;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    // USER_HZ is 100 on every Linux.
    Ok(ticks / 100.0)
}

/// Ends a process of ours and waits for it.
pub(crate) fn end(process: &mut Child) {
    // Both fail only for a process that has ended already.
    drop(process.kill());
    drop(process.wait());
}
