//! How the programs are run, and why so.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddrV4},
    path::{Path, PathBuf},
};

use super::{
    pki::{CredentialFiles, SigningFiles},
    ports::Ports,
};

/// What a site's API server records.
pub const AUDIT_POLICY: &str = include_str!("audit-policy.yaml");

/// Controllers that are run. The others have nothing to do without nodes, or want what loopback addresses cannot
/// give (they are refused in `EndpointSlices`).
const CONTROLLERS: &str = "statefulset-controller,garbage-collector-controller,namespace-controller,\
                           serviceaccount-controller,serviceaccount-token-controller,\
                           pod-garbage-collector-controller";

/// Admission plugins that are off.
///
/// `ServiceAccount` mounts tokens that no process here reads, and holds pods back until a namespace has its
/// account. `StorageObjectInUseProtection` puts finalizers on claims that only a volume controller takes away.
/// `TaintNodesByCondition` taints the one node until a kubelet's controller clears it.
const ADMISSION_OFF: &str = "ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition";

/// Where everything of one site is.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) address: Ipv4Addr,
    pub(super) ports: Ports,
    pub(super) authority: PathBuf,
    pub(super) server: CredentialFiles,
    pub(super) store: CredentialFiles,
    pub(super) signing: SigningFiles,
    pub(super) data: PathBuf,
    pub(super) audit_policy: PathBuf,
    pub(super) audit_log: PathBuf,
}

impl Layout {
    /// Where the API server is reached.
    pub(super) fn server_url(&self) -> String {
        format!("https://{}:{}", self.address, self.ports.api)
    }

    /// Where etcd listens for the API server.
    pub(super) fn store(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address, self.ports.store)
    }

    fn store_url(&self) -> String {
        format!("https://{}", self.store())
    }

    fn peers_url(&self) -> String {
        format!("https://{}:{}", self.address, self.ports.peers)
    }
}

/// etcd with one member. Its data need not survive a power failure, so nothing is synced to disk.
pub(super) fn etcd(layout: &Layout) -> Vec<OsString> {
    let (store, peers) = (layout.store_url(), layout.peers_url());
    let mut flags = Flags::default();
    flags.set("name", "onewriter");
    flags.path("data-dir", &layout.data);
    flags.flag("unsafe-no-fsync");
    flags.set("listen-client-urls", &store);
    flags.set("advertise-client-urls", &store);
    flags.set("listen-peer-urls", &peers);
    flags.set("initial-advertise-peer-urls", &peers);
    flags.set("initial-cluster", &format!("onewriter={peers}"));
    flags.path("cert-file", &layout.store.certificate);
    flags.path("key-file", &layout.store.key);
    flags.path("trusted-ca-file", &layout.authority);
    flags.flag("client-cert-auth");
    flags.path("peer-cert-file", &layout.store.certificate);
    flags.path("peer-key-file", &layout.store.key);
    flags.path("peer-trusted-ca-file", &layout.authority);
    flags.flag("peer-client-cert-auth");
    flags.set("log-level", "warn");
    flags.0
}

/// The API server: RBAC, certificates only, everything that is recorded written before it is answered.
pub(super) fn kube_apiserver(layout: &Layout) -> Vec<OsString> {
    let mut flags = Flags::default();
    let address = layout.address.to_string();
    flags.set("bind-address", &address);
    flags.set("advertise-address", &address);
    flags.set("secure-port", &layout.ports.api.to_string());
    flags.path("tls-cert-file", &layout.server.certificate);
    flags.path("tls-private-key-file", &layout.server.key);
    flags.path("client-ca-file", &layout.authority);
    flags.set("anonymous-auth", "false");
    flags.set("authorization-mode", "RBAC");
    flags.set("etcd-servers", &layout.store_url());
    flags.path("etcd-cafile", &layout.authority);
    flags.path("etcd-certfile", &layout.store.certificate);
    flags.path("etcd-keyfile", &layout.store.key);
    flags.set("service-account-issuer", "https://kubernetes.default.svc");
    flags.path("service-account-key-file", &layout.signing.public);
    flags.path("service-account-signing-key-file", &layout.signing.private);
    flags.set("service-cluster-ip-range", "10.96.0.0/16");
    flags.path("audit-policy-file", &layout.audit_policy);
    flags.path("audit-log-path", &layout.audit_log);
    flags.set("audit-log-mode", "blocking-strict");
    // The log is read as one file.
    flags.set("audit-log-maxsize", "0");
    flags.set("disable-admission-plugins", ADMISSION_OFF);
    // The endpoint of the Service `kubernetes` would be a loopback address, which is refused; nobody needs it.
    flags.set("endpoint-reconciler-type", "none");
    // Clients are few and trusted; without fair queueing the server starts sooner.
    flags.set("enable-priority-and-fairness", "false");
    flags.set("profiling", "false");
    flags.0
}

