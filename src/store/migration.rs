//! The tables, brought up to date at start. The SQL itself is in `migrations/`.

use super::StoreError;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{SqlStr, SqlitePool};

const SQLITE: &[(i64, &str, &str)] = &[
    (1, "settings", include_str!("../../migrations/sqlite/0001_settings.sql")),
    (2, "intake", include_str!("../../migrations/sqlite/0002_intake.sql")),
    (3, "incidents", include_str!("../../migrations/sqlite/0003_incidents.sql")),
    (4, "digests", include_str!("../../migrations/sqlite/0004_digests.sql")),
    (5, "outbox", include_str!("../../migrations/sqlite/0005_outbox.sql")),
    (6, "symptoms", include_str!("../../migrations/sqlite/0006_symptoms.sql")),
    (7, "letter groups", include_str!("../../migrations/sqlite/0007_letter_groups.sql")),
    (8, "untold windows", include_str!("../../migrations/sqlite/0008_untold.sql")),
    (9, "versions of incidents", include_str!("../../migrations/sqlite/0009_incident_versions.sql")),
    (10, "incidents of dead letters", include_str!("../../migrations/sqlite/0010_letter_incidents.sql")),
];

/// Runs what has not run yet.
pub async fn run(pool: &SqlitePool) -> Result<(), StoreError> {
    let migrations = SQLITE
        .iter()
        .map(|(version, name, sql)| {
            Migration::new(*version, (*name).into(), MigrationType::Simple, SqlStr::from_static(sql), false)
        })
        .collect();
    Migrator::with_migrations(migrations).run(pool).await?;
    Ok(())
}
