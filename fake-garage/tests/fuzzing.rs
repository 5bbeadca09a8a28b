//! What the fuzz targets check, on their seeds and on a fixed number of mutations of them.
//!
//! `just fuzz SECONDS` looks for more. An input that it finds is mended and then kept in `fuzz/seeds/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::path::Path;

use rstest::rstest;

#[path = "../fuzz/properties/mod.rs"]
mod properties;

/// A small generator of numbers (xorshift), so that every run tries the same inputs.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a number below 256")]
    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &Path| (path.display().to_string(), fs::read(path).unwrap());
    paths.iter().map(|path| read(path)).collect()
}

/// The input with a few bytes changed, inserted, taken away, repeated, or with the end of another one.
fn mutated(input: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        match numbers.below(6) {
            0 if !bytes.is_empty() => bytes[at] = numbers.byte(),
            1 => bytes.insert(at, numbers.byte()),
            2 if !bytes.is_empty() => {
                bytes.remove(at);
            }
            3 => bytes.truncate(at),
            4 => bytes.extend_from_within(at..),
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[numbers.below(other.len())..]);
            }
        }
    }
    bytes
}

#[rstest]
#[case::port("port", properties::port::check, 4)]
#[case::admin("admin", properties::admin::check, 8)]
#[case::merge("merge", properties::merge::check, 20)]
#[case::parsers("parsers", properties::parsers::check, 40)]
fn seeds_and_mutations_of_them_keep_what_must_hold(
    #[case] target: &str,
    #[case] check: fn(&[u8]),
    #[case] mutations: usize,
) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty());
    let mut numbers = Numbers(0x5eed);
    for (name, seed) in &seeds {
        let held = std::panic::catch_unwind(|| check(seed));
        assert!(held.is_ok(), "{name} is a finding");
        for _ in 0..mutations {
            let other = &seeds[numbers.below(seeds.len())].1;
            let input = mutated(seed, other, &mut numbers);
            let held = std::panic::catch_unwind(|| check(&input));
            assert!(held.is_ok(), "a mutation of {name} is a finding: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
