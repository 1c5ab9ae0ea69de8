//! Clients that connect and do not show who they are. Any pod of the cluster can be one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::calls::{call, connect, plain};
use crate::process::{PATIENCE, Running, program, program_with_open_files};
use crate::secret::{Authority, Files, Mounted};

const MANY: usize = 2000;
/// The number of open files that many container runtimes allow a process.
const USUAL: u64 = 1024;
/// The longest time of an answer meanwhile, on a busy machine. A client that had to wait for a stranger
/// would wait for five seconds: only then does the function give up an unfinished handshake.
const AT_ONCE: Duration = Duration::from_secs(3);
/// The longest time of an unfinished handshake, and room for a busy machine.
const GIVEN_UP: Duration = Duration::from_secs(8);

/// Opens connections to an address. The clients have another address than Crossplane.
async fn strangers(address: SocketAddr, number: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..number {
        open.push(stranger(address).await);
    }
    open
}

async fn stranger(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let opened = timeout(PATIENCE, socket.connect(address)).await;
    opened.expect("the port takes no connection").unwrap()
}

/// This process holds the ends of all clients, of several tests at a time.
fn allow_open_files(number: u64) {
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    if now < number {
        setrlimit(Resource::RLIMIT_NOFILE, number.min(most), most).unwrap();
    }
}

async fn serve(mounted: &Mounted) -> Running {
    let arguments = ["--address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"];
    let mut command = program_with_open_files(USUAL, &arguments);
    command.env("TLS_SERVER_CERTS_DIR", &mounted.folder);
    Running::start(&mut command).await
}

async fn at_once<T>(what: &str, answer: impl Future<Output = T>) -> T {
    let before = Instant::now();
    let answer = timeout(PATIENCE, answer).await;
    let took = before.elapsed();
    assert!(took < AT_ONCE, "{what} took {took:?}");
    answer.unwrap()
}

#[tokio::test]
async fn two_thousand_strangers_delay_neither_crossplane_nor_prometheus() {
    allow_open_files(5 * MANY as u64);
    let authority = Authority::new();
    let mounted = Mounted::new(&Files::of(&authority));
    let mut function = serve(&mounted).await;
    let before = connect(function.address, &authority, &authority);
    let before = before.await.unwrap();
    call(&before).await.unwrap();

    let silent = strangers(function.address, MANY).await;
    let idle = strangers(function.metrics.unwrap(), MANY).await;
    for _ in 0..3 {
        at_once("a call", call(&before)).await.unwrap();
        let new = connect(function.address, &authority, &authority);
        let new = at_once("Crossplane's handshake", new).await.unwrap();
        at_once("a call", call(&new)).await.unwrap();
        let metrics = at_once("/metrics", function.metrics()).await;
        assert!(metrics.contains("grpc_server_handled_total"), "{metrics}");
        let open = function.open_files();
        assert!(open < 400, "the function has {open} open files");
    }
    drop((silent, idle));
    function.said(&["too many unfinished handshakes"]).await;
}

/// Without TLS, the handshake is only the beginning of HTTP/2.
#[tokio::test]
async fn two_thousand_strangers_delay_no_client_without_tls() {
    allow_open_files(5 * MANY as u64);
    let arguments = ["--insecure", "--address=127.0.0.1:0", "--metrics-address="];
    let mut command = program_with_open_files(USUAL, &arguments);
    let function = Running::start(&mut command).await;
    let _silent = strangers(function.address, MANY).await;
    let channel = at_once("a connection", plain(function.address)).await;
    at_once("a call", call(&channel.unwrap())).await.unwrap();
    let open = function.open_files();
    assert!(open < 400, "the function has {open} open files");
}

#[tokio::test]
async fn two_thousand_strangers_take_no_place_of_a_slow_handshake() {
    let authority = Authority::new();
    let mounted = Mounted::new(&Files::of(&authority));
    let function = serve(&mounted).await;
    allow_open_files(5 * MANY as u64);
    let slow = TcpStream::connect(function.address).await.unwrap();
    let _open = strangers(function.address, MANY).await;
    let open = slow.try_read(&mut [0; 16]);
    let error = open.expect_err("Crossplane's connection is closed");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

/// Sends bytes one by one, and waits until the server closes the connection.
async fn trickle(address: SocketAddr, bytes: &'static [u8]) -> Duration {
    let (mut read, mut write) = stranger(address).await.into_split();
    let before = Instant::now();
    let writes = tokio::spawn(async move {
        for byte in bytes {
            if write.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_millis(300)).await;
        }
        std::future::pending::<()>().await;
    });
    let end = timeout(PATIENCE, read.read_to_end(&mut Vec::new())).await;
    writes.abort();
    // A connection that is reset has an end, too.
    let _ = end.expect("the connection stays open");
    before.elapsed()
}

#[tokio::test]
async fn a_handshake_that_comes_byte_by_byte_is_given_up() {
    let authority = Authority::new();
    let mounted = Mounted::new(&Files::of(&authority));
    let secure = serve(&mounted).await;
    // The beginning of a ClientHello with 512 bytes.
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefghijklmnopqrstuvwxyz";
    let insecure = Running::insecure().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r";
    let (tls, http) = tokio::join!(
        trickle(secure.address, hello),
        trickle(insecure.address, preface),
    );
    for took in [tls, http] {
        assert!(took < GIVEN_UP, "{took:?}");
        assert!(took > Duration::from_secs(4), "{took:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_to_the_metrics_is_closed() {
    let mut command = program(&[
        "--insecure",
        "--address=127.0.0.1:0",
        "--metrics-address=127.0.0.1:0",
    ]);
    let function = Running::start(&mut command).await;
    let mut stream = stranger(function.metrics.unwrap()).await;
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    let end = timeout(GIVEN_UP, stream.read_to_string(&mut answer)).await;
    end.expect("the connection stays open").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

/// A client without TLS that speaks another protocol learns of it at once.
#[tokio::test]
async fn a_client_without_http2_is_not_left_waiting() {
    let function = Running::insecure().await;
    let mut stream = stranger(function.address).await;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let end = timeout(AT_ONCE, stream.read_to_end(&mut Vec::new())).await;
    let _ = end.expect("the connection stays open");
    let channel = plain(function.address).await.unwrap();
    call(&channel).await.unwrap();
}
