//! Proof that the matrix bites: operators with deliberate defects, each of which somebody must notice.
//!
//! | file | what it holds |
//! |---|---|
//! | [`table`] | the defects, and who must notice each; read from `teeth.toml` |
//! | [`outcome`] | whether a run noticed a defect, and by what |
//! | [`recorder`] | defects of the record itself, for the checks that guard it |
//! | [`tally`] | all of it together: which check catches which defect |

pub mod outcome;
pub mod recorder;
pub mod table;
pub mod tally;

pub use outcome::Outcome;
pub use table::Mutant;
pub use tally::Tally;
