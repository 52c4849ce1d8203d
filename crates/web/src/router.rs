//! What is served, to whom, and with which headers.
//!
//! | request | right | answer |
//! |---|---|---|
//! | `GET /`, `/web.js`, `/web.css`, `/icon.svg`, `/uplot-licence.txt` | none | the page, which holds no figure |
//! | `GET /session` | none | what this browser may do |
//! | `POST /login`, the token as body | none | a cookie |
//! | `POST /logout` | none | no cookie |
//! | `GET /events` | read | Server-Sent Events, for as long as somebody listens |
//! | `GET /status` | read | one status |
//! | `GET /metrics` | read | the status for Prometheus |
//! | `GET /measurement` | read | before and after |
//! | `GET /counts` | read | what was refused |
//! | `POST /command`, a request of the command socket as body | control | its answer |

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use lasthop_status::command::{self, Answer};
use lasthop_status::prometheus;
use serde::Serialize;

use crate::assets::{Asset, Assets};
use crate::count::{Counts, Refusal};
use crate::events::Events;
use crate::guard::{self, Names, Scheme};
use crate::measurement::Measurement;
use crate::session::{LASTS, Sessions, Tries};
use crate::source::Source;
use crate::token::{Right, Tokens};

/// Most who watch at once.
pub const MOST_VIEWERS: usize = 16;
/// Longest body of a request, bytes.
const LONGEST_BODY: usize = command::LONGEST_REQUEST;
/// A body that has not come whole by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The page runs its own script and its own style, speaks with its own server, and is shown in no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Where a connection comes from, and the address of ours that it came to.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Of the client, or of the proxy in front.
    pub peer: SocketAddr,
    /// Ours.
    pub local: IpAddr,
}

/// Who may do what.
#[derive(Debug)]
pub struct Access {
    /// Tokens that are known.
    pub tokens: Tokens,
    /// Names that the page is reached by.
    pub names: Names,
    /// How it is reached.
    pub scheme: Scheme,
    /// What somebody without a token may do.
    pub of_everybody: Right,
}

/// All that answers need.
#[derive(Debug)]
pub struct App {
    /// Who may do what.
    pub access: Access,
    /// What is shown.
    pub source: Arc<Source>,
    /// Before and after, where a file was named.
    pub measurement: Option<Measurement>,
    /// What was refused.
    pub counts: Counts,
    assets: Assets,
    sessions: Mutex<Sessions>,
    tries: Mutex<Tries>,
}

impl App {
    /// Nobody has logged in yet.
    #[must_use]
    pub fn new(access: Access, source: Arc<Source>, measurement: Option<Measurement>) -> Self {
        let (counts, assets, sessions, tries) = <(Counts, Assets, Mutex<Sessions>, Mutex<Tries>)>::default();
        Self { access, source, measurement, counts, assets, sessions, tries }
    }

    fn refuse(&self, why: Refusal, code: StatusCode, words: &'static str) -> Response {
        self.counts.refuse(why);
        (code, words).into_response()
    }

    /// `__Host-`: no other host, and nothing without TLS, can set it. Source: RFC 6265bis section 4.1.3.2.
    fn cookie_name(&self) -> &'static str {
        if self.access.scheme == Scheme::Http { "lasthop" } else { "__Host-lasthop" }
    }

    fn session<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|header| header.to_str().ok());
        cookies.find_map(|header| guard::cookie(header, self.cookie_name()))
    }

    /// What a token that came from `peer` allows; an answer where it is not looked at, or is none.
    fn judge(&self, token: &str, peer: IpAddr) -> Result<Right, Box<Response>> {
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if !tries.may_try(peer, now) {
            let words = "too many wrong tokens; wait ten seconds\n";
            let mut response = self.refuse(Refusal::Tries, StatusCode::TOO_MANY_REQUESTS, words);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
            return Err(Box::new(response));
        }
        match self.access.tokens.right_of(token) {
            Right::Nothing => {
                tries.was_wrong(peer, now);
                Err(Box::new(self.refuse(Refusal::Token, StatusCode::FORBIDDEN, "this token is not known\n")))
            }
            right => Ok(right),
        }
    }

    /// What a request may do, by its token or its session.
    fn right_of(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Right, Box<Response>> {
        if let Some(token) = bearer(headers) {
            return self.judge(token, peer);
        }
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.session(headers).map_or(Right::Nothing, |number| sessions.right_of(number, Instant::now()));
        Ok(own.max(self.access.of_everybody))
    }

    fn demand(&self, right: Right, headers: &HeaderMap, ends: Ends) -> Result<(), Box<Response>> {
        if self.right_of(headers, ends.peer.ip())? >= right {
            return Ok(());
        }
        let words = match right {
            Right::Control => "pausing and resuming needs the token of --control-token-file\n",
            _ => "a token is needed\n",
        };
        let mut response = self.refuse(Refusal::Right, StatusCode::UNAUTHORIZED, words);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Err(Box::new(response))
    }
}

