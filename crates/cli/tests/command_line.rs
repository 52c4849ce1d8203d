//! The command line as a user meets it: help that teaches, exit codes, errors that say what would be right.

mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lasthop_core::fastpath::layout::Reason;

fn lasthop(arguments: &[&str]) -> Output {
    Command::new(programs::lasthop()).args(arguments).output().expect("the binary starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("no signal ended it")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A copy of the binaries that a user without rights may run, and the command that runs them as one.
fn as_nobody(folder: &Path, arguments: &[&str]) -> Option<Command> {
    if !is_root() {
        let mut command = Command::new(programs::lasthop());
        command.args(arguments);
        return Some(command);
    }
    let setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].iter().find(|p| Path::new(p).exists())?;
    let copy = folder.join("lasthop");
    if !copy.exists() {
        let original = Path::new(programs::lasthop());
        for name in ["lasthop", "lasthopd"] {
            std::fs::copy(original.with_file_name(name), folder.join(name)).expect("the binary can be copied");
        }
    }
    let mut command = Command::new(setpriv);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(copy).args(arguments);
    Some(command)
}

fn open_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    folder
}

fn scenario_with(folder: &Path, from: &str, to: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/papers/sap-law.toml");
    let text = std::fs::read_to_string(home).expect("the paper's home is there");
    assert!(text.contains(from), "the scenario has no `{from}`");
    let path = folder.join("home.toml");
    std::fs::write(&path, text.replacen(from, to, 1)).expect("the scenario can be written");
    path
}

/// What is written into a pipe, with these variables set and no other that speaks of colours.
fn in_a_pipe(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(programs::lasthop());
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
        command.env_remove(name);
    }
    let output = command.args(arguments).envs(variables.iter().copied()).output().expect("the binary starts");
    stdout(&output) + &stderr(&output)
}

#[test]
fn colours_are_not_in_pipes_unless_they_are_forced_and_never_with_no_color() {
    let sees = |arguments: &[&str], variables: &[(&str, &str)]| in_a_pipe(arguments, variables).contains('\x1b');
    for arguments in [&["sim", "/nonexistent.toml"][..], &["doctor"]] {
        assert!(!sees(arguments, &[]), "{arguments:?}");
        assert!(sees(arguments, &[("CLICOLOR_FORCE", "1")]), "{arguments:?}");
        assert!(!sees(arguments, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), "{arguments:?}");
    }
}

#[test]
fn help_names_every_command_and_the_first_thing_to_type() {
    let output = lasthop(&["--help"]);
    assert_eq!(code(&output), 0);
    let help = stdout(&output);
    for word in [
        "demo",
        "run",
        "status",
        "doctor",
        "emulate",
        "sim",
        "sweep",
        "message",
        "web",
        "sudo lasthop demo",
        "Exit codes",
    ] {
        assert!(help.contains(word), "`{word}` is missing in\n{help}");
    }
}

#[test]
fn the_help_of_every_command_fits_a_hundred_columns_and_explains_itself() {
    let of_messages = ["send", "fetch"].map(|command| vec!["message", command]);
    let others =
        ["demo", "run", "status", "doctor", "emulate", "sim", "sweep", "message", "web"].map(|command| vec![command]);
    for command in others.into_iter().chain(of_messages) {
        let output = lasthop(&[&command[..], &["--help"]].concat());
        let command = command.join(" ");
        assert_eq!(code(&output), 0, "{command}");
        let help = stdout(&output);
        let wide: Vec<&str> = help.lines().filter(|l| l.chars().count() > 100).collect();
        assert!(wide.is_empty(), "{command}: {wide:?}");
        assert!(help.lines().next().is_some_and(|l| l.len() > 30), "{command} opens with what it does:\n{help}");
    }
}

