//! Requests that are large, or that nest deep.

use function_sdk_rust::proto::v1::{Resource, RunFunctionRequest, Severity, State};
use pbjson_types::value::Kind;
use pbjson_types::{Struct, Value};
use tonic::Code;

use crate::calls::{plain, request, run};
use crate::process::{Running, program};

const MEGABYTE: usize = 1024 * 1024;

fn text(text: String) -> Value {
    Value {
        kind: Some(Kind::StringValue(text)),
    }
}

fn object(key: &str, value: Value) -> Struct {
    Struct {
        fields: [(key.to_owned(), value)].into(),
    }
}

/// A request with this many bytes in its context.
fn large(bytes: usize) -> RunFunctionRequest {
    RunFunctionRequest {
        context: Some(object("large", text("x".repeat(bytes)))),
        ..request("large")
    }
}

/// A request in which an earlier step desires an object with this many levels.
fn deep(levels: usize) -> RunFunctionRequest {
    let mut inner = object("leaf", text(String::new()));
    for _ in 1..levels {
        let kind = Some(Kind::StructValue(inner));
        inner = object("level", Value { kind });
    }
    let resource = Resource {
        resource: Some(inner),
        ..Resource::default()
    };
    RunFunctionRequest {
        desired: Some(State {
            resources: [("deep".to_owned(), resource)].into(),
            ..State::default()
        }),
        ..request("deep")
    }
}

#[tokio::test]
async fn the_size_of_requests_is_limited_by_flag_and_environment() {
    let insecure = ["--insecure", "--address=127.0.0.1:0", "--metrics-address="];
    let by_default = program(&insecure);
    let mut by_flag = program(&insecure);
    by_flag.arg("--max-recv-message-size=9");
    let mut by_environment = program(&insecure);
    by_environment.env("MAX_RECV_MESSAGE_SIZE", "9");
    for (mut command, limit) in [(by_default, 4), (by_flag, 9), (by_environment, 9)] {
        let function = Running::start(&mut command).await;
        let channel = plain(function.address).await.unwrap();
        let response = run(&channel, large(limit * MEGABYTE - 100)).await.unwrap();
        assert_eq!(response.meta.unwrap().tag, "large");
        let refusal = run(&channel, large(limit * MEGABYTE)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::ResourceExhausted);
        let said = refusal.message();
        assert!(said.contains("--max-recv-message-size"), "{said}");
    }
}

/// An object that an earlier step composes, such as a CRD, may nest deep. The answer names the
/// limit, and the process survives any depth.
#[tokio::test]
async fn what_nests_too_deep_is_a_fatal_result() {
    let function = Running::insecure().await;
    let channel = plain(function.address).await.unwrap();
    let first = async |levels| {
        let response = run(&channel, deep(levels)).await.unwrap();
        assert_eq!(response.meta.unwrap().tag, "deep");
        let result = response.results.into_iter().next().unwrap();
        assert_eq!(result.severity, Severity::Fatal as i32);
        result
    };
    assert_ne!(first(32).await.reason(), "RequestUnreadable");
    for levels in [33, 100, 300] {
        let result = first(levels).await;
        assert_eq!(result.reason(), "RequestUnreadable");
        for word in ["RunFunctionRequest.desired", "32 levels"] {
            assert!(result.message.contains(word), "{}", result.message);
        }
    }
}
