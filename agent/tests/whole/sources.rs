//! Tests of the sources `ssh` and `kernel`, and of what survives a restart of the agent.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::machine::{Machine, until};
use crate::server::Server;

#[test]
fn a_session_is_use_and_probes_are_not() {
    let machine = Machine::new();
    let _watch = machine.watch(&[]);
    machine.becomes("ssh", "Idle");
    let started = Instant::now();
    machine.connect(&[7]);
    machine.becomes("ssh", "Active");
    assert!(
        started.elapsed() > Duration::from_secs(9),
        "a probe would count"
    );
    machine.connect(&[]);
    let before = machine.becomes("ssh", "Idle");
    // A monitor opens a new connection for each probe.
    let mut probe = 100;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(13) {
        probe += 1;
        machine.connect(&[probe]);
        let seen = machine.status().unwrap()["at"].clone();
        until("another look", || {
            (machine.status()?["at"] != seen).then_some(())
        });
    }
    assert_eq!(machine.source("ssh").unwrap(), before);
}

#[test]
fn a_restart_of_the_agent_loses_no_sign_of_use_and_a_boot_does() {
    let machine = Machine::new();
    let mut watch = machine.watch(&[]);
    machine.becomes("job", "Idle");
    assert!(machine.says(&["run", "--", "sleep", "2"]).status.success());
    let sign = until("a sign of use", || {
        let job = machine.source("job")?;
        (job["state"] == "Idle" && job["lastActive"].is_string()).then_some(job)
    });
    watch.kill();
    let at = machine.status().unwrap()["at"].clone();
    let mut watch = machine.watch(&[]);
    until("the next agent to look", || {
        (machine.status()?["at"] != at).then_some(())
    });
    assert_eq!(machine.source("job").unwrap(), sign);
    watch.kill();
    machine.write("/proc/sys/kernel/random/boot_id", "second\n");
    assert_eq!(machine.status(), None, "of another boot");
    let _watch = machine.watch(&[]);
    let fresh = machine.becomes("job", "Idle");
    assert!(fresh["lastActive"].is_null(), "{fresh}");
}

#[test]
fn a_busy_kernel_is_use_and_its_token_stays_secret() {
    const TOKEN: &str = "5ecre7";
    let machine = Machine::new();
    let state = Arc::new(Mutex::new("busy"));
    let said = Arc::clone(&state);
    let server = Server::start(move |request| {
        if request.header("authorization") != Some("token 5ecre7") {
            return (403, String::new());
        }
        assert_eq!(request.path, "/lab/api/kernels");
        let state = said.lock().unwrap();
        let last = "2026-11-22T00:00:00.000000Z";
        (
            200,
            format!(r#"[{{"id": "1", "execution_state": "{state}", "last_activity": "{last}"}}]"#),
        )
    });
    let describe = |token: &str| {
        let port = server.port;
        let text = format!(
            r#"{{"base_url": "/lab/", "hostname": "localhost", "port": {port}, "secure": false,
                "sock": "", "token": "{token}", "url": "http://localhost:{port}/lab/"}}"#
        );
        machine.write(
            "/home/developer/.local/share/jupyter/runtime/jpserver-1.json",
            &text,
        );
    };
    let _watch = machine.watch(&[]);
    machine.becomes("kernel", "Absent");
    describe(TOKEN);
    machine.becomes("kernel", "Active");
    *state.lock().unwrap() = "idle";
    let idle = machine.becomes("kernel", "Idle");
    assert!(idle["lastActive"].is_string());
    describe("wr0n9");
    machine.becomes("kernel", "Unknown");
    let log = machine.log();
    assert_eq!(log.matches("HTTP 403").count(), 1, "{log}");
    assert!(!log.contains(TOKEN) && !log.contains("wr0n9"), "{log}");
}

#[test]
fn the_file_of_a_killed_server_is_not_use() {
    let machine = Machine::new();
    // A port on which no process listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let runtime = "/home/developer/.local/share/jupyter/runtime";
    machine.write(
        &format!("{runtime}/jpserver-1.json"),
        &format!(r#"{{"port": {port}}}"#),
    );
    machine.write(&format!("{runtime}/kernel-1.json"), "{}");
    let _watch = machine.watch(&[]);
    machine.becomes("kernel", "Absent");
}
