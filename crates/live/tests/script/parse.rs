//! From the text of a script to its steps; what is wrong is told with file and line.

use std::str::FromStr;

use lasthop_core::fastpath::layout::Plan;
use lasthop_core::packet::Direction;
use lasthop_core::wire::flag;

use crate::expect::{Check, FIELDS, TABLES};
use crate::frame::Over;

/// Explicit congestion notification, beside [`flag`]: ECE and CWR; and URG.
const ECE: u8 = 64;
const CWR: u8 = 128;
const URG: u8 = 32;

/// One file.
#[derive(Debug)]
pub struct Script {
    pub name: String,
    /// At least one.
    pub overs: Vec<Over>,
    pub lines: Vec<Line>,
}

#[derive(Debug)]
pub struct Line {
    pub number: usize,
    /// From the begin of the script.
    pub at_ns: u64,
    pub step: Step,
}

#[derive(Debug)]
pub enum Step {
    Packet(Packet, Verdict),
    Check(Vec<Check>),
    Plan(Direction, Plan),
    Hop { direction: Direction, depth_bytes: u32, rate_bytes: u32 },
    Heartbeat { beats: bool },
    Silent(bool),
    DryRun(bool),
    Epoch(u32),
    Scale(Direction, u8),
}

/// Numbers count from the first of each end.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    pub to_remote: bool,
    pub flags: u8,
    pub seq: u32,
    pub payload: usize,
    pub ack: u32,
    pub window: u16,
    pub options: Vec<TcpOption>,
    pub marks: Vec<Mark>,
}

#[derive(Clone, Debug)]
pub enum TcpOption {
    Mss(u16),
    Scale(u8),
    SackPermitted,
    Timestamps(u32, u32),
    Sack(Vec<(u32, u32)>),
    Nop,
    Md5,
    Ao,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Payload of each segment that was merged, bytes.
    Gso(u32),
    /// Offset in units of 8 bytes.
    Fragment {
        offset: u16,
        more: bool,
    },
    BadChecksum,
    Padding(usize),
    /// The IP header says so many bytes more than there are, or fewer.
    Longer(i16),
}

/// What is to become of a packet.
#[derive(Debug)]
pub enum Verdict {
    /// `Reason::name`, and the window where one is written.
    Named(String, Option<u16>),
    Untouched,
}

type Parsed<T> = Result<T, String>;

pub fn script(name: &str, text: &str) -> Parsed<Script> {
    let mut script = Script { name: name.to_owned(), overs: vec![], lines: vec![] };
    for (number, line) in (1..).zip(text.lines()) {
        parse_line(&mut script, number, line).map_err(|what| format!("{name}:{number}: {what}"))?;
    }
    if script.overs.is_empty() {
        script.overs.push(Over::default());
    }
    Ok(script)
}

fn parse_line(script: &mut Script, number: usize, line: &str) -> Parsed<()> {
    let mut words = Words::of(line);
    let Some(first) = words.peek() else { return Ok(()) };
    if first == "over" {
        words.next();
        script.overs.push(over(&mut words)?);
        return Ok(());
    }
    let before = script.lines.last().map_or(0, |line| line.at_ns);
    let at_ns = if first.starts_with(|c: char| c == '+' || c.is_ascii_digit()) {
        words.next();
        time(first, before)?
    } else {
        before
    };
    if at_ns < before {
        return Err("time goes back".to_owned());
    }
    let step = step(&mut words)?;
    words.end()?;
    script.lines.push(Line { number, at_ns, step });
    Ok(())
}

/// In seconds, with a plus from the line before.
fn time(word: &str, before_ns: u64) -> Parsed<u64> {
    let digits = word.trim_start_matches('+');
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let wrong = || format!("`{word}` is no time in seconds with at most nine decimals");
    let nanos = format!("{part:0<9}");
    let (whole, nanos): (u64, u64) =
        (whole.parse().map_err(|_| wrong())?, nanos.parse().ok().filter(|_| nanos.len() == 9).ok_or_else(wrong)?);
    let from = if word.starts_with('+') { before_ns } else { 0 };
    Ok(from + whole * 1_000_000_000 + nanos)
}

