//! Web pages: how many objects of which sizes, and which object names which.
//!
//! | page | text objects | others | KB |
//! |---|---|---|---|
//! | google-news | 2 | 4 | 155 |
//! | yahoo | 6 | 42 | 322 |
//! | wsj | 19 | 132 | 750 |
//! | cnn | 33 | 103 | 1142 |
//!
//! Source: paper 002, table 1. *Ours*, for the paper gives totals only: text has 30 % of the bytes, the document a third of
//! that (all of it when it is alone); sizes of the others are quantiles of a log-normal distribution (sigma 1) from 200
//! bytes upwards, `size_i = 200 + spare exp(z_i) / sum exp(z_j)   [bytes]`, z_i the quantile `(rank_i + 1/2) / n`, ranks
//! stirred. The document names the style sheets and scripts, and four images in five; each fifth stands in a style sheet and
//! is known when that has come. `tools/study/pages.py` makes the same pages for a real browser, to the byte.

use crate::normal;
use crate::scenario::Page;

/// One object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Body of its response.
    pub bytes: u32,
    /// Index of the object that names it; the document, the first, names itself.
    pub named_by: usize,
}

const TEXT_SHARE: f64 = 0.3;
const DOCUMENT_SHARE: f64 = 1.0 / 3.0;
const SMALLEST: u64 = 200;

/// Text objects, others, KB.
const fn composition(page: Page) -> (usize, usize, u64) {
    match page {
        Page::GoogleNews => (2, 4, 155),
        Page::Yahoo => (6, 42, 322),
        Page::Wsj => (19, 132, 750),
        Page::Cnn => (33, 103, 1142),
    }
}

/// The objects of a page in the order in which a browser asks for what one object names: the document; style sheets, then
/// scripts; images.
#[must_use]
pub fn objects(page: Page) -> Vec<Object> {
    let (text, others, kilobytes) = composition(page);
    let total = kilobytes * 1024;
    let text_total = (total as f64 * TEXT_SHARE) as u64;
    let document = if text == 1 { text_total } else { (text_total as f64 * DOCUMENT_SHARE) as u64 };
    let texts = sizes(text_total - document, text - 1);
    let images = sizes(total - text_total, others);
    let mut list = vec![Object { bytes: document as u32, named_by: 0 }];
    // Style sheets and scripts by turns; sheets are asked for first.
    let sheets = texts.len().div_ceil(2);
    let of_document = |bytes: &u32| Object { bytes: *bytes, named_by: 0 };
    list.extend(texts.iter().step_by(2).map(of_document));
    list.extend(texts.iter().skip(1).step_by(2).map(of_document));
    let image = |(i, bytes): (usize, &u32)| {
        let late = sheets > 0 && i % 5 == 4;
        Object { bytes: *bytes, named_by: if late { 1 + (i / 5) % sheets } else { 0 } }
    };
    list.extend(images.iter().enumerate().map(image));
    list
}

/// `count` sizes that add up to `total`.
fn sizes(total: u64, count: usize) -> Vec<u32> {
    if count == 0 {
        return Vec::new();
    }
    let stride = (1..=(count * 5 / 8).max(1)).rev().find(|s| greatest_divisor(*s, count) == 1).unwrap_or(1);
    let share = |i: usize| ((i * stride % count) as f64 + 0.5) / count as f64;
    let weights: Vec<f64> = (0..count).map(|i| libm::exp(normal::quantile(share(i)))).collect();
    let spare = total.saturating_sub(count as u64 * SMALLEST) as f64;
    let sum: f64 = weights.iter().sum();
    let mut sizes: Vec<u64> = weights.iter().map(|weight| SMALLEST + (spare * weight / sum) as u64).collect();
    let made: u64 = sizes.iter().sum();
    if let Some(last) = sizes.last_mut() {
        *last += total - made;
    }
    sizes.into_iter().map(|size| size as u32).collect()
}

const fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_objects_and_bytes_of_table_1() {
        for (page, count, kilobytes) in
            [(Page::GoogleNews, 6, 155), (Page::Yahoo, 48, 322), (Page::Wsj, 151, 750), (Page::Cnn, 136, 1142)]
        {
            let objects = objects(page);
            let bytes: u64 = objects.iter().map(|object| u64::from(object.bytes)).sum();
            assert_eq!((objects.len(), bytes), (count, kilobytes * 1024), "{page:?}");
            assert!(objects.iter().all(|object| object.bytes >= 200));
            assert!(objects.iter().enumerate().skip(1).all(|(i, object)| object.named_by < i));
        }
    }

    #[test]
    fn the_real_browser_loads_the_same_objects() {
        // By tools/study/pages.py: the first images in order, and the largest object.
        let first = |page, skip| objects(page).iter().skip(skip).take(4).map(|o| o.bytes).collect::<Vec<_>>();
        assert_eq!(first(Page::GoogleNews, 2), [6459, 14578, 27394, 62673]);
        assert_eq!(first(Page::Yahoo, 6), [544, 4530, 1634, 7790]);
        assert_eq!(first(Page::Wsj, 19), [364, 3277, 1226, 5694]);
        assert_eq!(first(Page::Cnn, 33), [558, 6769, 2607, 14814]);
        assert_eq!(objects(Page::Cnn)[0].bytes, 116_940);
    }
}
