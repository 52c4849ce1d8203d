//! Settings tried: a transfer of no message, written to or read from the device's storage by the code that fetches and
//! sends.

use super::advise::{Candidate, MESSAGE_BYTES, Tried};
use super::law::Direction;
use super::path::drain;
use super::storage::{Nameless, median};
use super::{Pace, TuneError};
use crate::account::Account;
use crate::client::ClientError;
use crate::protocol::{Reply, Request, TcpMetrics};
use crate::transfer::{self, Hash, ReceiveError, Receiver};
use crate::tuning::Tuning;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Rounds in which all candidates are tried, when there is time.
const ROUNDS: usize = 3;
/// Fewest bytes of a transfer, and most of one that is read; those that are written share theirs, since flash wears.
const FEWEST_BYTES: f64 = 65_536.0;
const MOST_BYTES: f64 = 8_388_608.0;
const MOST_WRITTEN: f64 = 16_777_216.0;
/// A transfer that takes so much longer than expected is cut, and judged by what it has carried.
const PATIENCE: f64 = 2.0;

/// One transfer.
struct Run {
    /// What it would have taken for a message, in seconds.
    seconds: f64,
    tcp: Option<TcpMetrics>,
}

/// Tries all candidates in turns, for about `share`.
///
/// # Errors
/// [`TuneError`].
pub fn try_all(
    account: &Account,
    direction: Direction,
    candidates: &[Candidate],
    file: &mut Nameless,
    share: Duration,
    pace: &mut Pace<'_>,
) -> Result<Vec<Tried>, TuneError> {
    let since = Instant::now();
    let most = match direction {
        Direction::Fetch => MOST_WRITTEN / (ROUNDS * candidates.len()) as f64,
        Direction::Send => MOST_BYTES,
    };
    let plan = Plan::new(candidates, share.as_secs_f64(), pace.connecting_s(), most);
    let mut runs: Vec<Vec<Run>> = candidates.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        // There and back again, so that what changes slowly changes for all.
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for i in order {
            let expected = plan.expected_s(&candidates[i]) + pace.connecting_s();
            let left = share.saturating_sub(since.elapsed()).min(pace.left()).as_secs_f64();
            if round > 0 && expected > left || pace.left().as_secs_f64() < expected.min(0.5) {
                continue;
            }
            pace.says(&format!("{direction}: {}, try {} of {}", candidates[i].idea, round + 1, plan.rounds));
            let limit = Duration::from_secs_f64(expected * PATIENCE + 0.3).min(pace.left());
            runs[i].push(run(account, direction, &candidates[i], plan.bytes, file, limit, pace)?);
        }
    }
    Ok(candidates.iter().zip(runs).map(|(candidate, runs)| tried(candidate, plan.bytes, &runs)).collect())
}

/// How much is tried how often.
struct Plan {
    bytes: u64,
    rounds: usize,
}

impl Plan {
    /// As many rounds as fit with the fewest bytes, and as many bytes as fit with these rounds, at most `most`.
    fn new(candidates: &[Candidate], share_s: f64, connecting_s: f64, most: f64) -> Self {
        let per_byte: f64 = candidates.iter().map(|one| 1.0 / one.limits.together).sum();
        let besides: f64 = candidates.iter().map(|one| one.limits.first_packet_s + connecting_s).sum();
        let rounds = (share_s / (per_byte * FEWEST_BYTES + besides)).clamp(1.0, ROUNDS as f64) as usize;
        let bytes = (share_s / rounds as f64 - besides) / per_byte;
        Self { bytes: bytes.clamp(FEWEST_BYTES, most.max(FEWEST_BYTES)) as u64, rounds }
    }

    fn expected_s(&self, candidate: &Candidate) -> f64 {
        candidate.limits.seconds(self.bytes as f64)
    }
}

fn tried(candidate: &Candidate, bytes: u64, runs: &[Run]) -> Tried {
    let of = |figure: &dyn Fn(&TcpMetrics) -> f64| {
        let mut all: Vec<f64> = runs.iter().filter_map(|run| run.tcp.as_ref().map(figure)).collect();
        if all.is_empty() { 0.0 } else { median(&mut all) }
    };
    Tried {
        candidate: *candidate,
        bytes,
        seconds: runs.iter().map(|run| run.seconds).collect(),
        loaded_rtt_s: of(&|tcp| f64::from(tcp.srtt_us) / 1e6),
        window_limited: of(&|tcp| tcp.window_limited_us as f64 / tcp.busy_us.max(1) as f64),
    }
}

fn run(
    account: &Account,
    direction: Direction,
    candidate: &Candidate,
    bytes: u64,
    file: &mut Nameless,
    limit: Duration,
    pace: &mut Pace<'_>,
) -> Result<Run, TuneError> {
    file.rewind()?;
    let ran = match direction {
        Direction::Fetch => fetch(account, &candidate.tuning, bytes, file, limit, pace)?,
        Direction::Send => send(account, &candidate.tuning, bytes, file, limit, pace)?,
    };
    Ok(Run { seconds: ran.for_message(), tcp: ran.tcp })
}

/// How a transfer went.
struct Ran {
    bytes: f64,
    seconds: f64,
    /// Bytes per second when it had begun: what goes on for as long as the message does.
    pace: f64,
    /// The sender's, when it came to an end.
    tcp: Option<TcpMetrics>,
}

impl Ran {
    /// What a message would have taken: what has a beginning is paid once.
    fn for_message(&self) -> f64 {
        if self.bytes >= MESSAGE_BYTES || !self.pace.is_finite() || self.pace <= 0.0 {
            return self.seconds * MESSAGE_BYTES / self.bytes.max(1.0);
        }
        self.seconds + (MESSAGE_BYTES - self.bytes) / self.pace
    }
}

