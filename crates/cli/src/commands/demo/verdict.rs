//! One plain sentence, computed from the figures of the two runs and from nothing else.

use lasthop_command::table::figure;
use lasthop_command::terminal::Tone;
use lasthop_home::report::Report;

use super::pair::Pair;

/// What the two runs showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Better, the same, worse, or no answer.
    pub outcome: Outcome,
    /// The same in words.
    pub text: String,
}

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The game waits less and the download keeps its speed.
    Better,
    /// The game waits less and the download pays for it.
    BetterAtACost,
    /// Nothing to tell apart.
    NoDifference,
    /// The game waits longer with control.
    Worse,
    /// The runs cannot be compared.
    NoAnswer,
}

/// A download that keeps this share of its goodput has kept its speed (the aim is 0.95).
const KEPT: f64 = 0.95;
/// Waiting that changed by less than this, ms and as a share, has not changed: the runs do not repeat packet by packet.
const NOTICEABLE_MS: f64 = 1.0;
const NOTICEABLE_SHARE: f64 = 0.2;

impl Verdict {
    /// How good that is.
    pub fn tone(&self) -> Tone {
        match self.outcome {
            Outcome::Better => Tone::Good,
            Outcome::BetterAtACost | Outcome::NoDifference => Tone::Caution,
            Outcome::Worse | Outcome::NoAnswer => Tone::Bad,
        }
    }

    /// The verdict over the rest of the download; `invalid` says why a run does not count.
    pub fn of(pair: Pair<'_>, invalid: Option<&str>) -> Self {
        let kept = download_kept(pair);
        let (outcome, text) = match (invalid, worst_added(pair.off), worst_added(pair.on), kept) {
            (Some(why), ..) => (Outcome::NoAnswer, format!("These figures do not count: {why}.")),
            (None, Some(off), Some(on), Some(kept)) if lowered_nothing(pair.on) => (
                Outcome::NoDifference,
                format!("Control found nothing to do: it lowered no window. {}", bare(off, on, kept)),
            ),
            (None, Some(off), Some(on), Some(kept)) => sentence(off, on, kept),
            (None, _, _, None) => {
                (Outcome::NoAnswer, "No verdict: the download moved nothing in at least one of the two runs.".into())
            }
            _ => (Outcome::NoAnswer, "No verdict: no game packet arrived in at least one of the two runs.".into()),
        };
        Self { outcome, text }
    }
}

/// The figures without a judgement.
fn bare(off: f64, on: f64, kept: f64) -> String {
    format!(
        "99 of 100 game packets waited in queues at most {} ms in the first run and {} ms in the second, in which the \
         download ran at {:.0} % of the first one's speed.",
        figure(off),
        figure(on),
        kept * 100.0
    )
}

/// A controller ran and had no reason to touch anything.
fn lowered_nothing(on: &Report) -> bool {
    on.control.as_ref().is_some_and(|control| control.rewritten == 0)
}

fn sentence(off: f64, on: f64, kept: f64) -> (Outcome, String) {
    let percent = format!("{:.0} %", kept * 100.0);
    let change = off - on;
    let noticeable = change.abs() >= NOTICEABLE_MS && change.abs() >= NOTICEABLE_SHARE * off.max(on);
    let speed = |but: &str| match kept {
        k if k >= 1.05 => format!("while the download ran at {percent} of its speed without"),
        k if k >= KEPT => format!("while the download kept {percent} of its speed"),
        _ => format!("{but} the download kept only {percent} of its speed"),
    };
    let waited = |ms: f64| format!("{} ms", figure(ms));
    if !noticeable {
        let text = format!(
            "Control made no difference to the game: 99 of 100 of its packets waited in queues at most {} with it and \
             {} without, {}.",
            waited(on),
            waited(off),
            speed("and")
        );
        return (Outcome::NoDifference, text);
    }
    if change < 0.0 {
        let text = format!(
            "Control made it worse here: 99 of 100 game packets waited in queues at most {} with it and {} without, {}.",
            waited(on),
            waited(off),
            speed("and")
        );
        return (Outcome::Worse, text);
    }
    let outcome = if kept >= KEPT { Outcome::Better } else { Outcome::BetterAtACost };
    let text = format!(
        "With control, 99 of 100 game packets waited in queues at most {} instead of {}, {}.",
        waited(on),
        waited(off),
        speed("but")
    );
    (outcome, text)
}

