import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Policy } from '../../base/core/policy.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { checkpointMark, runPaths } from '../store/run-folder.ts'

/** Which checkpoints answer. */
export interface PastOptions {
  /** The run whose checkpoints they are; it may still be growing. */
  readonly run: string
  /** How many of the newest. */
  readonly last: number
  readonly seed: number
  /** Answers as long as there is none. */
  readonly meanwhile: Policy
  /** Opens a checkpoint's folder. */
  readonly open: (folder: string) => Promise<Policy>
}

/** Most attempts whose checkpoint is remembered, so that it does not change when a newer one is written. */
const mostRemembered = 4096

/**
 * A policy's past as an opponent: every attempt meets one of the newest checkpoints, chosen by the
 * seed. Training against many of them avoids learning to beat only the last.
 */
export function pastPolicy(options: PastOptions): Policy {
  const { run, last, seed, meanwhile } = options
  const players = openPlayers(options)
  const chosen = new Map<string, string>()
  const choose = (session: string): string | undefined => {
    const before = chosen.get(session)
    if (before !== undefined) return before
    const pool = checkpointsOf(run).slice(-last)
    if (pool.length === 0) return undefined
    const name = pool[Math.floor(pool.length * random(seedOf(seed, 'past', session))())]!
    if (chosen.size >= mostRemembered) chosen.delete(chosen.keys().next().value!)
    chosen.set(session, name)
    return name
  }
  return {
    name: `past:${run}`,
    capabilities: { ...meanwhile.capabilities, several: false, score: false },
    async sample(request, call) {
      const name = choose(request.session)
      const sample =
        name === undefined
          ? await meanwhile.sample(request, call)
          : await players.use(name, player => player.sample(request, call))
      const server = name === undefined ? meanwhile.name : join(runPaths(run).checkpoints, name)
      return { ...sample, usage: { ...sample.usage, server } }
    },
    [Symbol.asyncDispose]: players.close,
  }
}

interface Player {
  readonly policy: Promise<Policy>
  uses: number
}

/**
 * Checkpoints that are open, each on threads of its own: those that are met, and those whose attempts go
 * on. One that others have replaced is closed when the next is opened, and opened again if it is asked.
 */
function openPlayers({ run, last, open }: PastOptions) {
  const players = new Map<string, Player>()
  const close = async (name: string, { policy }: Player): Promise<void> => {
    players.delete(name)
    const opened = await policy.catch(() => undefined)
    await opened?.[Symbol.asyncDispose]()
  }
  const closeReplaced = async (): Promise<void> => {
    const met = new Set(checkpointsOf(run).slice(-last))
    const replaced = [...players].filter(([name, { uses }]) => uses === 0 && !met.has(name))
    await Promise.all(replaced.map(([name, player]) => close(name, player)))
  }
  const begin = (name: string): Player => {
    const player = { policy: open(join(runPaths(run).checkpoints, name)), uses: 0 }
    players.set(name, player)
    // The next attempt tries again.
    player.policy.catch(() => players.delete(name))
    return player
  }
  return {
    async use<T>(name: string, work: (policy: Policy) => Promise<T>): Promise<T> {
      const isNew = !players.has(name)
      const player = players.get(name) ?? begin(name)
      player.uses++
      try {
        if (isNew) await closeReplaced()
        return await work(await player.policy)
      } finally {
        player.uses--
      }
    },
    async close(): Promise<void> {
      await Promise.all([...players].map(([name, player]) => close(name, player)))
    },
  }
}

/** The whole checkpoints of a run, the oldest first. */
function checkpointsOf(run: string): readonly string[] {
  const { checkpoints } = runPaths(run)
  if (!existsSync(checkpoints)) return []
  return readdirSync(checkpoints)
    .filter(name => /^\d{6,}$/.test(name) && existsSync(join(checkpoints, name, checkpointMark)))
    .sort()
}
