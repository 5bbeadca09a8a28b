//! `onewriter document`: the pages that are generated from the matrix.

use std::io::Write as _;

use harness::report::Exit;

use super::args::{DocumentArgs, PageName};
use super::output;
use crate::{record, scenarios};

/// Prints a generated page.
pub(super) fn document(args: &DocumentArgs) -> Exit {
    let matrix = scenarios::matrix();
    let page = match args.page {
        PageName::Scenarios => record::scenarios_page(&matrix),
        PageName::Record => {
            let cells: Vec<_> = matrix.iter().flat_map(|scenario| (scenario.cells)()).collect();
            match record::statements() {
                Ok(statements) => record::record_page(&statements, &cells),
                Err(error) => {
                    return output::fail(Exit::Internal, &format!("the record cannot be read: {error}"));
                }
            }
        }
    };
    match std::io::stdout().write_all(page.as_bytes()) {
        Ok(()) => Exit::Pass,
        Err(error) => output::fail(Exit::Internal, &format!("stdout cannot be written: {error}")),
    }
}
