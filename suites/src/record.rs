//! The design record's statements, and what the matrix claims of them.

use std::collections::{BTreeMap, BTreeSet};

use harness::garage::system::Garage;
use harness::scenario::{Cell, Kind, Scenario};
use harness::site::Site;
use serde::{Deserialize, Serialize};

/// A statement of the design record, in own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Statement {
    /// Its id, as claims name it.
    pub id: String,
    /// The part of the record that it is in.
    pub part: String,
    /// What it says.
    pub text: String,
    /// Why no scenario claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    statement: Vec<Statement>,
}

/// All statements, in the record's order.
///
/// # Errors
/// When `record.toml`, which is part of this program, cannot be read.
pub fn statements() -> Result<Vec<Statement>, toml::de::Error> {
    toml::from_str::<Record>(include_str!("../record.toml")).map(|record| record.statement)
}

/// What is wrong between the record and the matrix: ids that are there twice or not at all, statements that nobody
/// claims and that do not say why, and statements that say why and are claimed all the same.
#[must_use]
pub fn faults(statements: &[Statement], cells: &[Cell]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut known = BTreeMap::new();
    for statement in statements {
        if known.insert(statement.id.as_str(), statement).is_some() {
            faults.push(format!("{} is there twice", statement.id));
        }
    }
    let mut claimed = BTreeSet::new();
    for cell in cells {
        for id in cell.claims.iter().flat_map(|claim| claim.record) {
            claimed.insert(*id);
            if !known.contains_key(id) {
                faults.push(format!("{} claims {id}, which the record does not have", cell.path()));
            }
        }
        for claim in cell.claims.iter().filter(|claim| claim.record.is_empty()) {
            faults.push(format!("{}: `{}` comes from nowhere", cell.path(), claim.text));
        }
        if cell.claims.is_empty() {
            faults.push(format!("{} claims nothing", cell.path()));
        }
    }
    for (id, statement) in known {
        match (claimed.contains(id), &statement.elsewhere) {
            (false, None) => faults.push(format!("{id} is claimed by no cell, and says not why")),
            (true, Some(_)) => faults.push(format!("{id} is claimed, and says why it is not")),
            _ => {}
        }
    }
    faults
}

/// `docs/record.md`.
#[must_use]
pub fn record_page(statements: &[Statement], cells: &[Cell]) -> String {
    let mut page = String::from(
        "# The design record, statement by statement\n\n\
         Generated from `suites/record.toml` and the matrix by `just generate`. The record is \"Designating one \
         layout-writer site in a federation\"; the statements are in own words. Each names the cells that claim it, or \
         why none does.\n",
    );
    let mut part = "";
    for statement in statements {
        if statement.part != part {
            part = &statement.part;
            page += &format!("\n## {part}\n\n");
        }
        let claims =
            |cell: &&Cell| cell.claims.iter().any(|claim| claim.record.contains(&statement.id.as_str()));
        let paths: Vec<String> =
            cells.iter().filter(claims).map(|cell| format!("`{}`", cell.path())).collect();
        let proof = match &statement.elsewhere {
            Some(why) => format!("Not in the matrix: {why}."),
            None => paths.join(", "),
        };
        page += &format!("* **{}** {}  \n  {proof}\n", statement.id, statement.text);
    }
    page
}

/// `docs/scenarios.md`.
#[must_use]
pub fn scenarios_page(scenarios: &[Scenario<Garage>]) -> String {
    let cells: Vec<Cell> = scenarios.iter().flat_map(|scenario| (scenario.cells)()).collect();
    let mut page = format!(
        "# The scenario matrix\n\n\
         Generated from the matrix by `just generate`. {}\n\n\
         Roles are those of east / west. A control must write, a subject must not. A cell that disturbs more than its \
         namespaces has its pair to itself. `docs/writing-scenarios.md` tells how to add one, `docs/record.md` what the \
         statements in brackets say.\n",
        count(scenarios.len(), &cells)
    );
    let mut row = 0;
    for scenario in scenarios {
        if scenario.row != row {
            row = scenario.row;
            page += &format!("\n## Row {row}\n");
        }
        page += &format!("\n### `{}`\n\n{}\n\n", scenario.name, capitalised(scenario.about));
        page += "| cell | kind | roles | claims |\n|---|---|---|---|\n";
        for cell in (scenario.cells)() {
            page += &line(&cell);
        }
    }
    page
}

