# Builds a machine image for workspaces with Packer, for teams whose images all come from Packer.
# `cargo xtask image ami` does the same without it. The machine installs the software by its user data:
#
#   cargo xtask image ami --catalogue catalogue.yaml --region us-east-1 --name workspace \
#     --opencv 4.12.0 --print-user-data >user-data.yaml
#   packer init . && packer build -var base=ami-... .
#
# Add the image to data.images of the catalogue: python is /opt/workspace-image/bin/python3.
packer {
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.3.0"
    }
  }
}

variable "base" {
  type        = string
  description = "The image of the catalogue that was named with --from."
}

variable "region" {
  type    = string
  default = "us-east-1"
}

source "amazon-ebs" "workspace" {
  region        = var.region
  source_ami    = var.base
  instance_type = "m6i.large"
  ssh_username  = "ubuntu"
  ami_name      = "gpu-workspace-{{timestamp}}"
  user_data_file = "user-data.yaml"

  metadata_options {
    http_tokens = "required"
  }
  launch_block_device_mappings {
    device_name           = "/dev/sda1"
    volume_size           = 100
    volume_type           = "gp3"
    encrypted             = true
    delete_on_termination = true
  }
}

build {
  sources = ["source.amazon-ebs.workspace"]

  # The user data ends its work some minutes after the login works.
  provisioner "shell" {
    inline = [
      "timeout 3600 sh -c 'until [ -e /opt/workspace-image/bin/python3 ] && ! pgrep -f gpu-workspace/; do sleep 5; done'",
      "/opt/workspace-image/bin/python3 -c 'import cv2'",
    ]
  }
}
