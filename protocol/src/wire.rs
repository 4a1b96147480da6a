//! The messages and services as they cross the network, made from the .proto files.
//!
//! Every message field is an `Option`. Where Gazette has no presence (a field the .proto does not
//! mark "presence matters"), absence means the zero value on the way in, and the words write the
//! zero value out, as Gazette does, so that equal messages have equal bytes.

/// Gazette's package `protocol`, service `Journal`.
#[allow(clippy::all, missing_docs)]
pub mod gazette {
    tonic::include_proto!("protocol");
}

/// Courant's own package `courant.v1`, service `Courant`.
#[allow(clippy::all, missing_docs)]
pub mod courant {
    tonic::include_proto!("courant.v1");
}

/// The descriptors of both packages and of what they import: a `google.protobuf.FileDescriptorSet`
/// in its encoding, for reflection and for messages as JSON and as text.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
