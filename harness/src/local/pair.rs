//! Both sites together.

use std::{net::Ipv4Addr, path::PathBuf};

use futures::future::join_all;
use serde_json::Value;

use super::{
    control_plane::{ControlPlane, Plan},
    error::LocalError,
    folder,
    identity::ServiceAccountName,
};
use crate::{
    process::Launcher,
    progress::{self, Progress},
    site::{PerSite, Site},
    toolchain::Binaries,
};

/// What a pair is started from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where everything of the pair goes; made with mode 0700, and must not be there yet.
    pub folder: PathBuf,
    /// The loopback address of each site; nothing of the pair listens elsewhere.
    pub addresses: PerSite<Ipv4Addr>,
    /// Who the operator under test is.
    pub operator: ServiceAccountName,
    /// Objects that are created on both sites before any controller runs, in this order: definitions of custom
    /// resources above all, then whatever the operator's manifests hold.
    pub objects: Vec<Value>,
}

/// Two running control planes. Dropping them stops nothing; their launcher does, and so does this process' end.
#[derive(Debug)]
pub struct LocalPair {
    sites: PerSite<ControlPlane>,
}

impl LocalPair {
    /// Starts both sites at once; returns when both are ready.
    ///
    /// # Guarantees
    ///
    /// Nothing listens beyond the pair's addresses. When this fails, everything that it started has been stopped,
    /// and the logs are still there. When the returned future is dropped, [`Launcher::stop_all`] stops what it
    /// started.
    ///
    /// # Errors
    ///
    /// [`LocalError`]: the first site's that failed.
    pub async fn start(
        launcher: &Launcher,
        binaries: &Binaries,
        settings: &Settings,
        progress: &dyn Progress,
    ) -> Result<Self, LocalError> {
        let root = folder::make(settings.folder.clone())?;
        let folders = PerSite::from_fn(|site| root.join(site.name()));
        let plan = |site| Plan {
            site,
            address: *settings.addresses.at(site),
            folder: folders.at(site),
            launcher,
            binaries,
            operator: &settings.operator,
            objects: &settings.objects,
        };
        let start = |site: Site| async move {
            let what = format!("start the control plane of {site}");
            Box::pin(progress::step(progress, &what, None, ControlPlane::start(plan(site)))).await
        };
        match futures::try_join!(start(Site::East), start(Site::West)) {
            Ok((east, west)) => Ok(Self { sites: PerSite { east, west } }),
            Err(error) => {
                let plans = Site::ALL.map(plan);
                join_all(plans.iter().map(Plan::stop_what_runs)).await;
                Err(error)
            }
        }
    }

    /// One site's control plane.
    pub fn at(&self, site: Site) -> &ControlPlane {
        self.sites.at(site)
    }

    /// Waits until a program of either site ends by itself, and says which and how. Cancel safe.
    pub async fn ended(&self) -> LocalError {
        tokio::select! {
            error = self.sites.east.ended() => error,
            error = self.sites.west.ended() => error,
        }
    }

    /// Stops both sites at once. Files stay.
    pub async fn stop(&self) {
        futures::join!(self.sites.east.stop(), self.sites.west.stop());
    }
}
