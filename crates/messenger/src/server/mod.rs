//! The server: keeps messages for those they are addressed to.
//!
//! One thread per connection, one for all that comes. Time limits are by the monotonic clock: whatever is done to the wall
//! clock changes what [`Listed::kept_at`](crate::protocol::Listed) says, nothing else.

mod attempts;
mod claims;
mod control;
mod download;
mod event;
mod gate;
mod limit;
mod measure;
mod pace;
mod secret;
mod session;
mod settings;
mod startups;
mod upload;

pub use control::{Order, OrderError, Ordered, order};
pub use event::{Counters, Event};
pub use secret::Cost;
pub use settings::Settings;
pub use startups::{NoStartups, Startups};

use crate::account::Account;
use crate::protocol::Refusal;
use crate::store::{AccountSummary, Failure, Store, StoreError, Swept};
use crate::tls::{Identity, IdentityError, Pin};
use attempts::Attempts;
use claims::Claims;
use event::{Counting, count};
use gate::{Admission, Gate, Places};
use lasthop_files::Terms;
use limit::Lines;
use pace::Pace;
use rustls::ServerConfig;
use secret::{Hasher, NoRandomness};
use session::End;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked what time it is, and whether to stop.
const TICK: Duration = Duration::from_millis(100);
/// How often uploads that nobody goes on with are looked for.
const EXPIRY: Duration = Duration::from_secs(600);
/// How long connections may take to say goodbye when the server stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// A server that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Its store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its certificate.
    #[error("identity.pem in the store cannot be used: put it back from a backup")]
    Identity(#[source] IdentityError),
    /// There are accounts, and the certificate that their files name is gone.
    #[error(
        "identity.pem is missing in the store: put it back from a backup; with a new one every account file would be void"
    )]
    NoIdentity,
    /// No secrets without.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// A server and its store.
pub struct Server {
    shared: Shared,
    swept: Swept,
    pin: Pin,
}

/// What all connections use.
struct Shared {
    store: Store,
    settings: Settings,
    tls: Arc<ServerConfig>,
    hasher: Hasher,
    gate: Gate,
    attempts: Attempts,
    lines: Kinds,
    claims: Claims,
    pace: Pace,
    counting: Counting,
    stopping: AtomicBool,
    on_event: Box<dyn Fn(&Event) + Send + Sync>,
}

/// Lines that come as often as others want them to, by who these are: strangers leave room for those of accounts.
struct Kinds {
    strangers: Lines,
    accounts: Lines,
}

impl Server {
    /// Opens the store in `folder`; makes it, with a certificate, where there is none.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn open(folder: &Path, settings: Settings) -> Result<Self, ServerError> {
        Store::create(folder)?;
        let (store, swept) = Store::open(folder)?;
        let identity = identity(folder, &store)?;
        let shared = Shared {
            store,
            tls: identity.server_config().map_err(ServerError::Identity)?,
            hasher: Hasher::new(settings.hashing)?,
            gate: Gate::new(Places {
                startups: settings.startups,
                connections: settings.connections,
                per_address: settings.connections_per_address,
            }),
            attempts: Attempts::new(settings.attempts),
            lines: Kinds { strangers: Lines::new(Instant::now()), accounts: Lines::new(Instant::now()) },
            claims: Claims::default(),
            pace: Pace::new(settings.messages_per_minute),
            counting: Counting::default(),
            stopping: AtomicBool::new(false),
            on_event: Box::new(|_| {}),
            settings,
        };
        Ok(Self { shared, swept, pin: identity.pin() })
    }

    /// Tells `listener` of every event.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.shared.on_event = Box::new(listener);
        self
    }

    /// What opening the store found.
    #[must_use]
    pub fn swept(&self) -> &Swept {
        &self.swept
    }

    /// What clients know it by.
    #[must_use]
    pub fn pin(&self) -> Pin {
        self.pin
    }

    /// Makes an account. `address`: host and port by which its owner reaches this server.
    ///
    /// # Errors
    /// A refusal that says why, or of the store.
    pub fn add_account(&self, name: &str, address: &str) -> Result<Account, Failure> {
        let no_randomness = |error: NoRandomness| Failure::Refused(Refusal::Failed { why: error.to_string() });
        let (secret, kept) = self.shared.hasher.make().map_err(no_randomness)?;
        self.shared.store.add_account(name, kept)?;
        Ok(Account { server: address.to_owned(), pin: self.pin, account: name.to_owned(), secret })
    }

    /// Removes an account and all that waits for it, and cuts its connections. Returns how many messages and uploads went.
    ///
    /// # Errors
    /// A refusal when there is none of that name, or of the store.
    pub fn remove_account(&self, name: &str) -> Result<u64, Failure> {
        let (id, gone) = self.shared.store.remove_account(name)?;
        self.shared.gate.cut_account(id);
        self.shared.attempts.forget(name);
        Ok(gone)
    }

    /// Every account.
    ///
    /// # Errors
    /// Of the store.
    pub fn accounts(&self) -> Result<Vec<AccountSummary>, Failure> {
        self.shared.store.accounts()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { forgotten_attempts: self.shared.attempts.forgotten(), ..self.shared.counting.read() }
    }

    /// Serves until `stop` is set; transfers in flight are then cut, to be resumed.
    ///
    /// # Errors
    /// Of the listening socket.
    pub fn serve(&self, listener: TcpListener, stop: &AtomicBool) -> io::Result<Counters> {
        listener.set_nonblocking(true)?;
        self.shared.stopping.store(false, Ordering::Relaxed);
        let control = control::Control::bind(self.shared.store.folder())?;
        thread::scope(|scope| {
            scope.spawn(|| control.listen(self));
            let outcome = self.accept(scope, &listener, stop);
            drop(listener);
            self.shared.stopping.store(true, Ordering::Relaxed);
            self.shared.gate.cut_all(Shutdown::Read);
            let since = Instant::now();
            while since.elapsed() < FAREWELL && !self.shared.gate.is_empty() {
                thread::sleep(TICK / 10);
            }
            self.shared.gate.cut_all(Shutdown::Both);
            outcome
        })?;
        self.shared.tell_left_out(true);
        Ok(self.counters())
    }

    fn accept<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        listener: &TcpListener,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let shared = &self.shared;
        let mut expired = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            if is_readable(listener, TICK)? {
                match listener.accept() {
                    Ok((socket, from)) => self.welcome(scope, socket, from),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        // No descriptors left, or the like: others will end.
                        let why = format!("cannot take a connection: {error}");
                        shared.tell_seldom(&shared.lines.strangers, &Event::Failed { why });
                        thread::sleep(TICK);
                    }
                }
            }
            let late = shared.gate.cut_unknown(Instant::now(), shared.settings.greeting);
            shared.counting.late.fetch_add(late, Ordering::Relaxed);
            shared.tell_left_out(false);
            if expired.elapsed() >= EXPIRY {
                expired = Instant::now();
                shared.expire();
            }
        }
        Ok(())
    }

    fn welcome<'scope>(&'scope self, scope: &'scope thread::Scope<'scope, '_>, socket: TcpStream, from: SocketAddr) {
        let shared = &self.shared;
        // A socket for both families gives an IPv4 peer an IPv6 address.
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        count(&shared.counting.connections);
        let admit = || socket.set_nonblocking(false).and_then(|()| shared.gate.admit(&socket, from, Instant::now()));
        let admission = admit().unwrap_or(Admission::Away);
        if !matches!(admission, Admission::In(_)) {
            count(&shared.counting.turned_away);
            shared.tell_seldom(&shared.lines.strangers, &Event::TurnedAway { from });
        }
        let (Admission::In(ticket) | Admission::InPlaceOfAnother(ticket)) = admission else { return };
        let serve = move || {
            // A panic, as of redb over a damaged page, ends its connection and nothing else.
            let run = AssertUnwindSafe(|| session::run(shared, socket, from, ticket));
            if catch_unwind(run).is_err() {
                let why = format!("the connection from {from} ended by a fault of the server");
                shared.tell_seldom(&shared.lines.strangers, &Event::Failed { why });
            }
        };
        if let Err(error) = thread::Builder::new().name(from.to_string()).spawn_scoped(scope, serve) {
            let why = format!("no thread for a connection: {error}");
            shared.tell_seldom(&shared.lines.strangers, &Event::Failed { why });
        }
    }
}

