//! The query string.

use std::collections::BTreeMap;

use super::error::ApiError;

/// Parameters that some endpoint knows. Others are ignored, even if repeated.
const KNOWN: [&str; 14] = [
    "accessKeyId",
    "alias",
    "bucketId",
    "domain",
    "globalAlias",
    "id",
    "key",
    "limit",
    "list",
    "node",
    "offset",
    "search",
    "showSecretKey",
    "forceGlobal",
];

/// The parameters of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads a query string. A known parameter that is given twice is an error.
    pub fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        let mut parameters = BTreeMap::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name), decode(value));
            if KNOWN.contains(&name.as_str()) && parameters.insert(name.clone(), value).is_some() {
                return Err(ApiError::bad_request(format_args!("Query parameter repeated: '{name}'")));
            }
        }
        Ok(Self(parameters))
    }

    /// Whether the parameter is there, even if empty.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A parameter that is not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A mandatory parameter.
    pub fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.get(name).ok_or_else(|| ApiError::missing(name))
    }

    /// A parameter that is parsed.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |value: &str| value.parse();
        self.get(name)
            .map(parse)
            .transpose()
            .map_err(|_| ApiError::bad_request("Failed to parse query parameter"))
    }
}

/// Undoes percent encoding and `+` for a space.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex::decode([*high, *low]).ok(),
            _ => None,
        };
        if let Some(byte) = escaped {
            bytes.extend(byte);
            rest = &tail[2..];
        } else {
            bytes.push(if *first == b'+' { b' ' } else { *first });
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_parameters_may_not_be_repeated() {
        assert!(Query::parse(Some("foo=1&foo=2")).is_ok());
        let error = Query::parse(Some("node=x&node=y")).unwrap_err();
        assert_eq!(error.message(), "Bad request: Query parameter repeated: 'node'");
    }

    #[test]
    fn values_are_decoded() {
        assert_eq!(Query::parse(Some("node=%2a")).unwrap().get("node"), Some("*"));
    }
}
