import { mostTries } from '../../run/run/served/tries.ts'
import type { Database } from './database.ts'

/** Announces to every worker that a run has changed. */
export const workChannel = 'espalier_work'
/** Announces to one worker that a run, named by the payload, has work for it. */
export const moreChannel = (worker: string): string => `${workChannel}_${worker}`
/** Announces to the coordinator of a run that something of it is over. */
export const overChannel = (run: string): string => `espalier_over_${run}`

/** An attempt or a group that is put on the queue. */
export interface Placed {
  readonly id: string
  readonly work: Buffer
  readonly digest: string
  /** How many attempts a group has. @default it is an attempt */
  readonly members?: number
  /** How often it was in the hands of somebody who is gone. @default 0 */
  readonly tries?: number
}

/** An attempt or a group that is over, or a part of a group that is made. */
export interface Over {
  readonly id: string
  readonly digest: string
  readonly state: 'done' | 'failed' | 'part'
  readonly tries: number
  readonly reason: string | null
  readonly result: Buffer | null
  /** The number of the part. */
  readonly part: string | null
  /** Whether images of the run wait that the coordinator has not taken; its own may be among them. */
  readonly imagesWait: boolean
}

/** What the coordinator holds already, or cannot use (yet). */
export interface InHand {
  readonly ids: readonly string[]
  readonly parts: readonly string[]
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
           INSERT INTO espalier.attempt (run, id, work, digest, members, tries)
           SELECT $1, id, substr($3::bytea, start, size), digest, members, tries
           FROM unnest($2::text[], $4::integer[], $5::integer[], $6::text[], $7::integer[], $8::integer[])
             AS p (id, start, size, digest, members, tries)
           ON CONFLICT (run, id) DO UPDATE SET work = excluded.work, digest = excluded.digest,
             members = excluded.members, state = 'waiting', worker = NULL, lease = NULL, tries = 0,
             reason = NULL, result = NULL
           WHERE attempt.digest <> excluded.digest RETURNING id, members),
         outdated AS (
           DELETE FROM espalier.piece USING placed
           WHERE run = $1 AND piece.id = placed.id AND placed.members > 0)
         SELECT espalier.wake($1, n) FROM (SELECT count(*) AS n FROM placed) p WHERE n > 0`,
        [
          run,
          placed.map(({ id }) => id),
          bytes,
          starts,
          sizes,
          placed.map(({ digest }) => digest),
          placed.map(({ members }) => members ?? null),
          placed.map(({ tries }) => tries ?? 0),
        ],
      )
    },
    /** What is over, except what the coordinator already holds: the parts of a group before its end. */
    async over({ ids, parts }: InHand, most: number): Promise<readonly Over[]> {
      return await database.query<Over>(
        `SELECT o.*, EXISTS (SELECT 1 FROM espalier.image WHERE run = $1 AND NOT taken) AS "imagesWait" FROM (
         (SELECT p.id, a.digest, 'part' AS state, a.tries, NULL AS reason, p.result, p.place::text AS part
          FROM espalier.piece p JOIN espalier.attempt a ON a.run = p.run AND a.id = p.id
          WHERE p.run = $1 AND p.place <> ALL($4::bigint[]) ORDER BY p.place LIMIT $3)
         UNION ALL
         (SELECT id, digest, state, tries, reason, result, NULL FROM espalier.attempt
          WHERE run = $1 AND state IN ('done', 'failed') AND id <> ALL($2::text[])
          ORDER BY place LIMIT $3) LIMIT $3) o`,
        [run, ids, most, parts],
      )
    },
    ...makeGroups(database, run),
    /** Forgets attempts that the journal has. */
    async taken(ids: readonly string[]): Promise<void> {
      await database.query(
        `WITH ${quickly} DELETE FROM espalier.attempt USING quick WHERE run = $1 AND id = ANY($2::text[])`,
        [run, ids],
      )
    },
    /** Puts back what has a result that cannot be taken; it counts as a try. A group is over with it. */
    async refuse(id: string, reason: string): Promise<void> {
      await database.query(
        `WITH back AS (
           UPDATE espalier.attempt SET worker = NULL, lease = NULL, result = NULL, reason = $3,
             state = CASE WHEN members > 0 OR tries >= ${mostTries} THEN 'failed' ELSE 'waiting' END
           WHERE run = $1 AND id = $2 AND (state = 'done' OR members > 0) RETURNING state)
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
             state = CASE WHEN a.members > 0 OR a.tries >= $2 THEN 'failed' ELSE 'waiting' END,
             reason = format('%s workers died or were cut off while they rolled it, the last one on %s', a.tries,
               coalesce((SELECT w.host FROM espalier.worker w WHERE w.id = a.worker), 'a machine that is gone'))
           WHERE a.run = $1 AND a.state = 'leased'
             AND NOT EXISTS (SELECT 1 FROM espalier.worker w WHERE w.id = a.worker AND NOT w.lost)
           RETURNING a.id, CASE WHEN a.members > 0 THEN 'broken' ELSE a.state END AS state),
         woken AS (SELECT espalier.wake($1, n) FROM (SELECT count(*) AS n FROM back) b WHERE n > 0)
         SELECT id, state FROM back, (SELECT count(*) FROM woken) w`,
        [run, mostTries],
      )
    },
  }
}

/** What a coordinator asks of groups. */
function makeGroups(database: Database, run: string) {
  return {
    /** Forgets parts that the journal has. */
    async takenParts(parts: readonly string[]): Promise<void> {
      await database.query(
        `WITH ${quickly} DELETE FROM espalier.piece USING quick WHERE run = $1 AND place = ANY($2::bigint[])`,
        [run, parts],
      )
    },
    /** The groups that are on the queue from before. */
    async groups(): Promise<readonly string[]> {
      const rows = await database.query<{ id: string }>(
        'SELECT id FROM espalier.attempt WHERE run = $1 AND members > 0',
        [run],
      )
      return rows.map(({ id }) => id)
    },
    /** Ends a group that nobody asks for whole any more; gives what came of it. What is there stays until the run is over. */
    async apart(id: string): Promise<readonly Pick<Over, 'digest' | 'result'>[]> {
      await database.query(
        `WITH ended AS (
           UPDATE espalier.attempt SET state = 'failed', worker = NULL, lease = NULL
           WHERE run = $1 AND id = $2 AND state IN ('waiting', 'leased') RETURNING 1)
         SELECT pg_notify($3, $1) FROM ended`,
        [run, id, workChannel],
      )
      return await database.query<Pick<Over, 'digest' | 'result'>>(
        `SELECT a.digest, unnest(array_append(array_agg(p.result), a.result)) AS result
         FROM espalier.attempt a LEFT JOIN espalier.piece p ON p.run = a.run AND p.id = a.id
         WHERE a.run = $1 AND a.id = $2 GROUP BY a.digest, a.result`,
        [run, id],
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
