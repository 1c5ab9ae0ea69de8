//! The parts of provider-aws's program for EC2 that the tests use.

use crate::narrowed::Change::{Added, Files, Registers};
use crate::narrowed::Narrowed;

/// The program without the services of AWS other than EC2. Two processors compile its 2,000 packages
/// in 6 minutes. The whole program takes them 41.
pub(crate) const EC2_ALONE: &[Narrowed] = &[
    Narrowed {
        module: "github.com/upbound/provider-aws/v2",
        changes: &[
            Registers {
                file: "apis/cluster/zz_register.go",
                below: "github.com/upbound/provider-aws/v2/apis/cluster/",
                kept: GROUPS,
            },
            Registers {
                file: "apis/namespaced/zz_register.go",
                below: "github.com/upbound/provider-aws/v2/apis/namespaced/",
                kept: GROUPS,
            },
            Files {
                folder: "internal/controller/cluster",
                ending: "_setup.go",
                kept: CONTROLLERS,
            },
            Files {
                folder: "internal/controller/namespaced",
                ending: "_setup.go",
                kept: CONTROLLERS,
            },
            Added {
                file: "config/served.go",
                from: "served.go",
            },
        ],
    },
    Narrowed {
        module: "github.com/hashicorp/terraform-provider-aws",
        changes: &[
            Registers {
                file: "internal/provider/sdkv2/service_packages_gen.go",
                below: "github.com/hashicorp/terraform-provider-aws/internal/service/",
                kept: &["ec2"],
            },
            Registers {
                file: "internal/conns/awsclient_gen.go",
                below: "github.com/aws/aws-sdk-go-v2/service/",
                kept: CLIENTS,
            },
        ],
    },
];

/// The group of EC2, the groups to which its types refer, and the versions of the group of
/// `ProviderConfig`. The provider asks for the types of all references before it reconciles a resource.
const GROUPS: &[&str] = &[
    "cloudwatchlogs",
    "ec2",
    "elbv2",
    "iam",
    "kms",
    "sns",
    "v1alpha1",
    "v1beta1",
    "vpclattice",
];
const CONTROLLERS: &[&str] = &["zz_ec2"];

/// The services whose clients EC2's resources, or the parts for all services, call.
const CLIENTS: &[&str] = &[
    "account",
    "apigatewayv2",
    "ec2",
    "imagebuilder",
    "licensemanager",
    "organizations",
    "rds",
    "resourcegroupstaggingapi",
    "route53resolver",
    "s3",
    "secretsmanager",
    "sts",
];
