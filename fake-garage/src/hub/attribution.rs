//! Who calls with which token.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

pub use crate::admin::request::Attribution;
use crate::admin::{Credentials, Request, auth};

/// A token of a mesh, with who calls what with it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The token.
    token: String,
    /// Who calls with it: a site, or `harness`.
    #[serde(deserialize_with = "shared")]
    caller: Arc<str>,
    /// The site whose nodes take it; `*` for all.
    target: String,
    /// Its name in the history.
    #[serde(deserialize_with = "shared")]
    label: Arc<str>,
}

/// Texts that every call repeats are shared.
fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Arc::from)
}

impl fmt::Debug for TokenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} to {})", self.label, self.caller, self.target)
    }
}

/// The tokens of a mesh.
#[derive(Debug, Clone, Default)]
pub struct TokenTable(Vec<TokenEntry>);

impl TokenTable {
    /// A table of these entries.
    #[must_use]
    pub const fn new(entries: Vec<TokenEntry>) -> Self {
        Self(entries)
    }

    /// What is wrong with the table, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let mut seen = BTreeMap::new();
        self.0.iter().find_map(|entry| {
            if entry.token.is_empty() {
                Some(format!("token `{}` is empty", entry.label))
            } else if entry.token.contains('.') {
                Some(format!(
                    "token `{}` contains a dot, which Garage keeps for tokens made through its API",
                    entry.label
                ))
            } else {
                let first = seen.insert(&entry.token, &entry.label)?;
                Some(format!(
                    "the entries `{first}` and `{}` have the same token; each needs its own",
                    entry.label
                ))
            }
        })
    }

    /// The tokens that a node at `site` accepts: those of the mesh for that site, and its own.
    #[must_use]
    pub fn credentials(&self, site: &str, own: &NodeTokens) -> Credentials {
        let meant = self.0.iter().filter(|entry| entry.target == site || entry.target == "*");
        let admin = meant.map(|entry| entry.token.clone()).chain(own.admin.clone()).collect();
        Credentials { admin, metrics: own.metrics.clone(), metrics_require_token: false }
    }

    /// Who presents the token of `request`. A token of the table is attributed wherever it is presented.
    #[must_use]
    pub fn attribute(
        &self,
        request: &Request,
        own: &NodeTokens,
        creator: impl Fn(&str) -> Option<Attribution>,
    ) -> Attribution {
        let Some(token) = auth::token_of(request) else { return Attribution::default() };
        if let Some((id, _)) = token.split_once('.') {
            // A token made through the API is its maker's.
            return creator(id).unwrap_or_default().through(id);
        }
        if let Some(entry) = self.0.iter().find(|entry| entry.token == token) {
            return Attribution { caller: Some(entry.caller.clone()), token: Some(entry.label.clone()) };
        }
        let own_label = if own.admin.as_deref() == Some(token) {
            Some("admin-token")
        } else if own.metrics.as_deref() == Some(token) {
            Some("metrics-token")
        } else {
            None
        };
        Attribution { caller: None, token: own_label.map(Arc::from) }
    }
}

impl Attribution {
    /// Whoever made the dynamic token `id`, by that token.
    fn through(self, id: &str) -> Self {
        match (&self.caller, &self.token) {
            (None, None) => self,
            (_, maker) => {
                let maker = maker.as_deref().unwrap_or("?");
                Self { token: Some(format!("{maker}/{id}").into()), ..self }
            }
        }
    }
}

/// The tokens in a node's own configuration.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct NodeTokens {
    /// `admin_token`.
    pub admin: Option<String>,
    /// `metrics_token`.
    pub metrics: Option<String>,
}

impl fmt::Debug for NodeTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "admin: {}, metrics: {}", self.admin.is_some(), self.metrics.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(token: &str, target: &str) -> TokenEntry {
        let (token, target) = (token.to_owned(), target.to_owned());
        TokenEntry { label: format!("east@{target}").into(), caller: "east".into(), token, target }
    }

    fn request(token: &str) -> Request {
        Request { authorization: Some(format!("Bearer {token}").into_bytes()), ..Request::default() }
    }

    #[test]
    fn a_node_takes_the_tokens_for_its_site_and_its_own() {
        let table = TokenTable::new(vec![entry("one", "east"), entry("two", "west"), entry("three", "*")]);
        let own = NodeTokens { admin: Some("own".to_owned()), metrics: None };
        let admin: Vec<_> = table.credentials("west", &own).admin.into_iter().collect();
        assert_eq!(admin, ["own", "three", "two"]);
    }

    #[test]
    fn a_token_is_attributed_even_where_it_is_refused() {
        let table = TokenTable::new(vec![entry("one", "east")]);
        let attribution = table.attribute(&request("one"), &NodeTokens::default(), |_| None);
        assert_eq!(attribution.caller.as_deref(), Some("east"));
        assert_eq!(
            table.attribute(&request("other"), &NodeTokens::default(), |_| None),
            Attribution::default()
        );
    }

    #[test]
    fn a_nodes_own_token_has_a_label_and_no_caller() {
        let own = NodeTokens { admin: Some("own".to_owned()), metrics: None };
        let attribution = TokenTable::default().attribute(&request("own"), &own, |_| None);
        assert_eq!(attribution, Attribution { caller: None, token: Some("admin-token".into()) });
    }

    #[test]
    fn a_token_made_through_the_api_is_its_makers() {
        let maker = Attribution { caller: Some("east".into()), token: Some("east@west".into()) };
        let creator = |id: &str| (id == "id").then(|| maker.clone());
        let attribute =
            |token: &str| TokenTable::default().attribute(&request(token), &NodeTokens::default(), creator);
        let by_id = attribute("id.secret");
        assert_eq!((by_id.caller.as_deref(), by_id.token.as_deref()), (Some("east"), Some("east@west/id")));
        assert_eq!(attribute("other.secret"), Attribution::default());
    }

    #[test]
    fn a_table_with_a_token_twice_or_with_a_dot_is_refused() {
        let twice = TokenTable::new(vec![entry("one", "east"), entry("one", "west")]).problem().unwrap();
        assert_eq!(twice, "the entries `east@east` and `east@west` have the same token; each needs its own");
        assert!(TokenTable::new(vec![entry("a.b", "east")]).problem().is_some());
        assert!(TokenTable::new(vec![entry("one", "east"), entry("two", "west")]).problem().is_none());
    }
}
