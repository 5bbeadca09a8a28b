//! The engine: sites, scenarios, waits, history, checks, report.
