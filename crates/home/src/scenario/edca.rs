//! How classes of traffic contend: `edca` of the access point, `station_edca` of all stations, `edca` of one.

use lasthop_core::packet::AccessCategory;
use lasthop_core::units::Span;
use lasthop_medium::{Edca, EdcaClass};

use super::ScenarioError;
use super::read::Reader;

/// Each class with its word.
pub(crate) const CLASSES: [(&str, AccessCategory); 4] =
    [("VO", AccessCategory::Vo), ("VI", AccessCategory::Vi), ("BE", AccessCategory::Be), ("BK", AccessCategory::Bk)];

/// Words of the classes, by [`AccessCategory::index`].
pub const CLASS_WORDS: [&str; 4] = ["VO", "VI", "BE", "BK"];

const KEYS: [&str; 7] = ["aifsn", "cw_min", "cw_max", "txop", "aggregates", "attempts", "lifetime"];

/// Longest TXOP limit: 255 units of 32 us, as much as WMM's field of 16 bits is used for.
const LONGEST_TXOP: Span = Span::from_micros(8_160);

/// Longest that an MPDU may wait for its acknowledgment.
const LONGEST_LIFETIME: Span = Span::from_secs(1_000);

/// The classes at `key`, each key that is left out as in `usual`.
pub(crate) fn read_edca(radio: &Reader<'_>, key: &str, usual: Edca) -> Result<Edca, ScenarioError> {
    let Some(table) = radio.table(key, &CLASS_WORDS)? else { return Ok(usual) };
    let mut edca = usual;
    for (word, class) in CLASSES {
        let own = &mut edca[class.index()];
        *own = read_class(&table, word, *own)?;
    }
    Ok(edca)
}

fn read_class(edca: &Reader<'_>, word: &str, usual: EdcaClass) -> Result<EdcaClass, ScenarioError> {
    let Some(class) = edca.table(word, &KEYS)? else { return Ok(usual) };
    let window = |key: &str, usual: u16| match class.count(key, 0..=32_767)? {
        None => Ok(usual),
        Some(slots) if (slots + 1).is_power_of_two() => Ok(slots as u16),
        Some(slots) => {
            Err(class.wrong(key, format!("{slots} is no contention window; write 2^n - 1, such as 3, 7, 15 or 1023")))
        }
    };
    let (cw_min, cw_max) = (window("cw_min", usual.cw_min)?, window("cw_max", usual.cw_max)?);
    if cw_max < cw_min {
        return Err(class.wrong("cw_max", format!("{cw_max} is below cw_min = {cw_min}")));
    }
    let at_most = |key: &str, most: Span| match class.quantity::<Span>(key)? {
        Some(long) if long > most => Err(class.wrong(key, format!("{long} is longer than {most}"))),
        given => Ok(given),
    };
    Ok(EdcaClass {
        aifsn: class.count("aifsn", 1..=15)?.map_or(usual.aifsn, |slots| slots as u8),
        cw_min,
        cw_max,
        txop_limit: at_most("txop", LONGEST_TXOP)?.unwrap_or(usual.txop_limit),
        aggregates: class.flag("aggregates")?.unwrap_or(usual.aggregates),
        attempts: class.count("attempts", 1..=255)?.or(usual.attempts),
        lifetime: at_most("lifetime", LONGEST_LIFETIME)?.filter(|time| *time > Span::ZERO).or(usual.lifetime),
    })
}
