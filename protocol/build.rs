//! Makes the wire's Rust from the .proto files, without a protoc on the machine.

use std::error::Error;

const PROTOS: [&str; 2] = ["proto/gazette.proto", "proto/courant.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    for proto in PROTOS {
        println!("cargo:rerun-if-changed={proto}");
    }
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    tonic_prost_build::configure()
        // Content is passed on to files, peers and readers; as `Bytes` that costs no copy.
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
