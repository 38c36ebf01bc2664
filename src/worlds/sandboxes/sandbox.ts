import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { coveredDescriptors } from './descriptors.ts'
import type { Bind, Enclosed, Limits } from './enclosure.ts'
import { type Builder, findBuilder, type Walls } from './walls.ts'

/** What a sandbox lets in, and its limits. */
export interface SandboxOptions {
  /** Paths that can be read inside besides programs and their libraries. @default [] */
  readonly readable?: readonly string[]
  /** Folders that can be written inside. @default [] */
  readonly writable?: readonly string[]
  /** Folders that can be written inside, at another place than here. @default [] */
  readonly binds?: readonly Bind[]
  /** @default 'none' */
  readonly network?: 'none' | 'outside'
  /** @default '/' */
  readonly workingFolder?: string
  /** Variables inside; nothing is inherited. @default {} */
  readonly variables?: Readonly<Record<string, string>>
  readonly limits?: Limits
  /** Who builds the walls. @default the first that works on this machine */
  readonly builder?: Builder
}

/** A place to run untrusted commands. */
export interface Sandbox {
  /** Which walls stand around what is started here. */
  readonly walls: Walls
  /** Starts a command inside, with pipes for its input and output. */
  spawn(command: readonly string[]): ChildProcess
}

/** Opens a sandbox with as many walls as this machine can build; check `walls` if you need a certain one. */
export function openSandbox(options: SandboxOptions = {}): Sandbox {
  const { readable = [], writable = [], network = 'none', workingFolder = '/' } = options
  const { walls, enclose } = options.builder ?? findBuilder()
  const enclosed: Enclosed = {
    readable: readable.filter(path => existsSync(path)),
    writable,
    binds: options.binds ?? [],
    hasNetwork: network === 'outside',
    workingFolder,
    limits: options.limits ?? {},
  }
  return {
    walls: network === 'outside' ? { ...walls, network: false } : walls,
    spawn(command) {
      const [first, ...words] = endWithParent(enclose(enclosed, command), walls)
      return spawn(first!, words, {
        env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', ...options.variables },
        // Where there is a new root, the folder is entered inside it.
        cwd: walls.files ? '/' : workingFolder,
        stdio: ['pipe', 'pipe', 'pipe', ...coveredDescriptors()],
        // A group of its own: Ctrl-C is for this program alone, and without walls all of it is ended at once.
        detached: walls.diesWithParent,
      })
    },
  }
}

/** The parent's process id is checked too, in case it ended before the system began to watch it. */
function endWithParent(words: readonly string[], walls: Walls): readonly string[] {
  if (!walls.diesWithParent) return words
  const script = `[ "$PPID" = ${process.pid} ] || exit 1; exec "$@"`
  return ['setpriv', '--pdeathsig', 'SIGKILL', '/bin/sh', '-c', script, 'sh', ...words]
}
