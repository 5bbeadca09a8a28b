//! The exit codes, documented and stable.

use std::process::{ExitCode, Termination};

/// How the program ends. Where several apply, the one listed first here wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 130: interrupted (SIGINT), after clean-up.
    Interrupted,
    /// 143: terminated (SIGTERM), after clean-up.
    Terminated,
    /// 97: a history check is violated.
    Violated,
    /// 96: preflight, set-up or attaching failed.
    SetupFailed,
    /// 100: a scenario failed.
    ScenarioFailed,
    /// 98: the harness could not tell.
    Unknown,
    /// 4: nothing was selected.
    NothingSelected,
    /// 2: wrong usage or unreadable input.
    Usage,
    /// 1: an error of the program itself.
    Internal,
    /// 0: everything passed.
    Pass,
}

impl Exit {
    /// The number that the operating system gets.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::NothingSelected => 4,
            Self::SetupFailed => 96,
            Self::Violated => 97,
            Self::Unknown => 98,
            Self::ScenarioFailed => 100,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The stronger of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.min(other)
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit::{Interrupted, Pass, ScenarioFailed, SetupFailed, Unknown, Violated};
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_violation_beats_a_failed_scenario(ScenarioFailed, Violated, Violated)]
    #[case::a_violation_beats_a_failed_setup(Violated, SetupFailed, Violated)]
    #[case::a_failed_setup_beats_a_failed_scenario(SetupFailed, ScenarioFailed, SetupFailed)]
    #[case::a_failed_scenario_beats_unknown(Unknown, ScenarioFailed, ScenarioFailed)]
    #[case::unknown_is_no_pass(Pass, Unknown, Unknown)]
    #[case::an_interrupt_beats_all(Interrupted, Violated, Interrupted)]
    fn the_stronger_exit_wins(#[case] a: Exit, #[case] b: Exit, #[case] wins: Exit) {
        assert_eq!(a.or(b), wins);
        assert_eq!(b.or(a), wins);
    }
}
