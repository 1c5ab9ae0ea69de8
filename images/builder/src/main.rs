//! `cargo xtask image ami`: builds a machine image that brings the software of workspaces, from an
//! image of the catalogue.

mod build;
mod sources;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use function_ec2::image_build::ImageBuild;
use provider_aws::{ImageBuilder, MachineRequest, Tags};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use build::{NewImage, Patience, build};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The tag of machines, volumes, images and snapshots of a build. Its value is the image's name.
const TAG: &str = "gpu.platform.acme.io:image-build";

/// Builds a machine image (AMI) that brings the software of workspaces.
///
/// It starts one machine, which installs the software as machines of workspaces do, makes an image of
/// it, and ends it. Credentials and endpoint come from the environment, as for AWS's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask image ami", version)]
struct Arguments {
    /// The catalogue: an EnvironmentConfig in a file
    #[arg(long)]
    catalogue: PathBuf,
    /// The region of the image
    #[arg(long)]
    region: String,
    /// The image of the catalogue to start from
    #[arg(long, default_value = "default")]
    from: String,
    /// The name of the new image; no other image of the account and region may have it
    #[arg(long)]
    name: String,
    /// The OpenCV release in the image
    #[arg(long)]
    opencv: Option<String>,
    /// With OpenCV's contrib modules
    #[arg(long)]
    contrib: bool,
    /// The PyTorch release in the image; the base image's by default
    #[arg(long)]
    pytorch: Option<String>,
    /// The type of the machine; it needs no GPU
    #[arg(long, default_value = "m6i.large")]
    instance_type: String,
    /// The subnet of the machine; one of the default VPC by default. It needs a way to the package
    /// index
    #[arg(long)]
    subnet: Option<String>,
    /// The size of the disk in GiB
    #[arg(long, default_value_t = 100)]
    disk: i32,
    /// Print the user data of the machine and start nothing, for other builders such as Packer
    #[arg(long)]
    print_user_data: bool,
    /// Seconds between two looks at the machine
    #[arg(long, default_value_t = 15, hide = true)]
    look_every: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Outcome<()> {
    let catalogue = sources::catalogue(&arguments.catalogue)?;
    let planned = ImageBuild::of(
        &catalogue,
        &arguments.region,
        &arguments.from,
        &arguments.wishes(),
    )
    .map_err(|error| sources::told(&error, &arguments.catalogue))?;
    if arguments.print_user_data {
        print!("{}", planned.user_data);
        return Ok(());
    }
    let ec2 = ImageBuilder::from_environment(&arguments.region).await;
    for left in ec2.running(TAG, &arguments.name).await? {
        eprintln!(
            "instance {left} of an earlier build of {} runs; it ends itself three hours after its start",
            arguments.name
        );
    }
    let request = arguments.machine(&planned);
    let image = NewImage {
        name: arguments.name.clone(),
        description: format!("{}, with the software of workspaces", planned.base),
        tags: arguments.tags(),
    };
    let interrupted = interrupted()?;
    let patience = Patience {
        look_every: Duration::from_secs(arguments.look_every),
        setup: Duration::from_hours(1),
        copy: Duration::from_mins(90),
    };
    let id = build(
        &ec2,
        &request,
        &image,
        patience,
        &|line| eprintln!("{line}"),
        interrupted,
    )
    .await?;
    let entry = planned.entry(&id, &image.description);
    print!(
        "{}",
        sources::entry(&arguments.region, &arguments.name, &entry)?
    );
    for step in planned.saves() {
        eprintln!("machines of the image no longer {step}");
    }
    Ok(())
}

/// Completes once a person or a supervisor asks this program to end.
fn interrupted() -> Outcome<impl Future<Output = ()> + Send> {
    // From now on, no signal ends this program before its machine ends.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => (),
            _ = terminated.recv() => (),
        }
    })
}

impl Arguments {
    /// The parameters of a claim that asks for the same software.
    fn wishes(&self) -> serde_json::Value {
        let mut wishes = json!({"opencvContrib": self.contrib});
        if let Some(opencv) = &self.opencv {
            wishes["opencvVersion"] = json!(opencv);
        }
        if let Some(pytorch) = &self.pytorch {
            wishes["pytorchVersion"] = json!(pytorch);
        }
        wishes
    }

    fn machine(&self, planned: &ImageBuild) -> MachineRequest {
        let mut tags = self.tags();
        tags.insert("Name".to_owned(), format!("image build {}", self.name));
        MachineRequest {
            image_id: planned.base.clone(),
            instance_type: self.instance_type.clone(),
            subnet_id: self.subnet.clone(),
            root_gib: self.disk,
            user_data: planned.user_data.clone(),
            token: format!("image-build-{}", jiff::Timestamp::now().as_nanosecond()),
            tags,
        }
    }

    fn tags(&self) -> Tags {
        Tags::from([(TAG.to_owned(), self.name.clone())])
    }
}
