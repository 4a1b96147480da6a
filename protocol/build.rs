//! Makes the wire's Rust from the .proto files, without a protoc on the machine.

use prost::Message;
use std::error::Error;
use std::path::Path;

const PROTOS: [&str; 2] = ["proto/gazette.proto", "proto/courant.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    for proto in PROTOS {
        println!("cargo:rerun-if-changed={proto}");
    }
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // Content is passed on to files, peers and readers; as `Bytes` that costs no copy.
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
