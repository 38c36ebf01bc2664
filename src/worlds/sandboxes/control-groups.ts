import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Limits } from './enclosure.ts'

/** Bounds on all processes of one command together: what each may have says nothing of their sum. */
export interface ControlGroup {
  /** A process joins by writing 0 into each of them. */
  readonly joins: readonly string[]
  /** Removes it when its last process has ended. */
  remove(): void
}

/** A folder of the system's in which groups can be made, and the files that bound them. */
interface Place {
  readonly folder: string
  readonly bounds: (limits: Limits) => Readonly<Record<string, string>>
}

const root = '/sys/fs/cgroup'

const bytesOf = ({ memory }: Limits): string => String(Math.round((memory ?? 0) * 2 ** 20))

/** What bounds memory in the first version; swap comes after, since it may not be below. */
const memoryOne = (limits: Limits): Readonly<Record<string, string>> =>
  limits.memory === undefined
    ? {}
    : {
        'memory.limit_in_bytes': bytesOf(limits),
        'memory.memsw.limit_in_bytes': bytesOf(limits),
      }

const processesOf = ({ processes }: Limits): Readonly<Record<string, string>> =>
  processes === undefined ? {} : { 'pids.max': String(processes) }

const both = (limits: Limits): Readonly<Record<string, string>> => ({
  ...(limits.memory !== undefined && {
    'memory.max': bytesOf(limits),
    'memory.swap.max': '0',
    'memory.oom.group': '1',
  }),
  ...processesOf(limits),
})

let places: readonly Place[] | undefined

/** Where groups can be made here, whatever they then hold. */
function findPlaces(): readonly Place[] {
  places ??= process.platform === 'linux' ? [...findFirst(), ...findSecond()] : []
  return places
}

function lines(): readonly string[] {
  try {
    return readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n')
  } catch {
    return []
  }
}

/** The first version has a tree for memory and one for processes. */
function findFirst(): readonly Place[] {
  const wanted = { memory: memoryOne, pids: processesOf }
  return Object.entries(wanted).flatMap(([name, bounds]) => {
    const line = lines().find(each => each.split(':')[1]?.split(',').includes(name))
    if (line === undefined) return []
    const own = join(root, name, line.split(':')[2]!)
    // In a container the path may be that of the machine.
    const folder = [own, join(root, name)].find(each => existsSync(join(each, 'cgroup.procs')))
    return folder === undefined ? [] : [{ folder, bounds }]
  })
}

/** The second version allows groups beside this one only, if nothing bounds this one itself. */
function findSecond(): readonly Place[] {
  const line = lines().find(each => each.startsWith('0::'))
  if (line === undefined) return []
  const own = join(root, line.slice(3))
  const isBound = readOr(join(own, 'memory.max'), 'max') !== 'max'
  const folders = isBound ? [own] : [own, dirname(own)]
  const folder = folders.find(
    each =>
      each.startsWith(root) && readOr(join(each, 'cgroup.subtree_control'), '').includes('memory'),
  )
  return folder === undefined ? [] : [{ folder, bounds: both }]
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return otherwise
  }
}

/** Groups whose last process had not quite ended when they were to be removed. */
const left = new Set<string>()

/** Makes a group with these limits; undefined if the system does not let us. */
export function makeGroup(limits: Limits): ControlGroup | undefined {
  sweep()
  const name = `espalier-${process.pid}-${randomBytes(6).toString('hex')}`
  const made: string[] = []
  const remove = (): void => {
    for (const folder of made) left.add(folder)
    sweep()
    if (left.size > 0) setTimeout(sweep, 100).unref()
  }
  try {
    for (const { folder, bounds } of findPlaces()) {
      const wanted = bounds(limits)
      if (Object.keys(wanted).length === 0) continue
      const group = join(folder, name)
      mkdirSync(group)
      made.push(group)
      for (const [file, value] of Object.entries(wanted)) {
        if (existsSync(join(group, file))) writeFileSync(join(group, file), value)
      }
    }
  } catch {
    remove()
    return undefined
  }
  if (made.length === 0) return undefined
  return { joins: made.map(folder => join(folder, 'cgroup.procs')), remove }
}

/** Whether a group bounds memory here, and whether it bounds the number of processes. */
export function boundsHere(): { readonly memory: boolean; readonly processes: boolean } {
  const memory = makeGroup({ memory: 64 })
  memory?.remove()
  const processes = makeGroup({ processes: 64 })
  processes?.remove()
  return { memory: memory !== undefined, processes: processes !== undefined }
}

let isSwept = false

/** Removes groups that are over, those of killed programs too. One that has processes stays. */
function sweep(): void {
  for (const folder of left) if (isRemoved(folder)) left.delete(folder)
  if (isSwept) return
  isSwept = true
  for (const { folder } of findPlaces()) {
    for (const name of readdirSync(folder)) {
      const pid = Number(/^espalier-(\d+)-[0-9a-f]{12}$/.exec(name)?.[1])
      if (pid > 0 && !existsSync(`/proc/${pid}`)) isRemoved(join(folder, name))
    }
  }
}

function isRemoved(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

/** The lines of a shell that joins the group before it becomes the command. */
export function joinLines({ joins }: ControlGroup): readonly string[] {
  return joins.map(file => `echo 0 > '${file}' || exit 1`)
}
