//! What a sweep is over: every combination of the values of all `--vary`, each with every seed.
//!
//! Run `n` of a sweep over `s` seeds is combination `n / s` with seed `first + n % s`; of the combinations the last
//! `--vary` changes fastest. This is the order of the rows in the file.

use std::collections::HashMap;

/// One `--vary`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// As `--set` takes it.
    pub key: String,
    /// As `--set` takes them.
    pub values: Vec<String>,
}

/// Most runs of a sweep. Every combination is held in memory.
pub const MOST_RUNS: usize = 1_000_000;

/// Reads `key=a,b,c`. A comma inside quotes, brackets or braces belongs to the value.
pub fn vary(text: &str) -> Result<Vary, String> {
    let Some((key, values)) = text.split_once('=').map(|(key, values)| (key.trim(), values)) else {
        return Err("write a key, `=`, and values with commas between: wifi.attempts=1,2,3".to_owned());
    };
    if key.is_empty() || key.contains(char::is_whitespace) || text.chars().any(char::is_control) {
        return Err("the key before `=` is a path like wifi.attempts, all on one line".to_owned());
    }
    if key == "seed" {
        return Err("seeds are varied by --seeds N, from --seed FIRST on".to_owned());
    }
    let values = split(values)?;
    for (i, value) in values.iter().enumerate() {
        match value.as_str() {
            "" => return Err(format!("a value is empty; `none` takes `{key}` away")),
            value if values[..i].iter().any(|v| v == value) => return Err(format!("`{value}` stands there twice")),
            _ => {}
        }
    }
    Ok(Vary { key: key.to_owned(), values })
}

/// Splits at commas that stand in no quotes, brackets or braces.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut values = vec![String::new()];
    let mut open = Vec::new();
    let mut escaped = false;
    for c in text.chars() {
        match (open.last(), c) {
            (_, _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(quote @ ('"' | '\'')), c) if *quote != c => {}
            (Some(end), c) if *end == c => drop(open.pop()),
            (_, '"' | '\'') => open.push(c),
            (_, '[') => open.push(']'),
            (_, '{') => open.push('}'),
            (None, ',') => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = values.last_mut() {
            last.push(c);
        }
    }
    match open.pop() {
        Some(end) => Err(format!("`{end}` is missing at the end of a value")),
        None => Ok(values.into_iter().map(|v| v.trim().to_owned()).collect()),
    }
}

/// The runs of a sweep.
#[derive(Clone, Debug)]
pub struct Grid {
    varies: Vec<Vary>,
    combinations: usize,
    first_seed: u64,
    seeds: usize,
    /// Index of every value of each `--vary`.
    places: Vec<HashMap<String, usize>>,
}

impl Grid {
    /// Every combination of `varies` with `seeds` seeds from `first_seed` on.
    pub fn new(varies: &[Vary], first_seed: u64, seeds: usize) -> Result<Self, String> {
        for (i, vary) in varies.iter().enumerate() {
            if varies[..i].iter().any(|other| other.key == vary.key) {
                return Err(format!("`{}` is varied twice; give all of its values in one --vary", vary.key));
            }
        }
        let combinations = varies.iter().try_fold(1usize, |n, vary| n.checked_mul(vary.values.len()));
        let runs = combinations.and_then(|n| n.checked_mul(seeds)).filter(|runs| *runs <= MOST_RUNS);
        let (Some(combinations), Some(_)) = (combinations, runs) else {
            return Err(format!("that is more than {MOST_RUNS} runs; divide it into several sweeps"));
        };
        if first_seed.checked_add(seeds as u64).is_none() {
            return Err("the seeds go beyond 18446744073709551615".to_owned());
        }
        let place = |vary: &Vary| vary.values.iter().enumerate().map(|(i, value)| (value.clone(), i)).collect();
        let places = varies.iter().map(place).collect();
        Ok(Self { varies: varies.to_vec(), combinations, first_seed, seeds, places })
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.combinations * self.seeds
    }

    /// Number of combinations.
    pub fn combinations(&self) -> usize {
        self.combinations
    }

