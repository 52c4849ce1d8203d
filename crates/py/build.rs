//! The docstrings of the extension module are those of its stubs, in one text: each goes into a file of its own, which `doc!` takes in.

use std::path::PathBuf;
use std::{env, fs, io};

const STUBS: &str = "python/lasthop/_lasthop.pyi";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={STUBS}");
    let to = env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| io::Error::other("cargo names no OUT_DIR"))?;
    for (name, text) in docstrings(&fs::read_to_string(STUBS)?) {
        fs::write(to.join(name), text)?;
    }
    Ok(())
}

/// (`Class` or `Class.member`, its docstring without indentation) of stubs as ruff formats them: a docstring is the first line in `"""` after
/// the line that names what it is of. `crates/py/tests/test_docs.py` holds this to Python's own parser.
fn docstrings(stubs: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut class, mut name) = ("", None);
    let mut lines = stubs.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let (0, Some(of)) = (indent, text.strip_prefix("class ")) {
            class = word(of);
            name = Some(class.to_owned());
        } else if indent == 4 && !class.is_empty() && !word(text).is_empty() {
            name = Some(format!("{class}.{}", word(text.strip_prefix("def ").unwrap_or(text))));
        }
        let (Some(first), Some(of)) = (text.strip_prefix("\"\"\""), name.take_if(|_| text.starts_with("\"\"\"")))
        else {
            continue;
        };
        let mut doc = first.to_owned();
        while !doc.ends_with("\"\"\"") {
            let Some(line) = lines.next() else { break };
            let outer = line.len().min(indent);
            doc.push('\n');
            doc.push_str(line.get(outer..).unwrap_or_default().trim_end());
        }
        found.push((of, doc.trim_end_matches("\"\"\"").trim_end().to_owned()));
    }
    found
}

/// The identifier that `text` begins with.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}
