//! Client and server of this crate with each other over loopback, and what bounds the server.

use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lasthop_core::units::Span;
use lasthop_responsiveness::{
    Directions, Error, Fingerprint, Identity, Load, Options, Params, Server, Settings, Target, Trust, measure,
};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn server(settings: Settings) -> Server {
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    Server::start(settings, &identity).expect("loopback has ports")
}

fn target(server: &Server) -> Target {
    Target::new(&server.address().to_string(), Trust::Fingerprint(server.fingerprint())).expect("a URL")
}

fn options(directions: Directions) -> Options {
    let interval = Span::from_millis(200);
    Options {
        params: Params { interval, most_connections: 2, limit: Some(Span::from_secs(3)), ..Params::default() },
        directions,
    }
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < patience, "waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_test_in_both_directions_has_goodput_and_probes_of_both_kinds() {
    let server = server(Settings::on(LOOPBACK));
    let found = measure(&target(&server), options(Directions::Both), |_| (), || false).expect("a result").report;
    assert!(found.goodput_down_bps.is_some_and(|bps| bps > 1e6), "{found:?}");
    assert!(found.goodput_up_bps.is_some_and(|bps| bps > 1e6), "{found:?}");
    assert!(found.score.foreign_probes > 0 && found.score.self_probes > 0 && found.score.rpm > 0.0, "{found:?}");
    let seen = server.figures();
    assert!(seen.sent_bytes > 0 && seen.received_bytes > 0 && seen.refused_loads == 0, "{seen:?}");
}

#[test]
fn a_load_goes_on_until_it_is_stopped_and_gives_the_responsiveness_of_a_block() {
    let server = server(Settings::on(LOOPBACK));
    let load = Load::start(&target(&server), options(Directions::Down)).expect("a load");
    let start = Instant::now();
    wait_until(|| load.snapshot().intervals >= 8 && load.responsiveness_since(start).is_some());
    let middle = Instant::now();
    let whole = load.responsiveness_between(start, middle).expect("probes");
    assert!(whole.goodput_down_bps.is_some_and(|bps| bps > 0.0) && whole.goodput_up_bps.is_none(), "{whole:?}");
    assert_eq!(load.responsiveness_since(Instant::now()), None, "nothing is over since now");
    assert!(load.take_error().is_none() && load.connections() > 0);
    load.stop();
    wait_until(|| {
        let before = server.figures().sent_bytes;
        std::thread::sleep(Duration::from_millis(100));
        server.figures().sent_bytes == before
    });
}

#[test]
fn a_load_survives_a_server_that_is_away_for_a_while() {
    let (certificate, key) = pem();
    let identity = || Identity::from_pem(certificate.as_bytes(), key.as_bytes()).expect("a certificate");
    let first = Server::start(Settings::on(LOOPBACK), &identity()).expect("a port");
    let settings = Settings::on(first.address());
    let load = Load::start(&target(&first), options(Directions::Down)).expect("a load");
    wait_until(|| load.connections() > 0);
    drop(first);
    wait_until(|| load.connections() == 0);
    let _second = Server::start(settings, &identity()).expect("the same port");
    wait_until(|| load.connections() > 0);
    assert!(load.take_error().is_none());
}

#[test]
fn a_certificate_with_another_fingerprint_is_not_believed() {
    let server = server(Settings::on(LOOPBACK));
    let wrong: Fingerprint = "00".repeat(32).parse().expect("64 digits");
    for trust in [Trust::Fingerprint(wrong), Trust::Authorities(pem().0.into_bytes())] {
        let target = Target::new(&server.address().to_string(), trust).expect("a URL");
        let refused = measure(&target, options(Directions::Down), |_| (), || false);
        assert!(matches!(refused, Err(Error::Tls(..))), "{refused:?}");
    }
}

#[test]
fn a_test_that_is_stopped_ends() {
    let server = server(Settings::on(LOOPBACK));
    let stopped = measure(&target(&server), options(Directions::Down), |_| (), || true);
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
}

#[test]
fn more_loads_than_allowed_are_refused_and_counted() {
    let server = server(Settings { loads: 1, ..Settings::on(LOOPBACK) });
    let refused = measure(&target(&server), options(Directions::Both), |_| (), || false).expect_err("two loads");
    assert!(refused.to_string().contains("503"), "{refused}");
    assert!(server.figures().refused_loads > 0);
}

#[test]
fn more_connections_than_allowed_are_closed_and_counted_and_silent_ones_give_their_place_back() {
    let settings = Settings { connections: 2, ..Settings::on(LOOPBACK) };
    let server = server(settings);
    let silent: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(server.address()).expect("it listens")).collect();
    wait_until(|| server.figures().refused_connections == 1);
    drop(silent);
    wait_until(|| server.figures().failed_handshakes == 2);
    let found = measure(&target(&server), options(Directions::Down), |_| (), || false);
    assert!(server.figures().connections > 2, "{found:?}");
}

#[test]
fn a_connection_that_asks_for_nothing_is_closed() {
    let server = server(Settings { idle: Duration::from_millis(300), ..Settings::on(LOOPBACK) });
    // It shakes hands and asks for nothing.
    let idle = Command::new("openssl")
        .args(["s_client", "-quiet", "-alpn", "h2", "-connect", &server.address().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut idle) = idle else { return println!("SKIPPED: a connection that asks for nothing: no openssl here") };
    wait_until(|| server.figures().idle_connections > 0);
    let _ = idle.kill();
    let _ = idle.wait();
}

/// A certificate and its key, as PEM.
fn pem() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}