fn fetch(
    account: &Account,
    tuning: &Tuning,
    bytes: u64,
    file: &mut Nameless,
    limit: Duration,
    pace: &mut Pace<'_>,
) -> Result<Ran, TuneError> {
    let mut session = pace.open(account, tuning.receiver.buffer, limit)?;
    session.channel().prepare_receiver(&tuning.receiver).map_err(ClientError::Lost)?;
    let since = Instant::now();
    let source = Request::Source { millis: 2 * limit.as_millis() as u32, bytes, sender: tuning.sender };
    session.say(&source).map_err(|error| pace.told(error))?;
    let mut receiver = Receiver::new(&mut *file, &tuning.receiver, 0, bytes, Hash::new());
    let (mut going, mut begun) = (Ok(()), None::<(f64, u64)>);
    let ended = transfer::receive::<Reply, _>(session.channel(), &mut receiver, &mut |progress| {
        if progress.bytes >= bytes / 3 {
            begun.get_or_insert_with(|| (since.elapsed().as_secs_f64(), progress.bytes));
        }
        going = pace.go_on();
        if going.is_err() || since.elapsed() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    going?;
    let tcp = match ended {
        Ok(Reply::Sent { tcp }) => Some(tcp),
        Err(ReceiveError::Stopped) => None,
        Ok(Reply::Refused(refusal)) => return Err(ClientError::Refused(refusal).into()),
        Ok(_) => return Err(ClientError::Unexpected("something else than `Sent`").into()),
        Err(ReceiveError::Channel(error)) => match session.failed(error) {
            error if pace.is_cut(&error) => None,
            error => return Err(pace.told(error)),
        },
        Err(ReceiveError::Storage(error)) => return Err(error.into()),
        Err(ReceiveError::OutOfPlace { .. } | ReceiveError::TooMuch) => {
            return Err(ClientError::Unexpected("a packet").into());
        }
    };
    let (seconds, bytes) = (since.elapsed().as_secs_f64(), receiver.progress().bytes);
    let (at, before) = begun.filter(|(_, before)| *before < bytes).unwrap_or((0.0, 0));
    Ok(Ran { bytes: bytes as f64, seconds, pace: (bytes - before) as f64 / (seconds - at), tcp })
}

fn send(
    account: &Account,
    tuning: &Tuning,
    bytes: u64,
    file: &mut Nameless,
    limit: Duration,
    pace: &mut Pace<'_>,
) -> Result<Ran, TuneError> {
    let mut session = pace.open(account, None, limit)?;
    session.channel().prepare_sender(&tuning.sender).map_err(ClientError::Lost)?;
    let since = Instant::now();
    session.say(&Request::Sink { receiver: tuning.receiver }).map_err(|error| pace.told(error))?;
    let (bytes, after_first_s) = drain(&mut session, file, bytes, &tuning.sender, limit, pace)?;
    let seconds = since.elapsed().as_secs_f64();
    let tcp = session.channel().metrics().map_err(ClientError::Lost)?;
    let after_first = bytes - (tuning.sender.packet.bytes() as f64).min(bytes);
    Ok(Ran { bytes, seconds, pace: after_first / after_first_s, tcp: Some(tcp) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::advise::Idea;
    use crate::tune::law::{Cost, Path, limits};
    use crate::tuning::quantity::PacketSize;
    use crate::tuning::{End, Tuning};
    use proptest::prelude::*;

    fn ran(bytes: f64, seconds: f64, pace: f64) -> f64 {
        Ran { bytes, seconds, pace, tcp: None }.for_message()
    }

    #[test]
    fn the_beginning_is_paid_once_and_the_pace_holds_for_the_rest() {
        assert!((ran(250e3, 1.0, 500e3) - 2.5).abs() < 1e-9);
        assert!((ran(4e6, 8.0, 1.0) - 2.0).abs() < 1e-9, "a transfer that is longer than the message needs no pace");
        for unknown in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert!((ran(250e3, 1.0, unknown) - 4.0).abs() < 1e-9);
        }
        assert!(ran(0.0, 1.0, 0.0).is_finite());
    }

    proptest! {
        #[test]
        fn what_is_planned_fits_into_its_time_unless_even_the_least_does_not(
            (rate, air) in (1e3..1e9_f64, 1e3..1e9_f64),
            (share, connecting, most) in (0.1..20.0_f64, 0.0..0.3_f64, 1e5..1e7_f64),
            powers in proptest::collection::vec(9..=20_u32, 1..6),
        ) {
            let all: Vec<Candidate> = powers.into_iter().map(|power| {
                let end = End { packet: PacketSize::new(1 << power).unwrap(), ..End::default() };
                let tuning = Tuning { sender: end, receiver: end };
                let path = Path { rtt_s: 0.003, air, kernel_window: 1e6 };
                let limits = limits(Direction::Fetch, &tuning, &Cost { operation_s: 0.001, rate }, &path);
                Candidate { idea: Idea::Packet, tuning, limits }
            }).collect();
            let plan = Plan::new(&all, share, connecting, most);
            let round: f64 = all.iter().map(|one| plan.expected_s(one) + connecting).sum();
            prop_assert!((1..=ROUNDS).contains(&plan.rounds) && plan.bytes as f64 <= most.max(FEWEST_BYTES));
            prop_assert!(plan.rounds as f64 * round <= share * 1.001 || plan.bytes as f64 <= FEWEST_BYTES);
        }
    }
}
