import { readFile, readlink } from 'node:fs/promises'
import { hostname } from 'node:os'

/** The holder of a lock: a process on a machine; `started` distinguishes it from later ones with the same id. */
export interface Owner {
  readonly pid: number
  readonly host: string
  /** When the process started, in ticks since boot, if the system reports it. */
  readonly started: string
  /** The boot of the system that it runs on, and its namespace of process ids; '' if the system names none. */
  readonly boot: string
  readonly namespace: string
  /** How often it has told that it lives; undefined for writers of earlier versions, which never do. */
  readonly beat: number | undefined
}

/** What a lock says of its holder; undefined while only half of it is written. */
export function readOwner(text: string): Owner | undefined {
  try {
    const owner = JSON.parse(text) as Partial<Owner>
    if (typeof owner.pid !== 'number' || typeof owner.host !== 'string') return undefined
    const { pid, host, started = '', boot = '', namespace = '', beat } = owner
    return { pid, host, started: String(started), boot, namespace, beat }
  } catch {
    return undefined
  }
}

/** This process as the holder of a lock. */
export async function thisProcess(): Promise<Omit<Owner, 'beat'>> {
  const { started } = await processAt(process.pid)
  return { pid: process.pid, host: hostname(), started, ...(await thisSystem()) }
}

/** Whether the holder's process id means the same process here: then the system can be asked for it. */
export async function isNear({ host, boot, namespace }: Owner): Promise<boolean> {
  const here = await thisSystem()
  if (boot === '' || here.boot === '') return host === hostname()
  return boot === here.boot && namespace === here.namespace
}

/** Whether the process of a holder that is near still runs. */
export async function isAlive(owner: Owner): Promise<boolean> {
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  const { state, started } = await processAt(owner.pid)
  if (ended.includes(state)) return false
  return owner.started === '' || started === '' || started === owner.started
}

/** States of processes that have ended, and are listed only until their parent has asked how. */
const ended = ['Z', 'X', 'x']

async function thisSystem(): Promise<{ readonly boot: string; readonly namespace: string }> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  const namespace = await readlink('/proc/self/ns/pid').catch(() => '')
  return { boot: boot.trim(), namespace }
}

/** The third and the 22nd field of Linux's process table, its state and its start; '' elsewhere. */
async function processAt(
  pid: number,
): Promise<{ readonly state: string; readonly started: string }> {
  // A process table of another namespace has other processes under these ids.
  const own = await readlink('/proc/self').catch(() => '')
  if (own !== String(process.pid)) return { state: '', started: '' }
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0] ?? '', started: fields[19] ?? '' }
}
