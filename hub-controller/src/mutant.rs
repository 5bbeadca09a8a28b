//! Deliberate defects, one of which a build with the feature `mutants` can be given at start: they prove that the harness
//! notices them (hub contract, section 4, M1 to M26). Without the feature every question here is answered "no" when the
//! program is compiled.

/// A defect by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mutant {
    /// M1: reconcilers are not fenced.
    NoFence,
    /// M2: the fence is looked at once, at start.
    FenceReadOnce,
    /// M3: a promotion does not stop the mirror.
    MirrorNotStopped,
    /// M4: a promotion does not wait until no write of the mirror is under way.
    StopNotConfirmed,
    /// M5: reads of the Active's Lease are not bounded.
    UnboundedRead,
    /// M6: the wait for the mirror's end is not bounded, and polls wait with it.
    UnboundedStop,
    /// M7: promotes without having read the Lease ever.
    PromotesUnread,
    /// M8: promotes without asking its own API server.
    NoSelfCheck,
    /// M9: promotes without reading the Lease once more.
    NoFinalRead,
    /// M10: every attempt to read the Lease counts as life.
    StalenessFromAttempt,
    /// M11: an older `renewTime` counts as life.
    OlderRenewTime,
    /// M12: a promotion does not reconcile what exists.
    NoRequeue,
    /// M13: copies keep finalizers.
    FinalizersKept,
    /// M14: copies without original are not deleted at a resync.
    NoPrune,
    /// M15: a list that failed prunes.
    PruneOnFailedList,
    /// M16: shells of token Secrets are written again at every resync.
    ShellUpdated,
    /// M17: shells keep the uid of the original's account.
    UidAnnotationKept,
    /// M18: tokens are copied.
    TokenCopied,
    /// M19: a token Secret is made only together with its account.
    SecretOnlyWithAccount,
    /// M20: the placeholder endpoint is declared.
    PlaceholderPublished,
    /// M21: the hub declares itself at its promotion and never again.
    PublishedOnce,
    /// M22: the Event is in another namespace, and about the Pod.
    EventElsewhere,
    /// M23: a promoted hub that sees the Active again steps back.
    AutoDemotion,
    /// M24: keys are rotated by a Standby, too.
    UnfencedTimer,
    /// M25: copies keep owner references.
    OwnersKept,
    /// M26: what the Active says about itself is mirrored.
    DeclarationMirrored,
}

/// Whether this build has this defect now.
#[inline]
pub fn is(mutant: Mutant) -> bool {
    active() == Some(mutant)
}

#[cfg(not(feature = "mutants"))]
const fn active() -> Option<Mutant> {
    None
}

#[cfg(feature = "mutants")]
static CHOSEN: std::sync::OnceLock<Mutant> = std::sync::OnceLock::new();

/// Gives this process a defect. Only the first call counts.
#[cfg(feature = "mutants")]
pub fn choose(mutant: Mutant) {
    let _chosen = CHOSEN.set(mutant);
}

#[cfg(feature = "mutants")]
fn active() -> Option<Mutant> {
    CHOSEN.get().copied()
}

#[cfg(test)]
mod tests {
    use super::Mutant;
    use clap::ValueEnum;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_as_many_defects_as_the_contract_names_each_with_a_name_of_its_own() {
        let names: BTreeSet<String> = Mutant::value_variants()
            .iter()
            .filter_map(|mutant| Some(mutant.to_possible_value()?.get_name().to_owned()))
            .collect();
        assert_eq!((names.len(), Mutant::value_variants().len()), (26, 26), "{names:?}");
    }
}
