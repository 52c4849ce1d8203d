//! A JSON object a line: `time` (RFC 3339, UTC), `level`, `message`; of a decision `decision` and `values`.

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::Serialize;
use serde_json::{Map, Number};

use super::{Entry, Level, Value};

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    level: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    values: Map<String, serde_json::Value>,
}

pub(super) fn wall_clock() -> Timespec {
    clock_gettime(ClockId::Realtime)
}

pub(super) fn line(entry: &Entry<'_>, at: Timespec) -> String {
    let level = match entry.level {
        Level::Warning => "warning",
        Level::Info => "info",
    };
    let values = entry.values.iter().map(|(name, value)| ((*name).to_owned(), json(value))).collect();
    let line = Line { time: rfc_3339(at), level, message: entry.message, decision: entry.decision, values };
    serde_json::to_string(&line).unwrap_or_default()
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Count(count) => (*count).into(),
        Value::Number(number) => Number::from_f64(*number).map_or(serde_json::Value::Null, Into::into),
        Value::Flag(flag) => (*flag).into(),
        Value::Text(text) => text.as_str().into(),
    }
}

/// "2026-11-25T17:00:03.250Z". Days to dates: <https://howardhinnant.github.io/date_algorithms.html>, `civil_from_days`.
fn rfc_3339(at: Timespec) -> String {
    let (days, second) = (at.tv_sec.div_euclid(86_400), at.tv_sec.rem_euclid(86_400));
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // March is month 0: a leap day is the last of its year.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, is_next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (year, millis) = (year + era * 400 + is_next, at.tv_nsec / 1_000_000);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{decision, place};
    use super::*;

    const fn at(tv_sec: i64) -> Timespec {
        Timespec { tv_sec, tv_nsec: 250_999_999 }
    }

    #[test]
    fn a_line_is_one_object_with_time_level_message_and_what_was_decided() {
        let values = decision().values();
        let message = "downloads: \"it\"\nand more";
        let entry = Entry { level: Level::Info, message, decision: Some(decision().name()), values: &values };
        let text = line(&entry, at(1_700_000_000));
        assert!(!text.contains('\n'), "{text}");
        let expected = serde_json::json!({
            "time": "2023-11-14T22:13:20.250Z", "level": "info", "message": message, "decision": "capacity",
            "values": {"direction": "down", "before_bps": 12_000_000, "capacity_bps": 19_812_345, "queue_ms": 5.34}
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
        let entry = Entry { values: &place().values(), ..entry };
        assert!(line(&entry, at(0)).contains("\"place\":\"wan\""));
        let plain = line(&Entry::plain(Level::Warning, "x"), at(0));
        assert_eq!(plain, r#"{"time":"1970-01-01T00:00:00.250Z","level":"warning","message":"x"}"#);
    }

    /// Against `date -u -d @SECONDS +%FT%TZ`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (1_798_761_599, "2026-12-31T23:59:59"),
            (1_798_761_600, "2027-01-01T00:00:00"),
        ] {
            assert_eq!(rfc_3339(at(seconds)), format!("{date}.250Z"));
        }
    }
}