/// The controllers that are needed, alone, each as the ServiceAccount that it is in a full cluster.
///
/// Token Secrets are filled with the site's own key: what one site issues means nothing to the other.
pub(super) fn kube_controller_manager(layout: &Layout, kubeconfig: &Path) -> Vec<OsString> {
    let mut flags = Flags::default();
    flags.path("kubeconfig", kubeconfig);
    flags.path("service-account-private-key-file", &layout.signing.private);
    flags.path("root-ca-file", &layout.authority);
    flags.set("controllers", CONTROLLERS);
    flags.set("use-service-account-credentials", "true");
    flags.set("leader-elect", "false");
    // Nobody asks it anything, so it need not listen.
    flags.set("secure-port", "0");
    flags.set("profiling", "false");
    // Many cells run at once; the defaults are made for one shared cluster.
    flags.set("kube-api-qps", "500");
    flags.set("kube-api-burst", "1000");
    flags.set("concurrent-statefulset-syncs", "10");
    flags.0
}

/// Garbage is collected later than by default, for CPU time is what a start waits for; but never beyond a limit.
pub(super) fn memory(limit_megabytes: u32) -> Vec<(OsString, OsString)> {
    vec![("GOGC".into(), "200".into()), ("GOMEMLIMIT".into(), format!("{limit_megabytes}MiB").into())]
}

#[derive(Default)]
struct Flags(Vec<OsString>);

impl Flags {
    fn flag(&mut self, name: &str) {
        self.0.push(format!("--{name}").into());
    }

    fn set(&mut self, name: &str, value: &str) {
        self.0.push(format!("--{name}={value}").into());
    }

    fn path(&mut self, name: &str, path: &Path) {
        let mut flag = OsString::from(format!("--{name}="));
        flag.push(path);
        self.0.push(flag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let credential = |name: &str| CredentialFiles {
            certificate: format!("/p/{name}.crt").into(),
            key: format!("/p/{name}.key").into(),
        };
        Layout {
            address: Ipv4Addr::new(127, 20, 0, 1),
            ports: Ports { api: 1, store: 2, peers: 3 },
            authority: "/p/ca.crt".into(),
            server: credential("server"),
            store: credential("store"),
            signing: SigningFiles { public: "/p/sa.pub".into(), private: "/p/sa.key".into() },
            data: "/d/etcd".into(),
            audit_policy: "/d/policy.yaml".into(),
            audit_log: "/d/audit.jsonl".into(),
        }
    }

    #[test]
    fn nothing_listens_beyond_the_sites_own_address() {
        for program in [etcd(&layout()), kube_apiserver(&layout())] {
            for flag in program.iter().map(|flag| flag.to_string_lossy()) {
                if flag.contains("urls=") || flag.contains("bind-address=") {
                    assert!(flag.contains("127.20.0.1"), "{flag}");
                }
            }
        }
        let controllers = kube_controller_manager(&layout(), Path::new("/k"));
        assert!(controllers.iter().any(|flag| flag == "--secure-port=0"));
    }

    #[test]
    fn nobody_is_let_in_without_a_certificate() {
        let server = kube_apiserver(&layout());
        assert!(server.iter().any(|flag| flag == "--anonymous-auth=false"));
        assert!(!server.iter().any(|flag| flag.to_string_lossy().contains("token-auth-file")));
        assert!(etcd(&layout()).iter().any(|flag| flag == "--client-cert-auth"));
    }
}
