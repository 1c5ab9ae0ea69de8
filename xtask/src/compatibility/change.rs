//! A breaking change, and advice how to avoid it.

use std::fmt;

use serde::Deserialize;

/// The kind of a change. `releases/accepted.yaml` uses the same names.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rule {
    DefinitionRemoved,
    NamesChanged,
    ScopeChanged,
    VersionRemoved,
    FieldRemoved,
    NewlyRequired,
    TypeChanged,
    EnumNarrowed,
    PatternChanged,
    BoundTightened,
    CelRuleAdded,
    DefaultChanged,
    MergeChanged,
    ConnectionKeyRemoved,
    OtherKeyword,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Self::DefinitionRemoved => "definition-removed",
            Self::NamesChanged => "names-changed",
            Self::ScopeChanged => "scope-changed",
            Self::VersionRemoved => "version-removed",
            Self::FieldRemoved => "field-removed",
            Self::NewlyRequired => "newly-required",
            Self::TypeChanged => "type-changed",
            Self::EnumNarrowed => "enum-narrowed",
            Self::PatternChanged => "pattern-changed",
            Self::BoundTightened => "bound-tightened",
            Self::CelRuleAdded => "cel-rule-added",
            Self::DefaultChanged => "default-changed",
            Self::MergeChanged => "merge-changed",
            Self::ConnectionKeyRemoved => "connection-key-removed",
            Self::OtherKeyword => "other-keyword",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::DefinitionRemoved => "keep it, and mark its versions `deprecated`",
            Self::NamesChanged | Self::ScopeChanged => {
                "these cannot change: serve another kind beside this one"
            }
            Self::VersionRemoved => "keep serving it, with `deprecated: true`",
            Self::FieldRemoved => "keep the field, and say in its description that it is unused",
            Self::NewlyRequired => "leave it optional, or give it a default",
            Self::TypeChanged => "add a field of the other type beside it",
            Self::EnumNarrowed => "keep the value, and give it the meaning of another",
            Self::PatternChanged | Self::BoundTightened | Self::CelRuleAdded => {
                "take what was taken before, or refuse it in new objects only (a CEL rule with oldSelf)"
            }
            Self::DefaultChanged => {
                "keep it: objects that leave the field unset would change their meaning"
            }
            Self::MergeChanged => {
                "keep it: two appliers of one list would drop each other's entries"
            }
            Self::ConnectionKeyRemoved => "keep writing the key: pods mount it",
            Self::OtherKeyword => "keep it, or say why it breaks nobody",
        }
    }
}

/// A difference from the last release that breaks users who rely on that release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The package with the definition.
    pub(super) package: String,
    /// The definition's name, such as `spotpools.gpu.platform.acme.io`.
    pub(super) definition: String,
    /// The place in the definition: a version and the path of a field in its objects, or a field of
    /// the definition itself.
    pub(super) field: String,
    /// The rule that it breaks.
    pub(super) rule: Rule,
    /// The old and the new state.
    pub(super) what: String,
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            package,
            definition,
            field,
            rule,
            what,
        } = self;
        write!(
            formatter,
            "  {package}/{definition}.yaml: {field}: {what} [{}]\n    {}",
            rule.name(),
            rule.advice()
        )
    }
}
