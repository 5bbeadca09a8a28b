//! What the pod's environment says: which pod it is, and where its hub is.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use http::Uri;

use super::error::EnvironmentError;
use super::secrets::SecretFile;
use crate::hub::ControlToken;

/// Where a service account's volume tells the namespace of a pod (Kubernetes documentation).
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Where a pod's domains are searched, its namespace first (Kubernetes documentation, "DNS for Services and Pods").
const RESOLVER_FILE: &str = "/etc/resolv.conf";

/// How long the hub may stay away at the start, unless `ONEWRITER_HUB_PATIENCE` says otherwise.
const PATIENCE: Duration = Duration::from_mins(1);

/// Which pod this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodIdentity {
    /// Its site.
    pub site: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name, which is its host name.
    pub pod: String,
}

/// What the environment says.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Which pod this is.
    pub pod: PodIdentity,
    /// `host:port` of the hub's control API.
    pub hub: String,
    /// Its token.
    pub token: ControlToken,
    /// The pod's own address, if it is told.
    pub address: Option<IpAddr>,
    /// How long the hub may stay away at the start.
    pub patience: Duration,
    /// Name of a purge of the layout file, which is carried out before the start, once for each name.
    pub purge_layout: Option<String>,
}

impl Surroundings {
    /// Reads the environment.
    ///
    /// | variable | what it says |
    /// |---|---|
    /// | `ONEWRITER_HUB` | `http://HOST:PORT` of the control API |
    /// | `ONEWRITER_HUB_TOKEN`, `ONEWRITER_HUB_TOKEN_FILE` | its token, or a file that holds it |
    /// | `ONEWRITER_SITE` | the site |
    /// | `POD_NAMESPACE` | the namespace; else the service account's volume tells it, else the resolver's configuration |
    /// | `POD_NAME`, `HOSTNAME` | the pod |
    /// | `GARAGE_NODE_HOST`, `POD_IP` | its address; else the host of `rpc_public_addr`, if that is an address |
    /// | `GARAGE_LAYOUT_PURGE` | name of a purge of the layout file: carried out before the start, once for each name |
    /// | `ONEWRITER_HUB_PATIENCE` | seconds for which the hub may stay away at the start; 60 |
    pub fn read(
        env: &BTreeMap<String, String>,
        read: &dyn Fn(&str) -> std::io::Result<SecretFile>,
        rpc_public_addr: Option<&str>,
    ) -> Result<Self, EnvironmentError> {
        let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let needed = |name: &'static str, what: &'static str| {
            get(name).map(str::to_owned).ok_or(EnvironmentError::Missing { name, what })
        };
        let namespace_file = || read(NAMESPACE_FILE).ok().map(|file| file.text.trim().to_owned());
        let searched = || searched_namespace(&read(RESOLVER_FILE).ok()?.text);
        let namespace = get("POD_NAMESPACE").map(str::to_owned).or_else(namespace_file).or_else(searched);
        let missing = EnvironmentError::Missing { name: "POD_NAMESPACE", what: "the pod's namespace" };
        let pod = PodIdentity {
            site: needed("ONEWRITER_SITE", "the pod's site")?,
            namespace: namespace.filter(|name| !name.is_empty()).ok_or(missing)?,
            pod: get("POD_NAME")
                .map_or_else(|| needed("HOSTNAME", "the pod's name"), |name| Ok(name.to_owned()))?,
        };
        pod.check()?;
        let public = || rpc_public_addr?.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']']));
        Ok(Self {
            pod,
            hub: authority(&needed("ONEWRITER_HUB", "the hub, http://HOST:PORT")?)?,
            token: token(get("ONEWRITER_HUB_TOKEN"), get("ONEWRITER_HUB_TOKEN_FILE"), read)?,
            address: match get("GARAGE_NODE_HOST").or_else(|| get("POD_IP")) {
                Some(text) => Some(address(text)?),
                None => public().and_then(|host| host.parse().ok()),
            },
            patience: get("ONEWRITER_HUB_PATIENCE").map_or(Ok(PATIENCE), seconds)?,
            purge_layout: get("GARAGE_LAYOUT_PURGE").map(str::to_owned),
        })
    }
}

impl PodIdentity {
    /// Its path in the control API, after `/nodes/`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.site, self.namespace, self.pod)
    }

    /// Names become parts of a path.
    fn check(&self) -> Result<(), EnvironmentError> {
        let good =
            |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        let named =
            [("ONEWRITER_SITE", &self.site), ("POD_NAMESPACE", &self.namespace), ("HOSTNAME", &self.pod)];
        match named.into_iter().find(|(_, value)| !good(value)) {
            None => Ok(()),
            Some((name, value)) => Err(invalid(name, value, "a name of letters, digits, `-`, `.` and `_`")),
        }
    }
}

/// The namespace in `search NAMESPACE.svc.DOMAIN …`. Pods without a service account's volume have only this.
fn searched_namespace(resolver: &str) -> Option<String> {
    let domains = resolver.lines().find_map(|line| line.trim().strip_prefix("search "))?;
    let (namespace, _) = domains.split_whitespace().find_map(|domain| domain.split_once(".svc."))?;
    Some(namespace.to_owned())
}

