//! Placeholders of a session: bound at first sight, the same ever after.

use std::collections::BTreeMap;

/// Values of placeholders such as `<BUCKET1>`.
#[derive(Debug, Clone, Default)]
pub struct Bindings(BTreeMap<String, String>);

/// Placeholders that stand for any text each time.
const ANYTHING: [&str; 3] = ["<HOSTNAME>", "<DATE>", "<METRICS>"];

impl Bindings {
    /// Sets the value of a placeholder.
    pub fn bind(&mut self, placeholder: &str, value: &str) {
        self.0.insert(placeholder.to_owned(), value.to_owned());
    }

    /// `text` with the values of known placeholders in their places.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (placeholder, value) in &self.0 {
            if filled.contains(placeholder.as_str()) {
                filled = filled.replace(placeholder, value);
            }
        }
        filled
    }

    /// Whether `answered` is what `expected` says, binding placeholders that are seen for the first time.
    pub fn matches(&mut self, expected: &str, answered: &str) -> bool {
        let expected = self.fill(expected);
        let Some((literal, placeholder, rest)) = split(&expected) else { return expected == answered };
        let Some(tail) = answered.strip_prefix(literal) else { return false };
        // A value ends where the text after its placeholder begins.
        let next = split(rest).map_or(rest, |(literal, _, _)| literal);
        let end = if next.is_empty() { Some(tail.len()) } else { tail.find(next) };
        let Some(end) = end else { return false };
        if !ANYTHING.contains(&placeholder) {
            self.bind(placeholder, &tail[..end]);
        }
        let rest = rest.to_owned();
        self.matches(&rest, &tail[end..])
    }
}

/// Text before the first placeholder, the placeholder, text after it.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|place| from + place) {
        let begins = text[start + 1..].starts_with(|first: char| first.is_ascii_uppercase());
        match text[start..].find('>') {
            Some(length) if begins => {
                let end = start + length + 1;
                return Some((&text[..start], &text[start..end], &text[end..]));
            }
            _ => from = start + 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_takes_what_it_sees_first_and_insists_on_it() {
        let mut bindings = Bindings::default();
        assert!(bindings.matches("Bucket not found: <BUCKET1>", "Bucket not found: abc"));
        assert!(bindings.matches("<BUCKET1>", "abc"));
        assert!(!bindings.matches("<BUCKET1>", "def"));
        assert_eq!(bindings.fill("id=<BUCKET1>"), "id=abc");
    }

    #[test]
    fn a_host_name_may_be_another_one_each_time() {
        let mut bindings = Bindings::default();
        assert!(bindings.matches("at <HOSTNAME>!", "at one!"));
        assert!(bindings.matches("at <HOSTNAME>!", "at two!"));
        assert!(!bindings.matches("at <HOSTNAME>!", "on two!"));
    }

    #[test]
    fn a_less_than_sign_is_no_placeholder() {
        assert!(Bindings::default().matches("low (< 100), a > b", "low (< 100), a > b"));
    }
}
