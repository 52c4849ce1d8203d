//! The command line, and what of it is refused.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_core::units::Span;

use crate::guard::Scheme;

/// As fast as people see; ten times a second.
const FASTEST: Span = Span::from_millis(100);
/// Slower than that nobody calls it live.
const SLOWEST: Span = Span::from_secs(60);

const AFTER_HELP: &str = "\
Examples:
  sudo lasthop web                                     http://127.0.0.1:8080/ on this machine
  sudo lasthop web --socket home.sock                  beside lasthop emulate --socket home.sock
  lasthop web --log run.jsonl                          beside lasthop emulate --log run.jsonl
  lasthop web --measurement evening.json               with what lasthop measure --json has found

From another machine, without opening anything: ssh -L 8080:127.0.0.1:8080 ROUTER, and the same address.

Beyond this machine, it asks for a token, and for TLS or a proxy that speaks it:
  (umask 077; head -c 24 /dev/urandom | base64 >token)
  sudo lasthop web --listen 192.168.1.1:8443 --token-file token --tls-cert cert.pem --tls-key key.pem

The status socket is root's; socket_group in the controller's configuration lets a group read it, and
then this needs no root at all. Started as root it becomes who typed sudo, or nobody, where that one
may read the socket. The book's chapter \"The page\" has the rest, with a unit for systemd.";

/// Show live in a browser what a running controller sees, does, and why
///
/// Serves one page on this machine alone: what waits and where, how much of the capacity is used, who uses it, what was decided.
/// It reads the status socket while somebody watches, and changes nothing.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Where to serve; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The controller's socket
    #[arg(long, value_name = "PATH", default_value = lasthop_status::DEFAULT_SOCKET, conflicts_with = "log")]
    pub socket: PathBuf,
    /// Follow the log of a running `lasthop emulate --log FILE` in place of a socket
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Time between two updates of the page, 100ms to 60s
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    pub every: Span,
    /// Show what `lasthop measure --json FILE` wrote, as before and after
    #[arg(long, value_name = "FILE")]
    pub measurement: Option<PathBuf>,
    /// Only who knows the token in this file sees anything
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Who knows the token in this file may also pause and resume
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    pub control_token_file: Option<PathBuf>,
    /// Certificate, PEM; the chain after it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A reverse proxy that speaks HTTPS stands in front; needs a token and --host
    #[arg(long, conflicts_with = "tls_cert")]
    pub behind_proxy: bool,
    /// A name that browsers reach this page by, beside localhost and addresses; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// What is said while nobody answers
    #[arg(long, value_name = "TEXT", hide = true)]
    pub meanwhile: Option<String>,
    /// End when standard input does: with who started this
    #[arg(long, hide = true)]
    pub until_stdin_ends: bool,
}

impl Arguments {
    /// Refuses what would show a home to others without a token, or a token without encryption.
    ///
    /// # Errors
    /// Says what to do.
    pub fn check(&self) -> Outcome {
        let has_token = self.token_file.is_some() || self.control_token_file.is_some();
        let is_here = self.listen.ip().is_loopback() && !self.behind_proxy;
        let name = self.listen;
        let says = |what: String| Err(Failure::request(what));
        if !(FASTEST..=SLOWEST).contains(&self.every) {
            return says(format!("--every is {} to {}", FASTEST.rounded(), SLOWEST.rounded()));
        }
        if !is_here && !has_token {
            return says(format!(
                "others than this machine could see the page at {name}, so it needs a token: (umask 077; head -c 24 \
                 /dev/urandom | base64 >token) makes one, and --token-file token uses it"
            ));
        }
        if self.behind_proxy && self.host.is_empty() {
            return says("--behind-proxy needs the name that browsers use: --host NAME".to_owned());
        }
        if !is_here && !self.behind_proxy && self.tls_cert.is_none() {
            return says(format!(
                "the token would go to {name} unencrypted; give --tls-cert and --tls-key, or --behind-proxy where a reverse \
                 proxy that speaks HTTPS stands in front, or stay on 127.0.0.1 and come by ssh -L 8080:127.0.0.1:8080"
            ));
        }
        Ok(())
    }

    /// Whoever can connect may see everything: this machine alone, and no token was given for that.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.listen.ip().is_loopback() && !self.behind_proxy && self.token_file.is_none()
    }

    /// How browsers reach the page.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        match (self.behind_proxy, self.tls_cert.is_some()) {
            (true, _) => Scheme::Either,
            (false, true) => Scheme::Https,
            (false, false) => Scheme::Http,
        }
    }

    /// Time between two readings.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.every.as_nanos())
    }
}
