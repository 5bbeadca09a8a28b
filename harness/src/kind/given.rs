//! An image that somebody gives: the name of one that the Docker daemon has, or an archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;

use super::docker::Docker;
use super::error::KindError;
use super::image::Archive;
use crate::failure::BoxError;

/// Files of an archive that say what is in it.
const TOLD: [&str; 2] = ["manifest.json", "index.json"];

/// The image in the archive that `given` is, or of the name that it is, as an archive in `folder`.
pub async fn archive(docker: &Docker, given: &str, folder: &Path) -> Result<Archive, KindError> {
    let file = Path::new(given);
    let failed = |source: BoxError| KindError::Image { program: file.to_owned(), source };
    if file.is_file() {
        return read(file).map_err(failed);
    }
    if !docker.has_image(given).await? {
        return Err(failed("it is neither a file nor an image that the Docker daemon has".into()));
    }
    let saved = folder.join("operator.tar");
    std::fs::create_dir_all(folder).map_err(|source| KindError::File { path: folder.to_owned(), source })?;
    docker.run(&["save", "--output", &saved.display().to_string(), given]).await?;
    read(&saved).map_err(failed)
}

/// Reads which image is in an archive, as `docker save` and OCI tools write them.
fn read(path: &Path) -> Result<Archive, BoxError> {
    let told = told(path)?;
    let docker =
        told.get("manifest.json").and_then(|list| list.as_array()?.first().cloned()).unwrap_or_default();
    let oci = told.get("index.json").and_then(|index| index["manifests"].as_array()?.first().cloned());
    let oci = oci.unwrap_or_default();
    let name =
        docker["RepoTags"][0].as_str().or_else(|| oci["annotations"]["io.containerd.image.name"].as_str());
    let name = name.ok_or("the archive names no image; save it with its name and tag")?;
    Ok(Archive {
        path: path.to_owned(),
        reference: name.to_owned(),
        digest: oci["digest"].as_str().unwrap_or_default().to_owned(),
        id: docker["Config"].as_str().unwrap_or_default().replace("blobs/sha256/", "sha256:"),
    })
}

fn told(path: &Path) -> io::Result<BTreeMap<String, Value>> {
    let mut told = BTreeMap::new();
    for entry in tar::Archive::new(File::open(path)?).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.display().to_string();
        let name = name.trim_start_matches("./").to_owned();
        if TOLD.contains(&name.as_str()) {
            let mut text = String::new();
            entry.read_to_string(&mut text)?;
            told.insert(name, serde_json::from_str(&text)?);
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::image::{ImageSpec, Layer, write};

    #[test]
    fn an_archive_of_ours_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let spec = ImageSpec { reference: "registry.example/op:v1".into(), ..ImageSpec::default() };
        let written = write(&spec, &Layer::of(&spec).unwrap(), &folder.path().join("op.tar")).unwrap();
        assert_eq!(read(&written.path).unwrap(), written);
    }

    #[test]
    fn a_file_that_is_no_archive_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "nothing of the kind").unwrap();
        read(file.path()).unwrap_err();
    }
}
