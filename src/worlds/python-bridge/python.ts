import { type Message, type Reply, textOf } from '@espalier/text'
import { z } from 'zod'
import type {
  Environment,
  MakeTasksOptions,
  Task,
  Transition,
} from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { environment } from '../../engine/environments/environment.ts'
import { environmentFactory } from '../../engine/environments/factory.ts'
import type {
  CustomStepCall,
  OpenedWorld,
  OpenWorldCall,
} from '../../engine/environments/opened-world.ts'
import { type ReturnReport, Returns, returnReward } from '../../engine/environments/returns.ts'
import type { Toolset } from '../../engine/environments/tools/tool.ts'
import { isNonEmpty } from '../../engine/environments/world.ts'
import { type About, readAbout, readBegun, readFinished, readStepped } from './answers.ts'
import { type BridgeOptions, BridgeProcess, startProblem } from './bridge-process.ts'
import { PythonWorlds } from './worlds.ts'

/** What is hosted, and how. */
export interface PythonOptions {
  /** `reasoning_gym`, `gymnasium`, `module:Class` of a game, or a module with `load_environment`. */
  readonly package: string
  /** What the package is opened with, such as `dataset` or `id`. */
  readonly arguments?: Readonly<Record<string, unknown>>
  /** @default told by the package's name */
  readonly kind?: 'reasoning_gym' | 'gym' | 'verifiers'
  /** The program that runs Python. @default 'python3' */
  readonly python?: string
  /** Processes that host worlds. @default 2 */
  readonly processes?: number
  /** Seconds until a world has to answer. @default 60 */
  readonly seconds?: number
  /** Seconds until the package has to be loaded. @default 300 */
  readonly startSeconds?: number
}

const taskData = z.object({
  split: z.string().default('train'),
  index: z.int().min(0).default(0),
  /** Of games that have no list of tasks. */
  seed: z.int().min(0).default(0),
})
type TaskData = z.output<typeof taskData>

/** Worlds of a Python package: a `verifiers` environment, a `reasoning_gym` dataset, or a game. */
export async function openPython(options: PythonOptions): Promise<Environment<TaskData>> {
  const { arguments: given = {}, kind, python = 'python3', processes = 2 } = options
  const hello = { package: options.package, arguments: given, ...(kind && { kind }) }
  const { seconds = 60, startSeconds = 300 } = options
  const bridge: BridgeOptions = { python, hello, seconds, startSeconds, bytes: 16 * 2 ** 20 }
  const { process, about } = await BridgeProcess.start(bridge).catch((cause: unknown) => {
    throw new Error(`${options.package} cannot be hosted: ${startProblem(cause)}`, { cause })
  })
  const read = readAbout(about)
  const worlds = new PythonWorlds(bridge, processes, process)
  const made = environment<TaskData, ReturnReport>({
    name: read.name,
    task: taskData,
    open: call => openWorld(call, worlds),
    reward: { return: returnReward },
    makeTasks: asked => makeTasks(read, asked),
    splits: splitsOf(read),
    [Symbol.asyncDispose]: () => worlds[Symbol.asyncDispose](),
  })
  return { ...made, madeOf: read.made }
}

function splitsOf({ splits }: About): readonly string[] {
  const names = Object.keys(splits)
  return names.length > 0 ? names : ['train', 'held-out']
}

/** Tasks of a split in an order drawn by the seed; for games, one seed per task, even ones to train on. */
function makeTasks(about: About, made: MakeTasksOptions): readonly Task<TaskData>[] {
  const { count, seed, split = splitsOf(about)[0]! } = made
  const size = about.splits[split]
  if (size === undefined) {
    const last = split === 'held-out' ? 1 : 0
    return Array.from({ length: count }, (_, index) => {
      const drawn = 2 * (seedOf('python', seed, split, index).low >>> 2) + last
      return { id: `${split}-${index}` as TaskId, data: { split, index, seed: drawn } }
    })
  }
  const all = Array.from({ length: size }, (_, index) => index)
  const order = shuffle(all, random(seedOf('python', seed, split)))
  return order.slice(0, count).map(index => ({
    id: `${split}-${index}` as TaskId,
    data: { split, index, seed: 0 },
  }))
}

