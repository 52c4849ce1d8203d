//! Sweeps with a simulator that answers at once.

use std::path::Path;

use clap::Parser as _;

use super::*;

const HOME: &str = r#"
format = 1
name = "small"
duration = "4s"
seed = 3
[[server]]
name = "W"
[wifi]
[[station]]
name = "N"
[[flow]]
name = "film"
from = "W"
to = "N"
kind = "ftp"
"#;

#[derive(clap::Parser)]
struct Typed {
    #[command(flatten)]
    arguments: Arguments,
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("home.toml"), HOME).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// `lasthop sweep home.toml -o NAME ..` with a simulator of ours.
    fn sweep_with(
        &self,
        name: &str,
        typed: &[&str],
        simulate: impl Fn(&Scenario) -> Result<Report, SimError> + Sync,
    ) -> Outcome {
        let (home, output) = (self.file("home.toml"), self.file(name));
        let fixed = [Path::new("sweep"), &home, Path::new("-o"), &output].map(|p| p.to_str().unwrap().to_owned());
        let all = ["--figures", "all"].map(str::to_owned);
        let all = all.into_iter().filter(|_| !typed.contains(&"--figures"));
        let typed = fixed.into_iter().chain(all).chain(typed.iter().map(|t| (*t).to_owned()));
        let arguments = Typed::try_parse_from(typed).unwrap().arguments;
        sweep(&arguments, &Stop::never(), &AtomicBool::new(false), simulate)
    }

    fn sweep(&self, name: &str, typed: &[&str]) -> Outcome {
        self.sweep_with(name, typed, answer)
    }
}

fn answer(scenario: &Scenario) -> Result<Report, SimError> {
    Ok(report(scenario, scenario.duration.as_nanos() / 1_000_000 + scenario.seed))
}

/// Without the one metric that is another each time.
fn report(scenario: &Scenario, figure: u64) -> Report {
    let mut report = fake::report(&scenario.name, scenario.seed, figure);
    report.run.wall_s = 0.25;
    report
}

fn refusal(outcome: Outcome) -> String {
    match outcome {
        Err(Failure::Request(cause)) => lasthop_command::exit::chain(&*cause),
        other => panic!("{other:?}"),
    }
}

const TWO: [&str; 6] = ["--vary", "duration=4s,5s", "--seeds", "10", "-j", "2"];

#[test]
fn rows_stand_in_the_order_of_the_runs_whoever_is_first() {
    let folder = Folder::new();
    let uneven = |scenario: &Scenario| {
        (0..scenario.seed * 7 % 5 * 1000).for_each(|_| std::thread::yield_now());
        answer(scenario)
    };
    folder.sweep_with("a.csv", &TWO, uneven).unwrap();
    let text = folder.text("a.csv");
    let starts: Vec<&str> = text.lines().map(|line| &line[..line.find(",1,").unwrap_or(13)]).collect();
    assert_eq!(starts[0], "duration,seed");
    let expected: Vec<String> = ["4s", "5s"].iter().flat_map(|d| (3..13).map(move |s| format!("{d},{s}"))).collect();
    assert_eq!(starts[1..], expected);
    folder.sweep("b.csv", &["--vary", "duration=4s,5s", "--seeds", "10", "-j", "1"]).unwrap();
    assert_eq!(text, folder.text("b.csv"));
}

#[test]
fn a_file_cut_anywhere_grows_to_what_it_would_have_been() {
    for name in ["a.csv", "a.jsonl"] {
        let folder = Folder::new();
        folder.sweep(name, &TWO).unwrap();
        let whole = folder.text(name);
        for cut in [0, 1, 20, whole.len() / 3, whole.len() / 2, whole.len() - 1, whole.len()] {
            std::fs::write(folder.file(name), &whole[..cut]).unwrap();
            folder.sweep(name, &TWO).unwrap();
            assert!(folder.text(name) == whole, "{name} cut at {cut}");
        }
    }
}

