//! Who may use whom: the arrows of ARCHITECTURE.md, held over `cargo metadata`, dev- and build-dependencies included, and between the
//! modules of one crate no circles, held over the paths in its sources.

mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::Value;

/// Crate, and the crates of this repository that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("testing", &[]),
    ("command", &[]),
    ("page", &["testing"]),
    ("core", &["testing"]),
    ("files", &[]),
    ("medium", &["core", "testing"]),
    ("home", &["core", "medium", "files"]),
    ("tcp", &["core", "testing"]),
    ("store", &["files", "home"]),
    ("sim", &["core", "medium", "home", "tcp", "testing"]),
    ("emu", &["core", "medium", "home"]),
    ("status", &["core"]),
    ("live", &["core", "files", "status"]),
    // The medium under simulated radios, for virtual machines; linked by none. Of `live` the sockets of netlink, and the clock.
    ("hwsim", &["core", "live", "medium"]),
    // `command` with the feature `host` alone: what the programs share to measure.
    ("measure", &["command", "core", "status", "testing"]),
    ("daemon", &["command", "core", "live", "measure", "status"]),
    ("responsiveness", &["core"]),
    ("messenger", &["files"]),
    ("message", &["command", "core", "messenger"]),
    ("web", &["command", "core", "files", "page", "status", "testing"]),
    // Of `hwsim`, `live` and `messenger` its tests alone: what the other programs link, this one does not.
    (
        "cli",
        &[
            "command",
            "core",
            "medium",
            "home",
            "hwsim",
            "tcp",
            "sim",
            "emu",
            "live",
            "measure",
            "messenger",
            "page",
            "responsiveness",
            "status",
            "store",
            "testing",
            "web",
        ],
    ),
    // Python's package: a cdylib, linked by none.
    ("py", &["command", "core", "home", "sim", "store"]),
    // Manual pages and completions of all programs; linked by none.
    ("manual", &["cli", "command", "daemon", "message", "web"]),
];

/// Crate, the modules of a circle that stays for now, and why. A circle that is gone has to go from here, too.
const CIRCLES: &[(&str, &[&str], &str)] = &[
    (
        "medium",
        &[
            "attempt",
            "bridge",
            "crossing",
            "domain",
            "edca",
            "firmware",
            "hidden",
            "medium",
            "node",
            "params",
            "snapshot",
            "wireless_link",
        ],
        "events and names of nodes stand beside the enum of all media, which uses each of them",
    ),
    ("medium", &["mode", "phy"], "a rate is a code of its mode, and a mode's answers go at rates of 802.11g"),
    ("messenger", &["protocol", "tuning"], "what a kernel says of a socket goes over the wire as it is"),
];

/// (package, what it depends on) for everything of ours that a package of the workspace names.
fn arrows(metadata: &Value) -> BTreeSet<(String, String)> {
    let packages = metadata["packages"].as_array().expect("packages");
    let mut found = BTreeSet::new();
    for package in packages {
        let user = short(&package["name"]).expect("every package of the workspace is called lasthop-..");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if let Some(used) = short(&dependency["name"]) {
                assert!(used != "testing" || dependency["kind"] == "dev", "only tests of `{user}` may use `testing`");
                found.insert((user.clone(), used));
            }
        }
    }
    found
}

fn short(name: &Value) -> Option<String> {
    name.as_str().and_then(|n| n.strip_prefix("lasthop-")).map(str::to_owned)
}

#[test]
fn every_arrow_points_from_user_to_used() {
    let metadata = workspace::metadata();
    for (user, used) in arrows(&metadata) {
        let allowed = ALLOWED.iter().find(|(name, _)| *name == user);
        let (_, allowed) =
            allowed.unwrap_or_else(|| panic!("`{user}` is new: say in ARCHITECTURE.md and here whom it may use"));
        assert!(allowed.contains(&used.as_str()), "`{user}` must not use `{used}`; it may use {allowed:?}");
    }
}

