use super::*;

const RUN: &str = "grpc_type=\"unary\",grpc_service=\"apiextensions.fn.proto.v1.FunctionRunnerService\",grpc_method=\"RunFunction\"";

fn after(count: impl Fn(&Arc<Metrics>)) -> String {
    let metrics = Arc::new(Metrics::new(Vec::new()));
    count(&metrics);
    metrics.prometheus_text()
}

#[test]
fn dashboards_for_go_functions_find_their_series() {
    let text = after(|metrics| metrics.start(V1::RUN_FUNCTION).unwrap().end(Code::Ok));
    for series in [
        format!("grpc_server_started_total{{{RUN}}} 1"),
        format!("grpc_server_msg_received_total{{{RUN}}} 1"),
        format!("grpc_server_msg_sent_total{{{RUN}}} 1"),
        format!("grpc_server_handled_total{{{RUN},grpc_code=\"OK\"}} 1"),
        format!("grpc_server_handled_total{{{RUN},grpc_code=\"Internal\"}} 0"),
        "# TYPE grpc_server_started_total counter".to_owned(),
        "# HELP grpc_server_started_total Total number of RPCs started on the server.".to_owned(),
    ] {
        assert!(text.lines().any(|line| line == series), "{series}\n{text}");
    }
    assert!(!text.contains("EOF"));
}

#[test]
fn a_call_whose_client_left_is_canceled_and_sent_nothing() {
    let text = after(|metrics| drop(metrics.start(V1Beta1::RUN_FUNCTION)));
    let run = RUN.replace("v1.", "v1beta1.");
    let canceled = format!("grpc_server_handled_total{{{run},grpc_code=\"Canceled\"}} 1");
    assert!(text.contains(&canceled), "{text}");
    assert!(text.contains(&format!("grpc_server_msg_sent_total{{{run}}} 0")));
}

#[test]
fn streams_are_there_and_are_not_counted() {
    let text = after(|metrics| {
        assert!(metrics.start("/grpc.health.v1.Health/Watch").is_none());
    });
    assert!(text.contains("grpc_method=\"Watch\"} 0"), "{text}");
}
