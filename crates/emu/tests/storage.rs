//! The files of programs: every host has its own, a slow station's come and go no faster than it says.

mod common;

use common::{scenario, turn, with_cause};
use lasthop_emu::{Home, STORAGE};
use lasthop_home::scenario::HostId;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HOME: &str = r#"
format = 1
name = "test"
duration = "1s"
[[server]]
name = "W"
[wifi]
[[station]]
name = "PDA"
storage = { write = "400kB/s", read = "800kB/s", operation = "5ms" }
[[station]]
name = "PC"
"#;

const W: HostId = HostId::Server(0);
const PDA: HostId = HostId::Station(0);
const PC: HostId = HostId::Station(1);

/// As `turn`, where slow storage can be had, too.
fn turn_with_fuse(test: &str) -> Option<std::sync::MutexGuard<'static, ()>> {
    let turn = turn(test)?;
    if std::fs::File::open("/dev/fuse").is_ok() {
        return Some(turn);
    }
    eprintln!("SKIPPED: {test}: needs /dev/fuse");
    None
}

fn home() -> Home {
    Home::new(&scenario(HOME)).unwrap_or_else(|e| panic!("{}", with_cause(&e)))
}

/// Runs a shell script in the storage of `host`: what it wrote, and how long it took.
fn sh(home: &Home, host: HostId, script: &str) -> (String, Duration) {
    let mut command = Command::new("sh");
    command.args(["-ec", &format!("cd \"$LASTHOP_STORAGE\"\n{script}")]).stdout(Stdio::piped());
    let begun = Instant::now();
    let mut child = home.spawn(host, command).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.take_stdout().expect("a pipe"), &mut text).expect("text");
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{script}: {status}, {text}");
    (text, begun.elapsed())
}

#[test]
fn a_slow_storage_takes_what_its_rates_and_operations_say() {
    let Some(_turn) = turn_with_fuse("slow storage") else { return };
    let home = home();
    // 100 calls of 5 ms each, and 204,800 bytes at 400 kB/s.
    let (_, took) = sh(&home, PDA, "dd if=/dev/zero of=a bs=2048 count=100 2>/dev/null");
    assert!(took >= Duration::from_millis(500 + 512), "{took:?}");
    // 50 calls and the one that finds the end, at 800 kB/s.
    let (_, took) = sh(&home, PDA, "dd if=a of=/dev/null bs=4096 2>/dev/null");
    assert!(took >= Duration::from_millis(51 * 5 + 256), "{took:?}");
    // Two programs at a time share the one storage.
    let (_, took) = sh(&home, PDA, "for f in b c; do dd if=/dev/zero of=$f bs=200K count=1 2>/dev/null & done; wait");
    assert!(took >= Duration::from_millis(10 + 1024), "{took:?}");
}

#[test]
fn programs_of_one_host_share_its_files_and_nobody_else_sees_them() {
    let Some(_turn) = turn_with_fuse("files of a host") else { return };
    let home = home();
    for (host, name) in [(W, "server"), (PDA, "slow"), (PC, "fast"), (HostId::AccessPoint, "router")] {
        sh(&home, host, &format!("echo {name} > {name}"));
        let (seen, _) = sh(&home, host, "ls; cat *");
        assert_eq!(seen, format!("{name}\n{name}\n"));
    }
    let outside = std::fs::read_dir(STORAGE).expect("the mount point").count();
    assert_eq!(outside, 0, "files show outside the home");
    drop(home);
    let (seen, _) = sh(&self::home(), PDA, "ls");
    assert_eq!(seen, "", "files outlive their home");
}

#[test]
fn a_slow_storage_is_a_file_system_like_any_other() {
    let Some(_turn) = turn_with_fuse("file system") else { return };
    let home = home();
    let script = "
        echo one > a; echo two >> a; cat a
        set -C; (echo no > a) 2>/dev/null || echo kept; set +C
        mkdir -p x/y; mv a x/y/b; cp x/y/b c; ln c d; ln -s d e; cat e; ls x/y; rmdir x 2>/dev/null || echo full
        truncate -s 3 c; stat -c '%s %h %a' c; chmod 600 c; touch -d @7 c; stat -c '%a %Y' c
        exec 3<>f; rm f; echo still >&3; cat /proc/self/fd/3; sync -f c; rm -r x c d e; ls
        mkfifo p; (echo through > p &); cat p; df . > /dev/null";
    let (text, _) = sh(&home, PDA, script);
    let expected = "one\ntwo\nkept\none\ntwo\nb\nfull\n3 2 644\n600 7\nstill\nthrough\n";
    assert_eq!(text, expected);
    let (fast, _) = sh(&home, PC, script);
    assert_eq!(fast, expected, "the script is wrong, not the storage");
}

#[test]
fn a_storage_that_is_full_says_so() {
    let Some(_turn) = turn_with_fuse("full storage") else { return };
    let text = HOME.replace("operation = \"5ms\"", "size = \"100KiB\"");
    let text = text.replace("name = \"PC\"", "name = \"PC\"\nstorage = { size = \"100KiB\" }");
    let home = Home::new(&scenario(&text)).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    for host in [PDA, PC] {
        let (text, _) = sh(&home, host, "dd if=/dev/zero of=a bs=4K count=100 2>&1 || true; stat -c %s a");
        assert!(text.contains("No space left on device") && text.ends_with("\n102400\n"), "{text}");
        let (again, _) = sh(&home, host, "rm a; echo more > b; cat b");
        assert_eq!(again, "more\n");
    }
}

#[test]
fn a_program_ends_in_the_middle_of_a_write_that_would_take_hours() {
    let Some(_turn) = turn_with_fuse("a long write") else { return };
    let text = HOME.replace("400kB/s", "1B/s");
    let home = Home::new(&scenario(&text)).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    let mut command = Command::new("sh");
    command.args(["-c", "echo begins; exec dd if=/dev/zero of=$LASTHOP_STORAGE/a bs=1M count=1"]);
    let mut child = home
        .spawn(PDA, {
            command.stdout(Stdio::piped());
            command
        })
        .expect("it starts");
    let mut begins = [0; 7];
    std::io::Read::read_exact(&mut child.take_stdout().expect("a pipe"), &mut begins).expect("its word");
    while sh(&home, PDA, "stat -c %s a 2>/dev/null || true").0 != "1048576\n" {}
    assert!(child.try_wait().expect("it is there").is_none(), "the write was not slow");
    drop(child);
    // Nobody waits for what the dead had asked for.
    assert_eq!(sh(&home, PDA, "stat -c %s a").0, "1048576\n");
}

/// Threads of this process that serve storage.
fn serving() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a list of threads").flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| ["storage", "storage-clock", "fuser-0"].contains(&name.trim())).count()
}

#[test]
fn who_serves_a_storage_goes_with_its_home() {
    let Some(_turn) = turn_with_fuse("threads of a storage") else { return };
    let home = home();
    sh(&home, PDA, "echo > a");
    assert!(serving() > 0);
    drop(home);
    // The kernel takes mounts down in its own time.
    for _ in 0..100_000 {
        if serving() == 0 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{} threads are left", serving());
}
