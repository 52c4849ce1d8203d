//! Window updates, as a kernel's TCP takes them.

use std::time::{Duration, Instant};

use lasthop_core::ap::ShareRule;
use lasthop_core::fastpath::layout::{FlowState, HOPS, Plan};
use lasthop_core::packet::Direction;
use lasthop_core::units::Span;
use lasthop_live::attach::Attachment;
use lasthop_live::config::{AttachMode, Capacity, Config};
use lasthop_live::program::{LinkLayer, LoadOptions, Program};
use lasthop_live::updates::Updates;
use lasthop_status::WindowUpdates;

use crate::namespace::Namespace;
use crate::traffic::Download;
use crate::world::{RATE, World, far_world, wait_for};

/// One way.
const FAR: Duration = Duration::from_millis(60);

fn learning(world: &World) -> Config {
    Config { capacity: Capacity::Learn, ..world.config() }
}

/// What the server's TCP thinks of segments that come: duplicates, upon which data is sent again, answered by a challenge, by a
/// reset, broken. What a timer sends again counts for nothing: on a busy machine ACKs come late.
pub fn complaints(world: &World) -> [u64; 5] {
    complaints_of(&world.server)
}

fn complaints_of(host: &Namespace) -> [u64; 5] {
    [
        ("TcpExt:", "TCPFastRetrans"),
        ("TcpExt:", "TCPChallengeACK"),
        ("Tcp:", "OutRsts"),
        ("Tcp:", "InErrs"),
        ("Tcp:", "InCsumErrors"),
    ]
    .map(|(of, name)| host.counter(of, name))
}

/// What a busy machine loses is sent again; updates that were taken for duplicates would be hundreds.
fn has_none([sent_again, others @ ..]: [u64; 5], updates: u64) {
    assert!(others == [0; 4] && sent_again * 100 < updates, "{sent_again} {others:?}");
}

/// A data path in the router whose plan paces both directions somewhat below what the hop carries, and who sees to window updates.
pub fn paced(world: &World) -> (Attachment, Updates, Program) {
    let config = learning(world);
    world.router.inside(move || pace(&config, LinkLayer::Ethernet))
}

/// The same where this thread is.
pub fn pace(config: &Config, link: LinkLayer) -> (Attachment, Updates, Program) {
    let program = Program::load(LoadOptions { flows: 4096, ..LoadOptions::default() }).expect("a program");
    // Nobody decides: the heartbeat lies ahead, and the plan stays.
    program.control().heartbeat(lasthop_live::clock::now() + Span::from_secs(3600));
    let pace_bytes = (RATE.mul_f64(0.85).as_bps() / 8) as u32;
    let plan = Plan { clamp_bytes: 600_000, floor_bytes: 4_344, growth_bytes: 60_000, pace_bytes };
    Direction::BOTH.into_iter().for_each(|direction| program.control().set_default_plan(direction, plan));
    let updates = Updates::start(config, &program);
    // SAFETY: a terminated name.
    let index = unsafe { libc::if_nametoindex(c"lan0".as_ptr()) };
    let [ingress, egress] = [Direction::ToRemote, Direction::ToStation];
    let [ingress, egress] = [ingress, egress].map(|direction| program.prog_fd(direction, link));
    let attachment = Attachment::new(&config.lan[0], index, AttachMode::Auto, ingress, egress).expect("hooks");
    (attachment, updates, program)
}

/// A download until many window updates were sent; the sender has nothing to complain of.
fn are_taken(world: &World, address: &'static str) {
    let (_attachment, updates, program) = paced(world);
    let download = Download::start(world, address);
    are_taken_by(&world.server, Direction::ToStation, download, &updates, &program);
}

/// The same of an upload.
fn are_taken_by_the_station(world: &World, address: &'static str) {
    let (_attachment, updates, program) = paced(world);
    let upload = Download::upwards(world, address);
    are_taken_by(&world.station, Direction::ToRemote, upload, &updates, &program);
}

fn are_taken_by(sender: &Namespace, direction: Direction, transfer: Download, updates: &Updates, program: &Program) {
    let half = |state: &FlowState| state.half[direction.index()];
    let sent = || updates.status().sent;
    wait_for("window updates are sent", || (sent() > 300).then_some(()));
    let (begun, before) = (Instant::now(), (sent(), transfer.received()));
    std::thread::park_timeout(Duration::from_secs(2));
    let after = (sent(), transfer.received());
    let seconds = begun.elapsed().as_secs_f64();
    let mbps = (after.1 - before.1) as f64 * 8e-6 / seconds;
    let rate = (after.0 - before.0) as f64 / seconds;
    eprintln!("{rate:.0} window updates in a second beside {mbps:.1} Mbit/s; {:?}", complaints_of(sender));
    has_none(complaints_of(sender), sent());
    let (_, state) = program.flows().expect("flows").into_iter().max_by_key(|(_, s)| half(s).bytes).expect("one");
    assert!(half(&state).rewritten > 300, "{state:?}");
    assert!(half(&state).last_window > 0, "what the receiver offered is not what an update told");
    transfer.finish().expect("whole, in order");
    has_none(complaints_of(sender), sent());
    let WindowUpdates { on, failed, dropped, .. } = updates.status();
    assert_eq!((on, failed, dropped), (true, 0, 0));
}

