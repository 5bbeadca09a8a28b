//! `onewriter list`.

use std::collections::BTreeMap;

use harness::garage::system::Garage;
use harness::report::Exit;
use harness::scenario::select::NothingSelected;
use harness::scenario::system::{Planned, plan};
use harness::scenario::{Cell, Selection, select};
use serde_json::{Value, json};

use super::args::{Global, SelectArgs};
use super::output;
use crate::record::{self, Statement};
use crate::scenarios;

/// Lists the cells that a run with the same filters would take, with their claims and where those come from.
pub(super) fn list(global: &Global, args: &SelectArgs) -> Exit {
    let statements = match record::statements() {
        Ok(statements) => statements,
        Err(error) => return output::fail(Exit::Internal, &format!("the record cannot be read: {error}")),
    };
    let statements: BTreeMap<&str, &Statement> =
        statements.iter().map(|statement| (statement.id.as_str(), statement)).collect();
    match selected(args) {
        Err(nothing) => output::fail(Exit::NothingSelected, &nothing.to_string()),
        Ok(planned) if planned.is_empty() => output::fail(Exit::NothingSelected, NOTHING_LEFT),
        Ok(planned) => {
            let value = as_json(&planned, &statements);
            output::show(global, &value, || in_words(&planned, &statements))
        }
    }
}

/// What is said when the flags leave no cell, though each of them names some.
pub(super) const NOTHING_LEFT: &str = "every cell is skipped or of another row";

/// The cells that the flags ask for.
pub(super) fn selected(args: &SelectArgs) -> Result<Vec<Planned<Garage>>, NothingSelected> {
    let selection = Selection { filters: args.filters.clone(), skip: args.skip.clone(), exact: args.exact };
    let selected = select(plan(scenarios::matrix()), |(_, cell)| cell, &selection)?;
    let in_rows = |row: u8| args.rows.is_none_or(|rows| (rows.first..=rows.last).contains(&row));
    Ok(selected.into_iter().filter(|(scenario, _)| in_rows(scenario.row)).collect())
}

fn as_json(planned: &[Planned<Garage>], statements: &BTreeMap<&str, &Statement>) -> Value {
    let one = |(scenario, cell): &Planned<Garage>| {
        let mut value = serde_json::to_value(cell).unwrap_or_default();
        value["path"] = cell.path().into();
        value["row"] = scenario.row.into();
        value["about"] = scenario.about.into();
        let claims = cell.claims.iter().map(|claim| {
            let record: Vec<&Statement> =
                claim.record.iter().filter_map(|id| statements.get(id).copied()).collect();
            json!({"text": claim.text, "record": record})
        });
        value["claims"] = claims.collect();
        value
    };
    planned.iter().map(one).collect()
}

fn in_words(planned: &[Planned<Garage>], statements: &BTreeMap<&str, &Statement>) -> String {
    let (mut text, mut row) = (String::new(), 0);
    for (scenario, cell) in planned {
        if scenario.row != row {
            row = scenario.row;
            text += &format!("row {row}\n");
        }
        text += &format!("  {}\n", heading(cell));
        for claim in &cell.claims {
            text += &format!("    {}\n", claim.text);
            for id in claim.record {
                let says = statements.get(id).map_or("", |statement| statement.text.as_str());
                text += &format!("      {id}: {says}\n");
            }
        }
    }
    let cells: Vec<Cell> = planned.iter().map(|(_, cell)| cell.clone()).collect();
    let mut scenarios: Vec<&str> = cells.iter().map(|cell| cell.scenario).collect();
    scenarios.dedup();
    text + &record::count(scenarios.len(), &cells) + "\n"
}

fn heading(cell: &Cell) -> String {
    let role = |role: Option<&'static str>| role.unwrap_or("–");
    let mut text = format!(
        "{:34}  {:7}  east {:8}  west {:8}",
        cell.path(),
        cell.kind,
        role(cell.roles.east),
        role(cell.roles.west)
    );
    if cell.disturbs.is_alone() {
        text += &format!("  alone: disturbs {}", cell.disturbs);
    }
    for finding in &cell.expects {
        text += &format!("  must be found: {}", finding.check);
    }
    text.trim_end().to_owned()
}

/// The cells as a table for people.
pub(super) fn table(cells: &[Cell]) -> String {
    let mut text: String = cells.iter().map(|cell| format!("{}\n", heading(cell))).collect();
    text += &format!("{} cells\n", cells.len());
    text
}
