//! Where Garage's secrets come from (Garage documentation, "Configuration file format", and what 2.5.0 was seen to do).
//!
//! For each of the three: the variable, else the file that `…_FILE` names, else the configuration's value or file. A
//! variable and its `…_FILE` exclude each other, as do the two keys. Files lose white space at their ends, and must
//! not be readable by group or others unless that is allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use super::configuration::Configuration;
use crate::hub::request::{BAD_SECRET, is_rpc_secret};

/// A file with a secret: its content, and its mode where it has one.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretFile {
    /// Its content.
    pub text: String,
    /// Its permission bits; `None` where files have none, as in a pod that is only played.
    pub mode: Option<u32>,
}

/// Where secrets are looked for.
pub struct SecretOptions<'a> {
    /// The environment.
    pub env: &'a BTreeMap<String, String>,
    /// Reads a file.
    pub read: &'a dyn Fn(&str) -> io::Result<SecretFile>,
}

/// The secrets of a node. They are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    /// What all nodes of a mesh share.
    pub rpc: String,
    /// For the admin API.
    pub admin: Option<String>,
    /// For `/metrics`.
    pub metrics: Option<String>,
}

/// A secret that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The one that every node needs is not there.
    #[error("rpc_secret value is missing, not present in config file or in environment")]
    NoRpcSecret,
    /// It is not 32 bytes in hex. The text is Garage's.
    #[error("{BAD_SECRET}, please check the documentation for requirements")]
    BadRpcSecret,
    /// A file cannot be read.
    #[error("Failed to read secret file {path}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Others may read a file.
    #[error(
        "File {path} is world-readable! (mode: 0{mode:o}, expected 0600)\nRefusing to start until this is fixed, or \
         environment variable GARAGE_ALLOW_WORLD_READABLE_SECRETS is set to true."
    )]
    Readable {
        /// The file.
        path: String,
        /// Its mode as the system tells it, type bits included, as Garage prints it.
        mode: u32,
    },
    /// Two places that exclude each other.
    #[error("only one of `{key}` and `{key}_file` can be set")]
    Both {
        /// The key; the variables are meant, too.
        key: String,
    },
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFile").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl fmt::Debug for SecretOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretOptions").field("env", &self.env.keys()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Says what Garage does not start with.
    pub fn check(&self) -> Result<(), SecretError> {
        if is_rpc_secret(&self.rpc) { Ok(()) } else { Err(SecretError::BadRpcSecret) }
    }

    /// Finds the secrets of a node.
    pub fn find(configuration: &Configuration, options: &SecretOptions<'_>) -> Result<Self, SecretError> {
        let allowed = match options.env.get("GARAGE_ALLOW_WORLD_READABLE_SECRETS") {
            Some(value) => value == "true",
            None => configuration.allow_world_readable_secrets.unwrap_or_default(),
        };
        let look = Look { options, allowed };
        let admin = &configuration.admin;
        let rpc = look.secret(
            "rpc_secret",
            configuration.rpc_secret.as_ref(),
            configuration.rpc_secret_file.as_ref(),
        )?;
        Ok(Self {
            rpc: rpc.ok_or(SecretError::NoRpcSecret)?,
            admin: look.secret("admin_token", admin.admin_token.as_ref(), admin.admin_token_file.as_ref())?,
            metrics: look.secret(
                "metrics_token",
                admin.metrics_token.as_ref(),
                admin.metrics_token_file.as_ref(),
            )?,
        })
    }
}

struct Look<'a> {
    options: &'a SecretOptions<'a>,
    allowed: bool,
}

