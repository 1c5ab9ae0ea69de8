//! The in-memory EC2 behind HTTP. It understands EC2's query protocol and SQS's JSON protocol, and
//! has only the operations that the provider calls. It counts every call. Each call to EC2 takes a
//! token from AWS's buckets.

mod groups;
mod instances;
mod launches;
mod places;
mod query;
mod queue;
mod xml;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use memory_ec2::Cloud;
use provider_aws::Ec2Error;
use tokio::net::TcpListener;

use crate::Outcome;
use crate::account::{Account, State};

use query::Query;
use xml::Xml;

/// The answer of an operation: an XML document, or EC2's error code.
type Answer = Result<String, String>;

/// Serves the account on a free port until the process ends. Returns the address.
pub(crate) async fn serve(account: Arc<Account>) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Otherwise the kernel may delay a small answer until the client acknowledges earlier
            // ones.
            let _ = stream.set_nodelay(true);
            let account = account.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let account = account.clone();
                    async move { Ok::<_, Infallible>(answer(&account, request).await) }
                });
                let connection = http1::Builder::new();
                // The only errors are of clients that close the connection early, which is normal.
                let _ = connection
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    Ok(address)
}

async fn answer(account: &Account, request: Request<Incoming>) -> Response<String> {
    let target = request.headers().get("x-amz-target");
    let target = target
        .and_then(|t| t.to_str().ok())
        .and_then(|t| t.strip_prefix("AmazonSQS."));
    let target = target.map(str::to_owned);
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return respond(StatusCode::BAD_REQUEST, error.to_string()),
    };
    if let Some(operation) = target {
        return respond(
            StatusCode::OK,
            queue::answer(account, &operation, &body).await,
        );
    }
    let query = Query::parse(&body);
    match ec2(&mut account.lock(), &query, Timestamp::now()) {
        Ok(document) => respond(StatusCode::OK, document),
        Err(code) => {
            let throttled = code == "RequestLimitExceeded";
            let status = if throttled {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::BAD_REQUEST
            };
            respond(status, Xml::error(&code))
        }
    }
}

fn respond(status: StatusCode, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
}

/// Counts a call to EC2, and carries it out unless EC2 throttles it.
fn ec2(state: &mut State, query: &Query, now: Timestamp) -> Answer {
    let operation = query.text("Action").unwrap_or_default();
    let operation = *OPERATIONS
        .iter()
        .find(|known| **known == operation)
        .ok_or("InvalidAction")?;
    state.cloud.pass_time(now);
    let admitted = state.cloud.admit(operation, now);
    state
        .ledger
        .count(operation, query.filters().len(), admitted.is_err());
    if operation == "CreateFleet" {
        state.ledger.launched(&query.tags_of("instance"));
    }
    admitted.map_err(refused)?;
    carry_out(operation, &mut state.cloud, query, now)
}

/// The operations that the crate `provider-aws` calls.
const OPERATIONS: [&str; 20] = [
    "GetCallerIdentity",
    "GetConsoleOutput",
    "DescribeSpotPriceHistory",
    "DescribeInstances",
    "DescribeInstanceStatus",
    "DescribeInstanceTypeOfferings",
    "DescribeImages",
    "DescribeSubnets",
    "DescribeLaunchTemplates",
    "CreateLaunchTemplate",
    "DeleteLaunchTemplate",
    "CreateFleet",
    "TerminateInstances",
    "CreateTags",
    "DescribeSecurityGroups",
    "DescribeSecurityGroupRules",
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "RevokeSecurityGroupIngress",
    "DeleteSecurityGroup",
];

fn carry_out(operation: &str, cloud: &mut Cloud, query: &Query, now: Timestamp) -> Answer {
    match operation {
        "DescribeInstances" => Ok(instances::describe(query, cloud, now)),
        "GetCallerIdentity" => Ok(places::identity()),
        "GetConsoleOutput" => Ok(instances::console(query)),
        "DescribeInstanceStatus" => Ok(places::impaired(cloud)),
        "DescribeSpotPriceHistory" => Ok(places::spot_prices()),
        "DescribeInstanceTypeOfferings" => Ok(places::offerings(query, cloud)),
        "DescribeImages" => Ok(places::images(query, cloud)),
        "DescribeSubnets" => Ok(places::subnets(query, cloud)),
        "DescribeLaunchTemplates" => Ok(launches::describe_templates(query, cloud)),
        "CreateLaunchTemplate" => launches::create_template(query, cloud),
        "DeleteLaunchTemplate" => launches::delete_template(query, cloud),
        "CreateFleet" => launches::create_fleet(query, cloud, now),
        "TerminateInstances" => launches::terminate(query, cloud, now),
        "CreateTags" => launches::tag(query, cloud),
        "DescribeSecurityGroups" => Ok(groups::describe(query, cloud, now)),
        "DescribeSecurityGroupRules" => Ok(groups::describe_rules(query, cloud)),
        "CreateSecurityGroup" => groups::create(query, cloud, now),
        "AuthorizeSecurityGroupIngress" => groups::authorize(query, cloud),
        "RevokeSecurityGroupIngress" => groups::revoke(query, cloud),
        "DeleteSecurityGroup" => groups::delete(query, cloud, now),
        _ => Err("InvalidAction".to_owned()),
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "it stands where map_err hands the error over"
)]
fn refused(error: Ec2Error) -> String {
    error.code
}
