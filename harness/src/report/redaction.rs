//! Taking secrets out of what leaves the machine.
//!
//! No program of ours logs a secret, and the audit policy keeps Secrets out. This is the second line: an operator
//! under test is a foreign program, and what it logs goes into bundles that people attach to issues.

/// What stands in a secret's place.
pub const REDACTED: &str = "[redacted]";

/// The shortest value that is taken for a secret because of the name before it; shorter ones are mostly names.
const SHORTEST: usize = 16;

/// How names of secrets end, in lower case, without `-` and `_`.
const NAMES: [&str; 9] =
    ["token", "secret", "password", "passwd", "apikey", "secretkey", "privatekey", "keydata", "credentials"];

/// Redacts a text line by line; what it knows of a private key in several lines it carries on to the next.
#[derive(Debug, Default)]
pub struct Redaction {
    in_key: bool,
    /// How much was redacted so far.
    pub count: usize,
}

impl Redaction {
    /// `line` without its secrets.
    pub fn line(&mut self, line: &str) -> String {
        let line = self.keys(line);
        let line = self.words(&line);
        self.named_values(&line)
    }

    /// Private keys in PEM, in a line of their own or as one escaped string.
    fn keys(&mut self, line: &str) -> String {
        let mut text = String::new();
        let mut rest = line;
        loop {
            if self.in_key {
                let Some(end) = rest.find("-----END") else { return text };
                self.in_key = false;
                rest = rest[end + 8..].split_once("-----").map_or("", |(_, after)| after);
            }
            let Some(begin) = private_key(rest) else { return text + rest };
            text += &rest[..begin];
            text += REDACTED;
            self.count += 1;
            self.in_key = true;
            rest = &rest[begin + 10..];
        }
    }

    /// What looks like a secret by itself: JSON web tokens, and what follows `Bearer` or `Basic`.
    fn words(&mut self, line: &str) -> String {
        let mut text = String::with_capacity(line.len());
        let mut after_scheme = false;
        for piece in pieces(line) {
            let is_word = piece.starts_with(is_token);
            if is_word && ((after_scheme && piece.len() >= SHORTEST) || is_web_token(piece)) {
                text += REDACTED;
                self.count += 1;
            } else {
                text += piece;
            }
            after_scheme = match piece {
                " " => after_scheme,
                word => word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic"),
            };
        }
        text
    }

    /// Long values whose name says that they are secret: `admin_token = "…"`, `"client-key-data":"…"`.
    fn named_values(&mut self, line: &str) -> String {
        let mut text = String::with_capacity(line.len());
        let (mut name, mut assigned) = ("", false);
        for piece in pieces(line) {
            if piece.starts_with(is_token) {
                if assigned && is_secret_name(name) && piece.len() >= SHORTEST && !is_reference(piece) {
                    text += REDACTED;
                    self.count += 1;
                } else {
                    text += piece;
                }
                // `name=value` is one piece of token characters.
                (name, assigned) = (piece.trim_end_matches('='), piece.ends_with('='));
                continue;
            }
            text += piece;
            assigned |= piece.contains([':', '=']);
            if !piece.chars().all(|c| matches!(c, ' ' | ':' | '=' | '"' | '\'' | '\\')) {
                (name, assigned) = ("", false);
            }
        }
        text
    }
}

/// Where a private key in PEM begins.
fn private_key(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find("-----BEGIN ") {
        let begin = from + at;
        let label = text[begin + 11..].split("-----").next().unwrap_or_default();
        if label.ends_with("PRIVATE KEY") {
            return Some(begin);
        }
        from = begin + 11;
    }
    None
}

/// A character of tokens as they are usually encoded.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+')
}

/// `line` cut into words of token characters, single blanks, and what lies between.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match first {
            ' ' => 1,
            first if is_token(first) => rest.find(|c| !is_token(c)).unwrap_or(rest.len()),
            _ => rest.find(|c| is_token(c) || c == ' ').unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Three parts of base64url, of which the first is the encoding of `{"…`.
fn is_web_token(word: &str) -> bool {
    word.starts_with("eyJ") && word.len() > 40 && word.matches('.').count() == 2
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_')).collect();
    let plain = plain.to_ascii_lowercase();
    NAMES.iter().any(|ending| plain.ends_with(ending))
}

/// A path or a dotted name, not a secret.
fn is_reference(value: &str) -> bool {
    value.starts_with('/') || value.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn redacted(line: &str) -> String {
        Redaction::default().line(line)
    }

    #[rstest]
    #[case::header(format!("Authorization: Bearer {SECRET}"))]
    #[case::lower_case_header(format!("authorization: bearer {SECRET} and more"))]
    #[case::toml(format!("admin_token = \"{SECRET}\""))]
    #[case::yaml(format!("    client-key-data: {SECRET}"))]
    #[case::json(format!(r#"{{"rpcSecret":"{SECRET}","x":1}}"#))]
    #[case::json_in_json(format!(r#"{{"line":"{{\"password\":\"{SECRET}\"}}"}}"#))]
    #[case::logfmt(format!("level=info metrics_token={SECRET} done"))]
    #[case::environment(format!("GARAGE_RPC_SECRET={SECRET}"))]
    fn a_named_secret_goes(#[case] line: String) {
        let redacted = redacted(&line);
        assert!(!redacted.contains(SECRET), "{redacted}");
        assert_eq!(redacted, line.replace(SECRET, REDACTED), "and nothing else does");
    }

    #[rstest]
    #[case::token_label(r#"{"token":"west@west","method":"GET"}"#)]
    #[case::node_identity(r#"{"nodeId":"d645ff226803cba1db29f5d64f51dd296c2ea3282115ba264dd78984683849f4"}"#)]
    #[case::file_name("rpc_secret_file = \"/secrets/garage/rpc-secret\"")]
    #[case::reference("adminTokenSecretRef: {name: garage-admin, key: admin-token}")]
    #[case::a_path_in_a_secrets_place("token: /var/run/secrets/kubernetes.io/token")]
    #[case::prose("the token is missing, and no secret-of-any-kind was found here")]
    #[case::certificate("-----BEGIN CERTIFICATE-----")]
    fn what_is_no_secret_stays(#[case] line: &str) {
        assert_eq!(redacted(line), line);
    }

    #[test]
    fn a_web_token_goes_wherever_it_stands() {
        let token = format!("eyJhbGciOiJSUzI1NiJ9.{SECRET}.{SECRET}");
        assert_eq!(redacted(&format!("user {token} logged in")), "user [redacted] logged in");
    }

    #[test]
    fn a_private_key_goes_from_its_first_line_to_its_last() {
        let mut redaction = Redaction::default();
        let lines = ["a", "-----BEGIN EC PRIVATE KEY-----", "MHcCAQEE", "-----END EC PRIVATE KEY-----", "b"];
        assert_eq!(lines.map(|line| redaction.line(line)), ["a", REDACTED, "", "", "b"]);
        assert_eq!(redaction.count, 1);
    }

    #[test]
    fn a_private_key_in_a_string_goes_and_the_string_stays_whole() {
        let line = r#"{"key":"-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n","n":1}"#;
        assert_eq!(redacted(line), r#"{"key":"[redacted]\n","n":1}"#);
    }

    proptest! {
        #[test]
        fn a_redacted_line_of_json_is_still_json(name in "[a-z_]{0,12}", value in "[ -~]{0,60}") {
            let line = serde_json::json!({name: value}).to_string();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&redacted(&line)).is_ok());
        }
    }
}
