//! The layout protocol by itself: what computing a version costs.
//!
//! `cargo bench -p fake-garage --bench layout`.

use divan::{Bencher, black_box};
use fake_garage::layout::{ConsistencyMode, LayoutHistory, LocalLayout, NodeId, Role, StageRequest};

fn main() {
    divan::main();
}

const CAPACITY: u64 = 100_000_000_000;

fn id(place: usize) -> NodeId {
    let mut bytes = [0; 32];
    // Identities are keys: they lie anywhere.
    let scattered = (place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bytes[..8].copy_from_slice(&scattered.to_be_bytes());
    NodeId::new(bytes)
}

fn role(place: usize, capacity: u64) -> Role {
    Role { zone: format!("zone-{}", place % 3), capacity: Some(capacity), tags: vec![format!("n{place}")] }
}

/// The layout of a node of a fresh cluster.
fn fresh(factor: usize) -> LocalLayout {
    LocalLayout::start(id(0), ConsistencyMode::Consistent, LayoutHistory::fresh(factor, 0))
}

/// `layout` with these changes staged.
fn staged(mut layout: LocalLayout, roles: Vec<(NodeId, Option<Role>)>) -> LocalLayout {
    let request = StageRequest { roles, parameters: None };
    let state = layout.stage(&request, 1_000_000).unwrap_or_else(|error| unreachable!("{error}"));
    layout.adopt(&state);
    layout
}

/// `layout` after applying what is staged.
fn applied(mut layout: LocalLayout) -> LocalLayout {
    let number = layout.current().number + 1;
    let computed = layout.apply(number, 2_000_000).unwrap_or_else(|error| unreachable!("{error}"));
    layout.adopt(&computed.history);
    layout
}

fn nodes(count: usize) -> Vec<(NodeId, Option<Role>)> {
    (0..count).map(|place| (id(place), Some(role(place, CAPACITY)))).collect()
}

fn bench_apply(bencher: Bencher<'_, '_>, layout: &LocalLayout) {
    let number = layout.current().number + 1;
    bencher.bench_local(|| black_box(layout.apply(number, 3_000_000).map(|computed| computed.statistics)));
}

/// The first version.
#[divan::bench(args = [4, 64, 256])]
fn apply_first(bencher: Bencher<'_, '_>, count: usize) {
    bench_apply(bencher, &staged(fresh(3), nodes(count)));
}

/// One node becomes half as large.
#[divan::bench(args = [4, 64, 256])]
fn apply_one_smaller(bencher: Bencher<'_, '_>, count: usize) {
    let layout = applied(staged(fresh(3), nodes(count)));
    bench_apply(bencher, &staged(layout, vec![(id(1), Some(role(1, CAPACITY / 2)))]));
}

/// One node goes.
#[divan::bench(args = [4, 64, 256])]
fn apply_one_less(bencher: Bencher<'_, '_>, count: usize) {
    let layout = applied(staged(fresh(3), nodes(count)));
    bench_apply(bencher, &staged(layout, vec![(id(1), None)]));
}

/// Three nodes become many, so that nearly every copy moves.
#[divan::bench(args = [4, 64, 256])]
fn apply_many_more(bencher: Bencher<'_, '_>, count: usize) {
    let layout = applied(staged(fresh(3), nodes(3)));
    bench_apply(bencher, &staged(layout, nodes(count)));
}

/// Every node gets another capacity.
#[divan::bench(args = [4, 64, 256])]
fn apply_all_other(bencher: Bencher<'_, '_>, count: usize) {
    let layout = applied(staged(fresh(3), nodes(count)));
    let roles =
        (0..count).map(|place| (id(place), Some(role(place, CAPACITY / (1 + place as u64 % 7))))).collect();
    bench_apply(bencher, &staged(layout, roles));
}

/// The digest that every event carries.
#[divan::bench(args = [4, 64, 256])]
fn digest(bencher: Bencher<'_, '_>, count: usize) {
    let layout = applied(staged(fresh(3), nodes(count)));
    bencher.bench_local(|| black_box(layout.history()).digest());
}
