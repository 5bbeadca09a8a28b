//! Escaping, and filling in templates.

use std::fmt::{self, Display, Write};

/// Displays text so that HTML shows it as it is, in an element or in a quoted attribute.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.write_str("&amp;")?,
                '<' => self.0.write_str("&lt;")?,
                '>' => self.0.write_str("&gt;")?,
                '"' => self.0.write_str("&quot;")?,
                '\'' => self.0.write_str("&#39;")?,
                // What HTML cannot hold, such as the escape sequences of a coloured log.
                c if c.is_control() && !matches!(c, '\n' | '\t') => self.0.write_char('\u{fffd}')?,
                c => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Fills in each `{{name}}` of `template`, once over: what is filled in is never looked at again.
///
/// A name that `values` does not know is left empty; a test holds the page's templates to the known names.
#[must_use]
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let size = values.iter().map(|(_, value)| value.len()).sum::<usize>() + template.len();
    let mut text = String::with_capacity(size);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        text += before;
        text += values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_in_a_text_stays_text() {
        let text = Escaped("<script>alert('1') & \"2\"</script>\u{1b}[31m");
        assert_eq!(
            text.to_string(),
            "&lt;script&gt;alert(&#39;1&#39;) &amp; &quot;2&quot;&lt;/script&gt;\u{fffd}[31m"
        );
    }

    #[test]
    fn a_placeholder_in_a_value_is_not_filled_in() {
        assert_eq!(fill("<{{a}}|{{b}}>", &[("a", "{{b}}"), ("b", "2")]), "<{{b}}|2>");
    }

    proptest! {
        #[test]
        fn no_text_ends_an_element_or_an_attribute(text in ".*") {
            let escaped = Escaped(&text).to_string();
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }
    }
}