/// The worst p99 of added delay among the game's flows, ms.
fn worst_added(report: &Report) -> Option<f64> {
    let games = report.flows.iter().filter(|f| f.kind.starts_with("game"));
    games.filter_map(|f| f.metrics.added_delay).map(|d| d.p99).reduce(f64::max)
}

/// Goodput of all downloads with control over that without, 1 = the same.
fn download_kept(pair: Pair<'_>) -> Option<f64> {
    let goodput = |report: &Report| -> f64 {
        report.flows.iter().filter(|f| f.kind == "ftp").map(|f| f.metrics.goodput_bps).sum()
    };
    let (off, on) = (goodput(pair.off), goodput(pair.on));
    (off > 0.0 && on > 0.0).then(|| on / off)
}

#[cfg(test)]
mod tests {
    use lasthop_home::report::Metrics;

    use super::super::pair::tests::{added, flow, report};
    use super::*;

    fn home(game_added: Option<f64>, download: f64) -> Report {
        let game = |ms: Option<f64>| Metrics { added_delay: ms.and_then(added), ..Metrics::default() };
        report(vec![
            flow("game-down", "game-server", game(game_added)),
            flow("game-up", "game-client", game(game_added.map(|ms| ms / 4.0))),
            flow("ftp", "ftp", Metrics { goodput_bps: download, ..Metrics::default() }),
        ])
    }

    fn verdict(off: &Report, on: &Report, invalid: Option<&str>) -> Verdict {
        Verdict::of(Pair { off, on }, invalid)
    }

    #[test]
    fn less_waiting_at_full_speed_is_better() {
        let v = verdict(&home(Some(88.2), 20e6), &home(Some(6.71), 19.6e6), None);
        assert_eq!(v.outcome, Outcome::Better);
        assert_eq!(
            v.text,
            "With control, 99 of 100 game packets waited in queues at most 6.71 ms instead of 88.2 ms, while the \
             download kept 98 % of its speed."
        );
    }

    #[test]
    fn a_price_paid_by_the_download_is_named() {
        let v = verdict(&home(Some(88.2), 20e6), &home(Some(4.0), 15e6), None);
        assert_eq!(v.outcome, Outcome::BetterAtACost);
        assert!(v.text.ends_with("but the download kept only 75 % of its speed."), "{}", v.text);
    }

    #[test]
    fn no_difference_and_worse_are_said_as_they_are() {
        assert_eq!(verdict(&home(Some(5.2), 1e6), &home(Some(5.0), 1e6), None).outcome, Outcome::NoDifference);
        let worse = verdict(&home(Some(5.0), 1e6), &home(Some(50.0), 1e6), None);
        assert_eq!(worse.outcome, Outcome::Worse);
        assert!(worse.text.starts_with("Control made it worse here"), "{}", worse.text);
    }

    #[test]
    fn an_invalid_run_or_an_empty_one_gets_no_verdict() {
        let v = verdict(&home(Some(88.2), 20e6), &home(Some(6.7), 20e6), Some("the machine was too busy"));
        assert_eq!(
            (v.outcome, v.text.as_str()),
            (Outcome::NoAnswer, "These figures do not count: the machine was too busy.")
        );
        assert_eq!(verdict(&home(None, 1e6), &home(Some(1.0), 1e6), None).outcome, Outcome::NoAnswer);
        assert_eq!(verdict(&home(Some(1.0), 0.0), &home(Some(1.0), 1e6), None).outcome, Outcome::NoAnswer);
    }
}
