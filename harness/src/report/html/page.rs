//! The page from its parts.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onewriter_history::History;
use sha2::{Digest as _, Sha256};

use super::markup::{Escaped, fill};
use super::{index, sections};
use crate::report::Verdict;

const TEMPLATE: &str = include_str!("template.html");
const TIMELINE: &str = include_str!("timeline.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str =
    concat!(include_str!("recording.js"), include_str!("painting.js"), include_str!("timeline.js"));

/// What a page shows.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The verdict.
    pub verdict: &'a Verdict,
    /// The history; where there is none, why, in words.
    pub history: Result<&'a History, &'a str>,
}

/// The page could not be put together.
#[derive(Debug, thiserror::Error)]
#[error("cannot put the report together")]
pub struct RenderError(#[from] io::Error);

/// Renders `page` as one HTML document that needs no other file.
///
/// Its content security policy lets it run its own script and style and load nothing at all, so that nothing in a
/// recorded text can do anything, even if it got through the escaping.
pub fn render(page: &Page<'_>) -> Result<String, RenderError> {
    let Page { verdict, history } = page;
    let policy =
        format!("default-src 'none'; script-src '{}'; style-src '{}'", digest(SCRIPT), digest(STYLE));
    let data = match history {
        Ok(history) => index::elements(history, verdict)?,
        Err(_) => String::new(),
    };
    let timeline = match history {
        Ok(history) if history.records.is_empty() => {
            "<p class=\"notice\">The history is empty.</p>".to_owned()
        }
        Ok(_) => TIMELINE.to_owned(),
        Err(why) => format!("<p class=\"notice\">There is no timeline: {}</p>", Escaped(why)),
    };
    Ok(fill(
        TEMPLATE,
        &[
            ("policy", &policy),
            ("title", &Escaped(format!("{} · onewriter", verdict.run)).to_string()),
            ("style", STYLE),
            ("header", &sections::header(verdict)),
            ("failures", &sections::failures(verdict)),
            ("timeline", &timeline),
            ("matrix", &sections::matrix(verdict)),
            ("checks", &sections::checks(verdict)),
            ("figures", &sections::figures(verdict)),
            ("footer", &format!("onewriter {}", Escaped(env!("CARGO_PKG_VERSION")))),
            ("data", &data),
            ("script", SCRIPT),
        ],
    ))
}

/// A source expression that allows exactly `text` as inline script or style.
fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{Finding, Judgement};

    fn verdict(message: &str) -> Verdict {
        let finding = Finding::violation(Some("a/b"), message, None);
        let check = Judgement {
            check: "c".into(),
            claim: "a claim".into(),
            findings: vec![finding],
            ..Judgement::default()
        };
        Verdict::new("r1", vec![], vec![check], vec![])
    }

    fn empty() -> History {
        let header = onewriter_history::Header::new("r1");
        History { header, records: vec![] }
    }

    #[test]
    fn every_placeholder_is_known() {
        let html = render(&Page { verdict: &verdict("m"), history: Ok(&empty()) }).unwrap();
        assert!(!html.contains("{{"), "a placeholder is left");
        for part in ["<title>r1 · onewriter</title>", "The history is empty", "class Timeline"] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn a_recorded_text_can_add_no_markup() {
        let hostile = "</script><img src=x onerror=alert(1)>";
        let html = render(&Page { verdict: &verdict(hostile), history: Err(hostile) }).unwrap();
        assert!(!html.contains("<img"), "the text became markup");
        assert_eq!(html.matches("&lt;img src=x").count(), 2, "finding and notice");
    }

    #[test]
    fn the_page_refers_to_no_other_place() {
        let html = render(&Page { verdict: &verdict("m"), history: Ok(&empty()) }).unwrap();
        for reference in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!html.contains(reference), "{reference}");
        }
    }
}