impl Look<'_> {
    fn secret(
        &self,
        key: &str,
        inline: Option<&String>,
        file: Option<&String>,
    ) -> Result<Option<String>, SecretError> {
        let variable = format!("GARAGE_{}", key.to_ascii_uppercase());
        let env = self.options.env;
        let (value, path) = (env.get(&variable), env.get(&format!("{variable}_FILE")));
        match self.one_of(key, value, path)? {
            Some(found) => Ok(Some(found)),
            None => self.one_of(key, inline, file),
        }
    }

    fn one_of(
        &self,
        key: &str,
        value: Option<&String>,
        path: Option<&String>,
    ) -> Result<Option<String>, SecretError> {
        match (value, path) {
            (Some(_), Some(_)) => Err(SecretError::Both { key: key.to_owned() }),
            (Some(value), None) => Ok(Some(value.clone())),
            (None, Some(path)) => self.file(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn file(&self, path: &str) -> Result<String, SecretError> {
        let read = (self.options.read)(path);
        let file = read.map_err(|source| SecretError::Read { path: path.to_owned(), source })?;
        match file.mode.filter(|mode| mode & 0o077 != 0 && !self.allowed) {
            Some(mode) => Err(SecretError::Readable { path: path.to_owned(), mode }),
            None => Ok(file.text.trim_end().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const FILES: [(&str, u32); 2] = [("/private", 0o100_600), ("/open", 0o100_644)];

    fn read(path: &str) -> io::Result<SecretFile> {
        let (path, mode) =
            FILES.into_iter().find(|(name, _)| *name == path).ok_or(io::ErrorKind::NotFound)?;
        Ok(SecretFile { text: format!("in{path}\n"), mode: Some(mode) })
    }

    fn find(toml: &str, env: &[(&str, &str)]) -> Result<Secrets, SecretError> {
        const NEEDED: &str = "metadata_dir = '/m'\ndata_dir = '/d'\nreplication_factor = 1\n\
                              rpc_bind_addr = '[::]:3901'\ns3_api.s3_region = 'r'\n";
        let configuration = Configuration::parse(&format!("{NEEDED}{toml}")).unwrap();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Secrets::find(&configuration, &SecretOptions { env: &env, read: &read })
    }

    #[rstest]
    #[case::variable("rpc_secret = 'c'", &[("GARAGE_RPC_SECRET", "e")], "e")]
    #[case::file_of_a_variable("rpc_secret = 'c'", &[("GARAGE_RPC_SECRET_FILE", "/private")], "in/private")]
    #[case::key("rpc_secret = 'c'", &[], "c")]
    #[case::file_of_a_key("rpc_secret_file = '/private'", &[], "in/private")]
    #[case::allowed("rpc_secret_file = '/open'", &[("GARAGE_ALLOW_WORLD_READABLE_SECRETS", "true")], "in/open")]
    #[case::allowed_by_key("allow_world_readable_secrets = true\nrpc_secret_file = '/open'", &[], "in/open")]
    fn a_secret_comes_from_the_first_place_that_has_one(
        #[case] toml: &str,
        #[case] env: &[(&str, &str)],
        #[case] expected: &str,
    ) {
        assert_eq!(find(toml, env).unwrap().rpc, expected);
    }

    #[rstest]
    #[case::none("", &[], "rpc_secret value is missing")]
    #[case::open("rpc_secret_file = '/open'", &[], "File /open is world-readable! (mode: 0100644, expected 0600)")]
    #[case::forbidden_by_variable(
        "allow_world_readable_secrets = true\nrpc_secret_file = '/open'",
        &[("GARAGE_ALLOW_WORLD_READABLE_SECRETS", "false")],
        "File /open is world-readable!"
    )]
    #[case::absent("rpc_secret_file = '/none'", &[], "Failed to read secret file /none")]
    #[case::both_keys("rpc_secret = 'c'\nrpc_secret_file = '/private'", &[], "only one of `rpc_secret` and `rpc_secret_file`")]
    #[case::both_variables(
        "", &[("GARAGE_RPC_SECRET", "e"), ("GARAGE_RPC_SECRET_FILE", "/private")],
        "only one of `rpc_secret` and `rpc_secret_file` can be set"
    )]
    fn a_secret_that_cannot_be_had_says_why(
        #[case] toml: &str,
        #[case] env: &[(&str, &str)],
        #[case] expected: &str,
    ) {
        let error = find(toml, env).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn tokens_are_optional_and_found_the_same_way() {
        let secrets = find("rpc_secret = 'c'\n[admin]\nadmin_token_file = '/private'", &[]).unwrap();
        assert_eq!((secrets.admin.as_deref(), secrets.metrics), (Some("in/private"), None));
    }
}
