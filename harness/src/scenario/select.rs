//! Which cells a run takes.

use super::Cell;

/// Filters as given: a cell is taken if any of `filters` (or there is none) matches its path from the start, and
/// none of `skip` does.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Beginnings of cell paths: `bootstrap`, `federation/east-writes`.
    pub filters: Vec<String>,
    /// Beginnings of cell paths that are left out.
    pub skip: Vec<String>,
    /// Whether a filter must be the whole path (or the whole scenario name).
    pub exact: bool,
}

/// A filter that matches no cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no cell matches `{filter}`; the scenarios are: {}", .known.join(", "))]
pub struct NothingSelected {
    /// The filter.
    pub filter: String,
    /// Names of all scenarios.
    pub known: Vec<String>,
}

/// Keeps those of `cells` that `selection` takes.
///
/// # Errors
/// [`NothingSelected`] if a filter matches nothing: a typing error must not pass as an empty run.
pub fn select<T>(
    cells: Vec<T>,
    cell_of: impl Fn(&T) -> &Cell,
    selection: &Selection,
) -> Result<Vec<T>, NothingSelected> {
    for filter in selection.filters.iter().chain(&selection.skip) {
        if !cells.iter().any(|cell| matches(cell_of(cell), filter, selection.exact)) {
            let mut known: Vec<String> = cells.iter().map(|cell| cell_of(cell).scenario.to_owned()).collect();
            known.dedup();
            return Err(NothingSelected { filter: filter.clone(), known });
        }
    }
    let any = |filters: &[String], cell: &Cell| filters.iter().any(|f| matches(cell, f, selection.exact));
    let taken = |cell: &Cell| {
        (selection.filters.is_empty() || any(&selection.filters, cell)) && !any(&selection.skip, cell)
    };
    Ok(cells.into_iter().filter(|cell| taken(cell_of(cell))).collect())
}

fn matches(cell: &Cell, filter: &str, exact: bool) -> bool {
    let path = cell.path();
    if exact { path == filter || cell.scenario == filter } else { path.starts_with(filter) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn cell(scenario: &'static str, name: &'static str) -> Cell {
        Cell::control(scenario, name)
    }

    fn selected(filters: &[&str], skip: &[&str], exact: bool) -> Result<Vec<String>, NothingSelected> {
        let cells = vec![
            cell("bootstrap", "writer"),
            cell("bootstrap", "follower"),
            cell("federation", "east-writes"),
        ];
        let owned = |list: &[&str]| list.iter().map(|&f| f.to_owned()).collect();
        let selection = Selection { filters: owned(filters), skip: owned(skip), exact };
        Ok(select(cells, |cell| cell, &selection)?.iter().map(Cell::path).collect())
    }

    #[rstest]
    #[case::everything(&[], &[], false, &["bootstrap/writer", "bootstrap/follower", "federation/east-writes"])]
    #[case::a_scenario(&["bootstrap"], &[], false, &["bootstrap/writer", "bootstrap/follower"])]
    #[case::a_cell(&["bootstrap/f"], &[], false, &["bootstrap/follower"])]
    #[case::all_but_one(&[], &["bootstrap/writer"], false, &["bootstrap/follower", "federation/east-writes"])]
    #[case::exactly_a_scenario(&["federation"], &[], true, &["federation/east-writes"])]
    fn a_selection_takes(
        #[case] filters: &[&str],
        #[case] skip: &[&str],
        #[case] exact: bool,
        #[case] taken: &[&str],
    ) {
        assert_eq!(selected(filters, skip, exact).unwrap(), taken);
    }

    #[rstest]
    #[case::a_typing_error(&["bootstarp"], &[], false)]
    #[case::the_middle_of_a_name(&["writer"], &[], false)]
    #[case::half_a_name_where_it_must_be_whole(&["boot"], &[], true)]
    #[case::a_skip_that_skips_nothing(&[], &["nothing"], false)]
    fn a_filter_that_matches_nothing_is_refused(
        #[case] filters: &[&str],
        #[case] skip: &[&str],
        #[case] exact: bool,
    ) {
        let error = selected(filters, skip, exact).unwrap_err();
        assert!(error.to_string().ends_with("the scenarios are: bootstrap, federation"), "{error}");
    }
}
