//! Servers that lie, stall, reset or fail: the client ends with a sentence, and with bounded memory.

mod fake;

use std::net::{SocketAddr, TcpListener};

use fake::{Fake, answer, configuration, endless};
use lasthop_core::units::Span;
use lasthop_responsiveness::{Directions, Error, Options, Params, Target, Trust, measure};

const CONFIG: &str = "/.well-known/nq";

/// What the test of 2 s at most says about the server there.
fn said(address: SocketAddr, directions: Directions) -> String {
    let target = Target::new(&address.to_string(), Trust::Anything).expect("a URL");
    let interval = Span::from_millis(200);
    let params = Params { interval, limit: Some(Span::from_secs(2)), ..Params::default() };
    let error = measure(&target, Options { params, directions }, |_| (), || false).expect_err("it is no server");
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    assert!(text.len() < 1000, "{text}");
    text
}

/// What it says where the configuration is this.
fn of_configuration(config: impl Fn(SocketAddr) -> String + Send + Sync + 'static) -> String {
    let server = Fake::answering(move |path, address| match path {
        CONFIG => answer(200, config(address)),
        _ => answer(404, ""),
    });
    said(server.address, Directions::Down)
}

#[test]
fn a_configuration_that_lies_is_refused_with_its_reason() {
    let same = |address: SocketAddr| format!("https://{address}");
    assert!(of_configuration(|_| "[1, 2".into()).contains("not as draft-ietf-ippm-responsiveness has it"));
    assert!(of_configuration(|_| r#"{"version": "one", "urls": 7}"#.into()).contains("not as draft"));
    assert!(
        of_configuration(|_| configuration("https://192.0.2.1:4043", "/l"))
            .contains("sends the load to 192.0.2.1:4043")
    );
    assert!(of_configuration(move |a| configuration(&format!("http://{a}"), "/l")).contains("URL of https"));
    let long = of_configuration(move |a| configuration(&same(a), &"x".repeat(100_000)));
    assert!(long.contains("more than 16384 bytes"), "{long}");
    let elsewhere = of_configuration(move |a| {
        configuration(&same(a), "/l").replace("\"version\"", "\"test_endpoint\": \"192.0.2.1\", \"version\"")
    });
    assert!(elsewhere.contains("--insecure"), "{elsewhere}");
}

#[test]
fn a_configuration_without_an_end_is_not_read_to_the_end() {
    let server = Fake::answering(|_, _| endless());
    assert!(said(server.address, Directions::Down).contains("more than 16384 bytes"));
}

#[test]
fn redirects_and_failures_are_told_by_their_status() {
    let redirect = Fake::answering(|_, _| {
        let mut response = answer(302, "")?;
        response.headers_mut().insert("location", "https://192.0.2.1/".parse().expect("a URL"));
        Some(response)
    });
    assert!(said(redirect.address, Directions::Down).contains("302 Found; redirects are not followed"));
    let failing = Fake::answering(|_, _| answer(500, ""));
    let text = said(failing.address, Directions::Down);
    assert_eq!(text, "the configuration: the server answered 500 Internal Server Error");
}

#[test]
fn a_load_that_fails_aborts_the_test_as_the_draft_wants_it() {
    let failing = Fake::answering(|path, address| match path {
        CONFIG => answer(200, configuration(&format!("https://{address}"), "/large")),
        "/large" => answer(503, ""),
        _ => answer(500, ""),
    });
    assert!(said(failing.address, Directions::Down).starts_with("a download: the server answered 503"));
    assert!(said(failing.address, Directions::Up).starts_with("an upload: the server answered 500"));
}

#[test]
fn without_probes_that_come_back_there_is_no_rpm() {
    let failing = Fake::answering(|path, address| match path {
        CONFIG => answer(200, configuration(&format!("https://{address}"), "/large")),
        "/large" => endless(),
        _ => answer(500, ""),
    });
    assert!(said(failing.address, Directions::Down).starts_with("no probe came back"));
    let large_small = Fake::answering(|path, address| match path {
        CONFIG => answer(200, configuration(&format!("https://{address}"), "/large")),
        _ => endless(),
    });
    assert!(said(large_small.address, Directions::Down).starts_with("no probe came back"));
}

#[test]
fn headers_without_an_end_end_the_connection() {
    // SETTINGS; HEADERS of stream 1 without END_HEADERS; CONTINUATION after CONTINUATION of literals that are never the last.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let headers = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88];
    let literal = [&[0x00, 1, b'a', 100][..], &[b'b'; 100]].concat();
    let block = literal.repeat(100);
    let length = (block.len() as u32).to_be_bytes();
    let continuation = [&length[1..], &[9, 0, 0, 0, 0, 1], &block].concat();
    let server = Fake::writing([&settings[..], &headers].concat(), continuation);
    let text = said(server.address, Directions::Down);
    assert!(text.starts_with("the configuration: the connection failed"), "{text}");
}

#[test]
fn who_speaks_no_http2_or_hangs_up_is_told_so() {
    assert!(said(Fake::without_http2().address, Directions::Down).ends_with("does not speak HTTP/2"));
    let text = said(Fake::hanging_up().address, Directions::Down);
    assert!(text.starts_with("the configuration: the connection failed"), "{text}");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    assert!(said(closed, Directions::Down).starts_with(&format!("cannot connect to {closed}")));
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let stalling = Fake::answering(|_, _| None);
    assert_eq!(said(stalling.address, Directions::Down), "the configuration: no answer within 10 s");
}

#[test]
fn a_load_that_stalls_ends_at_the_limit_without_rpm() {
    let stalling = Fake::answering(|path, address| match path {
        CONFIG => answer(200, configuration(&format!("https://{address}"), "/large")),
        _ => None,
    });
    assert!(said(stalling.address, Directions::Down).starts_with("no probe came back"));
}

#[test]
fn what_is_no_url_of_https_is_refused_before_anything_is_sent() {
    for url in ["http://192.0.2.1", "https://", "", "https://user@host", "https://a b", "ftp://a"] {
        let refused = Target::new(url, Trust::Anything);
        assert!(matches!(refused, Err(Error::Url(_))), "{url}: {refused:?}");
    }
    assert!(Target::new("[2001:db8::1]:4043/config", Trust::Anything).is_ok());
}