#[test]
fn window_updates_are_taken_by_the_sender() {
    let Some(world) = far_world("window_updates_are_taken_by_the_sender", FAR) else { return };
    are_taken(&world, World::SERVER);
}

#[test]
fn window_updates_are_taken_over_ipv6_too() {
    let Some(world) = far_world("window_updates_are_taken_over_ipv6_too", FAR) else { return };
    are_taken(&world, World::SERVER6);
}

#[test]
fn window_updates_are_taken_by_a_station_that_uploads() {
    let test = "window_updates_are_taken_by_a_station_that_uploads";
    let Some(world) = far_world(test, FAR) else { return };
    are_taken_by_the_station(&world, World::SERVER);
    are_taken_by_the_station(&world, World::SERVER6);
}

#[test]
fn a_station_behind_address_translation_takes_window_updates() {
    let test = "a_station_behind_address_translation_takes_window_updates";
    let Some(world) = far_world(test, FAR) else { return };
    if !world.translates_addresses(test) {
        return;
    }
    are_taken_by_the_station(&world, World::SERVER);
}

#[test]
fn window_updates_are_translated_as_their_connection_is() {
    let test = "window_updates_are_translated_as_their_connection_is";
    let Some(world) = far_world(test, FAR) else { return };
    if !world.translates_addresses(test) {
        return;
    }
    are_taken(&world, World::SERVER);
    // A segment in the station's own name would be answered by a reset, which `are_taken` has looked for.
    let (seen_by_the_server, _) = Download::start(&world, World::SERVER).ends();
    assert_eq!(seen_by_the_server.ip().to_string(), "10.9.2.1", "hidden");
}

#[test]
fn a_firewall_that_refuses_them_turns_them_off_and_the_download_goes_on() {
    let test = "a_firewall_that_refuses_them_turns_them_off_and_the_download_goes_on";
    let Some(world) = far_world(test, FAR) else { return };
    if !world.refuses_its_own_packets(test) {
        return;
    }
    let (_attachment, mut updates, program) = paced(&world);
    let download = Download::start(&world, World::SERVER);
    let said = wait_for("it gives up", || updates.check(&program));
    assert!(said.starts_with("window updates are off: 16 in a row could not be sent: "), "{said}");
    assert_eq!(updates.check(&program), None, "said once");
    let WindowUpdates { on, sent, failed, off, .. } = updates.status();
    assert_eq!((on, sent, failed, off.is_some()), (false, 0, 16, true));
    assert_eq!(
        program.control().get().hops.map(|hop| hop.map(|way| way.updates)),
        [[0, 0]; HOPS],
        "the data path does without"
    );
    let before = download.received();
    wait_for("the download goes on", || (download.received() > before + 2_000_000).then_some(()));
    download.finish().expect("the connection lives");
}

#[test]
fn none_are_sent_in_a_dry_run_nor_by_equation_one_nor_where_nobody_wants_them() {
    let test = "none_are_sent_in_a_dry_run_nor_by_equation_one_nor_where_nobody_wants_them";
    let Some(world) = far_world(test, Duration::from_millis(15)) else { return };
    let learns = learning(&world);
    for (config, why) in [
        (Config { dry_run: true, ..learns.clone() }, "a dry run sends nothing"),
        (Config { window_updates: false, ..learns.clone() }, "window_updates = false"),
        (Config { windows: false, ..learns }, "windows = false"),
        (Config { share: ShareRule::Equal, ..world.config() }, "share = \"equal\""),
    ] {
        let running = world.control(config).expect("a controller");
        let download = Download::start(&world, World::SERVER);
        wait_for("the download runs", || (download.received() > 3_000_000).then_some(()));
        let updates = running.status().window_updates;
        assert_eq!((updates.on, updates.sent, updates.off.as_deref()), (false, 0, Some(why)));
        download.finish().expect("the connection lives");
    }
}

#[test]
fn nothing_of_them_is_left_when_the_controller_has_gone() {
    let Some(world) = far_world("nothing_of_them_is_left_when_the_controller_has_gone", FAR) else { return };
    // Threads, and descriptors of BPF, events and polling.
    let open = || {
        let threads = std::fs::read_dir("/proc/self/task").expect("threads");
        let name = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let threads = threads.flatten().filter(|entry| name(entry.path()).trim() == "window updates").count();
        let descriptors = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
        let links = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        (threads, links.filter(|link| link.to_string_lossy().starts_with("anon_inode:")).count())
    };
    let before = open();
    let download = Download::start(&world, World::SERVER);
    for _ in 0..3 {
        let running = world.control(learning(&world)).expect("a controller");
        running.wait_for("it runs", |s| s.window_updates.on);
        assert_eq!(open().0, 1);
        assert!(open().1 > before.1);
        drop(running);
        assert_eq!(open(), before);
    }
    download.finish().expect("the connection lives");
}
