//! The channel of today's air, and what chooses rates in it.

use lasthop_medium::channel::{ChannelParams, Fading};
use lasthop_medium::rate_control::{RateLaw, Scheme};

use super::*;

const SNR: &str = "standard = \"802.11n\"\nloss = { kind = \"snr\" }";

fn channel(scenario: &Scenario) -> ChannelParams {
    scenario.medium().0.channel.unwrap()
}

#[test]
fn a_channel_by_snr_has_the_defaults_of_the_schema() {
    let line = SCHEMA.lines().find_map(|line| line.strip_prefix("#   loss = ")).unwrap();
    let shown = parse(&small_wifi(&format!("standard = \"802.11n\"\nloss = {line}")), &[]).unwrap();
    let bare = parse(&small_wifi(SNR), &[]).unwrap();
    let (shown, bare) = (channel(&shown), channel(&bare));
    // Friis at 5.25 GHz.
    assert_eq!((shown.reference_db, bare.reference_db), (Some(46.8), None));
    assert_eq!(ChannelParams { reference_db: None, ..shown }, bare);
    assert_eq!(bare, ChannelParams::default());
    let lower = parse(&small_wifi(&format!("{SNR}\nband = \"2.4GHz\"")), &[]).unwrap();
    assert_eq!(channel(&lower).frequency_hz, 2.437e9);
    let said = parse(&small_wifi(&format!("{SNR}\nfrequency = \"5.6GHz\"")), &[]).unwrap();
    assert_eq!(channel(&said).frequency_hz, 5.6e9);
    assert_eq!(wifi(&said).power.0, 0.1);
}

#[test]
fn every_key_of_the_channel_reaches_the_medium() {
    let keys = "kind = \"snr\", exponent = 3.5, reference = \"40dB\", wall = \"7dB\", noise_figure = \"5dB\", \
                fading = \"4dB\", correlation = \"1s\"";
    let text = format!("[wifi]\nstandard = \"802.11ac\"\nloss = {{ {keys} }}\nrate_control = \"ideal\"");
    let home = parse(&small(&format!("walls = 2\n{text}")), &["station.S.rate_control=minstrel_ht"]).unwrap();
    let (params, stations) = home.medium();
    let fading = Some(Fading { deviation_db: 4.0, correlation: Span::from_secs(1) });
    let right = ChannelParams {
        exponent: 3.5,
        reference_db: Some(40.0),
        wall_db: 7.0,
        noise_figure_db: 5.0,
        fading,
        ..ChannelParams::default()
    };
    assert_eq!(params.channel, Some(right));
    assert_eq!((stations[0].walls, stations[0].snr_db), (2, None));
    assert_eq!(stations[0].rate_law, RateLaw::MinstrelHt(Scheme::Share));
    let newer = parse(&small_wifi(&format!("{SNR}\nrate_control = \"minstrel_ht_5.12\"")), &["station.S.snr=16dB"]);
    let (_, stations) = newer.unwrap().medium();
    assert_eq!((stations[0].snr_db, stations[0].rate_law), (Some(16.0), RateLaw::MinstrelHt(Scheme::Kinds)));
}

#[test]
fn a_change_walks_behind_a_wall() {
    let change = "[[change]]\nat = \"5s\"\nset = { \"station.S.walls\" = 3, \"station.S.distance\" = \"4m\" }";
    let home = parse(&format!("{}\n{change}", small_wifi(SNR)), &[]).unwrap();
    let (_, stations) = home.changes[0].after.medium();
    assert_eq!((stations[0].walls, stations[0].distance_m), (3, 4.0));
    assert!(home.changes[0].keys.iter().all(|key| crate::retune::Retune::covers(key)));
}

#[test]
fn what_the_channel_cannot_be_is_refused() {
    for (text, set, says) in [
        (small_wifi(""), "wifi.loss.kind=snr", "needs an access point of 802.11n"),
        (small_wifi(""), "wifi.rate_control=minstrel_ht", "needs an access point of 802.11n"),
        (small_wifi("standard = \"802.11n\""), "wifi.rate_control=ideal", "this channel has none"),
        (small_wifi("standard = \"802.11n\""), "station.S.snr=16dB", "only where errors follow from the SNR"),
        (small_wifi("standard = \"802.11n\""), "station.S.walls=1", "only where errors follow from the SNR"),
        (small_wifi(SNR), "wifi.loss.wall=-3dB", "not between 0dB and 200dB"),
        (small_wifi(SNR), "wifi.loss.deviation=3dB", "deviation"),
        (small_wifi(SNR), "wifi.loss.correlation=2000s", ""),
        (small_wifi(SNR), "station.S.snr=200dB", "not between -50dB and 100dB"),
        (small_wifi(SNR), "wifi.rate_control=onoe", "onoe"),
    ] {
        let Err(error) = parse(&text, &[set]) else {
            assert!(says.is_empty(), "{set} was taken");
            continue;
        };
        assert!(!says.is_empty() && error.to_string().contains(says), "{set}: {error}");
    }
    let both = small(&format!("snr = \"16dB\"\nwalls = 2\n[wifi]\n{SNR}"));
    assert!(refusal(&both, &[]).contains("stands beside snr"), "{}", refusal(&both, &[]));
}
