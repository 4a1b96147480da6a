//! The broker's port, from outside: each RPC and its rules, the gateway, and what is no request.

#![allow(clippy::unwrap_used)]

mod appending;
mod courant;
mod each;
mod flow;
mod gateway;
mod gazette;
#[path = "../http/mod.rs"]
mod http;
mod port;
mod reading;
mod second_writer;
mod sessions;
mod suspending;
mod world;
