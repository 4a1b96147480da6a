//! Messages as protobuf's JSON: names in lowerCamelCase, 64-bit numbers as strings, enums by name,
//! bytes in base64, and members that have their default too. Both spellings of a name are read.

use http::StatusCode;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use protocol::wire::DESCRIPTORS;
use serde_json::{Deserializer, Serializer, json};
use tonic::Status;

/// The descriptions of the messages.
#[derive(Debug)]
pub struct Messages(DescriptorPool);

impl Messages {
    pub fn new() -> Self {
        let pool = DescriptorPool::decode(DESCRIPTORS);
        Messages(pool.expect("the descriptors are those that the wire was made from"))
    }

    /// Reads the message of this name. An empty text is an empty message.
    pub fn read<M: Message + Default>(&self, name: &str, text: &[u8]) -> Result<M, Status> {
        let text = if text.trim_ascii().is_empty() { b"{}" } else { text };
        let refused = |error: serde_json::Error| Status::invalid_argument(error.to_string());
        let mut reader = Deserializer::from_slice(text);
        let message =
            DynamicMessage::deserialize(self.described(name), &mut reader).map_err(refused)?;
        reader.end().map_err(refused)?;
        message.transcode_to().map_err(|error| Status::invalid_argument(error.to_string()))
    }

    /// A line of an answer, with its end.
    pub fn line<M: Message>(&self, name: &str, message: &M) -> Result<String, Status> {
        let mut described = DynamicMessage::new(self.described(name));
        let failed = |error: String| Status::internal(error);
        described.transcode_from(message).map_err(|error| failed(error.to_string()))?;
        let mut line = b"{\"result\":".to_vec();
        let options = SerializeOptions::new().skip_default_fields(false);
        let written = described.serialize_with_options(&mut Serializer::new(&mut line), &options);
        written.map_err(|error| failed(error.to_string()))?;
        line.extend_from_slice(b"}\n");
        String::from_utf8(line).map_err(|error| failed(error.to_string()))
    }

    fn described(&self, name: &str) -> MessageDescriptor {
        self.0.get_message_by_name(name).expect("the messages of the wire are described")
    }
}

/// The line of an error, with its end.
pub fn error(status: &Status, code: StatusCode) -> String {
    let error = json!({
        "grpc_code": i32::from(status.code()),
        "http_code": code.as_u16(),
        "message": status.message(),
        "http_status": code.canonical_reason().unwrap_or_default(),
    });
    format!("{}\n", json!({ "error": error }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::wire::gazette::{ListRequest, ReadRequest, ReadResponse};
    use serde_json::Value;

    #[test]
    fn requests_are_read_in_either_spelling() {
        let messages = Messages::new();
        // Case: the text, and the offset and the end that it asks for
        let cases = [
            (r#"{"journal":"a/b","offset":"5","endOffset":"9"}"#, Some((5, 9))),
            (r#"{"journal":"a/b","offset":5,"end_offset":9}"#, Some((5, 9))),
            (r#"{"journal":"a/b","offset":"-1"}"#, Some((-1, 0))),
            ("", Some((0, 0))),
            (" {} ", Some((0, 0))),
            (r#"{"jornal":"a/b"}"#, None),
            (r#"{"offset":"five"}"#, None),
            (r#"{"offset":1} {"#, None),
            ("[]", None),
            ("{", None),
        ];
        for (text, expected) in cases {
            let found = messages.read::<ReadRequest>("protocol.ReadRequest", text.as_bytes());
            let found = found.map(|request| (request.offset, request.end_offset));
            assert_eq!(found.ok(), expected, "{text}");
        }
        let text = br#"{"selector":{"include":{"labels":[{"name":"a","value":"b"}]}}}"#;
        let request = messages.read::<ListRequest>("protocol.ListRequest", text).expect("valid");
        assert_eq!(request.selector.and_then(|it| it.include).expect("there").labels.len(), 1);
    }

    #[test]
    fn answers_have_every_member() {
        let response = ReadResponse {
            status: 6,
            offset: 1 << 60,
            content: b"hi".to_vec().into(),
            ..ReadResponse::default()
        };
        let line = Messages::new().line("protocol.ReadResponse", &response).expect("written");
        assert!(line.ends_with("}\n"), "{line}");
        let value: Value = serde_json::from_str(&line).expect("JSON");
        let result = &value["result"];
        let expected = [
            ("status", "OFFSET_NOT_YET_AVAILABLE"),
            ("offset", "1152921504606846976"),
            ("writeHead", "0"),
            ("fragmentUrl", ""),
            ("content", "aGk="),
        ];
        for (name, text) in expected {
            assert_eq!(result[name], text, "{line}");
        }
    }

    #[test]
    fn errors_are_told_in_two_codes() {
        let line = error(&Status::unauthenticated("no"), StatusCode::UNAUTHORIZED);
        let value: Value = serde_json::from_str(&line).expect("JSON");
        let expected = json!({ "error": {
            "grpc_code": 16, "http_code": 401, "message": "no", "http_status": "Unauthorized",
        } });
        assert_eq!(value, expected);
    }
}
