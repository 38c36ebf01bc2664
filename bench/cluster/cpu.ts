import { readdirSync, readFileSync } from 'node:fs'
import type { TestServer } from '../../test/end-to-end/cluster.ts'

/** Clock ticks per second on every Linux that Node runs on. */
const ticks = 100

/** Counts the processor time of a database from now on. */
export function openCpu({ folder }: Pick<TestServer, 'folder'>) {
  const before = databaseTicks(folder)
  return {
    /** Milliseconds of a core per item, for `count` items; `null` if the system does not report it. */
    spent(count: number): number | null {
      const after = databaseTicks(folder)
      if (before === null || after === null) return null
      return ((after - before) / ticks) * (1000 / count)
    },
  }
}

/** Processor time of the server and of all its processes, ended ones included. */
function databaseTicks(folder: string): number | null {
  try {
    const pid = Number(readFileSync(`${folder}/data/postmaster.pid`, 'utf8').split('\n')[0])
    const own = statOf(pid)!
    const children = readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(name => statOf(Number(name)))
      .filter(stat => stat?.parent === pid)
    return children.reduce((sum, stat) => sum + stat!.ticks, own.ticks + own.ended)
  } catch {
    return null
  }
}

/** Processor time of one process so far, in seconds; `null` where it is not known. */
export function processSeconds(pid: number): number | null {
  const stat = statOf(pid)
  return stat ? stat.ticks / ticks : null
}

function statOf(pid: number) {
  try {
    // The program's name may contain anything, brackets too, so split after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
    const at = (index: number): number => Number(fields[index])
    return { parent: at(1), ticks: at(11) + at(12), ended: at(13) + at(14) }
  } catch {
    return undefined
  }
}
