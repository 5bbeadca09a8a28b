//! Whether a hub may declare itself under its endpoint (design record, decision 7).

use std::fmt;

use crate::api::naming::PLACEHOLDER_ENDPOINT;

/// Why a hub must not declare itself under this endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpublishable {
    /// It is the one that hubs are compiled with.
    Placeholder,
    /// Nobody but the hub's own machine reaches it.
    Loopback,
    /// It is no URL of an API server.
    NoUrl,
}

impl fmt::Display for Unpublishable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Placeholder => "it is the placeholder; set --controller-end-point",
            Self::Loopback => {
                "it is a loopback address, which workers do not reach; set --controller-end-point, or \
                               --allow-loopback-endpoint where they do"
            }
            Self::NoUrl => "it is no https:// URL; set --controller-end-point",
        })
    }
}

/// Checks an endpoint. A loopback address counts as a placeholder unless it is allowed: shipped manifests have one.
pub fn check(endpoint: &str, allow_loopback: bool) -> Result<(), Unpublishable> {
    let trimmed = endpoint.trim_end_matches('/');
    if trimmed == PLACEHOLDER_ENDPOINT.trim_end_matches('/') {
        return Err(Unpublishable::Placeholder);
    }
    let uri: http::Uri = endpoint.parse().map_err(|_| Unpublishable::NoUrl)?;
    let host = uri.host().filter(|host| !host.is_empty() && uri.scheme_str() == Some("https"));
    let host = host.ok_or(Unpublishable::NoUrl)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<std::net::IpAddr>();
    let loopback = bare == "localhost" || address.is_ok_and(|it| it.is_loopback() || it.is_unspecified());
    if loopback && !allow_loopback { Err(Unpublishable::Loopback) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Unpublishable, check};

    #[rstest]
    #[case("https://controller.cisco.com:6443/", Err(Unpublishable::Placeholder))]
    #[case("https://controller.cisco.com:6443", Err(Unpublishable::Placeholder))]
    #[case("https://127.0.0.1:36515", Err(Unpublishable::Loopback))]
    #[case("https://[::1]:6443", Err(Unpublishable::Loopback))]
    #[case("https://localhost:6443", Err(Unpublishable::Loopback))]
    #[case("https://0.0.0.0:6443", Err(Unpublishable::Loopback))]
    #[case("http://hub.example:6443", Err(Unpublishable::NoUrl))]
    #[case("hub.example", Err(Unpublishable::NoUrl))]
    #[case("", Err(Unpublishable::NoUrl))]
    #[case("https://hub-b.example:6443", Ok(()))]
    fn an_endpoint_is_one_that_workers_reach(
        #[case] endpoint: &str,
        #[case] expected: Result<(), Unpublishable>,
    ) {
        assert_eq!(check(endpoint, false), expected);
    }

    #[rstest]
    #[case("https://127.0.0.1:36515", Ok(()))]
    #[case("https://controller.cisco.com:6443/", Err(Unpublishable::Placeholder))]
    fn loopback_can_be_allowed_and_the_placeholder_cannot(
        #[case] endpoint: &str,
        #[case] expected: Result<(), Unpublishable>,
    ) {
        assert_eq!(check(endpoint, true), expected);
    }
}
