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
