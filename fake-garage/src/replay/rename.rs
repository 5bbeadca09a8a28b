//! Renaming the nodes of a session: other identities, the same order, the same common prefixes.
//!
//! A session must replay as well under other identities. Their order is visible (lists are sorted by it), and so is
//! which prefixes mean several nodes; so the new identities keep both. The identities form a tree by their digits:
//! where it forks, the digits of the branches are exchanged for others in the same order, and where it does not, any
//! digit will do.

use std::collections::{BTreeMap, BTreeSet};

use crate::mesh::Random;

/// Number of hex digits of an identity.
const DIGITS: usize = 64;

/// Renames every identity in `text`, which is a session's file, under `seed`.
///
/// Identities are all runs of 64 hex digits; their first 16 digits (as messages show them), prefixes in `node=`
/// queries, and upper-case spellings follow.
#[must_use]
pub fn rename_nodes(text: &str, seed: u64) -> String {
    let tree = Tree::of(text, seed);
    let mut renamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_hexdigit()) {
        let run = rest[start..].find(|character: char| !character.is_ascii_hexdigit());
        let end = run.map_or(rest.len(), |length| start + length);
        renamed.push_str(&rest[..start]);
        let word = &rest[start..end];
        let stands_alone = !renamed.ends_with(is_word) && !rest[end..].starts_with(is_word);
        let in_query = renamed.ends_with("node=") || renamed.ends_with("nodes matching ");
        if (stands_alone && matches!(word.len(), 16 | DIGITS)) || in_query {
            renamed.push_str(&tree.rename(word));
        } else if stands_alone && word.len() > DIGITS {
            renamed.push_str(&tree.rename(&word[..DIGITS]));
            renamed.push_str(&word[DIGITS..]);
        } else {
            renamed.push_str(word);
        }
        rest = &rest[end..];
    }
    renamed.push_str(rest);
    renamed
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// New digits by the old digits before and at them.
struct Tree {
    digits: BTreeMap<String, char>,
}

impl Tree {
    fn of(text: &str, seed: u64) -> Self {
        let identities: BTreeSet<_> = text
            .split(|character: char| !character.is_ascii_hexdigit())
            .filter(|word| word.len() == DIGITS && word.bytes().any(|byte| byte != b'0'))
            .map(str::to_ascii_lowercase)
            .collect();
        let mut random = Random::new(seed);
        let mut tree = Self { digits: BTreeMap::new() };
        for length in 0..DIGITS {
            tree.grow(&identities, length, &mut random);
        }
        tree
    }

    /// Chooses the digits after every prefix of `length` digits.
    fn grow(&mut self, identities: &BTreeSet<String>, length: usize, random: &mut Random) {
        let mut branches: BTreeMap<&str, BTreeSet<char>> = BTreeMap::new();
        for identity in identities {
            let next = identity[length..].chars().next();
            branches.entry(&identity[..length]).or_default().extend(next);
        }
        for (prefix, olds) in branches {
            let mut news = BTreeSet::new();
            while news.len() < olds.len() {
                let digit = u32::try_from(random.number() % 16).unwrap_or(0);
                news.extend(char::from_digit(digit, 16));
            }
            for (old, new) in olds.into_iter().zip(news) {
                self.digits.insert(format!("{prefix}{old}"), new);
            }
        }
    }

    /// The new spelling of an identity or of the beginning of one; what is neither stays as it is.
    fn rename(&self, word: &str) -> String {
        let lower = word.to_ascii_lowercase();
        let new: Option<String> =
            (1..=lower.len()).map(|length| self.digits.get(&lower[..length]).copied()).collect();
        match new {
            Some(new) if lower == word => new,
            Some(new) => new.to_ascii_uppercase(),
            None => word.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(prefix: &str) -> String {
        format!("{prefix}{}", "7".repeat(DIGITS - prefix.len()))
    }

    #[test]
    fn order_and_common_prefixes_stay() {
        let old = ["a1", "a2", "b1"].map(identity);
        let text = rename_nodes(&old.join(" "), 5);
        let new: Vec<_> = text.split(' ').collect();
        assert!(new.windows(2).all(|pair| pair[0] < pair[1]), "{new:?}");
        assert!(old.iter().zip(&new).all(|(old, new)| old != new));
        assert_eq!(new[0][..1], new[1][..1]);
        assert_ne!(new[1][..1], new[2][..1]);
    }

    #[test]
    fn short_forms_and_queries_follow() {
        let old = identity("a1");
        let text = rename_nodes(&format!("{old} {} node=a1 a1 {}", &old[..16], old.to_uppercase()), 5);
        let words: Vec<_> = text.split(' ').collect();
        assert_eq!(words[1], &words[0][..16]);
        assert_eq!(words[2], format!("node={}", &words[0][..2]));
        assert_eq!(words[3], "a1", "a word that happens to be hexadecimal stays");
        assert_eq!(words[4], words[0].to_uppercase());
    }
}
