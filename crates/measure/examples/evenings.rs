//! How often the analysis of `lasthop measure` is right, over made-up evenings whose truth is known: a table in Markdown, or with `--json`
//! the same as JSON. `cargo run --release -p lasthop-measure --example evenings -- 10000`

#[path = "../tests/evening/mod.rs"]
mod evening;

use evening::{CAPACITY_BPS, Evening, naive_z, plan};
use lasthop_measure::findings::{Findings, findings};

/// Effects on waits; the first is none.
const EFFECTS: [f64; 5] = [1.0, 0.9, 0.75, 0.5, 0.1];
/// How uneasy evenings are, and how many pairs they hold.
const KINDS: [(f64, usize); 5] = [(1.0, 8), (1.0, 12), (1.0, 20), (1.0, 30), (2.0, 12)];

struct Row {
    effect: f64,
    pairs: usize,
    unease: f64,
    judged: usize,
    found: f64,
    holds: f64,
    level: f64,
    width: f64,
    naive: f64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let evenings: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let as_json = arguments.next().is_some_and(|flag| flag == "--json");
    let rows: Vec<Row> = KINDS
        .iter()
        .flat_map(|(unease, pairs)| EFFECTS.iter().map(move |effect| row(evenings, *unease, *pairs, *effect)))
        .collect();
    if as_json {
        print_json(&rows, evenings);
    } else {
        print_table(&rows, evenings);
    }
}

fn row(evenings: u64, unease: f64, pairs: usize, effect: f64) -> Row {
    let evening = Evening { effect, unease, ..Evening::USUAL };
    let measured = |seed: u64| -> Findings {
        let plan = plan(pairs, seed.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ 0xabcd);
        findings(&evening.play(&plan, seed), pairs, plan.discard_s, Some(CAPACITY_BPS as u64))
    };
    let all: Vec<_> = (0..evenings).filter_map(|seed| measured(seed).waiting).collect();
    let share = |n: usize| n as f64 / all.len().max(1) as f64;
    let mean = |values: f64| values / all.len().max(1) as f64;
    let usual = plan(pairs, 1);
    let naive = |seed: &u64| naive_z(&evening.play_before_and_after(&usual, *seed), usual.discard_s) > 1.96;
    Row {
        effect,
        pairs,
        unease,
        judged: all.len(),
        found: share(all.iter().filter(|found| found.is_found()).count()),
        holds: share(all.iter().filter(|found| found.low <= effect && effect <= found.high).count()),
        level: mean(all.iter().map(|found| found.level).sum()),
        width: mean(all.iter().map(|found| found.high / found.low).sum()),
        naive: (0..evenings.min(2_000)).filter(naive).count() as f64 / evenings.min(2_000) as f64,
    }
}

fn print_table(rows: &[Row], evenings: u64) {
    println!("{evenings} evenings each; of those before and after at most 2,000.\n");
    println!(
        "| unease | pairs | wait with control | judged | found | interval holds it | its level | high / low | found before and after |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        println!(
            "| {} | {} | {} | {} | {:.1} % | {:.1} % | {:.1} % | {:.2} | {:.1} % |",
            row.unease,
            row.pairs,
            row.effect,
            row.judged,
            row.found * 100.0,
            row.holds * 100.0,
            row.level * 100.0,
            row.width,
            row.naive * 100.0
        );
    }
}

fn print_json(rows: &[Row], evenings: u64) {
    let of = |row: &Row| {
        format!(
            "{{\"unease\": {}, \"pairs\": {}, \"effect\": {}, \"judged\": {}, \"found\": {:.4}, \"holds\": {:.4}, \"level\": {:.4}, \
             \"width\": {:.3}, \"naive\": {:.4}}}",
            row.unease, row.pairs, row.effect, row.judged, row.found, row.holds, row.level, row.width, row.naive
        )
    };
    let rows: Vec<String> = rows.iter().map(of).collect();
    println!("{{\"evenings\": {evenings}, \"rows\": [\n{}\n]}}", rows.join(",\n"));
}
