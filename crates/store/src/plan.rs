//! What a sweep is to run: homes, and for each its seeds.

use lasthop_home::scenario::{Scenario, ScenarioError};

use crate::{Key, Recipe, Source};

/// Most runs of one plan; each takes 16 bytes.
pub const MOST_RUNS: usize = 10_000_000;

/// One home of a sweep.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The varied keys and their values, as written.
    pub values: Vec<(String, String)>,
    /// What makes the home of the scenario, in the form that keys hold.
    pub sets: Vec<String>,
    /// The home.
    pub home: Scenario,
    recipe: Recipe,
}

impl Cell {
    /// `source` changed by `sets`, then by the varied `values`, for the program of `revision`.
    ///
    /// # Errors
    /// Names the file, the line, the key, and what would be right.
    pub fn new(
        source: &Source,
        sets: &[String],
        values: Vec<(String, String)>,
        revision: &str,
    ) -> Result<Self, ScenarioError> {
        let varied = values.iter().map(|(key, value)| format!("{key}={value}"));
        let all: Vec<String> = sets.iter().cloned().chain(varied).collect();
        let (home, sets, recipe) = source.cell(&all, revision)?;
        Ok(Self { values, sets, home, recipe })
    }

    /// The key of its run with this seed.
    #[must_use]
    pub fn key(&self, seed: u64) -> Key {
        self.recipe.key(seed)
    }
}

/// Homes and their runs, in the order of the table.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every cell varies the same keys, in the same order.
    pub cells: Vec<Cell>,
    /// Cell and seed of each run.
    pub runs: Vec<(u32, u64)>,
}

impl Plan {
    /// Every cell with `seeds` seeds from `first` on, the seed changing fastest; no run if they would be too many.
    #[must_use]
    pub fn with_seeds(cells: Vec<Cell>, first: u64, seeds: usize) -> Self {
        let fits = cells.len().checked_mul(seeds).is_some_and(|runs| runs <= MOST_RUNS);
        let count = if fits { seeds as u64 } else { 0 };
        let of_cell = |cell: usize| (0..count).map(move |i| (cell as u32, first.wrapping_add(i)));
        let runs = (0..cells.len()).flat_map(of_cell).collect();
        Self { cells, runs }
    }

    /// The key of a run.
    #[must_use]
    pub fn key(&self, run: usize) -> Key {
        let (cell, seed) = self.runs[run];
        self.cells[cell as usize].key(seed)
    }

    /// The keys of all runs, in their order.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        (0..self.runs.len()).map(|run| self.key(run))
    }
}
