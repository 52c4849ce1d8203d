//! The configuration is read again while connections run: what a running controller can take is in force with the next decision.
//!
//! | keys | what becomes of it |
//! |---|---|
//! | `lan`, `wan` | interfaces are chosen anew: let go, hooked; what stays keeps its hooks |
//! | parameters of the law, `interval`, `idle`, `rtt`, `udp_weight`, `windows`, `window_updates`, `duplex`, `log_format` | in force at once |
//! | `capacity`, `link`, `share` | the deciding half begins anew with what was learned; the table of connections stays |
//! | of queues | taken off and put again, as they are wanted now |
//! | `flows`, `attach`, `socket`, `socket_group`, and whether packets are handed to a queue of this process | wait for a restart ([`Config::adopt`]) |
//!
//! A file that cannot be read or is wrong changes nothing: log and status say why.

use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_core::units::{BitRate, Time};

use super::disciplines::Disciplines;
use super::queues::Queues;
use super::{Controller, ControllerError, Core, interval_for};
use crate::config::Config;
use crate::log;
use crate::updates::Updates;
use lasthop_status::command::What;

/// How a configuration is read again.
pub struct Reload<'a> {
    /// Somebody wants it read; taken back before it is. A signal handler that sets it also ends the wait of the loop.
    pub asked: &'a AtomicBool,
    /// Reads it, flags of the command line included; or says file, line, key and what would be right.
    pub read: &'a dyn Fn() -> Result<Config, String>,
}

impl Controller {
    /// Takes what is to be read now; decides on meanwhile, and keeps what it has where that is wrong.
    pub(super) fn reload(&mut self, now: Time, reload: &Reload<'_>) {
        if !reload.asked.swap(false, Ordering::Relaxed) {
            return;
        }
        self.service.reloading(now);
        let core = &mut self.core;
        let outcome = (reload.read)().and_then(|wanted| core.adopt(now, wanted).map_err(|error| error.to_string()));
        core.configuration.refused = outcome.err();
        match &core.configuration.refused {
            None => core.configuration.reloads += 1,
            Some(why) => {
                let line = format!("the configuration was not read again, and stays as it is: {why}");
                core.journal.warn(now, line);
            }
        }
        self.service.ready(&self.core.line());
    }
}

impl Core {
    /// Goes on with another configuration; nothing changes where that cannot be.
    fn adopt(&mut self, now: Time, wanted: Config) -> Result<(), ControllerError> {
        let (config, changes) = self.config.adopt(wanted);
        let capacity = config.capacity()?;
        if (&config.lan, &config.wan) != (&self.config.lan, &self.config.wan) {
            self.links.set_names(&config, now)?;
        }
        // Nothing below fails.
        self.configuration.waits_for_restart.clear();
        for change in &changes {
            let line = format!("configuration: {}: {} -> {}", change.key, change.before, change.after);
            if change.waits_for_restart {
                self.journal.warn(now, format!("{line}; this waits for a restart, and stays as it was until then"));
                self.configuration.waits_for_restart.push(change.key.clone());
            } else {
                self.journal.say(now, line);
            }
        }
        if changes.is_empty() {
            self.journal.say(now, "configuration: read again, and nothing is different".to_owned());
        }
        config.warnings.iter().for_each(|line| self.journal.warn(now, line.clone()));
        let before = std::mem::replace(&mut self.config, config);
        self.put_in_force(now, &before, capacity);
        Ok(())
    }

    fn put_in_force(&mut self, now: Time, before: &Config, capacity: Option<BitRate>) {
        let is_given_anew = self.capacity != capacity;
        log::set_format(self.config.log_format);
        self.program.control().set_dry_run(self.config.dry_run || !self.config.windows);
        self.interval = interval_for(self.config.interval(), self.took);
        self.table.set_idle(self.config.idle);
        if before.wan != self.config.wan {
            self.disciplines = Disciplines::new(&self.config);
        }
        let queue = |c: &Config| (c.queueing, c.datapath, c.snoop, c.snoop_params, c.chap, c.duplex, c.dry_run);
        if queue(before) != queue(&self.config) {
            self.queues.take_off();
            self.queues = Queues::new(&self.config, capacity);
        } else if is_given_anew {
            self.queues.set_capacity(capacity);
        }
        if before.dry_run != self.config.dry_run {
            self.levers.adopt(&self.config, &self.program);
        }
        self.decide_by(capacity);
        let updates = |c: &Config| (c.dry_run, c.windows, c.window_updates, c.share);
        if updates(before) != updates(&self.config) && !self.pauses.has(What::Updates) {
            self.updates.stop(&self.program);
            self.updates = Updates::start(&self.config, &self.program);
        }
        self.ap.set_window_updates(self.updates.status().on);
        self.ap.set_interval(self.interval);
        self.follow_ports(now);
        self.follow_links(now, false);
        self.apply_pauses(now);
        self.apply(now);
    }

    /// The deciding half goes on with other parameters, or begins anew with what was learned.
    fn decide_by(&mut self, capacity: Option<BitRate>) {
        let params = self.config.params(capacity);
        if self.ap.set_params(params) {
            return;
        }
        let offer = self.offer_of(self.ap.directions());
        self.capacity = capacity;
        self.ap.begin_anew(params);
        self.resume(&offer);
    }
}
