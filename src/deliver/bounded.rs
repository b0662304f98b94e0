//! A line to a server of which one answer can't be endless. What is said on it lives elsewhere.

use lettre::transport::smtp::client::AsyncTokioStream;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest answer, in bytes: a start of TLS with a long chain fits; an answer of SMTP is a tenth of it.
pub const ANSWER_MAX: usize = 32 * 1024;
/// Most lines of an answer: the reader of answers looks at all lines anew for each, so many short ones take minutes.
/// Chance makes a quarter as many of encrypted bytes.
const LINES_MAX: usize = 512;

/// Fails when the other side says more than an answer without being spoken to in between.
#[derive(Debug)]
pub struct Bounded<S> {
    stream: S,
    peer: SocketAddr,
    heard: usize,
    lines: usize,
}

impl<S> Bounded<S> {
    /// Bounds `stream`, which leads to `peer`.
    pub fn new(stream: S, peer: SocketAddr) -> Self {
        Self { stream, peer, heard: 0, lines: 0 }
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug> AsyncTokioStream for Bounded<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let new = &buf.filled()[before..];
        self.heard += new.len();
        self.lines += new.iter().filter(|byte| **byte == b'\n').count();
        if self.heard > ANSWER_MAX || self.lines > LINES_MAX {
            return Poll::Ready(Err(io::Error::other("an answer that does not end")));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        (self.heard, self.lines) = (0, 0);
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test]
    async fn each_answer_may_be_long_and_none_is_endless() {
        let (near, mut far) = duplex(1 << 20);
        let mut line = Bounded::new(near, SocketAddr::from(([127, 0, 0, 1], 25)));
        let mut answer = vec![0; ANSWER_MAX];
        for _ in 0..3 {
            line.write_all(b"NOOP\r\n").await.unwrap();
            far.write_all(&answer).await.unwrap();
            line.read_exact(&mut answer).await.unwrap();
        }
        far.write_all(b".").await.unwrap();
        assert!(line.read_u8().await.is_err());
        line.write_all(b"NOOP\r\n").await.unwrap();
        far.write_all(&[b'\n'; LINES_MAX + 1]).await.unwrap();
        assert!(line.read_exact(&mut answer).await.is_err());
    }
}
