//! An error that happened in another process.

/// An error of another process with its sources, as texts.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct RemoteError {
    text: String,
    source: Option<Box<RemoteError>>,
}

impl RemoteError {
    /// The error whose texts are given, outermost first.
    pub(super) fn new(chain: Vec<String>) -> Self {
        let link = |source: Option<Self>, text| Some(Self { text, source: source.map(Box::new) });
        let whole = chain.into_iter().rev().fold(None, link);
        whole.unwrap_or_else(|| Self { text: "an unknown error".into(), source: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::pair::chain;

    #[test]
    fn a_chain_of_sources_survives_the_way() {
        let texts = ["outer".to_owned(), "middle".into(), "inner".into()];
        assert_eq!(chain(&RemoteError::new(texts.to_vec())), texts);
    }

    #[test]
    fn no_text_at_all_is_still_an_error() {
        assert_eq!(RemoteError::new(Vec::new()).to_string(), "an unknown error");
    }
}
