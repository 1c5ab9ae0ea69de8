//! The managed-resource contract of Crossplane for kube-rs controllers.
