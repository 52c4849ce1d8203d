//! `lasthop measure serve`: the server that a responsiveness test loads the path to.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::print_out;
use lasthop_command::signals::Stop;
use lasthop_responsiveness::{Figures, Identity, Server, Settings};

const AFTER_HELP: &str = "\
Examples:
  lasthop measure serve --listen 192.168.1.2:4043
  lasthop measure serve --listen 192.168.1.2:4043 --cert server.pem --key server.key

Run it on a machine at the other side of the hop that is to be measured: wired to the router, say,
when the Wi-Fi is. It needs no rights. Without --cert it makes a certificate at each start and says
its fingerprint, by which the client knows it.

Whoever reaches it can fill the line to it, so it is to be reached from home only: listen on an
address of the home, not on one that the Internet reaches. It sends nothing to who has not done a
TLS handshake, and bounds how many connections and loads it carries at once.";

/// Be the server of a responsiveness test: a small object, an endless one, and a place for uploads
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Where to listen: an address of this machine that the home reaches, and a port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The certificate, with those that signed it, as PEM [default: one that is made at each start]
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its key, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A name that the certificate which is made is to have, beside localhost and the address; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "cert")]
    name: Vec<String>,
    /// The most connections at once; further ones are closed
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=4096))]
    connections: u32,
    /// The most downloads and uploads at once; further ones are answered with 503
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    loads: u32,
}

/// Serves until a signal comes.
pub fn run(arguments: &Arguments) -> Outcome {
    let stop = Stop::on_signals()?;
    allow_open_files();
    let identity = identity(arguments)?;
    let settings = Settings {
        connections: arguments.connections as usize,
        loads: arguments.loads as usize,
        ..Settings::on(arguments.listen)
    };
    let server = Server::start(settings, &identity)?;
    print_out(&greeting(&server))?;
    if server.address().ip().is_unspecified() {
        eprintln!("every network of this machine reaches this server; let the firewall keep the Internet away from it");
    }
    while !stop.has_come() {
        std::thread::sleep(Duration::from_millis(100));
    }
    print_out(&farewell(&server.figures()))
}

/// A connection is an open file; what one process may have of them by default is less than what the system lets it ask for.
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where that fails the server carries fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn identity(arguments: &Arguments) -> Outcome<Identity> {
    let (Some(certificate), Some(key)) = (&arguments.cert, &arguments.key) else {
        let mut names = vec!["localhost".to_owned()];
        if !arguments.listen.ip().is_unspecified() {
            names.push(arguments.listen.ip().to_string());
        }
        names.extend(arguments.name.iter().cloned());
        return Identity::self_signed(names).map_err(Failure::request);
    };
    Identity::from_pem(&read(certificate)?, &read(key)?).map_err(Failure::request)
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display())).map_err(Failure::request)
}

fn greeting(server: &Server) -> String {
    let address = server.address();
    let host = if address.ip().is_unspecified() { format!("ADDRESS:{}", address.port()) } else { address.to_string() };
    format!(
        "Serving at {address} until Ctrl-C. On the other side of the hop:\n\n\
         lasthop measure responsiveness https://{host} \\\n  --fingerprint {}\n",
        server.fingerprint()
    )
}

fn farewell(figures: &Figures) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let mut text = format!(
        "\n{} connections, {} requests; {:.1} MB sent, {:.1} MB received\n",
        figures.connections,
        figures.requests,
        megabytes(figures.sent_bytes),
        megabytes(figures.received_bytes)
    );
    let refused = [
        (figures.refused_connections, "connections were closed at once: --connections"),
        (figures.refused_loads, "loads were refused: --loads"),
        (figures.failed_handshakes, "TLS handshakes failed"),
        (figures.stalled_connections, "connections made no progress and were closed"),
    ];
    for (count, what) in refused.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!("{count} {what}\n");
    }
    text
}
