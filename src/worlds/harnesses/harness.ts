import { AsyncLocalStorage } from 'node:async_hooks'
import { type Message, textOf } from '@espalier/text'
import type { Environment, Isolation, OpenCall, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import {
  AgentAnswer,
  type AgentCall,
  type AgentEnvironment,
  agent,
} from '../../engine/capture/agent.ts'
import { TimeIsUp } from '../../engine/rollout/end-walk.ts'
import {
  useOf,
  type Workspace,
  type WorkspaceSource,
  type Workspaces,
} from '../workspaces/contract.ts'
import { type Attempting, attemptWith } from './attempt.ts'
import type { Ended } from './contract.ts'

/** What attempts of a harness are made with. */
export interface HarnessOptions extends Pick<Attempting, 'opened' | 'seconds' | 'context'> {
  /** Where it works. */
  readonly workspaces: Workspaces
  /** The environment whose tasks it attempts: it opens its workspaces from what it is given here. */
  readonly environment: (workspaces: Workspaces) => Environment
  /** @default 'none': it reaches the gateway, and nothing else */
  readonly network?: WorkspaceSource['network']
}

/** A harness as an environment: every attempt starts the program, and what it asks becomes the attempt's tree. */
export function harness(options: HarnessOptions): AgentEnvironment {
  const { workspaces, opened } = options
  const places = new Places(options)
  const inner = options.environment(places.workspaces)
  const made = agent({
    name: opened.harness.name,
    task: { '~standard': { version: 1, vendor: 'espalier', validate: value => ({ value }) } },
    run: call => runOnce(call, { ...options, inner, places }),
  })
  const { makeTasks, splits } = inner
  return {
    ...made,
    name: `${opened.harness.name} in ${inner.name}`,
    readTask: data => inner.readTask(data),
    // Tests run after a limit too, so that there is something to score.
    reward: inner.reward,
    ...(makeTasks && { makeTasks: making => makeTasks.call(inner, making) }),
    ...(splits && { splits }),
    endsItself: true,
    isolation: isolationOf(workspaces.isolation, options),
    async [Symbol.asyncDispose]() {
      await inner[Symbol.asyncDispose]?.()
    },
  }
}

/** A network that is open is no wall. */
function isolationOf(isolation: Isolation, { network }: HarnessOptions): Isolation {
  if (network !== 'outside') return isolation
  const { standing, missing } = isolation
  return {
    ...isolation,
    standing: standing.filter(wall => wall !== 'network'),
    missing: ['network', ...missing],
  }
}

interface Running extends HarnessOptions {
  readonly inner: Environment
  readonly places: Places
}

const unbounded = Number.POSITIVE_INFINITY
const lanes = makeLanes({
  policy: unbounded,
  tools: unbounded,
  environment: unbounded,
  reward: unbounded,
})

const stoppedByTime: Ended = { code: 137, output: '', complaints: '' }

async function runOnce(call: AgentCall, options: Running): Promise<AgentAnswer> {
  const { inner, places, opened, seconds, context } = options
  const { task: data, id, seed, signal } = call
  const task: Task = { id: id as TaskId, data }
  const { world, workspace, folder, network } = await places.open(inner, task, {
    seed,
    signal,
    lanes,
  })
  try {
    const ended = await attemptWith({
      opened,
      workspace,
      folder,
      network,
      seconds,
      context,
      signal,
      node: places.node,
      prompt: promptOf(world.opening),
      fetch: call.fetch,
    }).catch((cause: unknown) => {
      // What was done in time is scored if the run says so.
      if (signal.reason instanceof TimeIsUp && signal.reason.isGraded) return stoppedByTime
      throw cause
    })
    const report = await world.report?.()
    const told = opened.harness.report(ended)
    const ofWorld = isRecord(report) ? report : {}
    return new AgentAnswer(told.answer, { ...ofWorld, ...useOf(workspace), harness: told })
  } finally {
    await world[Symbol.asyncDispose]()
  }
}

/** What a harness is told: everything that the environment's opening says. */
function promptOf(opening: readonly Message[]): string {
  return opening
    .map(({ content }) => textOf(content).trim())
    .filter(Boolean)
    .join('\n\n')
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A workspace that a world was opened in. */
interface Opened {
  readonly workspace: Workspace
  readonly folder: string
  readonly network: 'none' | 'outside'
}

/** The workspaces of a harness, each known by the world that was opened in it. */
class Places {
  readonly #options: HarnessOptions
  /** Told of the workspace that a world opens while it is opened. */
  readonly #opening = new AsyncLocalStorage<(opened: Opened) => void>()

  constructor(options: HarnessOptions) {
    this.#options = options
  }

  /** The program of Node where they are. */
  get node(): string {
    return this.#options.workspaces.shows ? process.execPath : 'node'
  }

  /** What an environment opens its workspaces from. */
  get workspaces(): Workspaces {
    const { workspaces, opened, network } = this.#options
    const shown = workspaces.shows && 'shown' in opened ? [process.execPath, ...opened.shown] : []
    return {
      ...workspaces,
      open: async (source, call) => {
        const own = { ...source, shown, ...(network && { network }) }
        const workspace = await workspaces.open(own, call)
        const { workingFolder: folder, network: reach = 'none' } = own
        this.#opening.getStore()?.({ workspace, folder, network: reach })
        return workspace
      },
    }
  }

  async open(inner: Environment, task: Task, call: OpenCall) {
    const came: Opened[] = []
    const tell = (opened: Opened): void => void came.push(opened)
    const world = await this.#opening.run(tell, () => inner.open(task, call))
    const [first] = came
    if (first) return { world, ...first }
    await world[Symbol.asyncDispose]()
    throw new Error(`${inner.name} opens no workspace, so no harness can work in it`)
  }
}
