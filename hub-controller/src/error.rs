//! What errors of the Kubernetes client say.

/// The API server's answer, if it gave one: without one nobody knows what became of the request.
pub fn status_of(error: &kube::Error) -> Option<&kube::core::Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The whole chain of an error in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut current = error.source();
    while let Some(source) = current {
        let part = source.to_string();
        // Some libraries repeat their source in their own message.
        if !text.ends_with(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        current = source.source();
    }
    text
}