/// `Authorization: Bearer TOKEN`. Source: RFC 6750 section 2.1.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Routes, behind the checks that every request passes.
pub fn router(app: &Arc<App>) -> Router {
    Router::new()
        .route("/", get(async |State(app): Shared, headers: HeaderMap| serve(&app.assets.page, &headers)))
        .route("/web.js", get(async |State(app): Shared, headers: HeaderMap| serve(&app.assets.script, &headers)))
        .route("/web.css", get(async |State(app): Shared, headers: HeaderMap| serve(&app.assets.style, &headers)))
        .route("/icon.svg", get(async |State(app): Shared, headers: HeaderMap| serve(&app.assets.icon, &headers)))
        .route(
            "/uplot-licence.txt",
            get(async |State(app): Shared, headers: HeaderMap| serve(&app.assets.licence, &headers)),
        )
        .route("/session", get(session))
        .route("/login", post(login))
        .route("/logout", post(logout))
        .route("/events", get(events))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/measurement", get(measurement))
        .route("/counts", get(counts))
        .route("/command", post(command))
        .layer(from_fn_with_state(Arc::clone(app), check))
        .with_state(Arc::clone(app))
}

type Shared = State<Arc<App>>;

/// What every request passes: a Host of ours, an Origin of ours where something may change. Every answer gets its headers here.
async fn check(State(app): Shared, Extension(ends): Extension<Ends>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&app, ends, &request) {
        Some(refused) => refused,
        None => {
            app.counts.let_in();
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refusal(app: &App, ends: Ends, request: &Request) -> Option<Response> {
    let headers = request.headers();
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next(), request.uri().authority()) {
        (Some(host), None, None) if app.access.names.allow(host, ends.local) => host,
        _ => {
            let words = "this name is not one of this server's; start it with --host NAME, or use its address\n";
            return Some(app.refuse(Refusal::Host, StatusCode::MISDIRECTED_REQUEST, words));
        }
    };
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_ours = match headers.get(header::ORIGIN) {
        Some(origin) => origin.to_str().is_ok_and(|origin| guard::is_own_page(origin, host, app.access.scheme)),
        // A browser says where a page comes from that sends something; who is none shows a token.
        None => bearer(headers).is_some(),
    };
    if changes && !is_ours {
        let words = "only this server's own page may ask for this, or a program with `Authorization: Bearer TOKEN`\n";
        return Some(app.refuse(Refusal::Origin, StatusCode::FORBIDDEN, words));
    }
    None
}

fn serve(asset: &Asset, headers: &HeaderMap) -> Response {
    let has = |name, word: &str| {
        let mut values = headers.get_all(name).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        values.any(|value| value.split(',').any(|one| one.trim() == word))
    };
    let about =
        [(header::ETAG, asset.tag.as_str()), (header::CACHE_CONTROL, "no-cache"), (header::VARY, "accept-encoding")];
    if has(header::IF_NONE_MATCH, &asset.tag) {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    let kind = [(header::CONTENT_TYPE, asset.kind)];
    if has(header::ACCEPT_ENCODING, "gzip") {
        return (about, kind, [(header::CONTENT_ENCODING, "gzip")], asset.packed.clone()).into_response();
    }
    (about, kind, asset.plain.clone()).into_response()
}

/// What the page asks first.
#[derive(Debug, Serialize)]
struct Session {
    /// May see what the controller says.
    reads: bool,
    /// May pause and resume.
    controls: bool,
    /// A token would allow more.
    could_log_in: bool,
    /// There is a session that can be ended.
    logged_in: bool,
    /// Time between two events, ms.
    every_ms: u64,
    /// What is shown is an emulation's log.
    log: bool,
    /// There is a file of before and after.
    measurement: bool,
    /// Of this server.
    version: &'static str,
}

async fn session(State(app): Shared, Extension(ends): Extension<Ends>, headers: HeaderMap) -> Response {
    let right = match app.right_of(&headers, ends.peer.ip()) {
        Ok(right) => right,
        Err(refused) => return *refused,
    };
    json(&Session {
        reads: right >= Right::Read,
        controls: right >= Right::Control && !app.source.is_log(),
        could_log_in: right < Right::Control && !app.access.tokens.is_empty(),
        logged_in: right > app.access.of_everybody,
        every_ms: app.source.every().as_millis() as u64,
        log: app.source.is_log(),
        measurement: app.measurement.is_some(),
        version: lasthop_command::VERSION,
    })
}

async fn login(State(app): Shared, Extension(ends): Extension<Ends>, body: Body) -> Response {
    let Some(token) = text(body).await else { return too_long(&app) };
    let right = match app.judge(token.trim(), ends.peer.ip()) {
        Ok(right) => right,
        Err(refused) => {
            // The limit of tries is the limit of these lines, too.
            eprintln!("lasthop: a wrong token came from {}", ends.peer.ip());
            return *refused;
        }
    };
    let number = app.sessions.lock().unwrap_or_else(PoisonError::into_inner).open(right, Instant::now());
    set_cookie(&app, &number, LASTS.as_secs())
}

async fn logout(State(app): Shared, headers: HeaderMap) -> Response {
    if let Some(number) = app.session(&headers) {
        app.sessions.lock().unwrap_or_else(PoisonError::into_inner).close(number);
    }
    set_cookie(&app, "", 0)
}

fn set_cookie(app: &App, number: &str, seconds: u64) -> Response {
    let secure = if app.access.scheme == Scheme::Http { "" } else { "; Secure" };
    let name = app.cookie_name();
    let cookie = format!("{name}={number}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}

async fn events(State(app): Shared, Extension(ends): Extension<Ends>, headers: HeaderMap) -> Response {
    if let Err(refused) = app.demand(Right::Read, &headers, ends) {
        return *refused;
    }
    let Some(viewer) = app.source.watch(MOST_VIEWERS) else {
        let words = "as many watch as may; close another page\n";
        return app.refuse(Refusal::Viewers, StatusCode::SERVICE_UNAVAILABLE, words);
    };
    let first = app.source.latest().await;
    // nginx hands on what comes at once, and not when a buffer is full.
    let unbuffered = (header::HeaderName::from_static("x-accel-buffering"), "no");
    let kind = [(header::CONTENT_TYPE, "text/event-stream"), unbuffered];
    (kind, Body::new(Events::new(&first.event, viewer))).into_response()
}

async fn status(State(app): Shared, Extension(ends): Extension<Ends>, headers: HeaderMap) -> Response {
    if let Err(refused) = app.demand(Right::Read, &headers, ends) {
        return *refused;
    }
    match app.source.status().await {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n").into_response(),
    }
}

/// A controller that is not there is a figure, too.
async fn metrics(State(app): Shared, Extension(ends): Extension<Ends>, headers: HeaderMap) -> Response {
    if let Err(refused) = app.demand(Right::Read, &headers, ends) {
        return *refused;
    }
    let status = app.source.status().await.ok().and_then(|text| serde_json::from_slice(&text).ok());
    let text = status.as_ref().map_or_else(prometheus::render_absent, prometheus::render);
    ([(header::CONTENT_TYPE, prometheus::CONTENT_TYPE)], text).into_response()
}

async fn measurement(State(app): Shared, Extension(ends): Extension<Ends>, headers: HeaderMap) -> Response {
    if let Err(refused) = app.demand(Right::Read, &headers, ends) {
        return *refused;
    }
    app.measurement.as_ref().map_or_else(|| StatusCode::NO_CONTENT.into_response(), |it| json(&it.shown()))
}

async fn counts(State(app): Shared, Extension(ends): Extension<Ends>, headers: HeaderMap) -> Response {
    #[derive(Serialize)]
    struct Told {
        viewers: usize,
        #[serde(flatten)]
        counts: crate::count::Told,
    }
    match app.demand(Right::Read, &headers, ends) {
        Ok(()) => json(&Told { viewers: app.source.viewers(), counts: app.counts.told() }),
        Err(refused) => *refused,
    }
}

async fn command(State(app): Shared, Extension(ends): Extension<Ends>, headers: HeaderMap, body: Body) -> Response {
    if let Err(refused) = app.demand(Right::Control, &headers, ends) {
        return *refused;
    }
    let Some(text) = text(body).await else { return too_long(&app) };
    // Only what is understood here is handed on.
    let asked = match serde_json::from_str(&text) {
        Ok(request) => app.source.command(&request).await,
        Err(error) => Ok(Answer::Refused(format!("this is no request: {error}"))),
    };
    match asked {
        Ok(answer @ Answer::Done(_)) => json(&answer),
        Ok(answer) => (StatusCode::CONFLICT, json(&answer)).into_response(),
        Err(why) => (StatusCode::BAD_GATEWAY, json(&Answer::Refused(why))).into_response(),
    }
}

async fn text(body: Body) -> Option<String> {
    let bytes = tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, LONGEST_BODY)).await.ok()?.ok()?;
    String::from_utf8(bytes.into()).ok()
}

fn too_long(app: &App) -> Response {
    app.refuse(Refusal::Request, StatusCode::BAD_REQUEST, "at most 1024 bytes of text, within ten seconds\n")
}

fn json(value: &impl Serialize) -> Response {
    // Of our own types, whose keys are text.
    let text = serde_json::to_vec(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
