import { type GroupId, type TreeId, treeId } from '../../base/core/ids.ts'
import type { Work } from '../../run/run/elsewhere.ts'
import type { SegmentPlace } from '../../run/store/segments/pointer.ts'
import { type RunStorage, removeTurns } from '../../run/store/segments/storage.ts'
import { groupOf } from '../../run/store/store.ts'
import { makeBatch } from './batch.ts'
import type { Leased, Leasing } from './leasing.ts'

/** What turns are kept with. */
export interface TurnsOptions {
  readonly leasing: () => Leasing
  readonly run: string
  readonly storage: RunStorage
  /** What of the run is held here. */
  readonly held: () => readonly Leased[]
}

type Begun = NonNullable<Work['begun']>

/** Where turns of one run's unfinished attempts lie, as its workers tell each other through the database. */
export class Turns {
  readonly #options: TurnsOptions
  /** Attempts that are made here and of which turns are kept. */
  readonly #known = new Set<string>()
  readonly #over = makeBatch<string>(ids => this.#forget(ids), {
    most: 256,
    about: id => id,
    // They stay until the run is over.
    onError: () => undefined,
  })

  constructor(options: TurnsOptions) {
    this.#options = options
  }

  /** Where turns lie that others made of what was claimed, by the name of what was claimed. */
  async begun(claimed: readonly Leased[]): Promise<ReadonlyMap<string, Begun>> {
    const begun = new Map<string, Map<TreeId, SegmentPlace[]>>()
    if (claimed.length === 0) return begun
    const { leasing, run } = this.#options
    const wanted = claimed.flatMap(leased => idsOf(leased).map(id => ({ id, of: leased.id })))
    for (const { of, ...place } of await leasing().turnsOf(run, wanted)) {
      this.#known.add(place.id)
      const attempts = begun.get(of) ?? new Map<TreeId, SegmentPlace[]>()
      attempts.set(place.id, [...(attempts.get(place.id) ?? []), place])
      begun.set(of, attempts)
    }
    return begun
  }

  /** Tells the others where turns lie of what is held here: those of one segment. */
  keep(places: readonly SegmentPlace[]): void {
    // What nobody is told of is rolled again.
    this.#keep(places).catch(() => undefined)
  }

  /** The result of an attempt is in the database, so that nobody needs its turns. */
  over(id: string): void {
    if (this.#known.delete(id)) this.#over.add(id)
  }

  async #keep(places: readonly SegmentPlace[]): Promise<void> {
    const { leasing, run, held, storage } = this.#options
    const leases = new Map(held().map(leased => [leased.id, leased]))
    const kept = places.flatMap(place => {
      const leased = leases.get(place.id) ?? leases.get(groupOf(place.id))
      return leased ? [{ ...place, of: leased.id, lease: leased.lease }] : []
    })
    for (const { id } of kept) this.#known.add(id)
    const isNeeded = kept.length > 0 && (await leasing().keepTurns(run, kept))
    if (!isNeeded) await removeTurns(storage, [places[0]!.segment])
  }

  async #forget(ids: readonly string[]): Promise<void> {
    const { leasing, run, storage } = this.#options
    await removeTurns(storage, await leasing().forgetTurns(run, ids))
  }
}

/** The names of the attempts that were leased together. */
function idsOf({ id, members }: Leased): readonly TreeId[] {
  if (members === null) return [id as TreeId]
  return Array.from({ length: members }, (_, member) => treeId(id as GroupId, member))
}
