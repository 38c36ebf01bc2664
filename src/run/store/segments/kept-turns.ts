import { setImmediate } from 'node:timers/promises'
import { describeCause } from '../../../base/core/failure.ts'
import { type TreeId, treeId } from '../../../base/core/ids.ts'
import {
  type AttemptEntry,
  type AttemptRecord,
  addEntry,
  emptyRecord,
  entriesFromFrame,
  entriesToFrame,
} from '../attempt-record.ts'
import { decodeFrame, encodeFrame } from '../frame.ts'
import { makeGathering } from '../gathering.ts'
import { recording } from '../replay-attempt.ts'
import { goOn, type Unfinished } from '../unfinished.ts'
import { placeOf, type SegmentPlace } from './pointer.ts'
import { follow, type RunStorage } from './storage.ts'

/**
 * Keeps the turns of attempts that are under way beside the trees of a run, so that another worker goes on from
 * there if this one dies. Whoever hears where they lie remembers it.
 */
export interface KeptTurns extends AsyncDisposable {
  /** What rolls an attempt whose earlier turns, if there are some, lie in these places. */
  after(places: readonly SegmentPlace[] | undefined): Pick<Unfinished, 'roll'>
}

/** How turns are kept. */
export interface KeepingTurns {
  readonly storage: RunStorage
  /** The name of the segments, to which a number is added. */
  readonly name: string
  /** Called with places of turns that are durable. */
  readonly onKept: (places: readonly SegmentPlace[]) => void
  readonly tell: (line: string) => void
}

/** An entry of an attempt, which may be over before it is written. */
interface Waiting {
  readonly entry: AttemptEntry
  readonly attempt: { isOver: boolean }
}

/** Milliseconds between two segments of turns: objects of a bucket have their price. */
const apart = { near: 1000, far: 5000 }
/** Frames that are encoded before the event loop turns. */
const encodedTogether = 32

/** Opens what keeps turns: what comes in a moment lies in one segment. */
export function keepTurns({ storage, name, onKept, tell }: KeepingTurns): KeptTurns {
  let count = 0
  const gathering = makeGathering<Waiting>(
    storage.isFar ? apart.far : apart.near,
    async gathered => {
      try {
        const frames = await framesOf(gathered)
        if (frames.size === 0) return
        onKept(await writeSegment(storage.write(`${name}-${count++}`), frames))
      } catch (error) {
        tell(`turns of unfinished attempts are not kept: ${describeCause(error)}`)
      }
    },
  )
  const read = async (places: readonly SegmentPlace[]): Promise<AttemptRecord> => {
    try {
      return await readTurns(storage, places)
    } catch (error) {
      tell(`${places[0]!.id} begins anew: ${describeCause(error)}`)
      return emptyRecord()
    }
  }
  return {
    after: places => ({
      async roll(strategy, context, which) {
        const tree = treeId(which.group, which.member)
        const attempt = { isOver: false }
        const append = (entry: AttemptEntry): undefined =>
          gathering.add({ entry, attempt }) as undefined
        const rolling = { strategy, kept: recording(context, tree, append), attempt: which }
        try {
          const record = places && (await read(places))
          if (!record || record.samples.size === 0) return await strategy(rolling.kept, which)
          return await goOn(record, rolling, isContinued =>
            isContinued ? undefined : append({ kind: 'restart', tree }),
          )
        } finally {
          attempt.isOver = true
        }
      },
    }),
    [Symbol.asyncDispose]: () => gathering.flush(),
  }
}

/** What was gathered of attempts that are not over, a frame of each. */
async function framesOf(gathered: readonly Waiting[]): Promise<ReadonlyMap<TreeId, Buffer>> {
  const entries = new Map<TreeId, AttemptEntry[]>()
  for (const { entry, attempt } of gathered) {
    if (attempt.isOver) continue
    const own = entries.get(entry.tree)
    if (own) own.push(entry)
    else entries.set(entry.tree, [entry])
  }
  const frames = new Map<TreeId, Buffer>()
  for (const [tree, own] of entries) {
    frames.set(tree, encodeFrame(entriesToFrame(own)))
    if (frames.size % encodedTogether === 0) await setImmediate()
  }
  return frames
}

/** Writes one segment whole; gives where each frame lies. */
async function writeSegment(
  segment: ReturnType<RunStorage['write']>,
  frames: ReadonlyMap<TreeId, Buffer>,
): Promise<readonly SegmentPlace[]> {
  const writing = segment.append(Buffer.concat([...frames.values()]))
  writing.catch(() => undefined)
  await segment[Symbol.asyncDispose]()
  const at = await writing
  let { offset } = at
  return [...frames].map(([tree, frame]) => {
    const place = placeOf(tree, { ...at, offset }, frame)
    offset += frame.length
    return place
  })
}

async function readTurns(
  storage: RunStorage,
  places: readonly SegmentPlace[],
): Promise<AttemptRecord> {
  const record = emptyRecord()
  for (const place of places) {
    const frame = decodeFrame(await follow(storage, place), 0)
    for (const entry of entriesFromFrame(frame)) {
      if (entry.tree === place.id) addEntry(record, entry)
    }
  }
  return record
}
