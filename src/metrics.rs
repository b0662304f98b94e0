//! Counters for Prometheus. Gauges that mirror the store are read from it when they are asked for.

/// All series of the service.
#[derive(Debug, Default)]
pub struct Metrics {}
