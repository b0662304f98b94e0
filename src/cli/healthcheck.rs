//! `matins healthcheck`: for containers, which have no other program to ask with.

use super::Failure;
use super::args::{HealthArgs, Service};
use super::client::Client;
use crate::clock;
use crate::config;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) async fn run(service: &Service, args: &HealthArgs) -> Result<(), Failure> {
    let mut service = service.clone();
    if let Some(path) = &args.config {
        let loaded =
            config::load(path, &config::environment, clock::now()).map_err(|e| Failure::Usage(e.to_string()))?;
        service.url = format!("http://{}", reachable(loaded.config.http.listen));
    }
    Client::new(&service)?.bytes(if args.ready { "/readyz" } else { "/healthz" }, &[]).await?;
    Ok(())
}

/// Where a service that listens on every address is reached from here.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, listen.port())
}
