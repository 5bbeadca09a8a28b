//! The engine: sites, scenarios, waits, history, checks, report.
//!
//! | module | what it holds |
//! |---|---|
//! | [`site`] | the two sites |
//! | [`scenario`] | scenarios, their cells, and how a cell is run; start here |
//! | [`wait`] | waiting on a watch, with a deadline |
//! | [`history`] | what the harness records, and how the sources become one order |
//! | [`checks`] | judging a history |
//! | [`run`] | a run: cells on a pair, their history, its verdict |
//! | [`report`] | the verdict, for programs and for people |
//! | [`garage`] | Garage as the system under test |
//! | [`pair`] | a running pair of sites: how it is put together, and how its clients see it |
//! | [`toolchain`] | the programs of a local control plane |
//! | [`local`] | two local control planes |
//! | [`kind`] | two kind clusters |
//! | [`agent`] | running pods without a kubelet |
//! | [`link`] | links with faults between programs |
//! | [`supervisor`] | who owns a pair, and for how long |
//! | [`process`] | child processes that cannot outlive the harness |
//! | [`entry`] | how an executable serves as its own helper |
//! | [`progress`] | telling whoever waits |
//! | [`failure`] | why a cell did not reach its end |

pub mod agent;
pub mod checks;
pub mod entry;
pub mod failure;
pub mod garage;
pub mod history;
pub mod kind;
pub mod link;
pub mod local;
pub mod pair;
pub mod process;
pub mod progress;
pub mod report;
pub mod run;
pub mod scenario;
pub mod site;
pub mod supervisor;
pub mod toolchain;
pub mod wait;
