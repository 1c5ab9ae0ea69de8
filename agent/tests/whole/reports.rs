//! Tests of reports to a tag of the instance and to an annotation of a Lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::machine::{Machine, Running, until};
use crate::server::{ACCESS_KEY, Request, SECRET_KEY, SESSION_TOKEN, Server, metadata};
use crate::signature;

const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample root@ip-10-0-0-10";

fn form(request: &Request) -> Vec<(String, String)> {
    form_urlencoded::parse(request.body.as_bytes())
        .into_owned()
        .collect()
}

fn field<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = form.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// A fake EC2 and a flag. The fake accepts tags while the flag is true, and refuses them with
/// HTTP 403 otherwise.
fn ec2() -> (Server, Arc<AtomicBool>) {
    let allows = Arc::new(AtomicBool::new(true));
    let allowed = Arc::clone(&allows);
    let server = Server::start(move |_| {
        if allowed.load(Ordering::SeqCst) {
            (
                200,
                "<CreateTagsResponse><return>true</return></CreateTagsResponse>".into(),
            )
        } else {
            let error = "<Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error>";
            (
                403,
                format!("<Response><Errors>{error}</Errors></Response>"),
            )
        }
    });
    (server, allows)
}

/// Starts an agent that reports to this EC2 every `seconds`.
fn watch(machine: &Machine, seconds: u32, imds: &Server, ec2: &Server) -> Running {
    machine.watch(&[
        "--to=ec2",
        &format!("--report-interval={seconds}"),
        &format!("--metadata-endpoint={}", imds.url()),
        &format!("--ec2-endpoint={}", ec2.url()),
    ])
}

#[test]
fn an_instance_tags_itself_with_two_keys_and_a_right_signature() {
    let machine = Machine::new();
    machine.write("/etc/ssh/ssh_host_ed25519_key.pub", HOST_KEY);
    let (ec2, imds) = (ec2().0, metadata(|_| None));
    let _watch = watch(&machine, 1, &imds, &ec2);
    let asked = until("two reports", || {
        Some(ec2.asked()).filter(|all| all.len() >= 2)
    });
    for request in &asked {
        let scope = ["eu-central-1", "ec2"];
        let expected = signature::authorization(request, ACCESS_KEY, SECRET_KEY, scope);
        assert_eq!(request.header("authorization").unwrap(), expected);
        assert_eq!(request.header("x-amz-security-token"), Some(SESSION_TOKEN));
        let (_, signed) = expected.split_once("SignedHeaders=").unwrap();
        assert!(signed.starts_with("content-type;host;x-amz-date;x-amz-security-token,"));
        let form = form(request);
        assert_eq!(field(&form, "Action"), Some("CreateTags"));
        assert_eq!(field(&form, "ResourceId.1"), Some("i-0123456789abcdef0"));
        assert_eq!(field(&form, "ResourceId.2"), None);
        assert_eq!(
            field(&form, "Tag.1.Key"),
            Some("gpu.platform.acme.io:activity")
        );
        let report = field(&form, "Tag.1.Value").unwrap();
        assert!(
            report.parse::<activity_report::Report>().is_ok(),
            "{report}"
        );
        assert_eq!(field(&form, "Tag.3.Key"), None);
    }
    let first = form(&asked[0]);
    assert_eq!(
        field(&first, "Tag.2.Key"),
        Some("gpu.platform.acme.io:host-key")
    );
    let (key, _) = HOST_KEY.rsplit_once(' ').unwrap();
    assert_eq!(field(&first, "Tag.2.Value"), Some(key));
    assert_eq!(
        field(&form(&asked[1]), "Tag.2.Key"),
        None,
        "it did not change"
    );
}

#[test]
fn the_result_of_the_setup_is_reported_at_once_and_when_it_changes() {
    let machine = Machine::new();
    let (ec2, imds) = (ec2().0, metadata(|_| None));
    let _watch = watch(&machine, 3600, &imds, &ec2);
    let setups = || -> Vec<String> {
        let forms = ec2.asked().iter().map(form).collect::<Vec<_>>();
        let of_setup = forms.iter().filter(|form| {
            field(form, "Tag.1.Key") == Some("gpu.platform.acme.io:setup")
                && field(form, "Tag.2.Key").is_none()
        });
        let values = of_setup.filter_map(|form| field(form, "Tag.1.Value"));
        values.map(str::to_owned).collect()
    };
    until("the first report", || {
        (!ec2.asked().is_empty()).then_some(())
    });
    assert_eq!(setups(), Vec::<String>::new(), "the setup has not ended");
    let failed = "FAILED: install OpenCV, no network (exit 1), see /var/log/x.log";
    let file = "/var/lib/gpu-workspace/setup";
    machine.write(file, &format!("{failed}\n"));
    until("the failed setup", || (setups() == [failed]).then_some(()));
    machine.write(file, "done\n");
    until("the end of the setup", || {
        (setups() == [failed, "done"]).then_some(())
    });
}

