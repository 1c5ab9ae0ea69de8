//! The image of the bastion: OpenSSH's server of Debian, and the program. It has no shell.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::cache::Cache;
use local_cluster::debian::{self, Layer};
use local_cluster::progress::Progress;
use serde_json::json;

use crate::oci;
use crate::package::platform::Platform;
use crate::standalone::{self, Shape};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The program of the bastion, and its path in the image.
const PROGRAM: &str = "gpu-bastion";
const PATH: &str = "usr/bin/gpu-bastion";
/// Where the program is that a hostile one took the place of.
const REAL: &str = "usr/bin/gpu-bastion.real";
/// The user of the containers, as in `images/bastion/files/etc/passwd`.
const USER: &str = "10022:10022";
/// The programs of Debian that the image has. All else of Debian is left out but what they load.
const PROGRAMS: [&str; 3] = ["/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"];
/// The mode of programs. The user of sshd and of all sessions can run a program, and cannot read it. So the
/// kernel lets no other process of that user look into the program's processes (`would_dump` in fs/exec.c;
/// ptrace(2), "Ptrace access mode checking").
const CLOSED: u32 = 0o711;
/// What the system's name service loads for the accounts.
const NAME_SERVICE: &str = "libnss_systemd.so.2";
/// The file with what the programs load, which the build makes.
const LOADED: &str = "loaded.txt";

/// Writes an OCI image layout with the bastion. Returns the digest of its manifest, in hexadecimal
/// digits.
pub(crate) fn image(shape: &Shape, to: &Path, progress: &Progress) -> Outcome<String> {
    with_programs(&[(PROGRAM, PATH)], shape, to, progress)
}

/// Writes the same image with another program in the place of the bastion's, which tries what a session
/// must not do (`tests/hostile`).
pub(crate) fn hostile(shape: &Shape, to: &Path, progress: &Progress) -> Outcome<String> {
    let programs = [("hostile-session", PATH), (PROGRAM, REAL)];
    with_programs(&programs, shape, to, progress)
}

fn with_programs(
    programs: &[(&str, &str)],
    shape: &Shape,
    to: &Path,
    progress: &Progress,
) -> Outcome<String> {
    let parts = to.with_extension("parts");
    fs::create_dir_all(&parts)?;
    let debian = debian::ensure(&Cache::from_environment()?, &layer(), progress)?;
    let mut root = tar::Builder::new(Vec::new());
    needed(&debian, &mut root)?;
    let mut files = Vec::new();
    let added = crate::root().join("images/bastion/files");
    list(&added, &mut files)?;
    for file in files {
        let name = file.strip_prefix(&added)?.to_owned();
        append(&mut root, &name, 0o644, &fs::read(&file)?)?;
    }
    for (name, path) in programs {
        let program = parts.join(name);
        standalone::write(name, shape, Platform::host(), &program, progress)?;
        append(&mut root, Path::new(path), CLOSED, &fs::read(&program)?)?;
    }
    let layer = oci::Layer::compress(&root.into_inner()?, &parts.join("layer.tar"))?;
    let config = json!({"Entrypoint": [format!("/{PATH}")], "User": USER});
    let digest = oci::write(vec![layer], &config, to)?;
    fs::remove_dir_all(parts)?;
    Ok(digest)
}

/// Debian with OpenSSH, and the list of what its programs load.
fn layer() -> Layer<'static> {
    Layer {
        name: "bastion",
        packages: &["openssh-server", "libnss-systemd"],
        finally: "sh -c 'ldd /usr/sbin/sshd /usr/bin/ssh /usr/bin/ssh-keygen \
                  /usr/lib/*/libnss_systemd.so.2 /usr/lib/*/libnss_dns.so.2 > /loaded.txt'",
    }
}

/// Copies what the programs need out of Debian's layer: themselves, what they load, and the licences.
fn needed(layer: &Path, to: &mut tar::Builder<Vec<u8>>) -> Outcome<()> {
    let gzip = Command::new("gzip").arg("-dc").arg(layer).output()?;
    if !gzip.status.success() {
        return Err(format!("{}: gzip ended with {}", layer.display(), gzip.status).into());
    }
    let uncompressed = gzip.stdout;
    let entries = |archive: &[u8]| -> Outcome<Vec<(PathBuf, Option<PathBuf>)>> {
        let mut archive = tar::Archive::new(archive);
        let mut found = Vec::new();
        for entry in archive.entries()? {
            let entry = entry?;
            let link = entry.link_name()?.map(Cow::into_owned);
            found.push((plain(&entry.path()?), link));
        }
        Ok(found)
    };
    let all = entries(&uncompressed)?;
    let programs = PROGRAMS.map(|path| plain(Path::new(path)));
    let paths = all.iter().map(|(path, _)| path);
    let name_service = paths.filter(|path| path.ends_with(NAME_SERVICE));
    let mut wanted = loaded(&uncompressed)?;
    wanted.extend(programs.iter().chain(name_service).cloned());
    // A library is a link to the file of its version, which stands beside it.
    let links: Vec<PathBuf> = all
        .iter()
        .filter(|(path, _)| wanted.contains(path))
        .filter_map(|(path, link)| Some(merged(&path.parent()?.join(link.as_ref()?))))
        .collect();
    wanted.extend(links);
    let mut archive = tar::Archive::new(uncompressed.as_slice());
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = plain(&entry.path()?);
        let is_licence = path.starts_with("usr/share/doc") && path.ends_with("copyright");
        // On Debian 12, /lib and its siblings are links into /usr.
        let is_merged = path.components().count() == 1 && entry.header().entry_type().is_symlink();
        if !(wanted.contains(&path) || is_licence || is_merged) {
            continue;
        }
        let mut header = entry.header().clone();
        if let Some(link) = entry.link_name()? {
            to.append_link(&mut header, &path, link)?;
            continue;
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        let most = if programs.contains(&path) {
            CLOSED
        } else {
            0o755
        };
        // sshd of the image has no privileges that it could give away.
        header.set_mode(header.mode()? & most);
        to.append_data(&mut header, &path, content.as_slice())?;
    }
    Ok(())
}

/// The libraries in the output of ldd: `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x…)`.
fn loaded(archive: &[u8]) -> Outcome<BTreeSet<PathBuf>> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if plain(&entry.path()?) != Path::new(LOADED) {
            continue;
        }
        let mut text = String::new();
        entry.read_to_string(&mut text)?;
        let words = text.split_whitespace();
        let paths = words.filter(|word| word.starts_with('/') && !word.ends_with(':'));
        return Ok(paths.map(|path| merged(Path::new(path))).collect());
    }
    Err(format!("Debian's layer has no {LOADED}").into())
}

/// A path below the root, as the layer has it: below /usr.
fn merged(path: &Path) -> PathBuf {
    let path = plain(path);
    if path.starts_with("usr") {
        path
    } else {
        Path::new("usr").join(path)
    }
}

/// A path without what stands before the root's own entries.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(part) => plain.push(part),
            std::path::Component::ParentDir => {
                plain.pop();
            }
            _ => {}
        }
    }
    plain
}

fn list(folder: &Path, found: &mut Vec<PathBuf>) -> Outcome<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        if entry.file_type()?.is_dir() {
            list(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn append(to: &mut tar::Builder<Vec<u8>>, name: &Path, mode: u32, content: &[u8]) -> Outcome<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(content.len())?);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_cksum();
    to.append_data(&mut header, name, content)?;
    Ok(())
}
