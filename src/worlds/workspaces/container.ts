import { spawn, spawnSync } from 'node:child_process'
import type { Call } from '../../base/core/call.ts'
import { type Finished, runInside, type StartedCommand, startInside } from '../sandboxes/run.ts'
import { withoutWalls } from '../sandboxes/walls.ts'
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
import { makeShared, neverStopped } from './shared.ts'

/** Which engine keeps workspaces, and what bounds them. */
export interface ContainerOptions {
  /** The engine's program: docker or podman. */
  readonly engine: string
  readonly limits: WorkspaceLimits
}

/** Seconds that building an image, and starting or copying a container, may take. */
const engineSeconds = 1800

/** Workspaces in containers of an engine on this machine; throws if none answers. */
export function containerWorkspaces(options: ContainerOptions): Workspaces {
  const { engine, limits } = options
  checkLimits(limits)
  const { status, error } = spawnSync(engine, ['info'], { timeout: 20_000, stdio: 'ignore' })
  if (status !== 0) {
    const why = error ? error.message : `"${engine} info" ended with ${status}`
    throw new WorkspaceError(`no container engine answers as ${engine}: ${why}`)
  }
  const ask = openEngine(options)
  const build = makeShared(folder => ask(['build', '--quiet', folder], neverStopped))
  const imageOf = ({ image }: WorkspaceSource, call: Call): Promise<string> | string => {
    if (!image) throw new ImpossibleError('a container is made from an image, and none was named')
    if ('name' in image) return checkName(image.name)
    return build(image.build, call)
  }
  return {
    name: engine,
    buildsImages: true,
    talks: true,
    shows: true,
    isolation: {
      by: engine,
      standing: ['network', 'files', 'processes', 'limit of processes'],
      missing: [],
    },
    async open(source, call) {
      const id = await start(ask, options, { source, image: await imageOf(source, call), call })
      const workspace = new Container(id, { ...options, source, ask })
      try {
        // Not every engine makes the folder that commands begin in.
        await ask(['exec', id, 'mkdir', '-p', source.workingFolder], call)
        for (const put of source.puts) await workspace.put(put, call)
        return workspace
      } catch (cause) {
        await workspace[Symbol.asyncDispose]()
        throw cause
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

/** An image's name stands among the engine's options, so it must not look like one. */
function checkName(name: string): string {
  if (/^\w/.test(name)) return name
  throw new ImpossibleError(`no image is called ${JSON.stringify(name)}: names begin with a letter`)
}

type Ask = (words: readonly string[], call: Call) => Promise<string>

/** Runs a command of the engine; returns the last line it prints, or throws with its stderr. */
function openEngine({ engine }: ContainerOptions): Ask {
  return async (words, { signal }) => {
    const asked = { seconds: engineSeconds, outputBytes: 100_000, signal }
    const { code, output, complaints } = await runInside(programOf(engine), words, asked)
    signal.throwIfAborted()
    if (code === 0) return output.trim().split('\n').at(-1) ?? ''
    throw new WorkspaceError(`${engine} ${words[0]}: ${complaints.trim().slice(-500)}`)
  }
}

/** Runs the engine's program itself, which is trusted; what it runs in containers is not. */
function programOf(engine: string) {
  const stdio: ['pipe', 'pipe', 'pipe'] = ['pipe', 'pipe', 'pipe']
  return {
    walls: withoutWalls().walls,
    spawn: (words: readonly string[]) => spawn(engine, words, { stdio }),
  }
}

interface Starting {
  readonly source: WorkspaceSource
  readonly image: string
  readonly call: Call
}

/** Starts a container whose first process only waits: signals from inside do not reach it. */
function start(
  ask: Ask,
  { limits }: ContainerOptions,
  { source, image, call }: Starting,
): Promise<string> {
  const { network = 'none' } = source
  const bounds = ['--memory', `${limits.memory}m`, '--pids-limit', String(limits.processes)]
  const reach = network === 'none' ? ['--network', 'none'] : []
  // The waiting first process reacts only to SIGKILL, so stopping need not wait.
  const rest = ['--security-opt', 'no-new-privileges', '--stop-timeout', '0']
  const first = ['--entrypoint', 'sleep', image, 'infinity']
  const shown = (source.shown ?? []).flatMap(path => ['--volume', `${path}:${path}:ro`])
  return ask(['run', '--detach', ...reach, ...bounds, ...rest, ...shown, ...first], call)
}

interface Contained extends ContainerOptions {
  readonly source: WorkspaceSource
  readonly ask: Ask
  /** The image that this one was forked from, removed together with it. */
  readonly own?: string
}

class Container implements Workspace {
  readonly #id: string
  readonly #options: Contained

  constructor(id: string, options: Contained) {
    this.#id = id
    this.#options = options
  }

  async run(command: readonly string[], call: CommandCall): Promise<Finished> {
    const { engine, limits } = this.#options
    const { signal, input, seconds = limits.seconds } = call
    const { words, asked } = this.#words(command, call)
    const began = performance.now()
    const finished = await runInside(programOf(engine), words, {
      ...asked,
      ...(input !== undefined && { input }),
    })
    await this.#killAll()
    signal.throwIfAborted()
    if (
      /^(Error response from daemon|Error: (no (such )?container|can only create exec sessions))/m.test(
        finished.complaints,
      )
    ) {
      throw new WorkspaceError(`${engine} exec: ${finished.complaints.trim().slice(-500)}`)
    }
    const isOver = finished.code === 137 && performance.now() - began >= seconds * 1000
    return isOver ? { ...finished, end: 'out-of-time' } : finished
  }

  start(command: readonly string[], call: Omit<CommandCall, 'input'>): StartedCommand {
    const { words, asked } = this.#words(command, call)
    const started = startInside(programOf(this.#options.engine), words, asked)
    const finished = started.finished.finally(() => this.#killAll())
    finished.catch(() => undefined)
    return { ...started, finished }
  }

  #words(command: readonly string[], { signal, seconds: given, variables }: CommandCall) {
    const { limits, source } = this.#options
    const seconds = given ?? limits.seconds
    const settings = Object.entries({ ...source.variables, ...variables })
    const words = [
      ...['exec', '--interactive', '--workdir', source.workingFolder],
      ...settings.flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      ...[this.#id, 'timeout', '-s', 'KILL', String(seconds), ...command],
    ]
    return { words, asked: { seconds: seconds + 10, outputBytes: limits.outputBytes, signal } }
  }

  /** Kills everything that a command left running; the waiting first process is not affected. */
  async #killAll(): Promise<void> {
    const kill = ['exec', this.#id, 'sh', '-c', 'kill -9 -1 2>/dev/null; true']
    await this.#options.ask(kill, { signal: AbortSignal.timeout(60_000) }).catch(() => '')
  }

  async put({ from, to }: Put, call: Call): Promise<void> {
    const { ask } = this.#options
    const words = ['sh', '-c', 'rm -rf "$1" && mkdir -p "$1"', 'sh', to]
    await ask(['exec', this.#id, ...words], call)
    await ask(['cp', `${from}/.`, `${this.#id}:${to}`], call)
  }

  async fork(call: Call): Promise<Workspace> {
    const { ask, source } = this.#options
    const own = await ask(['commit', this.#id], call)
    const id = await start(ask, this.#options, { source, image: own, call })
    return new Container(id, { ...this.#options, own })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { ask, own } = this.#options
    const call = { signal: AbortSignal.timeout(60_000) }
    await ask(['rm', '--force', this.#id], call)
    // `--no-prune`: the image that a Dockerfile made has no name either, and would be removed with its last copy.
    if (own !== undefined) await ask(['rmi', '--force', '--no-prune', own], call)
  }
}
