//! Prometheus metrics: one list of families (`family`), filled from the kernel's maps at every scrape
//! (`collect`), served over HTTP (`serve`).

mod collect;
mod family;
mod serve;

pub use collect::Collector;
pub use family::page;
pub use serve::{MetricsError, Server};