#[test]
fn a_role_that_may_not_report_the_setup_still_reports_use() {
    let machine = Machine::new();
    machine.write("/var/lib/gpu-workspace/setup", "done\n");
    let imds = metadata(|_| None);
    let ec2 = Server::start(|request| {
        if request.body.contains("Asetup") {
            let error = "<Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error>";
            let errors = format!("<Response><Errors>{error}</Errors></Response>");
            return (403, errors);
        }
        let answer = "<CreateTagsResponse><return>true</return></CreateTagsResponse>";
        (200, answer.into())
    });
    let _watch = watch(&machine, 1, &imds, &ec2);
    until("two reports", || {
        let forms = ec2.asked().iter().map(form).collect::<Vec<_>>();
        let key = |form: &Vec<(String, String)>| field(form, "Tag.1.Key").map(str::to_owned);
        let of = |name: &str| {
            forms
                .iter()
                .filter(|f| key(f).as_deref() == Some(name))
                .count()
        };
        let reports = of("gpu.platform.acme.io:activity");
        (reports >= 2 && of("gpu.platform.acme.io:setup") >= 1).then_some(())
    });
}

#[test]
fn new_use_is_reported_at_once() {
    let machine = Machine::new();
    let (ec2, imds) = (ec2().0, metadata(|_| None));
    let _watch = watch(&machine, 3600, &imds, &ec2);
    until("the first report", || {
        (ec2.asked().len() == 1).then_some(())
    });
    assert!(machine.says(&["run", "--", "sleep", "3"]).status.success());
    let asked = ec2.asked();
    assert_eq!(
        asked.len(),
        2,
        "one for the job, and none for the looks after it"
    );
    let form = form(&asked[1]);
    let report = field(&form, "Tag.1.Value").unwrap();
    let report: activity_report::Report = report.parse().unwrap();
    assert_eq!(report.job, activity_report::Sign::At(report.at));
}

#[test]
fn a_refused_report_is_retried_and_logged_once() {
    let machine = Machine::new();
    let ((ec2, allows), imds) = (ec2(), metadata(|_| None));
    allows.store(false, Ordering::SeqCst);
    let _watch = machine.watch(&[
        "--to=ec2",
        &format!("--metadata-endpoint={}", imds.url()),
        &format!("--ec2-endpoint={}", ec2.url()),
    ]);
    until("three attempts", || (ec2.asked().len() >= 3).then_some(()));
    let log = machine.log();
    assert_eq!(log.matches("UnauthorizedOperation").count(), 1, "{log}");
    assert!(log.contains("docs/aws/agent.json"), "{log}");
    allows.store(true, Ordering::SeqCst);
    until("it to work again", || {
        machine.log().contains("report: works again").then_some(())
    });
    for secret in [SECRET_KEY, SESSION_TOKEN] {
        assert!(!machine.log().contains(secret));
    }
}

#[test]
fn a_lease_is_renewed_with_the_pods_token_and_an_untrusted_server_gets_none() {
    let machine = Machine::new();
    let server = Server::start_tls(|_| (200, "{}".into()));
    let stranger = Server::start_tls(|_| (200, "{}".into()));
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    machine.write(&format!("{account}/token"), "pod-token\n");
    machine.write(
        &format!("{account}/ca.crt"),
        server.certificate.as_ref().unwrap(),
    );
    let to = |server: &Server| {
        machine.watch(&[
            "--to",
            "lease",
            "team-vision/alice-0",
            &format!("--kubernetes={}", server.url()),
        ])
    };
    let watch = to(&server);
    let asked = until("a report", || server.asked().first().cloned());
    drop(watch);
    assert_eq!(asked.method, "PATCH");
    assert_eq!(
        asked.path,
        "/apis/coordination.k8s.io/v1/namespaces/team-vision/leases/alice-0"
    );
    assert_eq!(asked.header("authorization"), Some("Bearer pod-token"));
    assert_eq!(
        asked.header("content-type"),
        Some("application/merge-patch+json")
    );
    let patch: Value = serde_json::from_str(&asked.body).unwrap();
    let report = patch["metadata"]["annotations"]["gpu.platform.acme.io/activity"].as_str();
    assert!(
        report.unwrap().parse::<activity_report::Report>().is_ok(),
        "{patch}"
    );
    let _watch = to(&stranger);
    until("the certificate to be refused", || {
        machine.log().contains("report:").then_some(())
    });
    assert!(stranger.asked().is_empty());
}
