import { randomUUID } from 'node:crypto'
import { cp, mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import type { Call } from '../../base/core/call.ts'
import type { Limits } from '../sandboxes/enclosure.ts'
import { type Finished, runInside, type StartedCommand, startInside } from '../sandboxes/run.ts'
import { openSandbox } from '../sandboxes/sandbox.ts'
import { type Builder, describeWalls, findBuilder, withoutWalls } from '../sandboxes/walls.ts'
import {
  type CommandCall,
  checkLimits,
  ImpossibleError,
  type Put,
  type Workspace,
  WorkspaceError,
  type WorkspaceLimits,
  type WorkspaceSource,
  type Workspaces,
} from './contract.ts'
import { copyTree, removeTree } from './trees.ts'

/** How workspaces are walled in on this machine. */
export interface LocalOptions {
  readonly limits: WorkspaceLimits
  /** `none` accepts that nothing keeps commands from this machine. @default 'required' */
  readonly walls?: 'required' | 'none' | undefined
  /** A folder of programs that can be read inside; its `bin` comes first in PATH. @default none */
  readonly toolchain?: string | undefined
  /** Who builds the walls. @default the first that works on this machine */
  readonly builder?: Builder
}

/** Workspaces within walls of this machine's system; refused if it can build none. */
export function localWorkspaces(options: LocalOptions): Workspaces {
  checkLimits(options.limits)
  if (process.platform === 'win32') throw new WorkspaceError(noShell)
  const builder = options.builder ?? findBuilder()
  const { network, files, processes } = builder.walls
  const isWalled = network && files && processes
  if (!isWalled && options.walls !== 'none') throw new WorkspaceError(noWalls)
  const isolation = describeWalls(isWalled ? builder.walls : withoutWalls().walls)
  return {
    name: isWalled ? 'walls of the system' : 'no walls',
    isolation,
    talks: true,
    shows: true,
    async open(source, call) {
      call.signal.throwIfAborted()
      const folder = await mkdtemp(join(tmpdir(), 'espalier-workspace-'))
      const workspace = new LocalWorkspace(folder, source, { ...options, builder })
      try {
        await workspace.fill(call)
        return workspace
      } catch (cause) {
        await workspace[Symbol.asyncDispose]()
        throw cause
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

const noShell =
  'commands of a policy need /bin/sh, which Windows has not: use a container engine (sandbox=docker or ' +
  'podman), or run Espalier within WSL'

const noWalls =
  'commands of a policy are not run here: neither unshare nor bwrap may make namespaces. Allow user ' +
  'namespaces, install bubblewrap, use a container engine (sandbox=docker or podman), or accept that ' +
  'nothing keeps them from this machine (walls=none)'

const usualPath = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'

type Opened = LocalOptions & { readonly builder: Builder }

class LocalWorkspace implements Workspace {
  readonly #folder: string
  readonly #source: WorkspaceSource
  readonly #options: Opened
  /** Folders at the top inside; each is one of the same name in our folder. */
  readonly #tops: Set<string>
  #hasRun = false

  constructor(
    folder: string,
    source: WorkspaceSource,
    options: Opened,
    tops: Iterable<string> = [],
  ) {
    this.#folder = folder
    this.#source = source
    this.#options = options
    this.#tops = new Set(tops)
  }

  async fill(call: Call): Promise<void> {
    await this.#makeTop(this.#source.workingFolder)
    for (const put of this.#source.puts) await this.put(put, call)
    await mkdir(this.#here(this.#source.workingFolder), { recursive: true })
  }

  async run(command: readonly string[], call: CommandCall): Promise<Finished> {
    const { signal, input } = call
    const { words, arrival, asked } = this.#begin(command, call)
    const finished = await runInside(this.#sandbox(call), words, {
      ...asked,
      ...(input !== undefined && { input }),
    })
    signal.throwIfAborted()
    return afterArrival(finished, arrival)
  }

  start(command: readonly string[], call: Omit<CommandCall, 'input'>): StartedCommand {
    const { words, arrival, asked } = this.#begin(command, call)
    // What talks while it works brings runtimes of its own, which reserve more addresses than there is memory.
    const started = startInside(this.#sandbox(call, { addresses: 'unbounded' }), words, asked)
    const finished = started.finished.then(each => afterArrival(each, arrival))
    finished.catch(() => undefined)
    return { ...started, finished }
  }

  /** A command that marks its arrival inside, and what bounds it. */
  #begin(command: readonly string[], { signal, seconds }: CommandCall) {
    this.#hasRun = true
    const { limits } = this.#options
    const arrival = `inside ${randomUUID()}\n`
    const { outputBytes } = limits
    const complaintBytes = outputBytes + arrival.length
    // Not as $0: a shell that cannot start the command names itself by that in its complaint.
    const script = `printf '%s' "$1" >&2; shift; exec "$@"`
    return {
      arrival,
      words: ['/bin/sh', '-c', script, 'sh', arrival, ...command],
      asked: { seconds: seconds ?? limits.seconds, outputBytes, complaintBytes, signal },
    }
  }

  #sandbox(
    { variables, seconds = this.#options.limits.seconds }: CommandCall,
    more: Pick<Limits, 'addresses'> = {},
  ) {
    const { limits, builder, toolchain } = this.#options
    const { workingFolder, network = 'none', shown = [] } = this.#source
    const isMoved = builder.walls.files
    return openSandbox({
      builder,
      network,
      readable: outermost([
        process.execPath,
        ...(toolchain === undefined ? [] : [toolchain]),
        ...shown,
      ]),
      binds: [...this.#tops].map(top => ({ from: join(this.#folder, top), to: `/${top}` })),
      // Without a new root, commands begin in our folder itself.
      workingFolder: isMoved ? workingFolder : this.#here(workingFolder),
      variables: {
        HOME: '/tmp',
        LANG: 'C.UTF-8',
        ...(toolchain !== undefined && { PATH: `${join(toolchain, 'bin')}:${usualPath}` }),
        ...this.#source.variables,
        ...variables,
      },
      limits: {
        ...more,
        memory: limits.memory,
        cpu: Math.ceil(seconds) + 1,
        processes: limits.processes,
        fileSize: limits.disk,
        temporary: limits.disk,
      },
    })
  }

  async put({ from, to }: Put, _call: Call): Promise<void> {
    const path = posix.normalize(to)
    const isTop = posix.dirname(path) === '/'
    // A folder that commands could change may hold links that lead out of it.
    if (this.#hasRun && !isTop) {
      throw new ImpossibleError(
        `${to} is not at the top: once commands have run, only folders like /tests can be put`,
      )
    }
    if (isTop) await removeTree(this.#here(path))
    await this.#makeTop(path)
    await cp(from, this.#here(path), { recursive: true, verbatimSymlinks: true })
  }

  async #makeTop(path: string): Promise<void> {
    const top = posix.normalize(path).split('/')[1] ?? ''
    if (!path.startsWith('/') || !/^[\w.-]+$/.test(top) || systemTops.includes(top)) {
      throw new ImpossibleError(
        `nothing can be put at ${path}: a path begins with a folder at the top that is none of the system's, such as /agent`,
      )
    }
    await mkdir(join(this.#folder, top), { recursive: true })
    this.#tops.add(top)
  }

  #here(path: string): string {
    return join(this.#folder, posix.normalize(path))
  }

  async fork({ signal }: Call): Promise<Workspace> {
    signal.throwIfAborted()
    const folder = await mkdtemp(join(tmpdir(), 'espalier-workspace-'))
    try {
      await copyTree(this.#folder, folder)
    } catch (cause) {
      await removeTree(folder)
      throw cause
    }
    const fork = new LocalWorkspace(folder, this.#source, this.#options, this.#tops)
    fork.#hasRun = this.#hasRun
    return fork
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeTree(this.#folder)
  }
}

/** Paths without those that lie within another: what is bound over a folder hides what was bound in it. */
function outermost(paths: readonly string[]): readonly string[] {
  const [...own] = new Set(paths)
  return own.filter(path => !own.some(each => path.startsWith(`${each}/`)))
}

/**
 * A command's result, without the marker that says it started inside. If the marker is missing, the
 * walls could not be built: not the policy's fault, and not shown to it.
 */
function afterArrival(finished: Finished, arrival: string): Finished {
  const { complaints, end, code } = finished
  const at = complaints.indexOf(arrival)
  if (at >= 0) return { ...finished, complaints: complaints.slice(at + arrival.length) }
  if (end !== 'exited') return finished
  const why = complaints.trim().slice(-500) || `exit code ${code}`
  throw new WorkspaceError(`the walls around a command could not be built: ${why}`)
}

const systemTops = [
  'usr',
  'bin',
  'sbin',
  'lib',
  'lib32',
  'lib64',
  'nix',
  'dev',
  'proc',
  'tmp',
  '..',
  '.',
]
