import { isDeepStrictEqual } from 'node:util'
import { aroundPolicy, aroundWorlds } from '../../base/core/around.ts'
import type { Transition } from '../../base/core/environment.ts'
import type { TreeId } from '../../base/core/ids.ts'
import type { Sample } from '../../base/core/policy.ts'
import type { RolloutContext } from '../../engine/rollout/attempt.ts'
import { type AttemptEntry, type AttemptRecord, keyOf } from './attempt-record.ts'

/**
 * Records every sample and every answer of the world. They are written within a few milliseconds; the
 * attempt waits only if `append` asks it to, because the disk is behind.
 */
export function recording(
  context: RolloutContext,
  tree: TreeId,
  append: (entry: AttemptEntry) => Promise<void> | undefined,
): RolloutContext {
  const { policy } = context
  return {
    ...context,
    policy: aroundPolicy(policy, {
      async draw({ request, seeds, call, ask }) {
        const keys = seeds.map(seed => keyOf(request, seed))
        const samples = await ask()
        // An interrupted sample is not recorded: it is drawn again whole, so that a resumed run gives the same rows.
        if (call.signal.aborted) return samples
        for (const [index, sample] of samples.entries()) {
          const isBehind = append({ kind: 'sample', tree, key: keys[index]!, sample })
          if (isBehind) await isBehind
        }
        return samples
      },
      // Thousands wait here at one time: a function that awaits holds three times as much.
      drawOne: (request, call) =>
        policy.sample(request, call).then(sample => {
          if (call.signal.aborted) return sample
          const key = keyOf(request, request.seed)
          const isBehind = append({ kind: 'sample', tree, key, sample })
          return isBehind ? isBehind.then(() => sample) : sample
        }),
    }),
    environment: aroundWorlds(context.environment, {
      async open(_task, call, open) {
        const world = await open(call)
        const { opening, spent } = world
        const opened = { opening, ...(spent !== undefined && { spent }) }
        if (!call.replay) await append({ kind: 'opening', tree, ...opened })
        return world
      },
      step(_action, call, step) {
        const stepping = step(call)
        if (call.replay) return stepping
        return stepping.then(transition => {
          const isBehind = append({ kind: 'step', tree, turn: call.turn, transition })
          return isBehind ? isBehind.then(() => transition) : transition
        })
      },
    }),
  }
}

/** A record that is being replayed. */
export interface Replay {
  readonly record: AttemptRecord
  /** Whether everything so far came from the record; only then do recorded answers apply. */
  isFaithful: boolean
  /** Whether the world gave another answer than the recorded one. */
  hasDiverged: boolean
}

/** Begins to replay a record. */
export function makeReplay(record: AttemptRecord): Replay {
  return { record, isFaithful: true, hasDiverged: false }
}

/** Replays a record: samples whose prompt is the same, and the world's answers to them. */
export function replaying(context: RolloutContext, replay: Replay): RolloutContext {
  const { opening: opened, steps, samples } = replay.record
  return {
    ...context,
    policy: aroundPolicy(context.policy, {
      async draw({ request, seeds, ask }) {
        const known = seeds.map(seed => samples.get(keyOf(request, seed)))
        const missing = seeds.filter((_, index) => !known[index])
        if (missing.length === 0) return known as Sample[]
        replay.isFaithful = false
        const drawn = [...(await ask({ seeds: missing }))]
        return known.map(sample => sample ?? drawn.shift()!)
      },
    }),
    environment: aroundWorlds(context.environment, {
      async open(_task, call, open) {
        const world = await open(opened ? { ...call, replay: opened } : call)
        if (opened && !isDeepStrictEqual(opened.opening, stored(world.opening))) {
          await world[Symbol.asyncDispose]()
          diverge(replay, 'its opening')
        }
        return world
      },
      async step(_action, call, step) {
        const then = replay.isFaithful ? steps[call.turn] : undefined
        if (!then) return await step(call)
        const now = await step({ ...call, replay: then })
        if (!isSame(then, now)) diverge(replay, `turn ${call.turn}`)
        return now
      },
    }),
  }
}

/** Ends the attempt with an error; `hasDiverged` says why to the code that began the replay. */
function diverge(replay: Replay, place: string): never {
  replay.hasDiverged = true
  throw new Error(`the world did not repeat ${place}`)
}

/** Ignores calls, whose times differ, and what was spent, which older records lack. */
function isSame(then: Transition, now: Transition): boolean {
  const [before, after] = [then, now].map(({ calls: _calls, spent: _spent, ...rest }) => rest)
  return isDeepStrictEqual(before, stored(after))
}

/** A value as it is after it was stored. */
function stored(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