#[test]
fn only_programs_use_anyhow_and_the_daemon_does_not() {
    for package in workspace::metadata()["packages"].as_array().expect("packages") {
        let is_ordinary = |d: &&Value| d["name"] == "anyhow" && d["optional"] == false;
        let uses = package["dependencies"].as_array().expect("dependencies").iter().any(|d| is_ordinary(&d));
        let may = ["lasthop-cli", "lasthop-message"].iter().any(|name| package["name"] == *name);
        assert!(!uses || may, "{} uses anyhow", package["name"]);
    }
}

#[test]
fn the_front_end_links_neither_the_controller_nor_the_messenger() {
    let metadata = workspace::metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let cli = packages.iter().find(|package| package["name"] == "lasthop-cli").expect("it is a package");
    for dependency in cli["dependencies"].as_array().expect("dependencies") {
        let is_of_another =
            ["lasthop-hwsim", "lasthop-live", "lasthop-messenger"].iter().any(|name| dependency["name"] == *name);
        assert!(!is_of_another || dependency["kind"] == "dev", "{} is for tests alone", dependency["name"]);
    }
}

#[test]
fn no_modules_of_one_crate_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/");
    let mut found = BTreeMap::new();
    for folder in sorted(crates) {
        let sources = folder.join("src");
        if sources.is_dir() {
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            let uses = Uses::of(&sources);
            for circle in uses.circles() {
                found.insert((name.clone(), circle.clone()), uses.tell(&circle));
            }
        }
    }
    let mut wrong = String::new();
    for ((name, modules), references) in &found {
        if !CIRCLES.iter().any(|(listed, circle, _)| listed == name && modules.iter().eq(circle.iter())) {
            let _ = writeln!(wrong, "`{name}`: the modules {} use each other:\n{references}", modules.join(", "));
        }
    }
    for (name, circle, why) in CIRCLES {
        if !found.keys().any(|(other, modules)| other == name && modules.iter().eq(circle.iter())) {
            let _ = writeln!(wrong, "`{name}`: there is no circle of exactly {} any more ({why})", circle.join(", "));
        }
    }
    assert!(wrong.is_empty(), "move what both need below both of them, or say in CIRCLES why not:\n{wrong}");
}

/// What modules directly below a crate's root use of each other, tests left out: user and used, with the places where it does.
#[derive(Default)]
struct Uses {
    modules: BTreeSet<String>,
    /// Names that the root gives to what stands in a module (`pub use medium::Medium`), and the module.
    passed_on: BTreeMap<String, String>,
    places: BTreeMap<(String, String), Vec<String>>,
}

impl Uses {
    fn of(sources: &Path) -> Self {
        let mut uses = Self::default();
        let is_root = |path: &Path| ["lib.rs", "main.rs", "bin"].iter().any(|name| path.ends_with(name));
        for path in sorted(sources).into_iter().filter(|path| !is_root(path)) {
            uses.modules.insert(path.file_stem().expect("a name").to_string_lossy().into_owned());
        }
        for root in ["lib.rs", "main.rs"] {
            uses.read_root(&sources.join(root));
        }
        for path in sorted(sources).into_iter().filter(|path| !is_root(path)) {
            let module = path.file_stem().expect("a name").to_string_lossy().into_owned();
            uses.read(&module, &path, 1);
        }
        uses
    }

    fn read_root(&mut self, path: &Path) {
        if !path.is_file() {
            return;
        }
        let tokens: Vec<TokenTree> = parsed(path).into_iter().collect();
        for (i, token) in tokens.iter().enumerate() {
            let Some(module) = tokens.get(i + 1).map(ToString::to_string).filter(|name| self.modules.contains(name))
            else {
                continue;
            };
            if is(token, "use") {
                let end = tokens[i..].iter().position(|t| is(t, ";")).expect("a `use` ends");
                let mut names = BTreeSet::new();
                identifiers(&tokens[i + 2..i + end], &mut names);
                self.passed_on.extend(names.into_iter().map(|name| (name, module.clone())));
            }
        }
    }

