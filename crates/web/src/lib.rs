//! `lasthop-web`, which `lasthop web` becomes: one page that shows live what a running controller says.
//!
//! It is a process of its own, without rights ([`rights`]), that reads the status socket ([`source`]) or the log of an emulation
//! ([`follow`]) while somebody watches, and hands the same bytes to all ([`events`]). Who may see it: [`options`], [`guard`],
//! [`token`], [`session`]; what is served: [`router`]; connections: [`listen`]. The page itself is in `assets/`.

pub mod assets;
pub mod count;
pub mod events;
pub mod follow;
pub mod guard;
pub mod listen;
pub mod measurement;
pub mod options;
pub mod patient;
pub mod rights;
pub mod router;
pub mod session;
pub mod source;
pub mod tls;
pub mod token;

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory as _, Parser};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output;
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;

use self::guard::Names;
use self::measurement::Measurement;
use self::options::Arguments;
use self::router::{Access, App};
use self::source::{From, Source};
use self::token::{Right, Secret, Tokens};

#[derive(Debug, Parser)]
#[command(name = "lasthop-web", version = lasthop_command::VERSION, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

/// What is typed after the program's name.
#[must_use]
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    match run(&Cli::parse().arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

/// Serves until a signal comes.
fn run(arguments: &Arguments) -> Outcome {
    arguments.check()?;
    let app = Arc::new(app(arguments)?);
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(tls::acceptor(certificate, key)?),
        _ => None,
    };
    let listener = bind(arguments)?;
    let address = address(arguments, &listener)?;
    let became = rights::give_up(rights::Needs {
        socket: arguments.log.is_none().then_some(arguments.socket.as_path()),
        commands: arguments.control_token_file.is_some(),
        files: [arguments.log.as_deref(), arguments.measurement.as_deref()],
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    eprintln!("lasthop: {}; Ctrl-C ends it; the page:", rights::told(became));
    output::print_out(&format!("{address}\n"))?;
    runtime.block_on(serve(listener, tls, arguments, app))
}

/// Ends when `descriptor` has nothing more to come: who started this process is gone.
async fn end_of(descriptor: OwnedFd) -> io::Result<()> {
    let mut pipe = tokio::net::unix::pipe::Receiver::from_owned_fd(descriptor)?;
    let mut bytes = [0; 64];
    while pipe.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// What answers need, out of files that are read before rights are given up.
fn app(arguments: &Arguments) -> Outcome<App> {
    let secret = |path: &Option<std::path::PathBuf>| path.as_deref().map(Secret::read).transpose();
    let tokens = Tokens { read: secret(&arguments.token_file)?, control: secret(&arguments.control_token_file)? };
    let from = match &arguments.log {
        Some(log) => From::Log(log.clone()),
        None => From::Socket(arguments.socket.clone()),
    };
    let access = Access {
        tokens,
        names: Names::new(&arguments.host),
        scheme: arguments.scheme(),
        of_everybody: if arguments.is_open() { Right::Read } else { Right::Nothing },
    };
    let source = Arc::new(Source::new(from, arguments.interval(), arguments.meanwhile.clone()));
    let measurement = arguments.measurement.as_deref().map(Measurement::read).transpose()?;
    Ok(App::new(access, source, measurement))
}

fn bind(arguments: &Arguments) -> Outcome<TcpListener> {
    let at = arguments.listen;
    TcpListener::bind(at).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            let free = std::net::SocketAddr::new(at.ip(), at.port().checked_add(1).unwrap_or(0));
            Failure::work(format!("another program serves at {at}; choose another port: --listen {free}"))
        }
        _ => Failure::work(format!("cannot serve at {at}: {error}")),
    })
}

/// What a browser is to open.
fn address(arguments: &Arguments, listener: &TcpListener) -> io::Result<String> {
    let at = listener.local_addr()?;
    let scheme = if arguments.tls_cert.is_some() { "https" } else { "http" };
    Ok(match arguments.host.first() {
        Some(name) if arguments.behind_proxy => format!("https://{name}/"),
        Some(name) => format!("{scheme}://{name}:{}/", at.port()),
        None => format!("{scheme}://{at}/"),
    })
}

async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, arguments: &Arguments, app: Arc<App>) -> Outcome {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let source = Arc::clone(&app.source);
    let parent_ends = async {
        if arguments.until_stdin_ends {
            end_of(io::stdin().as_fd().try_clone_to_owned()?).await
        } else {
            std::future::pending().await
        }
    };
    tokio::select! {
        served = listen::serve(listener, tls, arguments.behind_proxy, app) => served.map(|never| match never {})?,
        () = source.run() => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        ended = parent_ends => ended?,
    }
    Ok(())
}
