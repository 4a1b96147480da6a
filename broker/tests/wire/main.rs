//! The broker's port, from outside: what Gazette said to the same requests, each RPC, the gateway,
//! and what is no request at all.

#![allow(clippy::unwrap_used)]

mod courant;
mod gateway;
mod gazette;
mod port;
mod recorded;
mod world;
