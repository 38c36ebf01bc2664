import { spawnSync } from 'node:child_process'
import { bubblewrapWords } from './bubblewrap.ts'
import { boundsHere } from './control-groups.ts'
import type { Enclosed } from './enclosure.ts'
import { bubblewrapFilter, filterHolds, filterProbe, filterWords } from './system-calls.ts'
import { unshareWords } from './unshare.ts'
import { plainVariables } from './variables.ts'

/** The walls between a process inside and this machine. */
export interface Walls {
  /** What builds them; undefined if nothing can. */
  readonly by: 'unshare' | 'bubblewrap' | undefined
  /** No network and no socket of this machine can be reached. */
  readonly network: boolean
  /** Only the files that are named exist. */
  readonly files: boolean
  /** No process of this machine can be seen or signalled. */
  readonly processes: boolean
  /** Address space, CPU time and file size are bounded by the system. */
  readonly limits: boolean
  /** The memory of all processes together is bounded, files in memory included. */
  readonly memory: boolean
  /** The number of processes is bounded; without a control group the system does not enforce this for root. */
  readonly processCount: boolean
  /** Sockets of other kinds than the network's, which lead to the machine's host, are refused. */
  readonly sockets: boolean
  /** No key of the kernel's keyrings can be read, or left for another attempt. */
  readonly keys: boolean
  /** The system ends it when the process that started it ends, however that ends. */
  readonly diesWithParent: boolean
}

/** A way to build walls: what comes before a command. */
export interface Builder {
  readonly walls: Walls
  enclose(enclosed: Enclosed, command: readonly string[]): readonly string[]
}

const standing = {
  network: true,
  files: true,
  processes: true,
  limits: true,
  memory: false,
  processCount: process.getuid?.() !== 0,
  sockets: false,
  keys: false,
  diesWithParent: true,
}

const builders: readonly Builder[] = [
  {
    walls: { by: 'unshare', ...standing },
    enclose: (enclosed, command) => unshareWords(enclosed, command, { asRoot: false }),
  },
  {
    walls: { by: 'bubblewrap', ...standing },
    enclose: bubblewrapWords,
  },
  // Without user namespaces, root can still make the others.
  {
    walls: { by: 'unshare', ...standing },
    enclose: (enclosed, command) => unshareWords(enclosed, command, { asRoot: true }),
  },
]

let found: Builder | undefined

/** The first way to build walls that works here, found by trying each once. */
export function findBuilder(): Builder {
  if (found) return found
  const builder = process.platform === 'linux' ? builders.find(works) : undefined
  found = builder ? strengthened(builder) : withoutWalls()
  return found
}

/** A builder of walls with all that makes them stronger on this machine. */
function strengthened(builder: Builder): Builder {
  const bounds = boundsHere()
  const processCount = builder.walls.processCount || bounds.processes
  const walls = { ...builder.walls, memory: bounds.memory, processCount }
  const filtered = { ...walls, sockets: true, keys: true }
  const [perl, bubblewrap]: readonly Builder[] = [
    {
      walls: filtered,
      enclose: (enclosed, command) => builder.enclose(enclosed, [...filterWords(), ...command]),
    },
    {
      walls: filtered,
      enclose: (enclosed, command) => bubblewrapFilter(builder.enclose(enclosed, command)),
    },
  ]
  if (perl && outputInside(perl, filterProbe()) === filterHolds) return perl
  if (bubblewrap && walls.by === 'bubblewrap' && works(bubblewrap)) return bubblewrap
  return { ...builder, walls }
}

/** Which walls can be built on this machine. */
export function findWalls(): Walls {
  return findBuilder().walls
}

/** Whether a command runs inside and sees only its own files. */
function works(builder: Builder): boolean {
  const test = 'test ! -e /etc/passwd && test ! -e /root && echo inside'
  return outputInside(builder, ['/bin/sh', '-c', test]) === 'inside\n'
}

/** What a command prints inside; undefined if it does not run. */
function outputInside({ enclose }: Builder, inside: readonly string[]): string | undefined {
  const enclosed: Enclosed = {
    readable: [],
    writable: [],
    hasNetwork: false,
    workingFolder: '/',
    limits: { memory: 4096, cpu: 10, fileSize: 0 },
  }
  const [command, ...words] = enclose(enclosed, inside)
  const options = { encoding: 'utf8', timeout: 10_000, env: plainVariables } as const
  const { status, stdout } = spawnSync(command!, words, options)
  return status === 0 ? stdout : undefined
}

/** Without namespaces: limits if there is a shell that sets them. */
export function withoutWalls(): Builder {
  const hasLimits = process.platform !== 'win32'
  return {
    walls: {
      by: undefined,
      network: false,
      files: false,
      processes: false,
      limits: hasLimits,
      memory: false,
      processCount: false,
      sockets: false,
      keys: false,
      diesWithParent: canWatchParent(),
    },
    enclose: ({ limits }, command) => {
      if (!hasLimits) return command
      const { cpu, fileSize } = limits
      const memory = limits.addresses === 'unbounded' ? undefined : limits.memory
      const lines = [
        'ulimit -c 0',
        ...(cpu === undefined ? [] : [`ulimit -t ${cpu}`]),
        ...(memory === undefined ? [] : [`ulimit -v ${Math.round(memory * 1024)} 2>/dev/null`]),
        ...(fileSize === undefined ? [] : [`ulimit -f ${Math.round(fileSize * 2048)}`]),
        'exec "$@"',
      ]
      return ['/bin/sh', '-c', lines.join('; '), 'sh', ...command]
    },
  }
}

/** Whether the system can be asked to end a process with its parent. */
function canWatchParent(): boolean {
  if (process.platform !== 'linux') return false
  const { status } = spawnSync('setpriv', ['--pdeathsig', 'SIGKILL', 'true'], { timeout: 10_000 })
  return status === 0
}

const names: Readonly<Record<Exclude<keyof Walls, 'by'>, string>> = {
  network: 'network',
  files: 'files',
  processes: 'processes',
  limits: 'limits of memory and CPU',
  memory: 'limit of all memory together',
  processCount: 'limit of processes',
  sockets: 'sockets of other kinds (vsock)',
  keys: 'keyrings of the kernel',
  diesWithParent: 'end with its parent',
}

/** The walls that stand and those that do not, in words. */
export function describeWalls(walls: Walls): {
  readonly by: string
  readonly standing: readonly string[]
  readonly missing: readonly string[]
} {
  const all = Object.entries(names) as readonly (readonly [Exclude<keyof Walls, 'by'>, string])[]
  const namesOf = (stands: boolean): readonly string[] =>
    all.filter(([wall]) => walls[wall] === stands).map(([, name]) => name)
  const by = walls.by === undefined ? 'no walls of the system' : `namespaces by ${walls.by}`
  return { by, standing: namesOf(true), missing: namesOf(false) }
}
