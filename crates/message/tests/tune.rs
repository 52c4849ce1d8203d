//! `lasthop message tune` as its users meet it, against a server that runs in the test.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output};

use lasthop_messenger::tuning::Profile;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

mod common;
use common::House;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/messages.md");
const SLOW: [&str; 4] = ["--set", "fetch.receiver.delay=20ms", "--set", "fetch.receiver.packet=4KiB"];

impl House {
    fn tune(&self, arguments: &[&str]) -> Command {
        self.command("ben", &[&["tune", "--storage", "in"], arguments].concat())
    }

    fn tuned(&self, arguments: &[&str]) -> Output {
        self.tune(arguments).output().expect("the binary starts")
    }

    fn profile(&self) -> Option<Profile> {
        Profile::load(&self.path("ben.profile.toml")).expect("a profile that can be read")
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("utf-8")
}

/// Every name of a field in `value`.
fn names(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            into.push(name.clone());
            names(value, into);
        }),
        Value::Array(values) => values.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

#[test]
fn a_device_is_explained_its_profile_kept_and_every_field_of_the_json_is_in_the_schema() {
    let house = House::open();
    let output = house.tuned(&[&["--seconds", "2", "--json", "-"][..], &SLOW].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    for expected in ["receiver's delay", "storage:", "fetch: the limit was", "buffers: ", "packet: ", "kept in"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (schema, mut all) = (fs::read_to_string(SCHEMA).expect("the schema"), Vec::new());
    let tune = &schema[schema.find("lasthop message tune").expect("a section on it")..];
    names(&json, &mut all);
    assert!(all.len() > 100);
    for name in all {
        let documented = tune.match_indices(&name).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            edge(tune[..at].chars().next_back()) && edge(tune[at + name.len()..].chars().next())
        });
        assert!(documented, "{name} is not in schema/messages.md");
    }
    let kept = house.profile().expect("a profile");
    assert!(kept.fetch.receiver.delay.duration().is_zero());
    assert_eq!(json["profile"]["fetch"]["receiver"]["delay"], "0us");
    assert_eq!(house.files("in").len(), 0);
}

#[test]
fn a_dry_run_keeps_nothing_and_a_wrong_key_names_the_right_one() {
    let house = House::open();
    let output = house.tuned(&["--seconds", "2", "--dry-run"]);
    assert!(output.status.success() && text(&output.stdout).contains("nothing was kept"), "{output:?}");
    assert_eq!(house.profile(), None);
    let output = house.tuned(&["--set", "fetch.reciever.delay=1ms"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("fetch.receiver.delay"), "{}", text(&output.stderr));
    assert_eq!(house.tuned(&["--seconds", "21"]).status.code(), Some(2));
}

#[test]
fn ctrl_c_ends_it_and_nothing_is_left_behind() {
    let house = House::open();
    let mut child = house.tune(&[&["--seconds", "20"][..], &SLOW].concat()).spawn().expect("the binary starts");
    let (mut said, mut stderr) = (String::new(), BufReader::new(child.stderr.take().expect("its stderr")));
    stderr.read_line(&mut said).expect("it says what it does");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    stderr.read_to_string(&mut said).expect("it ends");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("nothing is left behind"), "{said}");
    assert_eq!((house.files("in").len(), house.profile()), (0, None));
}
