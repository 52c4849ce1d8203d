//! A headless Chromium that tests open pages in: what a page complains of, and what it looks like from within.
//!
//! It is spoken to by its DevTools over two pipes (`--remote-debugging-pipe`: a JSON object and a zero byte per message), so
//! there is no port. It ends, and its profile goes, with the [`Browser`].

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// Where Debian has it.
const PROGRAM: &str = "/usr/bin/chromium";
/// It says nothing to others, keeps nothing, and draws without a graphics card.
const FLAGS: &str = "--headless --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
    --disable-sync --disable-extensions --disable-dev-shm-usage --no-proxy-server --hide-scrollbars --no-sandbox \
    --remote-debugging-pipe";
/// A test does not wait longer where it says nothing else; the browser is ended, which ends what waits for it.
const PATIENCE_S: u32 = 60;

/// See the module.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    profile: PathBuf,
    patience_s: u32,
    number: u64,
    session: Option<String>,
    /// What the page said: errors, warnings, breaches of its policy, requests that went elsewhere.
    complaints: Vec<String>,
}

/// How wide the window is, and whether it prefers dark pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Points.
    pub width: u32,
    /// `prefers-color-scheme: dark`.
    pub is_dark: bool,
}

impl Browser {
    /// Starts one; `None` where there is no Chromium, and then says so.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_for(PATIENCE_S)
    }

    /// One that is ended after so many seconds.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start_for(patience_s: u32) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            eprintln!("SKIPPED: there is no {PROGRAM} (tools/install-deps web installs it)");
            return None;
        }
        let profile = std::env::temp_dir().join(format!("lasthop-browser-{}-{}", std::process::id(), unique()));
        // The shell gives it the descriptors that it wants: it reads from 3 and writes to 4.
        let shell =
            format!("exec timeout {patience_s} {PROGRAM} {FLAGS} --user-data-dir=\"$0\" 3<&0 4>&1 >/dev/null 2>&1");
        let mut command = Command::new("sh");
        command.args(["-c", &shell]).arg(&profile).env("HOME", &profile);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell to start chromium from");
        let to = process.stdin.take().expect("a pipe");
        let from = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut own = Self { process, to, from, profile, patience_s, number: 0, session: None, complaints: Vec::new() };
        let target = own.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        own.session = own.call("Target.attachToTarget", attach)["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            own.call(&format!("{domain}.enable"), json!({}));
        }
        Some(own)
    }

    /// Opens `address` in such a window, until it is there and drawn; what it complained of meanwhile.
    ///
    /// # Panics
    /// When the browser ends or does not answer in time.
    pub fn open(&mut self, address: &str, window: Window) -> Vec<String> {
        let scheme = if window.is_dark { "dark" } else { "light" };
        let metrics =
            json!({ "width": window.width, "height": 900, "deviceScaleFactor": 1, "mobile": window.width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
        self.complaints.clear();
        self.call("Page.navigate", json!({ "url": address }));
        self.evaluate(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))",
        );
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        self.complaints(address)
    }

    /// What the page of `address` complained of since it was opened, or since this was asked: a page from a server may ask that server
    /// for more, one from a file nobody.
    pub fn complaints(&mut self, address: &str) -> Vec<String> {
        // Events come with answers.
        self.evaluate("0");
        let own = match address.strip_prefix("http://").and_then(|rest| rest.split('/').next()) {
            Some(server) => format!("asked for http://{server}/"),
            None => format!("asked for {address}"),
        };
        let is_complaint = |said: &String| !said.starts_with(&own);
        self.complaints.drain(..).filter(is_complaint).collect()
    }

    /// Addresses that the page asked for since it was opened, or since its complaints were asked for.
    #[must_use]
    pub fn asked_for(&self) -> Vec<String> {
        self.complaints.iter().filter_map(|said| said.strip_prefix("asked for ").map(str::to_owned)).collect()
    }

    /// Waits until an expression is true in the page.
    ///
    /// # Panics
    /// When the browser is ended before.
    pub fn wait_for(&mut self, expression: &str) {
        self.evaluate(&format!(
            "new Promise(done => {{ const look = () => ({expression}) ? done() : setTimeout(look, 20); look(); }})"
        ));
    }

    /// Memory that the page's scripts use after a collection, bytes, and the nodes of its documents.
    pub fn weight(&mut self) -> (f64, f64) {
        self.call("HeapProfiler.collectGarbage", json!({}));
        let used = self.call("Runtime.getHeapUsage", json!({}))["usedSize"].as_f64().unwrap_or_default();
        let nodes = self.call("Memory.getDOMCounters", json!({}))["nodes"].as_f64().unwrap_or_default();
        (used, nodes)
    }

    /// What an expression comes to in the page; a promise is waited for.
    ///
    /// # Panics
    /// When it throws, or the browser ends.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// A key is pressed and let go where the focus is.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key }));
        }
    }

    /// The whole page as a PNG, in base64.
    pub fn picture(&mut self) -> String {
        self.picture_of(u32::MAX, 1.0)
    }

    /// Its upper part, so many points high, in so many pixels a point.
    pub fn picture_of(&mut self, height: u32, scale: f64) -> String {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
        let height = size["height"].as_f64().unwrap_or_default().min(height.into());
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": height, "scale": scale });
        let shot = self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true, "clip": clip }));
        shot["data"].as_str().unwrap_or_default().to_owned()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.to, "{message}\0").and_then(|()| self.to.flush()).expect("a browser that listens");
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).expect("a browser that answers");
            assert_eq!(
                answer.pop(),
                Some(0),
                "the browser ended, or did not answer {method} within {} s",
                self.patience_s
            );
            let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.complaints.extend(complaint(&answer));
        }
    }
}

/// What an event complains of, in words.
fn complaint(event: &Value) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Runtime.consoleAPICalled" => Some(params["args"].to_string()),
        "Log.entryAdded" => Some(params["entry"]["text"].to_string()),
        "Network.requestWillBeSent" => Some(format!("asked for {}", params["request"]["url"].as_str()?)),
        _ => None,
    }
}

/// Tests of one process run beside each other.
fn unique() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        // It may be gone already. Its end ends its children, which `kill` of `timeout` alone would not.
        let message = json!({ "id": 0, "method": "Browser.close" });
        let _ = write!(self.to, "{message}\0").and_then(|()| self.to.flush());
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
