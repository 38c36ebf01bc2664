import { mostTries, suspectAfter } from '../../run/run/served/tries.ts'
import type { SegmentPlace } from '../../run/store/segments/pointer.ts'
import { type Batch, makeBatch } from './batch.ts'
import type { Database } from './database.ts'
import { joined, moreChannel, overChannel, quickly } from './placing.ts'
import type { RunConfig, RunPrint } from './run-row.ts'

/** An attempt or a group that a worker holds, under a number that nobody else is ever given. */
export interface Leased {
  readonly run: string
  readonly id: string
  readonly lease: string
  readonly work: Buffer
  /** How many attempts it has, if it is a whole group. */
  readonly members: number | null
}

/** Where turns lie, and the lease under which they were made: of the attempt, or of its group. */
interface TurnsLeased extends SegmentPlace {
  readonly of: string
  readonly lease: string
}

/** A run as a worker sees it. */
export interface RunState {
  readonly id: string
  readonly paused: boolean
  readonly epoch: number
  readonly version: number | null
  /** Whether attempts wait, and whether one waits that must be made alone. */
  readonly waiting: boolean
  readonly suspect: boolean
}

/** How a worker is doing. */
export interface Load {
  readonly running: number
  readonly done: number
  readonly refused: number
  readonly sampled: number
  readonly leaving: boolean
}

/** What a worker says of itself. */
export interface Presence {
  readonly host: string
  /** Attempts at one time. */
  readonly concurrency: number
  /** @default 1 */
  readonly threads?: number
  /** Seconds without a sign of life after which it counts as lost. */
  readonly lease: number
}

/** Bytes of results that are sent at one time. */
const mostSent = 4_000_000

/** How often an attempt is not blamed for a worker that turned out to be only silent. */
const mostForgiven = 16

/** A result that is to be written. */
interface Result {
  readonly leased: Leased
  readonly bytes: Buffer
  /** Whether more of it comes. */
  readonly isPart: boolean
  /** Called with whether the result was accepted. */
  resolve(isTaken: boolean): void
  reject(error: unknown): void
}

/** What a worker asks the database for: its side of the queue. */
export class Leasing {
  readonly #database: Database
  readonly #worker: string
  readonly #results: Batch<Result>

