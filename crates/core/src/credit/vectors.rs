//! Reads hand-derived cases (`tests/vectors/credit.txt`), for the tests of every implementation of the arithmetic.
//!
//! A line is a comment (`#`), `case NAME`, or a step and what it must come to:
//!
//! ```text
//! increment ns=4000000                              of what follows
//! account debt=1000 boosts=7                        there is one like this
//! new boosts=0 -> debt=4000000 boosts=0             one of a new flow
//! charge boosts=1 cost=1000 -> debt=2001000 boosts=1
//! look boosts=1 -> debt=2001000 credit=5999000 funded     also "exhausted"; the account stays as it was
//! key -> exponent=21 mantissa=0xf424000000000000
//! bucket full_at=0 interval=80 burst=400            all in ns
//! take now=100 -> yes full_at=180                   also "no full_at=180"
//! mix of=0x1 -> 0x9e3779b97f4a7c15                   of the hash of a flow's key
//! ```

use super::account::{Account, Bucket, Key};

/// A story of one account, or of one bucket.
#[derive(Debug)]
pub struct Case {
    /// A sentence with underscores.
    pub name: String,
    /// In order, each with its line in the file.
    pub steps: Vec<(usize, Step)>,
}

/// One line of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// I from here on, ns.
    Increment(u64),
    /// The account from here on.
    Account(Account),
    /// [`Account::new`] at this number of boosts.
    New(u64, Account),
    /// [`Account::charge`] with the number of boosts and the cost.
    Charge(u64, u64, Account),
    /// [`Account::debt_at`], [`Account::credit_at`] and [`super::account::is_exhausted`] at this number of boosts.
    Look(u64, Seen),
    /// [`Account::key`].
    Key(Key),
    /// The bucket from here on, its interval and its burst.
    Bucket(Bucket, u64, u64),
    /// [`Bucket::take`] at this time: whether it is there, and the bucket after it.
    Take(u64, bool, Bucket),
    /// [`crate::packet::mix`] of the first is the second.
    Mix(u64, u64),
}

/// What is seen of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Debt, ns.
    pub debt_ns: u64,
    /// Credit, ns.
    pub credit_ns: i64,
    /// No credit left.
    pub exhausted: bool,
}

/// Reads a file of cases.
///
/// # Panics
/// When a line is not understood: the file is part of the tests.
#[must_use]
pub fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix("case ") {
            cases.push(Case { name: name.to_owned(), steps: Vec::new() });
        } else if !line.is_empty() {
            let case = cases.last_mut().expect("a case comes first");
            case.steps.push((number, step(line).unwrap_or_else(|| panic!("line {number}: `{line}`"))));
        }
    }
    cases
}

fn step(line: &str) -> Option<Step> {
    let (given, expected) = line.split_once("->").unwrap_or((line, ""));
    let (given, expected) = (words(given), words(expected));
    let boosts = || value(&given, "boosts");
    let account = |of: &[&str]| Some(Account { debt_ns: value(of, "debt")?, boosts: value(of, "boosts")? });
    let full_at = |of: &[&str]| Some(Bucket { full_at_ns: value(of, "full_at")? });
    Some(match *given.first()? {
        "increment" => Step::Increment(value(&given, "ns")?),
        "account" => Step::Account(account(&given)?),
        "new" => Step::New(boosts()?, account(&expected)?),
        "charge" => Step::Charge(boosts()?, value(&given, "cost")?, account(&expected)?),
        "look" => {
            let credit_ns = text(&expected, "credit")?.parse().ok()?;
            let exhausted = is(&expected, "exhausted", "funded")?;
            Step::Look(boosts()?, Seen { debt_ns: value(&expected, "debt")?, credit_ns, exhausted })
        }
        "key" => {
            Step::Key(Key { exponent: value(&expected, "exponent")?, mantissa: hex(text(&expected, "mantissa")?)? })
        }
        "bucket" => Step::Bucket(full_at(&given)?, value(&given, "interval")?, value(&given, "burst")?),
        "take" => Step::Take(value(&given, "now")?, is(&expected, "yes", "no")?, full_at(&expected)?),
        "mix" => Step::Mix(hex(text(&given, "of")?)?, hex(expected.first()?)?),
        _ => return None,
    })
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn text<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn value(words: &[&str], name: &str) -> Option<u64> {
    text(words, name)?.parse().ok()
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Which of two words is there.
fn is(words: &[&str], yes: &str, no: &str) -> Option<bool> {
    match (words.contains(&yes), words.contains(&no)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}
