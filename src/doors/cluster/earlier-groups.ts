import type { TreeId } from '../../base/core/ids.ts'
import type { Made, Piece } from '../../run/run/elsewhere.ts'
import type { RunStorage } from '../../run/store/segments/storage.ts'
import { unpackParcel } from './parcel.ts'
import type { Placing } from './placing.ts'

/** An attempt of a group that was not finished, with the digest of what it was made from. */
interface Finished {
  readonly digest: string
  readonly made: Made
}

/**
 * Groups that were on the queue when a coordinator took a run over. One that is asked for whole goes on; of one that
 * is asked for attempt by attempt, since its other members are in the journal, the members that came are used.
 */
export class EarlierGroups {
  readonly #placing: Pick<Placing, 'apart'>
  readonly #storage: RunStorage | undefined
  readonly #groups: ReadonlySet<string>
  readonly #apart = new Map<string, Promise<ReadonlyMap<string, Finished>>>()

  constructor(
    placing: Pick<Placing, 'apart'>,
    groups: readonly string[],
    storage: RunStorage | undefined,
  ) {
    this.#placing = placing
    this.#storage = storage
    this.#groups = new Set(groups)
  }

  /** Whether attempts of a group may be there. */
  has(group: string): boolean {
    return this.#groups.has(group)
  }

  /** An attempt of a group that is asked for attempt by attempt, if it is there. */
  async find(group: string, attempt: TreeId, digest: string): Promise<Made | undefined> {
    const known = this.#apart.get(group) ?? this.#read(group)
    this.#apart.set(group, known)
    const found = (await known).get(attempt)
    return found?.digest === digest ? found.made : undefined
  }

  async #read(group: string): Promise<ReadonlyMap<string, Finished>> {
    const found = new Map<string, Finished>()
    for (const { digest, result } of await this.#placing.apart(group)) {
      const piece = result && pieceIn(result, this.#storage)
      if (!piece) continue
      for (const [index, { tree, members }] of piece.trees.entries()) {
        const made: Made = { kind: 'made', trees: [tree], members, events: [] }
        found.set(piece.notes[index]![0], { digest, made })
      }
    }
    return found
  }
}

/** What cannot be read is made again. */
function pieceIn(bytes: Buffer, storage: RunStorage | undefined): Piece | undefined {
  try {
    const parcel = unpackParcel(bytes, storage)
    return parcel.kind === 'piece' ? parcel.piece : undefined
  } catch {
    return undefined
  }
}
