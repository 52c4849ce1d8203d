//! What somebody pauses: windows of all, of one device, window updates; and that it goes on by itself.

use std::time::Duration;

use lasthop_live::config::{Capacity, Config};
use lasthop_status::command::{CommandError, Request, What, ask};
use lasthop_status::{FlowCondition, Status, WaitingStatus};

use crate::traffic::Download;
use crate::world::{Running, World, far_world};

/// One way.
const FAR: Duration = Duration::from_millis(10);

/// Median waiting time of downloads since `before`, ms, and the status that tells it; as soon as 20 intervals have told.
fn waited(running: &Running, before: &Status) -> (f64, Status) {
    let all = |status: &Status| -> WaitingStatus {
        let waiting = &status.directions.down.waiting;
        waiting.iter().find(|waiting| waiting.place == "all").cloned().unwrap_or_default()
    };
    let since = |status: &Status| all(status).since(&all(before));
    let status = running.wait_for("intervals tell what waits", |status| since(status).count >= 20);
    (since(&status).quantile(0.5).expect("a median"), status)
}

fn is(status: &Status, state: FlowCondition) -> bool {
    status.flows.iter().any(|flow| flow.state == state && flow.rate_bps > 5_000_000)
}

/// Pauses what `what` says and waits until the download's windows pass as they are offered; then until the pause is over.
fn goes_and_comes(world: &World, running: &Running, device: Option<&str>) {
    let held = running.wait_for("a window limits it", |status| is(status, FlowCondition::WindowLimited));
    let pause = |for_s| Request::Pause { what: What::Windows, device: device.map(str::to_owned), for_s: Some(for_s) };
    let paused = ask(&world.socket(), &pause(60.0)).expect("an answer");
    assert_eq!((paused.len(), paused[0].what), (1, What::Windows));
    let left = running.wait_for("its windows are left alone", |status| is(status, FlowCondition::Paused));
    // A sender with a larger window fills the buffer, by a packet or so in a round trip.
    let (mut deep, mut seen) = waited(running, &left);
    for _ in 0..15 {
        if deep < 20.0 {
            (deep, seen) = waited(running, &seen);
        }
    }
    assert!(deep >= 20.0, "the queue stays {deep:.1} ms without control: {:?}", seen.flows);
    assert!(seen.directions.down.rate_bps > held.directions.down.rate_bps / 2, "data goes on");
    // What is paused already is paused for the new time.
    ask(&world.socket(), &pause(0.3)).expect("an answer");
    let over = running.wait_for("the pause is over", |status| status.paused.is_empty());
    assert!(over.decisions.iter().any(|said| said.line.contains("goes on: its pause is over")), "{:?}", over.decisions);
    let held = running.wait_for("a window limits it again", |status| is(status, FlowCondition::WindowLimited));
    let (mut short, mut seen) = waited(running, &held);
    for _ in 0..5 {
        if short < 20.0 {
            return;
        }
        (short, seen) = waited(running, &seen);
    }
    panic!("{short:.1} ms wait with control: {:?}", seen.decisions);
}

#[test]
fn window_control_is_paused_for_all_or_for_one_device_and_goes_on_by_itself() {
    let Some(world) = far_world("window control is paused", FAR) else { return };
    let running = world.control(Config { capacity: Capacity::Learn, ..world.config() }).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    goes_and_comes(&world, &running, None);
    let device = running.status().devices.first().map(|device| device.id.clone()).expect("a device");
    assert!(device.len() == 17, "by its Ethernet address: {device}");
    goes_and_comes(&world, &running, Some("10.9.1.2"));
    let other = Request::Pause { what: What::Windows, device: Some("02:00:00:00:00:09".to_owned()), for_s: None };
    ask(&world.socket(), &other).expect("an answer");
    let status = running.wait_for("intervals later", |status| status.controller.intervals > 40);
    assert!(
        is(&status, FlowCondition::WindowLimited) && status.paused.len() == 1,
        "somebody else's: {:?}",
        status.paused
    );
    let resume = Request::Resume { what: What::Windows, device: Some("02:00:00:00:00:09".to_owned()) };
    assert_eq!(ask(&world.socket(), &resume).expect("an answer"), []);
    download.finish().expect("whole, in order");
}

#[test]
fn window_updates_are_paused_and_what_cannot_be_is_refused() {
    let Some(world) = far_world("window updates are paused", FAR) else { return };
    let running = world.control(Config { capacity: Capacity::Learn, ..world.config() }).expect("a controller");
    let pause = |what, device: Option<&str>| Request::Pause { what, device: device.map(str::to_owned), for_s: None };
    assert!(running.status().window_updates.on);
    ask(&world.socket(), &pause(What::Updates, None)).expect("an answer");
    let updates = running.status().window_updates;
    assert!(!updates.on && updates.off.as_deref() == Some("somebody has paused them"), "{updates:?}");
    ask(&world.socket(), &Request::Resume { what: What::Updates, device: None }).expect("an answer");
    assert!(running.status().window_updates.on, "{:?}", running.status().window_updates);
    for (request, word) in [
        (pause(What::Updates, Some("10.9.1.2")), "for all or for nobody"),
        (pause(What::Levers, Some("10.9.1.2")), "for all or for nobody"),
        (pause(What::Windows, Some("no such device")), "no device is called"),
        (Request::Pause { what: What::Udp, device: None, for_s: Some(0.0) }, "no time to pause"),
    ] {
        let refused = ask(&world.socket(), &request);
        assert!(matches!(&refused, Err(CommandError::Refused(why)) if why.contains(word)), "{refused:?}");
    }
    assert_eq!(running.status().paused, []);
}
