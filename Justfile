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

# Operators with deliberate defects: each must be noticed by those who are to notice it.
teeth *flags:
    cargo onewriter teeth {{flags}}

# How fast histories are read and judged, and in how much memory: `just bench-judge 10000000`.
bench-judge events="1000000":
    cargo run --quiet --release --package onewriter-harness --example judging -- harness/tests/data/federation.jsonl {{events}}

# All tests; brings up one pair for the scenarios and takes it down at the end.
test *flags:
    cargo test --workspace {{flags}}

# All tests, one process each, on one shared pair.
nextest *flags:
    cargo nextest run --workspace {{flags}}

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
