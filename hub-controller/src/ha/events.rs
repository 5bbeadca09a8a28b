//! Events about leadership, on the hub's own Lease (design record, decision 5).

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};

use crate::mutant::{self, Mutant};

/// Reason of the Event that tells of a promotion.
pub const PROMOTED: &str = "PromotedToActive";
/// Reason of the Event that tells of an endpoint that nobody reaches.
pub const PLACEHOLDER: &str = "PlaceholderEndpoint";
/// Reason of the Event that tells of a missing wipe.
pub const WIPE_SKIPPED: &str = "WipeSkipped";

/// Which Event.
#[derive(Clone, Debug)]
pub struct Telling<'a> {
    /// `Normal` or `Warning`.
    pub type_: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// What happened.
    pub message: &'a str,
    /// What makes it one and the same Event however often it is told.
    pub once: &'a str,
}

/// Tells an Event about a Lease. Telling it again changes nothing.
pub async fn tell(client: &Client, lease: &Lease, telling: &Telling<'_>) -> Result<(), kube::Error> {
    let namespace = lease.namespace().unwrap_or_default();
    let (namespace, involved) = if mutant::is(Mutant::EventElsewhere) && telling.reason == PROMOTED {
        let pod = ObjectReference {
            kind: Some("Pod".to_owned()),
            api_version: Some("v1".to_owned()),
            name: Some("hub-controller".to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectReference::default()
        };
        ("default".to_owned(), pod)
    } else {
        (namespace.clone(), reference(lease, namespace))
    };
    let event = event(&namespace, involved, telling);
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    match events.create(&PostParams::default(), &event).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error),
    }
}

fn reference(lease: &Lease, namespace: String) -> ObjectReference {
    ObjectReference {
        kind: Some("Lease".to_owned()),
        api_version: Some("coordination.k8s.io/v1".to_owned()),
        name: lease.metadata.name.clone(),
        namespace: Some(namespace),
        uid: lease.metadata.uid.clone(),
        resource_version: lease.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

fn event(namespace: &str, involved: ObjectReference, telling: &Telling<'_>) -> Event {
    let now = Timestamp::now();
    let name = involved.name.clone().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{}.{}", telling.reason.to_lowercase(), telling.once)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: involved,
        type_: Some(telling.type_.to_owned()),
        reason: Some(telling.reason.to_owned()),
        message: Some(telling.message.to_owned()),
        action: Some(telling.reason.to_owned()),
        count: Some(1),
        event_time: Some(MicroTime(now)),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        source: Some(EventSource { component: Some("hub-controller".to_owned()), host: None }),
        reporting_component: Some("hub-controller".to_owned()),
        reporting_instance: Some(std::env::var("POD_NAME").unwrap_or_else(|_| "hub-controller".to_owned())),
        ..Event::default()
    }
}
