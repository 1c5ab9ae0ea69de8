//! What the provider still does while EC2 fails: a table of operations, faults and promises.
//!
//! Each cell is a world that came to rest. Then all calls of one operation fail for good, the
//! provider restarts, and something happens that the provider must react to in time. The table in
//! `docs/operate.md` is made from the results: `UPDATE_GOLDENS=1` writes it.

use std::fmt::Write as _;
use std::path::Path;

use memory_ec2::{Fault, RECLAIMED};

use super::homes;
use super::leases;
use super::ours::Instances as _;
use super::provider::Provider;
use super::storage;
use super::store::Edit;
use super::world::{World, pool, size};

/// Every operation that the provider asks of EC2.
const OPERATIONS: [&str; 26] = [
    "GetCallerIdentity",
    "DescribeInstances",
    "DescribeInstanceStatus",
    "DescribeSpotPriceHistory",
    "DescribeInstanceTypeOfferings",
    "DescribeImages",
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeVolumes",
    "DescribeSnapshots",
    "GetConsoleOutput",
    "TerminateInstances",
    "CreateTags",
    "CreateFleet",
    "CreateLaunchTemplate",
    "DeleteLaunchTemplate",
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "RevokeSecurityGroupIngress",
    "DeleteSecurityGroup",
    "CreateVolume",
    "AttachVolume",
    "ModifyVolume",
    "DeleteVolume",
    "CreateSnapshot",
    "DeleteSnapshot",
];

const DENIED: Fault = Fault::Refused("UnauthorizedOperation");
const FAULTS: [(&str, Fault); 3] = [
    ("denied", DENIED),
    ("throttled", Fault::Refused("RequestLimitExceeded")),
    ("hanging", Fault::Hangs),
];

/// Something that the provider must do in time.
struct Promise {
    /// The heading of its column.
    name: &'static str,
    /// The operations without which it cannot be kept.
    needs: &'static [&'static str],
    /// A world at rest.
    begin: fn() -> World,
    /// What the provider must react to.
    happen: fn(&mut World),
    /// Whether it reacted.
    is_kept: fn(&World) -> bool,
    /// The time that it has, in seconds. A hanging call takes 45 of them.
    seconds: i64,
}

const ENDS: &[&str] = &["DescribeInstances", "TerminateInstances"];
const LAUNCHES: &[&str] = &[
    "GetCallerIdentity",
    "DescribeInstances",
    "DescribeInstanceTypeOfferings",
    "DescribeImages",
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "CreateFleet",
    "CreateLaunchTemplate",
];
const LAUNCHES_WITH_HOME: &[&str] = &[
    "GetCallerIdentity",
    "DescribeInstances",
    "DescribeInstanceTypeOfferings",
    "DescribeImages",
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeVolumes",
    "CreateFleet",
    "CreateLaunchTemplate",
    "AttachVolume",
];

const PROMISES: [Promise; 7] = [
    Promise {
        name: "`endsAt` ends instances",
        needs: ENDS,
        begin: two_instances,
        happen: |world| world.edit(Edit::EndsIn(Some(60))),
        is_kept: nothing_runs,
        seconds: 60 + 300,
    },
    Promise {
        name: "size 0 ends instances",
        needs: ENDS,
        begin: two_instances,
        happen: |world| world.edit(Edit::Size(size(0))),
        is_kept: nothing_runs,
        seconds: 300,
    },
    Promise {
        name: "a deletion ends instances",
        needs: ENDS,
        begin: two_instances,
        happen: |world| world.edit(Edit::Delete),
        is_kept: nothing_runs,
        seconds: 300,
    },
    Promise {
        name: "a lease's end ends its instance",
        needs: ENDS,
        begin: leased,
        happen: |world| leases::end(world, LEASE),
        is_kept: |world| leases::instance_of(world, LEASE).is_none(),
        seconds: 300,
    },
    Promise {
        name: "a lease gets a warm instance",
        needs: &["DescribeInstances", "CreateTags"],
        begin: warm,
        happen: |world| drop(leases::ask(world, None)),
        is_kept: |world| leases::instance_of(world, LEASE).is_some(),
        seconds: 300,
    },
    Promise {
        name: "a lost instance is replaced",
        needs: LAUNCHES,
        begin: || settled(World::new(pool(1))),
        happen: lose,
        is_kept: |world| world.earth.lock().cloud.live().len() == 1,
        seconds: 900,
    },
    Promise {
        name: "the next instance gets the home",
        needs: LAUNCHES_WITH_HOME,
        begin: || homes::settled(false),
        happen: lose,
        is_kept: has_home,
        seconds: 900,
    },
];

/// The first lease of a world.
const LEASE: &str = "uid-of-lease-1";

fn settled(mut world: World) -> World {
    world.settle().unwrap();
    world
}

fn two_instances() -> World {
    settled(World::new(pool(2)))
}

fn warm() -> World {
    settled(World::new(leases::warm(3)))
}

fn leased() -> World {
    let world = warm();
    leases::ask(&world, None);
    settled(world)
}

fn nothing_runs(world: &World) -> bool {
    world.earth.lock().cloud.live().is_empty()
}

fn lose(world: &mut World) {
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.cloud.end("i-0", RECLAIMED, now);
}

fn has_home(world: &World) -> bool {
    let earth = world.earth.lock();
    let users = storage::homes(&earth).filter_map(|disk| disk.user.as_ref());
    let users: Vec<&String> = users.map(|(id, _)| id).collect();
    let live = earth.cloud.live();
    live.len() == 1 && users == [&live[0].id]
}

/// Whether a promise is kept while all calls of an operation fail.
fn holds(promise: &Promise, operation: &'static str, fault: Fault) -> bool {
    let mut world = (promise.begin)();
    // The old launch template is deleted at the next opportunity, which must delay nothing.
    world.edit(Edit::UserData("#cloud-config\n# another".into()));
    world.always(operation, fault);
    world.provider = Provider::new(&world.earth);
    (promise.happen)(&mut world);
    world.work_for(promise.seconds);
    world.assert_lawful();
    (promise.is_kept)(&world)
}

#[test]
fn a_failing_operation_keeps_nothing_from_happening_that_does_not_need_it() {
    let mut wrong = Vec::new();
    let mut table = String::from("| denied, throttled or hanging |");
    for promise in &PROMISES {
        write!(table, " {} |", promise.name).unwrap();
    }
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(PROMISES.len()));
    table.push('\n');
    for operation in OPERATIONS {
        write!(table, "| `{operation}` |").unwrap();
        for promise in &PROMISES {
            let is_needed = promise.needs.contains(&operation);
            let mut is_always_kept = true;
            for (name, fault) in FAULTS {
                let is_kept = holds(promise, operation, fault);
                is_always_kept &= is_kept;
                // The list of needed operations has no more than these.
                let is_wrong = if is_needed {
                    is_kept && fault == DENIED
                } else {
                    !is_kept
                };
                if is_wrong {
                    wrong.push((operation, name, promise.name, is_kept));
                }
            }
            let cell = if is_always_kept { "yes" } else { "waits" };
            write!(table, " {cell} |").unwrap();
        }
        table.push('\n');
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    check_documentation(&table);
}

/// Compares the table with the one that people read.
fn check_documentation(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (old, after) = rest.split_once(END).unwrap();
    let new = format!("\n\n{table}\n");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{new}{END}{after}")).unwrap();
    } else {
        assert_eq!(old, new, "UPDATE_GOLDENS=1 writes the table");
    }
}

const BEGIN: &str = "<!-- promises: begin -->";
const END: &str = "<!-- promises: end -->";
