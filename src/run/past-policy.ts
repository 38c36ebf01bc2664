import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Policy } from '../core/policy.ts'
import { random, seedOf } from '../math/random.ts'
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
}

/** Most attempts whose checkpoint is remembered, so that it does not change when a newer one is written. */
const mostRemembered = 4096

/**
 * A policy's past as an opponent: every attempt meets one of the newest checkpoints, chosen by the
 * seed. Training against many of them avoids learning to beat only the last.
 */
export function pastPolicy({ run, last, seed, meanwhile }: PastOptions): Policy {
  const opened = new Map<string, Promise<Policy>>()
  const chosen = new Map<string, string>()
  const open = (name: string): Promise<Policy> => {
    const known = opened.get(name) ?? openCheckpoint(join(runPaths(run).checkpoints, name))
    opened.set(name, known)
    return known
  }
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
      const player = name === undefined ? meanwhile : await open(name)
      const sample = await player.sample(request, call)
      const server = name === undefined ? meanwhile.name : join(runPaths(run).checkpoints, name)
      return { ...sample, usage: { ...sample.usage, server } }
    },
    async [Symbol.asyncDispose]() {
      for (const each of opened.values()) await (await each)[Symbol.asyncDispose]()
    },
  }
}

/** The whole checkpoints of a run, the oldest first. */
export function checkpointsOf(run: string): readonly string[] {
  const { checkpoints } = runPaths(run)
  if (!existsSync(checkpoints)) return []
  return readdirSync(checkpoints)
    .filter(name => /^\d{6,}$/.test(name) && existsSync(join(checkpoints, name, checkpointMark)))
    .sort()
}

async function openCheckpoint(folder: string): Promise<Policy> {
  const { openEmbedded } = await import('../model/embedded.ts')
  return await openEmbedded(folder)
}
