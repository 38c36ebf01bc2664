import { mostTries } from '../../run/run/served/tries.ts'
import type { Database } from './database.ts'

/** Announces to every worker that a run has changed. */
export const workChannel = 'espalier_work'
/** Announces to one worker that a run, named by the payload, has work for it. */
export const moreChannel = (worker: string): string => `${workChannel}_${worker}`
/** Announces to the coordinator of a run that something of it is over. */
export const overChannel = (run: string): string => `espalier_over_${run}`

/** An attempt that is put on the queue. */
export interface Placed {
  readonly id: string
  readonly work: Buffer
  readonly digest: string
}

/** An attempt that is over. */
export interface Over {
  readonly id: string
  readonly digest: string
  readonly state: 'done' | 'failed'
  readonly reason: string | null
  readonly result: Buffer | null
}

/**
 * Added to a statement, it is answered before it is on disk. What a crash of the server then loses is
 * done again: missing attempts are placed again, and unknown leases are given back.
 */
export const quickly = "quick AS (SELECT set_config('synchronous_commit', 'off', true))"

/** What a coordinator asks the database for, of one run. */
export type Placing = ReturnType<typeof makePlacing>

/** Opens the coordinator's side of the queue. */
export function makePlacing(database: Database, run: string) {
  return {
    /**
     * Puts attempts on the queue. One that is there already stays as it is, result included, unless its
     * digest differs. As many workers are woken as attempts were put there, of those that want some.
     */
    async place(placed: readonly Placed[]): Promise<void> {
      const { bytes, starts, sizes } = joined(placed.map(({ work }) => work))
      await database.query(
        `WITH ${quickly}, placed AS (
           INSERT INTO espalier.attempt (run, id, work, digest)
           SELECT $1, id, substr($3::bytea, start, size), digest
           FROM unnest($2::text[], $4::integer[], $5::integer[], $6::text[]) AS p (id, start, size, digest)
           ON CONFLICT (run, id) DO UPDATE SET work = excluded.work, digest = excluded.digest,
             state = 'waiting', worker = NULL, lease = NULL, tries = 0, reason = NULL, result = NULL
           WHERE attempt.digest <> excluded.digest RETURNING 1)
         SELECT espalier.wake($1, n) FROM (SELECT count(*) AS n FROM placed) p WHERE n > 0`,
        [run, placed.map(({ id }) => id), bytes, starts, sizes, placed.map(({ digest }) => digest)],
      )
    },
    /** Finished attempts, except those the coordinator already holds. */
    async over(inHand: readonly string[], most: number): Promise<readonly Over[]> {
      return await database.query<Over>(
        `SELECT id, digest, state, reason, result FROM espalier.attempt
         WHERE run = $1 AND state IN ('done', 'failed') AND id <> ALL($2::text[])
         ORDER BY place LIMIT $3`,
        [run, inHand, most],
      )
    },
    /** Forgets attempts that the journal has. */
    async taken(ids: readonly string[]): Promise<void> {
      await database.query(
        `WITH ${quickly} DELETE FROM espalier.attempt USING quick WHERE run = $1 AND id = ANY($2::text[])`,
        [run, ids],
      )
    },
    /** Puts back what has a result that cannot be taken; it counts as a try. */
    async refuse(id: string, reason: string): Promise<void> {
      await database.query(
        `WITH back AS (
           UPDATE espalier.attempt SET worker = NULL, lease = NULL, result = NULL, reason = $3,
             state = CASE WHEN tries >= ${mostTries} THEN 'failed' ELSE 'waiting' END
           WHERE run = $1 AND id = $2 AND state = 'done' RETURNING state)
         SELECT espalier.wake($1, 1) FROM back WHERE state = 'waiting'`,
        [run, id, reason],
      )
    },
    /** Withdraws unfinished attempts, and tells the workers that roll them. */
    async withdraw(ids: readonly string[]): Promise<void> {
      await database.query(
        `WITH ${quickly}, gone AS (
           DELETE FROM espalier.attempt USING quick
           WHERE run = $1 AND id = ANY($2::text[]) AND state IN ('waiting', 'leased') RETURNING worker)
         SELECT pg_notify($3, $1) WHERE EXISTS (SELECT 1 FROM gone WHERE worker IS NOT NULL)`,
        [run, ids, workChannel],
      )
    },
    /**
     * Puts back the attempts of lost workers. A worker is lost when its lease ran out and this process
     * was in contact for longer than a lease; so an outage of the database loses nobody. `stall` is
     * added to every lease.
     */
    async reap(
      contact: number,
      stall: number,
    ): Promise<readonly { readonly id: string; readonly state: string }[]> {
      await database.query(
        `UPDATE espalier.worker SET lost = true
         WHERE NOT lost AND lease_seconds < $1
           AND lease_until < clock_timestamp() - $2 * interval '1 second'`,
        [contact, stall],
      )
      return await database.query(
        `WITH back AS (
           UPDATE espalier.attempt a SET worker = NULL, lease = NULL,
             state = CASE WHEN a.tries >= $2 THEN 'failed' ELSE 'waiting' END,
             reason = format('%s workers died or were cut off while they rolled it, the last one on %s', a.tries,
               coalesce((SELECT w.host FROM espalier.worker w WHERE w.id = a.worker), 'a machine that is gone'))
           WHERE a.run = $1 AND a.state = 'leased'
             AND NOT EXISTS (SELECT 1 FROM espalier.worker w WHERE w.id = a.worker AND NOT w.lost)
           RETURNING a.id, a.state),
         woken AS (SELECT espalier.wake($1, n) FROM (SELECT count(*) AS n FROM back) b WHERE n > 0)
         SELECT id, state FROM back, (SELECT count(*) FROM woken) w`,
        [run, mostTries],
      )
    },
  }
}

/** Many byte strings as one, which the driver sends as they are; arrays of them it would spell out. */
export function joined(parts: readonly Buffer[]) {
  const starts: number[] = []
  let start = 1
  for (const { length } of parts) {
    starts.push(start)
    start += length
  }
  return { bytes: Buffer.concat(parts), starts, sizes: parts.map(({ length }) => length) }
}