#[test]
fn rows_missing_in_the_middle_are_done_and_stand_in_their_place() {
    for name in ["a.csv", "a.jsonl"] {
        let folder = Folder::new();
        folder.sweep(name, &TWO).unwrap();
        let whole = folder.text(name);
        let kept: Vec<&str> =
            whole.lines().enumerate().filter(|(i, _)| ![4, 5, 11].contains(i)).map(|(_, l)| l).collect();
        std::fs::write(folder.file(name), kept.join("\n") + "\n").unwrap();
        let done = std::sync::Mutex::new(0);
        folder
            .sweep_with(name, &TWO, |scenario| {
                *done.lock().unwrap() += 1;
                answer(scenario)
            })
            .unwrap();
        assert_eq!(*done.lock().unwrap(), 4, "three that are missing, and the last one as a check");
        assert!(folder.text(name) == whole, "{name}");
    }
}

#[test]
fn more_seeds_and_values_may_be_added() {
    let folder = Folder::new();
    folder.sweep("a.csv", &["--vary", "duration=4s,5s", "--seeds", "3"]).unwrap();
    folder.sweep("a.csv", &["--vary", "duration=4s,7s,5s", "--seeds", "5"]).unwrap();
    folder.sweep("b.csv", &["--vary", "duration=4s,7s,5s", "--seeds", "5"]).unwrap();
    assert_eq!(folder.text("a.csv"), folder.text("b.csv"));
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    for name in ["a.csv", "a.jsonl"] {
        let folder = Folder::new();
        folder.sweep(name, &TWO).unwrap();
        let whole = folder.text(name);
        let refused = |typed: &[&str], why: &str| {
            let message = refusal(folder.sweep(name, typed));
            assert!(message.contains(why) && message.contains("--restart"), "{message}");
            assert!(folder.text(name) == whole, "{name}: {message}");
        };
        refused(&["--vary", "wifi.attempts=2,3"], "varies duration, and this sweep varies wifi.attempts");
        refused(&["--vary", "duration=4s,5s", "--vary", "wifi.attempts=2,3"], "varies duration, and");
        refused(&["--seeds", "10"], "nothing but seeds");
        refused(&["--vary", "duration=4s", "--seeds", "10"], "duration=5s, seed=3");
        refused(&["--vary", "duration=4s,5s", "--seeds", "9"], "seed=12");
        refused(&["--vary", "duration=4s,5s", "--seeds", "10", "--set", "name=other"], "`scenario`");

        let other = |scenario: &Scenario| Ok(report(scenario, 1));
        let message = refusal(folder.sweep_with(name, &TWO, other));
        assert!(
            message.contains("seed=12") && message.contains("flows.ftp.") && message.contains("--restart"),
            "{message}"
        );
        std::fs::write(folder.file(name), whole.replace(REVISION, "other")).unwrap();
        assert!(refusal(folder.sweep(name, &TWO)).contains("run.revision"));
        std::fs::write(folder.file(name), "no,row\nat,all\n").unwrap();
        assert!(refusal(folder.sweep(name, &TWO)).contains("--restart"));
        folder.sweep(name, &[&TWO[..], &["--restart"]].concat()).unwrap();
        assert!(folder.text(name) == whole);
    }
}

#[test]
fn a_row_that_is_there_twice_is_refused() {
    let folder = Folder::new();
    folder.sweep("a.jsonl", &TWO).unwrap();
    let text = folder.text("a.jsonl");
    let first = text.lines().next().unwrap();
    std::fs::write(folder.file("a.jsonl"), format!("{text}{first}\n")).unwrap();
    let message = refusal(folder.sweep("a.jsonl", &TWO));
    assert!(message.contains("a.jsonl:21: has duration=4s, seed=3 once more"), "{message}");
}

#[test]
fn a_run_that_fails_is_named_and_the_others_are_kept() {
    let folder = Folder::new();
    for panics in [false, true] {
        let _ = std::fs::remove_file(folder.file("a.csv"));
        let outcome = folder.sweep_with("a.csv", &TWO, |scenario| match scenario.seed {
            8 if panics => panic!("a bug"),
            8 => Err(SimError::Write(std::io::Error::other("no room"))),
            _ => answer(scenario),
        });
        let Err(Failure::Work(error)) = outcome else { panic!("{outcome:?}") };
        let message = lasthop_command::exit::chain(&*error);
        assert!(message.contains("duration=4s, seed=8: "), "{message}");
        assert!(message.contains(if panics { "broke: a bug" } else { "no room" }), "{message}");
        assert!(folder.text("a.csv").lines().count() > 5, "headings and the five before it");
    }
    folder.sweep("a.csv", &TWO).unwrap();
    folder.sweep("b.csv", &TWO).unwrap();
    assert_eq!(folder.text("a.csv"), folder.text("b.csv"));
}

