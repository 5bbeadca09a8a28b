//! Knowing when a control plane does its work.

use std::{
    fmt::Display,
    net::SocketAddrV4,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client, api::DeleteParams, runtime::wait::await_condition};
use tokio::net::TcpStream;

use super::{
    control_plane::{TAIL, first_end},
    error::LocalError,
};
use crate::{process::Child, site::Site};

/// Long enough for a slow, busy machine with cold files; a program that dies is noticed at once anyway.
const DEADLINE: Duration = Duration::from_secs(90);

/// How often a connection is tried to a server that has only just been started.
const CONNECT_EVERY: Duration = Duration::from_millis(10);

/// How often a server that has no way to call back is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(40);

/// Runs `work` unless one of `programs` ends first.
pub(super) async fn unless_ended<T>(
    site: Site,
    programs: &[&Child],
    work: impl Future<Output = T>,
) -> Result<T, LocalError> {
    tokio::select! {
        result = work => Ok(result),
        error = first_end(site, programs) => Err(error),
    }
}

/// Waits until `program` listens on `address`.
///
/// An API server that finds no etcd at first tries again only after a second, so it is worth while to start it when
/// etcd listens.
pub(super) async fn listening(site: Site, address: SocketAddrV4, program: &Child) -> Result<(), LocalError> {
    let last = Mutex::new("no answer yet".to_owned());
    let connected = async {
        while let Err(error) = TcpStream::connect(address).await {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
            tokio::time::sleep(CONNECT_EVERY).await;
        }
    };
    within(site, &[program], "etcd listened", &last, connected).await
}

/// Waits until the API server, the last of `programs`, says that it is ready.
pub(super) async fn api_server(site: Site, client: &Client, programs: &[&Child]) -> Result<(), LocalError> {
    let last = Mutex::new("no answer yet".to_owned());
    let asked = async {
        while let Err(error) = ask(client).await {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = error;
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    within(site, programs, "kube-apiserver was ready", &last, asked).await
}

/// Waits until the controllers, the last of `programs`, have done something that only they do: the namespace
/// `default` has its ServiceAccount.
pub(super) async fn controllers(site: Site, client: &Client, programs: &[&Child]) -> Result<(), LocalError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let last = Mutex::new("no ServiceAccount in the namespace default".to_owned());
    let created = async {
        let created =
            await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some());
        if let Err(error) = created.await {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
            std::future::pending::<()>().await;
        }
    };
    within(site, programs, "kube-controller-manager worked", &last, created).await
}

/// Takes away what [`controllers`] waits for, so that it tells of controllers that are started again.
pub(super) async fn without_account(site: Site, client: &Client) -> Result<(), LocalError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    match accounts.delete("default", &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        result => result.map(drop).map_err(|source| LocalError::Account { site, source: Box::new(source) }),
    }
}

async fn ask(client: &Client) -> Result<(), String> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(lacking(&status.message)),
        Err(error) => Err(error.to_string()),
    }
}

/// What an API server that is not ready says is lacking (Kubernetes, "API health endpoints": a line for each part, with
/// `[-]` before those that are not well); all of it where it says it otherwise.
fn lacking(answer: &str) -> String {
    let lacking: Vec<&str> = answer.lines().filter(|line| line.starts_with("[-]")).collect();
    if lacking.is_empty() { answer.trim().to_owned() } else { lacking.join(", ") }
}

async fn within(
    site: Site,
    programs: &[&Child],
    awaited: &'static str,
    last: &Mutex<impl Display>,
    work: impl Future<Output = ()>,
) -> Result<(), LocalError> {
    let work = tokio::time::timeout(DEADLINE, work);
    match (unless_ended(site, programs, work).await?, programs.last()) {
        (Ok(()), _) | (Err(_), None) => Ok(()),
        (Err(_), Some(program)) => Err(LocalError::NotReady {
            site,
            awaited,
            waited: DEADLINE,
            last: last.lock().unwrap_or_else(PoisonError::into_inner).to_string(),
            log: program.log().to_owned(),
            tail: program.log_tail(TAIL),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::lacking;
    use rstest::rstest;

    #[rstest]
    #[case::parts(
        "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\nreadyz check failed\n",
        "[-]etcd failed: reason withheld"
    )]
    #[case::otherwise("no way\n", "no way")]
    fn of_a_server_that_is_not_ready_only_what_is_lacking_is_told(#[case] answer: &str, #[case] told: &str) {
        assert_eq!(lacking(answer), told);
    }
}
