//! Any text as a recorded session, a history, a configuration.
//!
//! A session that parses is also run, twice with the same outcome. Readers refuse what they cannot read, and never stumble over it.

use std::time::Duration;

use fake_garage::node::Configuration;
use fake_garage::replay::{Script, rename_nodes, run};
use onewriter_history::History;

/// Longer sessions are parsed and not run.
const RUN_UP_TO: Duration = Duration::from_mins(1);

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    History::parse(text).ok();
    Configuration::parse(text).ok();
    if let Ok(script) = Script::parse(&rename_nodes(text, 7)) {
        play(&script);
    }
    if let Ok(script) = Script::parse(text) {
        play(&script);
    }
}

fn play(script: &Script) {
    let last = script.steps.last().map_or(0, |step| step.at_ms);
    if Duration::from_millis(last) <= RUN_UP_TO && script.nodes.len() <= 8 && script.steps.len() <= 64 {
        let report = || serde_json::to_string(&run(script, 7)).unwrap();
        assert_eq!(report(), report(), "the same session again goes otherwise");
    }
}
