//! Text and JSON inside HTML, so that neither ends the place where it stands.

use serde::Serialize;

/// `text` as the content of an element or of an attribute in double quotes. Characters that HTML has no place for go.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// `value` as JSON in a script element: no `<` that could end it, no line separator that old readers of JavaScript trip over.
///
/// # Panics
/// Never for the types of this crate: they have neither maps with other keys than text nor a failing `Serialize`.
pub fn json(value: &impl Serialize) -> String {
    let mut out = String::new();
    for character in serde_json::to_string(value).expect("plain structs of text and numbers").chars() {
        match character {
            // All of these stand inside strings alone, where the escape means the same.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", character as u32)),
            c => out.push(c),
        }
    }
    out
}
