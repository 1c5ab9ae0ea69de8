use super::*;

fn record(name: &str, index: u8, stage: Stage) -> Record {
    Record {
        name: name.to_owned(),
        index,
        created: Timestamp::UNIX_EPOCH,
        stage,
        kubernetes: "v1.37.0".to_owned(),
        crossplane: "v2.4.0".to_owned(),
    }
}

fn part(name: &str, state: PartState) -> PartStatus {
    PartStatus {
        name: name.to_owned(),
        state,
        since: Timestamp::UNIX_EPOCH,
        pid: Some(7),
        log: "/logs/x.log".into(),
        observed: None,
        exit: None,
    }
}

#[test]
fn clusters_side_by_side_never_get_the_same_number() {
    let recorded = [
        record("demo", 0, Stage::Ready),
        record("lifecycle", 2, Stage::Ready),
    ];
    let choose = |name| choose_index(name, &recorded, |_| false).unwrap();
    assert_eq!(choose("demo"), 0);
    assert_eq!(choose("test"), 1);
    assert_eq!(choose("lifecycle"), 2);
    assert_eq!(choose("other"), 3);
}

#[test]
fn a_number_whose_addresses_are_in_use_is_passed_over() {
    let index = choose_index("other", &[], |index| index < 9).unwrap();
    assert_eq!(index, 9);
    assert!(matches!(
        choose_index("other", &[], |_| true),
        Err(Error::Full)
    ));
}

#[test]
fn a_name_cannot_leave_the_clusters_folder() {
    for name in [
        "",
        "..",
        "a/b",
        "A",
        "-a",
        "a-",
        "abcdefghijklmnopqrstu",
        "a.b",
    ] {
        assert!(valid_name(name).is_err(), "{name}");
    }
    for name in ["demo", "a", "e2e-1"] {
        assert!(valid_name(name).is_ok(), "{name}");
    }
}

#[test]
fn a_cluster_that_was_only_prepared_is_started_afresh() {
    let preparing = record("demo", 0, Stage::Preparing);
    assert_eq!(verdict(None, false, &[]), Verdict::Absent);
    assert_eq!(verdict(Some(&preparing), false, &[]), Verdict::Absent);
}

#[test]
fn a_dead_part_is_seen_even_if_everything_else_is_ready() {
    let ready = record("demo", 0, Stage::Ready);
    let parts = [
        part("etcd", PartState::Ready),
        part("kubelet", PartState::Dead),
    ];
    let Verdict::Dead(dead) = verdict(Some(&ready), true, &parts) else {
        unreachable!("a dead part was not seen");
    };
    assert_eq!(dead[0].name, "kubelet");
}

#[test]
fn a_rebooted_machine_does_not_look_like_a_running_cluster() {
    let ready = record("demo", 0, Stage::Ready);
    let parts = [part("etcd", PartState::Ready)];
    assert_eq!(verdict(Some(&ready), false, &parts), Verdict::Gone);
    assert_eq!(verdict(Some(&ready), true, &parts), Verdict::Up);
}

#[test]
fn an_interrupted_up_is_not_taken_for_a_finished_one() {
    let parts = [part("etcd", PartState::Ready)];
    let starting = record("demo", 0, Stage::Starting);
    assert_eq!(verdict(Some(&starting), true, &parts), Verdict::Starting);
    let ready = record("demo", 0, Stage::Ready);
    let parts = [part("etcd", PartState::Starting)];
    assert_eq!(verdict(Some(&ready), true, &parts), Verdict::Starting);
}

#[test]
fn what_is_written_is_read_back_and_a_broken_file_is_named() {
    let folder = std::env::temp_dir().join(format!("local-cluster-state-{}", std::process::id()));
    cache::create_folder(&folder).unwrap();
    let state = StateFolder::at(folder.clone());
    assert_eq!(state.record().unwrap(), None);
    assert!(state.parts().unwrap().is_empty());
    let written = record("demo", 0, Stage::Starting);
    state.write_record(&written).unwrap();
    assert_eq!(state.record().unwrap(), Some(written));
    state.write_parts(&[part("etcd", PartState::Dead)]).unwrap();
    assert_eq!(state.parts().unwrap()[0].state, PartState::Dead);
    fs::write(folder.join("parts.json"), "[{").unwrap();
    let error = state.parts().unwrap_err().to_string();
    assert!(error.contains("parts.json"), "{error}");
    cache::remove_folder(&folder).unwrap();
}
