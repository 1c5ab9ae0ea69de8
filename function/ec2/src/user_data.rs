//! cloud-init user data: the user `developer`, the files that describe the workspace, and the setup
//! script.
//!
//! A serializer writes each value that a person typed as a YAML or JSON scalar of its own. The
//! script is constant and reads the values from files.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use api::lifecycle::AgentPolicy;
use api::policy::BehaviourVersion;
use function_runtime::outcome::{Problem, Refusal};
use function_workspace::login;
use thiserror::Error;

use crate::keys;
use crate::software::{Pytorch, PytorchSource, Software};

mod file;
mod parts;

use file::File;
use parts::{Certificates, Head, Tail, Trusted, User, Workspace};

/// EC2's limit in bytes, before base64.
pub const LIMIT: usize = 16 * 1024;

const WORKSPACE_PATH: &str = "/etc/gpu-workspace/workspace.json";
const REQUIREMENTS_PATH: &str = "/etc/gpu-workspace/requirements.txt";
const SETUP: &str = include_str!("user_data/setup.sh");
/// From behaviour version v3 on, systemd runs the setup and repeats it after a failure.
const SETUP_V3: &str = include_str!("user_data/setup_v3.sh");
const SETUP_UNIT: &str = include_str!("user_data/setup.service");
const SETUP_UNIT_NAME: &str = "gpu-workspace-setup.service";
const SETUP_UNIT_PATH: &str = "/etc/systemd/system/gpu-workspace-setup.service";
const SETUP_V1: &str = include_str!("user_data/setup_v1.sh");
const SETUP_PATH: &str = "/usr/local/lib/gpu-workspace/setup";
/// Makes a machine an image.
const IMAGE: &str = include_str!("user_data/image.sh");
const IMAGE_PATH: &str = "/usr/local/lib/gpu-workspace/image";
/// The longest life of such a machine, as `shutdown` reads it.
const IMAGE_MACHINE_MINUTES: &str = "+180";
/// The log of the setup on a machine.
pub const LOG_PATH: &str = "/var/log/gpu-workspace-setup.log";
const HOME: &str = include_str!("user_data/home.sh");
const HOME_PATH: &str = "/usr/local/lib/gpu-workspace/home";
const HOME_UNIT: &str = include_str!("user_data/home.service");
/// The systemd unit that mounts a home volume.
pub const HOME_UNIT_NAME: &str = "gpu-workspace-home.service";
const HOME_UNIT_PATH: &str = "/etc/systemd/system/gpu-workspace-home.service";
/// If the workspace has an agent, `HOST_KEYS` is inserted before this line of the home script. The
/// agent reports the host key to the owner, so the key has to survive the instance.
const HOST_KEYS_BEFORE: &str = "uid=$(id -u developer)\n";
const HOST_KEYS: &str = include_str!("user_data/host_keys.sh");
const AGENT: &str = include_str!("user_data/agent.sh");
const AGENT_PATH: &str = "/usr/local/lib/gpu-workspace/agent";
const AGENT_UNIT: &str = include_str!("user_data/agent.service");
const AGENT_UNIT_NAME: &str = "gpu-workspace-agent.service";
const AGENT_UNIT_PATH: &str = "/etc/systemd/system/gpu-workspace-agent.service";
const AGENT_SETTINGS_PATH: &str = "/etc/gpu-workspace/agent.env";
const SSHD: &str = include_str!("user_data/sshd.conf");
const SSHD_PATH: &str = "/etc/ssh/sshd_config.d/10-gpu-workspace.conf";
const SSHD_V3: &str = include_str!("user_data/sshd_v3.conf");
/// The program that prints the public keys in the instance's tags.
const KEYS_PROGRAM: &str = include_str!("user_data/keys.py");
const KEYS_PROGRAM_PATH: &str = "/usr/local/lib/gpu-workspace/keys";
const KEYS_PATH: &str = "/etc/gpu-workspace/keys/developer";

/// Whether an instance with this user data reads public keys from its tags.
pub fn reads_tags(document: &str) -> bool {
    document.contains(KEYS_PROGRAM_PATH)
}

