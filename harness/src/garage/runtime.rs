//! stub
/// x
#[derive(Debug)]
pub struct GarageRuntime(crate::garage::hub::Hub);
impl GarageRuntime {
    /// x
    pub fn new(h: crate::garage::hub::Hub) -> Self {
        Self(h)
    }
}
