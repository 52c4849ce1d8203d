//! What the path carries when no storage is in the way: round trip, and rate down and up with nothing set.

use super::advise::PathLoad;
use super::law::Path;
use super::{Pace, TuneError};
use crate::account::Account;
use crate::channel::Incoming;
use crate::client::{ClientError, Session};
use crate::protocol::{Reply, Request, TcpMetrics};
use crate::transfer::{self, Hash, SendError};
use crate::tuning::{End, Tuning, socket};
use rustix::net::sockopt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long nothing may come.
pub const IDLE: Duration = Duration::from_secs(5);
/// Pings, at most.
const PINGS: u64 = 30;
/// How many times as long as planned a way may take: what has been sent must come, too.
const PATIENCE: f64 = 2.0;
/// Of the time down, what is left out at the beginning: slow start.
const WARM_UP: f64 = 0.25;
/// Bytes of each direction, at most: what a server sends or takes for a measurement is bounded.
const MOST_BYTES: u64 = 1 << 30;
/// The kernel books so much of a buffer for each byte that it lets come or go.
const BOOKED: f64 = 2.0;
/// Data that Linux's receive buffer begins with.
const LEAST_WINDOW: f64 = 65_535.0;

/// Least round trip of the application, in seconds, and its median.
///
/// # Errors
/// [`TuneError`].
pub fn round_trip(account: &Account, limit: Duration, pace: &mut Pace<'_>) -> Result<(f64, f64), TuneError> {
    let mut session = pace.open(account, None, pace.left())?;
    let (since, mut all) = (Instant::now(), Vec::new());
    for number in 0..PINGS {
        pace.go_on()?;
        let sent = Instant::now();
        match session.ask(&Request::Ping(number)).map_err(|error| pace.told(error))? {
            Reply::Pong(back) if back == number => all.push(sent.elapsed().as_secs_f64()),
            _ => return Err(ClientError::Unexpected("something else than `Pong`").into()),
        }
        if since.elapsed() > limit {
            break;
        }
    }
    session.close();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min).max(1e-6);
    Ok((least, super::storage::median(&mut all)))
}

/// The direction down: `Source` for `limit`, nothing written.
///
/// # Errors
/// [`TuneError`].
pub fn down(account: &Account, rtt_s: f64, limit: Duration, pace: &mut Pace<'_>) -> Result<PathLoad, TuneError> {
    let mut session = pace.open(account, None, limit.mul_f64(PATIENCE))?;
    let sender = End::default();
    let source = Request::Source { millis: limit.as_millis() as u32, bytes: MOST_BYTES, sender };
    session.say(&source).map_err(|error| pace.told(error))?;
    let (since, mut all, mut warm) = (Instant::now(), 0_u64, None::<(Instant, u64)>);
    let tcp = loop {
        pace.go_on()?;
        match session.channel().receive::<Reply>() {
            Ok(Incoming::Packet { bytes, .. }) => {
                all += bytes.len() as u64;
                if warm.is_none() && since.elapsed() > limit.mul_f64(WARM_UP) {
                    warm = Some((Instant::now(), all));
                }
            }
            Ok(Incoming::Control(Reply::Sent { tcp })) => break tcp,
            Ok(Incoming::Control(Reply::Refused(refusal))) => return Err(ClientError::Refused(refusal).into()),
            Ok(Incoming::Control(_)) => return Err(ClientError::Unexpected("something else than `Sent`").into()),
            Err(error) => match session.failed(error) {
                error if pace.is_cut(&error) && all > 0 => break TcpMetrics::default(),
                error => return Err(pace.told(error)),
            },
        }
    };
    let (from, before) = warm.filter(|(_, before)| *before < all).unwrap_or((since, 0));
    let air = rate((all - before) as f64, from.elapsed().as_secs_f64());
    let booked = sockopt::socket_recv_buffer_size(session.channel().socket()).map_err(io::Error::from)?;
    session.close();
    let kernel_window = (booked as f64 / BOOKED).max(LEAST_WINDOW);
    Ok(path_load(Path { rtt_s, air, kernel_window }, &tcp))
}

/// The direction up: packets of nothing into a `Sink` for `limit`.
///
/// # Errors
/// [`TuneError`].
pub fn up(account: &Account, rtt_s: f64, limit: Duration, pace: &mut Pace<'_>) -> Result<PathLoad, TuneError> {
    let mut session = pace.open(account, None, limit.mul_f64(PATIENCE))?;
    let Tuning { sender, receiver } = Tuning::default();
    session.say(&Request::Sink { receiver }).map_err(|error| pace.told(error))?;
    let (bytes, seconds) = drain(&mut session, &mut io::repeat(0), MOST_BYTES, &sender, limit, pace)?;
    let tcp = session.channel().metrics().map_err(ClientError::Lost)?;
    let booked = sockopt::socket_send_buffer_size(session.channel().socket()).map_err(io::Error::from)?;
    session.close();
    let air = rate(bytes, seconds);
    let kernel_window = (booked as f64 / BOOKED).max(LEAST_WINDOW);
    Ok(path_load(Path { rtt_s, air, kernel_window }, &tcp))
}

/// Sends what `source` has into a `Sink`, `bytes` at most and for `limit`. Returns the bytes that came and the seconds from
/// the first packet to the last; of a session that was cut, what was acknowledged.
///
/// # Errors
/// [`TuneError`].
pub fn drain(
    session: &mut Session,
    source: &mut dyn Read,
    bytes: u64,
    sender: &End,
    limit: Duration,
    pace: &mut Pace<'_>,
) -> Result<(f64, f64), TuneError> {
    let (since, mut going, mut hash) = (Instant::now(), Ok(()), Hash::new());
    let sent = transfer::send(session.channel(), source, 0..bytes, sender, Some(&mut hash), &mut |_| {
        going = pace.go_on();
        if going.is_err() || since.elapsed() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    going?;
    let ended = match sent {
        Ok(_) | Err(SendError::Stopped) => session.ask(&Request::Finish { sha256: hash.finish() }),
        Err(SendError::Channel(error)) => Err(session.lost(error)),
        Err(SendError::Interrupted) => session.answer(),
        Err(SendError::Storage(error)) => return Err(error.into()),
        Err(SendError::Shorter) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    };
    match ended {
        Ok(Reply::Taken { bytes, micros }) => Ok((bytes as f64, micros as f64 / 1e6)),
        Ok(_) => Err(ClientError::Unexpected("something else than `Taken`").into()),
        Err(error) if pace.is_cut(&error) => {
            let bytes = socket::acknowledged(session.channel().socket())?;
            Ok((bytes as f64, since.elapsed().as_secs_f64()))
        }
        Err(error) => Err(pace.told(error)),
    }
}

fn rate(bytes: f64, seconds: f64) -> f64 {
    (bytes / seconds.max(1e-6)).max(1.0)
}

fn path_load(path: Path, tcp: &TcpMetrics) -> PathLoad {
    let held_back_us = (tcp.window_limited_us + tcp.send_buffer_limited_us) as f64;
    let held_back = (held_back_us / tcp.busy_us.max(1) as f64).min(1.0);
    PathLoad { path, loaded_rtt_s: f64::from(tcp.srtt_us) / 1e6, held_back }
}
