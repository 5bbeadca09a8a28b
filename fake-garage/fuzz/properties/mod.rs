//! What must hold whatever the input is. The fuzz targets and the tests of the crate check the same.

pub(crate) mod admin;
pub(crate) mod merge;
pub(crate) mod parsers;
pub(crate) mod port;