fn line(cell: &Cell) -> String {
    let role = |site| cell.roles.at(site).unwrap_or("–");
    let claims = cell.claims.iter().map(|claim| {
        let ids = claim.record.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" ");
        format!("{} [{ids}]", claim.text)
    });
    let mut notes: Vec<String> = claims.collect();
    if cell.disturbs.is_alone() {
        notes.push(format!("*disturbs: {}*", cell.disturbs));
    }
    for finding in &cell.expects {
        notes.push(format!("*must be found: `{}`*", finding.check));
    }
    let (east, west) = (role(Site::East), role(Site::West));
    format!("| `{}` | {} | {east} / {west} | {} |\n", cell.name, cell.kind, notes.join("<br>"))
}

/// How much of everything there is, in a sentence.
#[must_use]
pub fn count(scenarios: usize, cells: &[Cell]) -> String {
    let controls = cells.iter().filter(|cell| cell.kind == Kind::Control).count();
    let claims: usize = cells.iter().map(|cell| cell.claims.len()).sum();
    let claimed: BTreeSet<&str> =
        cells.iter().flat_map(|cell| &cell.claims).flat_map(|claim| claim.record).copied().collect();
    format!(
        "{scenarios} scenarios, {} cells ({controls} controls, {} subjects), {claims} claims from {} statements.",
        cells.len(),
        cells.len() - controls,
        claimed.len()
    )
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::matrix;

    fn cells() -> Vec<Cell> {
        matrix().iter().flat_map(|scenario| (scenario.cells)()).collect()
    }

    #[test]
    fn every_statement_is_claimed_or_says_why_not() {
        assert_eq!(faults(&statements().unwrap(), &cells()), Vec::<String>::new());
    }

    #[test]
    fn a_statement_that_nobody_claims_and_a_claim_of_nothing_are_faults() {
        let statement = |id: &str, elsewhere: Option<&str>| Statement {
            id: id.to_owned(),
            part: String::new(),
            text: String::new(),
            elsewhere: elsewhere.map(str::to_owned),
        };
        let all =
            [statement("a", None), statement("b", None), statement("c", Some("no")), statement("b", None)];
        let cells = [Cell::control("s", "one").claims("x", &["a", "c", "d"]), Cell::control("s", "two")];
        let found = faults(&all, &cells);
        for part in [
            "b is there twice",
            "s/one claims d",
            "s/two claims nothing",
            "b is claimed by no",
            "c is claimed, and",
        ] {
            assert!(found.iter().any(|fault| fault.contains(part)), "{part}: {found:?}");
        }
    }

    #[test]
    fn every_scenario_is_named_in_its_cells_and_rows_follow_each_other() {
        let mut row = 0;
        for scenario in matrix() {
            assert!(scenario.row >= row, "{} is out of order", scenario.name);
            row = scenario.row;
            let mut names = BTreeSet::new();
            for cell in (scenario.cells)() {
                assert_eq!(cell.scenario, scenario.name);
                assert!(names.insert(cell.name), "{} is there twice", cell.path());
                let namespace = format!("ow-{}-{}-xxxx", cell.scenario, cell.name);
                assert!(namespace.len() <= 63, "{namespace} is too long for a namespace");
            }
        }
    }

    #[test]
    fn the_rows_that_name_three_roles_have_a_control_a_subject_and_an_absent_cell() {
        for scenario in matrix().iter().filter(|scenario| scenario.row <= 4) {
            let cells = (scenario.cells)();
            for role in ["Writer", "Follower", "Absent"] {
                assert!(
                    cells.iter().any(|cell| cell.roles.east == Some(role)),
                    "{} is in row {}: rows 1 to 4 need a cell with .with(EAST, {role:?})",
                    scenario.name,
                    scenario.row
                );
            }
        }
    }

    #[test]
    fn the_generated_pages_are_up_to_date() {
        let record = record_page(&statements().unwrap(), &cells());
        assert!(
            record == include_str!("../../docs/record.md"),
            "docs/record.md is old: cargo onewriter document record > docs/record.md"
        );
        let scenarios = scenarios_page(&matrix());
        let published = include_str!("../../docs/scenarios.md");
        assert!(
            scenarios == published,
            "docs/scenarios.md is old: cargo onewriter document scenarios > docs/scenarios.md"
        );
    }
}
