import type { Environment } from '../../base/core/environment.ts'
import { type PromptTask, promptTask } from '../../engine/environments/built-in/prompt-task.ts'
import { type Match, matches } from '../../engine/environments/built-in/single-turn.ts'
import { environment } from '../../engine/environments/environment.ts'
import { describeWalls, findBuilder, type Walls } from '../sandboxes/walls.ts'
import type { InterpreterLimits } from './child.ts'
import { type Interpreters, openInterpreters } from './interpreters.ts'
import { findInstalled, type Language } from './language.ts'
import { makeTasks, splits } from './make-tasks.ts'
import { openWorld } from './world.ts'

/** What an interpreter offers and allows. */
export interface InterpreterOptions extends Partial<InterpreterLimits> {
  /** @default ['python'] */
  readonly languages?: readonly Language[]
  /**
   * `calls`: code is the argument of a tool. `fences`: code is the first complete fenced block of a
   * turn, as in SimpleTIR; a turn with neither code nor a boxed answer ends the attempt. @default 'calls'
   */
  readonly style?: 'calls' | 'fences'
  /** @default 'number' */
  readonly match?: Match
  /** Processes of a language at one time. @default one per core, between 2 and 8 */
  readonly workers?: number
  /** Processes of a language kept ready. @default 1 */
  readonly warm?: number
  /** Whether code is refused if the system cannot keep it from network and files. @default 'wanted' */
  readonly walls?: 'required' | 'wanted'
}

const defaults = {
  languages: ['python'] as readonly Language[],
  style: 'calls' as const,
  match: 'number' as Match,
  seconds: 10,
  memory: 512,
  characters: 4000,
  cpu: 300,
}

/**
 * Reasoning with code: the policy writes code, reads its output, and answers. Code runs in a child
 * process without files, network or secrets, within walls if the system can build them; what it
 * defines is kept within the attempt.
 */
export function interpreter(given: InterpreterOptions = {}): Environment<PromptTask> {
  const options = { ...defaults, ...given }
  checkLimits(options)
  // Report missing packages before anything is rolled.
  for (const language of options.languages) findInstalled(language)
  const { walls } = options.builder ?? findBuilder()
  if (options.walls === 'required') requireWalls(walls)
  const opened = new Map<Language, Interpreters>()
  const of = (language: Language): Interpreters => {
    const known = opened.get(language) ?? openInterpreters(language, options)
    opened.set(language, known)
    return known
  }
  const made = environment({
    name: 'interpreter',
    task: promptTask,
    open: call => openWorld(call, { ...options, of }),
    reward: {
      right: ({ task, answer, report }) =>
        Number(matches[options.match](report.printed ?? answer, task.data)),
    },
    makeTasks,
    splits,
    async [Symbol.asyncDispose]() {
      await Promise.all([...opened.values()].map(pool => pool[Symbol.asyncDispose]()))
    },
  })
  const { by, ...rest } = describeWalls(walls)
  return { ...made, isolation: { by: `${by}, ${secondLine}`, ...rest } }
}

/** The protections on every machine; the only ones if the system builds no walls. */
const secondLine = 'WebAssembly, Node’s permission model for files, sockets closed from inside'

function requireWalls({ network, files, processes }: Walls): void {
  if (network && files && processes) return
  throw new Error(
    'walls=required: this machine can build none, since neither unshare nor bwrap may make namespaces here. ' +
      'In a container allow user namespaces, or install bubblewrap',
  )
}

function checkLimits({ seconds, memory, characters, cpu }: InterpreterLimits): void {
  for (const [name, value] of Object.entries({ seconds, memory, characters, cpu })) {
    if (value > 0 && Number.isFinite(value)) continue
    throw new RangeError(`The interpreter's ${name} are ${value}; they must be above 0 and finite.`)
  }
}
