//! Who gets permissions in a user's namespace: the user, the bastion for the user, or nobody.

use api::dev_user::{SubjectKind, UserAccess};
use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding, RoleRef, Subject};
use serde_json::Value;

use crate::objects::User;
use crate::resource_names;

/// The name of the `ServiceAccount` that the bastion impersonates. Accounts of pods are named after
/// claims, whose names have no dot, so no pod gets this account.
const OWNER_ACCOUNT: &str = "gpu-workspaces.owner";

/// The message of a suspended user.
pub const SUSPENDED: &str =
    "suspended by spec.suspended: no permission and no key of this person counts";

/// Whether the user of a request is suspended. It counts even if the rest of the spec is refused: a
/// mistake must not give a suspended person their permissions back.
pub fn is_suspended(request: &Request) -> bool {
    let spec = request.composite.as_ref().and_then(|xr| xr.get("spec"));
    let suspended = spec.and_then(|spec| spec.get("suspended"));
    suspended.and_then(Json::as_bool) == Some(true)
}

/// Whether a composed resource with this composition resource name gives somebody permissions.
pub fn is_binding(name: &str) -> bool {
    [
        resource_names::OWNER_ROLE_BINDING,
        resource_names::BASTION_ROLE_BINDING,
    ]
    .contains(&name)
}

impl User<'_> {
    /// The account and the binding of the namespace, by composition resource name.
    pub fn access(self) -> Vec<(&'static str, Result<Value, Refusal>)> {
        let binding = |name, binding: &RoleBinding| (name, Composed::manifest(binding));
        let (account, binding) = match self.policy.access.unwrap_or_default() {
            UserAccess::Direct => (
                None,
                binding(resource_names::OWNER_ROLE_BINDING, &self.of_owner()),
            ),
            UserAccess::Bastion => (
                Some((
                    resource_names::OWNER_ACCOUNT,
                    Composed::manifest(&self.account_of_owner()),
                )),
                binding(resource_names::BASTION_ROLE_BINDING, &self.of_bastion()),
            ),
        };
        let binding = (!self.spec.suspended).then_some(binding);
        account.into_iter().chain(binding).collect()
    }

    /// Gives the owner their permissions, in this namespace only. The platform team installs the
    /// `ClusterRole`. Crossplane may bind it without having those permissions itself (verb `bind`).
    fn of_owner(self) -> RoleBinding {
        let subject = |kind: SubjectKind, name: &str| Subject {
            api_group: Some(ClusterRole::GROUP.to_owned()),
            kind: match kind {
                SubjectKind::User => "User".to_owned(),
                SubjectKind::Group => "Group".to_owned(),
            },
            name: name.to_owned(),
            namespace: None,
        };
        let named = self.spec.subjects.iter();
        let mut subjects: Vec<Subject> = named.map(|s| subject(s.kind, &s.name)).collect();
        if subjects.is_empty() {
            subjects.push(subject(SubjectKind::User, self.name));
        }
        self.binding("owner", &self.policy.owner_role, subjects)
    }

    /// Gives the bastion the permissions that it uses for the owner.
    fn of_bastion(self) -> RoleBinding {
        let account = Subject {
            api_group: None,
            kind: ServiceAccount::KIND.to_owned(),
            name: OWNER_ACCOUNT.to_owned(),
            namespace: Some(self.namespace.to_owned()),
        };
        self.binding("owner-by-bastion", &self.policy.bastion_role, vec![account])
    }

    /// The account that the bastion impersonates. Nothing uses a token of it.
    fn account_of_owner(self) -> ServiceAccount {
        ServiceAccount {
            metadata: self.metadata(OWNER_ACCOUNT),
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        }
    }

    fn binding(self, name: &str, role: &str, subjects: Vec<Subject>) -> RoleBinding {
        RoleBinding {
            metadata: self.metadata(name),
            role_ref: RoleRef {
                api_group: Some(ClusterRole::GROUP.to_owned()),
                kind: ClusterRole::KIND.to_owned(),
                name: role.to_owned(),
            },
            subjects: Some(subjects),
        }
    }
}