/// The input for user data.
#[derive(Clone, Copy, Debug)]
pub struct UserData<'a> {
    /// The behaviour version of the policy.
    pub behaviour: BehaviourVersion,
    /// The owner of the workspace.
    pub owner: &'a str,
    /// Lines of `authorized_keys`, in order, without duplicates. From behaviour version v3 on, the
    /// instance reads most keys from its tags, and these are the others.
    pub public_keys: &'a [String],
    /// Whether the user `developer` may use sudo without a password.
    pub sudo: bool,
    /// The software to install.
    pub software: &'a Software,
    /// Certificates that the machine trusts in addition to its own, in PEM, from v3 on.
    pub ca_certificates: &'a [String],
    /// The package index of the platform, from v3 on; none if machines use that of their image.
    pub package_index: Option<&'a str>,
    /// The id of the machine image. An environment on a home volume is made again for another one.
    pub image_id: &'a str,
    /// Whether the workspace has a home volume.
    pub home: bool,
    /// The agent; none if the policy names none.
    pub agent: Option<&'a AgentPolicy>,
}

impl UserData<'_> {
    /// The `#cloud-config` document.
    pub fn document(&self) -> Result<String, Refusal> {
        let commands = match self.behaviour {
            BehaviourVersion::V1 | BehaviourVersion::V2 => &COMMANDS,
            BehaviourVersion::V3 => &COMMANDS_V3,
        };
        let (home, agent) = (usize::from(self.home), usize::from(self.agent.is_some()));
        self.assembled("", written(&commands[home][agent])?)
    }

    /// The document of a machine that becomes an image. Its setup runs once, and `image.sh` follows.
    pub fn of_an_image(&self) -> Result<String, Refusal> {
        let image = item(&File::new(IMAGE_PATH, "0755", IMAGE))?;
        self.assembled(&image, written(&IMAGE_COMMANDS)?)
    }

    /// The document with `further` files, as items of a YAML list, and these commands.
    fn assembled(&self, further: &str, commands: &str) -> Result<String, Refusal> {
        let parts = [
            "#cloud-config\n",
            &self.users()?,
            &self.certificates()?,
            "write_files:\n",
            &self.files()?,
            further,
            commands,
        ];
        let document = parts.concat();
        if document.len() > LIMIT {
            return Err(Refusal::from(TooLarge { limit: LIMIT }));
        }
        Ok(document)
    }

    /// The user. With a home volume, cloud-init would write the keys to the volume, where a removed
    /// key would stay.
    fn users(&self) -> Result<Cow<'static, str>, Refusal> {
        if self.home || keys::reads_tags(self.behaviour) || self.public_keys.is_empty() {
            return Ok(written(&USERS[usize::from(self.sudo)])?.into());
        }
        Ok(users(self.sudo, self.public_keys)
            .map_err(|problem| unwritable(&problem))?
            .into())
    }

    /// The certificates. cloud-init adds them before it runs anything that needs them.
    fn certificates(&self) -> Result<String, Refusal> {
        if self.behaviour != BehaviourVersion::V3 || self.ca_certificates.is_empty() {
            return Ok(String::new());
        }
        let trusted = self.ca_certificates;
        let certificates = Certificates {
            ca_certs: Trusted { trusted },
        };
        serde_yaml::to_string(&certificates).map_err(|error| unwritable(&error))
    }

    /// The files, as items of a YAML list.
    fn files(&self) -> Result<String, Refusal> {
        let workspace = self.workspace()?;
        let requirements = self.requirements();
        let mut files = String::with_capacity(LIMIT);
        files.push_str(&item(&File::new(WORKSPACE_PATH, "0644", &workspace))?);
        files.push_str(&item(&File::new(REQUIREMENTS_PATH, "0644", &requirements))?);
        files.push_str(match self.behaviour {
            BehaviourVersion::V1 => written(&SETUP_V1_FILE)?,
            BehaviourVersion::V2 => written(&SETUP_FILE)?,
            BehaviourVersion::V3 => written(&SETUP_V3_FILES)?,
        });
        if self.home {
            files.push_str(written(match self.agent {
                None => &HOME_FILES,
                Some(_) => &HOME_FILES_WITH_HOST_KEYS,
            })?);
        }
        files.push_str(&self.access()?);
        if let Some(agent) = self.agent {
            let settings = settings(agent);
            files.push_str(written(&AGENT_FILES)?);
            files.push_str(&item(&File::new(AGENT_SETTINGS_PATH, "0644", &settings))?);
        }
        Ok(files)
    }

    /// The files by which sshd finds keys; none if they are the user's own.
    fn access(&self) -> Result<String, Refusal> {
        let (sshd, has_file) = match (keys::reads_tags(self.behaviour), self.home) {
            (true, _) => (&KEYS_FILES, !self.public_keys.is_empty()),
            (false, true) => (&SSHD_FILE, true),
            (false, false) => return Ok(String::new()),
        };
        let mut files = written(sshd)?.to_owned();
        if has_file {
            files.push_str(&item(&File::new(KEYS_PATH, "0644", &self.keys()))?);
        }
        Ok(files)
    }

    fn keys(&self) -> String {
        let keys = self.public_keys.iter();
        keys.flat_map(|key| [key.as_str(), "\n"]).collect()
    }

    fn workspace(&self) -> Result<String, Refusal> {
        let pytorch = self.software.pytorch.as_ref();
        let (of_pytorch, index) = match pytorch.map(|p| &p.source) {
            Some(PytorchSource::Image { python }) => (Some(python.as_str()), None),
            Some(PytorchSource::Index { url }) => (None, Some(url.as_str())),
            None => (None, None),
        };
        let is_v3 = self.behaviour == BehaviourVersion::V3;
        let workspace = Workspace {
            owner: self.owner,
            image_id: (is_v3 && self.home).then_some(self.image_id),
            opencv_version: &self.software.opencv,
            package_index_url: self.package_index.filter(|_| is_v3),
            python: self.software.python.as_deref().filter(|_| is_v3),
            pytorch_version: pytorch.map(|Pytorch { version, .. }| version.as_str()),
            pytorch_python: of_pytorch.filter(|_| !is_v3),
            pytorch_index_url: index,
        };
        serde_json::to_string(&workspace)
            .map(|json| json + "\n")
            .map_err(|error| Refusal::unwritable("workspace.json", &error))
    }

    fn requirements(&self) -> String {
        let lines = self.software.requirements.iter();
        lines.flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

/// A part of the document that is the same for many workspaces. Serializing these parts took a third
/// of the time of a call, so it is done once.
type Constant = LazyLock<Result<String, String>>;

/// The user without public keys: without sudo, and with it.
static USERS: [Constant; 2] = [
    LazyLock::new(|| users(false, &[])),
    LazyLock::new(|| users(true, &[])),
];
/// The commands: without a home volume and with one, each without an agent and with one.
static COMMANDS: [[Constant; 2]; 2] = [
    [
        LazyLock::new(|| commands(&[], &[SETUP_PATH])),
        LazyLock::new(|| commands(&[AGENT_UNIT_NAME], &[SETUP_PATH])),
    ],
    [
        LazyLock::new(|| commands(&[HOME_UNIT_NAME], &[SETUP_PATH])),
        LazyLock::new(|| commands(&[HOME_UNIT_NAME, AGENT_UNIT_NAME], &[SETUP_PATH])),
    ],
];
/// The commands of behaviour version v3, in the same order.
static COMMANDS_V3: [[Constant; 2]; 2] = [
    [
        LazyLock::new(|| commands(&[SETUP_UNIT_NAME], &[])),
        LazyLock::new(|| commands(&[SETUP_UNIT_NAME, AGENT_UNIT_NAME], &[])),
    ],
    [
        LazyLock::new(|| commands(&[HOME_UNIT_NAME, SETUP_UNIT_NAME], &[])),
        LazyLock::new(|| commands(&[HOME_UNIT_NAME, SETUP_UNIT_NAME, AGENT_UNIT_NAME], &[])),
    ],
];
/// The commands of a machine that becomes an image. It ends itself, so that a builder that dies leaves
/// no machine behind.
static IMAGE_COMMANDS: Constant = LazyLock::new(|| {
    let shutdown = vec!["shutdown", "-h", IMAGE_MACHINE_MINUTES];
    let tail = Tail {
        runcmd: vec![shutdown, vec![SETUP_PATH], vec![IMAGE_PATH]],
    };
    serde_yaml::to_string(&tail).map_err(|error| error.to_string())
});
static SETUP_V3_FILES: Constant = LazyLock::new(|| {
    constant(&[
        File::new(SETUP_PATH, "0755", SETUP_V3),
        File::new(SETUP_UNIT_PATH, "0644", SETUP_UNIT),
    ])
});
static SETUP_V1_FILE: Constant =
    LazyLock::new(|| constant(&[File::new(SETUP_PATH, "0755", SETUP_V1)]));
static SETUP_FILE: Constant = LazyLock::new(|| constant(&[File::new(SETUP_PATH, "0755", SETUP)]));
static HOME_FILES: Constant = LazyLock::new(|| home_files(HOME));
static HOME_FILES_WITH_HOST_KEYS: Constant = LazyLock::new(|| {
    let with_host_keys = [HOST_KEYS, HOST_KEYS_BEFORE].concat();
    home_files(&HOME.replacen(HOST_KEYS_BEFORE, &with_host_keys, 1))
});
static SSHD_FILE: Constant = LazyLock::new(|| constant(&[File::new(SSHD_PATH, "0644", SSHD)]));
static KEYS_FILES: Constant = LazyLock::new(|| {
    constant(&[
        File::new(KEYS_PROGRAM_PATH, "0755", KEYS_PROGRAM),
        File::new(SSHD_PATH, "0644", SSHD_V3),
    ])
});
static AGENT_FILES: Constant = LazyLock::new(|| {
    constant(&[
        File::new(AGENT_PATH, "0755", AGENT),
        File::new(AGENT_UNIT_PATH, "0644", AGENT_UNIT),
    ])
});

fn users(sudo: bool, public_keys: &[String]) -> Result<String, String> {
    let head = Head {
        ssh_pwauth: false,
        users: [User {
            name: login::USER,
            lock_passwd: true,
            shell: "/bin/bash",
            sudo: sudo.then_some("ALL=(ALL) NOPASSWD:ALL"),
            ssh_authorized_keys: public_keys,
        }],
    };
    serde_yaml::to_string(&head).map_err(|error| error.to_string())
}

/// The commands of the first boot: they start the units, then run the programs one after the other.
/// No unit is waited for: the home's waits for its volume, and the agent's for its download.
fn commands(units: &[&'static str], programs: &[&'static str]) -> Result<String, String> {
    let mut commands = Vec::new();
    if !units.is_empty() {
        commands.push(vec!["systemctl", "daemon-reload"]);
    }
    for unit in units {
        commands.push(vec!["systemctl", "enable", unit]);
        commands.push(vec!["systemctl", "start", "--no-block", unit]);
    }
    commands.extend(programs.iter().map(|program| vec![*program]));
    let tail = Tail { runcmd: commands };
    serde_yaml::to_string(&tail).map_err(|error| error.to_string())
}

fn home_files(script: &str) -> Result<String, String> {
    constant(&[
        File::new(HOME_PATH, "0755", script),
        File::new(HOME_UNIT_PATH, "0644", HOME_UNIT),
    ])
}

/// A file of environment variables for systemd. The schema of the policy allows no quotes in the
/// URL.
fn settings(agent: &AgentPolicy) -> String {
    format!(
        "AGENT_URL='{}'\nAGENT_SHA256='{}'\nAGENT_REPORT_SECONDS='{}'\n",
        agent.url,
        agent.sha256,
        agent.report_interval.length().as_secs()
    )
}

fn constant(files: &[File<'_>]) -> Result<String, String> {
    serde_yaml::to_string(files).map_err(|error| error.to_string())
}

fn written(constant: &'static Constant) -> Result<&'static str, Refusal> {
    match &**constant {
        Ok(text) => Ok(text),
        Err(problem) => Err(unwritable(problem)),
    }
}

fn item(file: &File<'_>) -> Result<String, Refusal> {
    file.item().map_err(|error| unwritable(&error))
}

fn unwritable(problem: &impl fmt::Display) -> Refusal {
    Refusal::unwritable("the user data", problem)
}

/// The user data would exceed EC2's limit.
#[derive(Clone, Debug, Error)]
#[error(
    "spec.parameters.ssh.publicKeys: the keys of the claim and the keys and certificates of the \
     catalogue make the user data larger than EC2's {limit} bytes; remove some, or use shorter ones \
     such as ssh-ed25519"
)]
struct TooLarge {
    /// EC2's limit in bytes.
    limit: usize,
}

impl Problem for TooLarge {
    fn reason(&self) -> &'static str {
        "ParametersInvalid"
    }

    fn field(&self) -> Option<&'static str> {
        Some("spec.parameters.ssh.publicKeys")
    }
}
