//! Two kind clusters: nodes in containers, kubelets, Services with a data path, the operator as a Deployment.
//!
//! Nothing here needs an image registry: the node image is built from pinned modules and packages where none is at hand,
//! and the images of the operator and of the fake Garage are made of local programs.
//!
//! | module | what it holds |
//! |---|---|
//! | [`federation`] | the pair; start here |
//! | [`docker`] | the Docker client |
//! | [`tool`] | the kind CLI |
//! | [`names`] | names and labels of everything that a pair has outside of its folder |
//! | [`belongings`] | what that is, on record, and removing it |
//! | [`node_image`] | which image the nodes have |
//! | [`config`] | the clusters' configurations |
//! | [`cluster`] | one cluster |
//! | [`image`], [`libraries`] | images of local programs |
//! | [`given`] | an image that somebody gives |
//! | [`network`] | routes and names between the sites |
//! | [`hub`] | the hub as a container |
//! | [`operator`] | the operator under test as a Deployment |
//! | [`follow`] | the operator's log |
//! | [`error`] | what can go wrong |

pub mod belongings;
pub mod cluster;
pub mod config;
pub mod docker;
pub mod error;
pub mod federation;
pub mod follow;
pub mod given;
pub mod hub;
pub mod image;
pub mod libraries;
pub mod names;
pub mod network;
pub mod node_image;
pub mod operator;
pub mod tool;

pub use docker::Docker;
pub use error::KindError;
pub use names::Names;
