//! Clients that connect to the operations endpoints and ask nothing. Any pod of the cluster can be
//! one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use provider_runtime::operations::Operations;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

const MANY: u64 = 2000;
/// The open files of the test and of the endpoints. The latter could not hold every connection.
const OPEN_FILES: u64 = MANY + 600;
/// The longest time of an answer meanwhile.
const AT_ONCE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

async fn stranger(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let opened = timeout(PATIENCE, socket.connect(address)).await;
    opened.unwrap().unwrap()
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The file has one test, because others in this process would have open files, too.
#[tokio::test]
async fn two_thousand_strangers_delay_neither_prometheus_nor_the_kubelet() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES, most).unwrap();
    let endpoints = Operations::default().bind("127.0.0.1:0").await.unwrap();
    let address = endpoints.address;
    tokio::spawn(endpoints.serve());
    let mut silent = Vec::new();
    for _ in 0..MANY {
        silent.push(stranger(address).await);
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        let before = Instant::now();
        let answer = timeout(PATIENCE, get(address, path)).await.unwrap();
        let took = before.elapsed();
        assert!(took < AT_ONCE, "{path} took {took:?}");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open < 2200, "{open} open files");
}
