//! A hub that dies at every point of its promotion, and is started again.

use harness::site::Site;
use libtest_mimic::Trial;

use crate::failover::until_taken_over;
use crate::mirroring::until_mirrored;
use crate::stage::{Launching, Role, World, trial};

/// One point before and one after each of nine steps.
const POINTS: u64 = 18;

pub fn trials() -> Vec<Trial> {
    let at = |point| {
        trial(format!("a_hub_that_died_at_point_{point}_takes_over_when_it_is_started_again"), move |world| {
            died_at(world, point)
        })
    };
    (1..=POINTS).map(at).chain([trial("a_promotion_has_as_many_points_as_are_swept", as_many)]).collect()
}

async fn died_at(world: World, point: u64) {
    let active = Launching::new(&world, "active", Site::East, Role::Active).start().await;
    world.east().seed().await;
    world.give_way(Site::West, &world.reader_of(Site::East).await).await;
    let flag = format!("--crash-at-step={point}");
    let standby = Launching::new(&world, "dying", Site::West, Role::Standby).flags(&[&flag]).start().await;
    until_mirrored(&world, &standby).await;
    active.freeze();
    let status = tokio::time::timeout(crate::stage::LIMIT, standby.child.exited()).await.unwrap();
    assert_eq!(status.code(), Some(137), "{}", standby.child.log_tail(20));
    // The Active's Lease can be read, and is frozen: the new process reads it once, and takes over after a window; or it
    // finds that it had been promoted, and leads on.
    let again = Launching::new(&world, "again", Site::West, Role::Standby).start().await;
    again.decisions.until("it leads", |it| it["decision"] == "fence" && it["open"] == true).await;
    if again.decisions.named("standing").iter().any(|it| it["standing"] == "resume") {
        crate::failover::assert_taken_over(&world, &again).await;
    } else {
        until_taken_over(&world, &again).await;
    }
    active.kill().await;
    again.stop().await;
}

async fn as_many(world: World) {
    let active = Launching::new(&world, "active", Site::East, Role::Active).start().await;
    world.east().seed().await;
    world.give_way(Site::West, &world.reader_of(Site::East).await).await;
    let flag = format!("--crash-at-step={}", POINTS + 1);
    let standby = Launching::new(&world, "standby", Site::West, Role::Standby).flags(&[&flag]).start().await;
    until_mirrored(&world, &standby).await;
    active.kill().await;
    until_taken_over(&world, &standby).await;
    standby.stop().await;
}