    /// A file, or the folder of a module: `depth` is that of the modules in it, 1 directly below the root.
    fn read(&mut self, module: &str, path: &Path, depth: usize) {
        if path.file_stem().is_some_and(|name| name == "tests") {
            return;
        }
        if path.is_dir() {
            for inner in sorted(path) {
                let is_itself = inner.ends_with("mod.rs");
                self.read(module, &inner, if is_itself { depth } else { depth + 1 });
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            let shown = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/"));
            let shown = shown.expect("a file of a crate").display().to_string();
            self.walk(module, &shown, parsed(path), depth);
        }
    }

    fn walk(&mut self, module: &str, file: &str, stream: TokenStream, depth: usize) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut i = 0;
        while i < tokens.len() {
            if is(&tokens[i], "#") && tokens.get(i + 1).is_some_and(|t| t.to_string().replace(' ', "") == "[cfg(test)]")
            {
                let ends =
                    |t: &TokenTree| is(t, ";") || matches!(t, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
                i += 2 + tokens[i + 2..].iter().position(ends).map_or(0, |at| at + 1);
                continue;
            }
            if is(&tokens[i], "crate") && is_path(&tokens, i + 1) {
                self.note(module, file, &tokens[i + 3..]);
            }
            if is(&tokens[i], "super") {
                let mut levels = 1;
                while is_path(&tokens, i + 1) && tokens.get(i + 3).is_some_and(|t| is(t, "super")) {
                    (levels, i) = (levels + 1, i + 3);
                }
                if levels == depth && is_path(&tokens, i + 1) {
                    self.note(module, file, &tokens[i + 3..]);
                }
            }
            if let TokenTree::Group(group) = &tokens[i] {
                let is_module = group.delimiter() == Delimiter::Brace && i >= 2 && is(&tokens[i - 2], "mod");
                self.walk(module, file, group.stream(), depth + usize::from(is_module));
            }
            i += 1;
        }
    }

    /// What stands behind the root in a path: a name, or several in braces.
    fn note(&mut self, module: &str, file: &str, rest: &[TokenTree]) {
        match rest.first() {
            Some(TokenTree::Ident(name)) => {
                let name = name.to_string();
                let used = if self.modules.contains(&name) { Some(&name) } else { self.passed_on.get(&name) };
                if let Some(used) = used.filter(|used| *used != module) {
                    let place = format!("{file}:{}", rest[0].span().start().line);
                    self.places.entry((module.to_owned(), used.clone())).or_default().push(place);
                }
            }
            Some(TokenTree::Group(group)) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                inner.split(|t| is(t, ",")).for_each(|each| self.note(module, file, each));
            }
            _ => {}
        }
    }

    fn reached<'a>(&'a self, from: &'a str) -> BTreeSet<&'a str> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            let used = self.places.keys().filter(|(user, _)| user == module).map(|(_, used)| used.as_str());
            next.extend(used.filter(|used| reached.insert(*used)));
        }
        reached
    }

    /// Modules each of which reaches each other, in alphabetical order.
    fn circles(&self) -> BTreeSet<Vec<String>> {
        let back = |module: &str| -> Vec<String> {
            let there = self.reached(module).into_iter().filter(|other| self.reached(other).contains(module));
            there.map(str::to_owned).collect()
        };
        self.modules.iter().map(|module| back(module)).filter(|circle| !circle.is_empty()).collect()
    }

    /// The references between the modules of a circle.
    fn tell(&self, circle: &[String]) -> String {
        let inside = self.places.iter().filter(|((user, used), _)| circle.contains(user) && circle.contains(used));
        inside.map(|((user, used), places)| format!("    {user} -> {used}: {}\n", places.join(", "))).collect()
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn parsed(path: &Path) -> TokenStream {
    let text = std::fs::read_to_string(path).expect("a source file");
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn is(token: &TokenTree, word: &str) -> bool {
    match token {
        TokenTree::Ident(name) => *name == word,
        TokenTree::Punct(sign) => word.len() == 1 && word.starts_with(sign.as_char()),
        _ => false,
    }
}

fn is_path(tokens: &[TokenTree], at: usize) -> bool {
    tokens.len() > at + 2 && is(&tokens[at], ":") && is(&tokens[at + 1], ":")
}

fn identifiers(tokens: &[TokenTree], into: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => drop(into.insert(name.to_string())),
            TokenTree::Group(group) => identifiers(&group.stream().into_iter().collect::<Vec<_>>(), into),
            _ => {}
        }
    }
}
