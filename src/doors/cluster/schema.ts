import type { Database } from './database.ts'

/** Changes of the schema in order. Never edit one that was published; append another. */
const migrations: readonly string[] = [
  `
  CREATE TABLE espalier.run (
    id text PRIMARY KEY,
    name text NOT NULL,
    config jsonb NOT NULL,
    fingerprint jsonb NOT NULL,
    coordinator text NOT NULL,
    seen timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL DEFAULT 'rolling' CHECK (state IN ('rolling', 'stopped')),
    paused boolean NOT NULL DEFAULT false,
    epoch integer NOT NULL DEFAULT 0,
    version integer,
    weights bytea
  );
  CREATE TABLE espalier.worker (
    id text PRIMARY KEY,
    host text NOT NULL,
    process integer NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_seconds double precision NOT NULL,
    lease_until timestamptz NOT NULL,
    lost boolean NOT NULL DEFAULT false,
    leaving boolean NOT NULL DEFAULT false,
    concurrency integer NOT NULL,
    running integer NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0,
    sampled bigint NOT NULL DEFAULT 0
  );
  CREATE TABLE espalier.attendance (
    run text NOT NULL REFERENCES espalier.run ON DELETE CASCADE,
    worker text NOT NULL REFERENCES espalier.worker ON DELETE CASCADE,
    epoch integer NOT NULL DEFAULT -1,
    refusal text,
    PRIMARY KEY (run, worker)
  );
  CREATE SEQUENCE espalier.lease;
  CREATE TABLE espalier.attempt (
    run text NOT NULL REFERENCES espalier.run ON DELETE CASCADE,
    id text NOT NULL,
    place bigserial,
    work bytea NOT NULL,
    digest text NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'leased', 'done', 'failed')),
    worker text,
    lease bigint,
    tries integer NOT NULL DEFAULT 0,
    reason text,
    result bytea,
    PRIMARY KEY (run, id)
  ) WITH (fillfactor = 70);
  ALTER TABLE espalier.attempt ALTER COLUMN result SET STORAGE EXTERNAL;
  CREATE INDEX attempt_waiting ON espalier.attempt (run, place) WHERE state = 'waiting';
  CREATE INDEX attempt_leased ON espalier.attempt (worker) WHERE state = 'leased';
  CREATE INDEX attempt_over ON espalier.attempt (run, place) WHERE state IN ('done', 'failed');
  `,
  'ALTER TABLE espalier.attempt ADD COLUMN forgiven integer NOT NULL DEFAULT 0',
  // A worker that found too little wants so much more, and is woken by its own channel once there is some.
  `
  ALTER TABLE espalier.attendance ADD COLUMN wants integer NOT NULL DEFAULT 0;
  CREATE INDEX attendance_hungry ON espalier.attendance (run) WHERE wants > 0;
  CREATE FUNCTION espalier.wake(of_run text, most bigint) RETURNS void LANGUAGE sql AS $wake$
    WITH hungry AS (
      SELECT t.worker FROM espalier.attendance t JOIN espalier.worker w ON w.id = t.worker
      WHERE t.run = of_run AND t.wants > 0 AND t.refusal IS NULL AND NOT w.lost AND NOT w.leaving
      ORDER BY t.wants DESC LIMIT most FOR UPDATE OF t),
    woken AS (
      UPDATE espalier.attendance t SET wants = 0 FROM hungry
      WHERE t.run = of_run AND t.worker = hungry.worker RETURNING t.worker)
    SELECT pg_notify('espalier_work_' || worker, of_run) FROM woken
  $wake$;
  `,
  // A row may be a whole group, whose finished members come in pieces before its result.
  `
  ALTER TABLE espalier.attempt ADD COLUMN members integer;
  ALTER TABLE espalier.worker ADD COLUMN threads integer NOT NULL DEFAULT 1;
  CREATE TABLE espalier.piece (
    run text NOT NULL,
    id text NOT NULL,
    place bigserial,
    result bytea NOT NULL,
    PRIMARY KEY (run, place),
    FOREIGN KEY (run, id) REFERENCES espalier.attempt ON DELETE CASCADE
  );
  ALTER TABLE espalier.piece ALTER COLUMN result SET STORAGE EXTERNAL;
  CREATE INDEX piece_of ON espalier.piece (run, id);
  `,
  // Images that workers showed: their bytes, or where those lie, until the coordinator has taken them.
  `
  CREATE TABLE espalier.image (
    run text NOT NULL REFERENCES espalier.run ON DELETE CASCADE,
    digest text NOT NULL,
    size integer NOT NULL,
    bytes bytea,
    segment text,
    start bigint,
    taken boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run, digest)
  );
  ALTER TABLE espalier.image ALTER COLUMN bytes SET STORAGE EXTERNAL;
  CREATE INDEX image_waiting ON espalier.image (run) WHERE NOT taken;
  `,
  // Where turns of unfinished attempts lie in the segments of a run; whoever goes on with one reads them in their order.
  `
  CREATE TABLE espalier.turns (
    run text NOT NULL REFERENCES espalier.run ON DELETE CASCADE,
    id text NOT NULL,
    digest text NOT NULL,
    place bigserial,
    segment text NOT NULL,
    start integer NOT NULL,
    size integer NOT NULL,
    sum bigint NOT NULL
  );
  CREATE INDEX turns_of ON espalier.turns (run, id);
  CREATE INDEX turns_in ON espalier.turns (run, segment);
  `,
]

/** The version of the schema that this program knows. */
export const schemaVersion = migrations.length

/** The advisory lock under which the schema is changed; the number is arbitrary. */
const schemaLock = 0x65_73_70_61

/** Makes the schema, or brings it up to date; one of a newer program is refused. */
export async function migrate(database: Database, wanted = schemaVersion): Promise<void> {
  const found = await versionOf(database)
  if (found === wanted) return
  if (found > wanted) {
    throw new Error(
      `the database has schema espalier version ${found}; this program knows ${wanted}. Use the newer espalier everywhere`,
    )
  }
  const steps = migrations.slice(found, wanted).map((text, index) => {
    const version = found + index + 1
    return `${text}; INSERT INTO espalier.migration (version) VALUES (${version});`
  })
  // One simple query is one transaction: all of it happens or nothing.
  await database.query(
    `SELECT pg_advisory_xact_lock(${schemaLock});
     CREATE SCHEMA IF NOT EXISTS espalier;
     CREATE TABLE IF NOT EXISTS espalier.migration (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
     DO $do$ BEGIN
       IF (SELECT coalesce(max(version), 0) FROM espalier.migration) = ${found} THEN
         ${steps.map(step => `EXECUTE $step$${step}$step$;`).join('\n')}
       END IF;
     END $do$`,
  )
}

/** The version that the database has; 0 if there is none. */
async function versionOf(database: Database): Promise<number> {
  const [known] = await database.query<{ found: boolean }>(
    "SELECT to_regclass('espalier.migration') IS NOT NULL AS found",
  )
  if (!known?.found) return 0
  const [row] = await database.query<{ version: number }>(
    'SELECT coalesce(max(version), 0)::integer AS version FROM espalier.migration',
  )
  return row?.version ?? 0
}

/** Days after which an abandoned run is removed. */
const keptDays = 14

/** Removes runs that nobody came back to, and workers that were lost long ago. */
export async function sweep(database: Database): Promise<void> {
  await database.query(
    `DELETE FROM espalier.run WHERE seen < clock_timestamp() - interval '${keptDays} days'`,
  )
  await database.query(
    "DELETE FROM espalier.worker WHERE lease_until < clock_timestamp() - interval '1 day'",
  )
}
