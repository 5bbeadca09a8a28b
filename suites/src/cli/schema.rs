//! `onewriter schema`.

use harness::report::Exit;

use super::args::{Format, Global, SchemaArgs, SchemaName};
use super::output;

/// Prints a published JSON Schema.
pub(super) fn schema(args: &SchemaArgs) -> Exit {
    let schema = match args.name {
        SchemaName::History => onewriter_history::schema::line_schema(),
    };
    let global = Global { format: Format::Json, verbose: 0, quiet: false };
    output::show(&global, &schema, String::new)
}
