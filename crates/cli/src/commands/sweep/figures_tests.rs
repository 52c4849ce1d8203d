//! Which figures a sweep's file has.

use lasthop_home::scenario::Scenario;
use lasthop_sim::SimError;
use lasthop_store::{Figures, MOST_COLUMNS, Names, figures};

use super::fake;

fn names(flows: usize) -> Names {
    let home = Scenario::parse(
        "format = 1\nname = \"t\"\nduration = \"4s\"\n[[server]]\nname = \"W\"\n[wifi]\n[[station]]\nname = \"N\"\n",
        "t.toml",
        &[],
    );
    let report = |scenario: &Scenario| {
        let mut report = fake::report(&scenario.name, scenario.seed, 1);
        let flow = report.flows[0].clone();
        report.flows =
            (0..flows).map(|i| lasthop_home::report::FlowReport { name: format!("f{i}"), ..flow.clone() }).collect();
        Ok::<_, SimError>(report)
    };
    Names::new([home.unwrap()].iter(), 3, report).unwrap()
}

#[test]
fn an_unknown_name_is_refused_with_those_near_it() {
    let names = names(2);
    assert_eq!(names.check(&figures("f1.added_delay.p99, f0.goodput,control").unwrap()), Ok(()));
    let error = names.check(&figures("f0.goodput,f1.aded_delay.p99").unwrap()).unwrap_err();
    assert!(error.contains("`f1.aded_delay.p99`") && error.contains("f1.added_delay.p99, "), "{error}");
    assert!(error.contains("the flows are f0, f1, and all groups control"), "{error}");
    assert!(!error.contains("start_up"), "{error}");
    assert!(figures("").is_err() && figures("a,,b").is_err());
    assert_eq!(figures("all"), Ok(Figures::All));
}

#[test]
fn by_default_a_file_has_fewer_than_forty_columns_whatever_there_is() {
    for flows in [1, 3, 8, 9, 20, 27, 28, 29, 64] {
        let names = names(flows);
        let Figures::Chosen(usual) = names.usual() else { panic!() };
        let columns = 3 + 2 + names.columns().filter(|c| usual.iter().any(|name| name == c)).count();
        assert!(columns < MOST_COLUMNS, "{flows} flows: {columns}");
        assert_eq!(
            usual.iter().filter(|name| name.starts_with("flows.")).count(),
            match flows {
                ..=9 => 3 * flows,
                10..=29 => flows,
                _ => 0,
            },
            "{flows}"
        );
        assert_eq!(
            names.check(&Figures::Chosen(usual.into_iter().filter(|n| !n.starts_with("queues")).collect())),
            Ok(())
        );
    }
}

#[test]
fn every_shipped_scenario_has_usual_figures_of_its_own() {
    for path in crate::account::tests::scenarios() {
        let Ok(home) = Scenario::load(&path, &[]) else { panic!("{}", path.display()) };
        // Homes with slow storage are the emulator's.
        if lasthop_sim::check(&home).is_err() {
            continue;
        }
        let simulate = |home: &Scenario| lasthop_sim::run(home, &mut lasthop_sim::Options::default());
        let names = Names::new([home].iter(), 2, simulate).unwrap();
        let usual = names.usual();
        let Figures::Chosen(usual) = usual else { panic!() };
        let columns = names.columns().filter(|c| usual.iter().any(|name| name == c)).count();
        assert!((6..MOST_COLUMNS - 4).contains(&columns), "{}: {columns}", path.display());
    }
}