  constructor(database: Database, worker: string) {
    this.#database = database
    this.#worker = worker
    this.#results = makeBatch<Result>(results => this.#write(results), {
      most: mostSent,
      size: ({ bytes }) => bytes.length,
      about: ({ leased }) => leased.lease,
      onError: () => undefined,
    })
  }

  /** Makes the worker known. */
  async enter(about: Presence): Promise<void> {
    await this.#database.query(
      `INSERT INTO espalier.worker (id, host, process, concurrency, threads, lease_seconds, lease_until)
       VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $6 * interval '1 second')
       ON CONFLICT (id) DO NOTHING`,
      [this.#worker, about.host, process.pid, about.concurrency, about.threads ?? 1, about.lease],
    )
  }

  async leave(): Promise<void> {
    await this.#database.query('DELETE FROM espalier.worker WHERE id = $1', [this.#worker])
  }

  /** Renews the lease on everything the worker holds; says whether it still had it. */
  async beat({ running, done, refused, sampled, leaving }: Load): Promise<boolean> {
    const rows = await this.#database.query(
      `WITH ${quickly} UPDATE espalier.worker
       SET lease_until = clock_timestamp() + lease_seconds * interval '1 second',
         running = $2, done = $3, refused = $4, sampled = $5, leaving = $6
       FROM quick WHERE id = $1 AND NOT lost RETURNING id`,
      [this.#worker, running, done, refused, sampled, leaving],
    )
    return rows.length > 0
  }

  /** What the database says the worker holds. */
  async held(): Promise<readonly { readonly lease: string }[]> {
    return await this.#database.query(
      "SELECT lease FROM espalier.attempt WHERE worker = $1 AND state = 'leased'",
      [this.#worker],
    )
  }

  /** The runs that can be served, and whether anything waits in them. */
  async runs(): Promise<readonly RunState[]> {
    return await this.#database.query(
      `SELECT id, paused, epoch, version,
         EXISTS (SELECT 1 FROM espalier.attempt a
           WHERE a.run = r.id AND a.state = 'waiting' AND a.tries < ${suspectAfter}) AS waiting,
         EXISTS (SELECT 1 FROM espalier.attempt a
           WHERE a.run = r.id AND a.state = 'waiting' AND a.tries >= ${suspectAfter}) AS suspect
       FROM espalier.run r WHERE state = 'rolling' ORDER BY id`,
    )
  }

  /** Announces more work for this worker alone. */
  get channel(): string {
    return moreChannel(this.#worker)
  }

  /** Asks to be woken when a run has more; what is claimed from now on is taken off that. */
  async want(run: string, attempts: number): Promise<void> {
    await this.#database.query(
      `WITH ${quickly} UPDATE espalier.attendance SET wants = $3 FROM quick WHERE run = $1 AND worker = $2`,
      [run, this.#worker, attempts],
    )
  }

  /**
   * Claims the attempts that waited longest, and groups of them, until it has so many; skips rows that others
   * have locked. The last group may be larger than what was left.
   */
  async claim(run: string, most: number, isSuspect = false): Promise<readonly Leased[]> {
    return await this.#database.query<Leased>(
      `WITH ${quickly}, first AS (
         SELECT coalesce(members, 1) AS size FROM espalier.attempt WHERE run = $1 AND state = 'waiting'
           AND (tries >= ${suspectAfter}) = $4
         ORDER BY place LIMIT 1),
       locked AS (
         SELECT id, place, coalesce(members, 1) AS size FROM espalier.attempt WHERE run = $1 AND state = 'waiting'
           AND (tries >= ${suspectAfter}) = $4
         ORDER BY place LIMIT (SELECT ceil($2::numeric / size) FROM first) FOR UPDATE SKIP LOCKED),
       next AS (
         SELECT id, size FROM (SELECT id, size, sum(size) OVER (ORDER BY place) - size AS before FROM locked) l
         WHERE before < $2),
       settled AS (
         UPDATE espalier.attendance SET wants = greatest(0, wants - n) FROM (SELECT sum(size) AS n FROM next) c
         WHERE run = $1 AND worker = $3 AND wants > 0 AND n > 0)
       UPDATE espalier.attempt a
       SET state = 'leased', worker = $3, lease = nextval('espalier.lease'), tries = tries + 1
       FROM next, quick WHERE a.run = $1 AND a.id = next.id
         AND EXISTS (SELECT 1 FROM espalier.worker WHERE id = $3 AND NOT lost)
       RETURNING a.run, a.id, a.lease, a.work, a.members`,
      [run, most, this.#worker, isSuspect],
    )
  }

  /** Writes a result; refused if the lease is no longer this worker's. */
  finish(leased: Leased, bytes: Buffer): Promise<boolean> {
    return this.#add(leased, bytes, false)
  }

  /** Writes a part of what is leased; refused if the lease is no longer this worker's. */
  keep(leased: Leased, bytes: Buffer): Promise<boolean> {
    return this.#add(leased, bytes, true)
  }

  #add(leased: Leased, bytes: Buffer, isPart: boolean): Promise<boolean> {
    return new Promise((resolve, reject) =>
      this.#results.add({ leased, bytes, isPart, resolve, reject }),
    )
  }

  /** Results that come during a write go together in the next one, with one wait for the disk. */
  async #write(results: readonly Result[]): Promise<void> {
    try {
      const taken = new Set(await this.#writeAll(results))
      for (const { leased, resolve } of results) resolve(taken.has(nameOf(leased)))
    } catch (error) {
      if (results.length === 1) results[0]!.reject(error)
      // One that cannot be written keeps no other from it.
      else for (const each of results) await this.#write([each])
    }
  }

  async #writeAll(results: readonly Result[]): Promise<readonly string[]> {
    const { bytes, starts, sizes } = joined(results.map(result => result.bytes))
    const rows = await this.#database.query<Pick<Leased, 'run' | 'id'>>(
      `WITH given AS (
         SELECT * FROM unnest($3::text[], $4::text[], $5::bigint[], $6::integer[], $7::integer[], $8::boolean[])
           AS g (run, id, lease, start, size, part)),
       done AS (
         UPDATE espalier.attempt a SET state = 'done', result = substr($2::bytea, g.start, g.size) FROM given g
         WHERE NOT g.part AND a.run = g.run AND a.id = g.id AND a.lease = g.lease AND a.worker = $1 AND a.state = 'leased'
         RETURNING a.run, a.id),
       kept AS (
         INSERT INTO espalier.piece (run, id, result)
         SELECT a.run, a.id, substr($2::bytea, g.start, g.size) FROM given g JOIN espalier.attempt a
           ON a.run = g.run AND a.id = g.id AND a.lease = g.lease AND a.worker = $1 AND a.state = 'leased'
         WHERE g.part FOR SHARE OF a RETURNING run, id),
       written AS (SELECT * FROM done UNION ALL SELECT * FROM kept),
       told AS (SELECT pg_notify('${overChannel('')}' || run, '') FROM (SELECT DISTINCT run FROM written) d)
       SELECT run, id FROM written, (SELECT count(*) FROM told) t`,
      [
        this.#worker,
        bytes,
        results.map(({ leased }) => leased.run),
        results.map(({ leased }) => leased.id),
        results.map(({ leased }) => leased.lease),
        starts,
        sizes,
        results.map(({ isPart }) => isPart),
      ],
    )
    return rows.map(nameOf)
  }

  /** Says where turns lie of attempts that the worker still holds; gives whether there is one. */
  async keepTurns(run: string, turns: readonly TurnsLeased[]): Promise<boolean> {
    const rows = await this.#database.query(
      `WITH ${quickly} INSERT INTO espalier.turns (run, id, digest, segment, start, size, sum)
       SELECT $1, g.id, a.digest, g.segment, g.start, g.size, g.sum
       FROM unnest($3::text[], $4::text[], $5::bigint[], $6::text[], $7::integer[], $8::integer[], $9::bigint[])
         AS g (id, leased, lease, segment, start, size, sum)
       JOIN espalier.attempt a ON a.run = $1 AND a.id = g.leased AND a.lease = g.lease AND a.worker = $2, quick RETURNING 1`,
      [
        run,
        this.#worker,
        turns.map(({ id }) => id),
        turns.map(({ of }) => of),
        turns.map(({ lease }) => lease),
        turns.map(({ segment }) => segment),
        turns.map(({ offset }) => offset),
        turns.map(({ size }) => size),
        turns.map(({ sum }) => sum),
      ],
    )
    return rows.length > 0
  }

  /** Where turns lie of attempts that are made from the same things. */
  async turnsOf(
    run: string,
    wanted: readonly Pick<TurnsLeased, 'id' | 'of'>[],
  ): Promise<readonly (SegmentPlace & Pick<TurnsLeased, 'of'>)[]> {
    return await this.#database.query(
      `SELECT g.leased AS of, t.id, t.segment, t.start AS offset, t.size, t.sum::float8 AS sum
       FROM unnest($2::text[], $3::text[]) AS g (id, leased)
       JOIN espalier.attempt a ON a.run = $1 AND a.id = g.leased
       JOIN espalier.turns t ON t.run = $1 AND t.id = g.id AND t.digest = a.digest ORDER BY t.place`,
      [run, wanted.map(({ id }) => id), wanted.map(({ of }) => of)],
    )
  }

  /** Forgets where turns lie; gives the segments of which nothing is needed any more. */
  async forgetTurns(run: string, ids: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#database.query<{ segment: string }>(
      `WITH ${quickly}, gone AS (
         DELETE FROM espalier.turns USING quick WHERE run = $1 AND id = ANY($2::text[]) RETURNING segment)
       SELECT DISTINCT segment FROM gone WHERE NOT EXISTS (
         SELECT 1 FROM espalier.turns t WHERE t.run = $1 AND t.segment = gone.segment AND t.id <> ALL($2::text[]))`,
      [run, ids],
    )
    return rows.map(({ segment }) => segment)
  }

  /** Reports that an attempt failed here; it is tried again, up to the limit of tries. A group is not. */
  async fail({ run, id, lease }: Leased, reason: string): Promise<void> {
    await this.#database.query(
      `WITH failed AS (
         UPDATE espalier.attempt SET worker = NULL, lease = NULL, reason = $4,
           state = CASE WHEN members > 0 OR tries >= ${mostTries} THEN 'failed' ELSE 'waiting' END
         WHERE run = $1 AND id = $2 AND lease = $3 AND state = 'leased' RETURNING state)
       SELECT CASE state WHEN 'failed' THEN pg_notify($5, '') ELSE espalier.wake($1, 1) END FROM failed`,
      [run, id, lease, reason, overChannel(run)],
    )
  }

  /** Gives attempts back as if they had never been taken; a group of which a part is kept is over. */
  async giveBack(leases: readonly string[]): Promise<void> {
    await this.#database.query(
      `WITH back AS (
         UPDATE espalier.attempt a SET worker = NULL, lease = NULL, tries = tries - 1, state = CASE WHEN members > 0
           AND EXISTS (SELECT 1 FROM espalier.piece p WHERE p.run = a.run AND p.id = a.id) THEN 'failed' ELSE 'waiting' END
         WHERE worker = $1 AND lease = ANY($2::bigint[]) AND state = 'leased' RETURNING run)
       SELECT espalier.wake(run, count(*)), pg_notify($3 || run, '') FROM back GROUP BY run`,
      [this.#worker, leases, overChannel('')],
    )
  }

  /** Reports that a worker counted as dead is alive: its attempts are not blamed for it, up to a limit. */
  async forgive(held: readonly Pick<Leased, 'run' | 'id'>[]): Promise<void> {
    await this.#database.query(
      `UPDATE espalier.attempt a SET tries = greatest(0, tries - 1), forgiven = forgiven + 1
       FROM unnest($1::text[], $2::text[]) AS g (run, id)
       WHERE a.run = g.run AND a.id = g.id AND a.state IN ('waiting', 'leased') AND a.forgiven < ${mostForgiven}`,
      [held.map(({ run }) => run), held.map(({ id }) => id)],
    )
  }

  /** Joins a run: from now on its coordinator waits for this worker when weights change. */
  async attend(run: string): Promise<void> {
    await this.#database.query(
      `INSERT INTO espalier.attendance (run, worker) SELECT id, $2 FROM espalier.run WHERE id = $1
       ON CONFLICT DO NOTHING`,
      [run, this.#worker],
    )
  }

  async refuse(run: string, reason: string): Promise<void> {
    await this.#database.query(
      'UPDATE espalier.attendance SET refusal = $3 WHERE run = $1 AND worker = $2',
      [run, this.#worker, reason],
    )
  }

  /** Confirms that nothing is sampled for a run any more, as the pause of this number asked. */
  async acknowledge(run: string, epoch: number): Promise<void> {
    await this.#database.query(
      `WITH heard AS (
         UPDATE espalier.attendance SET epoch = $3 WHERE run = $1 AND worker = $2 RETURNING run)
       SELECT pg_notify($4, '') FROM heard`,
      [run, this.#worker, epoch, overChannel(run)],
    )
  }

  /** What a run is rolled with. */
  async settingsOf(run: string) {
    const [row] = await this.#database.query<{
      config: RunConfig
      fingerprint: RunPrint
      name: string
    }>('SELECT name, config, fingerprint FROM espalier.run WHERE id = $1', [run])
    return row
  }

  /** The weights of a run, if it has some of its own. */
  async weights(run: string): Promise<Buffer | null> {
    const [row] = await this.#database.query<{ weights: Buffer | null }>(
      'SELECT weights FROM espalier.run WHERE id = $1',
      [run],
    )
    return row?.weights ?? null
  }
}

const nameOf = ({ run, id }: Pick<Leased, 'run' | 'id'>): string => `${run} ${id}`
