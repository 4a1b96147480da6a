//! Who comes in by the broker's doors, and what they find there: tokens, TLS, unix sockets, ranges,
//! JSON, metrics, health.

#![allow(clippy::unwrap_used)]

mod deadlines;
mod expiry;
mod holding;
#[path = "../http/mod.rs"]
mod http;
mod json;
mod metrics;
mod operators;
mod ranges;
mod raw;
mod tls;
mod tokens;
mod unix;
mod world;