async function openWorld(
  call: OpenWorldCall<TaskData>,
  worlds: PythonWorlds,
): Promise<OpenedWorld<ReturnReport>> {
  const world = await worlds.open(call.data, call.seed, call)
  call.defer(() => world.close())
  const { opening, tools } = readBegun(world.begun)
  const returns = new Returns()
  let steps = 0
  return {
    opening,
    tools: offered(tools),
    async step(action, stepping) {
      const checked = await checkCalls(action, stepping)
      if (checked) return checked
      const stepped = readStepped(await world.step(actionOf(action), stepping))
      steps++
      returns.isDone = stepped.done
      returns.add(stepped.reward)
      return transitionOf(action, stepped, stepping.turn)
    },
    stepReward: () => returns.takeTurn(),
    async report() {
      const isCut = !returns.isDone && steps > 0
      return returns.report(isCut ? readFinished(await world.finish(call)) : undefined)
    },
  }
}

type Listed = ReturnType<typeof readBegun>['tools']

/** The tools as a policy is shown them; the package runs them, since its conversation holds them. */
function offered(tools: Listed): Toolset {
  const entries = tools.map(({ name, description, parameters }) => [
    name,
    { description, inputSchema: { type: 'object', ...parameters }, execute: () => '' },
  ])
  return Object.fromEntries(entries)
}

/** Answers wrong calls itself, so that the package only gets calls that it can read. */
async function checkCalls(action: Reply, call: CustomStepCall): Promise<Transition | undefined> {
  if (action.calls.length === 0) return undefined
  const { observed, records } = await call.runCalls(action.calls, call)
  if (!records.some(({ problem }) => problem) || !isNonEmpty(observed)) return undefined
  const text = 'Error: another call of this turn was wrong, so this one was not run. Call again.'
  const calls = records.map(
    (record): CallRecord =>
      record.problem ? record : { ...record, output: text, problem: 'extra-call' },
  )
  const said = observed.map((message, index) => ({ ...message, content: calls[index]!.output }))
  return isNonEmpty(said) ? { kind: 'continue', observed: said, calls } : undefined
}

function actionOf({ message, calls }: Reply): object {
  const parsed = calls.flatMap(call => (call.kind === 'parsed' ? call : []))
  return {
    text: textOf(message.content),
    calls: parsed.map(({ id, name, arguments: text }) => ({ id, name, arguments: text || '{}' })),
  }
}

function transitionOf(
  { calls: attempts }: Reply,
  { observed, done }: ReturnType<typeof readStepped>,
  turn: number,
): Transition {
  const calls = attempts.flatMap(attempt =>
    attempt.kind === 'parsed'
      ? {
          turn,
          id: attempt.id,
          tool: attempt.name,
          input: JSON.parse(attempt.arguments || '{}') as unknown,
          output: outputOf(observed, attempt.id),
          seconds: 0,
        }
      : [],
  )
  const rest = calls.length > 0 ? { calls } : {}
  if (!done && isNonEmpty(observed)) return { kind: 'continue', observed, ...rest }
  return { kind: 'end', observed, ...rest }
}

function outputOf(observed: readonly Message[], id: string): string {
  const said = observed.find(each => each.role === 'tool' && each.tool_call_id === id)
  return said ? textOf(said.content) : ''
}

const own = ['variant', 'python', 'kind', 'processes', 'seconds', 'start-seconds']

/** Python packages by name: `python:reasoning_gym,dataset=chain_sum`. Other options are the package's. */
export const pythonFactory = environmentFactory({
  about:
    'Worlds of a Python package: verifiers environments, reasoning_gym datasets, gymnasium games.',
  options: z.looseObject({
    /** The package. */
    variant: z.string().regex(/^[\w.:-]+$/),
    python: z.string().min(1).optional(),
    kind: z.enum(['reasoning_gym', 'gym', 'verifiers']).optional(),
    processes: z.coerce.number().int().min(1).max(64).optional(),
    seconds: z.coerce.number().positive().optional(),
    'start-seconds': z.coerce.number().positive().optional(),
  }),
  async open({ variant, 'start-seconds': startSeconds, ...read }) {
    const given = Object.entries(read).filter(([key]) => !own.includes(key))
    const rest = Object.entries({ ...read, startSeconds }).filter(
      ([key, value]) => value !== undefined && !given.some(([name]) => name === key),
    )
    const values = Object.fromEntries(given.map(([key, value]) => [key, argumentOf(String(value))]))
    const options = { package: variant, arguments: values, ...Object.fromEntries(rest) }
    // Tasks only reach an environment after its own `readTask` has read them.
    return (await openPython(options)) as Environment
  },
})

/** A value as Python is given it: JSON if it reads as that, and otherwise the text. */
function argumentOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
