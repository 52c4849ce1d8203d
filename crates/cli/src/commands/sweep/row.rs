//! A report as one row of the file; `lasthop_store` says what a row is.

use lasthop_home::report::Report;
use lasthop_store::{Chooser, Row, row_of, scalars};

use super::vary::Grid;

/// The row of a run, with these figures of its report.
pub fn row(grid: &Grid, run: usize, report: &Report, chosen: &Chooser) -> Result<Row, serde_json::Error> {
    let values = grid.values(grid.combination(run));
    Ok(row_of(values.into_iter(), grid.seed(run), scalars(report)?, chosen))
}

#[cfg(test)]
mod tests {
    use lasthop_store::Figures;
    use serde_json::Value;

    use super::super::fake;
    use super::super::vary::vary;
    use super::*;

    #[test]
    fn a_row_holds_the_varied_keys_the_seed_and_every_scalar() {
        let grid =
            Grid::new(&[vary("wifi.attempts=2").unwrap(), vary("wifi.loss.deviation=9dB").unwrap()], 3, 1).unwrap();
        let row = row(&grid, 0, &fake::report("t", 3, 2), &Chooser::new(Figures::All)).unwrap();
        let names: Vec<&str> = row.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..6], ["wifi.attempts", "wifi.loss.deviation", "seed", "format", "scenario", "duration_s"]);
        let get = |name: &str| {
            row.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap_or_else(|| panic!("{name} in {names:?}"))
        };
        assert_eq!(get("wifi.attempts"), 2);
        assert_eq!(get("wifi.loss.deviation"), "9dB");
        assert_eq!(get("flows.ftp.from"), "W");
        assert_eq!(get("flows.ftp.lost.channel"), 0);
        assert_eq!(get("flows.ftp.delay"), Value::Null);
        assert_eq!(get("stations.AP.airtime_share"), 0.5);
        assert_eq!(get("queues.AP.dropped"), 0);
        assert_eq!(get("control.capacity_bps.mean"), 2e7);
        assert_eq!(get("control.clamps.ftp"), 9000);
        for name in ["run.wall_s", "run.revision", "run.valid", "flows.ftp.start_up.sent", "fairness.goodput"] {
            get(name);
        }
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "no column twice: {names:?}");
    }
}
