//! The build: a machine starts, installs the software, becomes an image, and ends.

use std::time::Duration;

use activity_report::setup::SetupResult;
use async_trait::async_trait;
use function_ec2::image_build::{self, READY};
use function_ec2::user_data::LOG_PATH;
use provider_aws::{Ec2Error, ImageBuilder, ImageProgress, MachineRequest, Tags};
use provider_core::Console;
use thiserror::Error;
use tokio::time::{Instant, sleep};

/// How often EC2 is asked anew to terminate the machine.
const TERMINATIONS: u32 = 10;

/// The calls of a build.
#[async_trait]
pub trait Ec2: Send + Sync {
    /// Starts a machine and returns its id.
    async fn launch(&self, request: &MachineRequest) -> Result<String, Ec2Error>;
    /// What the machine wrote to its console.
    async fn console(&self, id: &str) -> Result<Vec<u8>, Ec2Error>;
    /// Begins to make an image of the machine. Returns the image's id.
    async fn create_image(&self, id: &str, image: &NewImage) -> Result<String, Ec2Error>;
    /// How far the image is.
    async fn progress(&self, image_id: &str) -> Result<ImageProgress, Ec2Error>;
    /// Terminates the machine.
    async fn terminate(&self, id: &str) -> Result<(), Ec2Error>;
}

/// The image to make.
#[derive(Clone, Debug)]
pub struct NewImage {
    /// Its name, which no other image of the account and region has.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The tags of the image and its snapshots.
    pub tags: Tags,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time between two looks.
    pub look_every: Duration,
    /// The longest time that the setup may take.
    pub setup: Duration,
    /// The longest time that EC2 may take to copy the disk.
    pub copy: Duration,
}

/// Why there is no image.
#[derive(Debug, Error)]
pub enum BuildError {
    /// EC2 refused a call.
    #[error("{0}")]
    Ec2(#[from] Ec2Error),
    /// A step of the setup failed.
    #[error("{0}")]
    Setup(String),
    /// The machine did not become an image in time.
    #[error(
        "instance {id} did not end its setup within {within:?}; its console is in EC2 for an hour: \
         aws ec2 get-console-output --instance-id {id}; on a machine that you keep, {LOG_PATH} has more"
    )]
    Silent {
        /// The machine.
        id: String,
        /// The time limit.
        within: Duration,
    },
    /// EC2 made no image.
    #[error("EC2 made no image {id}: {reason}")]
    Image {
        /// The image.
        id: String,
        /// EC2's reason.
        reason: String,
    },
    /// A person interrupted the build.
    #[error("interrupted")]
    Interrupted,
}

/// Builds the image and returns its id. However the build ends, the machine is terminated. `say`
/// gets one line per step. The build ends early once `interrupted` completes.
pub async fn build(
    ec2: &dyn Ec2,
    request: &MachineRequest,
    image: &NewImage,
    patience: Patience,
    say: &(dyn Fn(String) + Sync),
    interrupted: impl Future<Output = ()> + Send,
) -> Result<String, BuildError> {
    let id = ec2.launch(request).await?;
    say(format!("instance {id} starts"));
    let work = make(ec2, &id, image, patience, say);
    let made = tokio::select! {
        made = work => made,
        () = interrupted => Err(BuildError::Interrupted),
    };
    end(ec2, &id, patience, say).await?;
    made
}

async fn make(
    ec2: &dyn Ec2,
    id: &str,
    image: &NewImage,
    patience: Patience,
    say: &(dyn Fn(String) + Sync),
) -> Result<String, BuildError> {
    set_up(ec2, id, patience).await?;
    say(format!("instance {id} has installed the software"));
    let image_id = ec2.create_image(id, image).await?;
    say(format!("EC2 makes image {image_id}"));
    let begun = Instant::now();
    loop {
        match ec2.progress(&image_id).await? {
            ImageProgress::Available => return Ok(image_id),
            ImageProgress::Failed(reason) => {
                return Err(BuildError::Image {
                    id: image_id,
                    reason,
                });
            }
            ImageProgress::Pending if begun.elapsed() > patience.copy => {
                let reason = format!("it is not available after {:?}", patience.copy);
                return Err(BuildError::Image {
                    id: image_id,
                    reason,
                });
            }
            ImageProgress::Pending => sleep(patience.look_every).await,
        }
    }
}

/// Waits until the machine says on its console that it is ready to become an image.
async fn set_up(ec2: &dyn Ec2, id: &str, patience: Patience) -> Result<(), BuildError> {
    let begun = Instant::now();
    loop {
        let output = ec2.console(id).await?;
        let text = String::from_utf8_lossy(&output);
        if text.lines().any(|line| line.trim_end().ends_with(READY)) {
            return Ok(());
        }
        if let Some(SetupResult::Failed(said)) = Console::read(&output).setup {
            return Err(BuildError::Setup(image_build::failed(id, &said)));
        }
        if begun.elapsed() > patience.setup {
            return Err(BuildError::Silent {
                id: id.to_owned(),
                within: patience.setup,
            });
        }
        sleep(patience.look_every).await;
    }
}

/// Terminates the machine, again and again if EC2 refuses.
async fn end(
    ec2: &dyn Ec2,
    id: &str,
    patience: Patience,
    say: &(dyn Fn(String) + Sync),
) -> Result<(), BuildError> {
    let mut tries = 1;
    loop {
        match ec2.terminate(id).await {
            Ok(()) => {
                say(format!("instance {id} ends"));
                return Ok(());
            }
            Err(error) if tries == TERMINATIONS => {
                say(format!(
                    "instance {id} still runs and costs money: aws ec2 terminate-instances \
                     --instance-ids {id}"
                ));
                return Err(error.into());
            }
            Err(error) => {
                say(format!("{error}; tried again"));
                tries += 1;
                sleep(patience.look_every).await;
            }
        }
    }
}

#[async_trait]
impl Ec2 for ImageBuilder {
    async fn launch(&self, request: &MachineRequest) -> Result<String, Ec2Error> {
        self.launch(request).await
    }

    async fn console(&self, id: &str) -> Result<Vec<u8>, Ec2Error> {
        self.console(id).await
    }

    async fn create_image(&self, id: &str, image: &NewImage) -> Result<String, Ec2Error> {
        self.create_image(id, &image.name, &image.description, &image.tags)
            .await
    }

    async fn progress(&self, image_id: &str) -> Result<ImageProgress, Ec2Error> {
        self.progress(image_id).await
    }

    async fn terminate(&self, id: &str) -> Result<(), Ec2Error> {
        self.terminate(id).await
    }
}

#[cfg(test)]
mod tests;
