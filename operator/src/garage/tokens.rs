//! Admin tokens made through the API (operator contract §1.6, Garage admin reference §1). Nothing here is a layout write:
//! a Follower may call it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::client::AdminClient;
use super::error::AdminError;
use super::token::Token;

/// A token that was just made: the only time its secret is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its identity, the part before the dot.
    pub id: String,
    /// The token itself.
    pub token: Token,
}

/// A token as it is listed.
#[derive(Clone, Debug, Deserialize)]
struct Listed {
    /// Absent for tokens of the configuration.
    id: Option<String>,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    id: Option<String>,
    secret_token: String,
}

impl AdminClient {
    /// Makes a token of this name that may call everything and does not expire: `CreateAdminToken`.
    pub async fn create_admin_token(&self, name: &str) -> Result<NewToken, AdminError> {
        const OPERATION: &str = "CreateAdminToken";
        let body = json!({ "name": name, "neverExpires": true, "scope": ["*"] });
        let made: Made = self.post(OPERATION, Some(&body)).await?;
        let id = made.secret_token.split_once('.').map(|(id, _)| id.to_owned());
        match id.filter(|id| made.id.as_ref() == Some(id)) {
            Some(id) => Ok(NewToken { id, token: Token::new(&made.secret_token) }),
            None => Err(AdminError::Unexpected {
                call: self.call(&reqwest::Method::POST, OPERATION),
                what: "a token that does not begin with its own identity".to_owned(),
            }),
        }
    }

    /// The identities of all tokens of this name: `ListAdminTokens`.
    pub async fn admin_tokens_named(&self, name: &str) -> Result<Vec<String>, AdminError> {
        let all: Vec<Listed> = self.get_from("ListAdminTokens", "").await?;
        Ok(all.into_iter().filter(|token| token.name == name).filter_map(|token| token.id).collect())
    }

    /// Whether the node knows the token of this identity: `GetAdminTokenInfo`.
    pub async fn knows_admin_token(&self, id: &str) -> Result<bool, AdminError> {
        let info: Result<Listed, _> = self.get_from("GetAdminTokenInfo", &format!("?id={id}")).await;
        match info {
            Ok(token) => Ok(token.id.as_deref() == Some(id)),
            Err(error) if error.status() == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Revokes the token of this identity; one that is gone already is fine: `DeleteAdminToken`.
    pub async fn delete_admin_token(&self, id: &str) -> Result<(), AdminError> {
        match self.post_to::<(), IgnoredAny>("DeleteAdminToken", &format!("?id={id}"), None).await {
            Err(error) if error.status() == Some(404) => Ok(()),
            result => result.map(drop),
        }
    }
}
