//! Admission and conversion webhooks, served with a certificate that the operator makes and rotates itself.

pub mod certificate;
pub mod handlers;
pub mod injection;
pub mod review;
pub mod server;
pub mod store;
