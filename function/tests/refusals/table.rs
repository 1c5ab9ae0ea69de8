//! What the function says of each case that it refuses.

/// The cases that the function refuses, with the whole message: the field, the problem with it, and
/// the next step.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    (
        "owner",
        "spec.parameters.owner: write lower-case letters, digits, ., _ and -, with a letter or digit first and last, for example alice; of an e-mail address, write the part before @",
    ),
    (
        "owner-missing",
        "spec.parameters.owner: is required: write the name of the person who owns the workspace, since the policy has no ownerBinding",
    ),
    (
        "owner-in-a-malformed-label",
        "spec.parameters.owner: namespace team-vision has no valid owner: its label platform.acme.io/owner is Bob, and an owner has only lower-case letters, digits, ., _ and -; ask the platform team to change it",
    ),
    (
        "owner-after-the-namespace-changed",
        "spec.parameters.owner: this workspace belongs to alice, and namespace team-vision to bob (its label platform.acme.io/owner): delete the claim and create another",
    ),
    (
        "owner-added-that-is-another",
        "spec.parameters.owner: must be bob, the owner of this workspace so far; delete the claim and create another",
    ),
    (
        "several-fields",
        "spec.parameters.opencvVersion: write an OpenCV release of three or four numbers, for example 4.8.0; spec.parameters.region: write an AWS region, for example us-east-1",
    ),
    (
        "instance-type",
        "spec.parameters.instanceType: p5.48xlarge is not allowed; allowed are g4dn.*, g5.xlarge",
    ),
    (
        "further-instance-type",
        "spec.parameters.instanceTypes[1]: g5.2xlarge is not allowed; allowed are g4dn.*, g5.xlarge",
    ),
    (
        "public-key",
        "spec.parameters.ssh.publicKeys[0]: write an OpenSSH public key with at most one word after it, for example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 alice@laptop",
    ),
    (
        "cidr",
        "spec.parameters.ssh.allowedCidrs[0]: must be an IPv4 network, for example 203.0.113.0/24",
    ),
    (
        "whole-internet",
        "spec.parameters.ssh.allowedCidrs[1]: must not be the whole internet; name the networks you connect from",
    ),
    (
        "internet-in-halves",
        "spec.parameters.ssh.allowedCidrs: opens 4272881664 public addresses, and the policy allows 65536: name only the networks you connect from",
    ),
    (
        "cidr-beside-the-bastion",
        "spec.parameters.ssh.allowedCidrs: must be empty, because the policy's bastion.only lets the bastion connect and nobody else: remove the networks, and connect through the bastion",
    ),
    (
        "cidr-beyond-the-ceiling",
        "spec.parameters.ssh.allowedCidrs[0]: must lie within 203.0.113.0/24 or 10.0.0.0/8",
    ),
    (
        "region",
        "spec.parameters.region: ap-south-1 has no images in EnvironmentConfig gpu-workspaces; regions that have: eu-west-1, us-east-1",
    ),
    (
        "home-size-as-a-quantity",
        "spec.parameters.home.size: must be at most 500Gi, the policy's ceiling",
    ),
    (
        "home-without-a-size",
        "spec.parameters.home.size: is required, for example 100Gi",
    ),
    (
        "region-of-another-machine",
        "spec.parameters.region: must be us-east-1, where the workspace is: a workspace cannot move to another region; delete the claim and create another",
    ),
    (
        "gpu",
        "spec.parameters.gpu: no instance type that the policy allows has 8 x H100 in us-east-1; there are g4dn.xlarge (1 x T4 with 16Gi, 0.526 USD per hour), g4dn.2xlarge (1 x T4 with 16Gi, 0.752 USD per hour), g5.xlarge (1 x A10G with 24Gi, 1.006 USD per hour), g4dn.12xlarge (4 x T4 with 16Gi, 3.912 USD per hour)",
    ),
    (
        "flavor-for-pods-only",
        "spec.parameters.flavor: WorkspaceFlavor t4 describes no EC2 instances, it is for placement Cluster only: choose another flavor",
    ),
    (
        "image",
        "spec.parameters.image: image plain is not allowed; allowed are default",
    ),
    (
        "image-unknown",
        "spec.parameters.image: EnvironmentConfig gpu-workspaces has no image cuda13 in us-east-1; it has default, plain",
    ),
    (
        "pytorch",
        "spec.parameters.pytorchVersion: 2.13.0 is not available: image plain (ami-00000000000c0de02) has no PyTorch and no pytorchIndexUrl for others",
    ),
    (
        "while-running",
        "spec.parameters.instanceType: p5.48xlarge is not allowed; allowed are g4dn.*, g5.xlarge",
    ),
    (
        "policy-missing",
        "the Composition's policy is not usable: input: is required: give the pipeline step a WorkspacePolicy as its input",
    ),
    (
        "policy",
        "the Composition's policy is not usable: input.allowedInstanceType: is no known field",
    ),
    (
        "policy-authority",
        "the Composition's policy is not usable: input.ssh.userAuthorities[0]: is damaged: its data is no public key of its type; copy the whole line of the authority's .pub file",
    ),
    (
        "policy-bastion-group",
        "the Composition's policy is not usable: input.bastion.securityGroupId: needs exactly one entry in allowedRegions, the region of the group: for several regions, use cidrs",
    ),
    (
        "policy-on-demand-before-v3",
        "the Composition's policy is not usable: input.onDemand: SpotPool needs behaviourVersion v3 or later",
    ),
    (
        "namespace",
        "metadata.namespace: GpuDevWorkspace alice-vision-x7k2p has no namespace to compose into; create a GpuDevWorkspaceClaim in a namespace instead of the GpuDevWorkspace itself",
    ),
    (
        "kind",
        "StockPool.platform.acme.io is not a kind that this function serves: its Composition needs another function, or a compositeTypeRef of GpuDevWorkspace.platform.acme.io, GpuDevWorkspaceClaim.platform.acme.io, WorkspaceFlavor.platform.acme.io, DevUser.platform.acme.io",
    ),
    (
        "kind-of-another-group",
        "DevUser.people.example.org is not a kind that this function serves: its Composition needs another function, or a compositeTypeRef of GpuDevWorkspace.platform.acme.io, GpuDevWorkspaceClaim.platform.acme.io, WorkspaceFlavor.platform.acme.io, DevUser.platform.acme.io",
    ),
    (
        "composite",
        "the request has no observed composite resource; this function serves GpuDevWorkspace.platform.acme.io, GpuDevWorkspaceClaim.platform.acme.io, WorkspaceFlavor.platform.acme.io, DevUser.platform.acme.io",
    ),
    (
        "too-many-keys",
        "spec.parameters.ssh.publicKeys: the keys of the claim and the keys and certificates of the catalogue make the user data larger than EC2's 16384 bytes; remove some, or use shorter ones such as ssh-ed25519",
    ),
    (
        "region-by-policy",
        "spec.parameters.region: eu-west-1 is not allowed; allowed are us-east-1, us-west-2",
    ),
    (
        "capacity-type",
        "spec.parameters.capacityType: OnDemand is not allowed; allowed are Spot, SpotWithFallback",
    ),
    (
        "home-on-spot",
        "spec.parameters.capacityType: must be OnDemand: provider-aws manages the home volume and attaches it to its own instances only",
    ),
    (
        "spot-home-on-demand",
        "spec.parameters.capacityType: must be Spot or SpotWithFallback: the SpotPool manages the home volume and attaches it to its own instances only",
    ),
    (
        "lifetime",
        "spec.parameters.lifecycle.maxLifetime: must be at most 14d, the policy's maximum",
    ),
    (
        "home-size",
        "spec.parameters.home.sizeGiB: must be at most 40, the policy's ceiling",
    ),
    (
        "price",
        "spec.parameters.instanceTypes[0]: g5.xlarge costs 1.006 USD per hour in us-east-1 (as of 2026-11-01), the policy allows 0.75",
    ),
    (
        "owner-of-another-namespace",
        "spec.parameters.owner: must be bob, the owner of namespace team-vision (its label platform.acme.io/owner)",
    ),
    (
        "namespace-without-an-owner",
        "spec.parameters.owner: nobody may have workspaces in namespace team-vision: it has no label platform.acme.io/owner; ask the platform team for it",
    ),
    (
        "cluster-flavor",
        "spec.parameters.flavor: a100 is not allowed; allowed are t4, cpu-small",
    ),
    (
        "cluster-overrides",
        "spec.parameters.overrides.cpu: must be at most 8, as WorkspaceFlavor t4 says; spec.parameters.overrides.gpus: WorkspaceFlavor t4 has 1 and does not allow another number; spec.parameters.overrides.image: WorkspaceFlavor t4 does not allow it: leave it out, or choose another flavor; spec.parameters.overrides.memory: must be at most 32Gi, as WorkspaceFlavor t4 says; spec.parameters.overrides.serviceAccountToken: WorkspaceFlavor t4 does not allow it: leave it out, or choose another flavor",
    ),
    (
        "v3-opencv-without-digests",
        "spec.parameters.opencvVersion: the digests of the wheels of 4.99.0 are unknown: name a release from 4.5.5.64 to 5.0.0.93, or let the platform team add 4.99.0 to data.packages.opencv of EnvironmentConfig gpu-workspaces",
    ),
    (
        "cluster-opencv",
        "spec.parameters.opencvVersion: flavor t4 brings 4.8.0: leave it out, or choose a flavor that brings 4.10.0",
    ),
    (
        "cluster-opencv-contrib",
        "spec.parameters.opencvContrib: the OpenCV of flavor t4 has no contrib modules: leave it out, or choose a flavor with opencvContrib",
    ),
    (
        "opencv-without-python",
        "spec.parameters.opencvVersion: EnvironmentConfig gpu-workspaces says that image default (ami-00000000000c0de01) has OpenCV 4.12.0.88 and not which interpreter imports it: the platform team adds python to the image",
    ),
    (
        "cluster-gpus-per-node",
        "spec.parameters.distributed.gpusPerNode: WorkspaceFlavor t4 has 1 and does not allow another number",
    ),
    (
        "cluster-image-by-tag",
        "spec.parameters.flavor: spec.image of WorkspaceFlavor t4 has registry.platform.acme.io/acme/workspace:cuda, and the policy's cluster.requireImageDigest wants a digest: choose another flavor, or have the platform team write spec.image as name@sha256:…",
    ),
    (
        "cluster-nodes",
        "spec.parameters.distributed.nodes: must be at most 4, the policy's cluster.maxNodes",
    ),
    (
        "cluster-queue",
        "spec.parameters.queue.name: training is not allowed; allowed are interactive; spec.parameters.queue.priorityClass: urgent is not allowed; allowed are interactive, batch",
    ),
    (
        "cluster-queue-without-kueue",
        "spec.parameters.queue: the policy has no cluster.queue: leave it out",
    ),
    (
        "cluster-policy",
        "spec.parameters.placement: must be EC2: the policy has no input.cluster",
    ),
    (
        "cluster-shm",
        "spec.parameters.overrides: /dev/shm (8Gi) counts as memory and must fit into it (4Gi)",
    ),
    (
        "cluster-home-of-somebody-else",
        "spec.parameters.owner: must be bob: PersistentVolumeClaim home-alice-notebook-0 in namespace dev-alice holds their files; use another name for the claim, or delete that PersistentVolumeClaim",
    ),
    (
        "cluster-home-of-an-earlier-user",
        "spec.parameters.owner: PersistentVolumeClaim home-gpuws-alice-notebook-0 in namespace dev-alice holds the files of an earlier alice, whose DevUser had the UID 01dc1e0f-0000-4222-8333-944455566677; use another name for the claim, or delete that PersistentVolumeClaim",
    ),
    (
        "cluster-home-without-an-owner",
        "spec.parameters.owner: PersistentVolumeClaim home-gpuws-alice-notebook-0 in namespace dev-alice has no label platform.acme.io/owner, so its owner is unknown; use another name for the claim, or ask the platform team for the label",
    ),
    (
        "cluster-home-without-a-label",
        "metadata.name: PersistentVolumeClaim home-gpuws-alice-notebook-0 in namespace dev-alice is not of this workspace, because its label platform.acme.io/cluster-workspace is not gpuws-alice-notebook; use another name for the claim, or delete that PersistentVolumeClaim",
    ),
    (
        "cluster-name-of-a-service",
        "metadata.name: Service gpuws-alice-notebook in namespace dev-alice is not of this workspace, because its label platform.acme.io/cluster-workspace is not gpuws-alice-notebook; use another name for the claim, or delete that Service",
    ),
    (
        "cluster-name-of-an-account",
        "metadata.name: ServiceAccount alice-notebook in namespace dev-alice is not of this workspace, because its label platform.acme.io/cluster-workspace is not alice-notebook; use another name for the claim, or delete that ServiceAccount",
    ),
    (
        "cluster-placement",
        "spec.parameters.placement: must stay Cluster: delete the claim and create another",
    ),
    (
        "ec2-placement",
        "spec.parameters.placement: must stay EC2: delete the claim and create another",
    ),
    (
        "user-name",
        "metadata.name: dave.the.developer cannot be part of a namespace's name (dev-dave.the.developer): use lower-case letters, digits and -, 59 characters at most",
    ),
    (
        "user-name-too-long",
        "metadata.name: dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd cannot be part of a namespace's name (dev-dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd): use lower-case letters, digits and -, 59 characters at most",
    ),
    (
        "user-namespace-of-others",
        "metadata.name: Namespace dev-dave exists, and Crossplane did not make it for this DevUser; give the DevUser another name, delete the Namespace, or hand it over: kubectl label namespace dev-dave crossplane.io/composite=dave",
    ),
    (
        "user-subject",
        "spec.subjects[1].name: must be a person, a group of persons or a service account: names that begin with system: are Kubernetes' own",
    ),
    (
        "user-policy",
        "the Composition's policy is not usable: input.kind: must be DevUserPolicy",
    ),
    (
        "user-with-homes",
        "spec.publicKeys[0]: write an OpenSSH public key with at most one word after it, for example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 alice@laptop",
    ),
    (
        "on-demand-unreadable",
        "Instance alice-vision-x7k2p-e6b6cab94a7e: status.atProvider has an unknown shape (invalid type: integer `7`, expected a string); check that the versions of provider-aws-ec2 and function-gpu-workspace fit",
    ),
    (
        "pool-unreadable",
        "SpotPool alice-vision-x7k2p-6c8e5d4f0a1b: spec.forProvider has an unknown shape (invalid type: string \"many\", expected struct PoolSize); check that the versions of provider-gpu-spot and function-gpu-workspace fit",
    ),
];
