//! The engine: sites, scenarios, waits, history, checks, report.
//!
//! | module | what it holds |
//! |---|---|
//! | [`site`] | the two sites |
//! | [`scenario`] | scenarios, their cells, and how a cell is run; start here |
//! | [`wait`] | waiting on a watch, with a deadline |
//! | [`history`] | what the harness records, and how the sources become one order |
//! | [`toolchain`] | the programs of a local control plane |
//! | [`local`] | two local control planes |
//! | [`agent`] | running pods without a kubelet |
//! | [`process`] | child processes that cannot outlive the harness |
//! | [`progress`] | telling whoever waits |
//! | [`checks`] | judging a history |
//! | [`garage`] | Garage as the system under test |
//! | [`failure`] | why a cell did not reach its end |

pub mod agent;
pub mod checks;
pub mod entry;
pub mod failure;
pub mod garage;
pub mod history;
pub mod local;
pub mod process;
pub mod progress;
pub mod report;
pub mod scenario;
pub mod site;
pub mod toolchain;
pub mod wait;
