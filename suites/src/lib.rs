//! Scenarios, their test binaries, and the onewriter program.
