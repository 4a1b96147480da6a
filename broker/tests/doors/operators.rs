//! Health and reflection, as tools ask any gRPC server.

use crate::world::{SECRET, World, with_keys};
use broker::server::Settings;
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{Label, LabelSelector, LabelSet, ListRequest};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

#[tokio::test]
async fn who_shows_no_token_fills_no_memory() {
    let world = World::start(with_keys(SECRET)).await;
    let channel = world.channel().await;
    let service = "x".repeat(64 << 10);
    let long = HealthClient::new(channel.clone()).check(HealthCheckRequest { service }).await;
    assert_eq!(long.unwrap_err().code(), tonic::Code::OutOfRange);
    // Case: a message over the limit of the port
    let labels = vec![Label { name: "x".repeat(5 << 20), ..Label::default() }];
    let include = Some(LabelSet { labels });
    let selector = Some(LabelSelector { include, ..LabelSelector::default() });
    let list = ListRequest { selector, ..ListRequest::default() };
    let refused = JournalClient::new(channel).list(list.clone()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{refused}");
    world.stop().await;
    // Case: the same by who may
    let world = World::start(Settings::default()).await;
    let refused = JournalClient::new(world.channel().await).list(list).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::OutOfRange, "{refused}");
    world.stop().await;
}

#[tokio::test]
async fn health_is_told_without_a_token() {
    let world = World::start(with_keys(SECRET)).await;
    let mut client = HealthClient::new(world.channel().await);
    // Case: the service, and how it is
    let cases = [
        ("", Some(ServingStatus::Serving)),
        ("protocol.Journal", Some(ServingStatus::Serving)),
        ("courant.v1.Courant", Some(ServingStatus::Serving)),
        ("consumer.Shard", None),
    ];
    for (service, expected) in cases {
        let asked = client.check(HealthCheckRequest { service: service.into() }).await;
        match (asked, expected) {
            (Ok(answer), Some(status)) => assert_eq!(answer.into_inner().status(), status),
            (Err(error), None) => assert_eq!(error.code(), tonic::Code::NotFound),
            (found, _) => panic!("{service}: {found:?}"),
        }
    }
    // Case: a watch is told of the end before the port goes
    let watched = client.watch(HealthCheckRequest { service: String::new() }).await;
    let mut watched = watched.unwrap().into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let stopped = tokio::spawn(world.stop());
    assert_eq!(watched.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    drop((watched, client));
    stopped.await.unwrap();
}

async fn reflect(world: &World, request: MessageRequest) -> ServerReflectionResponse {
    let mut client = ServerReflectionClient::new(world.channel().await);
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let asked = client.server_reflection_info(tokio_stream::iter([request])).await;
    asked.unwrap().into_inner().message().await.unwrap().unwrap()
}

#[tokio::test]
async fn services_describe_themselves() {
    let world = World::start(with_keys(SECRET)).await;
    let listed = reflect(&world, MessageRequest::ListServices(String::new())).await;
    let Some(MessageResponse::ListServicesResponse(listed)) = listed.message_response else {
        panic!("{listed:?}");
    };
    let names: Vec<_> = listed.service.iter().map(|service| service.name.as_str()).collect();
    for name in ["protocol.Journal", "courant.v1.Courant", "grpc.health.v1.Health"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let symbol = MessageRequest::FileContainingSymbol("protocol.Journal".into());
    let described = reflect(&world, symbol).await.message_response;
    assert!(
        matches!(&described, Some(MessageResponse::FileDescriptorResponse(it))
            if !it.file_descriptor_proto.is_empty()),
        "{described:?}"
    );
    world.stop().await;
}
