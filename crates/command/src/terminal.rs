//! What the reader's terminal can show: how wide lines may be, and colours where they are wanted.
//!
//! Colours come on a terminal only, and neither with `NO_COLOR` (<https://no-color.org>: set and not empty) nor with `TERM=dumb`;
//! `CLICOLOR_FORCE` (set and not `0`) brings them into pipes and files, too. A colour never says what words do not.
//!
//! Own lines in place of a crate: the router's program has these three colours and no other use for one.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Columns where nobody says how many there are.
pub const USUAL_WIDTH: usize = 80;
/// Wider lines are hard to read, narrower ones hold no table.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=100;

/// What something amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be: green.
    Good,
    /// To be looked at: yellow.
    Caution,
    /// Not as it should be: red and bold.
    Bad,
}

/// How to write for the reader of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns that a line may have.
    pub width: usize,
    /// Whether colours are wanted.
    pub colour: bool,
}

impl Look {
    /// Of stdout, as it is now.
    #[must_use]
    pub fn stdout() -> Self {
        Self::of(&io::stdout())
    }

    /// Of stderr, as it is now.
    #[must_use]
    pub fn stderr() -> Self {
        Self::of(&io::stderr())
    }

    /// For files and pipes.
    #[must_use]
    pub const fn plain() -> Self {
        Self { width: USUAL_WIDTH, colour: false }
    }

    fn of(output: &(impl IsTerminal + AsFd)) -> Self {
        let terminal = output.is_terminal();
        let columns = if terminal { rustix::termios::tcgetwinsize(output).ok() } else { None };
        let columns = columns.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        let width = columns.map_or(USUAL_WIDTH, |columns| columns.clamp(*WIDTHS.start(), *WIDTHS.end()));
        let variable = |name: &str| std::env::var_os(name);
        Self { width, colour: wants_colour(terminal, variable) }
    }

    /// `text` in the colour of `tone`, where colours are wanted.
    #[must_use]
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Caution => "33",
            Tone::Bad => "1;31",
        };
        // Line by line, so that a pager that shows a part of it has the colour right.
        let lines: Vec<String> = text.split('\n').map(|line| painted(code, line)).collect();
        lines.join("\n")
    }
}

fn painted(code: &str, line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("\x1b[{code}m{line}\x1b[0m") }
}

fn wants_colour<V: AsRef<OsStr>>(terminal: bool, variable: impl Fn(&str) -> Option<V>) -> bool {
    let is = |name: &str, of: fn(&OsStr) -> bool| variable(name).is_some_and(|value| of(value.as_ref()));
    if is("NO_COLOR", |value| !value.is_empty()) {
        return false;
    }
    is("CLICOLOR_FORCE", |value| !value.is_empty() && value != "0") || terminal && is("TERM", |value| value != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_on_terminals_that_have_them_unless_they_are_not_wanted() {
        for (terminal, variables, wanted) in [
            (true, &[("TERM", "xterm")][..], true),
            (false, &[("TERM", "xterm")], false),
            (true, &[], false),
            (true, &[("TERM", "dumb")], false),
            (true, &[("TERM", "xterm"), ("NO_COLOR", "1")], false),
            (true, &[("TERM", "xterm"), ("NO_COLOR", "")], true),
            (false, &[("CLICOLOR_FORCE", "1")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ] {
            let of = |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
            assert_eq!(wants_colour(terminal, of), wanted, "{terminal} {variables:?}");
        }
    }

    #[test]
    fn what_is_painted_says_the_same() {
        let look = Look { width: 80, colour: true };
        assert_eq!(look.paint(Tone::Good, "ok\n"), "\x1b[32mok\x1b[0m\n");
        assert_eq!(Look::plain().paint(Tone::Bad, "missing"), "missing");
    }
}
