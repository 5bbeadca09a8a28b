//! Images of local programs without a base image: one layer with the programs and the shared objects they need.
//!
//! An archive is an OCI image layout (OCI image specification 1.1) with the manifest that Docker reads beside it, for one
//! platform. The same input makes the same bytes, so that a node can be asked whether it has exactly this image.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::libraries;
use super::node_image::architecture;
use crate::failure::BoxError;

/// What an image is made of.
#[derive(Debug, Clone, Default)]
pub struct ImageSpec {
    /// Its name with its tag.
    pub reference: String,
    /// Files: where they are in the image, and where they lie here.
    pub files: BTreeMap<PathBuf, PathBuf>,
    /// Further names of files in the image: name to file.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Environment of its processes.
    pub environment: BTreeMap<String, String>,
    /// What it runs.
    pub entrypoint: Vec<String>,
}

/// An image in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The file.
    pub path: PathBuf,
    /// The image's name.
    pub reference: String,
    /// Digest of its manifest: what a node calls it.
    pub digest: String,
    /// Digest of its configuration: what Docker calls it.
    pub id: String,
}

/// A layer that is made once, for several images.
#[derive(Debug, Clone)]
pub struct Layer {
    bytes: Vec<u8>,
    digest: String,
}

/// Files of an image for a program called `name` in it, with the shared objects it needs.
pub async fn program(name: &str, program: &Path) -> Result<BTreeMap<PathBuf, PathBuf>, BoxError> {
    let libraries = libraries::of(program).await?;
    let mut files: BTreeMap<PathBuf, PathBuf> =
        libraries.into_iter().map(|file| (file.clone(), file)).collect();
    files.insert(Path::new("/").join(name), program.to_owned());
    Ok(files)
}

impl Layer {
    /// A layer with the files and links of `spec`.
    pub fn of(spec: &ImageSpec) -> io::Result<Self> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut folder = header(tar::EntryType::Directory, 0, 0o1777);
        tar.append_data(&mut folder, "tmp/", io::empty())?;
        for (place, file) in &spec.files {
            let mut content = Vec::new();
            File::open(file)?.read_to_end(&mut content)?;
            let mut entry = header(tar::EntryType::Regular, content.len() as u64, 0o755);
            tar.append_data(&mut entry, relative(place), content.as_slice())?;
        }
        for (name, file) in &spec.links {
            tar.append_link(&mut header(tar::EntryType::Symlink, 0, 0o777), relative(name), file)?;
        }
        let bytes = tar.into_inner()?;
        let digest = digest(&bytes);
        Ok(Self { bytes, digest })
    }
}

/// Writes the image of `spec` with `layer` to `path`.
pub fn write(spec: &ImageSpec, layer: &Layer, path: &Path) -> io::Result<Archive> {
    let config = configuration(spec, layer).to_string().into_bytes();
    let config_digest = digest(&config);
    let manifest = manifest(&config, &config_digest, layer).to_string().into_bytes();
    let manifest_digest = digest(&manifest);
    let index = index(spec, &manifest, &manifest_digest).to_string().into_bytes();
    let docker = json!([{
        "Config": blob(&config_digest), "RepoTags": [spec.reference], "Layers": [blob(&layer.digest)],
    }]);
    let mut tar = tar::Builder::new(io::BufWriter::new(File::create(path)?));
    put(&mut tar, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    put(&mut tar, "index.json", &index)?;
    put(&mut tar, "manifest.json", docker.to_string().as_bytes())?;
    put(&mut tar, &blob(&manifest_digest), &manifest)?;
    put(&mut tar, &blob(&config_digest), &config)?;
    put(&mut tar, &blob(&layer.digest), &layer.bytes)?;
    tar.into_inner()?.flush()?;
    Ok(Archive {
        path: path.to_owned(),
        reference: spec.reference.clone(),
        digest: manifest_digest,
        id: config_digest,
    })
}

fn configuration(spec: &ImageSpec, layer: &Layer) -> Value {
    let path = ("PATH".to_owned(), "/".to_owned());
    let variables: BTreeMap<String, String> = spec.environment.clone().into_iter().chain([path]).collect();
    let environment: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    json!({
        "architecture": architecture(), "os": "linux",
        "config": {"Env": environment, "Entrypoint": spec.entrypoint, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
    })
}

fn manifest(config: &[u8], config_digest: &str, layer: &Layer) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config_digest, "size": config.len()},
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer.digest, "size": layer.bytes.len(),
        }],
    })
}

fn index(spec: &ImageSpec, manifest: &[u8], manifest_digest: &str) -> Value {
    let tag = spec.reference.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": manifest_digest, "size": manifest.len(),
            "platform": {"architecture": architecture(), "os": "linux"},
            "annotations": {
                "io.containerd.image.name": spec.reference, "org.opencontainers.image.ref.name": tag,
            },
        }],
    })
}

fn put(tar: &mut tar::Builder<impl Write>, name: &str, content: &[u8]) -> io::Result<()> {
    tar.append_data(&mut header(tar::EntryType::Regular, content.len() as u64, 0o644), name, content)
}

/// Without times and owners, which would differ from one build to the next.
fn header(kind: tar::EntryType, size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn blob(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(program: &Path) -> ImageSpec {
        ImageSpec {
            reference: "onewriter.local/garage:1".into(),
            files: [("/garage".into(), program.to_owned())].into(),
            links: [("/fake-garage".into(), "garage".into())].into(),
            environment: [("ONEWRITER_SITE".to_owned(), "east".to_owned())].into(),
            entrypoint: vec!["/garage".into()],
        }
    }

    fn entries(archive: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut tar = tar::Archive::new(File::open(archive).unwrap());
        let read = |entry: io::Result<tar::Entry<'_, File>>| {
            let mut entry = entry.unwrap();
            let (name, mut content) = (entry.path().unwrap().display().to_string(), Vec::new());
            entry.read_to_end(&mut content).unwrap();
            (name, content)
        };
        tar.entries().unwrap().map(read).collect()
    }

    #[test]
    fn the_same_programs_make_the_same_image() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "program").unwrap();
        let spec = spec(&program);
        let make = |name: &str| write(&spec, &Layer::of(&spec).unwrap(), &folder.path().join(name)).unwrap();
        let (one, two) = (make("one.tar"), make("two.tar"));
        assert_eq!(one.digest, two.digest);
        assert_eq!(std::fs::read(one.path).unwrap(), std::fs::read(two.path).unwrap());
    }

    #[test]
    fn every_digest_in_an_archive_is_that_of_its_blob() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "program").unwrap();
        let spec = spec(&program);
        let archive = write(&spec, &Layer::of(&spec).unwrap(), &folder.path().join("image.tar")).unwrap();
        let entries = entries(&archive.path);
        let blobs = entries.iter().filter(|(name, _)| name.starts_with("blobs/"));
        let mut count = 0;
        for (name, content) in blobs {
            assert_eq!(*name, blob(&digest(content)));
            count += 1;
        }
        assert_eq!(count, 3);
        let index: Value = serde_json::from_slice(&entries["index.json"]).unwrap();
        assert_eq!(index["manifests"][0]["digest"], archive.digest);
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], spec.reference);
        let config: Value = serde_json::from_slice(&entries[&blob(&archive.id)]).unwrap();
        assert_eq!(config["config"]["Env"], json!(["ONEWRITER_SITE=east", "PATH=/"]));
    }
}
