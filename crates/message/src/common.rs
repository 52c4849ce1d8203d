//! What the commands of a client have in common: account, profile, state.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::signals::Stop;
use lasthop_core::units::Span;
use lasthop_messenger::account::Account;
use lasthop_messenger::client::{Client, ClientError, Failure as Mishap, State};
use lasthop_messenger::tuning::Profile;

/// Environment variable that names the account file.
const ACCOUNT: &str = "LASTHOP_ACCOUNT";

/// Whose messages, and how the device goes about them.
#[derive(Debug, Args)]
pub struct Device {
    /// The account file [default: $LASTHOP_ACCOUNT]
    #[arg(long, value_name = "FILE")]
    account: Option<PathBuf>,
    /// The device's profile, as `tune` writes it; "none" for none [default: ACCOUNT.profile.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Change a key of the profile, see below; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Device {
    /// The account file.
    pub fn account_file(&self) -> Outcome<PathBuf> {
        let named = self.account.clone().or_else(|| std::env::var_os(ACCOUNT).map(PathBuf::from));
        named.filter(|path| !path.as_os_str().is_empty()).ok_or_else(|| {
            Failure::request(anyhow!(
                "whose account? Give --account FILE or set {ACCOUNT}; `lasthop message serve --store DIR --add NAME` makes one"
            ))
        })
    }

    /// The account, and the file that it stands in.
    pub fn account(&self) -> Outcome<(Account, PathBuf)> {
        let file = self.account_file()?;
        let account = Account::load(&file).with_context(|| format!("cannot use {}", file.display()));
        Ok((account.map_err(Failure::request)?, file))
    }

    /// The profile's file, that beside the account file when none is named; `None`: none is wanted.
    pub fn profile_file(&self, account: &Path) -> Option<PathBuf> {
        match &self.profile {
            None => Some(Profile::path(account)),
            Some(path) if path == Path::new("none") => None,
            Some(path) => Some(path.clone()),
        }
    }

    /// The profile with what is set besides. A file that is named must be there, unless it `may_be_new`.
    pub fn profile(&self, account: &Path, may_be_new: bool) -> Outcome<Profile> {
        let mut profile = match self.profile_file(account) {
            None => Profile::default(),
            Some(path) => match Profile::load(&path).map_err(Failure::request)? {
                None if self.profile.is_some() && !may_be_new => {
                    return Err(Failure::request(anyhow!("there is no profile {}", path.display())));
                }
                profile => profile.unwrap_or_default(),
            },
        };
        self.set.iter().try_for_each(|set| profile.set(set)).map_err(Failure::request)?;
        Ok(profile)
    }
}

/// Who it is, and how it goes about it.
#[derive(Debug, Args)]
pub struct Who {
    #[command(flatten)]
    device: Device,
    /// How long to try again when the connection is lost
    #[arg(long, value_name = "TIME", default_value = "60s")]
    patience: Span,
    /// Folder for what must be remembered until a message is through [default: ~/.local/state/lasthop/messages]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl Who {
    /// The account file.
    pub fn account_file(&self) -> Outcome<PathBuf> {
        self.device.account_file()
    }

    /// All of it, read; `stop` ends what it does.
    pub fn client(&self, stop: &Stop) -> Outcome<Client> {
        let (account, file) = self.device.account()?;
        let profile = self.device.profile(&file, false)?;
        let state = State::open(&self.state_folder()?).map_err(Failure::request)?;
        let patience = Duration::from_nanos(self.patience.as_nanos());
        Ok(Client { account, profile, state, patience, stop: stop.flag() })
    }

    fn state_folder(&self) -> Outcome<PathBuf> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || variable("HOME").map(|home| home.join(".local/state"));
        let of_lasthop = || Some(variable("XDG_STATE_HOME").or_else(home)?.join("lasthop/messages"));
        self.state.clone().or_else(of_lasthop).ok_or_else(|| {
            Failure::request(anyhow!("where to remember what is under way? Give --state DIR (HOME is not set)"))
        })
    }
}

/// What the command says of a mishap; `goes_on`: how to go on where it is worth it.
pub fn failure(mishap: Mishap, stop: &Stop, goes_on: &str) -> Failure {
    if mishap.is_stop() {
        return match stop.check() {
            Err(Failure::Signal(signal)) => Failure::Paused(signal, goes_on.to_owned()),
            _ => Failure::work(anyhow!("stopped; {goes_on}")),
        };
    }
    let passes = matches!(&mishap, Mishap::Client(error) if error.passes().is_some());
    let was_refused = matches!(mishap, Mishap::Client(ClientError::Refused(_)));
    match (&mishap, passes && !was_refused) {
        (_, true) => Failure::work(anyhow!("{:#}; {goes_on}", anyhow::Error::new(mishap))),
        (Mishap::NoFile { .. } | Mishap::NotListed(_), _) => Failure::request(mishap),
        _ => Failure::work(mishap),
    }
}
