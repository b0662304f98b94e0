//! Web.
use crate::live::Shared;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves.
pub async fn serve(_listener: TcpListener, _shared: Arc<Shared>, stop: CancellationToken) {
    stop.cancelled().await;
}