fn step(words: &mut Words<'_>) -> Parsed<Step> {
    let word = words.word("a step")?;
    Ok(match word {
        ">" | "<" => packet(word == ">", words)?,
        "?" => Step::Check(checks(words)?),
        "plan" => Step::Plan(direction(words)?, plan(words)?),
        "hop" => {
            let direction = direction(words)?;
            words.expect("depth")?;
            let depth_bytes = words.number("the depth")?;
            words.expect("rate")?;
            Step::Hop { direction, depth_bytes, rate_bytes: words.number("the rate")? }
        }
        "heartbeat" => Step::Heartbeat { beats: words.either("stops", "beats")? },
        "dry" => Step::DryRun(!words.either("run", "end")?),
        "silent" => Step::Silent(true),
        "heard" => Step::Silent(false),
        "epoch" => Step::Epoch(words.number("the epoch")?),
        "scale" => Step::Scale(direction(words)?, words.number("the scale")?),
        _ => return Err(format!("`{word}` begins no step")),
    })
}

fn direction(words: &mut Words<'_>) -> Parsed<Direction> {
    Ok(if words.either("down", "up")? { Direction::ToRemote } else { Direction::ToStation })
}

fn plan(words: &mut Words<'_>) -> Parsed<Plan> {
    let mut plan = Plan::default();
    while let Some(word) = words.next() {
        let field = match word {
            "clamp" => &mut plan.clamp_bytes,
            "floor" => &mut plan.floor_bytes,
            "growth" => &mut plan.growth_bytes,
            "pace" => &mut plan.pace_bytes,
            _ => return Err(format!("expected clamp, floor, growth or pace, found `{word}`")),
        };
        *field = words.number(word)?;
    }
    Ok(plan)
}

fn over(words: &mut Words<'_>) -> Parsed<Over> {
    let mut over = Over { six: words.either("ipv4", "ipv6")?, ..Over::default() };
    while let Some(word) = words.next() {
        match word {
            "raw" => over.raw = true,
            "vlan" => over.tags.push((0x8100, words.number("the tag")?)),
            "service" => over.tags.push((0x88a8, words.number("the tag")?)),
            "pppoe" => over.pppoe = Some(words.number("the session")?),
            "options" => over.ip_options = words.number("the length of options")?,
            _ => over.push_extension(word)?,
        }
    }
    Ok(over)
}

fn packet(to_remote: bool, words: &mut Words<'_>) -> Parsed<Step> {
    let flags = flags(words.word("flags")?)?;
    let seq: u32 = words.number("the sequence number")?;
    words.expect(":")?;
    let end: u32 = words.number("the end")?;
    words.expect("(")?;
    let payload: u32 = words.number("the length")?;
    words.expect(")")?;
    if seq.wrapping_add(payload) != end {
        return Err(format!("{seq}:{end} is not {payload} bytes long"));
    }
    let mut packet = Packet { to_remote, flags, seq, payload: payload as usize, ..Packet::default() };
    if words.take("ack") {
        packet.ack = words.number("the acknowledgment")?;
    }
    if words.take("win") {
        packet.window = words.number("the window")?;
    }
    if words.take("<") {
        packet.options = list(words, ">", option)?;
    }
    if words.take("[") {
        packet.marks = list(words, "]", mark)?;
    }
    words.expect("=")?;
    Ok(Step::Packet(packet, verdict(words)?))
}

fn verdict(words: &mut Words<'_>) -> Parsed<Verdict> {
    let reason = words.word("a verdict")?;
    if reason == "untouched" {
        return Ok(Verdict::Untouched);
    }
    if reason != "rewritten" {
        return Ok(Verdict::Named(reason.to_owned(), None));
    }
    words.expect("win")?;
    Ok(Verdict::Named(reason.to_owned(), Some(words.number("the window")?)))
}

fn flags(word: &str) -> Parsed<u8> {
    if word == "-" {
        return Ok(0);
    }
    word.chars().try_fold(0, |flags, letter| {
        let bit = match letter {
            'F' => flag::FIN,
            'S' => flag::SYN,
            'R' => flag::RST,
            'P' => flag::PSH,
            '.' => flag::ACK,
            'U' => URG,
            'E' => ECE,
            'W' => CWR,
            _ => return Err(format!("flags are of F, S, R, P, U, E, W and . or - alone, not `{word}`")),
        };
        Ok(flags | bit)
    })
}

fn option(words: &mut Words<'_>) -> Parsed<TcpOption> {
    let word = words.word("an option")?;
    Ok(match word {
        "mss" => TcpOption::Mss(words.number("the segment size")?),
        "wscale" => TcpOption::Scale(words.number("the scale")?),
        "sackOK" => TcpOption::SackPermitted,
        "nop" => TcpOption::Nop,
        "md5" => TcpOption::Md5,
        "ao" => TcpOption::Ao,
        "TS" => {
            words.expect("val")?;
            let value = words.number("the timestamp")?;
            words.expect("ecr")?;
            TcpOption::Timestamps(value, words.number("the echo")?)
        }
        "sack" => {
            let mut blocks = Vec::new();
            while words.peek().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
                let left = words.number("the left edge")?;
                words.expect(":")?;
                blocks.push((left, words.number("the right edge")?));
            }
            TcpOption::Sack(blocks)
        }
        _ => return Err(format!("there is no option `{word}`")),
    })
}

