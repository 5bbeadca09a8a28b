//! A mesh of a cell's own: its secret, and who calls with which token.

use std::fmt;
use std::time::Duration;

use rand::RngCore as _;
use sha2::{Digest as _, Sha256};

use super::hub::CallerToken;
use crate::site::Site;

/// The caller name of the harness itself.
pub const HARNESS: &str = "harness";

/// The caller name of a person who changes things by hand.
pub const HUMAN: &str = "human";

/// A mesh: every node that knows its secret belongs to it. Every caller has a token of its own per site it calls,
/// so the journal can tell who called whom (operator contract §10.2).
#[derive(Clone)]
pub struct Mesh {
    /// Name, unique in the hub.
    pub name: String,
    /// The shared secret of its nodes, 64 hex digits.
    pub rpc_secret: String,
    /// URL of the HTTP proxy through which the harness reaches its nodes; none where it reaches them without.
    pub proxy: Option<String>,
    tokens: Vec<CallerToken>,
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mesh({})", self.name)
    }
}

impl Mesh {
    /// A mesh with fresh secrets.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let mut tokens = Vec::new();
        for caller in Site::ALL {
            for target in Site::ALL {
                tokens.push(caller_token(caller.name(), target.name()));
            }
        }
        tokens.push(caller_token(HARNESS, "*"));
        tokens.push(caller_token(HUMAN, "*"));
        Self { name: name.into(), rpc_secret: secret(), proxy: None, tokens }
    }

    /// The same mesh, whose nodes the harness reaches through `proxy`.
    #[must_use]
    pub fn behind(self, proxy: Option<String>) -> Self {
        Self { proxy, ..self }
    }

    /// A client for calls to its nodes, each of which may take `limit`.
    pub(super) fn http(&self, limit: Duration) -> reqwest::Result<reqwest::Client> {
        let client = reqwest::Client::builder().no_proxy().timeout(limit);
        match &self.proxy {
            Some(proxy) => client.proxy(reqwest::Proxy::http(proxy)?).build(),
            None => client.build(),
        }
    }

    /// The token with which `caller`'s operator calls nodes of `target`.
    #[must_use]
    pub fn token(&self, caller: Site, target: Site) -> &str {
        self.token_of(caller.name(), target.name())
    }

    /// The token with which the harness itself calls any node.
    #[must_use]
    pub fn harness_token(&self) -> &str {
        self.token_of(HARNESS, "*")
    }

    /// The token with which a person calls any node.
    #[must_use]
    pub fn human_token(&self) -> &str {
        self.token_of(HUMAN, "*")
    }

    /// Everything that may call, for the hub.
    #[must_use]
    pub fn tokens(&self) -> &[CallerToken] {
        &self.tokens
    }

    /// SHA-256 of the shared secret, hex.
    #[must_use]
    pub fn rpc_secret_digest(&self) -> String {
        hex::encode(Sha256::digest(self.rpc_secret.as_bytes()))
    }

    fn token_of(&self, caller: &str, target: &str) -> &str {
        let found = self.tokens.iter().find(|token| token.caller == caller && token.target == target);
        found.map_or("", |token| &token.token)
    }
}

fn caller_token(caller: &str, target: &str) -> CallerToken {
    CallerToken {
        token: secret(),
        caller: caller.to_owned(),
        target: target.to_owned(),
        label: format!("{caller}@{target}"),
    }
}

/// 32 random bytes in hex. Without a dot: Garage takes a token with one for a dynamic token.
fn secret() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    hex::encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_caller_has_a_token_of_its_own_for_every_target() {
        let mesh = Mesh::new("m");
        let tokens: BTreeSet<&str> = mesh.tokens().iter().map(|token| token.token.as_str()).collect();
        assert_eq!(tokens.len(), 6);
        assert!(tokens.contains(mesh.token(Site::West, Site::East)));
        assert_ne!(mesh.token(Site::West, Site::East), mesh.token(Site::East, Site::East));
    }

    #[test]
    fn no_secret_shows_when_a_mesh_is_printed() {
        let mesh = Mesh::new("m");
        let printed = format!("{mesh:?} {:?}", mesh.tokens());
        assert!(!printed.contains(&mesh.rpc_secret), "{printed}");
        assert!(!printed.contains(mesh.harness_token()), "{printed}");
    }
}
