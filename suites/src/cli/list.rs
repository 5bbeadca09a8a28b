//! `onewriter list`.

use harness::report::Exit;
use harness::scenario::system::plan;
use harness::scenario::{Cell, Selection, select};

use super::args::{Global, SelectArgs};
use super::output;
use crate::scenarios;

/// Lists the cells that a run with the same filters would take.
pub(super) fn list(global: &Global, args: &SelectArgs) -> Exit {
    let cells: Vec<Cell> = plan(scenarios::matrix()).into_iter().map(|(_, cell)| cell).collect();
    match select(cells, |cell| cell, &selection(args)) {
        Err(nothing) => output::fail(Exit::NothingSelected, &nothing.to_string()),
        Ok(cells) => output::show(global, &as_json(&cells), || table(&cells)),
    }
}

/// The selection that the flags ask for.
pub(super) fn selection(args: &SelectArgs) -> Selection {
    Selection { filters: args.filters.clone(), skip: args.skip.clone(), exact: args.exact }
}

fn as_json(cells: &[Cell]) -> serde_json::Value {
    let one = |cell: &Cell| {
        let mut value = serde_json::to_value(cell).unwrap_or_default();
        value["path"] = cell.path().into();
        value
    };
    cells.iter().map(one).collect()
}

/// The cells as a table for people.
pub(super) fn table(cells: &[Cell]) -> String {
    let width = cells.iter().map(|cell| cell.path().len()).max().unwrap_or(0);
    let mut text = String::new();
    for cell in cells {
        let role = |role: Option<&'static str>| role.unwrap_or("–");
        let (east, west) = (role(cell.roles.east), role(cell.roles.west));
        text += &format!(
            "{:width$}  {:7}  east {east:8}  west {west:8}  {}\n",
            cell.path(),
            cell.kind,
            cell.claim()
        );
    }
    text += &format!("{} cells\n", cells.len());
    text
}
