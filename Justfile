# Thin recipes: people and CI call the same ones.

# List the recipes.
default:
    @just --list

# The whole scenario matrix on two real control planes; flags are passed on to `onewriter run`.
e2e-multicluster *flags:
    cargo e2e {{flags}}

# One scenario or cell: `just cell bootstrap/follower`.
cell filter *flags:
    cargo e2e {{filter}} {{flags}}

# All tests; brings up one pair for the scenarios and takes it down at the end.
test *flags:
    cargo test --workspace {{flags}}

# All tests, one process each, on one shared pair.
nextest *flags:
    cargo nextest run --workspace {{flags}}

# Kill the operator after each of its writes in turn; prints every crash point.
crash-sweep:
    cargo test --package garage-operator --features crash-after-write --test sites -- crash/ --nocapture

# What the operator costs with so many clusters of three nodes each; prints the table of docs/benchmarks-operator.md.
bench-operator *clusters="10 50 200":
    cargo bench --quiet --package garage-operator --bench steady_state -- {{clusters}}

# Formatting, lints and documentation.
lint:
    cargo fmt --all -- --check
    cargo lint
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Licences and sources of what we depend on.
deny:
    cargo deny --locked check licenses bans sources

# Write the generated files (CRDs, JSON Schemas) anew.
generate:
    cargo run --quiet --package garage-operator -- crds --output-dir operator/deploy/crd
    cargo run --quiet --package garage-operator -- crds --webhooks --output-dir operator/deploy/webhook/crd
    cargo onewriter schema history > docs/history.schema.json

# Clean up after killed runs; takes down kept pairs, too.
down *flags:
    cargo onewriter down {{flags}}
