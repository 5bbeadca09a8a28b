//! Writes that an API server holds back: an admission webhook of the test that answers when it is told to.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::routing::post;
use axum::{Json, Router};
use hub_controller::webhook::{TlsFiles, TlsListener};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::objects::Side;

/// Requests of one kind are held while this is closed.
pub struct Hold {
    name: String,
    side: Side,
    open: watch::Sender<bool>,
    held: watch::Receiver<usize>,
    _folder: tempfile::TempDir,
}

impl Hold {
    /// Holds these operations on this resource, made by accounts whose name ends so. 30 s at most: then the API server
    /// lets them through.
    pub async fn new(side: &Side, name: &str, address: Ipv4Addr, rule: &Value, user: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certificate = certificate(folder.path(), address);
        let (open, held) = (watch::Sender::new(false), Arc::new(watch::Sender::new(0_usize)));
        let (gate, counted) = (open.subscribe(), held.subscribe());
        let routes = Router::new().route(
            "/",
            post(move |Json(review): Json<Value>| {
                let (mut gate, held) = (gate.clone(), Arc::clone(&held));
                async move {
                    held.send_modify(|count| *count += 1);
                    drop(gate.wait_for(|open| *open).await);
                    let response = json!({"uid": review["request"]["uid"], "allowed": true});
                    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
                }
            }),
        );
        let listener =
            TlsListener::bind(SocketAddr::from((address, 8443)), TlsFiles::new(folder.path())).await.unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": format!("{name}.tests.example"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Ignore", "timeoutSeconds": 30, "rules": [rule],
                "clientConfig": {"url": format!("https://{address}:8443/"), "caBundle": k8s_openapi::ByteString(certificate.into_bytes())},
                "matchConditions": [{"name": "user", "expression": format!("request.userInfo.username.endsWith('{user}')")}],
            }],
        });
        let hold = Self { name: name.to_owned(), side: side.clone(), open, held: counted, _folder: folder };
        let api = hold.api();
        api.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(&configuration)).await.unwrap();
        hold
    }

    fn api(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.side.client.clone())
    }

    /// Waits until requests have been held.
    pub async fn until_held(&self, count: usize) {
        let mut held = self.held.clone();
        let waiting = held.wait_for(|held| *held >= count);
        tokio::time::timeout(super::LIMIT, waiting).await.expect("nothing was held").unwrap();
    }

    /// Lets what is held go, and holds nothing any more.
    pub async fn release(&self) {
        self.open.send_replace(true);
        self.api().delete(&self.name, &DeleteParams::default()).await.unwrap();
    }
}

/// Makes a certificate for this address in the folder, and answers it.
fn certificate(folder: &std::path::Path, address: Ipv4Addr) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.subject_alt_names = vec![rcgen::SanType::IpAddress(address.into())];
    let certificate = params.self_signed(&key).unwrap().pem();
    std::fs::write(folder.join("tls.crt"), &certificate).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    certificate
}