fn invalid(name: &'static str, value: &str, expected: &'static str) -> EnvironmentError {
    EnvironmentError::Invalid { name, value: value.to_owned(), expected }
}

fn address(text: &str) -> Result<IpAddr, EnvironmentError> {
    text.parse().map_err(|_| invalid("GARAGE_NODE_HOST", text, "an IP address"))
}

fn seconds(text: &str) -> Result<Duration, EnvironmentError> {
    let seconds = text.parse().map(Duration::from_secs);
    seconds.map_err(|_| invalid("ONEWRITER_HUB_PATIENCE", text, "a whole number of seconds"))
}

fn authority(text: &str) -> Result<String, EnvironmentError> {
    let wrong = || invalid("ONEWRITER_HUB", text, "http://HOST:PORT");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/") && uri.query().is_none();
    let authority = uri.authority().filter(|_| plain).filter(|authority| !authority.as_str().contains('@'));
    match authority {
        Some(authority) => Ok(format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80))),
        None => Err(wrong()),
    }
}

fn token(
    inline: Option<&str>,
    path: Option<&str>,
    read: &dyn Fn(&str) -> std::io::Result<SecretFile>,
) -> Result<ControlToken, EnvironmentError> {
    let missing = EnvironmentError::Missing {
        name: "ONEWRITER_HUB_TOKEN_FILE",
        what: "a file with the hub's control token",
    };
    let text = match (inline, path) {
        (Some(token), _) => token.to_owned(),
        (None, Some(path)) => {
            let file = read(path);
            file.map_err(|source| EnvironmentError::TokenFile { path: path.to_owned(), source })?.text
        }
        (None, None) => return Err(missing),
    };
    ControlToken::new(&text).ok_or(EnvironmentError::NoToken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const WHOLE: [(&str, &str); 6] = [
        ("ONEWRITER_HUB", "http://hub:7070"),
        ("ONEWRITER_HUB_TOKEN", "token"),
        ("ONEWRITER_SITE", "east"),
        ("POD_NAMESPACE", "cell"),
        ("HOSTNAME", "garage-0"),
        ("GARAGE_NODE_HOST", "10.0.0.7"),
    ];

    fn surroundings(changes: &[(&str, &str)]) -> Result<Surroundings, EnvironmentError> {
        let changed = WHOLE.iter().chain(changes);
        let env = changed.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        Surroundings::read(&env, &none, Some("10.0.0.9:3901"))
    }

    #[test]
    fn the_environment_tells_the_pod_and_its_hub() {
        let found = surroundings(&[]).unwrap();
        assert_eq!((found.pod.path().as_str(), found.hub.as_str()), ("east/cell/garage-0", "hub:7070"));
        assert_eq!(found.address, Some("10.0.0.7".parse().unwrap()));
    }

    #[test]
    fn a_purge_is_passed_on_by_its_name() {
        assert_eq!(surroundings(&[]).unwrap().purge_layout, None);
        let found = surroundings(&[("GARAGE_LAYOUT_PURGE", "factor-3")]).unwrap();
        assert_eq!(found.purge_layout.as_deref(), Some("factor-3"));
    }

    #[test]
    fn without_a_word_on_the_address_it_is_that_of_rpc() {
        let found = surroundings(&[("GARAGE_NODE_HOST", "")]).unwrap();
        assert_eq!(found.address, Some("10.0.0.9".parse().unwrap()));
    }

    #[test]
    fn without_a_word_on_the_namespace_it_is_the_first_domain_that_is_searched() {
        let with =
            "nameserver 10.96.0.10\nsearch cell.svc.cluster.local svc.cluster.local\noptions ndots:5\n";
        assert_eq!(searched_namespace(with).as_deref(), Some("cell"));
        assert_eq!(searched_namespace("search example.org\n"), None);
        assert_eq!(searched_namespace("nameserver 10.0.0.1\n"), None);
    }

    #[rstest]
    #[case::no_hub(("ONEWRITER_HUB", ""), "ONEWRITER_HUB is not set: it says the hub")]
    #[case::no_url(("ONEWRITER_HUB", "hub:7070"), "ONEWRITER_HUB is `hub:7070`; expected http://HOST:PORT")]
    #[case::no_plain_url(("ONEWRITER_HUB", "https://hub:7070"), "ONEWRITER_HUB is `https://hub:7070`")]
    #[case::no_site(("ONEWRITER_SITE", ""), "ONEWRITER_SITE is not set: it says the pod's site")]
    #[case::no_namespace(("POD_NAMESPACE", ""), "POD_NAMESPACE is not set")]
    #[case::no_name(("HOSTNAME", "a/b"), "HOSTNAME is `a/b`; expected a name")]
    #[case::no_token(("ONEWRITER_HUB_TOKEN", ""), "ONEWRITER_HUB_TOKEN_FILE is not set")]
    #[case::no_address(("GARAGE_NODE_HOST", "here"), "GARAGE_NODE_HOST is `here`; expected an IP address")]
    #[case::no_seconds(("ONEWRITER_HUB_PATIENCE", "soon"), "ONEWRITER_HUB_PATIENCE is `soon`")]
    fn what_is_missing_or_wrong_is_named(#[case] change: (&str, &str), #[case] expected: &str) {
        let error = surroundings(&[change]).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