fn mark(words: &mut Words<'_>) -> Parsed<Mark> {
    let word = words.word("a mark")?;
    Ok(match word {
        "gso" => Mark::Gso(words.number("the size of a segment")?),
        "padding" => Mark::Padding(words.number("the padding")?),
        "longer" => Mark::Longer(words.number("the length")?),
        "fragment" => Mark::Fragment { offset: words.number("the offset")?, more: words.take("more") },
        "bad" => {
            words.expect("checksum")?;
            Mark::BadChecksum
        }
        _ => return Err(format!("there is no mark `{word}`")),
    })
}

fn checks(words: &mut Words<'_>) -> Parsed<Vec<Check>> {
    let mut checks = vec![check(words)?];
    while words.take(",") {
        checks.push(check(words)?);
    }
    Ok(checks)
}

fn check(words: &mut Words<'_>) -> Parsed<Check> {
    let word = words.word("what is asked")?;
    if word == "unchanged" {
        return Ok(Check::Unchanged);
    }
    if word == "table" {
        let name = words.word("a table")?;
        let table = TABLES.iter().find(|table| **table == name);
        return table.map(|table| Check::Table(table)).ok_or_else(|| format!("there is no table `{name}`"));
    }
    let (half, name) = match word.split_once('.') {
        Some(("down", name)) => (Direction::ToStation, name),
        Some(("up", name)) => (Direction::ToRemote, name),
        _ => return Err(format!("expected down.FIELD, up.FIELD, table or unchanged, found `{word}`")),
    };
    let field =
        FIELDS.iter().find(|field| field.name == name).ok_or_else(|| format!("there is no `{name}` of a half"))?;
    let value = match words.word("a value")? {
        "unknown" => None,
        "yes" => Some(1),
        "no" => Some(0),
        number => Some(number.parse().map_err(|_| format!("`{number}` is no value"))?),
    };
    Ok(Check::Half { half, field, value })
}

/// Up to the bracket that closes.
fn list<T>(words: &mut Words<'_>, close: &str, one: impl Fn(&mut Words<'_>) -> Parsed<T>) -> Parsed<Vec<T>> {
    let mut all = vec![one(words)?];
    while words.take(",") {
        all.push(one(words)?);
    }
    words.expect(close)?;
    Ok(all)
}

/// The words of a line; each bracket and the like is one.
struct Words<'a> {
    words: std::vec::IntoIter<&'a str>,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Self {
        const ALONE: &[char] = &['(', ')', '<', '>', '[', ']', ',', '=', '?', ':'];
        let line = line.split('#').next().unwrap_or_default();
        let words = line.split_whitespace().flat_map(|part| part.split_inclusive(ALONE)).flat_map(|piece| {
            let cut = piece.len() - usize::from(piece.ends_with(ALONE));
            let (word, mark) = piece.split_at(cut);
            [word, mark].into_iter().filter(|word| !word.is_empty())
        });
        Self { words: words.collect::<Vec<_>>().into_iter() }
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.as_slice().first().copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        self.words.next()
    }

    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        self.next().ok_or_else(|| format!("expected {what}, found the end of the line"))
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Parsed<T> {
        let word = self.word(what)?;
        word.parse().map_err(|_| format!("{what} is no number in range: `{word}`"))
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        if is_next {
            self.next();
        }
        is_next
    }

    fn expect(&mut self, word: &str) -> Parsed<()> {
        match self.next() {
            Some(found) if found == word => Ok(()),
            Some(found) => Err(format!("expected `{word}`, found `{found}`")),
            None => Err(format!("expected `{word}`, found the end of the line")),
        }
    }

    /// False for the first, true for the second.
    fn either(&mut self, first: &str, second: &str) -> Parsed<bool> {
        match self.word(&format!("{first} or {second}"))? {
            word if word == first => Ok(false),
            word if word == second => Ok(true),
            word => Err(format!("expected {first} or {second}, found `{word}`")),
        }
    }

    fn end(&self) -> Parsed<()> {
        self.peek().map_or(Ok(()), |word| Err(format!("`{word}` is too much")))
    }
}
