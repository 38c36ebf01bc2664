import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type ControlGroup, joinLines, makeGroup } from './control-groups.ts'
import { coveredDescriptors } from './descriptors.ts'
import type { Bind, Enclosed, Limits } from './enclosure.ts'
import { withVariables } from './variables.ts'
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

/** What programs find hosts by their names with, and know them by. */
const namesAndCertificates = [
  ...['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf'],
  ...[
    '/etc/ssl/certs',
    '/etc/ssl/openssl.cnf',
    '/etc/pki/tls/certs',
    '/etc/pki/ca-trust/extracted',
  ],
]

/** Opens a sandbox with as many walls as this machine can build; check `walls` if you need a certain one. */
export function openSandbox(options: SandboxOptions = {}): Sandbox {
  const { readable = [], writable = [], network = 'none', workingFolder = '/' } = options
  const { walls, enclose } = options.builder ?? findBuilder()
  const shown = network === 'outside' ? [...readable, ...namesAndCertificates] : readable
  const enclosed: Enclosed = {
    readable: shown.filter(path => existsSync(path)),
    writable,
    binds: options.binds ?? [],
    hasNetwork: network === 'outside',
    workingFolder,
    limits: options.limits ?? {},
  }
  return {
    walls: network === 'outside' ? { ...walls, network: false } : walls,
    spawn(command) {
      const inside = withVariables(options.variables ?? {}, command)
      const isGrouped = walls.diesWithParent && (walls.memory || walls.processCount)
      const group = isGrouped ? boundedGroup(enclosed.limits) : undefined
      const words = endWithParent(enclose(enclosed, inside.words), walls, group)
      const child = spawn(words[0]!, words.slice(1), {
        env: inside.variables,
        // If there is a new root, the folder is entered inside it.
        cwd: walls.files ? '/' : workingFolder,
        stdio: ['pipe', 'pipe', 'pipe', ...coveredDescriptors()],
        // A group of its own: Ctrl-C is for this program alone, and without walls all of it is ended at once.
        detached: walls.diesWithParent,
      })
      if (group) child.once('exit', group.remove).once('error', group.remove)
      return child
    },
  }
}

/** The group of a command with limits; what was found to work must not fail in silence. */
function boundedGroup(limits: Limits): ControlGroup | undefined {
  if (limits.memory === undefined && limits.processes === undefined) return undefined
  const group = makeGroup(limits)
  if (group) return group
  throw new Error('a command could not be started: the system made no control group for its limits')
}

/** The parent's process id is checked too, in case it ended before the system began to watch it. */
function endWithParent(
  words: readonly string[],
  walls: Walls,
  group: ControlGroup | undefined,
): readonly string[] {
  if (!walls.diesWithParent) return words
  const join = group ? joinLines(group) : []
  const script = [`[ "$PPID" = ${process.pid} ] || exit 1`, ...join, 'exec "$@"'].join('; ')
  return ['setpriv', '--pdeathsig', 'SIGKILL', '/bin/sh', '-c', script, 'sh', ...words]
}
