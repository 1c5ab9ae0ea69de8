use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;

use super::*;
use crate::modules::MODULES;
use crate::pins::Pins;
use crate::progress::Progress;

/// Starts a server that answers one request with `body`. The thread returns the request's first
/// line.
fn serve(status: &'static str, body: Vec<u8>) -> (Origin, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let request = lines.next().unwrap().unwrap();
        while !lines.next().unwrap().unwrap().is_empty() {}
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(&body).unwrap();
        request
    });
    let mirror = Some(format!("http://{address}/"));
    (Origin::Release { mirror }, server)
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn digest_of(bytes: &[u8]) -> &'static str {
    leaked(hexadecimal(&Sha256::digest(bytes)))
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("releases-{name}-{}", std::process::id()));
    cache::remove_folder(&folder).unwrap();
    cache::create_folder(&folder).unwrap();
    folder
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn fetch(release: &Release, origin: &Origin, folder: &Path) -> Result<(), Error> {
    let step = Progress::to(Box::new(std::io::sink())).begin("fetch");
    release.fetch(origin, folder, &step)
}

#[test]
fn a_program_is_fetched_from_the_mirror_and_can_be_run() {
    let program = b"#!/bin/sh\necho fetched\n".to_vec();
    let release = Release {
        version: "v1.2.3",
        address: "dl.example/{version}/tool-{number}",
        sha256: digest_of(&program),
        programs: &[("tool", "")],
    };
    let (origin, server) = serve("200 OK", program);
    let folder = folder("program");
    fetch(&release, &origin, &folder).unwrap();
    assert_eq!(
        server.join().unwrap(),
        "GET /dl.example/v1.2.3/tool-1.2.3 HTTP/1.1"
    );
    assert_eq!(names_in(&folder), ["tool"]);
    let said = command::output(&mut Command::new(folder.join("tool"))).unwrap();
    assert_eq!(said, "fetched\n");
    cache::remove_folder(&folder).unwrap();
}

#[test]
fn other_bytes_than_the_pinned_ones_are_never_left_where_a_program_belongs() {
    let release = Release {
        version: "v1.2.3",
        address: "dl.example/tool",
        sha256: digest_of(b"what was pinned"),
        programs: &[("tool", "")],
    };
    let (origin, server) = serve("200 OK", b"what somebody put there".to_vec());
    let folder = folder("digest");
    let said = fetch(&release, &origin, &folder).unwrap_err().to_string();
    server.join().unwrap();
    for part in [
        release.sha256,
        digest_of(b"what somebody put there"),
        "/dl.example/tool",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(names_in(&folder).is_empty(), "{:?}", names_in(&folder));
    cache::remove_folder(&folder).unwrap();
}

#[test]
fn the_programs_of_an_archive_are_unpacked_and_nothing_else_of_it() {
    let made = folder("made");
    cache::create_folder(&made.join("bin")).unwrap();
    for name in ["containerd", "ctr", "containerd-stress"] {
        cache::write(&made.join("bin").join(name), name).unwrap();
    }
    let archive = made.join("archive.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(&made)
        .arg("bin");
    command::output(&mut tar).unwrap();
    let bytes = std::fs::read(&archive).unwrap();
    let release = Release {
        version: "v2.2.0",
        address: "dl.example/containerd.tar.gz",
        sha256: digest_of(&bytes),
        programs: &[("containerd", "bin/containerd"), ("ctr", "bin/ctr")],
    };
    let (origin, server) = serve("200 OK", bytes);
    let folder = folder("archive");
    fetch(&release, &origin, &folder).unwrap();
    server.join().unwrap();
    assert_eq!(names_in(&folder), ["containerd", "ctr"]);
    assert_eq!(cache::read(&folder.join("ctr")).unwrap(), "ctr");
    cache::remove_folder(&folder).unwrap();
    cache::remove_folder(&made).unwrap();
}

#[test]
fn a_release_that_is_not_there_says_its_address_and_what_to_do() {
    let release = Release {
        version: "v1.2.3",
        address: "dl.example/gone",
        sha256: digest_of(b""),
        programs: &[("tool", "")],
    };
    let (origin, server) = serve("404 Not Found", Vec::new());
    let folder = folder("gone");
    let said = fetch(&release, &origin, &folder).unwrap_err().to_string();
    server.join().unwrap();
    for part in ["/dl.example/gone", "404", "Without BINARIES=release"] {
        assert!(said.contains(part), "{said}");
    }
    cache::remove_folder(&folder).unwrap();
}

#[test]
fn programs_are_built_unless_the_environment_asks_for_releases() {
    let read = |origin: Option<&str>, mirror: Option<&str>| {
        Origin::read(|name| match name {
            "BINARIES" => origin.map(str::to_owned),
            "BINARIES_MIRROR" => mirror.map(str::to_owned),
            _ => None,
        })
    };
    assert_eq!(read(None, Some("http://m")).unwrap(), Origin::Source);
    assert_eq!(read(Some("source"), None).unwrap(), Origin::Source);
    let official = Origin::Release { mirror: None };
    assert_eq!(read(Some("release"), None).unwrap(), official);
    let mirror = Some("http://m/".to_owned());
    let mirrored = Origin::Release { mirror };
    assert_eq!(read(Some("release"), Some("http://m/")).unwrap(), mirrored);
    let said = read(Some("releases"), None).unwrap_err().to_string();
    assert!(said.contains("`releases`"), "{said}");
    assert!(Origin::Source.release_of("kubelet").is_none());
}

#[test]
fn a_new_version_needs_a_new_digest_and_every_address_is_a_file_of_its_version() {
    for release in RELEASES {
        for (name, _) in release.programs {
            let programs = |module: &'static crate::modules::Module| {
                module.binaries.iter().map(move |binary| (module, binary))
            };
            let mut all = MODULES.iter().flat_map(programs);
            let (module, binary) = all.find(|(_, binary)| binary.name == *name).unwrap();
            let pins = Pins::read(module).unwrap();
            assert_eq!(pins.version_of(binary), release.version, "{name}");
        }
        assert_eq!(release.sha256.len(), 64);
        let url = release.url(&Origin::Release { mirror: None });
        assert!(url.starts_with("https://"), "{url}");
        assert!(url.contains(&release.version[1..]), "{url}");
    }
}
