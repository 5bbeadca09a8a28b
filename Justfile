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

# So many runs in a row, each with a seed of its own; a line for each, and an end at the first that does not pass, whose
# artifacts are kept: `just steady 20 --rows 1-10`.
steady runs *flags:
    cargo e2e --count {{runs}} --fail-fast --quiet --keep never {{flags}}

# What a person would try first on two kind clusters; starts Docker where there is none, and builds the node image once.
kind-smoke *flags:
    #!/usr/bin/env bash
    set -euo pipefail
    eval "$(kind-configs/docker.sh start)"
    cargo onewriter image node
    cargo e2e bootstrap federation_import scale_down annotations failover_promotion --provider kind {{flags}}

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

# Kill the operator after each of its writes in turn; prints every crash point.
crash-sweep:
    cargo test --package garage-operator --features crash-after-write --test sites -- crash/ --nocapture

# What the operator costs with so many clusters of three nodes each; prints a table.
bench-operator *clusters="10 50 200":
    cargo bench --quiet --package garage-operator --bench steady_state -- {{clusters}}

# What computing layouts costs, by itself.
bench *flags:
    cargo bench --package fake-garage --bench layout -- {{flags}}

# The fake beside real Garage 2.5.0, which is built once into a cache outside of the checkout; prints tables.
bench-garage *flags:
    #!/usr/bin/env bash
    set -euo pipefail
    root="${XDG_CACHE_HOME:-$HOME/.cache}/onewriter-bench/garage-2.5.0"
    if [ ! -x "$root/bin/garage" ]; then
        nice cargo install garage --version 2.5.0 --locked --root "$root"
    fi
    nice cargo bench --package fake-garage --bench beside_garage --no-run
    cargo bench --quiet --package fake-garage --bench beside_garage -- --garage "$root/bin/garage" {{flags}} \
        | tee "${CARGO_TARGET_DIR:-target}/benchmarks.md"

# Formatting, lints and documentation.
lint:
    cargo fmt --all -- --check
    cargo lint
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Look for inputs that the fake stumbles over, for SECONDS in all (needs cargo-fuzz and a nightly toolchain).
fuzz seconds:
    #!/usr/bin/env bash
    set -euo pipefail
    cd fake-garage
    for target in port admin parsers merge; do
        mkdir -p "fuzz/corpus/$target"
        cargo +nightly fuzz run --fuzz-dir fuzz "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
            -max_total_time=$(( {{seconds}} / 4 )) -max_len=8192 -timeout=60 -print_final_stats=1
    done

# Licences and sources of what we depend on.
deny:
    cargo deny --locked check licenses bans sources

# Write the generated files (CRDs, JSON Schemas) anew.
generate:
    cargo run --quiet --package garage-operator -- crds --output-dir operator/deploy/crd
    cargo run --quiet --package garage-operator -- crds --webhooks --output-dir operator/deploy/webhook/crd
    cargo run --quiet --package hub-controller -- crds --output-dir hub-controller/deploy/crd
    cargo onewriter schema history > docs/history.schema.json
    cargo onewriter document scenarios > docs/scenarios.md
    cargo onewriter document record > docs/record.md

# Clean up after killed runs; takes down kept pairs, too.
down *flags:
    cargo onewriter down {{flags}}
