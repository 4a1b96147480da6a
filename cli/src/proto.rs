//! Messages of the wire as people and scripts read them: protobuf's JSON, and its text.

use crate::Error;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

/// Protobuf's JSON with the field names of the .proto and with default values, as gazctl prints it:
/// numbers of 64 bits as texts, enums by name, durations as `300s`.
pub fn json(message: &impl Message, name: &str) -> Result<String, Error> {
    let options = SerializeOptions::new().use_proto_field_name(true).skip_default_fields(false);
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::pretty(&mut out);
    let written = dynamic(message, name).serialize_with_options(&mut serializer, &options);
    written.map_err(|error| Error::Specs("the output".to_owned(), error.to_string()))?;
    out.push(b'\n');
    Ok(String::from_utf8(out).expect("JSON is UTF-8"))
}

/// Protobuf's text, one field a line.
pub fn text(message: &impl Message, name: &str) -> String {
    let text = format!("{:#}", dynamic(message, name));
    if text.is_empty() { text } else { text + "\n" }
}

/// The message under the description of its type, whose full name is `name`.
fn dynamic(message: &impl Message, name: &str) -> DynamicMessage {
    let pool = DescriptorPool::decode(protocol::wire::DESCRIPTORS).expect("made by our build");
    let described = pool.get_message_by_name(name).expect("a type of our .proto files");
    DynamicMessage::decode(described, message.encode_to_vec().as_slice())
        .expect("bytes of the same type")
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::wire::gazette;

    fn request() -> gazette::FragmentsRequest {
        gazette::FragmentsRequest {
            journal: "local/log".into(),
            begin_mod_time: 7,
            signature_ttl: Some(prost_types::Duration { seconds: 300, nanos: 0 }),
            ..Default::default()
        }
    }

    #[test]
    fn messages_are_json_and_text() {
        let name = "protocol.FragmentsRequest";
        let json: serde_json::Value =
            serde_json::from_str(&json(&request(), name).expect("can be written")).expect("JSON");
        assert_eq!(json["journal"], "local/log");
        assert_eq!(json["begin_mod_time"], "7");
        assert_eq!(json["signatureTTL"], "300s");
        assert_eq!(json["do_not_proxy"], false);
        let text = text(&request(), name);
        assert!(text.contains("journal: \"local/log\"\n"), "{text}");
        assert!(text.contains("begin_mod_time: 7\n"), "{text}");
        assert_eq!(super::text(&gazette::ListResponse::default(), "protocol.ListResponse"), "");
    }
}
