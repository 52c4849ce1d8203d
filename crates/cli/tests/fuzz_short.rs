//! The short form of every fuzz target, on stable: seeds, and a few thousand mutations of them, always the same ones.

use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

/// Mutated inputs per target. The whole test takes a few seconds.
const MUTATIONS: u64 = 4_000;
/// Longer seeds are cut: short inputs reach more of a parser per second.
const LONGEST: usize = 16 * 1024;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Every file below `path`, in the order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] }).collect()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut paths = files(&folder("fuzz/seeds").join(target));
    if target == "scenario" {
        paths.extend(files(&folder("scenarios")).into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")));
    }
    let mut seeds: Vec<Vec<u8>> = paths.iter().filter_map(|p| std::fs::read(p).ok()).collect();
    if target == "config" {
        seeds.push(lasthop_live::config::Config::sample().into());
    }
    assert!(!seeds.is_empty(), "no seeds for `{target}`: put one into fuzz/seeds/{target}/");
    seeds
}

/// xorshift64*: the same mutations on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize) % bound.max(1)
    }
}

/// One to four edits: a flipped bit, a byte set, a piece removed, doubled or taken from another seed.
fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut input = seeds[random.below(seeds.len())].clone();
    input.truncate(LONGEST);
    for _ in 0..=random.below(4) {
        let at = random.below(input.len().max(1)).min(input.len());
        let end = (at + 1 + random.below(8)).min(input.len());
        match random.below(6) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'\n', b'9'][random.below(8)],
            2 => drop(input.drain(at.min(end)..end)),
            3 => {
                let piece = input[at.min(end)..end].to_vec();
                input.splice(at..at, piece);
            }
            4 => input.truncate(at),
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                let piece = other[from..(from + 16).min(other.len())].to_vec();
                input.splice(at..at, piece);
            }
        }
    }
    input
}

#[test]
fn no_parser_breaks_on_seeds_or_mutations_of_them() {
    for (number, (name, body)) in targets::ALL.iter().enumerate() {
        let seeds = seeds(name);
        seeds.iter().for_each(|seed| body(seed));
        let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ (number as u64 + 1));
        for round in 0..MUTATIONS {
            let input = mutate(&mut random, &seeds);
            let outcome = std::panic::catch_unwind(|| body(&input));
            assert!(outcome.is_ok(), "`{name}` broke in round {round} on {:?}", String::from_utf8_lossy(&input));
        }
    }
}

#[test]
fn every_target_has_a_program_for_libfuzzer() {
    let programs: Vec<String> = files(&folder("fuzz/fuzz_targets"))
        .iter()
        .filter_map(|p| p.file_stem().map(|s| s.to_string_lossy().into_owned()))
        .collect();
    let mut names: Vec<&str> = targets::ALL.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(programs, names);
}
