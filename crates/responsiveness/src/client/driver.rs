//! Does what the algorithm says, and tells it what came of that.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::error::Error;
use super::exchange;
use super::shared::Shared;
use crate::algorithm::Action;
use crate::params::Direction;
use crate::score::Foreign;

/// How long a load without end waits before it opens a connection in place of one that failed.
const BREAK: Duration = Duration::from_secs(1);
/// For how many such breaks no connection may be left, before the load is given up.
const BREAKS: u32 = 30;

/// Runs a load until it is over or its future is dropped, which ends all of its connections.
pub async fn drive(shared: Arc<Shared>) {
    let mut tasks = JoinSet::new();
    loop {
        shared.count_bytes();
        loop {
            let action = shared.algorithm().poll(shared.now());
            match action {
                None => break,
                Some(Action::Finish) => return,
                Some(Action::Connect(direction)) => drop(tasks.spawn(carry(Arc::clone(&shared), direction))),
                Some(Action::ProbeForeign) => drop(tasks.spawn(probe_foreign(Arc::clone(&shared)))),
                Some(Action::ProbeSelf) => drop(tasks.spawn(probe_self(Arc::clone(&shared)))),
            }
        }
        while tasks.try_join_next().is_some() {}
        let Some(deadline) = shared.algorithm().next_deadline() else { return };
        let wait = shared.until(deadline);
        if timeout(wait, shared.wake.notified()).await.is_ok() {
            // Only an error wakes; who waits for the load takes it.
            return;
        }
    }
}

/// One connection of the load, and others in its place where errors do not end everything.
async fn carry(shared: Arc<Shared>, direction: Direction) {
    let mut breaks = 0;
    loop {
        let Err(error) = carry_once(&shared, direction).await else { return };
        if shared.ends_with_errors {
            return shared.fail(error);
        }
        breaks = if shared.carriers() > 0 { 0 } else { breaks + 1 };
        if breaks > BREAKS {
            return shared.fail(Error::Gone(Some(Box::new(error))));
        }
        tokio::time::sleep(BREAK).await;
    }
}

async fn carry_once(shared: &Arc<Shared>, direction: Direction) -> Result<(), Error> {
    let server = &shared.server;
    let mut connected = server.route.connect().await?;
    let requests = &mut connected.requests;
    let _carrying = shared.carrying(requests.clone());
    let count = &shared.bytes[direction.index()];
    match direction {
        Direction::Down => exchange::download(&server.route, requests, &server.objects.large, count).await,
        Direction::Up => exchange::upload(&server.route, requests, &server.objects.upload, count).await,
    }
}

async fn probe_foreign(shared: Arc<Shared>) {
    let server = &shared.server;
    let probed = async {
        let mut connected = server.route.connect().await?;
        let http = exchange::probe(&server.route, &mut connected.requests, &server.objects.small).await?;
        Ok::<_, Error>((connected, http))
    };
    let probed = probed.await;
    let now = shared.count_bytes();
    match probed {
        Ok((connected, http)) => {
            let [tcp_ms, tls_ms, http_ms] = [connected.tcp, connected.tls, http].map(in_ms);
            shared.algorithm().on_foreign(now, Foreign { tcp_ms, tls_ms, http_ms });
            connected.close().await;
        }
        Err(_) => shared.algorithm().on_lost_probe(now),
    }
}

async fn probe_self(shared: Arc<Shared>) {
    let server = &shared.server;
    let Some(mut requests) = shared.draw() else { return shared.algorithm().on_lost_probe(shared.now()) };
    let probed = exchange::probe(&server.route, &mut requests, &server.objects.small).await;
    let now = shared.count_bytes();
    match probed {
        Ok(took) => shared.algorithm().on_self(now, in_ms(took)),
        Err(_) => shared.algorithm().on_lost_probe(now),
    }
}

fn in_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
