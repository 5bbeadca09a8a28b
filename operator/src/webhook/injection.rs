//! Tells the API server where the webhook is and whom to trust: in the definition's conversion and in the two
//! admission configurations. What is not installed is left alone.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tracing::info;

use super::handlers::{CONVERT, MUTATE, VALIDATE, VALIDATE_NODES};

/// Name of the definition that is converted.
pub const DEFINITION: &str = "garageclusters.garage.rajsingh.info";
/// Name of both admission configurations.
pub const CONFIGURATION: &str = "garage-operator";
/// Name of the Service in front of the webhook server.
pub const SERVICE: &str = "garage-operator-webhook";

/// Where the API server reaches the webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Through the Service in this namespace.
    Service(String),
    /// At this base URL.
    Url(String),
}

impl Location {
    /// The names that the certificate must be for.
    pub fn names(&self, cluster_domain: &str) -> Vec<String> {
        match self {
            Self::Service(namespace) => vec![
                format!("{SERVICE}.{namespace}.svc"),
                format!("{SERVICE}.{namespace}.svc.{cluster_domain}"),
            ],
            Self::Url(url) => {
                let authority = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let host = authority.split('/').next().unwrap_or(authority);
                let end = host.rfind(':').filter(|_| !host.ends_with(']')).unwrap_or(host.len());
                vec![host[..end].trim_matches(['[', ']']).to_owned()]
            }
        }
    }

    fn client_config(&self, path: &str, authority: &str) -> Value {
        let bundle = ByteString(authority.as_bytes().to_vec());
        match self {
            Self::Service(namespace) => json!({
                "caBundle": bundle, "url": null,
                "service": { "name": SERVICE, "namespace": namespace, "path": path, "port": 443 },
            }),
            Self::Url(url) => json!({
                "caBundle": bundle, "service": null,
                "url": format!("{}{path}", url.trim_end_matches('/')),
            }),
        }
    }
}

/// Injects the location and the authority wherever a webhook of this operator is configured.
pub async fn inject(client: &Client, location: &Location, authority: &str) -> Result<(), kube::Error> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    if let Some(definition) = definitions.get_opt(DEFINITION).await? {
        let strategy = definition.spec.conversion.as_ref().map(|conversion| conversion.strategy.as_str());
        if strategy == Some("Webhook") {
            let patch = json!({ "spec": { "conversion": { "webhook": {
                "clientConfig": location.client_config(CONVERT, authority),
                "conversionReviewVersions": ["v1"],
            }}}});
            definitions.patch(DEFINITION, &PatchParams::default(), &Patch::Merge(patch)).await?;
            info!(definition = DEFINITION, "told the API server where conversions are done");
        }
    }
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    if let Some(found) = validating.get_opt(CONFIGURATION).await? {
        let names = found.webhooks.iter().flatten().map(|webhook| webhook.name.clone());
        let patch = webhooks(names, |name| {
            let nodes = name.starts_with("garagenodes.");
            location.client_config(if nodes { VALIDATE_NODES } else { VALIDATE }, authority)
        });
        validating.patch(CONFIGURATION, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    }
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    if let Some(found) = mutating.get_opt(CONFIGURATION).await? {
        let names = found.webhooks.iter().flatten().map(|webhook| webhook.name.clone());
        let patch = webhooks(names, |_| location.client_config(MUTATE, authority));
        mutating.patch(CONFIGURATION, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    }
    Ok(())
}

fn webhooks(names: impl Iterator<Item = String>, client_config: impl Fn(&str) -> Value) -> Value {
    let entry = |name: String| json!({ "clientConfig": client_config(&name), "name": name });
    let entries: Vec<Value> = names.map(entry).collect();
    json!({ "webhooks": entries })
}

#[cfg(test)]
mod tests {
    use super::Location;
    use rstest::rstest;

    #[rstest]
    #[case(Location::Url("https://127.16.0.1:9443".into()), &["127.16.0.1"])]
    #[case(Location::Url("https://[::1]:9443/x".into()), &["::1"])]
    #[case(Location::Url("https://host".into()), &["host"])]
    #[case(
        Location::Service("ns".into()),
        &["garage-operator-webhook.ns.svc", "garage-operator-webhook.ns.svc.cluster.local"]
    )]
    fn the_certificate_is_for_the_place_where_the_server_is_reached(
        #[case] location: Location,
        #[case] names: &[&str],
    ) {
        assert_eq!(location.names("cluster.local"), names);
    }

    #[test]
    fn an_url_replaces_a_service() {
        let config = Location::Url("https://h:1/".into()).client_config("/convert", "PEM");
        assert_eq!(config["url"], "https://h:1/convert");
        assert!(config["service"].is_null());
        assert_eq!(config["caBundle"], "UEVN");
    }
}
