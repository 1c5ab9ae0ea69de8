use std::future::pending;
use std::sync::Mutex;

use super::*;

/// EC2 with one machine, which shows one console after the other.
#[derive(Default)]
struct Fake {
    consoles: Mutex<Vec<&'static str>>,
    progress: Mutex<Vec<ImageProgress>>,
    refusals: Mutex<u32>,
    calls: Mutex<Vec<String>>,
}

impl Fake {
    fn with_consoles(consoles: &[&'static str]) -> Self {
        Self {
            consoles: Mutex::new(consoles.to_vec()),
            ..Self::default()
        }
    }

    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

/// The first of the values; the last one stays.
fn next<T: Clone>(values: &Mutex<Vec<T>>) -> Option<T> {
    let mut values = values.lock().unwrap();
    if values.len() > 1 {
        return Some(values.remove(0));
    }
    values.first().cloned()
}

#[async_trait]
impl Ec2 for Fake {
    async fn launch(&self, _: &MachineRequest) -> Result<String, Ec2Error> {
        self.note("launch");
        Ok("i-1".into())
    }

    async fn console(&self, _: &str) -> Result<Vec<u8>, Ec2Error> {
        Ok(next(&self.consoles).unwrap_or_default().into())
    }

    async fn create_image(&self, id: &str, image: &NewImage) -> Result<String, Ec2Error> {
        self.note(&format!("image {} of {id}", image.name));
        Ok("ami-1".into())
    }

    async fn progress(&self, _: &str) -> Result<ImageProgress, Ec2Error> {
        Ok(next(&self.progress).unwrap_or(ImageProgress::Available))
    }

    async fn terminate(&self, id: &str) -> Result<(), Ec2Error> {
        self.note(&format!("terminate {id}"));
        let mut refusals = self.refusals.lock().unwrap();
        if *refusals == 0 {
            return Ok(());
        }
        *refusals -= 1;
        Err(Ec2Error {
            operation: "TerminateInstances",
            code: "RequestLimitExceeded".into(),
            message: "slow down".into(),
            class: provider_core::ErrorClass::Throttled,
        })
    }
}

const PATIENCE: Patience = Patience {
    look_every: Duration::from_millis(1),
    setup: Duration::from_millis(100),
    copy: Duration::from_millis(100),
};

async fn built(
    ec2: &Fake,
    interrupted: impl Future<Output = ()> + Send,
) -> Result<String, BuildError> {
    let request = MachineRequest {
        image_id: "ami-0".into(),
        instance_type: "m6i.large".into(),
        subnet_id: None,
        root_gib: 100,
        user_data: String::new(),
        token: "token".into(),
        tags: Tags::new(),
    };
    let image = NewImage {
        name: "baked".into(),
        description: String::new(),
        tags: Tags::new(),
    };
    build(ec2, &request, &image, PATIENCE, &|_| (), interrupted).await
}

#[tokio::test]
async fn a_machine_becomes_an_image_and_ends() {
    let ready = "gpu-workspace setup done\r\ngpu-workspace image ready\r\n";
    let ec2 = Fake::with_consoles(&["", "booting", ready]);
    *ec2.progress.lock().unwrap() = vec![ImageProgress::Pending, ImageProgress::Available];
    assert_eq!(built(&ec2, pending()).await.unwrap(), "ami-1");
    assert_eq!(
        ec2.calls(),
        ["launch", "image baked of i-1", "terminate i-1"]
    );
}

/// An image of a machine whose setup failed would fail on every workspace.
#[tokio::test]
async fn a_failed_setup_makes_no_image_and_says_what_to_change() {
    let failed = "gpu-workspace setup FAILED: install OpenCV, no network (exit 1), see the log\n";
    let ec2 = Fake::with_consoles(&["", failed]);
    let error = built(&ec2, pending()).await.unwrap_err().to_string();
    assert!(error.contains("install OpenCV"), "{error}");
    assert!(error.contains("package index"), "{error}");
    assert_eq!(ec2.calls(), ["launch", "terminate i-1"]);
}

#[tokio::test]
async fn a_silent_machine_ends_after_the_time_limit() {
    let ec2 = Fake::with_consoles(&["booting"]);
    let begun = Instant::now();
    let error = built(&ec2, pending()).await.unwrap_err();
    assert!(matches!(error, BuildError::Silent { .. }), "{error}");
    assert!(begun.elapsed() >= PATIENCE.setup);
    assert_eq!(ec2.calls(), ["launch", "terminate i-1"]);
}

#[tokio::test]
async fn an_interrupted_build_ends_its_machine() {
    let ec2 = Fake::with_consoles(&["booting"]);
    let error = built(&ec2, sleep(Duration::from_millis(20)))
        .await
        .unwrap_err();
    assert!(matches!(error, BuildError::Interrupted), "{error}");
    assert_eq!(ec2.calls(), ["launch", "terminate i-1"]);
}

#[tokio::test]
async fn a_termination_that_ec2_refuses_is_asked_for_again() {
    let ec2 = Fake::with_consoles(&["gpu-workspace image ready"]);
    *ec2.refusals.lock().unwrap() = 3;
    built(&ec2, pending()).await.unwrap();
    let ends = ec2
        .calls()
        .iter()
        .filter(|call| *call == "terminate i-1")
        .count();
    assert_eq!(ends, 4);
}

#[tokio::test]
async fn an_image_that_ec2_cannot_make_is_named_with_the_reason() {
    let ec2 = Fake::with_consoles(&["gpu-workspace image ready"]);
    *ec2.progress.lock().unwrap() = vec![ImageProgress::Failed("no snapshot".into())];
    let error = built(&ec2, pending()).await.unwrap_err().to_string();
    assert_eq!(error, "EC2 made no image ami-1: no snapshot");
    assert_eq!(ec2.calls().last().unwrap(), "terminate i-1");
}
