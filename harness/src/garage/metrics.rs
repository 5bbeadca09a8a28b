//! What the operators' metrics say, into the history.

use std::time::Duration;

use futures::future::join_all;
use onewriter_history::Moment;
use serde_json::json;

use super::facts::{METRIC, MetricFact};
use crate::failure::{BoxError, chain};
use crate::scenario::Scope;
use crate::site::Site;

/// How long an operator may take to show its metrics. One that is down must not hold up its cell.
const LIMIT: Duration = Duration::from_secs(2);

/// Asks the operators of both sites for their metrics and records what they say about the cell in `scope`. One that does
/// not answer is recorded as well.
pub async fn record(scope: &Scope) {
    join_all(Site::ALL.map(|site| record_site(scope, site))).await;
}

async fn record_site(scope: &Scope, site: Site) {
    let url = scope.metrics.at(site);
    if url.is_empty() {
        return;
    }
    let since = Moment::now().mono_ns;
    let fact = match page(scope, site).await {
        Ok(page) => MetricFact::of_page(site.name(), since, &scope.namespace, &page),
        Err(error) => MetricFact {
            site: site.name().to_owned(),
            since_ns: since,
            error: Some(chain(error.as_ref())),
            ..MetricFact::default()
        },
    };
    scope.recorder.state(METRIC, json!(fact));
}

/// The page of metrics of the operator of `site`.
pub async fn page(scope: &Scope, site: Site) -> Result<String, BoxError> {
    let url = scope.metrics.at(site);
    if url.starts_with('/') {
        let asked = http::Request::get(url).body(Vec::new())?;
        let client = scope.client(site);
        return Ok(tokio::time::timeout(LIMIT, client.request_text(asked)).await??);
    }
    let http = reqwest::Client::builder().no_proxy().timeout(LIMIT).build()?;
    Ok(http.get(url).send().await?.error_for_status()?.text().await?)
}