impl Shared {
    fn tell(&self, event: &Event) {
        (self.on_event)(event);
    }

    /// Tells of what comes as often as others want it to: at a limited rate, with a count of what was not told.
    fn tell_seldom(&self, lines: &Lines, event: &Event) {
        match lines.take(Instant::now()) {
            Some(0) => self.tell(event),
            Some(events) => {
                self.tell(&Event::NotTold { events });
                self.tell(event);
            }
            None => count(&self.counting.not_told),
        }
    }

    /// Tells how much was not told, when that may be told now.
    fn tell_left_out(&self, is_last: bool) {
        for lines in [&self.lines.strangers, &self.lines.accounts] {
            if let Some(events) = lines.left_out(Instant::now(), is_last) {
                self.tell(&Event::NotTold { events });
            }
        }
    }

    /// Tells whoever runs the server what a client is not told.
    fn tell_cause(&self, failure: &Failure) {
        if let Failure::Store(error) = failure {
            let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
            self.tell(&Event::Failed { why: format!("{error}{cause}") });
        }
    }

    fn last(&self, failure: &Failure) -> End {
        self.tell_cause(failure);
        End::Word(failure.refusal())
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn count_refusal(&self, refusal: &Refusal) {
        let counting = &self.counting;
        count(match refusal {
            Refusal::Busy { .. } => &counting.busy,
            Refusal::WrongSecret => &counting.wrong_secrets,
            Refusal::TooManyAttempts { .. } => &counting.too_many_attempts,
            Refusal::BadFrame { .. } => &counting.bad_frames,
            Refusal::Idle { .. } => &counting.idle,
            Refusal::Mismatch => &counting.mismatches,
            Refusal::Damaged => &counting.damaged,
            Refusal::DiskFull => &counting.disk_full,
            _ => &counting.refused,
        });
    }

    fn expire(&self) {
        let is_active = |account, transfer| self.claims.has(account, transfer);
        match self.store.expire(Instant::now(), self.settings.upload_kept, &is_active) {
            Ok(0) => {}
            Ok(uploads) => self.tell(&Event::Dropped { uploads }),
            Err(failure) => self.tell_cause(&failure),
        }
    }
}

/// Certificate and key of a store, made at its first start.
fn identity(folder: &Path, store: &Store) -> Result<Identity, ServerError> {
    let path = folder.join("identity.pem");
    let io = |cause| ServerError::Store(StoreError::io(&path, cause));
    let pem = match lasthop_files::read(&path, Terms::SECRET_OF_A_DAEMON) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if !store.accounts().is_ok_and(|accounts| accounts.is_empty()) {
                return Err(ServerError::NoIdentity);
            }
            let pem = Identity::generate().map_err(ServerError::Identity)?;
            crate::durable::replace(&path, pem.as_bytes(), 0o600).map_err(io)?;
            pem.into_bytes()
        }
        read => read.map_err(io)?,
    };
    Identity::from_pem(&pem).map_err(ServerError::Identity)
}

/// Whether somebody wants to connect within `longest`.
fn is_readable(listener: &impl std::os::fd::AsFd, longest: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec::try_from(longest).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
