//! Answers the system's name service, which sshd asks for accounts.

use std::io;

use bastion_core::names::{LONGEST, answer};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::accepting::serve_each;

/// Answers until the broker ends. All accounts have this user id.
pub(super) async fn serve(listener: UnixListener, uid: u32) {
    serve_each(listener, "names", |stream| answer_all(stream, uid)).await;
}

async fn answer_all(mut stream: UnixStream, uid: u32) -> io::Result<()> {
    let (from, mut to) = stream.split();
    let mut from = BufReader::new(from);
    loop {
        let mut question = Vec::new();
        (&mut from)
            .take(LONGEST)
            .read_until(0, &mut question)
            .await?;
        let Some((_, question)) = question.split_last() else {
            return Ok(());
        };
        let mut answer = serde_json::to_vec(&answer(question, uid)?)?;
        answer.push(0);
        to.write_all(&answer).await?;
    }
}
