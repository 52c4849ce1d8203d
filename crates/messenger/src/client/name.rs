//! Names that others gave: what may become the name of a file, and what may be shown on a terminal.

use crate::protocol::MessageId;

/// Longest name of a file that a message gets, in bytes: leaves room for ` (2)` and for what a part file's name has besides.
const LONGEST: usize = 200;

/// The name under which a message called `name` is kept: one that is no path, shows, is not hidden, and that every file system
/// takes, FAT of memory cards included. What cannot stay becomes `_`.
#[must_use]
pub fn clean(name: &str, message: MessageId) -> String {
    let allowed = |c: char| !(is_invisible(c) || "/\\:*?\"<>|".contains(c));
    let cleaned: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    let short = shorten(cleaned.trim_matches(is_edge));
    if short.is_empty() { format!("message-{message}") } else { short }
}

/// What hides a name, or some file systems drop, at its ends.
fn is_edge(c: char) -> bool {
    c == '.' || c.is_whitespace()
}

/// At most [`LONGEST`] bytes of `name`, with its extension.
fn shorten(name: &str) -> String {
    let head = |text: &str, most: usize| {
        let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[..end].trim_end_matches(is_edge).to_owned()
    };
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    match name.rsplit_once('.').filter(|(_, extension)| extension.len() < 20) {
        Some((stem, extension)) => head(stem, LONGEST - 1 - extension.len()) + "." + extension,
        None => head(name, LONGEST),
    }
}

/// `name` with a number, before its extension: `voice (2).wav`.
pub(super) fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, extension)) => format!("{stem} ({number}).{extension}"),
        None => format!("{name} ({number})"),
    }
}

/// `text` without what moves a cursor, hides or turns what is shown; `most` characters of it.
#[must_use]
pub fn printable(text: &str, most: usize) -> String {
    let shown = text.chars().map(|c| if is_invisible(c) { '_' } else { c });
    match text.chars().count() > most {
        true => shown.take(most.saturating_sub(1)).chain(['…']).collect(),
        false => shown.collect(),
    }
}

/// Control characters, line ends of Unicode, and those that have no width or change the direction.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_an_attack_becomes_a_plain_one() {
        for (name, cleaned) in [
            ("voice.wav", "voice.wav"),
            ("Grüße an Anna.wav", "Grüße an Anna.wav"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("/etc/passwd", "_etc_passwd"),
            ("..\\..\\boot.ini", "_.._boot.ini"),
            ("..", "message-7"),
            (".", "message-7"),
            ("", "message-7"),
            ("   ", "message-7"),
            (".bashrc", "bashrc"),
            (". .hidden", "hidden"),
            ("a\nb\x1b[2Jc\0", "a_b_[2Jc_"),
            ("photo\u{202e}gpj.exe", "photo_gpj.exe"),
            ("C:con", "C_con"),
            ("end. . ", "end"),
        ] {
            assert_eq!(clean(name, MessageId(7)), cleaned, "{name:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_name_is_the_file_stays_in_its_folder_and_shows(
            name in proptest::prelude::any::<String>(), sly in "[./ \\\\\u{202e}\n~a-]{0,300}"
        ) {
            for name in [name, sly] {
                let file = clean(&name, MessageId(7));
                let path = std::path::Path::new("folder").join(&file);
                assert_eq!(path.parent(), Some(std::path::Path::new("folder")), "{name:?}");
                assert_eq!(path.file_name().and_then(|last| last.to_str()), Some(&file[..]), "{name:?}");
                assert!(!file.starts_with('.') && !file.chars().any(is_invisible) && file.len() <= LONGEST, "{name:?}");
                assert_eq!(clean(&file, MessageId(7)), file, "clean is clean");
            }
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_keeps_its_extension() {
        let long = clean(&("ü".repeat(150) + ".wav"), MessageId(1));
        assert!(long.len() <= LONGEST && long.ends_with("ü.wav"), "{long}");
        let none = clean(&"x".repeat(300), MessageId(1));
        assert_eq!(none.len(), LONGEST);
        let dotted = clean(&format!("{}.{}", "x".repeat(LONGEST - 1), "y".repeat(60)), MessageId(1));
        assert_eq!(dotted, "x".repeat(LONGEST - 1), "no dot is left at the end");
    }

    #[test]
    fn a_second_of_the_same_name_gets_a_number() {
        assert_eq!(numbered("voice.wav", 2), "voice (2).wav");
        assert_eq!(numbered("notes", 3), "notes (3)");
    }

    #[test]
    fn what_is_shown_moves_no_cursor() {
        assert_eq!(printable("a\x1b[2Jb\r\n", 20), "a_[2Jb__");
        assert_eq!(printable("0123456789", 5), "0123…");
    }
}
