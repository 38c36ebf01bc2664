// What every program of this folder shares: the work comes on standard input, the figures go out.
import { text } from 'node:stream/consumers'

export async function readWork<Work>(): Promise<Work> {
  return JSON.parse(await text(process.stdin)) as Work
}

export function printFigures(figures: Readonly<Record<string, number>>): void {
  console.log(JSON.stringify({ figures }))
}

/** Seconds of this process's processor time, its garbage collector's included. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** Turns before rollouts are measured, and the runs that they are made in. */
const warmUp = { turns: 32_000, runs: 8 }
/** A run is made as long as this: a peer takes longer for the same work, ours and a bare client a moment. */
const leastSeconds = 5

/**
 * Turns per second and processor time per turn of one run of rollouts, its opening and closing included. Compiled code is
 * what a run of hours works with, so that others come first, in several runs: V8 compiles some 800 functions with full
 * optimization in the first one, and in the next ones those again that it had compiled for the only run it knew. Nothing
 * collects garbage between them: V8 would forget the hidden classes of what is not open and throw away the code for them.
 */
export async function measureRollouts(
  { rollouts, turns }: { readonly rollouts: number; readonly turns: number },
  roll: (rollouts: number) => Promise<void>,
): Promise<Readonly<Record<string, number>>> {
  const before = Math.ceil(warmUp.turns / turns / warmUp.runs)
  let last = 0
  for (let run = 0; run < warmUp.runs; run++) {
    const start = performance.now()
    await roll(before)
    last = (performance.now() - start) / 1000
  }
  const measured = Math.max(rollouts, Math.ceil((before / last) * leastSeconds))
  const cpu = cpuSeconds()
  const start = performance.now()
  await roll(measured)
  return {
    turnsPerSecond: (measured * turns * 1000) / (performance.now() - start),
    cpuMicrosecondsPerTurn: ((cpuSeconds() - cpu) / (measured * turns)) * 1e6,
  }
}

/** Processor time of one call, over as many as fill the time after a warm-up. */
export function microseconds(call: () => unknown, leastSeconds = 1): number {
  for (let warm = 0; warm < 300; warm++) call()
  const start = cpuSeconds()
  let count = 0
  while (cpuSeconds() - start < leastSeconds) {
    for (let each = 0; each < 20; each++) call()
    count += 20
  }
  return ((cpuSeconds() - start) / count) * 1e6
}
