//! The live page beside a run: `lasthop-web` on this machine alone, which ends with this process whatever becomes of it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use lasthop_command::exit::{Failure, Outcome};

use crate::programs;

/// Where the page is served if nobody else serves there: as `lasthop web` does.
const USUAL: &str = "127.0.0.1:8080";
/// Any free port.
const ANY: &str = "127.0.0.1:0";

/// See the module.
#[derive(Debug)]
pub struct Page {
    /// Its standard input is a pipe of ours: it ends when that does, which not even `kill -9` of this process prevents.
    child: Child,
    /// What a browser is to open.
    pub address: String,
    folder: tempfile::TempDir,
}

impl Page {
    /// Serves what a controller says at [`Self::socket`]; `meanwhile` while there is none.
    pub fn start(meanwhile: &str) -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("lasthop-").tempdir().context("cannot make a temporary folder")?;
        let listen = if TcpListener::bind(USUAL).is_ok() { USUAL } else { ANY };
        let mut command = Command::new(programs::find(programs::WEB)?);
        command.args(["--listen", listen, "--until-stdin-ends", "--meanwhile", meanwhile, "--socket"]);
        command.arg(socket_in(folder.path())).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start lasthop-web")?;
        let mut address = String::new();
        if let Some(said) = child.stdout.take() {
            BufReader::new(said).read_line(&mut address).context("cannot hear lasthop-web")?;
        }
        let page = Self { child, address: address.trim().to_owned(), folder };
        if page.address.is_empty() { Err(page.failure()) } else { Ok(page) }
    }

    /// Where the controller has to serve its status.
    pub fn socket(&self) -> PathBuf {
        socket_in(self.folder.path())
    }

    fn failure(mut self) -> Failure {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        Failure::work(format!("the page cannot be served: {}", said.trim().trim_start_matches("lasthop: ")))
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("lasthop.sock")
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
