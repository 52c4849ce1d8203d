//! `control.levers`, and stations of other networks.

use lasthop_core::levers::Lever;

use super::*;

const CELL: &str = "standard = \"802.11n\"\n[control.window]\ncapacity = \"learn\"";

#[test]
fn levers_are_named_one_by_one_or_all() {
    let of = |set: &[&str]| parse(&small_wifi(CELL), set).unwrap().control.levers;
    assert_eq!(of(&[]), []);
    assert_eq!(of(&["control.levers=none"]), []);
    assert_eq!(of(&["control.levers=all"]), Lever::ALL);
    assert_eq!(of(&["control.levers=class"]), [Lever::Class]);
    assert_eq!(of(&["control.levers=[\"txop\", \"class\", \"txop\"]"]), [Lever::Class, Lever::Txop]);
    let written = small_wifi("standard = \"802.11ax\"\n[control]\nlevers = [\"aql\", \"aggregate\"]\nwindow = {}");
    assert_eq!(parse(&written, &[]).unwrap().control.levers, [Lever::Aql, Lever::Aggregate]);
    for lever in Lever::ALL {
        assert!(SCHEMA.contains(&format!("\"{}\"", lever.name())), "{lever:?}");
    }
}

#[test]
fn levers_are_the_controllers_and_have_known_names() {
    let refused = |set: &[&str]| refusal(&small_wifi(CELL), set);
    assert!(refused(&["control.levers=qos"]).contains("`qos` is no lever; write \"all\", or some of class, aql,"));
    assert!(refused(&["control.levers=[1]"]).contains("write words in quotes"));
    assert!(refused(&["control.levers=all", "control.window=none"]).contains("write [control.window], too"));
    let equal = ["control.levers=class", "control.window.capacity=18Mbit/s", "control.window.share=equal"];
    assert!(refused(&equal).contains("moves nothing but windows"));
}

#[test]
fn a_neighbours_flows_go_to_the_access_point_and_nothing_comes_back() {
    let home = |from: &str, to: &str, kind: &str| {
        small_wifi(&format!(
            "standard = \"802.11ac\"\n[[station]]\nname = \"other\"\nneighbour = true\n[[flow]]\nname = \"theirs\"\n\
             from = \"{from}\"\nto = \"{to}\"\nkind = \"{kind}\"\n"
        ))
    };
    let taken = parse(&format!("{}rate = \"10Mbit/s\"", home("other", "AP", "cbr")), &[]).unwrap();
    assert!(taken.stations[1].neighbour && !taken.stations[0].neighbour);
    for wrong in [home("other", "W", "voip"), home("W", "other", "voip"), home("other", "AP", "ftp")] {
        assert!(refusal(&wrong, &[]).contains("another network's station"), "{wrong}");
    }
}
