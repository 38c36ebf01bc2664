import { setTimeout as wait } from 'node:timers/promises'
import type { WorkerStatus } from '../../run/watch/events.ts'
import type { Database } from './database.ts'
import { workChannel } from './placing.ts'
import type { Fingerprint } from './prints/fingerprint.ts'

/** What a coordinator announces of its run. */
export interface Announced {
  readonly name: string
  readonly config: RunConfig
  readonly fingerprint: RunPrint
}

/** What workers open a run with. */
export interface RunConfig {
  readonly settings: Readonly<Record<string, unknown>>
  /** The date that chat templates write. */
  readonly today: string
  /** Where workers put large trees. @default nowhere */
  readonly segments?: string
}

/** What must be equal on every machine: what a run is opened from, and what is seen of it once it is open. */
export interface RunPrint {
  readonly code: Fingerprint
  readonly opened: Fingerprint
}

/** A coordinator that gives no sign of life for so many milliseconds is dead: it gives one every second. */
const silence = 15_000

const steadyClock = {
  now: () => performance.now(),
  wait: (milliseconds: number) => wait(milliseconds),
}

/**
 * Whether a coordinator leads a run: its sign of life moves while it is watched, by the clock of whoever watches.
 * Undefined if the run is not known here.
 */
export async function isLed(
  database: Database,
  run: string,
  { now, wait } = steadyClock,
): Promise<boolean | undefined> {
  const look = async (): Promise<string | undefined> => {
    const [row] = await database.query<{ seen: string }>(
      "SELECT CASE state WHEN 'rolling' THEN seen::text ELSE '' END AS seen FROM espalier.run WHERE id = $1",
      [run],
    )
    return row?.seen
  }
  const first = await look()
  if (first === undefined) return undefined
  const begun = now()
  while (first !== '' && now() - begun < silence) {
    await wait(silence / 15)
    if ((await look()) !== first) return true
  }
  return false
}

/** Opens the row of a run, which workers find it by. */
export function openRunRow(database: Database, run: string, coordinator: string) {
  return {
    /** Makes the run known, or takes it over from a coordinator that is gone. */
    async enter({ name, config, fingerprint }: Announced): Promise<void> {
      await database.query(
        `WITH entered AS (
           INSERT INTO espalier.run (id, name, config, fingerprint, coordinator) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (id) DO UPDATE SET name = excluded.name, config = excluded.config,
             fingerprint = excluded.fingerprint, coordinator = excluded.coordinator,
             state = 'rolling', paused = false, epoch = run.epoch + 1, seen = clock_timestamp()
           RETURNING id)
         SELECT pg_notify($6, id) FROM entered`,
        [run, name, JSON.stringify(config), JSON.stringify(fingerprint), coordinator, workChannel],
      )
    },
    /** The segments of turns that nobody removed. */
    async turnSegments(): Promise<readonly string[]> {
      const rows = await database.query<{ segment: string }>(
        'SELECT DISTINCT segment FROM espalier.turns WHERE run = $1',
        [run],
      )
      return rows.map(({ segment }) => segment)
    },
    /** Renews the coordinator's sign of life; false if another one has taken the run. */
    async beat(): Promise<boolean> {
      const rows = await database.query(
        'UPDATE espalier.run SET seen = clock_timestamp() WHERE id = $1 AND coordinator = $2 RETURNING id',
        [run, coordinator],
      )
      return rows.length > 0
    },
    /** Removes the run and all its attempts. */
    async remove(): Promise<void> {
      await database.query(
        `WITH gone AS (DELETE FROM espalier.run WHERE id = $1 AND coordinator = $2 RETURNING id)
         SELECT pg_notify($3, id) FROM gone`,
        [run, coordinator, workChannel],
      )
    },
    /** Workers take nothing more of it; what is over stays for a resumed run. */
    async stop(): Promise<void> {
      await database.query(
        `WITH stopped AS (
           UPDATE espalier.run SET state = 'stopped' WHERE id = $1 AND coordinator = $2 RETURNING id)
         SELECT pg_notify($3, id) FROM stopped`,
        [run, coordinator, workChannel],
      )
    },
    /** Asks all workers to stop sampling; returns the number with which they confirm it. */
    async pause(): Promise<number> {
      const [row] = await database.query<{ epoch: number }>(
        `WITH paused AS (
           UPDATE espalier.run SET epoch = epoch + 1, paused = true WHERE id = $1 RETURNING epoch)
         SELECT epoch, pg_notify($2, $1) FROM paused`,
        [run, workChannel],
      )
      return row!.epoch
    },
    /** How many live workers have not confirmed yet. */
    async stillSampling(epoch: number): Promise<number> {
      const [row] = await database.query<{ count: number }>(
        `SELECT count(*)::integer AS count FROM espalier.attendance t
         JOIN espalier.worker w ON w.id = t.worker
         WHERE t.run = $1 AND t.epoch < $2 AND t.refusal IS NULL AND NOT w.lost`,
        [run, epoch],
      )
      return row!.count
    },
    /** Lets workers go on, under these weights if they have changed. */
    async resume(version: number | undefined, weights: Uint8Array | undefined): Promise<void> {
      await database.query(
        `WITH resumed AS (
           UPDATE espalier.run SET epoch = epoch + 1, paused = false,
             version = coalesce($2, version), weights = coalesce($3, weights)
           WHERE id = $1 RETURNING id)
         SELECT pg_notify($4, id) FROM resumed`,
        [run, version ?? null, weights ?? null, workChannel],
      )
    },
    /** The workers that came to the run. */
    async workers(): Promise<readonly WorkerStatus[]> {
      return await database.query<WorkerStatus>(
        `SELECT w.id, w.host, w.process, w.concurrency, w.threads, w.running, w.done::integer AS done,
           w.refused::integer AS refused, w.sampled::float8 AS sampled, w.leaving,
           extract(epoch FROM clock_timestamp() - w.started)::float8 AS seconds,
           greatest(0, extract(epoch FROM clock_timestamp() - w.lease_until) + w.lease_seconds)::float8 AS silent,
           t.refusal
         FROM espalier.attendance t JOIN espalier.worker w ON w.id = t.worker
         WHERE t.run = $1 AND NOT w.lost ORDER BY w.started, w.id`,
        [run],
      )
    },
  }
}

/** The row of a run. */
export type RunRow = ReturnType<typeof openRunRow>
