//! The way to workspaces: TCP to an address, or a pod by way of the API server.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use async_trait::async_trait;
use devctl_core::host::{Destination, Reach};
use devctl_core::name;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

/// How long a connection may take. The security group of an instance drops packets of other networks.
const CONNECT: Duration = Duration::from_secs(10);

/// The network of this machine.
pub(crate) struct Network {
    client: Option<Client>,
}

impl Network {
    pub(crate) fn new(client: Option<Client>) -> Self {
        Self { client }
    }

    async fn pod(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + use<>> {
        let client = self.client.clone();
        let client = client.ok_or_else(|| io::Error::other("there is no API server"))?;
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let asked = pods.portforward(name, &[port]).await;
        let mut forwarder = asked.map_err(io::Error::other)?;
        let stream = forwarder.take_stream(port);
        stream.ok_or_else(|| io::Error::other("the API server forwards no port"))
    }
}

#[async_trait]
impl Reach for Network {
    async fn connect(&self, _: &name::Host, destination: &Destination) -> io::Result<()> {
        match destination {
            Destination::Address { address, port } => {
                let stream = dial(address, *port, CONNECT)?;
                tokio::task::spawn_blocking(move || streams::join(&stream)).await??;
                Ok(())
            }
            Destination::Pod {
                namespace,
                name,
                port,
            } => {
                let pod = self.pod(namespace, name, *port).await?;
                let (mut from, mut to) = tokio::io::split(pod);
                let up = async {
                    // ssh closes the pipe when it ends, in any way.
                    let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut to).await;
                    let _ = to.shutdown().await;
                    std::future::pending::<()>().await;
                };
                let mut stdout = tokio::io::stdout();
                let down = async {
                    tokio::io::copy(&mut from, &mut stdout).await?;
                    stdout.flush().await
                };
                tokio::select! {
                    () = up => Ok(()),
                    done = down => done,
                }
            }
        }
    }

    async fn answers(
        &self,
        _: &name::Host,
        destination: &Destination,
        longest: Duration,
    ) -> io::Result<()> {
        match destination {
            Destination::Address { address, port } => dial(address, *port, longest).map(drop),
            Destination::Pod {
                namespace,
                name,
                port,
            } => {
                let mut pod = self.pod(namespace, name, *port).await?;
                let mut first = [0];
                let read = tokio::io::AsyncReadExt::read(&mut pod, &mut first);
                let read = tokio::time::timeout(longest, read).await;
                match read.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
                    0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                    _ => Ok(()),
                }
            }
        }
    }

    fn free_port(&self) -> io::Result<u16> {
        free_port()
    }
}

/// A port of this machine that no program uses now.
pub(crate) fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn dial(address: &str, port: u16, longest: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for one in (address, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&one, longest) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