#[test]
fn the_version_of_every_program_holds_the_revision_and_its_day() {
    for name in ["lasthop", "lasthopd", "lasthop-message", "lasthop-web"] {
        let program = Path::new(programs::lasthop()).with_file_name(name);
        let version = stdout(&Command::new(program).arg("--version").output().expect("the binary starts"));
        let begins = format!("{name} {} (", env!("CARGO_PKG_VERSION"));
        let built = version.trim_end().strip_prefix(&begins).and_then(|built| built.strip_suffix(')')).expect(&version);
        if built == "unknown" {
            continue; // built outside a checkout
        }
        let (revision, day) = built.split_once(", ").expect(&version);
        let hash = revision.strip_suffix("-dirty").unwrap_or(revision);
        assert!(hash.len() >= 12 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{version}");
        let digits = |from: usize, to: usize| day[from..to].bytes().all(|b| b.is_ascii_digit());
        assert!(day.len() == 10 && digits(0, 4) && digits(5, 7) && digits(8, 10), "{version}");
    }
}

#[test]
fn a_command_of_another_program_is_listed_with_its_own_words_and_helps_by_the_name_that_was_typed() {
    let listed = stdout(&lasthop(&["--help"]));
    for command in ["run", "status", "doctor", "message", "web"] {
        let help = stdout(&lasthop(&[command, "--help"]));
        let about = help.lines().next().expect("a first line");
        let is_row = |line: &str| {
            line.trim_start().split_once(' ').is_some_and(|(c, what)| c == command && what.trim() == about)
        };
        assert!(listed.lines().any(is_row), "`{command}  {about}` is missing in\n{listed}");
        assert!(help.contains(&format!("Usage: lasthop {command}")), "{help}");
        assert!(stdout(&lasthop(&["help", command])).contains(&format!("Usage: lasthop {command}")), "{command}");
        let wrong = stderr(&lasthop(&[command, "--no-such-flag"]));
        assert!(wrong.contains(&format!("lasthop {command}")), "{wrong}");
    }
    assert!(stdout(&lasthop(&["message", "send", "--help"])).contains("Usage: lasthop message send"));
}

#[test]
fn a_program_that_is_not_installed_is_named_with_the_place_and_what_to_do() {
    let folder = open_folder();
    let alone = folder.path().join("lasthop");
    std::fs::copy(programs::lasthop(), &alone).expect("the binary can be copied");
    let run = |arguments: &[&str], path: &Path| {
        Command::new(&alone).args(arguments).env("PATH", path).output().expect("the binary starts")
    };
    for (command, program) in
        [("run", "lasthopd"), ("doctor", "lasthopd"), ("message", "lasthop-message"), ("web", "lasthop-web")]
    {
        let output = run(&[command, "--help"], folder.path());
        let message = stderr(&output);
        assert_eq!(code(&output), 1, "{message}");
        let place = folder.path().join(program);
        assert!(message.contains(place.to_str().expect("utf-8")) && message.contains("make build"), "{message}");
    }
    let others = Path::new(programs::lasthop()).parent().expect("a folder");
    assert_eq!(code(&run(&["run", "--help"], others)), 0, "it is found in PATH");
}

#[test]
fn a_wrong_request_ends_with_2() {
    for arguments in [
        &["fly"][..],
        &["demo", "--seconds", "2"],
        &["demo", "--cc", "bbr"],
        &["run", "--lan", "lo"],
        &["run", "--lan", "wlan0", "--wan", "wlan0"],
        &["run", "--lan", "auto", "--lan", "wlan0"],
        &["run", "--lan", "wlan0", "--capacity", "fast"],
        &["run", "--lan", "a/b", "--capacity", "1Mbit/s"],
        &["run", "--config", "/nonexistent.toml"],
        &["emulate", "/nonexistent.toml"],
        &["sim"],
        &["sim", "/nonexistent.toml"],
        &["sim", "/nonexistent.toml", "--set", "seed"],
        &["sweep", "/nonexistent.toml"],
        &["sweep", "/nonexistent.toml", "--vary", "seed=1", "-o", "a.csv"],
        &["demo", "--json", "/nonexistent/result.json"],
        &["message"],
        &["message", "send", "--to", "ben"],
        &["message", "send", "--to", "ben", "a.wav", "--account", "/nonexistent.toml"],
        &["message", "fetch", "--account", "/nonexistent.toml"],
        &["message", "fetch", "--list", "--keep"],
    ] {
        let output = lasthop(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{arguments:?}: errors go to stderr");
    }
}

#[test]
fn a_wrong_scenario_is_refused_with_file_line_key_and_what_would_be_right() {
    let folder = open_folder();
    let path = scenario_with(folder.path(), "kind = \"game-server\"", "kind = \"game-sever\"");
    let text = std::fs::read_to_string(&path).expect("scenario");
    let line = 1 + text.lines().position(|l| l.contains("game-sever")).expect("the line is there");
    let output = lasthop(&["emulate", path.to_str().expect("utf-8")]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    let message = stderr(&output);
    assert!(message.contains(&format!("home.toml:{line}: ")), "line {line}: {message}");
    assert!(message.contains("kind") && message.contains("game-server"), "{message}");
}

#[test]
fn a_wrong_configuration_is_refused_with_file_line_key_and_what_would_be_right() {
    let folder = open_folder();
    let path = folder.path().join("lasthop.toml");
    std::fs::write(&path, "lan = [\"wlan0\"]\ncapacty = \"20Mbit/s\"\n").expect("written");
    let output = lasthop(&["run", "--config", path.to_str().expect("utf-8")]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("lasthop.toml:2: capacty: "), "{}", stderr(&output));
    assert!(stderr(&output).contains("`capacity`"), "{}", stderr(&output));
}

#[test]
fn the_printed_configuration_is_one_that_run_accepts() {
    let output = lasthop(&["run", "--print-config"]);
    assert_eq!(code(&output), 0);
    assert!(lasthop_live::config::Config::parse(&stdout(&output), "printed").is_ok());
}

#[test]
fn the_parameters_of_the_law_are_printed_for_tools() {
    let output = lasthop(&["run", "--print-law"]);
    assert_eq!(code(&output), 0);
    let printed: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let usual = lasthop_core::ap::Law::default();
    for each in printed.as_array().expect("a list") {
        assert_eq!(each["default"].as_f64(), usual.get(each["name"].as_str().expect("a name")), "{each}");
    }
    assert_eq!(printed.as_array().map(Vec::len), Some(lasthop_core::ap::Law::PARAMETERS.len()));
}

#[test]
fn the_books_table_of_the_law_is_the_laws() {
    let book = include_str!("../../../book/src/law.md");
    let usual = lasthop_core::ap::Law::default();
    for parameter in lasthop_core::ap::Law::PARAMETERS {
        let lasthop_core::ap::Parameter { name, unit, range: (least, most), without, reason } = parameter;
        let default = usual.get(name).expect("a parameter has a value");
        let row = format!("| `{name}` | {default} | {unit} | {least} to {most} | {without} | {reason} |");
        assert!(book.lines().any(|line| line == row), "book/src/law.md has to say\n{row}");
    }
}

#[test]
fn the_books_table_of_reasons_has_every_reason_once_and_no_other() {
    let book = include_str!("../../../book/src/router.md");
    let (_, rest) = book.split_once("| reason | the packet |\n|---|---|\n").expect("the table's head");
    let first_column = |row: &str| row.split('|').nth(1).unwrap_or_default().replace(['`', ' '], "");
    let rows = rest.lines().take_while(|row| row.starts_with('|')).map(first_column).collect::<Vec<_>>().join(",");
    let mut listed: Vec<_> = rows.split(',').collect();
    let mut reasons = Reason::ALL.map(Reason::name);
    listed.sort_unstable();
    reasons.sort_unstable();
    assert_eq!(listed, reasons);
}

#[test]
fn without_root_a_command_says_what_it_cannot_do_and_what_to_type() {
    let folder = open_folder();
    let scenario = scenario_with(folder.path(), "seed = 1", "seed = 2");
    let scenario = scenario.to_str().expect("utf-8");
    for arguments in [&["demo", "--seconds", "6"][..], &["run", "--capacity", "1Mbit/s"], &["emulate", scenario]] {
        let Some(mut command) = as_nobody(folder.path(), arguments) else {
            println!("SKIPPED: no setpriv here to run the binary as a user without rights");
            return;
        };
        let output = command.output().expect("it starts");
        let message = stderr(&output);
        assert_eq!(code(&output), 1, "{arguments:?}: {message}");
        assert!(message.contains("needs root") && message.contains("sudo "), "{arguments:?}: {message}");
        assert!(message.contains(arguments[0]), "the command to type is the one that was typed: {message}");
    }
}

#[test]
fn a_right_that_is_missing_is_named_to_root_too() {
    let Some(setpriv) = ["/usr/bin/setpriv", "/bin/setpriv"].iter().find(|path| Path::new(path).exists()) else {
        println!("SKIPPED: no setpriv here to take a right away");
        return;
    };
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has rights that can be taken away");
        return;
    }
    let mut command = Command::new(setpriv);
    command.args(["--inh-caps=-perfmon,-sys_admin", "--bounding-set=-perfmon,-sys_admin", "--"]);
    command.args([programs::lasthop(), "run", "--lan", "lasthop-none", "--socket", "/nonexistent/lasthop.sock"]);
    let output = command.output().expect("it starts");
    let message = stderr(&output);
    assert_eq!(code(&output), 1, "{message}");
    assert!(message.contains("CAP_PERFMON") && !message.contains("CAP_NET_ADMIN"), "{message}");
    assert!(!message.contains("sudo"), "it is root already: {message}");
}

#[test]
fn status_without_a_controller_says_how_to_start_one() {
    let output = lasthop(&["status", "--socket", "/nonexistent/lasthop.sock"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("lasthop run"), "{}", stderr(&output));
}

#[test]
fn doctor_runs_anywhere_and_gives_every_missing_thing_a_remedy() {
    let output = lasthop(&["doctor"]);
    assert!([0, 1].contains(&code(&output)), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.lines().count() >= 8, "{text}");
    for (i, line) in text.lines().enumerate().filter(|(_, l)| l.starts_with("missing")) {
        assert!(text.lines().nth(i + 1).is_some_and(|l| l.trim_start().starts_with("->")), "{line}\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&stdout(&lasthop(&["doctor", "--json"]))).expect("JSON");
    assert!(json.as_array().is_some_and(|checks| checks.len() >= 8));
}

#[test]
fn every_scenario_of_the_repository_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut folders = vec![root];
    let mut loaded = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("scenarios").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "toml") {
                if let Err(error) = lasthop_home::scenario::Scenario::load(&path, &[]) {
                    panic!("{error}");
                }
                loaded += 1;
            }
        }
    }
    assert!(loaded >= 4, "only {loaded} scenarios");
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
}

#[test]
fn a_configuration_that_has_no_end_is_refused_and_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (fifo, long) = (folder.path().join("fifo"), folder.path().join("long.toml"));
    mkfifo(&fifo);
    std::fs::write(&long, vec![b'#'; (1 << 20) + 1]).expect("written");
    let cases = [
        (Path::new("/dev/zero"), "it is a character device"),
        (folder.path(), "it is a directory"),
        (&fifo, "it is a pipe"),
        (&long, "larger than 1024 KiB"),
    ];
    for (path, says) in cases {
        // Memory is bounded, so that reading on ends in an error of another kind, and so is the time.
        let command = "ulimit -v 1000000; exec timeout 20 \"$0\" run --dry-run --config \"$1\"";
        let output =
            Command::new("bash").args(["-c", command, programs::lasthop()]).arg(path).output().expect("bash starts");
        let said = stderr(&output);
        assert!(code(&output) == 2 && said.contains(says), "{}: {said}", path.display());
    }
    let command = "exec \"$0\" run --dry-run --config <(\"$0\" run --print-config)";
    let output = Command::new("bash").args(["-c", command, programs::lasthop()]).output().expect("bash starts");
    assert!(code(&output) == 2 && stderr(&output).contains("it is a pipe"), "{}", stderr(&output));
}

#[test]
fn a_scenario_may_come_through_a_pipe_that_has_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home.toml");
    let text = "format = 1\nname = \"t\"\nduration = \"2s\"\n[wifi]\nrate = \"54Mbit/s\"\n[[server]]\nname = \"W\"\n\
                [[station]]\nname = \"N\"\n[[flow]]\nname = \"ftp\"\nfrom = \"W\"\nto = \"N\"\nkind = \"ftp\"\n";
    std::fs::write(&home, text).expect("the scenario can be written");
    let run = |source: &str| {
        let command = format!("exec timeout 60 \"$0\" sim <({source})");
        Command::new("bash").args(["-c", &command, programs::lasthop()]).arg(&home).output().expect("bash starts")
    };
    let output = run("cat \"$1\"");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let output = run("cat /dev/zero");
    assert!(code(&output) == 2 && stderr(&output).contains("larger than 1024 KiB"), "{}", stderr(&output));
    let output = lasthop(&["sim", "/dev/zero"]);
    assert!(code(&output) == 2 && stderr(&output).contains("it is a character device"), "{}", stderr(&output));
}
