import { existsSync, openSync, readdirSync, readFileSync } from 'node:fs'

type Covered = readonly (number | 'ignore')[]

let covered: Covered | undefined

/**
 * What a process inside has at descriptor 3 and those after it: nothing. Node passes on what this
 * process inherited from whoever started it, and a folder among that would lead through every wall.
 */
export function coveredDescriptors(): Covered {
  covered ??= cover(inheritedDescriptors())
  return covered
}

function cover(inherited: readonly number[]): Covered {
  if (inherited.length === 0) return []
  const nothing = openSync('/dev/null', 'r+')
  const length = Math.max(...inherited) - 2
  return Array.from({ length }, (_, index) => (inherited.includes(index + 3) ? nothing : 'ignore'))
}

/** The flag of a descriptor that is closed when another program takes over. */
const closesOnExec = 0o2000000

/** Node itself opens none that stays open in another program. */
function inheritedDescriptors(): readonly number[] {
  const folder = '/proc/self/fdinfo'
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .map(Number)
    .filter(descriptor => {
      if (descriptor < 3) return false
      const flags = /^flags:\s*([0-7]+)/m.exec(readInfo(`${folder}/${descriptor}`))?.[1]
      return flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0
    })
}

/** Empty if it was closed since the folder was read. */
function readInfo(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