#[test]
fn a_csv_file_gets_a_column_when_a_row_needs_it_and_goes_on_after_a_cut() {
    let folder = Folder::new();
    let changing = |scenario: &Scenario| {
        let mut report = report(scenario, scenario.seed);
        let more = report.flows[0].clone();
        for i in 0..scenario.seed / 5 {
            report.flows.push(lasthop_home::report::FlowReport { name: format!("more{i}"), ..more.clone() });
        }
        Ok(report)
    };
    folder.sweep_with("a.csv", &TWO, changing).unwrap();
    let whole = folder.text("a.csv");
    let columns: Vec<usize> = whole.lines().map(|line| form::fields(line.as_bytes()).unwrap().len()).collect();
    assert!(columns.iter().all(|n| *n == columns[0]), "{columns:?}");
    assert!(whole.lines().next().unwrap().ends_with("flows.more1.start_up.loss_rate"));
    let ends = whole.match_indices('\n').map(|(at, _)| at);
    for cut in ends.step_by(4).flat_map(|at| [at - 3, at + 1]) {
        std::fs::write(folder.file("a.csv"), &whole[..cut]).unwrap();
        folder.sweep_with("a.csv", &TWO, changing).unwrap();
        assert!(folder.text("a.csv") == whole, "cut at {cut}");
    }
    let leftovers = std::fs::read_dir(folder.0.path()).unwrap().count();
    assert_eq!(leftovers, 2, "the scenario and the rows");
}

#[test]
fn only_the_figures_that_were_chosen_are_written_and_others_are_not_added_to_them() {
    let folder = Folder::new();
    let chosen = |names| [&TWO[..], &["--figures", names]].concat();
    for name in ["a.csv", "a.jsonl"] {
        folder.sweep(name, &chosen("ftp.goodput,AP.dropped")).unwrap();
        let text = folder.text(name);
        let columns = ["duration", "seed", "scenario", "run.revision", "flows.ftp.goodput_bps", "queues.AP.dropped"];
        if name == "a.csv" {
            assert_eq!(text.lines().next().unwrap(), columns.join(","));
        } else {
            let row: serde_json::Map<_, _> = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            assert_eq!(row.keys().collect::<Vec<_>>(), columns);
        }
        folder.sweep(name, &chosen("ftp.goodput,AP.dropped")).unwrap();
        let message = refusal(folder.sweep(name, &chosen("ftp.goodput,AP.dropped,ftp.sent")));
        assert!(message.contains("flows.ftp.sent") && message.contains("--restart"), "{message}");
        assert_eq!(folder.text(name), text);
    }
    let outcome = folder.sweep("b.csv", &chosen("ftp.goodptu"));
    assert!(refusal(outcome).contains("near it are ftp.goodput_bps"));
    assert!(!folder.file("b.csv").exists());
}

#[test]
fn a_wrong_combination_is_found_before_anything_runs() {
    let folder = Folder::new();
    let outcome = folder.sweep_with("a.csv", &["--vary", "wifi.attempts=1,2,many"], |_| panic!("nothing runs"));
    let message = refusal(outcome);
    assert!(message.contains("with wifi.attempts=many: ") && message.contains("wifi.attempts"), "{message}");
    assert!(!folder.file("a.csv").exists());
}

#[test]
fn a_file_that_is_being_written_is_left_alone() {
    let folder = Folder::new();
    let _first = Results::open(&folder.file("a.csv"), Form::Csv, false).unwrap();
    let outcome = folder.sweep("a.csv", &TWO);
    assert!(
        matches!(&outcome, Err(Failure::Work(error)) if error.to_string().contains("another sweep")),
        "{outcome:?}"
    );
}
