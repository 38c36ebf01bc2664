import { spawn } from 'node:child_process'
import type { Policy } from '../../src/base/core/policy.ts'
import { plainSampling } from '../../src/base/core/policy.ts'
import { absences } from '../../src/base/core/process/absences.ts'
import { openPolicy } from '../../src/engine/policies/open-policy.ts'
import { draw } from './try-server.ts'

/** What a kill and a new start of a server did to the samples that were wanted meanwhile. */
export interface RestartReport {
  readonly kind: string
  readonly samples: number
  readonly failed: readonly string[]
  /** Seconds in which it was away. */
  readonly away: number
  /** Tries that counted, besides the wait. */
  readonly retries: number
}

/**
 * Kills a server with all its processes while it samples, starts it again with a command, and asks for the
 * same seeds: every sample has to come.
 */
export async function tryRestart(
  {
    kind,
    uri,
    process: pid,
    command,
  }: { kind: string; uri: string; process: number; command: string },
  prompt: Int32Array,
): Promise<RestartReport> {
  let retries = 0
  await using policy = await openPolicy(uri, {
    thread: false,
    absences,
    retries: { onRetry: () => retries++ },
  })
  const failed: string[] = []
  const samples = 24
  const before = absences.seconds()
  const wanted = Array.from({ length: samples }, (_, seed) =>
    sampleOne(policy, prompt, seed, failed),
  )
  await Promise.race(wanted)
  process.kill(-pid, 'SIGKILL')
  spawn(command, { shell: true, detached: true, stdio: 'ignore' }).unref()
  await Promise.all(wanted)
  return { kind, samples, failed, away: absences.seconds() - before, retries }
}

async function sampleOne(
  policy: Policy,
  prompt: Int32Array,
  seed: number,
  failed: string[],
): Promise<void> {
  try {
    await draw(policy, { prompt, sampling: plainSampling, seed })
  } catch (error) {
    failed.push(`seed ${seed}: ${(error as Error).message.slice(0, 200)}`)
  }
}
