//! The two sites of a federation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A site: one Kubernetes cluster with its operator. Roles move between sites, sites keep their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Site {
    /// The first site.
    East,
    /// The second site.
    West,
}

impl Site {
    /// Both sites, in their fixed order.
    pub const ALL: [Self; 2] = [Self::East, Self::West];

    /// The name, as it stands in histories, file names and tokens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::East => "east",
            Self::West => "west",
        }
    }

    /// The other site.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::East => Self::West,
            Self::West => Self::East,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is neither `east` nor `west`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no site; the sites are `east` and `west`")]
pub struct UnknownSite(String);

impl FromStr for Site {
    type Err = UnknownSite;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|site| site.name() == name).ok_or_else(|| UnknownSite(name.to_owned()))
    }
}

/// One value for each site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerSite<T> {
    /// The value at `east`.
    pub east: T,
    /// The value at `west`.
    pub west: T,
}

impl<T> PerSite<T> {
    /// Makes the value of each site.
    pub fn from_fn(mut make: impl FnMut(Site) -> T) -> Self {
        Self { east: make(Site::East), west: make(Site::West) }
    }

    /// The value at `site`.
    #[must_use]
    pub fn at(&self, site: Site) -> &T {
        match site {
            Site::East => &self.east,
            Site::West => &self.west,
        }
    }

    /// The value at `site`, to change it.
    pub fn at_mut(&mut self, site: Site) -> &mut T {
        match site {
            Site::East => &mut self.east,
            Site::West => &mut self.west,
        }
    }

    /// Sites with their values, in the fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (Site, &T)> {
        Site::ALL.into_iter().map(|site| (site, self.at(site)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_read_back_from_its_name() {
        for site in Site::ALL {
            assert_eq!(site.name().parse(), Ok(site));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_and_the_known_ones_are_named() {
        let error = "north".parse::<Site>().unwrap_err();
        assert_eq!(error.to_string(), "`north` is no site; the sites are `east` and `west`");
    }
}