    /// The varied keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.varies.iter().map(|vary| vary.key.as_str())
    }

    /// Combination of a run.
    pub fn combination(&self, run: usize) -> usize {
        run / self.seeds
    }

    /// Seed of a run.
    pub fn seed(&self, run: usize) -> u64 {
        self.first_seed + (run % self.seeds) as u64
    }

    /// Key and value of every `--vary` in a combination.
    pub fn values(&self, combination: usize) -> Vec<(&str, &str)> {
        let mut rest = combination;
        let mut values: Vec<_> = self
            .varies
            .iter()
            .rev()
            .map(|vary| {
                let value = &vary.values[rest % vary.values.len()];
                rest /= vary.values.len();
                (vary.key.as_str(), value.as_str())
            })
            .collect();
        values.reverse();
        values
    }

    /// The run with these values, in the order of the keys, and this seed.
    pub fn find<'a>(&self, values: impl IntoIterator<Item = &'a str>, seed: u64) -> Option<usize> {
        let mut combination = 0;
        for ((vary, places), value) in self.varies.iter().zip(&self.places).zip(values) {
            combination = combination * vary.values.len() + places.get(value)?;
        }
        let offset = usize::try_from(seed.checked_sub(self.first_seed)?).ok().filter(|o| *o < self.seeds)?;
        Some(combination * self.seeds + offset)
    }

    /// How a message names a combination.
    pub fn name(&self, combination: usize) -> String {
        let values = self.values(combination);
        values.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    }

    /// How a message names a run.
    pub fn name_of_run(&self, run: usize) -> String {
        let mut name = self.name(self.combination(run));
        if !name.is_empty() {
            name.push_str(", ");
        }
        format!("{name}seed={}", self.seed(run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        vary(text).unwrap().values
    }

    #[test]
    fn commas_in_quotes_brackets_and_braces_belong_to_the_value() {
        assert_eq!(values("wifi.attempts=1, 2,3"), ["1", "2", "3"]);
        assert_eq!(values(r#"flow.ftp.cc="a,b",'c,d',e"#), [r#""a,b""#, "'c,d'", "e"]);
        assert_eq!(
            values(r#"wifi.queue={ kind = "fifo", limit = 50 },{ kind = "fifo", limit = [1, 2] }"#),
            [r#"{ kind = "fifo", limit = 50 }"#, r#"{ kind = "fifo", limit = [1, 2] }"#]
        );
        assert_eq!(values(r#"name="a\",b",c"#), [r#""a\",b""#, "c"]);
    }

    #[test]
    fn what_cannot_be_varied_is_refused() {
        for (text, why) in [
            ("wifi.attempts", "="),
            ("=1,2", "key"),
            ("seed=1,2", "--seeds"),
            ("wifi.attempts=1,,2", "empty"),
            ("wifi.attempts=", "empty"),
            ("wifi.attempts=1,2,1", "twice"),
            ("wifi.queue={ kind = 1", "`}` is missing"),
            ("a=\"x\n\",b", "one line"),
        ] {
            let error = vary(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let twice = [vary("a=1").unwrap(), vary("a=2").unwrap()];
        assert!(Grid::new(&twice, 1, 1).unwrap_err().contains("twice"));
        let many = [vary("a=1,2,3").unwrap()];
        assert!(Grid::new(&many, 1, 400_000).unwrap_err().contains("more than"));
        assert!(Grid::new(&many, u64::MAX, 2).is_err());
    }

    #[test]
    fn the_last_key_changes_faster_than_the_first_and_seeds_fastest() {
        let varies = [vary("a=1,2").unwrap(), vary("b=x,y,z").unwrap()];
        let grid = Grid::new(&varies, 5, 2).unwrap();
        assert_eq!((grid.len(), grid.combinations()), (12, 6));
        let names: Vec<String> = (0..4).map(|run| grid.name_of_run(run)).collect();
        assert_eq!(names, ["a=1, b=x, seed=5", "a=1, b=x, seed=6", "a=1, b=y, seed=5", "a=1, b=y, seed=6"]);
        for run in 0..grid.len() {
            let values: Vec<&str> = grid.values(grid.combination(run)).iter().map(|v| v.1).collect();
            assert_eq!(grid.find(values, grid.seed(run)), Some(run));
        }
        assert_eq!((grid.find(["1", "w"], 5), grid.find(["1", "x"], 7), grid.find(["1", "x"], 4)), (None, None, None));
    }
}
